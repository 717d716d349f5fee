/*
 * field_key: how the path of a field names an entry of a map, `["gold"]`. Callers may send a map in
 * any order, and it is sorted for the log, so its entries have keys and no places. An entry with an
 * empty key has a place all the same. Elements of other lists always have places. Pure.
 */
#ifndef RUNTIME_BASE_FIELD_KEY_H
#define RUNTIME_BASE_FIELD_KEY_H

#include "runtime/base/buf.h"

/* Of the longest name: a key of 64 bytes, each behind a backslash. */
#define FIELD_KEY_BYTES 136u

/* `["gold"]`, or `[3]` where the key is empty. Of a long key, or of one that looks like a secret,
 * the beginning (nearest_show). Returns ret_text. */
const char *field_key_print(struct slice key, size_t place, char ret_text[FIELD_KEY_BYTES]);

#endif
