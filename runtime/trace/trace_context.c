#include "runtime/trace/trace_context.h"

#include <string.h>

#include "runtime/base/hash.h"
#include "runtime/base/hex.h"

/* Offsets of "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01". */
#define TRACE_AT    3u
#define SPAN_AT     36u
#define FLAGS_AT    53u
#define PARENT_SIZE 55u

static uint64_t load_span(const uint8_t bytes[8])
{
    uint64_t span = 0;

    for (size_t i = 0; i < 8; i++)
        span = span << 8 | bytes[i];
    return span;
}

static bool take_hex(struct slice value, size_t at, size_t count, uint8_t *ret_bytes)
{
    return hex_parse((struct slice){ value.data + at, 2 * count }, count, ret_bytes) == ERR_OK;
}

/* Version 00 ends with its flags; what a later one has behind them begins with a dash. */
static bool version_fits(uint8_t version, struct slice value)
{
    if (version == 0xff)
        return false;
    if (value.size == PARENT_SIZE)
        return true;
    return version != 0 && value.data[PARENT_SIZE] == '-';
}

bool trace_parent_parse(struct slice value, struct trace_parent *ret_parent)
{
    struct trace_parent parent;
    uint8_t version;
    uint8_t span[8];

    if (value.size < PARENT_SIZE || !take_hex(value, 0, 1, &version) ||
        !version_fits(version, value))
        return false;
    if (value.data[TRACE_AT - 1] != '-' || value.data[SPAN_AT - 1] != '-' ||
        value.data[FLAGS_AT - 1] != '-')
        return false;
    if (!take_hex(value, TRACE_AT, TRACE_ID_SIZE, parent.trace_id) ||
        !take_hex(value, SPAN_AT, sizeof span, span) ||
        !take_hex(value, FLAGS_AT, 1, &parent.flags))
        return false;
    parent.span = load_span(span);
    if (parent.span == 0 || !trace_is_set(parent.trace_id))
        return false;
    *ret_parent = parent;
    return true;
}

bool trace_is_set(const uint8_t trace_id[TRACE_ID_SIZE])
{
    uint64_t halves[2];

    memcpy(halves, trace_id, sizeof halves);
    return (halves[0] | halves[1]) != 0;
}

/* xorshift64* (Vigna 2016). */
static uint64_t next_random(uint64_t *random)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return *random * 2685821657736338717u;
}

void trace_id_init(uint8_t ret_trace_id[TRACE_ID_SIZE], uint64_t *random)
{
    uint64_t halves[2] = { next_random(random), next_random(random) };

    halves[1] |= 1; /* Never all zeros. */
    memcpy(ret_trace_id, halves, sizeof halves);
}

uint64_t trace_span(const uint8_t trace_id[TRACE_ID_SIZE], uint64_t number)
{
    uint8_t bytes[TRACE_ID_SIZE + 8];

    memcpy(bytes, trace_id, TRACE_ID_SIZE);
    store_u64(bytes + TRACE_ID_SIZE, number);
    return hash_u64((struct slice){ bytes, sizeof bytes }) | 1;
}

void trace_print(const uint8_t trace_id[TRACE_ID_SIZE], char ret_text[TRACE_TEXT_SIZE])
{
    hex_print(trace_id, TRACE_ID_SIZE, ret_text);
}

void trace_span_print(uint64_t span, char ret_text[SPAN_TEXT_SIZE])
{
    uint8_t bytes[8];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(span >> (56 - 8 * i));
    hex_print(bytes, sizeof bytes, ret_text);
}
