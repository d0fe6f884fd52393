/* What the API files share: the configuration between nvmlInit and nvmlShutdown. */
#ifndef STATE_H
#define STATE_H

#include "config.h"

#define EXPORT __attribute__((visibility("default")))

/* The configuration, or NULL before nvmlInit. */
const struct config *state_config(void);

/* The library is ready and device is one of its handles. */
nvml_result state_check(nvml_device device);

/* The same, and the GPU has not fallen off the bus. */
nvml_result state_check_alive(nvml_device device);

/* Copies a text into a caller's buffer or says that it is too small. */
nvml_result state_answer(char *out, unsigned int size, const char *text);

#define REQUIRE(condition) \
    do { if (!(condition)) return NVML_INVALID_ARGUMENT; } while (0)
#define TRY(call) \
    do { nvml_result try_result = (call); if (try_result != NVML_SUCCESS) return try_result; } while (0)

#endif
