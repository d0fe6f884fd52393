/* Questions about one GPU, and about two. Name, UUID, index and minor number of a lost GPU are still answered, so that
 * a caller that holds its handle can say which one it was; everything else says that the GPU is lost. */
#include <stdio.h>
#include <string.h>

#include "faults.h"
#include "identity.h"
#include "state.h"

#define MEMORY_V2_VERSION (sizeof(nvml_memory_v2) | 2U << 24)
#define ADDRESSING_V1_VERSION (sizeof(nvml_addressing_mode) | 1U << 24)
#define ADDRESSING_NONE 0
#define MIB (1024ULL * 1024)

EXPORT nvml_result nvmlDeviceGetCount_v2(unsigned int *out) {
    const struct config *c = state_config();
    if (!c) return NVML_UNINITIALIZED;
    REQUIRE(out);
    *out = c->count;
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml_device *out) {
    const struct config *c = state_config();
    if (!c) return NVML_UNINITIALIZED;
    REQUIRE(out && index < c->count);
    nvml_device device = (nvml_device)&c->gpu[index];
    TRY(state_check_alive(device));
    *out = device;
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *out) {
    const struct config *c = state_config();
    if (!c) return NVML_UNINITIALIZED;
    REQUIRE(uuid && out);
    for (unsigned int i = 0; i < c->count; i++)
        if (!strcmp(uuid, c->gpu[i].uuid)) return nvmlDeviceGetHandleByIndex_v2(i, out);
    return NVML_NOT_FOUND;
}

EXPORT nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvml_device *out) {
    const struct config *c = state_config();
    if (!c) return NVML_UNINITIALIZED;
    REQUIRE(bus_id && out);
    unsigned int domain, bus, device;
    if (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &device) != 3) return NVML_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < c->count; i++) {
        nvml_pci pci;
        identity_pci(i, c->pci_device_id, &pci);
        if (pci.domain == domain && pci.bus == bus && device == 0) return nvmlDeviceGetHandleByIndex_v2(i, out);
    }
    return NVML_NOT_FOUND;
}

EXPORT nvml_result nvmlDeviceGetName(nvml_device device, char *out, unsigned int size) {
    TRY(state_check(device));
    return state_answer(out, size, state_config()->model);
}

EXPORT nvml_result nvmlDeviceGetUUID(nvml_device device, char *out, unsigned int size) {
    TRY(state_check(device));
    return state_answer(out, size, device->uuid);
}

EXPORT nvml_result nvmlDeviceGetIndex(nvml_device device, unsigned int *out) {
    TRY(state_check(device));
    REQUIRE(out);
    *out = device->index;
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetMinorNumber(nvml_device device, unsigned int *out) {
    return nvmlDeviceGetIndex(device, out); /* GPU n is /dev/nvidia<n> */
}

EXPORT nvml_result nvmlDeviceGetPciInfo_v3(nvml_device device, nvml_pci *out) {
    TRY(state_check_alive(device));
    REQUIRE(out);
    identity_pci(device->index, state_config()->pci_device_id, out);
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetMemoryInfo(nvml_device device, nvml_memory *out) {
    TRY(state_check_alive(device));
    REQUIRE(out);
    unsigned long long bytes = state_config()->memory_mib * MIB;
    *out = (nvml_memory){.total = bytes, .free = bytes, .used = 0};
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetMemoryInfo_v2(nvml_device device, nvml_memory_v2 *out) {
    TRY(state_check_alive(device));
    REQUIRE(out);
    if (out->version != MEMORY_V2_VERSION) return NVML_VERSION_MISMATCH;
    out->total = out->free = state_config()->memory_mib * MIB;
    out->reserved = out->used = 0;
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor) {
    TRY(state_check_alive(device));
    REQUIRE(major && minor);
    *major = (int)state_config()->compute_major;
    *minor = (int)state_config()->compute_minor;
    return NVML_SUCCESS;
}

/* Their memory is behind PCIe: the processor's page tables do not reach it. */
EXPORT nvml_result nvmlDeviceGetAddressingMode(nvml_device device, nvml_addressing_mode *out) {
    TRY(state_check_alive(device));
    REQUIRE(out);
    if (out->version != ADDRESSING_V1_VERSION) return NVML_VERSION_MISMATCH;
    out->mode = ADDRESSING_NONE;
    return NVML_SUCCESS;
}

/* MIG: these GPUs cannot be cut into slices. */
EXPORT nvml_result nvmlDeviceGetMigMode(nvml_device device, unsigned int *current, unsigned int *pending) {
    TRY(state_check_alive(device));
    REQUIRE(current && pending);
    return NVML_NOT_SUPPORTED;
}

EXPORT nvml_result nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned int *out) {
    TRY(state_check_alive(device));
    REQUIRE(out);
    *out = 0;
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceIsMigDeviceHandle(nvml_device device, unsigned int *out) {
    TRY(state_check(device));
    REQUIRE(out);
    *out = 0;
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned int index, nvml_device *out) {
    (void)index, (void)out;
    TRY(state_check_alive(device));
    return NVML_NOT_SUPPORTED;
}

EXPORT nvml_result nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device mig, nvml_device *out) {
    (void)mig, (void)out;
    return NVML_NOT_SUPPORTED;
}

/* The names that callers older than the numbered versions use. */
EXPORT nvml_result nvmlDeviceGetCount(unsigned int *out) { return nvmlDeviceGetCount_v2(out); }
EXPORT nvml_result nvmlDeviceGetHandleByIndex(unsigned int index, nvml_device *out) {
    return nvmlDeviceGetHandleByIndex_v2(index, out);
}
EXPORT nvml_result nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvml_device *out) {
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, out);
}
