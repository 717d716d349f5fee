/*
 * What an operator may ask of nodes and replicas (router/core/member_plan.h, docs/membership.md),
 * in random clusters: nodes up and down, zones, damage, wishes, changes under way.
 */
#include <stdio.h>
#include <string.h>

#include "idl/error_code.h"
#include "router/core/member_plan.h"
#include "runtime/base/check.h"
#include "runtime/cluster/shard_change.h"
#include "tests/sim/cores/rsim.h"

#define NODES   7u
#define SHARDS  8u
#define CLUSTER "sim"
#define NO_WISH 9

struct node {
    bool up, damaged;
    uint32_t zone;
    int wish; /* enum node_wish_kind, or NO_WISH. */
};

struct world {
    struct rsim *sim;
    struct shard_map *map;
    struct member_wishes *wishes;
    struct member_plan plan;
    struct node nodes[NODES + 1]; /* By replica id; 0: none. */
    struct shard_record shards[SHARDS];
    bool placed[SHARDS], wished[SHARDS];
    uint32_t factor;
    int64_t revision;
};

/* ---- making one ---- */

static void put(struct world *w, struct cluster_key key, struct buf *value)
{
    w->revision++;
    CHECK(shard_map_apply(w->map,
                          &(struct shard_map_event){ .key = cluster_key_slice(&key),
                                                     .value = buf_slice(value),
                                                     .create_revision = w->revision,
                                                     .mod_revision = w->revision },
                          NULL, NULL) == ERR_OK);
    buf_deinit(value);
}

static void node_make(struct world *w, uint64_t id)
{
    struct rsim *sim = w->sim;
    struct node *node = &w->nodes[id];
    struct node_record record = { .replica_id = id };
    struct buf value = { 0 };

    *node = (struct node){ .up = rsim_chance(sim, 88),
                           .damaged = rsim_chance(sim, 8),
                           .zone = (uint32_t)rsim_between(sim, 0, 3),
                           .wish = NO_WISH };
    if (rsim_chance(sim, 20)) {
        struct cluster_key key = cluster_key_node_wish(CLUSTER, id);
        struct node_wish wish = { rsim_chance(sim, 50) ? NODE_DRAIN : NODE_REMOVE };
        node->wish = (int)wish.kind;
        node_wish_encode(&wish, &value);
        member_wishes_take(w->wishes, CLUSTER, cluster_key_slice(&key), buf_slice(&value),
                           (int64_t)id);
        buf_deinit(&value);
    }
    if (!node->up)
        return;
    (void)snprintf(record.name, sizeof record.name, "node-%u", (unsigned)id);
    (void)snprintf(record.address, sizeof record.address, "127.0.0.1:%u", 7000 + (unsigned)id);
    (void)snprintf(record.peer_address, sizeof record.peer_address, "127.0.0.1:%u",
                   8000 + (unsigned)id);
    (void)snprintf(record.version, sizeof record.version, "sim");
    if (node->zone > 0)
        (void)snprintf(record.zone, sizeof record.zone, "z%u", node->zone);
    record.damaged_shards = node->damaged;
    node_record_encode(&record, &value);
    put(w, cluster_key_node(CLUSTER, id), &value);
}

static void shard_make(struct world *w, uint32_t number)
{
    struct rsim *sim = w->sim;
    struct shard_record *record = &w->shards[number];
    struct buf value = { 0 };
    uint64_t from = rsim_between(sim, 1, NODES);

    w->placed[number] = rsim_chance(sim, 97);
    w->wished[number] = rsim_chance(sim, 8);
    *record = (struct shard_record){ .generation = 1, .epoch = 1, .config = 1 };
    record->member_count = rsim_chance(sim, 85) ? w->factor : (uint32_t)rsim_between(sim, 1, 3);
    for (uint32_t i = 0; i < record->member_count; i++)
        record->members[i] = (from + i * (rsim_chance(sim, 50) ? 1 : 0) + i) % NODES + 1;
    for (uint32_t i = 0; i < record->member_count; i++) { /* Each once. */
        while (replica_is_among(record->members, i, record->members[i]))
            record->members[i] = record->members[i] % NODES + 1;
    }
    record->owner = record->members[rsim_between(sim, 0, record->member_count - 1)];
    if (rsim_chance(sim, 10)) {
        uint64_t learner = rsim_between(sim, 1, NODES);
        if (!replica_is_among(record->members, record->member_count, learner))
            record->learner = learner;
    }
    if (w->wished[number]) {
        struct cluster_key key = cluster_key_shard_wish(CLUSTER, number);
        struct shard_wish wish = { .member_count = 1, .members = { 1 } };
        shard_wish_encode(&wish, &value);
        member_wishes_take(w->wishes, CLUSTER, cluster_key_slice(&key), buf_slice(&value), 1);
        buf_deinit(&value);
    }
    if (!w->placed[number])
        return;
    shard_record_encode(record, &value);
    put(w, cluster_key_shard(CLUSTER, number), &value);
}

