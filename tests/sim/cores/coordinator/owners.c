/*
 * A coordinator, an etcd of a few keys and nodes that come and go (coordinator/core/coord.h, its
 * ownership, spread, change and repair units). Each record that it writes is judged before etcd
 * takes it, from what the room itself did to the nodes: why an owner may lose a shard, who may get
 * it, how often, and how many shards change their members at a time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/world.h"
#include "runtime/base/check.h"
#include "runtime/cluster/shard_change.h"
#include "tests/sim/cores/rsim.h"

#define NODES       5u
#define SHARDS      8u
#define FACTOR      3u
#define VALID_MS    1500u /* A report counts for so long (report_valid_ms). */
#define CALM_MS     5000u
#define CLUSTER     "test"
#define PERIOD_MS   200u
#define DRAIN_MS    20u
#define CHANGES_MAX 4u
#define LAG_MAX     256u
#define UP_MS       10000u
#define SHUN_MS     60000u

struct judged_node {
    bool up;
    uint64_t life;    /* started_at_ms; rises with each. */
    uint64_t born_ms; /* Of this life. */
    uint64_t full_ms; /* It said so last; 0: never. */
    uint64_t shun_ms; /* Until then it is to own nothing that another can. */
    uint32_t zone;
    int wish; /* -1: none. */
};

struct judged_shard {
    struct shard_record record; /* Epoch 0: there is none. */
    uint64_t written_ms;
    uint64_t calm_ms;               /* Under this coordinator it is left alone until then. */
    uint64_t reports_ms[NODES + 1]; /* Of each node, on this epoch; 0: none. */
    bool wished;
    bool begins; /* A change of its members is on its way to etcd. */
};

struct court {
    struct rsim *sim;
    struct world *world;
    struct judged_node nodes[NODES + 1];
    struct judged_shard shards[SHARDS];
    uint64_t handed_ms, drained_ms, exchanged_ms; /* Last; 0: never. */
    uint32_t exchanges;                           /* At exchanged_ms. */
    bool busy;         /* Shards are given loads: they may be exchanged. */
    uint64_t fault_ms; /* Since then owners answer as they do. */
    uint64_t ticket;   /* Of the last transaction that was judged. */
};

static uint64_t now_of(const struct court *c)
{
    return c->world->now_ms;
}

static bool member(const struct shard_record *record, uint64_t id)
{
    return replica_is_among(record->members, record->member_count, id) ||
           replica_is_among(record->new_members, record->new_member_count, id);
}

static bool is_full(const struct court *c, uint64_t id)
{
    return c->nodes[id].full_ms != 0 && now_of(c) < c->nodes[id].full_ms + VALID_MS;
}

static uint32_t owned_by(const struct court *c, uint64_t id)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SHARDS; i++)
        count += c->shards[i].record.epoch > 0 && c->shards[i].record.owner == id;
    return count;
}

static bool reported(const struct court *c, const struct judged_shard *shard, uint64_t id)
{
    return shard->reports_ms[id] != 0 && now_of(c) - shard->reports_ms[id] <= VALID_MS;
}

static bool majority_reported(const struct court *c, const struct judged_shard *shard,
                              const uint64_t *ids, uint32_t count)
{
    uint32_t heard = 0;

    for (uint32_t i = 0; i < count; i++)
        heard += reported(c, shard, ids[i]);
    return 2 * heard > count;
}

/* ---- why an owner may lose a shard ---- */

static bool is_claimed(const struct court *c, const struct judged_shard *shard)
{
    const struct shard_record *r = &shard->record;

    return now_of(c) >= shard->calm_ms &&
           majority_reported(c, shard, r->members, r->member_count) &&
           (r->phase == SHARD_STABLE ||
            majority_reported(c, shard, r->new_members, r->new_member_count));
}

/* It is to own nothing that another can own. */
static bool is_avoided(const struct court *c, uint64_t id)
{
    return c->nodes[id].wish >= 0 || is_full(c, id) || now_of(c) < c->nodes[id].shun_ms;
}

