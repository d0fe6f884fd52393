/* Small helpers for the two text files. */
#ifndef TEXT_H
#define TEXT_H

/* Cuts blanks at both ends, in place. */
char *text_trim(char *text);

/* 1 and the number if the whole text is one (decimal or 0x...), else 0. */
int text_number(const char *text, unsigned long long *out);

#endif