static void world_make(struct world *w, struct rsim *sim)
{
    struct cluster_record cluster = { .cluster_id = "01890a5d-ac96-774b-bcce-b302099a8057",
                                      .generation = 1,
                                      .shard_count = SHARDS,
                                      .created_by = "sim" };
    struct buf value = { 0 };

    *w = (struct world){ .sim = sim, .map = shard_map_new(CLUSTER) };
    w->wishes = arena_zalloc(&sim->arena, sizeof *w->wishes);
    w->plan = (struct member_plan){ w->map, w->wishes, &sim->arena, &sim->detail };
    w->factor = cluster.replication_factor = (uint32_t)rsim_between(sim, 1, 3);
    cluster_record_encode(&cluster, &value);
    put(w, cluster_key_cluster(CLUSTER), &value);
    for (uint64_t id = 1; id <= NODES; id++)
        node_make(w, id);
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_make(w, i);
}

/* ---- what is so ---- */

static bool stays(const struct world *w, uint64_t id)
{
    return w->nodes[id].up && w->nodes[id].wish == NO_WISH;
}

static bool takes(const struct world *w, uint64_t id)
{
    return stays(w, id) && !w->nodes[id].damaged;
}

static bool member(const struct shard_record *record, uint64_t id)
{
    return replica_is_among(record->members, record->member_count, id);
}

/* How many of the others share the node's zone. A node that is down is in none that is known. */
static uint32_t crowd(const struct world *w, const uint64_t *members, uint32_t count,
                      const uint64_t ids[2])
{
    uint32_t shared = 0;

    for (uint32_t i = 0; i < count; i++)
        shared += members[i] != ids[0] && w->nodes[members[i]].up && w->nodes[ids[1]].up &&
                  w->nodes[members[i]].zone == w->nodes[ids[1]].zone;
    return shared;
}

static void said(struct rsim *sim, err e, err wanted, const char *what)
{
    PROMISE(sim, e == wanted, "%s: %d, not %d: %s", what, (int)e, (int)wanted,
            e != ERR_OK ? sim->detail.message : "allowed");
    if (e != ERR_OK)
        rsim_refused(sim, CODE(INVALID_ARGUMENT), NULL);
}

/* ---- each question ---- */

static void names_check(struct world *w)
{
    struct rsim *sim = w->sim;
    uint64_t id = rsim_between(sim, 0, NODES + 2), found = 0;
    bool named = rsim_chance(sim, 50), known = false;
    char text[32];
    uint32_t owned = 0, held = 0, told_owned, told_held;

    (void)snprintf(text, sizeof text, named ? "node-%u" : "%u", (unsigned)id);
    for (uint32_t i = 0; i < SHARDS && id <= NODES; i++) {
        owned += w->placed[i] && w->shards[i].owner == id;
        held += w->placed[i] && (member(&w->shards[i], id) || w->shards[i].learner == id);
    }
    if (id >= 1 && id <= NODES)
        known = w->nodes[id].up || (!named && (held > 0 || w->nodes[id].wish != NO_WISH));
    err e = member_plan_node(&w->plan, "node", text, &found);
    said(sim, e, known ? ERR_OK : ERR_INVALID, text);
    if (e != ERR_OK) {
        rsim_refused(sim, CODE(INVALID_ARGUMENT), "node");
        return;
    }
    PROMISE(sim, found == id, "%s is node %llu", text, (unsigned long long)found);
    member_plan_count(&w->plan, id, &told_owned, &told_held);
    PROMISE(sim, told_owned == owned && told_held == held, "node %s owns %u and holds %u", text,
            told_owned, told_held);
    const struct member_wish *wish = member_wishes_find(w->wishes, id);
    PROMISE(sim, (wish != NULL) == (w->nodes[id].wish != NO_WISH), "a wish, or none");
    if (wish != NULL)
        PROMISE(sim, (int)wish->wish.kind == w->nodes[id].wish && wish->mod_revision == (int64_t)id,
                "another wish");
}

