#include "node/core/mergeable/folding.h"

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/counter.h"
#include "runtime/base/check.h"

/* This replica has all that its peers had when they reported last. */
static bool has_all(const struct merge_replica *replica)
{
    if (!merge_peers_agree(replica))
        return false;
    for (uint32_t i = 0; i < replica->peer_count; i++)
        if (!mclock_includes(&replica->clock, &replica->peers[i].clock))
            return false;
    return true;
}

static bool is_everywhere(void *user, struct merge_dot dot)
{
    return merge_all_have(user, dot);
}

static bool is_nowhere(void *user, struct merge_dot dot)
{
    (void)user;
    (void)dot;
    return false;
}

struct merge_folding merge_folding_at(struct merge_replica *replica, uint64_t now_ms)
{
    uint64_t late_ms = replica->options.op_window_ms + MERGE_OP_LATE_MS;
    uint64_t told_ms = now_ms;

    if (!has_all(replica))
        return (struct merge_folding){ .everywhere = is_nowhere };
    for (uint32_t i = 0; i < replica->peer_count; i++)
        if (replica->peers[i].told_ms < told_ms)
            told_ms = replica->peers[i].told_ms;
    return (struct merge_folding){ .era = replica->clock.era,
                                   .retried_ms = told_ms > late_ms ? told_ms - late_ms : 0,
                                   .everywhere = is_everywhere,
                                   .user = replica };
}

void merge_counters_fold(struct merge_replica *replica, uint64_t now_ms)
{
    struct merge_folding folding = merge_folding_at(replica, now_ms);

    if (folding.user == NULL)
        return;
    for (uint32_t i = replica->store.count; i > 0; i--) {
        struct merge_row *row = &replica->store.rows[i - 1];

        if (row->record.policy != MERGE_POLICY_COUNTER ||
            !merge_counter_fold(&row->record, &folding))
            continue;
        row->changed = true;
        struct merge_key *key = merge_key_ref(row->key);

        merge_row_settle(replica, key);
        merge_key_unref(key);
    }
}