static bool is_uneven(const struct court *c)
{
    uint32_t least = UINT32_MAX, most = 0;

    for (uint64_t id = 1; id <= NODES; id++) {
        uint32_t owned = owned_by(c, id);
        if (c->nodes[id].up && is_avoided(c, id) && owned > 0)
            return true;
        if (!c->nodes[id].up || is_avoided(c, id))
            continue;
        least = owned < least ? owned : least;
        most = owned > most ? owned : most;
    }
    return most >= least + 2;
}

/* Ownership is spread a shard at a time, from a node that owns more, or is to own none. */
static bool is_spread(struct court *c, const struct shard_record *was,
                      const struct shard_record *next)
{
    uint32_t from = owned_by(c, was->owner), to = owned_by(c, next->owner);
    /* Of a chain of moves one may go to a node that owns as many, and passes another one on. */
    bool helps = from > to || (from == to && is_uneven(c));

    if ((!helps && !is_avoided(c, was->owner)) || is_avoided(c, next->owner) ||
        (c->handed_ms != 0 && now_of(c) - c->handed_ms < PERIOD_MS))
        return false;
    for (uint64_t id = 1; id <= NODES; id++) {
        if (c->nodes[id].up && now_of(c) - c->nodes[id].born_ms < UP_MS)
            return false; /* Some node is too young. */
    }
    c->handed_ms = now_of(c);
    c->sim->counts.owners_spread++;
    return true;
}

/* Two shards at a time, for what they have to do, and not before the next ten seconds; neither goes
 * to a node that is to own none. */
static bool is_exchanged(struct court *c, const struct shard_record *next)
{
    if (!c->busy || is_avoided(c, next->owner))
        return false;
    if (c->exchanged_ms != now_of(c)) {
        if (c->exchanged_ms != 0 && now_of(c) - c->exchanged_ms < 10000)
            return false;
        c->exchanged_ms = now_of(c);
        c->exchanges = 0;
    }
    return ++c->exchanges <= 2;
}

static bool is_drained(struct court *c, const struct shard_record *was,
                       const struct shard_record *next)
{
    if (c->nodes[was->owner].wish < 0 || c->nodes[next->owner].wish >= 0 || is_full(c, next->owner))
        return false;
    if (c->drained_ms != 0 && now_of(c) - c->drained_ms < DRAIN_MS)
        return false; /* That is one too many, but for ownership being spread. */
    c->drained_ms = now_of(c);
    c->sim->counts.owners_drained++;
    return true;
}

/* The reporter that has most of the log goes first; of those without a report, any. */
static void claimant_check(struct court *c, uint32_t number, const struct shard_record *next)
{
    PROMISE(c->sim, reported(c, &c->shards[number], next->owner),
            "shard %u is given to %llu, which did not report its owner", number,
            (unsigned long long)next->owner);
    c->nodes[c->shards[number].record.owner].shun_ms = now_of(c) + SHUN_MS;
    c->sim->counts.owners_claimed++;
}

static void owner_judged(struct court *c, uint32_t number, const struct shard_record *next)
{
    struct judged_shard *shard = &c->shards[number];
    const struct shard_record *was = &shard->record;
    const struct judged_node *owner = &c->nodes[was->owner];

    PROMISE(c->sim, c->nodes[next->owner].up, "shard %u is given to node %llu, which is down",
            number, (unsigned long long)next->owner);
    PROMISE(c->sim, member(was, next->owner), "shard %u is given to a stranger", number);
    if (next->owner == was->owner) { /* It restarted since it was named. */
        PROMISE(c->sim, owner->born_ms >= shard->written_ms,
                "shard %u: its owner is named again for nothing", number);
        c->sim->counts.owners_restarted++;
    } else if (!owner->up) {
        for (uint32_t i = 0; i < was->member_count; i++) {
            uint64_t other = was->members[i];
            bool better = other != was->owner && c->nodes[other].up && !is_full(c, other);
            PROMISE(c->sim, !is_full(c, next->owner) || !better,
                    "shard %u is given to node %llu, which is full", number,
                    (unsigned long long)next->owner);
        }
        c->sim->counts.owners_failed_over++;
    } else if (is_claimed(c, shard)) {
        claimant_check(c, number, next);
    } else if (is_full(c, was->owner) && !is_full(c, next->owner) && now_of(c) >= shard->calm_ms) {
        c->sim->counts.owners_relieved++;
    } else if (!is_drained(c, was, next) && !is_spread(c, was, next) && !is_exchanged(c, next)) {
        rsim_broken(c->sim, "shard %u: the healthy owner %llu (%u shards) is deposed for %llu (%u)",
                    number, (unsigned long long)was->owner, owned_by(c, was->owner),
                    (unsigned long long)next->owner, owned_by(c, next->owner));
    }
}

