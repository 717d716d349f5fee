/*
 * refusal: makes the ErrorDetail with which the router itself refuses a request. Texts live in an
 * arena. Nothing the router says is `final`: it records nothing.
 */
#ifndef ROUTER_CORE_REFUSAL_H
#define ROUTER_CORE_REFUSAL_H

#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"

#define REFUSAL_VALUE_BYTES_MAX 64u

/* A copy of what a caller sent, cut to `max` bytes. */
const char *refusal_show(struct arena *arena, struct slice value, size_t max);

/* The message is printf-style; only `code` and `message` are set. */
void refusal_make(struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail,
                  Holdfast__V1__ErrorCode code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* INVALID_ARGUMENT about one field: which, what was expected, what was given (shortened). The
 * message says all three. */
struct refusal_field {
    const char *field;
    const char *limit;
    struct slice value;
};
void refusal_make_field(struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail,
                        const struct refusal_field *field, const char *message);

/* The same of a shard that the cluster does not have, in `field`. */
void refusal_make_shard(struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail,
                        const char *field, uint32_t shard, uint32_t shard_count);

/* What stands, for a VERSION_CONFLICT: sets `about`, which lies in the arena. */
void refusal_tell_version(struct arena *arena, Holdfast__V1__ErrorDetail *detail, uint64_t current);

/* Whether an answer of before may be told instead: the shard may well be there a moment later. */
bool refusal_may_be_stale(Holdfast__V1__ErrorCode code);

/* The encoding of `detail`, completed by idl/error_rule.h, in the arena. */
struct slice refusal_bytes(struct arena *arena, const Holdfast__V1__ErrorDetail *detail);

#endif
