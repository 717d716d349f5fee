#include "router/core/member_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "router/core/refusal.h"
#include "runtime/cluster/shard_change.h"

/* Refusals say all that there is to say in their message. */
#define REFUSE(plan, e, ...)                                                                       \
    (refusal_make((plan)->arena, (plan)->ret_detail,                                               \
                  HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT, __VA_ARGS__),             \
     (e))

void member_wishes_take(struct member_wishes *wishes, const char *cluster, struct slice key,
                        struct slice value, int64_t mod_revision)
{
    struct cluster_key_parts parts = cluster_key_parse(cluster, key);
    struct shard_wish held;
    struct node_wish wish;

    if (parts.kind == CLUSTER_KEY_SHARD_WISH) {
        wishes->shards[parts.shard] = true;
        wishes->repairs[parts.shard] =
            shard_wish_decode(value, &held, NULL) == ERR_OK ? held.repair : 0;
    }
    if (parts.kind != CLUSTER_KEY_NODE_WISH || wishes->node_count == CLUSTER_NODES_MAX ||
        node_wish_decode(value, &wish, NULL) != ERR_OK)
        return;
    wishes->nodes[wishes->node_count++] =
        (struct member_wish){ parts.replica_id, wish, mod_revision };
}

const struct member_wish *member_wishes_find(const struct member_wishes *wishes,
                                             uint64_t replica_id)
{
    for (uint32_t i = 0; i < wishes->node_count; i++) {
        if (wishes->nodes[i].replica_id == replica_id)
            return &wishes->nodes[i];
    }
    return NULL;
}

/* ---- nodes ---- */
static bool holds(const struct shard_record *record, uint64_t replica_id)
{
    return shard_record_has_member(record, replica_id) || record->learner == replica_id;
}

void member_plan_count(const struct member_plan *plan, uint64_t replica_id, uint32_t *ret_owned,
                       uint32_t *ret_held)
{
    *ret_owned = *ret_held = 0;
    for (uint32_t i = 0; i < shard_map_shard_count(plan->map); i++) {
        const struct shard_entry *entry = shard_map_find(plan->map, i);

        *ret_owned += entry != NULL && entry->record.owner == replica_id;
        *ret_held += entry != NULL && holds(&entry->record, replica_id);
    }
}

static uint32_t held_count(const struct member_plan *plan, uint64_t replica_id)
{
    uint32_t owned, held;

    member_plan_count(plan, replica_id, &owned, &held);
    return held;
}

err member_plan_node(const struct member_plan *plan, const char *field, const char *text,
                     uint64_t *ret_replica_id)
{
    uint32_t count;
    const struct node_record *nodes = shard_map_nodes(plan->map, &count);
    uint64_t id = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(nodes[i].name, text) == 0) {
            *ret_replica_id = nodes[i].replica_id;
            return ERR_OK;
        }
    }
    if (decimal_parse(slice_from_text(text), &id) == ERR_OK && id != 0 &&
        (shard_map_find_node(plan->map, id) != NULL || held_count(plan, id) > 0 ||
         member_wishes_find(plan->wishes, id) != NULL)) {
        *ret_replica_id = id;
        return ERR_OK;
    }
    refusal_make_field(
        plan->arena, plan->ret_detail,
        &(struct refusal_field){
            field, "a live node's name, or the replica id of a node that lives or holds a shard",
            slice_from_text(text) },
        "there is no such node");
    return ERR_INVALID;
}

/* Live, and neither drained nor removed. */
static bool stays(const struct member_plan *plan, uint64_t replica_id)
{
    return shard_map_find_node(plan->map, replica_id) != NULL &&
           member_wishes_find(plan->wishes, replica_id) == NULL;
}

/* It stays, and nothing on its disk is damaged. */
static bool may_hold(const struct member_plan *plan, uint64_t replica_id)
{
    const struct node_record *node = shard_map_find_node(plan->map, replica_id);

    return node != NULL && node->damaged_shards == 0 && stays(plan, replica_id);
}

static uint32_t staying_members(const struct member_plan *plan, const struct shard_record *record,
                                uint64_t without)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->member_count; i++)
        count += record->members[i] != without && stays(plan, record->members[i]);
    return count;
}

