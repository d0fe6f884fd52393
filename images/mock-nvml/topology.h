/* Who is linked to whom. Pairs are symmetric. */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include "config.h"

void topology_clear(struct config *c);

/* Takes the keys pair, nvlink and default_pair, ignores all others. NULL, or the words that follow the key. */
const char *topology_set(struct config *c, const char *key, const char *value);

/* Gives every pair that was not named the level of default_pair. */
void topology_fill(struct config *c);

/* The GPU at the other end of NVLink `link` of GPU `from`, or -1: links are numbered by ascending neighbour. */
int topology_link_end(const struct config *c, unsigned int from, unsigned int link);

#endif