/* ---- members ---- */

static uint32_t open_changes(const struct court *c)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < SHARDS; i++)
        open += c->shards[i].record.epoch > 0 &&
                (c->shards[i].begins || shard_change_is_open(&c->shards[i].record));
    return open;
}

static bool majority_up(const struct court *c, const uint64_t *ids, uint32_t count)
{
    uint32_t up = 0;

    for (uint32_t i = 0; i < count; i++)
        up += c->nodes[ids[i]].up;
    return 2 * up > count;
}

static uint32_t zone_mates(const struct court *c, const struct shard_record *was, uint64_t removing,
                           uint64_t id)
{
    uint32_t mates = 0;

    for (uint32_t i = 0; i < was->member_count; i++)
        mates += was->members[i] != removing && c->nodes[was->members[i]].up &&
                 c->nodes[was->members[i]].zone == c->nodes[id].zone;
    return mates;
}

/* Of those that may come, one whose zone the others use least. */
static void comer_judged(struct court *c, uint32_t number, uint64_t comer, uint64_t removing)
{
    const struct shard_record *was = &c->shards[number].record;

    PROMISE(c->sim, c->nodes[comer].up && c->nodes[comer].wish < 0 && !is_full(c, comer),
            "shard %u: node %llu comes, which is down, leaving or full", number,
            (unsigned long long)comer);
    if (c->shards[number].wished) /* The operator chose. */
        return;
    for (uint64_t id = 1; id <= NODES; id++) {
        if (!c->nodes[id].up || c->nodes[id].wish >= 0 || is_full(c, id) || member(was, id) ||
            id == removing)
            continue;
        PROMISE(c->sim, zone_mates(c, was, removing, id) >= zone_mates(c, was, removing, comer),
                "shard %u: node %llu comes, and the zone of %llu has fewer replicas", number,
                (unsigned long long)comer, (unsigned long long)id);
    }
    c->sim->counts.comers_zoned++;
}

static bool same_members(const struct shard_record *a, const struct shard_record *b)
{
    return a->member_count == b->member_count && a->new_member_count == b->new_member_count &&
           memcmp(a->members, b->members, a->member_count * sizeof *a->members) == 0 &&
           memcmp(a->new_members, b->new_members, a->new_member_count * sizeof *a->members) == 0 &&
           a->learner == b->learner && a->leaving == b->leaving;
}

static void begun_judged(struct court *c, uint32_t number, const struct shard_record *next)
{
    const struct shard_record *was = &c->shards[number].record;

    PROMISE(c->sim, open_changes(c) < CHANGES_MAX, "%u shards change members at a time",
            open_changes(c) + 1);
    if (next->leaving != 0 && !c->shards[number].wished)
        PROMISE(c->sim, c->nodes[next->leaving].wish == NODE_REMOVE,
                "shard %u: node %llu, which is not removed, is replaced", number,
                (unsigned long long)next->leaving);
    if (next->learner != 0)
        comer_judged(c, number, next->learner, next->leaving);
    PROMISE(c->sim, next->owner == was->owner, "shard %u: a change begins with another owner",
            number);
    c->sim->counts.changes_begun++;
}

