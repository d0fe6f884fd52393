/* Events: a listener registers for GPUs and waits; the fault file tells what happens. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "faults.h"
#include "state.h"

#define NS_PER_MS 1000000LL
#define POLL_NS (100 * NS_PER_MS)

struct event_set {
    pthread_mutex_t lock;
    unsigned int gpus; /* bit set of the GPUs whose Xid errors it listens to */
    struct delivered delivered;
};

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

EXPORT nvml_result nvmlEventSetCreate(nvml_event_set *out) {
    if (!state_config()) return NVML_UNINITIALIZED;
    REQUIRE(out);
    nvml_event_set set = calloc(1, sizeof *set);
    if (!set) return NVML_MEMORY;
    pthread_mutex_init(&set->lock, NULL);
    *out = set;
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlEventSetFree(nvml_event_set set) {
    REQUIRE(set);
    pthread_mutex_destroy(&set->lock);
    free(set);
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceGetSupportedEventTypes(nvml_device device, unsigned long long *out) {
    TRY(state_check_alive(device));
    REQUIRE(out);
    *out = EVENTS_SUPPORTED;
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlDeviceRegisterEvents(nvml_device device, unsigned long long types, nvml_event_set set) {
    TRY(state_check_alive(device));
    REQUIRE(set && !(types & ~EVENTS_SUPPORTED));
    pthread_mutex_lock(&set->lock);
    if (types & EVENT_XID_CRITICAL) set->gpus |= 1U << device->index;
    pthread_mutex_unlock(&set->lock);
    return NVML_SUCCESS;
}

static int take(const struct config *c, nvml_event_set set, nvml_event *out) {
    unsigned int gpu;
    unsigned long long code;
    pthread_mutex_lock(&set->lock);
    int found = faults_next_xid(c, &set->delivered, set->gpus, &gpu, &code);
    pthread_mutex_unlock(&set->lock);
    if (!found) return 0;
    *out = (nvml_event){(nvml_device)&c->gpu[gpu], EVENT_XID_CRITICAL, code, NO_INSTANCE, NO_INSTANCE};
    return 1;
}

EXPORT nvml_result nvmlEventSetWait_v2(nvml_event_set set, nvml_event *out, unsigned int timeout_ms) {
    REQUIRE(set && out);
    for (long long end = now_ns() + timeout_ms * NS_PER_MS;;) {
        const struct config *c = state_config();
        if (!c) return NVML_UNINITIALIZED;
        if (take(c, set, out)) return NVML_SUCCESS;
        long long left = end - now_ns();
        if (left <= 0) return NVML_TIMEOUT;
        nanosleep(&(struct timespec){.tv_nsec = left < POLL_NS ? left : POLL_NS}, NULL);
    }
}

EXPORT nvml_result nvmlEventSetWait(nvml_event_set set, nvml_event *out, unsigned int timeout_ms) {
    return nvmlEventSetWait_v2(set, out, timeout_ms);
}
