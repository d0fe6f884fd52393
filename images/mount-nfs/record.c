/* Stands between libnfs 4.0.0 and the socket, because of what libnfs does when a connection ends within a reply: it keeps
 * the half it has, and takes the first bytes of the next connection for the rest. Data would be mixed up silently. And
 * when something else than an NFS server answers, as the way to a service may lead elsewhere for a moment while its
 * server is replaced, libnfs takes the text for the length of a reply, which it then rejects on every later connection.
 *
 * libnfs calls recv and connect through the dynamic linker, so the functions of these names here come first. */
#define _GNU_SOURCE
#include "record.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <time.h>
#include <unistd.h>

#define LAST_FRAGMENT 0x80000000u
#define SMALLEST_REPLY 24u
#define LARGEST_REPLY (1024u * 1024u + 4096u) /* libnfs' own limit */
#define RECONNECT_PAUSE_US 100000

/* The reply being read: where libnfs keeps its mark (RFC 5531, record marking) and its body, and how much it has. */
static char *mark, *body;
static uint32_t taken, size;

void record_forget(void) {
    mark = body = NULL;
    taken = size = 0;
}

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

ssize_t recv(int fd, void *buffer, size_t length, int flags) {
    static ssize_t (*real)(int, void *, size_t, int);
    if (!real) real = (ssize_t (*)(int, void *, size_t, int))next("recv");
    if (taken) {
        ssize_t count = real(fd, buffer, length, flags);
        if (count > 0) {
            body = (char *)buffer - taken;
            taken += (uint32_t)count;
            if (taken >= size) record_forget();
        }
        return count;
    }
    if (length != sizeof size) return real(fd, buffer, length, flags);
    uint32_t word;
    ssize_t count = real(fd, &word, sizeof word, flags | MSG_PEEK);
    if (count <= 0) return count;
    uint32_t said = ntohl(word) & ~LAST_FRAGMENT;
    if (count < (ssize_t)sizeof word || !(ntohl(word) & LAST_FRAGMENT) || said < SMALLEST_REPLY || said > LARGEST_REPLY) {
        errno = EPROTO; /* no NFS server: libnfs connects anew */
        return -1;
    }
    count = real(fd, buffer, length, flags);
    if (count == (ssize_t)sizeof word) {
        mark = buffer;
        taken = sizeof word;
        size = said + (uint32_t)sizeof word;
    }
    return count;
}

/* Makes libnfs forget the half reply. In its struct rpc_context the count of bytes lies before the mark, and the pointer
 * to the body behind it; both are compared with what was seen. */
static void drop_half(void) {
    uint32_t count;
    char *kept;
    memcpy(&count, mark - sizeof count, sizeof count);
    memcpy(&kept, mark + 8, sizeof kept);
    if (count != taken || (taken > sizeof count && kept != body)) {
        fprintf(stderr, "mount.nfs: the server went away within a reply, and this libnfs can't go on after that\n");
        abort();
    }
    free(kept);
    count = 0;
    kept = NULL;
    memcpy(mark - sizeof count, &count, sizeof count);
    memcpy(mark + 8, &kept, sizeof kept);
    record_forget();
}

int connect(int fd, const struct sockaddr *address, socklen_t length) {
    static int (*real)(int, const struct sockaddr *, socklen_t);
    static struct timespec last;
    if (!real) real = (int (*)(int, const struct sockaddr *, socklen_t))next("connect");
    if (taken) drop_half();
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - last.tv_sec <= 1 && last.tv_sec) usleep(RECONNECT_PAUSE_US);
    last = now;
    return real(fd, address, length);
}
