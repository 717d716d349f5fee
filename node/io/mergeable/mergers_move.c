/* A change of a shard's members waits for the documents of those that are to be members. */
#include "node/core/mergeable/members.h"
#include "node/io/mergeable/mergers_internal.h"

/* So long it waits at most: then what the leaving member alone has comes when it departs. */
#define MOVE_MS_MAX 60000u
/* A member that has no replica hears within this time of those that have one. */
#define HEARD_MS (2u * MERGE_REPORT_MS + 1000u)

/* Of an earlier version, which takes no documents: they are not waited for. */
static bool takes_documents(const struct mergers *mergers, const struct membership *m)
{
    for (uint32_t i = 0; i < m->new_count && mergers->options.takes_documents != NULL; i++) {
        if (m->new_members[i] != mergers->options.self &&
            !mergers->options.takes_documents(mergers->options.user, m->new_members[i]))
            return false;
    }
    return true;
}

static bool is_ready(const struct mergers *mergers, const struct merger *merger, uint64_t waited_ms)
{
    if (merger->replica == NULL || !merger->started)
        return mergers->replicas == 0 || waited_ms >= HEARD_MS;
    return merge_may_leave(merger->replica);
}

static void tell(const struct mergers *mergers, uint32_t shard, enum log_level level,
                 const char *event)
{
    const struct merger *merger = &mergers->shards[shard];

    log_event(mergers->options.log, level, event, LOG_N("shard", shard),
              LOG_N("config", merger->move_config),
              LOG_N("syncing", merger->replica != NULL && merger->replica->syncing));
}

bool mergers_move_waits(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    const struct membership *m = &merger->record.membership;
    uint64_t now_ms = loop_now_ms(mergers->options.loop);

    if (!merger->known || m->new_count == 0 || mergers->stopping)
        return false;
    if (merger->move_config != m->config) {
        merger->move_config = m->config;
        merger->move_since_ms = now_ms;
        merger->move = MOVE_SEEN;
    }
    uint64_t waited_ms = now_ms - merger->move_since_ms;

    if (merger->move == MOVE_OVER || !takes_documents(mergers, m) ||
        is_ready(mergers, merger, waited_ms)) {
        merger->move = MOVE_OVER;
        return false;
    }
    if (waited_ms >= MOVE_MS_MAX) {
        tell(mergers, shard, LOG_WARN, "documents.move_goes_on");
        merger->move = MOVE_OVER;
        return false;
    }
    if (merger->move == MOVE_SEEN)
        tell(mergers, shard, LOG_INFO, "documents.move_waits");
    merger->move = MOVE_WAITS;
    return true;
}
