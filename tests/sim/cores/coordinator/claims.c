/*
 * Early claims (coordinator/core/ownership.c): shards of one to five members, in the middle of a
 * change or not, of whose owner some replicas say that it is gone. A majority of the members has to
 * say so, of both sets in a joint phase; others do not count, and who is named has said so itself,
 * with no other that has more of the log.
 */
#include <stdio.h>

#include "tests/sim/cores/coordinator/pace.h"
#include "runtime/base/check.h"

#define NODES       7u
#define SHARDS      8u
#define MEMBERS_MAX 5u
#define BLOCKED     0u /* The shard whose change stands still, so that no other begins. */

struct said {
    bool counts;
    uint64_t epoch, counter;
};

struct parish {
    struct rsim *sim;
    struct pace *pace;
    uint32_t shard;
    struct shard_record record;
    struct said said[NODES + 1];
};

/* ---- shards ---- */
static void record_make(struct parish *p)
{
    struct shard_record *r = &p->record;
    uint64_t order[NODES];
    bool joint = p->shard == BLOCKED || rsim_chance(p->sim, 50);
    bool added = false;

    *r = world_shard(p->pace->world, p->shard);
    for (uint32_t i = 0; i < NODES; i++) {
        uint32_t at = (uint32_t)rsim_between(p->sim, 0, i);
        order[i] = order[at];
        order[at] = i + 1;
    }
    r->epoch++;
    r->config++;
    r->phase = joint ? SHARD_JOINT : SHARD_STABLE;
    r->member_count = (uint32_t)rsim_between(p->sim, joint ? 2 : 1, MEMBERS_MAX);
    for (uint32_t i = 0; i < r->member_count; i++)
        r->members[i] = order[i];
    r->new_member_count = 0;
    if (joint) {
        bool goes = rsim_chance(p->sim, 60);
        for (uint32_t i = goes ? 1 : 0; i < r->member_count; i++)
            r->new_members[r->new_member_count++] = r->members[i];
        added = !goes || rsim_chance(p->sim, 60);
        if (added)
            r->new_members[r->new_member_count++] = order[r->member_count];
    }
    r->owner = r->members[rsim_between(p->sim, 0, r->member_count - 1)];
    r->learner = r->leaving = 0;
}

static void record_put(struct parish *p)
{
    struct buf value = { 0 };

    shard_record_encode(&p->record, &value);
    world_put(p->pace->world, cluster_key_shard(WORLD_CLUSTER, p->shard), &value);
}

/* ---- what is said ---- */
static bool is_among(const uint64_t *ids, uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id)
            return true;
    }
    return false;
}

static bool majority_says(const struct parish *p, const uint64_t *ids, uint32_t count)
{
    uint32_t says = 0;

    for (uint32_t i = 0; i < count; i++)
        says += p->said[ids[i]].counts;
    return 2 * says > count;
}

static bool is_claimed(const struct parish *p)
{
    const struct shard_record *r = &p->record;

    return majority_says(p, r->members, r->member_count) &&
           (r->phase == SHARD_STABLE || majority_says(p, r->new_members, r->new_member_count));
}

