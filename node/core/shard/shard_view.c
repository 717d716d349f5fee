/* What others may ask of a shard between two steps. */
#include "node/core/shard/shard_internal.h"

uint64_t shard_applying_index(const struct shard *shard)
{
    return shard->applying_index;
}

uint32_t shard_number(const struct shard *shard)
{
    return shard->number;
}

const struct rep *shard_rep(const struct shard *shard)
{
    return shard->rep;
}

const struct meta *shard_meta(const struct shard *shard)
{
    return applier_meta(shard->applier);
}

uint64_t shard_applied_index(const struct shard *shard)
{
    return applier_applied_index(shard->applier);
}

bool shard_serves(const struct shard *shard)
{
    return rep_role(shard->rep) == REP_OWNER;
}

bool shard_is_open(const struct shard *shard)
{
    return shard_serves(shard) && shard_meta(shard)->policy.version > 0;
}

bool shard_resumes(const struct shard *shard)
{
    enum rep_role role = rep_role(shard->rep);

    return role == REP_SEALING || role == REP_ADOPTING;
}

bool shard_wants_flush(const struct shard *shard)
{
    return shard->flush_wanted;
}

uint64_t shard_reads_turned_away(const struct shard *shard)
{
    return shard->stats.reads_turned_away;
}

void shard_stats_get(const struct shard *shard, struct shard_stats *ret_stats)
{
    *ret_stats = shard->stats;
    ret_stats->transfers_open = shard_meta(shard)->outbox_open;
    ret_stats->unread_rows = shard_meta(shard)->unread_rows;
    ret_stats->quarantined = shard_meta(shard)->quarantine_count;
    ret_stats->transfers_oldest_ms = shard->lanes.oldest_ms;
    ret_stats->snapshot = shard->snapshot;
    ret_stats->read_holds = shard->holds_of_reads.taken;
    ret_stats->read_held_ms = shard->holds_of_reads.held_ms;
    ret_stats->transfers_retried = shard->lanes.retried;
    state_stats_get(applier_state(shard->applier), &ret_stats->state);
}
