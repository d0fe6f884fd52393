/* The fault file: what is broken right now. README.md has the protocol; this library never writes the file. */
#ifndef FAULTS_H
#define FAULTS_H

#include "config.h"

#define MAX_FAULT_LINES 64

/* The lines of the fault file that one listener has been given, as long as they stay in the file. */
struct delivered {
    unsigned long long line[MAX_FAULT_LINES];
    unsigned int count;
};

/* 1 while a line `lost <gpu>` stands in the file. */
int faults_is_lost(const struct config *c, unsigned int gpu);

/* Looks for an `xid` line of a GPU in the bit set `gpus` that the listener has not had yet.
 * 1, its GPU and its code, and from now on it counts as delivered; else 0. */
int faults_next_xid(const struct config *c, struct delivered *had, unsigned int gpus, unsigned int *gpu,
                    unsigned long long *code);

#endif
