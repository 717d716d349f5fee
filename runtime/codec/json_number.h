/*
 * json_number: the numbers of a message at json_decode's cursor, as JSON numbers or in quotes.
 * Plain JSON refuses a bare integer beyond 2^53: most programs hold it in a double, and have
 * rounded it by then. Private to runtime/codec.
 */
#ifndef RUNTIME_CODEC_JSON_NUMBER_H
#define RUNTIME_CODEC_JSON_NUMBER_H

#include "runtime/codec/json_scan.h"

/* Each: ERR_INVALID with scope->error filled; then *ret_value is untouched. The bounds are those of
 * 32 or of 64 bits, or FLT_MAX or DBL_MAX. */
NODISCARD err json_decode_signed(struct json_in *in, int64_t min, int64_t max, int64_t *ret_value);
NODISCARD err json_decode_unsigned(struct json_in *in, uint64_t max, uint64_t *ret_value);
NODISCARD err json_decode_floating(struct json_in *in, double max, double *ret_value);

#endif
