/* Every operation runs in the name of the process that asked for it, and the server decides what is allowed:
 * it may squash users, so checking modes here (FUSE's default_permissions) would refuse what it permits.
 * An open file keeps the identity that opened it, because the kernel writes memory-mapped pages back in
 * nobody's name. libnfs returns 0 or a count, or a negated errno, which is just what FUSE wants. */
#include "fuse_ops.h"
#include "session.h"

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>

#define PERMISSION_BITS 07777
#define FUSE_MAX_TRANSFER (1024 * 1024)

struct open_file {
    struct identity owner;
    struct nfsfh *handle;
};

static size_t write_size = FUSE_MAX_TRANSFER;

void fuse_ops_set_write_size(size_t bytes) { write_size = bytes; }

static struct open_file *file_of(struct fuse_file_info *info) {
    return info && info->fh ? (struct open_file *)(uintptr_t)info->fh : NULL;
}

static struct nfs_context *as_opener(const struct open_file *file) { return session_as(&file->owner); }

static void fill_stat(const struct nfs_stat_64 *from, struct stat *to) {
    *to = (struct stat){
        .st_ino = from->nfs_ino, .st_mode = (mode_t)from->nfs_mode, .st_nlink = from->nfs_nlink,
        .st_uid = (uid_t)from->nfs_uid, .st_gid = (gid_t)from->nfs_gid, .st_rdev = from->nfs_rdev,
        .st_size = (off_t)from->nfs_size, .st_blksize = 4096, .st_blocks = (blkcnt_t)((from->nfs_used + 511) / 512),
        .st_atim = {(time_t)from->nfs_atime, (long)from->nfs_atime_nsec},
        .st_mtim = {(time_t)from->nfs_mtime, (long)from->nfs_mtime_nsec},
        .st_ctim = {(time_t)from->nfs_ctime, (long)from->nfs_ctime_nsec},
    };
}

static int op_getattr(const char *path, struct stat *st, struct fuse_file_info *info) {
    struct nfs_stat_64 attributes;
    struct open_file *file = file_of(info);
    int result = file ? nfs_fstat64(as_opener(file), file->handle, &attributes)
                      : nfs_lstat64(session_as_caller(), path, &attributes);
    if (!result) fill_stat(&attributes, st);
    return result;
}

static int op_access(const char *path, int mode) { return nfs_access(session_as_caller(), path, mode); }

static int op_readlink(const char *path, char *buffer, size_t size) {
    return nfs_readlink(session_as_caller(), path, buffer, (int)size);
}

static int op_mkdir(const char *path, mode_t mode) { return nfs_mkdir2(session_as_caller(), path, mode & PERMISSION_BITS); }
static int op_unlink(const char *path) { return nfs_unlink(session_as_caller(), path); }
static int op_rmdir(const char *path) { return nfs_rmdir(session_as_caller(), path); }
static int op_symlink(const char *target, const char *path) { return nfs_symlink(session_as_caller(), target, path); }
static int op_link(const char *from, const char *to) { return nfs_link(session_as_caller(), from, to); }

/* RENAME_NOREPLACE and RENAME_EXCHANGE have no NFSv3 request. */
static int op_rename(const char *from, const char *to, unsigned flags) {
    return flags ? -EINVAL : nfs_rename(session_as_caller(), from, to);
}

static int op_mknod(const char *path, mode_t mode, dev_t device) {
    return nfs_mknod(session_as_caller(), path, (int)mode, (int)device);
}

static int op_chmod(const char *path, mode_t mode, struct fuse_file_info *info) {
    (void)info;
    return nfs_chmod(session_as_caller(), path, mode & PERMISSION_BITS);
}

/* -1 keeps an id; libnfs always sends both, so the missing one is fetched. */
static int op_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *info) {
    (void)info;
    struct nfs_context *nfs = session_as_caller();
    if (uid == (uid_t)-1 || gid == (gid_t)-1) {
        struct nfs_stat_64 now;
        int result = nfs_lstat64(nfs, path, &now);
        if (result) return result;
        if (uid == (uid_t)-1) uid = (uid_t)now.nfs_uid;
        if (gid == (gid_t)-1) gid = (gid_t)now.nfs_gid;
    }
    return nfs_lchown(nfs, path, (int)uid, (int)gid);
}

static int op_truncate(const char *path, off_t length, struct fuse_file_info *info) {
    struct open_file *file = file_of(info);
    return file ? nfs_ftruncate(as_opener(file), file->handle, (uint64_t)length)
                : nfs_truncate(session_as_caller(), path, (uint64_t)length);
}

/* Microseconds are the finest that libnfs sends. */
static int op_utimens(const char *path, const struct timespec wanted[2], struct fuse_file_info *info) {
    (void)info;
    struct nfs_context *nfs = session_as_caller();
    struct nfs_stat_64 now;
    struct timeval times[2], clock;
    int result = nfs_lstat64(nfs, path, &now);
    if (result) return result;
    gettimeofday(&clock, NULL);
    const struct timeval unchanged[2] = {{(time_t)now.nfs_atime, (suseconds_t)(now.nfs_atime_nsec / 1000)},
                                         {(time_t)now.nfs_mtime, (suseconds_t)(now.nfs_mtime_nsec / 1000)}};
    for (int i = 0; i < 2; i++) {
        if (wanted[i].tv_nsec == UTIME_NOW) times[i] = clock;
        else if (wanted[i].tv_nsec == UTIME_OMIT) times[i] = unchanged[i];
        else times[i] = (struct timeval){wanted[i].tv_sec, wanted[i].tv_nsec / 1000};
    }
    return nfs_lutimes(nfs, path, times);
}

