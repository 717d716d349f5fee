/*
 * record_fields: reads the fields of one JSON record. The first bad field sets the error and its
 * text; later reads then do nothing. For records of this folder only.
 */
#ifndef RUNTIME_CLUSTER_RECORD_FIELDS_H
#define RUNTIME_CLUSTER_RECORD_FIELDS_H

#include <jansson.h>

#include "runtime/base/buf.h"
#include "runtime/cluster/record_shape.h"

struct record_fields {
    const char *record; /* Its name, for error texts. */
    json_t *object;
    err e;
    struct record_error why;
};

/* Parses; the object is NULL and `e` set when this is no JSON object. */
struct record_fields record_fields_open(const char *record, struct slice json);
/* Frees; copies the error text to ret_why (may be NULL); returns the error. */
NODISCARD err record_fields_close(struct record_fields *fields, struct record_error *ret_why);

/* UTF-8 text of at most size - 1 bytes. */
void record_text(struct record_fields *fields, const char *name, char *ret_text, size_t size);
/* The same; empty when there is no such field. */
void record_text_or_empty(struct record_fields *fields, const char *name, char *ret_text,
                          size_t size);
/* A decimal string. */
uint64_t record_u64(struct record_fields *fields, const char *name);
/* The same; 0 when there is no such field. */
uint64_t record_u64_or_zero(struct record_fields *fields, const char *name);
/* The same; also 0, and no error, when it is no number: the rest of the record counts. */
uint64_t record_u64_if_any(struct record_fields *fields, const char *name);
int64_t record_i64(struct record_fields *fields, const char *name);
/* A JSON integer. */
uint32_t record_u32(struct record_fields *fields, const char *name);
/* An array of decimal strings; returns how many. */
uint32_t record_u64_list(struct record_fields *fields, const char *name, uint64_t *ret_numbers,
                         uint32_t count_max);
/* Hexadecimal text of at most `size` bytes; what it leaves out, or all when there is no such field,
 * is 0. */
void record_bytes_or_zero(struct record_fields *fields, const char *name, uint8_t *ret_bytes,
                          size_t size);
/* One of `words`; its index. */
uint32_t record_word(struct record_fields *fields, const char *name, const char *const *words,
                     uint32_t word_count);

/* A new text of JSON: integers over 2^53 are no numbers in many readers. */
json_t *record_decimal(uint64_t number);

#endif
