/* Start, end, and questions about the driver as a whole. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "faults.h"
#include "state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;
static struct config config;

const struct config *state_config(void) {
    pthread_mutex_lock(&lock);
    const struct config *answer = users ? &config : NULL;
    pthread_mutex_unlock(&lock);
    return answer;
}

nvml_result state_check(nvml_device device) {
    const struct config *c = state_config();
    if (!c) return NVML_UNINITIALIZED;
    for (unsigned int i = 0; i < c->count; i++)
        if (device == &c->gpu[i]) return NVML_SUCCESS;
    return NVML_INVALID_ARGUMENT;
}

nvml_result state_check_alive(nvml_device device) {
    TRY(state_check(device));
    return faults_is_lost(&config, device->index) ? NVML_GPU_IS_LOST : NVML_SUCCESS;
}

nvml_result state_answer(char *out, unsigned int size, const char *text) {
    REQUIRE(out);
    if (strlen(text) >= size) return NVML_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlInit_v2(void) {
    pthread_mutex_lock(&lock);
    nvml_result result = users ? NVML_SUCCESS : config_load(&config);
    if (result == NVML_SUCCESS) users++;
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT nvml_result nvmlInit(void) { return nvmlInit_v2(); }

EXPORT nvml_result nvmlInitWithFlags(unsigned int flags) {
    (void)flags; /* they tune what counts as a failure where there are no GPUs */
    return nvmlInit_v2();
}

EXPORT nvml_result nvmlShutdown(void) {
    pthread_mutex_lock(&lock);
    nvml_result result = users ? NVML_SUCCESS : NVML_UNINITIALIZED;
    if (users) users--;
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT const char *nvmlErrorString(nvml_result result) {
    switch (result) {
    case NVML_SUCCESS: return "The operation was successful";
    case NVML_UNINITIALIZED: return "The mock driver was not initialised";
    case NVML_INVALID_ARGUMENT: return "An argument, or a line of the mock driver's gpu.conf, is invalid";
    case NVML_NOT_SUPPORTED: return "Not supported by the mock driver";
    case NVML_NOT_FOUND: return "Not found";
    case NVML_INSUFFICIENT_SIZE: return "The buffer is too small";
    case NVML_DRIVER_NOT_LOADED: return "The mock driver has no gpu.conf that it can read";
    case NVML_TIMEOUT: return "Timeout";
    case NVML_GPU_IS_LOST: return "The GPU is lost";
    case NVML_MEMORY: return "Out of memory";
    case NVML_VERSION_MISMATCH: return "The struct version does not match";
    }
    return "Unknown error";
}

EXPORT nvml_result nvmlSystemGetDriverVersion(char *out, unsigned int size) {
    const struct config *c = state_config();
    return c ? state_answer(out, size, c->driver) : NVML_UNINITIALIZED;
}

EXPORT nvml_result nvmlSystemGetNVMLVersion(char *out, unsigned int size) {
    const struct config *c = state_config();
    if (!c) return NVML_UNINITIALIZED;
    char version[96];
    snprintf(version, sizeof version, "%u.%.79s", c->cuda / 1000, c->driver);
    return state_answer(out, size, version);
}

EXPORT nvml_result nvmlSystemGetCudaDriverVersion(int *out) {
    const struct config *c = state_config();
    if (!c) return NVML_UNINITIALIZED;
    REQUIRE(out);
    *out = (int)c->cuda;
    return NVML_SUCCESS;
}

EXPORT nvml_result nvmlSystemGetCudaDriverVersion_v2(int *out) { return nvmlSystemGetCudaDriverVersion(out); }
