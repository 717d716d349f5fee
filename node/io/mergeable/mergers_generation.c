/* Which generation of documents a shard has: a restore from a backup begins one. Each member learns
 * of it from its own log, and keeps it on its disk, documents or not. A restore that goes on finds
 * no documents here, or gets no further. What a member still has when it hears that one is over
 * goes, and reaches no other member, since all messages name their generation. */
#include "node/core/document/backup_rows.h"
#include "node/io/mergeable/mergers_internal.h"

#define DOUBT_MS (5u * MERGE_REPORT_MS)

uint64_t mergers_generation_of(const struct merger *merger)
{
    return merger->generation != 0 ? merger->generation : MERGERS_GENERATION_FIRST;
}

/* A member whose log is behind says that the shard was never restored: what it has stays. */
static bool is_news(const struct merger *merger, const struct mergers_restored *restored)
{
    return restored->generation != MERGERS_GENERATION_FIRST &&
           restored->generation != mergers_generation_of(merger);
}

/* What was acknowledged before the restore came here is not dropped by it: the restore ends. */
static bool is_spoiled(struct mergers *mergers, uint32_t shard,
                       const struct mergers_restored *restored)
{
    struct merger *merger = &mergers->shards[shard];
    bool spoiled = restored->goes_on && is_news(merger, restored) && merger->replica != NULL &&
                   backup_rows_any(&mergers->rules, &merger->replica->store);

    if (spoiled && !merger->spoiled)
        log_event(mergers->options.log, LOG_ERROR, "documents.restore_refused",
                  LOG_N("shard", shard), LOG_N("records", merger->replica->store.count));
    return spoiled;
}

void mergers_generation_follow(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    const struct mergers_options *options = &mergers->options;
    struct mergers_restored restored;

    if (options->restored == NULL)
        return;
    bool says = options->restored(options->user, shard, &restored);
    bool is_behind = mergers_generation_of(merger) != MERGERS_GENERATION_FIRST &&
                     (!says || restored.generation == MERGERS_GENERATION_FIRST);

    merger->generation_known |= says;
    /* Until the log has come to the restore that this member knows of, it may go on. */
    merger->restoring = is_behind || (says && restored.goes_on);
    merger->spoiled = says && is_spoiled(mergers, shard, &restored);
    if (says && is_news(merger, &restored) && !merger->spoiled) {
        log_event(
            options->log, LOG_INFO, "documents.generation_begun", LOG_N("shard", shard),
            LOG_N("records_dropped", merger->replica != NULL ? merger->replica->store.count : 0));
        mergers->begin_again(mergers, shard, restored.generation);
    }
    if (merger->replica != NULL)
        merger->replica->restoring = merger->restoring;
}

bool mergers_generation_begun(const struct merger *merger)
{
    return merger->generation_durable == merger->generation;
}

const char *mergers_bars_restore(struct mergers *mergers, uint32_t shard)
{
    const struct merger *merger = &mergers->shards[shard];

    mergers_generation_follow(mergers, shard);
    if (mergers_generation_of(merger) != MERGERS_GENERATION_FIRST || merger->replica == NULL ||
        !backup_rows_any(&mergers->rules, &merger->replica->store))
        return NULL;
    return "the shard has documents: only a new, empty cluster can be restored";
}

void mergers_generation_heard(struct mergers *mergers, uint32_t shard, uint64_t generation)
{
    struct merger *merger = &mergers->shards[shard];

    if (mergers_generation_of(merger) == MERGERS_GENERATION_FIRST &&
        generation != MERGERS_GENERATION_FIRST)
        merger->doubted_until_ms = loop_now_ms(mergers->options.loop) + DOUBT_MS;
}

const char *mergers_generation_bars(const struct mergers *mergers, uint32_t shard)
{
    const struct merger *merger = &mergers->shards[shard];

    if (merger->restoring)
        return "the shard is being restored from a backup";
    if (mergers->options.restored != NULL && !merger->generation_known)
        return "this member has not read its shard's log yet";
    if (loop_now_ms(mergers->options.loop) < merger->doubted_until_ms)
        return "this member has not read of its shard's restore yet";
    return NULL;
}
