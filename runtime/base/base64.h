/* base64: RFC 4648 sections 4 and 5. Pure. */
#ifndef RUNTIME_BASE_BASE64_H
#define RUNTIME_BASE_BASE64_H

#include "runtime/base/buf.h"

/* Appends the standard alphabet's form of `bytes`, with or without '=' at the end. */
void base64_encode(struct slice bytes, bool padded, struct buf *out);
/* The same in the alphabet for URLs, without '='. */
void base64_encode_url(struct slice bytes, struct buf *out);
/* Most bytes that `size` characters can hold. */
size_t base64_size_max(size_t size);
/* Takes both alphabets, padded or not. `ret_bytes` has room for base64_size_max. False when a
 * character or the length is wrong. */
bool base64_decode(struct slice text, uint8_t *ret_bytes, size_t *ret_size);
/* The same for texts that are compared or signed, so that bytes have one form alone: the alphabet
 * for URLs, no '=', and the bits that no byte has are zero (RFC 7515 section 2). */
bool base64_decode_url(struct slice text, uint8_t *ret_bytes, size_t *ret_size);

#endif
