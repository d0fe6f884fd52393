/* The one connection to the NFS server, and whose name the next request carries. */
#ifndef TRAINYARD_SESSION_H
#define TRAINYARD_SESSION_H

#include "options.h"

#include <sys/types.h>

struct nfs_context;

#define AUTH_SYS_MAX_GROUPS 16 /* RFC 5531 */

/* A caller as AUTH_SYS describes it. */
struct identity {
    uid_t uid;
    gid_t gid;
    int group_count;
    gid_t groups[AUTH_SYS_MAX_GROUPS];
};

/* Mounts the export. Waits up to options->retry_minutes for a server that does not answer; a refusal is final.
 * Returns 0, or EXIT_MOUNT_FAILED after a message. */
int session_open(const struct mount_options *options);

/* The process that made the FUSE request now being served. */
struct identity session_caller(void);

/* The connection, set up so that the next requests carry `who`. */
struct nfs_context *session_as(const struct identity *who);

/* session_as(session_caller()). */
struct nfs_context *session_as_caller(void);

#endif