static void drain_check(struct world *w, uint64_t id)
{
    bool last = false;

    for (uint32_t i = 0; i < SHARDS; i++) {
        uint32_t others = 0;
        for (uint32_t k = 0; k < w->shards[i].member_count; k++)
            others += w->shards[i].members[k] != id && stays(w, w->shards[i].members[k]);
        last |= w->placed[i] && member(&w->shards[i], id) && others == 0;
    }
    bool refused = last || w->nodes[id].wish != NO_WISH;
    said(w->sim, member_plan_drain(&w->plan, id), refused ? ERR_CONFLICT : ERR_OK, "drain");
    said(w->sim, member_plan_undrain(&w->plan, id),
         w->nodes[id].wish == NO_WISH ? ERR_CONFLICT : ERR_OK, "undrain");
    w->sim->counts.drains_refused += last;
}

static void remove_check(struct world *w, uint64_t id)
{
    uint32_t left = 0;
    bool stranded = false;

    for (uint64_t other = 1; other <= NODES; other++)
        left += other != id && w->nodes[other].up && !w->nodes[other].damaged &&
                w->nodes[other].wish != NODE_REMOVE;
    for (uint32_t i = 0; i < SHARDS; i++) {
        const struct shard_record *record = &w->shards[i];
        uint32_t live = 0;
        for (uint32_t k = 0; k < record->member_count; k++)
            live += record->members[k] != id && w->nodes[record->members[k]].up;
        /* Of one or two replicas the one that leaves helps, while it lives. */
        bool helps =
            record->member_count <= 2 && live + 1 >= record->member_count && w->nodes[id].up;
        stranded |=
            w->placed[i] && member(record, id) && 2 * live <= record->member_count && !helps;
    }
    bool refused = w->nodes[id].wish == NODE_REMOVE || left < w->factor || stranded;
    said(w->sim, member_plan_remove(&w->plan, id), refused ? ERR_CONFLICT : ERR_OK, "remove");
    w->sim->counts.removals_refused += stranded;
}

static err move_wanted(struct world *w, uint32_t shard, uint64_t from, uint64_t to)
{
    const struct shard_record *record = &w->shards[shard];
    uint32_t least = UINT32_MAX;

    if (shard >= SHARDS || !w->placed[shard])
        return ERR_INVALID;
    if (w->wished[shard] || record->learner != 0)
        return ERR_CONFLICT;
    if (!member(record, from) || member(record, to))
        return ERR_INVALID;
    if (!takes(w, to))
        return ERR_CONFLICT;
    for (uint64_t other = 1; other <= NODES; other++) {
        uint32_t shared =
            crowd(w, record->members, record->member_count, (uint64_t[]){ from, other });
        if (takes(w, other) && !member(record, other) && shared < least)
            least = shared;
    }
    if (crowd(w, record->members, record->member_count, (uint64_t[]){ from, to }) > least) {
        w->sim->counts.zones_respected++;
        return ERR_CONFLICT;
    }
    return ERR_OK;
}

static void move_check(struct world *w)
{
    struct rsim *sim = w->sim;
    uint32_t shard = (uint32_t)rsim_between(sim, 0, rsim_chance(sim, 5) ? SHARDS : SHARDS - 1);
    uint64_t from = rsim_between(sim, 1, NODES), to = rsim_between(sim, 1, NODES);
    struct shard_wish wish = { .member_count = 0 };

    if (shard < SHARDS && rsim_chance(sim, 70))
        from = w->shards[shard].members[rsim_between(sim, 0, w->shards[shard].member_count - 1)];
    err wanted = move_wanted(w, shard, from, to);
    said(sim, member_plan_move(&w->plan, shard, from, to, &wish), wanted, "move");
    sim->counts.moves_refused += wanted != ERR_OK;
    if (wanted != ERR_OK)
        return;
    PROMISE(sim, wish.member_count == w->shards[shard].member_count, "another number of replicas");
    for (uint32_t i = 0; i < wish.member_count; i++) {
        uint64_t was = w->shards[shard].members[i];
        PROMISE(sim, wish.members[i] == (was == from ? to : was), "another replica moves");
    }
    sim->counts.moves_allowed++;
}

/* ---- rebalance ---- */

static bool movable(const struct world *w, uint32_t shard)
{
    return !w->wished[shard] && w->shards[shard].learner == 0;
}

static void count_held(const struct world *w, uint64_t members[SHARDS][CLUSTER_MEMBERS_MAX],
                       uint32_t held[NODES + 1])
{
    memset(held, 0, (NODES + 1) * sizeof *held);
    for (uint32_t i = 0; i < SHARDS; i++) {
        for (uint32_t k = 0; k < w->shards[i].member_count; k++)
            held[members[i][k]]++;
    }
}

