#include "faults.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "identity.h"
#include "text.h"

enum kind { KIND_NONE, KIND_XID, KIND_LOST };

struct fault {
    enum kind kind;
    unsigned int gpu;
    unsigned long long code;
    unsigned long long line; /* identity: the hash of its text and of how many equal lines stand above it */
};

/* One complaint per wrong line is enough: the file is read ten times a second. */
static void complain_once(const struct config *c, const char *line, unsigned long long identity) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long long last;
    pthread_mutex_lock(&lock);
    int new_line = last != identity;
    last = identity;
    pthread_mutex_unlock(&lock);
    if (new_line) complain("%s: ignored line `%s`; expected `xid <gpu> <code>` or `lost <gpu>`", c->fault_path, line);
}

static enum kind parse(const struct config *c, const char *line, struct fault *out) {
    char word[8], gpu[8] = "", code[24] = "";
    unsigned long long index;
    int words = sscanf(line, "%7s %7s %23s", word, gpu, code);
    if (words < 2 || !text_number(gpu, &index) || index >= c->count) return KIND_NONE;
    out->gpu = (unsigned int)index;
    if (!strcmp(word, "lost")) return KIND_LOST;
    if (!strcmp(word, "xid") && words == 3 && text_number(code, &out->code)) return KIND_XID;
    return KIND_NONE;
}

/* The rest of a line that is longer than the buffer; 0 if the file ends before the line does. */
static int skip_line(FILE *file) {
    int c;
    do c = getc(file);
    while (c != '\n' && c != EOF);
    return c == '\n';
}

/* Reads the faults of the file into out. A last line without its newline is still being written and waits. */
static unsigned int read_faults(const struct config *c, struct fault out[MAX_FAULT_LINES]) {
    FILE *file = fopen(c->fault_path, "re");
    if (!file) return 0; /* no file is the same as no fault */
    char buffer[256];
    unsigned long long text[MAX_FAULT_LINES];
    unsigned int count = 0;
    while (count < MAX_FAULT_LINES && fgets(buffer, sizeof buffer, file)) {
        if (!strchr(buffer, '\n') && !skip_line(file)) break;
        const char *line = text_trim(buffer);
        if (!*line || *line == '#') continue;
        struct fault fault = {.code = 0};
        fault.kind = parse(c, line, &fault);
        text[count] = identity_hash(line);
        if (fault.kind == KIND_NONE) {
            complain_once(c, line, text[count]);
            continue;
        }
        unsigned long long above = 0;
        for (unsigned int i = 0; i < count; i++) above += text[i] == text[count];
        fault.line = text[count] + above;
        out[count++] = fault;
    }
    fclose(file);
    return count;
}

int faults_is_lost(const struct config *c, unsigned int gpu) {
    struct fault fault[MAX_FAULT_LINES];
    unsigned int count = read_faults(c, fault);
    for (unsigned int i = 0; i < count; i++)
        if (fault[i].kind == KIND_LOST && fault[i].gpu == gpu) return 1;
    return 0;
}

static int was_delivered(const struct delivered *had, unsigned long long line) {
    for (unsigned int i = 0; i < had->count; i++)
        if (had->line[i] == line) return 1;
    return 0;
}

int faults_next_xid(const struct config *c, struct delivered *had, unsigned int gpus, unsigned int *gpu,
                    unsigned long long *code) {
    struct fault fault[MAX_FAULT_LINES];
    unsigned int count = read_faults(c, fault);
    struct delivered still = {.count = 0};
    const struct fault *next = NULL;
    for (unsigned int i = 0; i < count; i++) {
        if (fault[i].kind != KIND_XID) continue;
        int seen = was_delivered(had, fault[i].line);
        if (!seen && !next && (gpus >> fault[i].gpu & 1)) {
            next = &fault[i];
            seen = 1;
        }
        if (seen) still.line[still.count++] = fault[i].line;
    }
    *had = still; /* what left the file is forgotten: the same line written again is a new event */
    if (!next) return 0;
    *gpu = next->gpu;
    *code = next->code;
    return 1;
}