static bool leaves_or_is_full(const struct court *c, uint64_t id)
{
    return c->nodes[id].wish >= 0 || is_full(c, id);
}

/* With a change its shard's owner may go. The next one does not leave and is not full, if another
 * member can own it. */
static void heir_judged(struct court *c, uint32_t number, const struct shard_record *next)
{
    uint64_t better = 0;

    for (uint32_t i = 0; i < next->member_count; i++) {
        uint64_t id = next->members[i];
        if (c->nodes[id].up && !is_avoided(c, id))
            better = id;
    }
    PROMISE(c->sim,
            next->owner == c->shards[number].record.owner || better == 0 ||
                !leaves_or_is_full(c, next->owner),
            "shard %u: a change gives it to node %llu, which leaves or is full, and not to %llu",
            number, (unsigned long long)next->owner, (unsigned long long)better);
}

static void members_judged(struct court *c, uint32_t number, const struct shard_record *next)
{
    const struct shard_record *was = &c->shards[number].record;
    struct rsim *sim = c->sim;
    /* What owners said of this record, they said as they do now. */
    bool said = c->fault_ms < c->shards[number].written_ms;

    if (!shard_change_is_open(was)) {
        begun_judged(c, number, next);
    } else if (was->learner != 0 && next->phase == SHARD_JOINT) {
        PROMISE(sim,
                majority_up(c, next->members, next->member_count) &&
                    majority_up(c, next->new_members, next->new_member_count),
                "shard %u: a joint phase begins without both majorities", number);
        PROMISE(sim, !said || c->world->learner_lag <= LAG_MAX,
                "shard %u: a learner that lags by %llu entries joins", number,
                (unsigned long long)c->world->learner_lag);
        PROMISE(sim, next->config == was->config + 1, "shard %u: config %llu after %llu", number,
                (unsigned long long)next->config, (unsigned long long)was->config);
        PROMISE(sim, !said || !c->world->unstarted, "shard %u: joined before the owner began",
                number);
    } else if (next->phase == SHARD_STABLE && next->learner == 0 &&
               next->member_count == was->new_member_count &&
               memcmp(next->members, was->new_members,
                      next->member_count * sizeof *next->members) == 0) {
        PROMISE(sim, !said || !c->world->unstarted, "shard %u: left before the owner began",
                number);
        sim->counts.changes_done++;
    } else {
        PROMISE(sim,
                next->phase == SHARD_STABLE && next->learner == 0 &&
                    next->member_count == was->member_count &&
                    memcmp(next->members, was->members, was->member_count * sizeof *was->members) ==
                        0,
                "shard %u: a change that is neither carried out nor given up", number);
        sim->counts.changes_aborted++;
    }
    PROMISE(sim, next->owner == was->owner || !c->nodes[was->owner].up || member(was, next->owner),
            "shard %u: a change gives it to a stranger", number);
    if (!shard_change_is_open(next))
        heir_judged(c, number, next);
}

static void placed_judged(struct court *c, const struct shard_record *next)
{
    uint32_t zones = 0, used = 0;

    PROMISE(c->sim, next->epoch == 1 && next->config == 1 && next->member_count == FACTOR,
            "placed with %u replicas", next->member_count);
    for (uint32_t zone = 0; zone < 4; zone++) {
        bool there = false, here = false;
        for (uint64_t id = 1; id <= NODES; id++) {
            there |= c->nodes[id].up && c->nodes[id].zone == zone;
            here |= member(next, id) && c->nodes[id].zone == zone;
        }
        zones += there;
        used += here;
    }
    PROMISE(c->sim, used == (zones < FACTOR ? zones : FACTOR), "placed in %u zones of %u", used,
            zones);
    for (uint32_t i = 0; i < next->member_count; i++)
        PROMISE(c->sim, c->nodes[next->members[i]].up, "placed on a node that is down");
}

