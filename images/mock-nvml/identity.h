/* Stable identities: the same node name and index always give the same GPU, another node another one. */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stddef.h>

#include "nvml_types.h"

unsigned long long identity_hash(const char *text);

/* "GPU-xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx". */
void identity_uuid(const char *node, unsigned int index, char *out, size_t size);

/* A PCI address in a domain that machines do not have, so that nobody finds a real device of the host under it. */
void identity_pci(unsigned int index, unsigned int device_id, nvml_pci *out);

#endif
