/*
 * count_ask: what a request for counts may say, by the rules that a shard has as well: one
 * request's targets are asked for together with others', so none may be what a shard refuses. Pure.
 */
#ifndef ROUTER_CORE_COUNT_ASK_H
#define ROUTER_CORE_COUNT_ASK_H

#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"

#define COUNT_TARGETS_MAX        200u
#define COUNT_TARGET_BYTES       128u
#define COUNT_COLLECTION_BYTES   64u
#define COUNT_COLLECTION_DEFAULT "favorites"

struct count_ask {
    const char *collection;     /* As the request has it; empty: the default. */
    const char *const *targets; /* 1 to 200, each once. */
    size_t count;
    bool is_one;     /* GetCount, GetCounter: the field is target_id. */
    bool is_counter; /* `collection` is a counter's name, which has no default. */
};

/* ERR_INVALID: *ret_detail names the field, the limit and the value. */
NODISCARD err count_ask_check(const struct count_ask *ask, struct arena *arena,
                              Holdfast__V1__ErrorDetail *ret_detail);
/* Of a collection, or of a counter. */
struct slice count_ask_collection(const struct count_ask *ask);

#endif
