/* answer: reads the JSON of answers: fields, where what is left out is 0 or empty, and errors. */
#ifndef CLIENT_CLI_CONSOLE_ANSWER_H
#define CLIENT_CLI_CONSOLE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "runtime/base/buf.h"

/* A number of the JSON form of protobuf: a number, or a string of one; 0 if it is absent. */
uint64_t answer_number(const json_t *object, const char *key);
/* The same of one that may be below zero. */
int64_t answer_signed(const json_t *object, const char *key);
/* A text; empty if it is absent. */
const char *answer_text(const json_t *object, const char *key);

/* What the code of Connect's error JSON is: "NOT_FOUND", cut to the size; empty: it has none. */
void error_code(struct slice body, char *ret_code, size_t size);
/* Appends Connect's error JSON as one line for people: "SESSION_LOCKED: message", and what else it
 * has. What is not printable becomes '?'. False: it is none, nothing was appended. */
bool error_format(struct slice body, struct buf *out);

#endif
