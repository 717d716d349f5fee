/*
 * mint_guard: keeps what API keys may make out of nothing within the limits that they were issued
 * with (mint_limits.h). New goods are in every message that has a list of ItemSpec: Grant,
 * DeliverMail, the grants of a transaction; a batch, and all recipients of mail, are one call.
 * Pure: the time is told.
 *
 * The limit of a call is exact. The sum of a day (UTC) is one for all routers: etcd has what of it
 * they took (mint_book.h), each a share before it spends it. What was asked for counts, whether or
 * not it was carried out; so does the rest of a share when its router ends. A call that says the
 * same under the same op_id as one of the key's latest of that day is a repetition, which makes
 * nothing more, and is not counted again. So a key never makes more than its limit a day, and with
 * R routers may be refused once it has made all but R times a 64th of it.
 */
#ifndef ROUTER_CORE_MINT_GUARD_H
#define ROUTER_CORE_MINT_GUARD_H

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "router/core/authority_walk.h"
#include "runtime/cluster/mint_limits.h"

#define MINT_KEYS_MAX 1024u /* Of which a day is remembered; the rest are refused. */

#define MINT_COUNTED_MAX 256u /* Calls of each key that are remembered. */

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
 * The limit of a call. ERR_PERMISSION: PERMISSION_DENIED: more than a call may have, another
 * currency or kind, or a method that makes goods of which its request does not tell how many.
 * *ret_detail names the goods, the limit and the amount. ERR_INVALID: the message is nested too
 * deep.
 */
NODISCARD err mint_check(const struct mint_call *call, Holdfast__V1__ErrorDetail *ret_detail);

/*
 * The sum of the day, after mint_check. ERR_OK: it may; it is counted. ERR_FULL: THROTTLED until
 * the day is over; *ret_detail as above. ERR_NEED: this router's share does not suffice, nothing is
 * counted; *ret_lack has the goods of the key's limit and how much of each is missing: reserve it,
 * then ask again. ERR_INVALID as above.
 */
NODISCARD err mint_guard_take(struct mint_guard *guard, const struct mint_call *call,
                              struct mint_limits *ret_lack, Holdfast__V1__ErrorDetail *ret_detail);

/* What the key's record of that day says that all routers took of the sum: `made`. Of it `share`
 * is this router's, beside what it had; NULL: nothing is. */
void mint_guard_give(struct mint_guard *guard, const struct mint_call *call,
                     const struct mint_limits *made, const struct mint_limits *share);

/* What to reserve for a call that lacks so much: that and, while much is left, a 64th of the day's
 * sum. `made` becomes what the record says then. After mint_guard_give(made) and ERR_NEED alone:
 * there is room for it. */
void mint_reserve(const struct mint_call *call, const struct mint_limits *lack,
                  struct mint_limits *made, struct mint_limits *ret_share);

uint64_t mint_day_of(const struct mint_call *call);

/* CHECKs that each key has one day. For tests. */
void mint_guard_check(const struct mint_guard *guard);

#endif
