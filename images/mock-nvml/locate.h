/* Where gpu.conf and the fault file lie. */
#ifndef LOCATE_H
#define LOCATE_H

#include <stddef.h>

/* The path of gpu.conf: named by the environment, else found from where this library lies. 0, or -1 if too long. */
int locate_conf(char *out, size_t size);

/* The path of the fault file, in the folder of gpu.conf. 0, or -1 if too long. */
int locate_fault(const char *conf, char *out, size_t size);

#endif
