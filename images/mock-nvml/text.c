#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *text_trim(char *text) {
    while (isspace((unsigned char)*text)) text++;
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1])) text[--length] = '\0';
    return text;
}

int text_number(const char *text, unsigned long long *out) {
    if (!isdigit((unsigned char)*text)) return 0; /* strtoull would take a minus sign */
    char *end;
    errno = 0;
    *out = strtoull(text, &end, text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10);
    return !errno && !*end;
}
