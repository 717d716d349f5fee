/*
 * read_options: how fresh a read must be, taken from the request's bytes without decoding the
 * rest: field 2, `read`, of every METHOD_READ request that has one. DESIGN section 4 (reads).
 */
#ifndef NODE_CORE_SHARD_READ_OPTIONS_H
#define NODE_CORE_SHARD_READ_OPTIONS_H

#include <stdint.h>

#include "node/core/entry/entry.h"

#define READ_AGE_MS_MAX 60000u

enum read_kind { READ_STRICT, READ_AT_LEAST, READ_AGED, READ_STALE };

struct read_options {
    enum read_kind kind;
    struct dot at_least;     /* READ_AT_LEAST; epoch 0 otherwise. */
    uint32_t max_age_ms;     /* READ_AGED; 0 otherwise. */
    const char *wrong_field; /* NULL: none. Else what the request says there cannot be, */
    const char *wrong_limit; /* and what can. Static texts. */
    uint32_t wrong_value;    /* 0: not told. */
};

/* Missing options are strict; so are malformed ones: the read itself reports what is malformed.
 * `shard`: whose token `at_least` must be. */
void read_options_scan(uint32_t method, struct slice request, uint32_t shard,
                       struct read_options *ret_options);

#endif
