/* mount.nfs in user space: NFSv3 over TCP through FUSE (libfuse3) and libnfs, for test nodes whose kernel has no
 * NFS client. kubelet and mount(8) call it like the real one; see README.md for what it does not do.
 *
 *     mount.nfs SERVER:/PATH TARGET [-fnrsvwD] [-o OPTIONS]
 *
 * It returns once the mount stands (0), or 1 wrong usage, 2 system error, 32 mount failed. A child process then
 * serves the mount until it is unmounted. */
#include "fuse_ops.h"
#include "options.h"
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int check_target(const char *target) {
    struct stat st;
    if (!stat(target, &st) && S_ISDIR(st.st_mode)) return 0;
    fprintf(stderr, "mount.nfs: mount point %s: %s\n", target, errno ? strerror(errno) : "not a directory");
    return EXIT_MOUNT_FAILED;
}

/* libfuse separates its options by commas; a comma or backslash within a value is escaped. */
static int append_escaped(char *to, size_t size, const char *text) {
    size_t at = strlen(to);
    for (; *text; text++) {
        if (at + 3 > size) return -1;
        if (*text == ',' || *text == '\\') to[at++] = '\\';
        to[at++] = *text;
    }
    to[at] = '\0';
    return 0;
}

static int serve(struct mount_options *o, char *program) {
    char list[6000] = "allow_other,nosuid,nodev,subtype=nfs,fsname=";
    if (append_escaped(list, sizeof list - sizeof o->vfs_flags - 4, o->source)) return EXIT_USAGE;
    strcat(list, o->vfs_flags);
    if (o->read_only) strcat(list, ",ro");
    char *argv[] = {program, o->target, "-s", "-o", list, o->foreground ? "-f" : NULL, NULL};
    signal(SIGPIPE, SIG_IGN); /* a lost connection is an error code, not the end */
    fuse_ops_set_write_size(o->write_size);
    if (!fuse_main(o->foreground ? 6 : 5, argv, &nfs_operations, NULL)) return 0;
    fprintf(stderr, "mount.nfs: %s could not be mounted on %s through FUSE (is /dev/fuse there?)\n", o->source, o->target);
    return EXIT_MOUNT_FAILED;
}

int main(int argc, char **argv) {
    static struct mount_options options;
    int code = options_parse(argc, argv, &options);
    if (code || (code = check_target(options.target))) return code;
    if (options.verbose)
        fprintf(stderr, "mount.nfs: %s on %s: NFSv3 over TCP in user space, %s, %s\n", options.source, options.target,
                options.read_only ? "read-only" : "read-write", options.soft ? "soft" : "hard");
    if (options.fake) return 0;
    if ((code = session_open(&options))) return code;
    return serve(&options, argv[0]);
}
