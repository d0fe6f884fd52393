/* How GPUs reach each other: PCIe distance and NVLinks. */
#include "identity.h"
#include "state.h"
#include "topology.h"

enum { P2P_OK = 0, P2P_NOT_SUPPORTED = 6 };
enum { P2P_READ = 0, P2P_WRITE = 1, P2P_NVLINK = 2, P2P_ATOMICS = 3, P2P_PCI = 4 };

static nvml_result check_pair(nvml_device a, nvml_device b) {
    TRY(state_check_alive(a));
    return state_check_alive(b);
}

EXPORT nvml_result nvmlDeviceGetTopologyCommonAncestor(nvml_device a, nvml_device b, topology_level *out) {
    TRY(check_pair(a, b));
    REQUIRE(out);
    *out = state_config()->level[a->index][b->index];
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetP2PStatus(nvml_device a, nvml_device b, int capability, int *out) {
    TRY(check_pair(a, b));
    REQUIRE(out && a != b && capability >= P2P_READ && capability <= P2P_PCI);
    int linked = state_config()->links[a->index][b->index] > 0;
    int reachable = linked || state_config()->level[a->index][b->index] <= LEVEL_HOSTBRIDGE;
    int needs_link = capability == P2P_NVLINK || capability == P2P_ATOMICS;
    *out = (needs_link ? linked : reachable) ? P2P_OK : P2P_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* The GPU at the other end of a link; a link that the device does not use is not supported. */
static nvml_result link_end(nvml_device device, unsigned int link, int *end) {
    TRY(state_check_alive(device));
    REQUIRE(link < MAX_LINKS);
    *end = topology_link_end(state_config(), device->index, link);
    return *end < 0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetNvLinkState(nvml_device device, unsigned int link, unsigned int *active) {
    int end;
    REQUIRE(active);
    TRY(link_end(device, link, &end));
    *active = 1;
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned int link, nvml_pci *out) {
    int end;
    REQUIRE(out);
    TRY(link_end(device, link, &end));
    identity_pci((unsigned int)end, state_config()->pci_device_id, out);
    return NVML_SUCCESS;
}