/* O_APPEND is left out: the kernel turns appends into offsets before they get here. */
static int open_or_create(const char *path, int flags, mode_t mode, struct fuse_file_info *info) {
    struct open_file *file = calloc(1, sizeof *file);
    if (!file) return -ENOMEM;
    file->owner = session_caller();
    struct nfs_context *nfs = as_opener(file);
    int result = flags & O_CREAT ? nfs_open2(nfs, path, flags, mode & PERMISSION_BITS, &file->handle)
                                 : nfs_open(nfs, path, flags, &file->handle);
    if (result) {
        free(file);
        return result;
    }
    info->fh = (uint64_t)(uintptr_t)file;
    return 0;
}

static int op_open(const char *path, struct fuse_file_info *info) {
    return open_or_create(path, info->flags & (O_ACCMODE | O_TRUNC), 0, info);
}

static int op_create(const char *path, mode_t mode, struct fuse_file_info *info) {
    return open_or_create(path, (info->flags & (O_ACCMODE | O_TRUNC | O_EXCL)) | O_CREAT, mode, info);
}

static int op_read(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *info) {
    (void)path;
    struct open_file *file = file_of(info);
    struct nfs_context *nfs = as_opener(file);
    size_t done = 0;
    while (done < size) {
        int count = nfs_pread(nfs, file->handle, (uint64_t)offset + done, size - done, buffer + done);
        if (count < 0) return done ? (int)done : count;
        if (count == 0) break;
        done += (size_t)count;
    }
    return (int)done;
}

static int op_write(const char *path, const char *data, size_t size, off_t offset, struct fuse_file_info *info) {
    (void)path;
    struct open_file *file = file_of(info);
    struct nfs_context *nfs = as_opener(file);
    size_t done = 0;
    while (done < size) {
        size_t part = size - done < write_size ? size - done : write_size;
        int count = nfs_pwrite(nfs, file->handle, (uint64_t)offset + done, part, (void *)(uintptr_t)(data + done));
        if (count <= 0) return done ? (int)done : count ? count : -EIO;
        done += (size_t)count;
    }
    return (int)done;
}

static int op_fsync(const char *path, int data_only, struct fuse_file_info *info) {
    (void)path, (void)data_only;
    struct open_file *file = file_of(info);
    return nfs_fsync(as_opener(file), file->handle);
}

static int op_release(const char *path, struct fuse_file_info *info) {
    (void)path;
    struct open_file *file = file_of(info);
    int result = nfs_close(as_opener(file), file->handle);
    free(file);
    return result;
}

static int op_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info,
                      enum fuse_readdir_flags flags) {
    (void)offset, (void)info, (void)flags;
    static const mode_t type_bits[] = {[NF3REG] = S_IFREG, [NF3DIR] = S_IFDIR, [NF3BLK] = S_IFBLK, [NF3CHR] = S_IFCHR,
                                       [NF3LNK] = S_IFLNK, [NF3SOCK] = S_IFSOCK, [NF3FIFO] = S_IFIFO};
    struct nfs_context *nfs = session_as_caller();
    struct nfsdir *directory;
    int result = nfs_opendir(nfs, path, &directory);
    if (result) return result;
    for (struct nfsdirent *entry; (entry = nfs_readdir(nfs, directory));) {
        struct stat st = {.st_ino = entry->inode};
        if (entry->type < sizeof type_bits / sizeof *type_bits) st.st_mode = type_bits[entry->type];
        if (fill(buffer, entry->name, &st, 0, 0)) break;
    }
    nfs_closedir(nfs, directory);
    return 0;
}

static int op_statfs(const char *path, struct statvfs *st) { return nfs_statvfs(session_as_caller(), path, st); }

/* Nothing but file data is cached, and that only while a file is open and unchanged: a write by another pod must
 * be seen. An attribute cache of one second was enough to hide an append. */
static void *op_init(struct fuse_conn_info *connection, struct fuse_config *config) {
    config->use_ino = 1;
    config->attr_timeout = config->entry_timeout = config->negative_timeout = 0;
    config->auto_cache = 1;
    config->kernel_cache = 0;
    config->hard_remove = 0; /* an open file that is deleted gets a hidden name until it is closed */
    connection->max_write = FUSE_MAX_TRANSFER;
    return NULL;
}

const struct fuse_operations nfs_operations = {
    .init = op_init, .getattr = op_getattr, .access = op_access, .readlink = op_readlink, .mkdir = op_mkdir,
    .unlink = op_unlink, .rmdir = op_rmdir, .symlink = op_symlink, .link = op_link, .rename = op_rename,
    .mknod = op_mknod, .chmod = op_chmod, .chown = op_chown, .truncate = op_truncate, .utimens = op_utimens,
    .open = op_open, .create = op_create, .read = op_read, .write = op_write, .fsync = op_fsync,
    .release = op_release, .readdir = op_readdir, .statfs = op_statfs,
};
