/* The only file with _GNU_SOURCE: with it, newer C libraries bind scanf and strtoull to symbols that older ones, such as
 * the one in the device plugin's image, do not have. */
#define _GNU_SOURCE
#include "locate.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY_FOLDER "/usr/lib/x86_64-linux-gnu"
#define PATH_SIZE 4096

/* <root>/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 belongs to <root>/etc/gpu.conf; elsewhere the file lies beside. */
int locate_conf(char *out, size_t size) {
    const char *named = getenv("TRAINYARD_MOCK_GPU_CONF");
    if (named && *named) return snprintf(out, size, "%s", named) < (int)size ? 0 : -1;

    Dl_info info;
    char library[PATH_SIZE];
    if (!dladdr((void *)(size_t)locate_conf, &info) || !realpath(info.dli_fname, library)) return -1;
    *strrchr(library, '/') = '\0';
    size_t length = strlen(library), tail = strlen(LIBRARY_FOLDER);
    if (length >= tail && !strcmp(library + length - tail, LIBRARY_FOLDER)) {
        library[length - tail] = '\0';
        return snprintf(out, size, "%s/etc/gpu.conf", library) < (int)size ? 0 : -1;
    }
    return snprintf(out, size, "%s/gpu.conf", library) < (int)size ? 0 : -1;
}

int locate_fault(const char *conf, char *out, size_t size) {
    const char *slash = strrchr(conf, '/');
    int folder = slash ? (int)(slash - conf + 1) : 0;
    return snprintf(out, size, "%.*sfault", folder, conf) < (int)size ? 0 : -1;
}
