#include "node/io/report/node_load.h"

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/io/report/node_status.h"
#include "runtime/base/arena.h"
#include "runtime/loop/loop.h"

struct load_answer {
    struct arena arena;
    const struct node_load_sources *sources;
    Holdfast__V1__NodeLoad load;
};

static void put_buckets(struct arena *arena, const struct histogram *histogram, size_t *ret_count,
                        uint64_t **ret_buckets)
{
    size_t count = histogram->bucket_count + 1u;

    *ret_buckets = arena_alloc(arena, count * sizeof **ret_buckets);
    *ret_count = histogram_copy(histogram, *ret_buckets, count);
}

static void add_method(void *user, const struct node_calls *calls)
{
    struct load_answer *answer = user;
    Holdfast__V1__MethodLoad *load = arena_alloc(&answer->arena, sizeof *load);

    holdfast__v1__method_load__init(load);
    load->method = text_lend(calls->method->name);
    load->ok = calls->answered[REPLY_OK];
    load->refused = calls->answered[REPLY_REFUSED];
    load->elsewhere = calls->answered[REPLY_NOT_OWNER];
    load->unknown = calls->answered[REPLY_UNKNOWN];
    put_buckets(&answer->arena, calls->latency, &load->n_buckets, &load->buckets);
    answer->load.methods[answer->load.n_methods++] = load;
}

/* Of the other replicas of a shard that is owned here. */
static void take_replicas(Holdfast__V1__NodeLoad *load, const struct shard_view *view,
                          uint64_t self)
{
    for (uint32_t i = 0; i < view->membership.count; i++) {
        const struct member_view *member = &view->members[i];
        uint64_t matched = member->matched_index;
        uint64_t lag = view->last_index > matched ? view->last_index - matched : 0;

        if (view->membership.members[i] == self || !member->known)
            continue;
        if (lag > load->replicas_lag)
            load->replicas_lag = lag;
        if (member->heard_ms > load->replicas_silent_ms)
            load->replicas_silent_ms = member->heard_ms;
    }
}

static void add_shard(void *user, const struct shard_view *view)
{
    struct load_answer *answer = user;
    Holdfast__V1__NodeLoad *load = &answer->load;

    load->shards_held += !view->removed;
    load->shards_quarantined += view->quarantined;
    load->unapplied += view->last_index - view->applied_index;
    if (!view->serving)
        return;
    load->shards_owned++;
    load->sessions += view->sessions;
    load->transfers_open += view->stats.transfers_open;
    load->players_quarantined += view->stats.quarantined;
    if (view->stats.transfers_oldest_ms > load->transfers_oldest_ms)
        load->transfers_oldest_ms = view->stats.transfers_oldest_ms;
    take_replicas(load, view, answer->sources->replica_id);
    Holdfast__V1__ShardLoad *shard = arena_alloc(&answer->arena, sizeof *shard);
    holdfast__v1__shard_load__init(shard);
    shard->shard = view->shard;
    shard->proposed = view->stats.proposed;
    shard->reads = view->stats.reads;
    load->shards[load->n_shards++] = shard;
}

static void add_log(struct load_answer *answer)
{
    struct node_log_stats stats;

    node_log_stats_get(answer->sources->store_log, &stats);
    answer->load.log_syncs = stats.syncs;
    answer->load.log_sync_us = stats.sync_ns / 1000;
}

static const char *disk_text(enum space_state state)
{
    static const char *const texts[] = {
        [SPACE_OK] = "ok", [SPACE_LOW] = "low", [SPACE_FULL] = "full"
    };

    return texts[state];
}

static void add_all(struct load_answer *answer)
{
    const struct node_load_sources *sources = answer->sources;
    Holdfast__V1__NodeLoad *load = &answer->load;
    struct arena *arena = &answer->arena;

    if (sources->metrics != NULL) {
        load->methods = arena_alloc(arena, sizeof(void *) * (METHOD_ID_MAX + 1u));
        node_metrics_visit(sources->metrics, add_method, answer);
        put_buckets(arena, node_metrics_commits(sources->metrics), &load->n_commit_buckets,
                    &load->commit_buckets);
    }
    if (sources->views != NULL) {
        load->shards =
            arena_alloc(arena, sizeof(void *) * (shard_views_count(sources->views) + 1u));
        shard_views_visit(sources->views, add_shard, answer);
    }
    if (sources->store_log != NULL)
        add_log(answer);
    load->disk_state = text_lend(disk_text(space_state(sources->space)));
    if (sources->space != NULL)
        load->disk_free_bytes = space_free_bytes(sources->space);
}

void node_load_append(const struct node_load_sources *sources, struct buf *out)
{
    struct load_answer answer = { .sources = sources, .load = HOLDFAST__V1__NODE_LOAD__INIT };
    Holdfast__Internal__V1__GetNodeLoadResponse response =
        HOLDFAST__INTERNAL__V1__GET_NODE_LOAD_RESPONSE__INIT;

    answer.load.replica_id = sources->replica_id;
    answer.load.life = sources->life;
    answer.load.at_us = loop_clock_ns() / 1000;
    answer.load.resident_bytes = node_resident_bytes();
    add_all(&answer);
    response.load = &answer.load;
    size_t size = holdfast__internal__v1__get_node_load_response__get_packed_size(&response);
    holdfast__internal__v1__get_node_load_response__pack(&response, buf_reserve(out, size));
    out->size += size;
    arena_deinit(&answer.arena);
}