/* At the end no move would bring two nodes nearer to each other, or separate two replicas. */
static void balanced_check(struct world *w, uint64_t members[SHARDS][CLUSTER_MEMBERS_MAX])
{
    uint32_t held[NODES + 1];

    count_held(w, members, held);
    for (uint32_t i = 0; i < SHARDS; i++) {
        uint32_t count = w->shards[i].member_count;
        for (uint32_t k = 0; k < count && movable(w, i); k++) {
            uint64_t from = members[i][k];
            uint32_t now = crowd(w, members[i], count, (uint64_t[]){ from, from });
            for (uint64_t to = 1; to <= NODES; to++) {
                if (!takes(w, to) || replica_is_among(members[i], count, to))
                    continue;
                uint32_t then = crowd(w, members[i], count, (uint64_t[]){ from, to });
                PROMISE(w->sim, then >= now, "shard %u: a move would separate two replicas", i);
                PROMISE(w->sim, then > now || held[from] < held[to] + 2,
                        "shard %u: a move from %llu (%u) to %llu (%u) would even out", i,
                        (unsigned long long)from, held[from], (unsigned long long)to, held[to]);
            }
        }
    }
}

static uint32_t squares(const struct world *w, uint64_t members[SHARDS][CLUSTER_MEMBERS_MAX])
{
    uint32_t held[NODES + 1], sum = 0;

    count_held(w, members, held);
    for (uint64_t id = 1; id <= NODES; id++)
        sum += held[id] * held[id];
    return sum;
}

static uint32_t crowds(const struct world *w, uint32_t shard, const uint64_t *members)
{
    uint32_t sum = 0;

    for (uint32_t k = 0; k < w->shards[shard].member_count; k++)
        sum += crowd(w, members, w->shards[shard].member_count,
                     (uint64_t[]){ members[k], members[k] });
    return sum;
}

static void rebalance_check(struct world *w)
{
    struct rsim *sim = w->sim;
    struct member_move *moves = NULL;
    uint64_t members[SHARDS][CLUSTER_MEMBERS_MAX], was[SHARDS][CLUSTER_MEMBERS_MAX];
    uint32_t count = 0;
    bool refused = false, separated = false;

    for (uint32_t i = 0; i < SHARDS; i++) {
        refused |= !w->placed[i];
        for (uint32_t k = 0; k < w->shards[i].member_count; k++)
            refused |= !w->nodes[w->shards[i].members[k]].up;
        memcpy(members[i], w->shards[i].members, sizeof members[i]);
        memcpy(was[i], w->shards[i].members, sizeof was[i]);
    }
    said(sim, member_plan_rebalance(&w->plan, &moves, &count), refused ? ERR_CONFLICT : ERR_OK,
         "rebalance");
    if (refused)
        return;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t shard = moves[i].shard, same = 0;

        PROMISE(sim, shard < SHARDS && movable(w, shard), "shard %u changes just now", shard);
        PROMISE(sim, i == 0 || shard > moves[i - 1].shard, "a shard is moved twice");
        PROMISE(sim, moves[i].wish.member_count == w->shards[shard].member_count,
                "another number of replicas");
        memcpy(members[shard], moves[i].wish.members, sizeof members[shard]);
        for (uint32_t k = 0; k < moves[i].wish.member_count; k++) {
            uint64_t id = members[shard][k];
            bool old = member(&w->shards[shard], id);
            same += old;
            PROMISE(sim, old || takes(w, id), "a replica comes to node %llu, which may take none",
                    (unsigned long long)id);
            PROMISE(sim, !replica_is_among(members[shard], k, id), "a node holds a shard twice");
        }
        PROMISE(sim, same < moves[i].wish.member_count, "a move that moves nothing");
        PROMISE(sim, crowds(w, shard, members[shard]) <= crowds(w, shard, was[shard]),
                "more replicas share a zone");
        separated |= crowds(w, shard, members[shard]) < crowds(w, shard, was[shard]);
    }
    balanced_check(w, members);
    PROMISE(sim, separated || count == 0 || squares(w, members) < squares(w, was),
            "moves that make it no better");
    sim->counts.rebalanced += count > 0;
}

static void one_world(struct rsim *sim)
{
    struct world *w = arena_alloc(&sim->arena, sizeof *w);

    world_make(w, sim);
    for (uint32_t i = 0; i < 6; i++) {
        names_check(w);
        move_check(w);
    }
    for (uint64_t id = 1; id <= NODES; id++) {
        drain_check(w, id);
        remove_check(w, id);
    }
    rebalance_check(w);
    shard_map_free(w->map);
    arena_reset(&sim->arena);
}

void room_members(struct rsim *sim)
{
    for (uint32_t i = 0; i < 3; i++)
        one_world(sim);
}
