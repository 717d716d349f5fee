/* Who is online, of the shards of which this node is a member. */
#include <stdlib.h>

#include "node/core/codec/arena_proto.h"
#include "node/io/mergeable/mergers_internal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

/* Players that a list counts itself; of further shards it tells what a tick counted. */
#define COUNTED_AT_ONCE_MAX 8192u
/* Shards are counted again until one tick has looked at so many, each after COUNT_MS at best. */
#define COUNTED_A_TICK_MAX 32768u
#define COUNT_MS           2000u

typedef Holdfast__Internal__V1__ListNodeOnlineRequest list_request;
typedef Holdfast__Internal__V1__ListNodeOnlineResponse list_response;

static bool hides(void *user, struct slice entity)
{
    const struct mergers *mergers = user;

    return mergers_hides(mergers, shard_of_entity(entity, mergers->options.shard_count), entity);
}

static struct online_filter filter_of(struct mergers *mergers)
{
    return (struct online_filter){ .living = mergers->options.living,
                                   .now_ms = loop_wall_ms(),
                                   .hides = mergers->options.erasures != NULL ? hides : NULL,
                                   .user = mergers };
}

void mergers_online_count(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    const struct online_filter filter = filter_of(mergers);

    merger->online_count = online_count(&merger->online, &filter);
    merger->online_counted_ms = filter.now_ms;
}

void mergers_online_tick(struct mergers *mergers)
{
    uint64_t looks = 0, now_ms = loop_wall_ms();

    for (uint32_t i = 0; i < mergers->options.shard_count && looks < COUNTED_A_TICK_MAX; i++) {
        const struct merger *merger = &mergers->shards[mergers->online_next];

        if (merger->started && now_ms - merger->online_counted_ms >= COUNT_MS) {
            looks += merger->online.count;
            mergers_online_count(mergers, mergers->online_next);
        }
        mergers->online_next = (mergers->online_next + 1) % mergers->options.shard_count;
    }
}

/* `left`: of the players that may be counted at once. */
static void count(struct mergers *mergers, uint32_t shard, list_response *response, uint32_t *left)
{
    const struct merger *merger = &mergers->shards[shard];
    const struct online_filter filter = filter_of(mergers);
    bool at_once = merger->online.count <= *left;
    int64_t counted_ms = (int64_t)(at_once ? filter.now_ms : merger->online_counted_ms);

    *left -= at_once ? merger->online.count : 0;
    response->count += at_once ? online_count(&merger->online, &filter) : merger->online_count;
    if (response->counted_ms == 0 || response->counted_ms > counted_ms)
        response->counted_ms = counted_ms;
}

/* One that joins takes everything in first. */
static bool is_old_member(const struct mergers *mergers, const struct merger *merger)
{
    const struct membership *m = &merger->record.membership;

    for (uint32_t i = 0; i < m->count; i++) {
        if (m->members[i] == mergers->options.self)
            return true;
    }
    return false;
}

/* Whether this member can tell; NULL in *ret_replica: it has no document of the shard. */
static bool can_tell(struct mergers *mergers, uint32_t shard, struct merge_replica **ret_replica)
{
    const struct merger *merger = &mergers->shards[shard];

    mergers_generation_follow(mergers, shard);
    *ret_replica = merger->replica;
    if (!merger->known || !membership_has(&merger->record.membership, mergers->options.self))
        return false;
    if (merger->replica == NULL) /* One whose disk was lost may have had some. */
        return is_old_member(mergers, merger) && mergers_generation_bars(mergers, shard) == NULL &&
               (mergers->db == NULL || !merge_db_lost(mergers->db));
    return merger->started && !merger->replica->syncing &&
           mergers_generation_bars(mergers, shard) == NULL;
}

/* The parts that can be read; the others are missing. How many. */
static uint32_t make_parts(struct mergers *mergers, const list_request *request,
                           struct online_part *parts, list_response *response)
{
    struct merge_replica *replica = NULL;
    uint32_t made = 0, left = COUNTED_AT_ONCE_MAX;

    response->missing =
        arena_alloc(&mergers->arena, (request->n_shards + 1) * sizeof *response->missing);
    for (size_t i = 0; i < request->n_shards; i++) {
        uint32_t shard = request->shards[i];

        if (!can_tell(mergers, shard, &replica)) {
            response->missing[response->n_missing++] = shard;
            continue;
        }
        if (request->count)
            count(mergers, shard, response, &left);
        if (replica != NULL)
            parts[made++] = (struct online_part){ .online = &mergers->shards[shard].online,
                                                  .replica = replica };
    }
    return made;
}

static bool is_well_formed(const struct mergers *mergers, const list_request *request)
{
    bool *seen = mem_zalloc(mergers->options.shard_count * sizeof *seen);
    bool well = request->limit > 0 && request->limit <= ONLINE_ROWS_MAX;

    for (size_t i = 0; well && i < request->n_shards; i++) {
        well = request->shards[i] < mergers->options.shard_count && !seen[request->shards[i]];
        if (well)
            seen[request->shards[i]] = true;
    }
    free(seen);
    return well;
}

bool mergers_list_online(struct mergers *mergers, struct slice bytes, struct buf *out)
{
    list_response response = HOLDFAST__INTERNAL__V1__LIST_NODE_ONLINE_RESPONSE__INIT;
    const struct online_filter filter = filter_of(mergers);

    arena_reset(&mergers->arena);
    const list_request *request = (const void *)arena_unpack(
        &mergers->arena, &holdfast__internal__v1__list_node_online_request__descriptor, bytes);

    if (request == NULL || mergers->stopping || !is_well_formed(mergers, request))
        return false;
    struct online_part *parts =
        arena_alloc(&mergers->arena, (request->n_shards + 1) * sizeof *parts);
    uint32_t count = make_parts(mergers, request, parts, &response);
    struct slice entity = { 0 };

    if (request->player_id[0] != 0)
        entity = slice_from_text(arena_printf(&mergers->arena, "player:%s", request->player_id));
    const struct online_ask ask = { .behind = { request->at, entity },
                                    .upwards = request->upwards,
                                    .limit = request->limit,
                                    .filter = &filter,
                                    .arena = &mergers->arena };

    response.now_ms = (int64_t)filter.now_ms;
    response.rows = arena_alloc(&mergers->arena, request->limit * sizeof *response.rows);
    online_page(&ask, parts, count, &response);
    const struct slice packed = arena_pack(&mergers->arena, &response.base);

    buf_append(out, packed.data, packed.size);
    return true;
}