/* When it is decided: a transaction whose answer was lost is repeated as it was. */
static void shard_judged(struct court *c, uint32_t number, const struct coord_write *write)
{
    struct judged_shard *shard = &c->shards[number];
    struct shard_record next;

    PROMISE(c->sim, !write->remove && shard_record_decode(write->value, &next, NULL) == ERR_OK,
            "shard %u loses its record", number);
    if (shard->record.epoch == 0) {
        placed_judged(c, &next);
    } else {
        PROMISE(c->sim, next.epoch == shard->record.epoch + 1, "shard %u: epoch %llu after %llu",
                number, (unsigned long long)next.epoch, (unsigned long long)shard->record.epoch);
        PROMISE(c->sim, next.config >= shard->record.config, "shard %u: config goes back", number);
        if (same_members(&shard->record, &next) && next.config == shard->record.config)
            owner_judged(c, number, &next);
        else
            members_judged(c, number, &next);
    }
    shard->begins = !shard_change_is_open(&shard->record) && shard_change_is_open(&next);
}

static void sent(void *user, const struct coord_txn *txn)
{
    struct court *c = user;

    if (txn->ticket <= c->ticket)
        return;
    c->ticket = txn->ticket;
    for (uint32_t i = 0; i < txn->write_count; i++) {
        const struct coord_write *write = &txn->writes[i];
        struct cluster_key_parts parts = cluster_key_parse(CLUSTER, write->key);

        if (parts.kind == CLUSTER_KEY_SHARD &&
            world_revision_of(c->world, write->key) == write->mod_revision)
            shard_judged(c, parts.shard, write);
    }
}

static void wrote_shard(struct court *c, uint32_t number, const struct coord_write *write)
{
    struct judged_shard *shard = &c->shards[number];

    CHECK(shard_record_decode(write->value, &shard->record, NULL) == ERR_OK);
    shard->written_ms = now_of(c);
    shard->calm_ms = now_of(c) + CALM_MS;
    shard->begins = false;
    memset(shard->reports_ms, 0, sizeof shard->reports_ms);
}

static void wrote(void *user, const struct coord_write *write)
{
    struct court *c = user;
    struct cluster_key_parts parts = cluster_key_parse(CLUSTER, write->key);

    if (parts.kind == CLUSTER_KEY_SHARD)
        wrote_shard(c, parts.shard, write);
    if (parts.kind == CLUSTER_KEY_SHARD_WISH) {
        PROMISE(c->sim, write->remove, "a wish is made for no damage");
        c->shards[parts.shard].wished = false;
    }
}

/* ---- what happens ---- */

static void node_up(struct court *c, uint64_t id)
{
    struct judged_node *node = &c->nodes[id];
    char zone[16] = "";

    node->up = true;
    node->life++;
    node->born_ms = now_of(c);
    node->full_ms = node->shun_ms = 0;
    if (node->zone > 0)
        (void)snprintf(zone, sizeof zone, "z%u", node->zone);
    world_node_up_in(c->world, id, node->life, zone);
}

static void node_turn(struct court *c, uint64_t id)
{
    uint32_t up = 0;

    for (uint64_t other = 1; other <= NODES; other++)
        up += c->nodes[other].up;
    if (!c->nodes[id].up) {
        node_up(c, id);
    } else if (up > 3) {
        c->nodes[id].up = false;
        world_node_down(c->world, id);
        if (rsim_chance(c->sim, 40)) /* It restarts at once. */
            node_up(c, id);
    }
}

static void wish_turn(struct court *c, uint64_t id)
{
    struct judged_node *node = &c->nodes[id];
    uint32_t leaving = 0;

    for (uint64_t other = 1; other <= NODES; other++)
        leaving += c->nodes[other].wish >= 0;
    if (node->wish == NODE_DRAIN) {
        node->wish = -1;
        world_unwish_node(c->world, id);
    } else if (node->wish < 0 && leaving < 2) {
        node->wish = rsim_chance(c->sim, 70) ? NODE_DRAIN : NODE_REMOVE;
        world_wish_node(c->world, id, (enum node_wish_kind)node->wish);
    }
}

