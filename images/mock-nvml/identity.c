#include "identity.h"

#include <stdio.h>
#include <string.h>

#define PCI_DOMAIN 0x10DE
#define FIRST_BUS 7

/* FNV-1a over the bytes, then the splitmix64 finaliser, so that one changed digit changes the whole number. */
unsigned long long identity_hash(const char *text) {
    unsigned long long h = 0xCBF29CE484222325ULL;
    for (; *text; text++) {
        h ^= (unsigned char)*text;
        h *= 0x100000001B3ULL;
    }
    h ^= h >> 30;
    h *= 0xBF58476D1CE4E5B9ULL;
    h ^= h >> 27;
    h *= 0x94D049BB133111EBULL;
    return h ^ (h >> 31);
}

void identity_uuid(const char *node, unsigned int index, char *out, size_t size) {
    char seed[320];
    snprintf(seed, sizeof seed, "high/%s/%u", node, index);
    unsigned long long high = identity_hash(seed);
    snprintf(seed, sizeof seed, "low/%s/%u", node, index);
    unsigned long long low = identity_hash(seed);
    high = (high & ~0xF000ULL) | 0x4000ULL;                                  /* version 4 */
    low = (low & ~0xC000000000000000ULL) | 0x8000000000000000ULL;            /* the usual variant */
    snprintf(out, size, "GPU-%08llx-%04llx-%04llx-%04llx-%012llx", high >> 32, (high >> 16) & 0xFFFF, high & 0xFFFF,
             low >> 48, low & 0xFFFFFFFFFFFFULL);
}

void identity_pci(unsigned int index, unsigned int device_id, nvml_pci *out) {
    memset(out, 0, sizeof *out);
    out->domain = PCI_DOMAIN;
    out->bus = FIRST_BUS + index;
    out->pciDeviceId = device_id;
    snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%04X:%02X:00.0", PCI_DOMAIN, (out->bus & 0xFF));
    snprintf(out->busId, sizeof out->busId, "%08X:%02X:00.0", PCI_DOMAIN, (out->bus & 0xFF));
}