static uint32_t live_members(const struct member_plan *plan, const struct shard_record *record,
                             uint64_t without)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->member_count; i++)
        count += record->members[i] != without &&
                 shard_map_find_node(plan->map, record->members[i]) != NULL;
    return count;
}

err member_plan_drain(const struct member_plan *plan, uint64_t replica_id)
{
    const struct member_wish *wish = member_wishes_find(plan->wishes, replica_id);

    if (wish != NULL)
        return REFUSE(plan, ERR_CONFLICT, "node %" PRIu64 " is %s already", replica_id,
                      wish->wish.kind == NODE_DRAIN ? "drained" : "removed");
    for (uint32_t i = 0; i < shard_map_shard_count(plan->map); i++) {
        const struct shard_entry *entry = shard_map_find(plan->map, i);

        if (entry != NULL && shard_record_has_member(&entry->record, replica_id) &&
            staying_members(plan, &entry->record, replica_id) == 0)
            return REFUSE(plan, ERR_CONFLICT,
                          "no other node could own shard %" PRIu32
                          ": its other replicas are down, drained or removed",
                          i);
    }
    return ERR_OK;
}

err member_plan_undrain(const struct member_plan *plan, uint64_t replica_id)
{
    if (member_wishes_find(plan->wishes, replica_id) == NULL)
        return REFUSE(plan, ERR_CONFLICT, "node %" PRIu64 " is neither drained nor removed",
                      replica_id);
    return ERR_OK;
}

err member_plan_remove(const struct member_plan *plan, uint64_t replica_id)
{
    const struct cluster_record *cluster = shard_map_cluster(plan->map);
    const struct member_wish *wish = member_wishes_find(plan->wishes, replica_id);
    uint32_t count, left = 0;
    const struct node_record *nodes = shard_map_nodes(plan->map, &count);

    if (wish != NULL && wish->wish.kind == NODE_REMOVE)
        return REFUSE(plan, ERR_CONFLICT, "node %" PRIu64 " is removed already", replica_id);
    for (uint32_t i = 0; i < count; i++) {
        const struct member_wish *other = member_wishes_find(plan->wishes, nodes[i].replica_id);

        left += nodes[i].replica_id != replica_id && nodes[i].damaged_shards == 0 &&
                (other == NULL || other->wish.kind != NODE_REMOVE);
    }
    if (cluster == NULL || left < cluster->replication_factor)
        return REFUSE(plan, ERR_CONFLICT,
                      "%" PRIu32 " nodes would be left, and every shard wants %" PRIu32
                      " replicas: add a node first",
                      left, cluster != NULL ? cluster->replication_factor : 0);
    for (uint32_t i = 0; i < shard_map_shard_count(plan->map); i++) {
        const struct shard_entry *entry = shard_map_find(plan->map, i);

        if (entry == NULL || !shard_record_has_member(&entry->record, replica_id))
            continue;
        uint32_t live = live_members(plan, &entry->record, replica_id);
        if (live > entry->record.member_count / 2 ||
            (entry->record.member_count <= 2 && live + 1 >= entry->record.member_count &&
             shard_map_find_node(plan->map, replica_id) != NULL))
            continue;
        return REFUSE(plan, ERR_CONFLICT,
                      "shard %" PRIu32 " would have no majority: of its %" PRIu32
                      " replicas %" PRIu32 " others are up",
                      i, entry->record.member_count, live);
    }
    return ERR_OK;
}

/* ---- zones ---- */
static const char *zone_of(const struct member_plan *plan, uint64_t replica_id)
{
    const struct node_record *node = shard_map_find_node(plan->map, replica_id);

    return node != NULL ? node->zone : NULL;
}

/* How many of `ids` but `without` share the zone; a node that is not there has none. */
static uint32_t sharing(const struct member_plan *plan, const struct shard_wish *wish,
                        uint64_t without, const char *zone)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < wish->member_count; i++) {
        const char *other = zone_of(plan, wish->members[i]);

        count += wish->members[i] != without && other != NULL && zone != NULL &&
                 strcmp(other, zone) == 0;
    }
    return count;
}

static bool has(const struct shard_wish *wish, uint64_t replica_id)
{
    return replica_is_among(wish->members, wish->member_count, replica_id);
}