static void full_turn(struct court *c, uint64_t id)
{
    Holdfast__Internal__V1__ReportOwnerRequest report =
        HOLDFAST__INTERNAL__V1__REPORT_OWNER_REQUEST__INIT;

    if (!c->nodes[id].up)
        return;
    report.reporter = report.owner = id;
    report.reason = text_lend("full");
    c->nodes[id].full_ms = now_of(c);
    world_step(c->world, (struct coord_event){ .type = COORD_REPORT, .report = &report });
}

/* Replicas say that an owner is silent; some too early, some on an epoch of before. */
static void report_turn(struct court *c)
{
    uint32_t number = (uint32_t)rsim_between(c->sim, 0, SHARDS - 1);
    struct judged_shard *shard = &c->shards[number];
    uint64_t owner = shard->record.owner;
    bool closed = rsim_chance(c->sim, 50);
    uint32_t enough = closed ? c->world->limits.claim_closed_ms : c->world->limits.claim_silent_ms;

    for (uint32_t i = 0; i < shard->record.member_count; i++) {
        uint64_t id = shard->record.members[i];
        uint64_t epoch = shard->record.epoch;

        if (!c->nodes[id].up || rsim_chance(c->sim, 30) || shard->record.owner != owner)
            continue;
        c->world->since_ms = (uint32_t)rsim_about(c->sim, enough);
        if (id != owner && c->world->since_ms >= enough)
            shard->reports_ms[id] = now_of(c);
        world_report(c->world, id, number, closed ? "closed" : "silent",
                     rsim_between(c->sim, 1, 9));
        if (shard->record.epoch != epoch) /* It was taken at once. */
            break;
    }
    c->world->since_ms = 0;
}

static void move_turn(struct court *c)
{
    uint32_t number = (uint32_t)rsim_between(c->sim, 0, SHARDS - 1);
    struct judged_shard *shard = &c->shards[number];
    struct shard_wish wish = { .member_count = shard->record.member_count };
    uint64_t to = rsim_between(c->sim, 1, NODES);

    if (shard->wished || shard_change_is_open(&shard->record) || member(&shard->record, to))
        return;
    memcpy(wish.members, shard->record.members, sizeof wish.members);
    wish.members[rsim_between(c->sim, 0, wish.member_count - 1)] = to;
    shard->wished = true;
    world_wish_shard(c->world, number, &wish);
}

/* Another coordinator takes over: throttles begin again. */
static void takeover_turn(struct court *c)
{
    world_replace_coordinator(c->world);
    c->handed_ms = c->drained_ms = c->exchanged_ms = 0;
    for (uint32_t i = 0; i < SHARDS; i++) {
        c->shards[i].begins = false;
        c->shards[i].calm_ms = 0;
        memset(c->shards[i].reports_ms, 0, sizeof c->shards[i].reports_ms);
    }
    for (uint64_t id = 1; id <= NODES; id++)
        c->nodes[id].full_ms = c->nodes[id].shun_ms = 0;
    c->ticket = 0; /* Its own begin again. */
    world_elect(c->world);
}

static void fault_turn(struct court *c)
{
    struct world *world = c->world;

    c->fault_ms = now_of(c);
    world->fault = (enum world_fault)rsim_between(c->sim, 0, 2);
    world->deaf_node = rsim_chance(c->sim, 30) ? rsim_between(c->sim, 1, NODES) : 0;
    world->unstarted = rsim_chance(c->sim, 20);
    world->learner_lag = rsim_chance(c->sim, 30) ? rsim_about(c->sim, LAG_MAX) : 0;
}

static void turn(struct court *c)
{
    uint64_t what = rsim_between(c->sim, 0, 99);
    uint64_t id = rsim_between(c->sim, 1, NODES);

    if (what < 20)
        node_turn(c, id);
    else if (what < 35)
        wish_turn(c, id);
    else if (what < 45)
        full_turn(c, id);
    else if (what < 65)
        report_turn(c);
    else if (what < 78)
        move_turn(c);
    else if (what < 82)
        takeover_turn(c);
    else if (what < 86) /* The mirror's periodic range. */
        world_refresh(c->world);
    else
        fault_turn(c);
}

