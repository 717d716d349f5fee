/*
 * hex: bytes as hexadecimal text in lower case, two digits a byte, as item UIDs, hashes, keys and
 * trace ids are written.
 */
#ifndef RUNTIME_BASE_HEX_H
#define RUNTIME_BASE_HEX_H

#include "runtime/base/buf.h"

/* `ret_text` has room for 2 * count + 1 bytes, the NUL with them. */
void hex_print(const uint8_t *bytes, size_t count, char *ret_text);
/* The value of a digit in either case; -1: it is none. */
int hex_digit(uint8_t c);
/* ERR_INVALID, with ret_bytes as it was, unless the text is 2 * count digits, lower case. */
NODISCARD err hex_parse(struct slice text, size_t count, uint8_t *ret_bytes);

#endif