/* The fewest that any node which may hold the shard would share its zone with. */
static uint32_t least_sharing(const struct member_plan *plan, const struct shard_wish *wish,
                              uint64_t without)
{
    uint32_t count, least = UINT32_MAX;
    const struct node_record *nodes = shard_map_nodes(plan->map, &count);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t shared;

        if (has(wish, nodes[i].replica_id) || !may_hold(plan, nodes[i].replica_id))
            continue;
        shared = sharing(plan, wish, without, nodes[i].zone);
        least = shared < least ? shared : least;
    }
    return least;
}

/* ---- moves ---- */
static struct shard_wish wish_of(const struct shard_record *record)
{
    struct shard_wish wish = { .member_count = record->member_count };

    memcpy(wish.members, record->members, sizeof wish.members);
    return wish;
}

static void replace(struct shard_wish *wish, uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < wish->member_count; i++) {
        if (wish->members[i] == from)
            wish->members[i] = to;
    }
}

static err check_comer(const struct member_plan *plan, uint64_t to)
{
    const struct node_record *node = shard_map_find_node(plan->map, to);

    if (node == NULL)
        return REFUSE(plan, ERR_CONFLICT, "node %" PRIu64 " is not up", to);
    if (member_wishes_find(plan->wishes, to) != NULL)
        return REFUSE(plan, ERR_CONFLICT, "node %" PRIu64 " is drained or removed", to);
    if (node->damaged_shards > 0)
        return REFUSE(plan, ERR_CONFLICT,
                      "node %" PRIu64 " has damaged shards: it is to be replaced", to);
    return ERR_OK;
}

err member_plan_move(const struct member_plan *plan, uint32_t shard, uint64_t from, uint64_t to,
                     struct shard_wish *ret_wish)
{
    const struct shard_entry *entry = shard_map_find(plan->map, shard);

    if (entry == NULL) {
        refusal_make_shard(plan->arena, plan->ret_detail, "shard", shard,
                           shard_map_shard_count(plan->map));
        return ERR_INVALID;
    }
    struct shard_wish wish = wish_of(&entry->record);

    if (plan->wishes->shards[shard] || shard_change_is_open(&entry->record))
        return REFUSE(plan, ERR_CONFLICT, "the replicas of shard %" PRIu32 " change just now",
                      shard);
    if (!has(&wish, from))
        return REFUSE(plan, ERR_INVALID, "node %" PRIu64 " holds no replica of shard %" PRIu32,
                      from, shard);
    if (has(&wish, to))
        return REFUSE(plan, ERR_INVALID,
                      "node %" PRIu64 " holds a replica of shard %" PRIu32 " already", to, shard);
    err e = check_comer(plan, to);
    if (e != ERR_OK)
        return e;
    uint32_t shared = sharing(plan, &wish, from, zone_of(plan, to));
    if (shared > least_sharing(plan, &wish, from))
        return REFUSE(plan, ERR_CONFLICT,
                      "zone \"%s\" of node %" PRIu64 " has a replica of shard %" PRIu32
                      " already, and another zone has none",
                      zone_of(plan, to), to, shard);
    replace(&wish, from, to);
    *ret_wish = wish;
    return ERR_OK;
}

/* ---- rebuild ---- */
/* All others keep what the shard stored, and a majority of its members has right rows besides: the
 * coordinator asks the same again, at each step (coordinator/core/repair.c). */
static err check_others(const struct member_plan *plan, const struct shard_entry *entry,
                        uint32_t shard, uint64_t replica_id)
{
    const struct shard_record *record = &entry->record;
    uint32_t healthy = 0;

    for (uint32_t i = 0; i < record->member_count; i++) {
        uint64_t other = record->members[i];
        const struct node_record *node = shard_map_find_node(plan->map, other);

        if (other == replica_id)
            continue;
        if (node == NULL)
            return REFUSE(plan, ERR_CONFLICT,
                          "node %" PRIu64 ", which holds shard %" PRIu32 ", is not up", other,
                          shard);
        if (node_record_is_damaged(node, shard))
            return REFUSE(plan, ERR_CONFLICT,
                          "the replica of shard %" PRIu32 " on node %" PRIu64
                          " is damaged: its repair comes first",
                          shard, other);
        healthy += node_record_may_own(node, shard);
    }
    if (healthy > record->member_count / 2)
        return ERR_OK;
    return REFUSE(plan, ERR_CONFLICT,
                  "shard %" PRIu32 " has %" PRIu32 " healthy replicas of %" PRIu32
                  " but this one, and rows are taken only while a majority of %" PRIu32
                  " is healthy",
                  shard, healthy, record->member_count, record->member_count / 2 + 1);
}

