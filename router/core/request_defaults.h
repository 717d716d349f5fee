/*
 * request_defaults: what a request leaves out and its headers, or its caller's key, say: the
 * authority of mutations, and the op_id of a single one. Pure. Before anything looks at either.
 *
 * An authority is taken from the body, else from the batch around it, else from the header
 * `Holdfast-Authority`, else from the key. Only the field `authority` is filled in: the other
 * players of a transaction name theirs. An op_id is taken from the body, else from the header
 * `Idempotency-Key`: a UUIDv7 or a typed key as it is, any other text as `key:<text>`.
 */
#ifndef ROUTER_CORE_REQUEST_DEFAULTS_H
#define ROUTER_CORE_REQUEST_DEFAULTS_H

#include <stdbool.h>

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"

struct request_defaults {
    struct slice authority;       /* The header; empty without one. */
    struct slice idempotency_key; /* The header; empty without one. */
    uint32_t key_scope;           /* Of enum scope: the key stands for system:<its name>; or 0. */
    bool used;                    /* Told by request_defaults_apply: it filled in a field. */
};

/*
 * Fills in fields of `message`, which is of method->request; texts are in `arena`. Reads, and
 * methods without these fields, ignore both headers.
 *
 * ERR_INVALID: *ret_detail says why: a header is malformed, the body has another op_id than the
 * header, or a batch came with an Idempotency-Key. An authority in a header is never repeated.
 */
NODISCARD err request_defaults_apply(struct request_defaults *defaults,
                                     const struct method_info *method, ProtobufCMessage *message,
                                     struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail);

#endif
