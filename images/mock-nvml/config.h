/* gpu.conf: what the pretended GPUs of one node are. README.md describes every key. */
#ifndef CONFIG_H
#define CONFIG_H

#include "nvml_types.h"

#define MAX_GPUS 16
#define MAX_LINKS 18 /* NVLinks of one GPU; NVML asks for no more */
#define PATH_SIZE 4096

struct gpu {
    unsigned int index;
    char uuid[64];
};

struct config {
    char model[96];
    char driver[80];
    char node[254];
    unsigned int count;
    unsigned long long memory_mib;
    unsigned int cuda;          /* 12.4 is 12040 */
    unsigned int compute_major, compute_minor;
    unsigned int pci_device_id; /* device id in the upper half, vendor 10de in the lower */
    topology_level far_level;   /* level of the pairs that are not named */
    topology_level level[MAX_GPUS][MAX_GPUS];
    unsigned int links[MAX_GPUS][MAX_GPUS]; /* NVLinks between two GPUs */
    struct gpu gpu[MAX_GPUS];
    char conf_path[PATH_SIZE];
    char fault_path[PATH_SIZE]; /* the file `fault` in the folder of gpu.conf */
};

/* Finds and reads gpu.conf. On failure one line stands on stderr and the result says of which kind it is:
 * NVML_DRIVER_NOT_LOADED (no file) or NVML_INVALID_ARGUMENT (a file with a mistake). */
nvml_result config_load(struct config *out);

/* Writes one line "mock-nvml: ..." to stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