/* Of a node that may be no replica, or the owner itself; now and then too early, or of before. */
static void report(struct parish *p, uint64_t reporter)
{
    const struct coord_limits *limits = &p->pace->world->limits;
    Holdfast__V1__Dot last = HOLDFAST__V1__DOT__INIT;
    Holdfast__Internal__V1__ShardPosition position = HOLDFAST__INTERNAL__V1__SHARD_POSITION__INIT;
    Holdfast__Internal__V1__ShardPosition *positions[] = { &position };
    Holdfast__Internal__V1__ReportOwnerRequest told =
        HOLDFAST__INTERNAL__V1__REPORT_OWNER_REQUEST__INIT;
    const struct shard_record *r = &p->record;
    bool closed = rsim_chance(p->sim, 50);
    uint32_t enough = closed ? limits->claim_closed_ms : limits->claim_silent_ms;
    bool is_replica = is_among(r->members, r->member_count, reporter) ||
                      is_among(r->new_members, r->new_member_count, reporter);

    last.epoch = r->epoch - rsim_between(p->sim, 0, 1);
    last.counter = rsim_between(p->sim, 1, 4);
    position.shard = p->shard;
    position.epoch = r->epoch - (rsim_chance(p->sim, 15) ? 1 : 0);
    position.last = rsim_chance(p->sim, 80) ? &last : NULL; /* Its log is empty. */
    told.reporter = reporter;
    told.owner = rsim_chance(p->sim, 10) ? r->owner % NODES + 1 : r->owner;
    told.reason = closed ? text_lend("closed") : text_lend("silent");
    told.since_ms = (uint32_t)rsim_about(p->sim, enough);
    told.shards = positions;
    told.n_shards = 1;
    if (is_replica && reporter != r->owner && told.owner == r->owner &&
        position.epoch == r->epoch && told.since_ms >= enough)
        p->said[reporter] = position.last != NULL ? (struct said){ true, last.epoch, last.counter }
                                                  : (struct said){ .counts = true };
    world_step(p->pace->world, (struct coord_event){ .type = COORD_REPORT, .report = &told });
    world_settle(p->pace->world);
    pace_run(p->pace, 2);
}

static bool has_more(const struct said *a, const struct said *b)
{
    return a->epoch > b->epoch || (a->epoch == b->epoch && a->counter > b->counter);
}

/* True: it has another owner. */
static bool judged(struct parish *p)
{
    struct shard_record now = world_shard(p->pace->world, p->shard);

    PROMISE(p->sim, (now.owner != p->record.owner) == is_claimed(p),
            "shard %u of %u and %u members is %s", p->shard, p->record.member_count,
            p->record.new_member_count, is_claimed(p) ? "not claimed" : "claimed");
    if (now.owner == p->record.owner)
        return false;
    PROMISE(p->sim, p->said[now.owner].counts, "node %u is named, and has said nothing",
            (unsigned)now.owner);
    for (uint32_t id = 1; id <= NODES; id++) {
        PROMISE(p->sim, !p->said[id].counts || !has_more(&p->said[id], &p->said[now.owner]),
                "node %u is named, and node %u has more of the log", (unsigned)now.owner, id);
    }
    PROMISE(p->sim, now.epoch == p->record.epoch + 1 && now.config == p->record.config,
            "epoch %llu, configuration %llu", (unsigned long long)now.epoch,
            (unsigned long long)now.config);
    p->sim->counts.claims_even += p->record.member_count % 2 == 0;
    p->sim->counts.claims_joint += p->record.phase == SHARD_JOINT;
    return true;
}

void room_claims(struct rsim *sim)
{
    struct parish p = { .sim = sim, .pace = pace_new(sim) };

    p.pace->world->limits.claim_calm_ms = 0;
    p.pace->world->limits.changes_max = 1;
    p.pace->world->limits.claim_closed_ms = (uint32_t)rsim_between(sim, 10, 500);
    p.pace->world->limits.claim_silent_ms = (uint32_t)rsim_between(sim, 10, 500);
    world_replace_coordinator(p.pace->world);
    for (uint64_t id = 4; id <= NODES; id++)
        world_node_up(p.pace->world, id, 1);
    world_start(p.pace->world);
    p.pace->world->tick_ms = 1;
    p.pace->world->unstarted = true;
    for (p.shard = 0; p.shard < SHARDS; p.shard++) {
        record_make(&p);
        record_put(&p);
        pace_run(p.pace, 2);
        for (uint32_t id = 0; id <= NODES; id++)
            p.said[id] = (struct said){ 0 };
        bool named = false;
        for (uint32_t i = 0; i < 2 * NODES && !named; i++) {
            report(&p, rsim_between(sim, 1, NODES));
            named = judged(&p);
        }
    }
    pace_free(p.pace);
}
