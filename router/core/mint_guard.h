/*
 * mint_guard: keeps what API keys may make out of nothing within the limits that they were issued
 * with (mint_limits.h). New goods are in every message that has a list of ItemSpec: Grant,
 * DeliverMail, the grants of a transaction; a batch, and all recipients of mail, are one call.
 * Pure: the time is told.
 *
 * The limit of a call is exact. The sum of a day (UTC) is of one router and its life: what was
 * asked for counts, whether or not it was carried out, and a repetition counts again. So a key with
 * R routers makes at most R times its limit a day, and as much again for each start of a router on
 * that day.
 */
#ifndef ROUTER_CORE_MINT_GUARD_H
#define ROUTER_CORE_MINT_GUARD_H

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "router/core/authority_walk.h"

#define MINT_KEYS_MAX 1024u /* Of which a day is remembered; the rest are refused. */

struct mint_guard;

struct mint_guard *mint_guard_new(void);
void mint_guard_free(struct mint_guard *guard);

struct mint_call {
    const struct method_info *method;
    const ProtobufCMessage *message;
    const char *key_id;  /* Not empty. */
    const char *grants;  /* As in api_key_record; empty: no limit. */
    const char *per_day; /* Likewise. */
    uint64_t wall_ms;    /* Unix time. */
    struct arena *arena;
};

/*
 * ERR_OK: it may; it is counted.
 * ERR_PERMISSION: PERMISSION_DENIED: more than a call may have, another currency or kind, or a
 * method that makes goods of which its request does not tell how many. ERR_FULL: THROTTLED until
 * the day is over. *ret_detail names the goods, the limit and the amount. ERR_INVALID: the message
 * is nested too deep.
 */
NODISCARD err mint_guard_ask(struct mint_guard *guard, const struct mint_call *call,
                             Holdfast__V1__ErrorDetail *ret_detail);

#endif
