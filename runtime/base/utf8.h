/*
 * utf8: checks and cuts UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above
 * U+10FFFF. Pure.
 */
#ifndef RUNTIME_BASE_UTF8_H
#define RUNTIME_BASE_UTF8_H

#include "runtime/base/buf.h"

bool utf8_valid(struct slice text);
/* The same without control characters, C1 included. */
bool utf8_is_clean(struct slice text);
/* Whether all of it is visible ASCII: no space, no control, nothing above 0x7e. */
bool ascii_is_visible(struct slice text);
/* Bytes of the one character that `text` begins with, 1 to 4; 0 when it is malformed. Text is not
 * empty. */
size_t utf8_char_size(struct slice text);
/* The first `max` bytes of it, or up to three fewer where they would end within a character. */
struct slice utf8_cut(struct slice text, size_t max);
/* Writes a character (not a surrogate, at most U+10FFFF); returns 1 to 4. */
size_t utf8_put(uint8_t *at, uint32_t character);
/* Copies what fits as printable UTF-8 with a NUL: other bytes, and characters that control, hide or
 * reorder, become '?'; a cut ends in "...". */
void utf8_snippet(char *ret_text, size_t capacity, struct slice text);

#endif
