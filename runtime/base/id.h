/*
 * id: 16-byte identifiers in text. Parsing and printing only; random bits and time come from the
 * caller, so the cores stay pure. UUIDv7: RFC 9562 section 5.7.
 */
#ifndef RUNTIME_BASE_ID_H
#define RUNTIME_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define UUID_TEXT_SIZE 37 /* With the NUL. */

struct uuid {
    uint8_t bytes[16];
};

/* Accepts only the canonical 36-character form, upper or lower case. */
NODISCARD err uuid_parse(struct slice text, struct uuid *ret_uuid);
void uuid_print(const struct uuid *uuid, char ret_text[UUID_TEXT_SIZE]);
bool uuid_is_v7(const struct uuid *uuid);
/* The milliseconds since 1970 that a version 7 UUID begins with. */
uint64_t uuid_v7_ms(const struct uuid *uuid);
/* A version 7 UUID from a time and 80 random bits, of which 74 are used. */
struct uuid uuid_v7_make(uint64_t unix_ms, const uint8_t random[10]);

#endif