static err check_rebuilt(const struct member_plan *plan, const struct shard_entry *entry,
                         uint32_t shard, uint64_t replica_id)
{
    const struct node_record *node = shard_map_find_node(plan->map, replica_id);

    if (node == NULL)
        return REFUSE(plan, ERR_CONFLICT, "node %" PRIu64 " is not up", replica_id);
    if (node_record_is_damaged(node, shard))
        return REFUSE(plan, ERR_CONFLICT,
                      "the replica of shard %" PRIu32 " on node %" PRIu64
                      " is damaged: it is repaired by itself",
                      shard, replica_id);
    if (member_wishes_find(plan->wishes, replica_id) != NULL)
        return REFUSE(plan, ERR_CONFLICT,
                      "node %" PRIu64 " is drained or removed: it could not come back", replica_id);
    if (entry->record.owner == replica_id)
        return REFUSE(plan, ERR_CONFLICT,
                      "node %" PRIu64 " owns shard %" PRIu32
                      ": another owner is named as soon as a healthy one is up; repeat the call",
                      replica_id, shard);
    return check_others(plan, entry, shard, replica_id);
}

err member_plan_rebuild(const struct member_plan *plan, uint32_t shard, uint64_t replica_id,
                        struct shard_wish *ret_wish, enum rebuild_state *ret_state)
{
    const struct shard_entry *entry = shard_map_find(plan->map, shard);

    if (entry == NULL) {
        refusal_make_shard(plan->arena, plan->ret_detail, "shard", shard,
                           shard_map_shard_count(plan->map));
        return ERR_INVALID;
    }
    *ret_state = REBUILD_UNDER_WAY;
    if (plan->wishes->shards[shard] && plan->wishes->repairs[shard] == replica_id)
        return ERR_OK;
    struct shard_wish wish = wish_of(&entry->record);
    const struct node_record *node = shard_map_find_node(plan->map, replica_id);

    if (plan->wishes->shards[shard] || shard_change_is_open(&entry->record))
        return REFUSE(plan, ERR_CONFLICT, "the replicas of shard %" PRIu32 " change just now",
                      shard);
    if (!has(&wish, replica_id))
        return REFUSE(plan, ERR_INVALID, "node %" PRIu64 " holds no replica of shard %" PRIu32,
                      replica_id, shard);
    *ret_state = REBUILD_HEALTHY;
    if (node != NULL && node_record_may_own(node, shard))
        return ERR_OK;
    wish.repair = replica_id;
    wish.config = entry->record.config;
    *ret_wish = wish;
    *ret_state = REBUILD_ASKED;
    return check_rebuilt(plan, entry, shard, replica_id);
}

/* ---- rebalance ---- */
struct balance {
    const struct member_plan *plan;
    struct shard_wish *wishes; /* By shard. */
    bool *fixed;               /* By shard: it is not to be touched. */
    uint32_t shard_count;
    const struct node_record *nodes;
    uint32_t node_count;
    uint32_t held[CLUSTER_NODES_MAX];
};

static void count_held(struct balance *b)
{
    for (uint32_t n = 0; n < b->node_count; n++) {
        b->held[n] = 0;
        for (uint32_t s = 0; s < b->shard_count; s++)
            b->held[n] += has(&b->wishes[s], b->nodes[n].replica_id);
    }
}

static void carry_out(struct balance *b, uint32_t shard, uint32_t from, uint32_t to)
{
    replace(&b->wishes[shard], b->nodes[from].replica_id, b->nodes[to].replica_id);
    b->held[from]--;
    b->held[to]++;
}

/* Whether `to` may take the place; how many it would share its zone with, and how many the one
 * whose place it is shares it with now. */
static bool may_take(const struct balance *b, uint32_t shard, uint32_t from, uint32_t to,
                     uint32_t ret_shared[2])
{
    const struct shard_wish *wish = &b->wishes[shard];
    uint64_t from_id = b->nodes[from].replica_id;

    if (b->fixed[shard] || from == to || !has(wish, from_id) ||
        has(wish, b->nodes[to].replica_id) || !may_hold(b->plan, b->nodes[to].replica_id))
        return false;
    ret_shared[0] = sharing(b->plan, wish, from_id, b->nodes[from].zone);
    ret_shared[1] = sharing(b->plan, wish, from_id, b->nodes[to].zone);
    return true;
}

