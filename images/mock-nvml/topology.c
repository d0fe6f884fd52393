#include "topology.h"

#include <stdio.h>
#include <string.h>

#define UNNAMED ((topology_level)-1)

static const struct {
    const char *name;
    topology_level level;
} LEVELS[] = {
    {"internal", LEVEL_INTERNAL}, {"single", LEVEL_SINGLE}, {"multiple", LEVEL_MULTIPLE},
    {"hostbridge", LEVEL_HOSTBRIDGE}, {"node", LEVEL_NODE}, {"system", LEVEL_SYSTEM},
};

static const char *set_level(const char *name, topology_level *out) {
    for (size_t i = 0; i < sizeof LEVELS / sizeof *LEVELS; i++) {
        if (!strcmp(name, LEVELS[i].name)) {
            *out = LEVELS[i].level;
            return NULL;
        }
    }
    return "must name one of internal, single, multiple, hostbridge, node, system";
}

static const char *check_pair(const struct config *c, unsigned int a, unsigned int b) {
    if (a == b) return "must name two different GPUs";
    if (a >= c->count || b >= c->count) return "names a GPU that count does not have";
    return NULL;
}

static unsigned int links_of(const struct config *c, unsigned int gpu) {
    unsigned int sum = 0;
    for (unsigned int other = 0; other < c->count; other++) sum += c->links[gpu][other];
    return sum;
}

static const char *set_pair(struct config *c, const char *value) {
    unsigned int a, b;
    char name[16], rest;
    if (sscanf(value, "%3u-%3u %15s %c", &a, &b, name, &rest) != 3) return "must look like `0-1 single`";
    const char *why = check_pair(c, a, b);
    if (why) return why;
    if (c->level[a][b] != UNNAMED) return "names a pair for the second time";
    topology_level level = LEVEL_NODE;
    why = set_level(name, &level);
    if (!why) c->level[a][b] = c->level[b][a] = level;
    return why;
}

static const char *set_nvlink(struct config *c, const char *value) {
    unsigned int a, b, links;
    char rest;
    if (sscanf(value, "%3u-%3u:%3u %c", &a, &b, &links, &rest) != 3 || !links) return "must look like `0-1:4`";
    const char *why = check_pair(c, a, b);
    if (why) return why;
    if (c->links[a][b]) return "names a pair for the second time";
    c->links[a][b] = c->links[b][a] = links;
    if (links > MAX_LINKS || links_of(c, a) > MAX_LINKS || links_of(c, b) > MAX_LINKS) return "gives one GPU more than 18 links";
    return NULL;
}

void topology_clear(struct config *c) {
    for (unsigned int a = 0; a < MAX_GPUS; a++)
        for (unsigned int b = 0; b < MAX_GPUS; b++) c->level[a][b] = UNNAMED;
}

const char *topology_set(struct config *c, const char *key, const char *value) {
    if (!strcmp(key, "pair")) return set_pair(c, value);
    if (!strcmp(key, "nvlink")) return set_nvlink(c, value);
    if (!strcmp(key, "default_pair")) return set_level(value, &c->far_level);
    return NULL;
}

void topology_fill(struct config *c) {
    for (unsigned int a = 0; a < MAX_GPUS; a++)
        for (unsigned int b = 0; b < MAX_GPUS; b++)
            if (c->level[a][b] == UNNAMED) c->level[a][b] = a == b ? LEVEL_INTERNAL : c->far_level;
}

int topology_link_end(const struct config *c, unsigned int from, unsigned int link) {
    for (unsigned int other = 0; other < c->count; other++) {
        if (link < c->links[from][other]) return (int)other;
        link -= c->links[from][other];
    }
    return -1;
}