/* ---- at rest ---- */

static void rest(struct court *c)
{
    c->world->fault = WORLD_WELL;
    c->world->deaf_node = 0;
    c->world->unstarted = false;
    c->world->learner_lag = 0;
    for (uint64_t id = 1; id <= NODES; id++) {
        if (!c->nodes[id].up)
            node_up(c, id);
    }
    world_run(c->world, 70000);
}

/* No hand-over to a member that may own it brings two nodes nearer to each other. */
static void evenness_check(struct court *c, uint32_t number)
{
    const struct shard_record *r = &c->shards[number].record;

    if (c->busy)
        return;
    for (uint32_t i = 0; i < r->member_count; i++) {
        uint64_t other = r->members[i];
        if (c->nodes[other].wish >= 0)
            continue;
        PROMISE(c->sim, owned_by(c, r->owner) < owned_by(c, other) + 2,
                "shard %u stays with node %llu (%u shards), and %llu has %u", number,
                (unsigned long long)r->owner, owned_by(c, r->owner), (unsigned long long)other,
                owned_by(c, other));
    }
}

static void rest_check(struct court *c)
{
    struct coord_stats stats = world_stats(c->world);
    uint32_t staying = 0;

    for (uint64_t id = 1; id <= NODES; id++)
        staying += c->nodes[id].wish != NODE_REMOVE;
    PROMISE(c->sim,
            stats.transactions_open == 0 && stats.changes_open == 0 && stats.shards_unowned == 0 &&
                stats.policy_pending == 0,
            "the cluster does not come to rest: %llu changes",
            (unsigned long long)stats.changes_open);
    for (uint32_t i = 0; i < SHARDS; i++) {
        const struct shard_record *r = &c->shards[i].record;
        bool others = false;

        for (uint32_t k = 0; k < r->member_count; k++) {
            others |= c->nodes[r->members[k]].wish < 0;
            PROMISE(c->sim, c->nodes[r->members[k]].wish != NODE_REMOVE || staying < FACTOR + 1,
                    "shard %u: the removed node %llu still holds it", i,
                    (unsigned long long)r->members[k]);
        }
        PROMISE(c->sim, c->nodes[r->owner].wish < 0 || !others,
                "shard %u: node %llu, which leaves, still owns it", i,
                (unsigned long long)r->owner);
        PROMISE(c->sim, r->member_count >= FACTOR, "shard %u has %u replicas", i, r->member_count);
        PROMISE(c->sim, !c->shards[i].wished, "shard %u: a wish is neither done nor given up", i);
        evenness_check(c, i);
    }
    c->sim->counts.clusters_at_rest++;
}

void room_owners(struct rsim *sim)
{
    struct court c = { .sim = sim, .world = world_new() };

    c.world->watch = (struct world_watch){ .user = &c, .sent = sent, .wrote = wrote };
    c.busy = rsim_chance(sim, 30);
    c.world->limits.change_abort_ms = 2000; /* Else it is longer than most absences here. */
    world_replace_coordinator(c.world);
    for (uint64_t id = 1; id <= NODES; id++) {
        c.nodes[id] = (struct judged_node){ .zone = (uint32_t)rsim_between(sim, 0, 3), .wish = -1 };
        if (id <= 3 || rsim_chance(sim, 60))
            node_up(&c, id);
    }
    world_elect(c.world);
    world_run(c.world, 3000);
    for (uint32_t i = 0; i < SHARDS && c.busy; i++)
        c.world->rates[i] = rsim_between(sim, 0, 9) * 2000;
    for (uint32_t i = 0; i < 25; i++) {
        turn(&c);
        world_run(c.world, rsim_chance(sim, 70) ? rsim_between(sim, 20, 800)
                                                : rsim_between(sim, 2000, 16000));
    }
    rest(&c);
    rest_check(&c);
    world_free(c.world);
}
