/*
 * rest_request: what the head of a REST request says, as fields of the method's request. Pure; for
 * untrusted input.
 *
 * Path, query and If-Match become one object of plain JSON, so that the codec, which knows numbers,
 * enums and every limit, reads them and names what is wrong. Then it is put together with the
 * request of the body.
 */
#ifndef RUNTIME_REST_REST_REQUEST_H
#define RUNTIME_REST_REST_REQUEST_H

#include "runtime/rest/rest_route.h"

#define REST_FIELDS_MAX     64u /* Of a request; idl/method_test.c holds every method to it. */
#define REST_PARAMETERS_MAX 64u /* Of a query. */
#define REST_DEPTH_MAX      4u  /* Names of a nested field: read.at_least.  */

/* The fields of the request that its head names, also those at their defaults: a bit for each, by
 * its place in the descriptor. */
struct rest_named {
    uint64_t bits;
};

struct rest_head {
    const struct rest_found *found;
    struct slice query;    /* Behind the question mark; empty without one. */
    struct slice if_match; /* The header, a version in quotes or without; empty without one. */
};

/*
 * Appends {"player_id":"ada","page_size":"10"} to `out`. Names in the query are those of the idl,
 * with dots into messages; some have another name as well (`limit` for page_size). A repeated field
 * may come several times.
 *
 * ERR_INVALID: *ret_flaw says why. `out` may have grown then.
 */
NODISCARD err rest_request_head(const struct rest_head *head, struct arena *arena, struct buf *out,
                                struct rest_named *ret_named, struct rest_flaw *ret_flaw);

/*
 * Puts into `body` the fields `named` of `head`, another message of its type, which shares memory
 * with it from then on.
 *
 * ERR_INVALID: the body sets one of them to another value, or to any where it is a list or a
 * message; *ret_flaw names it.
 */
NODISCARD err rest_request_merge(ProtobufCMessage *body, const ProtobufCMessage *head,
                                 struct rest_named named, struct rest_flaw *ret_flaw);

#endif
