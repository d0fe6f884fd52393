/* The file operations: FUSE requests answered by NFS calls. */
#ifndef TRAINYARD_FUSE_OPS_H
#define TRAINYARD_FUSE_OPS_H

#define FUSE_USE_VERSION 35
#include <fuse3/fuse.h>

#include <stddef.h>

extern const struct fuse_operations nfs_operations;

/* The largest WRITE request in bytes. To be set before the file system is served. */
void fuse_ops_set_write_size(size_t bytes);

#endif
