#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_WRITE_SIZE (1024 * 1024)
#define MAX_WRITE_SIZE (1024 * 1024)
#define DEFAULT_RETRY_MINUTES 2 /* what nfs(5) says for a mount in the foreground */

/* How an option without a number is treated. */
enum treatment {
    SILENT,   /* it already holds here, or has no effect on purpose in mount(8) */
    WARN,     /* it asks for something this client does not do: said, then passed over */
    VFS_FLAG, /* for the kernel: goes to the FUSE mount */
    REFUSE,   /* mounting without it would break a promise */
};

static const struct { const char *name; enum treatment treatment; const char *why; } words[] = {
    {"rw", SILENT, NULL}, {"defaults", SILENT, NULL}, {"hard", SILENT, NULL}, {"nolock", SILENT, NULL},
    {"tcp", SILENT, NULL}, {"noac", SILENT, NULL}, {"auto", SILENT, NULL}, {"noauto", SILENT, NULL},
    {"_netdev", SILENT, NULL}, {"nofail", SILENT, NULL}, {"fg", SILENT, NULL}, {"nordirplus", SILENT, NULL},
    {"suid", WARN, "set-user-id bits are never honoured"}, {"dev", WARN, "device files are never opened"},
    {"lock", WARN, "locks hold within this mount only"}, {"ac", WARN, "attributes are never cached"},
    {"bg", WARN, "the mount runs in the foreground"}, {"acl", WARN, NULL}, {"noacl", WARN, NULL},
    {"sharecache", WARN, NULL}, {"nosharecache", WARN, NULL}, {"resvport", WARN, NULL}, {"noresvport", WARN, NULL},
    {"rdirplus", WARN, NULL}, {"softerr", WARN, NULL}, {"softreval", WARN, NULL}, {"fsc", WARN, NULL},
    {"intr", WARN, NULL}, {"nointr", WARN, NULL}, {"cto", SILENT, NULL}, {"nocto", WARN, "caches are dropped at open"},
    {"nosuid", SILENT, NULL}, {"nodev", SILENT, NULL}, {"noexec", VFS_FLAG, NULL}, {"exec", VFS_FLAG, NULL},
    {"noatime", VFS_FLAG, NULL}, {"atime", VFS_FLAG, NULL}, {"relatime", SILENT, NULL}, {"nodiratime", SILENT, NULL},
    {"sync", VFS_FLAG, NULL}, {"async", VFS_FLAG, NULL}, {"dirsync", VFS_FLAG, NULL},
    {"udp", REFUSE, "only TCP is spoken"}, {"rdma", REFUSE, "only TCP is spoken"},
    {"remount", REFUSE, "unmount and mount again"},
};

/* Options with a value that change nothing here. */
static const char *const unused_values[] = {
    "rsize", "acregmin", "acregmax", "acdirmin", "acdirmax", "actimeo", "nconnect", "max_connect", "lookupcache",
    "local_lock", "clientaddr", "namlen", "mounthost", "mountvers", "mountproto", "minorversion", "context",
};

static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("mount.nfs: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static bool has_prefix(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

/* Reads NAME=NUMBER. Returns false after a message when the value is no number within [low, high]. */
static bool number(const char *option, const char *value, long low, long high, long *result) {
    char *end;
    errno = 0;
    *result = strtol(value, &end, 10);
    if (*value && !*end && !errno && *result >= low && *result <= high) return true;
    say("option %s: the value must be a number from %ld to %ld", option, low, high);
    return false;
}

/* Only version 3 is spoken: a mount of another version would be a lie about what was tested. */
static int check_version(const char *value) {
    if (!strcmp(value, "3")) return 0;
    say("NFS version %s was asked for, and this user-space client speaks version 3 only: set nfsvers=3", value);
    return EXIT_MOUNT_FAILED;
}

static int parse_value(struct mount_options *o, const char *option, const char *name, const char *value) {
    long n;
    if (!strcmp(name, "vers") || !strcmp(name, "nfsvers")) return check_version(value);
    if (!strcmp(name, "proto")) {
        if (!strcmp(value, "tcp") || !strcmp(value, "tcp6")) return 0;
        say("option %s: only TCP is spoken", option);
        return EXIT_MOUNT_FAILED;
    }
    if (!strcmp(name, "sec")) {
        if (!strcmp(value, "sys")) return 0;
        say("option %s: only sec=sys is supported, Kerberos is not", option);
        return EXIT_MOUNT_FAILED;
    }
    if (!strcmp(name, "port") || !strcmp(name, "mountport")) {
        if (!number(option, value, 0, 65535, &n)) return EXIT_USAGE;
        *(name[0] == 'p' ? &o->nfs_port : &o->mount_port) = (int)n;
        return 0;
    }
    if (!strcmp(name, "wsize")) {
        if (!number(option, value, 1024, 64L * 1024 * 1024, &n)) return EXIT_USAGE;
        o->write_size = n > MAX_WRITE_SIZE ? MAX_WRITE_SIZE : (size_t)n;
        return 0;
    }
    if (!strcmp(name, "timeo")) return number(option, value, 1, 36000, &n) ? (o->timeo_ds = (int)n, 0) : EXIT_USAGE;
    if (!strcmp(name, "retrans")) return number(option, value, 0, 1000, &n) ? (o->retrans = (int)n, 0) : EXIT_USAGE;
    if (!strcmp(name, "retry")) return number(option, value, 0, 10000, &n) ? (o->retry_minutes = (int)n, 0) : EXIT_USAGE;
    for (size_t i = 0; i < sizeof unused_values / sizeof *unused_values; i++)
        if (!strcmp(name, unused_values[i])) {
            say("warning: option %s has no effect in this client", option);
            return 0;
        }
    if (o->sloppy) return 0;
    say("option %s is not known (-s passes over such options)", option);
    return EXIT_USAGE;
}

static int parse_word(struct mount_options *o, const char *word) {
    if (!strcmp(word, "ro")) return o->read_only = true, 0;
    if (!strcmp(word, "rw")) return o->read_only = false, 0;
    if (!strcmp(word, "soft")) return o->soft = true, 0;
    if (!strcmp(word, "hard")) return o->soft = false, 0;
    if (has_prefix(word, "x-") || has_prefix(word, "user") || has_prefix(word, "comment")) return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i].name)) continue;
        switch (words[i].treatment) {
        case SILENT:
            return 0;
        case WARN:
            say("warning: option %s has no effect in this client%s%s", word, words[i].why ? ": " : "",
                words[i].why ? words[i].why : "");
            return 0;
        case VFS_FLAG:
            if (strlen(o->vfs_flags) + strlen(word) + 2 > sizeof o->vfs_flags) return EXIT_USAGE;
            strcat(strcat(o->vfs_flags, ","), word);
            return 0;
        case REFUSE:
            say("option %s is not supported: %s", word, words[i].why);
            return EXIT_MOUNT_FAILED;
        }
    }
    if (o->sloppy) return 0;
    say("option %s is not known (-s passes over such options)", word);
    return EXIT_USAGE;
}

