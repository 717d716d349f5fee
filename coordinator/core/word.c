/*
 * word: what replicas know of their shards' records, so that no number of a configuration is given
 * twice by an etcd that was restored from a backup (docs/etcd-restore.md). Every live node is asked
 * once in a term. An owner that served under a later configuration has the promise of a majority
 * of the members before it (of both sets, in a joint phase), and promises outlive everything. So
 * once a majority reports no later number, the next one is free. What is written in this term
 * after that follows from it.
 *
 * To name another owner under the same members no answer is needed: replicas fence by epoch and
 * configuration, so a failover waits for no report. But a shard of which a replica reported a
 * later record is left alone.
 */
#include "coordinator/core/word.h"

#include <string.h>

#include "coordinator/core/delivery.h"
#include "coordinator/core/records.h"
#include "idl/method.h"
#include "runtime/base/check.h"

#define DOUBT_LOG_MS 10000u

uint32_t word_doubting_nodes(const struct coord *coord)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < coord->node_count; i++) {
        uint64_t doubts = coord->nodes[i].record.doubts;

        count += doubts != 0 && doubts >= coord->cluster.generation;
    }
    return count;
}

static struct word *word_find(struct coord *coord, uint64_t replica_id)
{
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX && coord->words[i].replica_id != 0; i++) {
        if (coord->words[i].replica_id == replica_id)
            return &coord->words[i];
    }
    return NULL;
}

/* Of those that are gone one is forgotten if there are too many: it will be asked again. */
static struct word *word_get(struct coord *coord, uint64_t replica_id)
{
    struct word *word = word_find(coord, replica_id);

    for (uint32_t i = 0; i < CLUSTER_NODES_MAX && word == NULL; i++) {
        struct word *candidate = &coord->words[i];

        if (candidate->replica_id == 0 ||
            (!candidate->calling && node_find(coord, candidate->replica_id) == NULL))
            word = candidate;
    }
    if (word != NULL && word->replica_id != replica_id)
        *word = (struct word){ .replica_id = replica_id };
    return word;
}

/* ---- what was said ---- */
static bool is_mute(const struct shard *shard, uint64_t replica_id)
{
    for (uint32_t i = 0; i < shard->mute_count; i++) {
        if (shard->mute[i] == replica_id)
            return true;
    }
    return false;
}

static bool majority_spoke(struct coord *coord, const struct shard *shard, const uint64_t *ids,
                           uint32_t count)
{
    uint32_t heard = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct word *word = word_find(coord, ids[i]);

        heard += word != NULL && word->told && !is_mute(shard, ids[i]);
    }
    return heard > count / 2;
}

/* Of one that has no record: who could hold it is to be asked first. */
static bool all_spoke(struct coord *coord)
{
    for (uint32_t i = 0; i < coord->node_count; i++) {
        const struct word *word = word_find(coord, coord->nodes[i].record.replica_id);

        if (word == NULL || !word->told)
            return false;
    }
    return true;
}

/* Of the same epoch a replica knows another owner: that one was named by an etcd that is no more.
 */
static bool has_rival(const struct shard *shard, uint64_t epoch)
{
    if (shard->rival_epoch != 0 && shard->rival_epoch >= epoch)
        return true;
    return shard->mod_revision > 0 && shard->epoch_known == epoch && shard->owner_known != 0 &&
           shard->owner_known != shard->record.owner;
}

/* A write was refused, and the record that it met never came: etcd's is older than the one that is
 * known here. It went back, and its revisions rose again before anybody here had looked. */
static bool is_left_behind(const struct coord *coord, const struct shard *shard)
{
    return !shard->in_txn && shard->mod_revision <= shard->stale_revision &&
           coord->now_ms - shard->stale_ms >= coord->limits.stale_doubt_ms;
}

/* Once heard, for the whole term: what comes later follows from the record that was vouched for. */
static void look_at(struct coord *coord, uint32_t number, bool everybody)
{
    struct shard *shard = &coord->shards[number];
    const struct shard_record *record = &shard->record;
    uint64_t epoch = shard->mod_revision > 0 ? record->epoch : 0;
    uint64_t config = shard->mod_revision > 0 ? record->config : 0;

    if (epoch < coord->cluster.epoch_floor)
        epoch = coord->cluster.epoch_floor;
    shard->doubted = shard->epoch_known > epoch || has_rival(shard, epoch) ||
                     is_left_behind(coord, shard) ||
                     (shard->mod_revision > 0 ? shard->config_known > config : shard->held);
    if (shard->mod_revision == 0)
        shard->heard = everybody;
    else if (!shard->heard)
        shard->heard =
            majority_spoke(coord, shard, record->members, record->member_count) &&
            (record->phase == SHARD_STABLE ||
             majority_spoke(coord, shard, record->new_members, record->new_member_count));
    if (!shard->doubted ||
        (shard->doubted_logged_ms != 0 && coord->now_ms - shard->doubted_logged_ms < DOUBT_LOG_MS))
        return;
    if (shard->doubted_logged_ms != 0) /* At first it may be the copy of etcd that is late. */
        log_event(coord->log, LOG_ERROR, "coordinator.shard_doubted", LOG_N("shard", number),
                  LOG_N("epoch", epoch), LOG_N("epoch_known", shard->epoch_known),
                  LOG_N("config", config), LOG_N("config_known", shard->config_known),
                  LOG_S("reason", "a later record is known than etcd has: was etcd restored from "
                                  "a backup? holdfast admin accept-etcd-restore"));
    shard->doubted_logged_ms = coord->now_ms;
}

