/* libnfs 4 must not be entered by two threads, and FUSE runs single-threaded here (-s). So one connection is
 * enough for all users: AUTH_SYS credentials travel with every request, and are swapped when the caller changes.
 * There is no table of identities that could fill up. */
#include "session.h"

#include "record.h"

#define FUSE_USE_VERSION 35
#include <fuse3/fuse.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_SYN_RETRIES 3        /* an address nobody answers at fails after about 15 s */
#define MOUNT_REPLY_TIMEOUT_MS 10000
#define RETRY_INTERVAL_S 1

static struct nfs_context *connection;
static struct identity current;

static int resolve(const char *server) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(server, NULL, &hints, &found);
    if (found) freeaddrinfo(found);
    if (code) fprintf(stderr, "mount.nfs: server %s: %s\n", server, gai_strerror(code));
    return code ? EXIT_MOUNT_FAILED : 0;
}

/* A context with the options set. libnfs takes the ports from a URL only; its names are placeholders. */
static struct nfs_context *new_context(const struct mount_options *o) {
    struct nfs_context *context = nfs_init_context();
    if (!context) return NULL;
    char url[128];
    int length = snprintf(url, sizeof url, "nfs://server/export/file?version=3");
    if (o->nfs_port) length += snprintf(url + length, sizeof url - (size_t)length, "&nfsport=%d", o->nfs_port);
    if (o->mount_port) snprintf(url + length, sizeof url - (size_t)length, "&mountport=%d", o->mount_port);
    struct nfs_url *parsed = nfs_parse_url_full(context, url);
    if (parsed) nfs_destroy_url(parsed);
    nfs_set_version(context, NFS_V3);
    nfs_set_dircache(context, 0); /* another client's new files must show at once */
    nfs_set_uid(context, 0);
    nfs_set_gid(context, 0);
    nfs_umask(context, 0); /* the kernel has applied the caller's umask already */
    nfs_set_tcp_syncnt(context, CONNECT_SYN_RETRIES);
    /* libnfs applies this once the mount stands, and not when it is set later. */
    nfs_set_autoreconnect(context, o->soft ? o->retrans + 1 : -1);
    nfs_set_timeout(context, MOUNT_REPLY_TIMEOUT_MS);
    return context;
}

/* Answers that will not change by asking again. */
static bool is_final(int error) {
    return error == -EACCES || error == -EPERM || error == -ENOENT || error == -ENOTDIR || error == -EINVAL ||
           error == -ENAMETOOLONG;
}

static void explain(const struct mount_options *o, int error, const char *detail) {
    fprintf(stderr, "mount.nfs: %s: ", o->source);
    if (error == -EACCES || error == -EPERM)
        fprintf(stderr, "the server refuses: no such export, or this client is not among its clients");
    else if (error == -ENOENT || error == -ENOTDIR)
        fprintf(stderr, "the server has no such export");
    else
        fprintf(stderr, "the server does not answer (NFSv3 needs rpcbind 111, mountd and nfs 2049 over TCP)");
    fprintf(stderr, ": %s\n", detail && *detail ? detail : strerror(-error));
}

int session_open(const struct mount_options *o) {
    if (resolve(o->server)) return EXIT_MOUNT_FAILED;
    time_t deadline = time(NULL) + o->retry_minutes * 60L;
    bool told = false;
    for (;;) {
        struct nfs_context *context = new_context(o);
        if (!context) return fprintf(stderr, "mount.nfs: out of memory\n"), EXIT_SYSTEM;
        int error = nfs_mount(context, o->server, o->export);
        if (!error) {
            nfs_set_timeout(context, o->soft ? o->timeo_ds * 100 : -1);
            connection = context;
            return 0;
        }
        bool give_up = is_final(error) || time(NULL) >= deadline;
        if (give_up || (o->verbose && !told)) explain(o, error, nfs_get_error(context));
        told = true;
        nfs_destroy_context(context);
        record_forget();
        if (give_up) return EXIT_MOUNT_FAILED;
        sleep(RETRY_INTERVAL_S);
    }
}

struct identity session_caller(void) {
    struct identity who = {0};
    const struct fuse_context *request = fuse_get_context();
    if (!request) return who;
    who.uid = request->uid;
    who.gid = request->gid;
    if (request->pid) { /* 0: the process is in a PID namespace that cannot be seen from here */
        int count = fuse_getgroups(AUTH_SYS_MAX_GROUPS, who.groups);
        who.group_count = count < 0 ? 0 : count > AUTH_SYS_MAX_GROUPS ? AUTH_SYS_MAX_GROUPS : count;
    }
    return who;
}

static bool same(const struct identity *a, const struct identity *b) {
    return a->uid == b->uid && a->gid == b->gid && a->group_count == b->group_count &&
           !memcmp(a->groups, b->groups, (size_t)a->group_count * sizeof *a->groups);
}

struct nfs_context *session_as(const struct identity *who) {
    if (!same(who, &current)) {
        struct AUTH *auth = libnfs_authunix_create("mount.nfs", who->uid, who->gid, (uint32_t)who->group_count,
                                                   (uint32_t *)who->groups);
        if (!auth) abort(); /* out of memory: going on would act in another user's name */
        rpc_set_auth(nfs_get_rpc_context(connection), auth); /* frees the one before */
        current = *who;
    }
    return connection;
}

struct nfs_context *session_as_caller(void) {
    struct identity who = session_caller();
    return session_as(&who);
}