static int parse_option_list(struct mount_options *o, char *list) {
    char *rest = NULL;
    for (char *option = strtok_r(list, ",", &rest); option; option = strtok_r(NULL, ",", &rest)) {
        char name[32] = "";
        const char *equals = strchr(option, '=');
        int code;
        if (equals && (size_t)(equals - option) < sizeof name && !has_prefix(option, "x-") && !has_prefix(option, "comment")) {
            memcpy(name, option, (size_t)(equals - option));
            code = parse_value(o, option, name, equals + 1);
        } else {
            code = parse_word(o, option);
        }
        if (code) return code;
    }
    return 0;
}

/* SERVER:/PATH, with an IPv6 address in square brackets. */
static int parse_source(struct mount_options *o, const char *source) {
    const char *colon = strstr(source, ":/");
    if (!colon || colon == source) {
        say("'%s' is not of the form SERVER:/PATH", source);
        return EXIT_USAGE;
    }
    size_t length = (size_t)(colon - source);
    const char *server = source;
    if (server[0] == '[' && server[length - 1] == ']') { server++; length -= 2; }
    if (length >= sizeof o->server || strlen(colon + 1) >= sizeof o->export || strlen(source) >= sizeof o->source) {
        say("the server or the path is too long");
        return EXIT_USAGE;
    }
    snprintf(o->server, sizeof o->server, "%.*s", (int)length, server);
    snprintf(o->export, sizeof o->export, "%s", colon + 1);
    snprintf(o->source, sizeof o->source, "%s", source);
    return 0;
}

/* -o may come before -s on the command line, so the lists are kept and read at the end. */
int options_parse(int argc, char **argv, struct mount_options *o) {
    *o = (struct mount_options){.timeo_ds = 600, .retrans = 2, .retry_minutes = DEFAULT_RETRY_MINUTES,
                                .write_size = DEFAULT_WRITE_SIZE};
    const char *base = strrchr(argv[0], '/'), *me = base ? base + 1 : argv[0];
    const char *source = NULL, *target = NULL;
    char *lists[16];
    int list_count = 0, code;
    bool read_only = false, nfs4 = !strcmp(me, "mount.nfs4");

    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-') {
            if (!source) source = arg;
            else if (!target) target = arg;
            else return say("unexpected argument '%s'", arg), EXIT_USAGE;
            continue;
        }
        for (const char *flag = arg + 1; *flag; flag++) {
            if (*flag == 'o' || *flag == 't' || *flag == 'N') { /* with a value, in this argument or the next */
                char *value = flag[1] ? (char *)flag + 1 : i + 1 < argc ? argv[++i] : NULL;
                if (!value) return say("-%c needs a value", *flag), EXIT_USAGE;
                if (*flag == 'N') return say("-N (another namespace) is not supported"), EXIT_USAGE;
                if (*flag == 't' && has_prefix(value, "nfs4")) nfs4 = true;
                if (*flag == 'o' && list_count == 16) return say("too many -o"), EXIT_USAGE;
                if (*flag == 'o') lists[list_count++] = value;
                break;
            }
            switch (*flag) {
            case 'v': o->verbose = true; break;
            case 'f': o->fake = true; break;
            case 's': o->sloppy = true; break;
            case 'r': read_only = true; break;
            case 'D': o->foreground = true; break;
            case 'n': case 'w': break; /* no mtab is kept anyway; read-write is the default */
            default: return say("flag -%c is not known", *flag), EXIT_USAGE;
            }
        }
    }
    if (!source || !target) return say("usage: %s SERVER:/PATH TARGET [-fnrsvwD] [-o OPTIONS]", me), EXIT_USAGE;
    if (nfs4) return check_version("4");
    if ((code = parse_source(o, source))) return code;
    if (strlen(target) >= sizeof o->target) return say("the target is too long"), EXIT_USAGE;
    snprintf(o->target, sizeof o->target, "%s", target);
    for (int i = 0; i < list_count; i++)
        if ((code = parse_option_list(o, lists[i]))) return code;
    o->read_only |= read_only;
    return 0;
}
