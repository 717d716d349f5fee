/* history_line: one line of a history while it is read, for those who read its fields. */
#ifndef TESTS_CHAOS_CHECK_HISTORY_LINE_H
#define TESTS_CHAOS_CHECK_HISTORY_LINE_H

#include <jansson.h>

#include "tests/chaos/check/history.h"

/* The first thing that is wrong is kept; what is read after it is of no use. */
struct line {
    struct history *history;
    json_t *object;
    uint32_t number;
    struct history_error *error;
    err result;
};

__attribute__((format(printf, 2, 3))) void line_wrong(struct line *line, const char *format, ...);

bool line_has(const struct line *line, const char *field);
/* At least `min`, which is returned where there is none. */
int64_t line_integer(struct line *line, const char *field, int64_t min);
/* Not empty; "" is returned where there is none. */
const char *line_text(struct line *line, const char *field);
/* The number of the field's text in `names`, or NAME_NONE. */
uint32_t line_name(struct line *line, struct names *names, const char *field);
/* A call's number as a text, for names_find. */
#define LINE_KEY_BYTES 24
void line_key(int64_t number, char ret_key[LINE_KEY_BYTES]);

/* Room for one more in a list, whose address may change. */
void *line_grown(void *list, size_t *capacity, size_t count, size_t size);
#define LINE_ADD(owner, list, list_count, list_capacity)                                           \
    ((owner)->list = line_grown((owner)->list, &(owner)->list_capacity, (owner)->list_count,       \
                                sizeof *(owner)->list),                                            \
     &(owner)->list[(owner)->list_count++])

#endif
