#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "identity.h"
#include "locate.h"
#include "text.h"
#include "topology.h"

void complain(const char *format, ...) {
    char line[PATH_SIZE + 512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "mock-nvml: %s\n", line);
}

static const char *copy_text(char *out, size_t size, const char *value) {
    if (!*value) return "must not be empty";
    if (snprintf(out, size, "%s", value) >= (int)size) return "is too long";
    return NULL;
}

static const char *set_version(const char *value, unsigned int *major, unsigned int *minor) {
    char rest;
    int found = sscanf(value, "%3u.%3u%c", major, minor, &rest);
    if (found != 2 || *major > 999 || *minor > 999) return "must be two numbers with a dot, such as 8.0";
    return NULL;
}

/* Sets one key. NULL, or the words that follow "<key> " in the complaint. */
static const char *set_key(struct config *c, const char *key, const char *value) {
    unsigned long long number;
    if (!strcmp(key, "model")) return copy_text(c->model, sizeof c->model, value);
    if (!strcmp(key, "driver")) return copy_text(c->driver, sizeof c->driver, value);
    if (!strcmp(key, "node")) return copy_text(c->node, sizeof c->node, value);
    if (!strcmp(key, "count")) {
        if (!text_number(value, &number) || number < 1 || number > MAX_GPUS) return "must be 1 to 16";
        c->count = (unsigned int)number;
        return NULL;
    }
    if (!strcmp(key, "memory_mib")) {
        if (!text_number(value, &number) || number < 1 || number > (1ULL << 24)) return "must be 1 to 16777216 MiB";
        c->memory_mib = number;
        return NULL;
    }
    if (!strcmp(key, "pci_device_id")) {
        if (!text_number(value, &number) || number > 0xFFFFFFFFULL) return "must be a 32-bit number such as 0x20b010de";
        c->pci_device_id = (unsigned int)number;
        return NULL;
    }
    if (!strcmp(key, "compute")) return set_version(value, &c->compute_major, &c->compute_minor);
    if (!strcmp(key, "cuda")) {
        unsigned int major, minor;
        const char *why = set_version(value, &major, &minor);
        if (!why) c->cuda = major * 1000 + minor * 10;
        return why;
    }
    /* The pairs come after everything else: count and default_pair may stand below them. */
    if (!strcmp(key, "pair") || !strcmp(key, "nvlink") || !strcmp(key, "default_pair")) return NULL;
    return "is not a known key";
}

/* Reads the file once; pairs says whether this is the round for the topology keys. */
static nvml_result read_round(struct config *c, FILE *file, int pairs) {
    char line[512];
    rewind(file);
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        char *key = text_trim(line);
        if (!*key || *key == '#') continue;
        char *equals = strchr(key, '=');
        if (!equals) {
            complain("%s:%d: expected `key = value`, found `%s`", c->conf_path, number, key);
            return NVML_INVALID_ARGUMENT;
        }
        *equals = '\0';
        const char *value = text_trim(equals + 1);
        key = text_trim(key);
        const char *why = pairs ? topology_set(c, key, value) : set_key(c, key, value);
        if (why) {
            complain("%s:%d: %s %s, found `%s`", c->conf_path, number, key, why, value);
            return NVML_INVALID_ARGUMENT;
        }
    }
    return NVML_SUCCESS;
}

nvml_result config_load(struct config *out) {
    memset(out, 0, sizeof *out);
    if (locate_conf(out->conf_path, sizeof out->conf_path) ||
        locate_fault(out->conf_path, out->fault_path, sizeof out->fault_path)) {
        complain("gpu.conf cannot be located; name it in TRAINYARD_MOCK_GPU_CONF");
        return NVML_DRIVER_NOT_LOADED;
    }
    FILE *file = fopen(out->conf_path, "re");
    if (!file) {
        complain("%s cannot be read: %s", out->conf_path, strerror(errno));
        return NVML_DRIVER_NOT_LOADED;
    }

    strcpy(out->driver, "550.163.01");
    out->cuda = 12040;
    out->compute_major = 8;
    out->pci_device_id = 0x20B010DE;
    out->far_level = LEVEL_NODE;
    nvml_result result = read_round(out, file, 0);
    if (result == NVML_SUCCESS) {
        const char *missing = !*out->model ? "model" : !out->count ? "count" : !out->memory_mib ? "memory_mib"
                              : !*out->node ? "node" : NULL;
        if (missing) {
            complain("%s: the key %s is missing", out->conf_path, missing);
            result = NVML_INVALID_ARGUMENT;
        }
    }
    if (result == NVML_SUCCESS) {
        topology_clear(out);
        result = read_round(out, file, 1);
    }
    fclose(file);
    if (result == NVML_SUCCESS) {
        topology_fill(out);
        for (unsigned int i = 0; i < out->count; i++) {
            out->gpu[i].index = i;
            identity_uuid(out->node, i, out->gpu[i].uuid, sizeof out->gpu[i].uuid);
        }
    }
    return result;
}
