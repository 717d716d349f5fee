#include "tests/sim/faults/wrong.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cluster/cluster_record.h"
#include "runtime/cluster/shard_change.h"

#define WRONG_RUNS       60u /* Of 256. */
#define TRIES_MAX        100u
#define AGAIN_MS         50u
#define CRASHES          6u     /* Of that very node, afterwards. */
#define WISHES_MAX       6u     /* That an operator asks to have it rebuilt. */
#define GIVERS           2u     /* One run of so many waits for an owner that gives a snapshot, */
#define GIVER_MS         6000u  /* but no longer, */
#define SLOW_BYTES_PER_S 16384u /* and gives it slowly: the others need time to find it wrong. */

/* What events of ours count, so that they are told apart. */
#define CRASH_FIRST   (TRIES_MAX + 1u)
#define REBUILD_FIRST (CRASH_FIRST + CRASHES + 1u)
#define PULL          (REBUILD_FIRST + WISHES_MAX)

static uint64_t drawn(const struct sim *sim, uint64_t salt)
{
    uint64_t x = (sim->seed ^ salt * 0xd1342543de82ef95u) * 0x9e3779b97f4a7c15u;

    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u >> 16;
}

/* A learner takes rows of an owner that turns out to be wrong half way. */
static bool waits_for_giver(const struct sim *sim)
{
    return drawn(sim, 6) % GIVERS == 0;
}

static void later(struct sim *sim, uint64_t delay_ms, uint64_t number)
{
    sim_later(sim, delay_ms,
              &(struct sim_event){ .kind = EV_ROT, .from = WRONG_ORIGIN, .number = number });
}

void wrong_choose(struct sim *sim)
{
    if (sim->node_count < 3 || sim_without(sim, WITHOUT_rot) || drawn(sim, 1) % 256 >= WRONG_RUNS)
        return;
    sim->wrong_chosen = true;
    later(sim, waits_for_giver(sim) ? GIVER_MS : 500 + drawn(sim, 2) % 3000, 0);
}

uint32_t wrong_snapshot_pace(const struct sim *sim, uint32_t otherwise)
{
    return sim->wrong_chosen && waits_for_giver(sim) ? SLOW_BYTES_PER_S : otherwise;
}

bool wrong_shard(const struct sim *sim, uint32_t shard)
{
    return sim->wrong_shard == shard + 1;
}

/* The running hash alone: the rows stay those that the oracle knows. */
static void spoil(struct sim *sim, struct sim_node *node, uint32_t number)
{
    struct meta *meta = (struct meta *)(uintptr_t)shard_meta(node->slots[number].shard);

    meta->outcome_hash.bytes[0] ^= 1;
    sim->wrong_shard = number + 1;
    sim->wrong_node = node->id;
    sim->counts.outcomes_spoilt++;
    sim_say(sim, "node %u   s%u comes to other outcomes from here on", node->id, number);
    later(sim, 300 + drawn(sim, 5) % 3000, CRASH_FIRST);
    later(sim, 1000 + drawn(sim, 7) % 5000, REBUILD_FIRST);
}

static bool may_spoil(const struct sim *sim, const struct sim_node *node, uint32_t number)
{
    const struct slot *slot = &node->slots[number];

    return node->up && slot->shard != NULL && !slot->damaged && !slot->installing &&
           members_spare(sim, number, node) && shard_applied_index(slot->shard) > 0;
}

static void crash(struct sim *sim, uint64_t number)
{
    struct sim_random kept = sim->random;

    sim->random.state = drawn(sim, number);
    if (!sim_without(sim, WITHOUT_crashes))
        trouble_crash(sim, node_get(sim, sim->wrong_node));
    sim->random = kept;
    if (number < CRASH_FIRST + CRASHES - 1)
        later(sim, 300 + drawn(sim, number) % 3000, number + 1);
}

/* As the router does for `holdfast replica rebuild`. */
static void wish_rebuild(struct sim *sim, uint32_t shard, const struct sim_node *node)
{
    struct cluster_key key = cluster_key_shard_wish(SIM_CLUSTER, shard);
    struct cluster_key record_key = cluster_key_shard(SIM_CLUSTER, shard);
    const struct etcd_kv *kv = etcd_find(sim, cluster_key_slice(&record_key));
    struct shard_record record;
    struct buf value = { 0 };

    if (etcd_find(sim, cluster_key_slice(&key)) != NULL || kv == NULL ||
        shard_record_decode(buf_slice(&kv->value), &record, NULL) != ERR_OK ||
        shard_change_is_open(&record) || !shard_record_has_member(&record, node->id))
        return;
    struct shard_wish wish = { .member_count = record.member_count,
                               .repair = node->id,
                               .config = record.config };

    memcpy(wish.members, record.members, sizeof wish.members);
    sim->counts.rebuilds_asked++;
    sim_say(sim, "operator has s%u of node %u rebuilt", shard, node->id);
    shard_wish_encode(&wish, &value);
    etcd_put(sim, cluster_key_slice(&key), buf_slice(&value), 0);
    buf_deinit(&value);
}

