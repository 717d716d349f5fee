/* ListShardEvents: what was committed in one shard, for readers that follow it. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "tests/sim/events/event.h"
#include "tests/sim/servers/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__Internal__V1__ListShardEventsRequest request =
        HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_REQUEST__INIT;
    Holdfast__V1__EventKind kinds[2];
    struct event_wish wish;

    (void)parts;
    event_wish_of(sim, op, &wish);
    request.shard = op->player;
    request.limit = wish.limit;
    request.entity_prefix = request_text(wish.prefix);
    request.entity = request_text(wish.entity);
    request.kinds = kinds;
    if (wish.ledgers)
        kinds[request.n_kinds++] = HOLDFAST__V1__EVENT_KIND__EVENT_KIND_LEDGER;
    if (wish.sessions)
        kinds[request.n_kinds++] = HOLDFAST__V1__EVENT_KIND__EVENT_KIND_SESSION;
    request.passed = wish.passed;
    if (wish.has_after)
        request.after = (ProtobufCBinaryData){ sizeof wish.after, wish.after };
    request_pack(&request.base, out);
}

const struct workload_row workload_list_shard_events = {
    .method = METHOD_LIST_SHARD_EVENTS,
    .encode = encode,
    .rule = { .told = event_told },
};
