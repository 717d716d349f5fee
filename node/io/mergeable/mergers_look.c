/* What there is of a shard, and for how long its members have been apart. */
#include <string.h>

#include "node/io/mergeable/mergers_internal.h"

/* Of a member that has not reported nothing is known. */
static bool all_have(const struct merge_replica *replica, const struct mclock *clock)
{
    if (!mclock_includes(&replica->clock, clock))
        return false;
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];

        if (merge_is_member(replica, peer->member) &&
            (!peer->reported || !mclock_includes(&peer->clock, clock)))
            return false;
    }
    return true;
}

/* What this replica and all that have reported hold between them; with too many actors less. */
static void put_mark(struct merger *merger, uint64_t now_ms)
{
    const struct merge_replica *replica = merger->replica;

    mclock_deinit(&merger->mark);
    mclock_copy(&merger->mark, &replica->clock);
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];

        if (merge_is_member(replica, peer->member) && peer->reported)
            (void)!mclock_join(&merger->mark, &peer->clock, MCLOCK_CLOSE_AGREED);
    }
    merger->mark_ms = now_ms;
}

static bool is_apart(const struct merge_replica *replica)
{
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];

        if (merge_is_member(replica, peer->member) &&
            (!peer->reported || !mclock_includes(&replica->clock, &peer->clock) ||
             !mclock_includes(&peer->clock, &replica->clock)))
            return true;
    }
    return false;
}

/* While there are writes the members are hardly ever equal, so what they had some time ago is
 * compared: under writes it is a few seconds, in a cut it rises. */
static void follow_apart(struct merger *merger, uint64_t now_ms)
{
    if (!is_apart(merger->replica)) {
        merger->apart_since_ms = 0;
    } else if (merger->apart_since_ms == 0) {
        merger->apart_since_ms = now_ms;
        put_mark(merger, now_ms);
    } else if (all_have(merger->replica, &merger->mark)) {
        merger->apart_since_ms = merger->mark_ms;
        put_mark(merger, now_ms);
    }
}

void mergers_look(struct merger *merger, uint64_t now_ms)
{
    const struct merge_store *store = &merger->replica->store;

    memset(merger->records, 0, sizeof merger->records);
    merger->siblings = merger->record_bytes = merger->documents = 0;
    for (uint32_t i = 0; i < store->count; i++) {
        const struct merge_record *record = &store->rows[i].record;

        merger->record_bytes += merge_record_bytes(record);
        if (record->count == 0)
            continue;
        merger->documents++;
        merger->records[record->policy]++;
        merger->siblings += record->policy == MERGE_POLICY_VECTOR && record->count > 1;
    }
    follow_apart(merger, now_ms);
    merger->looked_ms = now_ms;
}
