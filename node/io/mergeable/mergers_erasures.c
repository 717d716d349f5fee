/* Erasures: the strict class says who is erased, the replicas of documents follow. */
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/proto_scan.h"
#include "node/core/codec/text_rule.h"
#include "node/core/mergeable/absorb.h"
#include "node/io/mergeable/mergers_internal.h"

#define ENTITY_FIELD 1u /* Of each request: an entity, or a player. */
/* In one tick. To take records away walks over all of the shard. */
#define CHANGES_MAX 4096u
#define PURGES_MAX  16u

/* The replica has not heard of it. */
static bool is_to_purge(const struct merger *merger, const struct shard_erasure *erasure)
{
    return erasure->purges && merge_store_erasure(&merger->replica->store,
                                                  shard_erasure_entity(erasure)) < erasure->number;
}

/* True: that was to be done. */
static bool purge(struct mergers *mergers, uint32_t shard, const struct shard_erasure *erasure)
{
    struct merger *merger = &mergers->shards[shard];

    if (!is_to_purge(merger, erasure))
        return false;
    err e = merge_erase(merger->replica, shard_erasure_entity(erasure), erasure->number);

    if (e != ERR_OK && !merger->erasures_full) {
        merger->erasures_full = true;
        log_event(mergers->options.log, LOG_ERROR, "documents.erasure_refused",
                  LOG_N("shard", shard), LOG_S("error", err_name(e)));
    }
    return true;
}

struct slice mergers_entity(struct mergers *mergers, const struct method_info *method,
                            struct slice request)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(method->request, ENTITY_FIELD);
    struct slice named = { 0 };

    if (!proto_scan_bytes(request, ENTITY_FIELD, &named) || field == NULL ||
        strcmp(field->name, "player_id") != 0)
        return named;
    return entity_of_player(&mergers->arena, arena_text(&mergers->arena, named));
}

static bool find(const struct mergers *mergers, uint32_t shard, struct slice entity,
                 struct shard_erasure *ret_erasure)
{
    return mergers->options.erasures != NULL && entity.size > 0 &&
           erasures_find(mergers->options.erasures, shard, entity, ret_erasure);
}

static bool hides(const struct mergers *mergers, uint32_t shard,
                  const struct shard_erasure *erasure)
{
    return erasure->hides || is_to_purge(&mergers->shards[shard], erasure);
}

bool mergers_hides(const struct mergers *mergers, uint32_t shard, struct slice entity)
{
    struct shard_erasure erasure;

    return find(mergers, shard, entity, &erasure) && hides(mergers, shard, &erasure);
}

void mergers_erase(struct mergers *mergers, uint32_t shard, struct slice entity)
{
    struct shard_erasure erasure;

    if (find(mergers, shard, entity, &erasure))
        (void)purge(mergers, shard, &erasure);
}

void mergers_erasures_follow(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    struct shard_erasure erasure;
    uint32_t purges = 0;

    if (mergers->options.erasures == NULL)
        return;
    for (uint32_t i = 0; i < CHANGES_MAX && purges < PURGES_MAX; i++) {
        if (!erasures_next(mergers->options.erasures, shard, &merger->erased_stamp, &erasure))
            return;
        purges += purge(mergers, shard, &erasure);
    }
}
