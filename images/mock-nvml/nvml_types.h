/* The part of the NVML binary interface that this library answers: result codes, enumerations and struct layouts.
 * Values and layouts must equal the driver's, or callers compiled against the real header read rubbish. */
#ifndef NVML_TYPES_H
#define NVML_TYPES_H

#include <stddef.h>

typedef enum {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
    NVML_MEMORY = 20,
    NVML_VERSION_MISMATCH = 25,
} nvml_result;

/* How far apart two GPUs are, nearest first. */
typedef enum {
    LEVEL_INTERNAL = 0,
    LEVEL_SINGLE = 10,     /* one PCIe switch */
    LEVEL_MULTIPLE = 20,   /* several PCIe switches, no host bridge */
    LEVEL_HOSTBRIDGE = 30, /* one host bridge */
    LEVEL_NODE = 40,       /* one NUMA node */
    LEVEL_SYSTEM = 50,     /* across NUMA nodes */
} topology_level;

#define EVENT_XID_CRITICAL 0x8ULL
#define EVENTS_SUPPORTED 0xFULL /* both ECC kinds, performance state, Xid */
#define NO_INSTANCE 0xFFFFFFFFU /* the event is about the whole GPU, not a MIG slice */

struct gpu;
struct event_set;
typedef struct gpu *nvml_device;
typedef struct event_set *nvml_event_set;

typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvml_pci;

typedef struct {
    unsigned long long total, free, used; /* bytes */
} nvml_memory;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used; /* bytes */
} nvml_memory_v2;

typedef struct {
    nvml_device device;
    unsigned long long eventType, eventData;
    unsigned int gpuInstanceId, computeInstanceId;
} nvml_event;

typedef struct {
    unsigned int version;
    unsigned int mode;
} nvml_addressing_mode;

_Static_assert(sizeof(nvml_addressing_mode) == 8, "addressing mode v1 is 8 bytes");
_Static_assert(sizeof(nvml_pci) == 68, "pci info v3 is 68 bytes");
_Static_assert(sizeof(nvml_memory) == 24, "memory info is 24 bytes");
_Static_assert(sizeof(nvml_memory_v2) == 40, "memory info v2 is 40 bytes");
_Static_assert(sizeof(nvml_event) == 32, "event data v2 is 32 bytes");

#endif
