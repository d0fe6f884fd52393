/* What was asked on the command line of mount.nfs, checked and ready to use. */
#ifndef TRAINYARD_OPTIONS_H
#define TRAINYARD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Exit codes of mount(8). */
enum { EXIT_USAGE = 1, EXIT_SYSTEM = 2, EXIT_MOUNT_FAILED = 32 };

struct mount_options {
    char source[2600];      /* as given: SERVER:/PATH, shown in /proc/mounts */
    char server[256];
    char export[2048];
    char target[4096];
    char vfs_flags[256];    /* nosuid,noatime,... handed to the kernel as they are */
    bool read_only;
    bool verbose;           /* -v */
    bool fake;              /* -f: check everything, mount nothing */
    bool sloppy;            /* -s: pass over options nobody knows */
    bool foreground;        /* -D: stay in the foreground (for debugging) */
    bool soft;              /* give up on a silent server instead of waiting for ever */
    int timeo_ds;           /* tenths of a second; used by soft mounts */
    int retrans;            /* used by soft mounts */
    int retry_minutes;      /* how long to wait for a server that does not answer yet */
    int nfs_port;           /* 0: ask rpcbind */
    int mount_port;         /* 0: ask rpcbind */
    size_t write_size;      /* bytes a WRITE request, at most */
};

/* Fills `options` from the command line. Returns 0, or the exit code to end with after the message it printed. */
int options_parse(int argc, char **argv, struct mount_options *options);

#endif