/* A replica that was behind while this one owned the shard asked for a snapshot, and is heard late.
 */
static void late_pull(struct sim *sim)
{
    uint32_t from = sim->wrong_node % sim->node_count + 1;
    struct sim_event event = { .kind = EV_REP, .node = sim->wrong_node, .from = from };
    struct rep_message pull = { .type = REP_MSG_SNAPSHOT_PULL, .shard = sim->wrong_shard - 1 };

    event.bytes = sim_queue_bytes(&sim->queue);
    rep_message_encode(&pull, &event.bytes);
    sim_later(sim, 0, &event);
}

/* More than once, as it may be given up. */
static void rebuild(struct sim *sim, uint64_t number)
{
    if (node_get(sim, sim->wrong_node)->slots[sim->wrong_shard - 1].wrong)
        wish_rebuild(sim, sim->wrong_shard - 1, node_get(sim, sim->wrong_node));
    if (number < REBUILD_FIRST + WISHES_MAX - 1)
        later(sim, 2000 + drawn(sim, number) % 5000, number + 1);
}

void wrong_event(struct sim *sim, const struct sim_event *event)
{
    struct sim_node *node = node_get(sim, (uint32_t)(drawn(sim, 3) % sim->node_count) + 1);
    uint32_t shard = (uint32_t)(drawn(sim, 4) % sim->shard_count);

    if (sim->healing || (event->number < CRASH_FIRST && sim->wrong_shard > 0))
        return;
    if (event->number == PULL)
        late_pull(sim);
    else if (event->number >= REBUILD_FIRST)
        rebuild(sim, event->number);
    else if (event->number >= CRASH_FIRST)
        crash(sim, event->number);
    else if (may_spoil(sim, node, shard))
        spoil(sim, node, shard);
    else if (event->number < TRIES_MAX)
        later(sim, AGAIN_MS, event->number + 1);
}

void wrong_look(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct slot *slot = &node->slots[shard];
    const struct rep *rep = slot->shard != NULL ? shard_rep(slot->shard) : NULL;

    if (!wrong_shard(sim, shard) || rep == NULL || slot->damaged)
        return;
    if (slot->wrong && !rep_is_quarantined(rep))
        sim_fail(sim, shard, "node %u has forgotten that its outcomes differ", node->id);
    if (!rep_is_quarantined(rep) || slot->wrong)
        return;
    node->record_changed = true;
    sim->counts.quarantines++;
    later(sim, 1 + drawn(sim, 8) % 300, PULL);
    slot->wrong = slot->disk.pending_count == 0; /* What it wrote about it is durable. */
}

void wrong_look_at_part(struct sim *sim, struct sim_node *node, const struct rep_send *send)
{
    const struct rep_message *m = &send->message;

    if (m->type != REP_MSG_SNAPSHOT_PART || m->refused)
        return;
    if (rep_is_quarantined(shard_rep(node->slots[m->shard].shard)))
        sim_fail(sim, m->shard, "node %u gives rows, and its outcomes differ", node->id);
    if (sim->wrong_chosen && sim->wrong_shard == 0 && waits_for_giver(sim) && !sim->healing &&
        m->part == 0 && !m->last && rep_role(shard_rep(node->slots[m->shard].shard)) == REP_OWNER &&
        members_learner(sim, m->shard) == send->to &&
        members_spare(sim, m->shard, node_get(sim, (uint32_t)send->to)))
        spoil(sim, node, m->shard);
}

/* The write names who owned it before for the sake of its members, not to have it own. */
static bool changes_members(const struct shard_record *before, const struct shard_record *next)
{
    return before == NULL || (before->owner == next->owner &&
                              (before->phase != next->phase || before->learner != next->learner ||
                               before->config != next->config));
}

void wrong_look_at_write(struct sim *sim, const struct coord *core, const struct coord_write *write)
{
    struct cluster_key_parts parts = cluster_key_parse(SIM_CLUSTER, write->key);
    struct shard_record record;

    if (parts.kind != CLUSTER_KEY_SHARD || write->remove || !wrong_shard(sim, parts.shard) ||
        shard_record_decode(write->value, &record, NULL) != ERR_OK ||
        changes_members(coord_find_shard(core, parts.shard), &record))
        return;
    const struct node_record *owner = coord_find_node(core, record.owner);
    if (owner == NULL || !node_record_is_quarantined(owner, parts.shard))
        return;
    for (uint32_t i = 0; i < record.member_count; i++) {
        const struct node_record *node = coord_find_node(core, record.members[i]);
        if (node != NULL && node_record_may_own(node, parts.shard))
            sim_fail(sim, parts.shard, "node %u is named owner: its outcomes differ, not node %u's",
                     (uint32_t)record.owner, (uint32_t)record.members[i]);
    }
}