/* It may be whole again, or a member again, since it was asked. */
static void mute_set(struct shard *shard, uint64_t replica_id, bool mute)
{
    if (mute == is_mute(shard, replica_id))
        return;
    if (mute && shard->mute_count < REPLICAS_MAX) {
        shard->mute[shard->mute_count++] = replica_id;
        return;
    }
    for (uint32_t i = 0; i < shard->mute_count; i++) {
        if (shard->mute[i] == replica_id)
            shard->mute[i] = shard->mute[--shard->mute_count];
    }
}

static void take(struct coord *coord, uint64_t replica_id,
                 const Holdfast__Internal__V1__KnownShard *known)
{
    if (known->shard >= coord->shard_count)
        return;
    struct shard *shard = &coord->shards[known->shard];

    if (known->epoch > shard->epoch_known) {
        shard->epoch_known = known->epoch;
        shard->owner_known = known->owner;
    } else if (known->epoch == shard->epoch_known && known->owner != 0) {
        if (shard->owner_known != 0 && shard->owner_known != known->owner)
            shard->rival_epoch = known->epoch;
        shard->owner_known = known->owner;
    }
    if (known->config > shard->config_known)
        shard->config_known = known->config;
    shard->held |= known->n_members > 0;
    mute_set(shard, replica_id, known->mute);
}

void word_told(struct coord *coord, const struct open_call *call, const struct coord_event *event)
{
    struct word *word = word_find(coord, call->node);

    if (word == NULL)
        return;
    word->calling = false;
    word->next_ms = coord->now_ms + coord->limits.word_retry_ms;
    if (event->status != WIRE_OK)
        return;
    Holdfast__Internal__V1__GetNodeStatusResponse *told =
        holdfast__internal__v1__get_node_status_response__unpack(NULL, event->body.size,
                                                                 event->body.data);
    if (told == NULL)
        return;
    for (uint32_t i = 0; i < coord->shard_count; i++)
        mute_set(&coord->shards[i], call->node, false);
    for (size_t i = 0; i < told->n_known; i++)
        take(coord, call->node, told->known[i]);
    word->told = true;
    word->again = false;
    holdfast__internal__v1__get_node_status_response__free_unpacked(told, NULL);
}

void word_drop(struct coord *coord)
{
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++)
        coord->words[i].calling = false;
}

void word_begin(struct coord *coord)
{
    memset(coord->words, 0, sizeof coord->words);
    for (uint32_t i = 0; i < coord->shard_count; i++)
        coord->shards[i].heard = false;
}

/* A node that could not report on a shard is asked again, as long as its report is missing. */
static void ask_mutes_again(struct coord *coord, const struct shard *shard)
{
    for (uint32_t i = 0; i < shard->mute_count && !shard->heard; i++) {
        struct word *word = word_find(coord, shard->mute[i]);

        if (word != NULL && word->told && coord->now_ms >= word->next_ms)
            word->again = true;
    }
}

/* ---- asking ---- */
static struct slice ask_body(struct arena *arena)
{
    Holdfast__Internal__V1__GetNodeStatusRequest request =
        HOLDFAST__INTERNAL__V1__GET_NODE_STATUS_REQUEST__INIT;

    request.known = true;
    size_t size = holdfast__internal__v1__get_node_status_request__get_packed_size(&request);
    uint8_t *data = arena_alloc(arena, size + 1);

    holdfast__internal__v1__get_node_status_request__pack(&request, data);
    return (struct slice){ data, size };
}

void word_run(struct coord *coord, struct coord_out *out)
{
    for (uint32_t i = 0; i < coord->node_count; i++) {
        struct word *word = word_get(coord, coord->nodes[i].record.replica_id);
        struct open_call *open = NULL;

        if (word == NULL || (word->told && !word->again) || word->calling ||
            coord->now_ms < word->next_ms)
            continue;
        struct coord_call *call = delivery_call(coord, 0, out, &open);

        if (call == NULL)
            break;
        call->node = word->replica_id;
        call->method = METHOD_GET_NODE_STATUS;
        call->body = ask_body(&out->arena);
        open->method = call->method;
        open->node = word->replica_id;
        word->calling = true;
    }
    bool everybody = all_spoke(coord);

    for (uint32_t i = 0; i < coord->shard_count; i++) {
        look_at(coord, i, everybody);
        ask_mutes_again(coord, &coord->shards[i]);
    }
}