/* The node with the fewest replicas that would leave fewer of them in one zone. */
static bool separate_one(struct balance *b, uint32_t shard)
{
    for (uint32_t from = 0; from < b->node_count; from++) {
        uint32_t best = UINT32_MAX;

        for (uint32_t to = 0; to < b->node_count; to++) {
            uint32_t shared[2];

            if (may_take(b, shard, from, to, shared) && shared[1] < shared[0] &&
                (best == UINT32_MAX || b->held[to] < b->held[best]))
                best = to;
        }
        if (best == UINT32_MAX)
            continue;
        carry_out(b, shard, from, best);
        return true;
    }
    return false;
}

/* A replica from one who holds many to one who holds at least two fewer: the most uneven pair. */
static bool even_out_one(struct balance *b)
{
    uint32_t best[3] = { 0 };
    uint32_t most = 1;

    for (uint32_t s = 0; s < b->shard_count; s++) {
        for (uint32_t from = 0; from < b->node_count; from++) {
            if (!has(&b->wishes[s], b->nodes[from].replica_id))
                continue;
            for (uint32_t to = 0; to < b->node_count; to++) {
                uint32_t shared[2];

                if (b->held[from] <= b->held[to] + most || !may_take(b, s, from, to, shared) ||
                    shared[1] > shared[0])
                    continue;
                most = b->held[from] - b->held[to];
                memcpy(best, (uint32_t[]){ s, from, to }, sizeof best);
            }
        }
    }
    if (most > 1)
        carry_out(b, best[0], best[1], best[2]);
    return most > 1;
}

/* Every member is there, so that none is moved because its node restarts. */
static err check_all_live(const struct member_plan *plan)
{
    for (uint32_t i = 0; i < shard_map_shard_count(plan->map); i++) {
        const struct shard_entry *entry = shard_map_find(plan->map, i);

        if (entry == NULL)
            return REFUSE(plan, ERR_CONFLICT, "shard %" PRIu32 " is not placed yet", i);
        for (uint32_t k = 0; k < entry->record.member_count; k++) {
            if (shard_map_find_node(plan->map, entry->record.members[k]) == NULL)
                return REFUSE(plan, ERR_CONFLICT,
                              "node %" PRIu64 ", which holds shard %" PRIu32
                              ", is not up: bring it back or remove it first",
                              entry->record.members[k], i);
        }
    }
    return ERR_OK;
}

err member_plan_rebalance(const struct member_plan *plan, struct member_move **ret_moves,
                          uint32_t *ret_count)
{
    struct balance b = { .plan = plan, .shard_count = shard_map_shard_count(plan->map) };
    err e = check_all_live(plan);

    if (e != ERR_OK)
        return e;
    b.nodes = shard_map_nodes(plan->map, &b.node_count);
    b.wishes = arena_alloc(plan->arena, (b.shard_count + 1) * sizeof *b.wishes);
    b.fixed = arena_zalloc(plan->arena, b.shard_count + 1);
    for (uint32_t s = 0; s < b.shard_count; s++) {
        const struct shard_record *record = &shard_map_find(plan->map, s)->record;

        b.wishes[s] = wish_of(record);
        b.fixed[s] = plan->wishes->shards[s] || shard_change_is_open(record);
    }
    count_held(&b);
    for (uint32_t s = 0; s < b.shard_count; s++) {
        for (uint32_t i = 0; i < CLUSTER_MEMBERS_MAX && separate_one(&b, s); i++)
            ;
    }
    /* Each move lowers the sum of squares, so this ends. */
    while (even_out_one(&b))
        ;
    *ret_moves = arena_alloc(plan->arena, (b.shard_count + 1) * sizeof **ret_moves);
    *ret_count = 0;
    for (uint32_t s = 0; s < b.shard_count; s++) {
        const struct shard_record *record = &shard_map_find(plan->map, s)->record;

        if (memcmp(record->members, b.wishes[s].members, sizeof record->members) != 0)
            (*ret_moves)[(*ret_count)++] = (struct member_move){ s, b.wishes[s] };
    }
    return ERR_OK;
}
