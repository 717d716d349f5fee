/*
 * change: who holds which shard, one change at a time (docs/membership.md). What an operator wants
 * stands in etcd as wishes; each step of a change is one write of the shard's record, compared with
 * the one it follows from. So any coordinator goes on where the last one stopped.
 *
 *   a wish (of repair.c, too), a removed node, too few members
 *                                  -> begin: LEARNING (or JOINT when only one goes)
 *   the owner of this epoch says that the learner is near -> join
 *   the owner of this epoch says that its START is committed, and that no new member lacks
 *   documents -> leave
 *   the newcomer is gone for too long, or is itself to be removed -> abort
 */
#include "coordinator/core/change.h"

#include "coordinator/core/delivery.h"
#include "coordinator/core/flight.h"
#include "coordinator/core/load.h"
#include "coordinator/core/ownership.h"
#include "coordinator/core/records.h"
#include "coordinator/core/repair.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "runtime/cluster/shard_change.h"

/* ---- what is wanted ---- */

/* Live, whole, and not on its way out. One that was quarantined has to drop its rows first. */
static bool may_join(struct coord *coord, uint32_t number, uint64_t replica_id)
{
    const struct node *node = node_find(coord, replica_id);

    return node != NULL && node->record.damaged_shards == 0 &&
           !node_record_is_quarantined(&node->record, number) && !node_is_full(coord, node) &&
           !node_is_leaving(coord, replica_id);
}

static uint64_t newcomer(struct coord *coord, uint32_t number, uint64_t removing)
{
    const struct shard_record *record = &coord->shards[number].record;
    struct placement_node nodes[CLUSTER_NODES_MAX];
    uint64_t kept[CLUSTER_MEMBERS_MAX];
    uint32_t kept_count = 0;

    for (uint32_t i = 0; i < record->member_count; i++) {
        if (record->members[i] != removing)
            kept[kept_count++] = record->members[i];
    }
    for (uint32_t i = 0; i < coord->node_count; i++) {
        const struct node_record *node = &coord->nodes[i].record;

        nodes[i] = (struct placement_node){ node->replica_id, node->zone,
                                            !may_join(coord, number, node->replica_id) ||
                                                node->replica_id == removing };
    }
    return placement_next(number, nodes, coord->node_count, kept, kept_count);
}

/* A damaged replica does not vote, and is not repaired while a wish stands: with too few others the
 * members of the wish would never be a majority. */
static bool wish_can_vote(struct coord *coord, uint32_t number)
{
    const struct shard_wish *wish = &coord->shards[number].wish;
    uint32_t damaged = 0;

    for (uint32_t i = 0; i < wish->member_count; i++)
        damaged += replica_is_damaged(coord, number, wish->members[i]);
    return wish->member_count - damaged > wish->member_count / 2;
}

/* Whether who comes by a wish may join. One that is away, full or damaged is waited for. */
static bool wait_for_comer(struct coord *coord, uint32_t number, uint64_t comer, bool *ret_waits)
{
    struct shard *shard = &coord->shards[number];
    bool may = comer == 0 || may_join(coord, number, comer);

    if (may)
        shard->lost_since_ms = 0;
    else if (shard->lost_since_ms == 0)
        shard->lost_since_ms = coord->now_ms;
    *ret_waits = !may && !node_is_leaving(coord, comer) &&
                 coord->now_ms - shard->lost_since_ms < coord->limits.change_abort_ms;
    return may;
}

static bool drop_wish(struct coord *coord, uint32_t number, uint64_t replica_id, const char *why)
{
    log_event(coord->log, LOG_WARN, "coordinator.wish_dropped", LOG_N("shard", number),
              LOG_N("replica_id", replica_id), LOG_S("why", why));
    return false;
}

/* False: the wish is fulfilled, or cannot be. True with neither in `change`: not now. */
static bool follow_wish(struct coord *coord, uint32_t number, struct change *change)
{
    const struct shard_record *record = &coord->shards[number].record;
    const struct shard_wish *wish = &coord->shards[number].wish;
    bool waits;

    if (!wish_can_vote(coord, number))
        return drop_wish(coord, number, 0, "too few of its members are whole");
    for (uint32_t i = 0; i < wish->member_count; i++) {
        /* Wished before it was: with it there may never be a majority. */
        if (node_is_removed(coord, wish->members[i]))
            return drop_wish(coord, number, wish->members[i], "the node is removed");
    }
    for (uint32_t i = 0; i < wish->member_count && change->adding == 0; i++) {
        if (!replica_is_among(record->members, record->member_count, wish->members[i]))
            change->adding = wish->members[i];
    }
    for (uint32_t i = 0; i < record->member_count && change->removing == 0; i++) {
        if (!replica_is_among(wish->members, wish->member_count, record->members[i]))
            change->removing = record->members[i];
    }
    if (!wait_for_comer(coord, number, change->adding, &waits)) {
        uint64_t comer = change->adding;

        *change = (struct change){ 0 };
        return waits || drop_wish(coord, number, comer,
                                  "the node is gone, full, damaged, quarantined or drained");
    }
    return change->adding != 0 || change->removing != 0;
}

static void wanted_change(struct coord *coord, uint32_t number, struct change *change,
                          struct coord_out *out)
{
    struct shard *shard = &coord->shards[number];
    const struct shard_record *record = &shard->record;
    uint32_t replicas = coord->cluster.replication_factor;

    *change = (struct change){ 0 };
    if (shard->wish_revision > 0 && !shard->wish_in_txn) {
        if (shard->wish.repair != 0 ? repair_follow(coord, number, change, out)
                                    : follow_wish(coord, number, change))
            return;
        *change = (struct change){ 0 };
        shard->wish_in_txn = flight_remove_shard_wish(coord, number);
        if (shard->wish_in_txn && shard->wish.repair != 0)
            repair_over(coord, number);
    }
    for (uint32_t i = 0; i < record->member_count && change->removing == 0; i++) {
        if (node_is_removed(coord, record->members[i]))
            change->removing = record->members[i];
    }
    if (change->removing == 0 && record->member_count >= replicas)
        return;
    if (record->member_count <= replicas) {
        change->adding = newcomer(coord, number, change->removing);
        if (change->adding == 0)
            change->removing = 0; /* Fewer replicas than wanted are worse than one too many. */
    }
}

/* ---- whether a change can end ---- */
static bool majority_votes(struct coord *coord, uint32_t number, const uint64_t *ids,
                           uint32_t count)
{
    uint32_t voters = 0;

    for (uint32_t i = 0; i < count; i++)
        voters += replica_is_whole(coord, number, ids[i]);
    return voters > count / 2;
}

/* A joint START needs both majorities: without them the shard would stand still. */
static bool joint_can_start(struct coord *coord, uint32_t number, const struct shard_record *joint)
{
    return majority_votes(coord, number, joint->members, joint->member_count) &&
           majority_votes(coord, number, joint->new_members, joint->new_member_count);
}

static bool change_can_start(struct coord *coord, uint32_t number, const struct shard_record *next)
{
    struct shard_record joint = *next;

    if (next->learner != 0 && shard_change_join(next, &joint, NULL) != ERR_OK)
        return false;
    /* One that is damaged may go on: the change is how it is repaired. */
    const struct node *owner = node_find(coord, next->owner);
    return joint_can_start(coord, number, &joint) && owner != NULL &&
           !node_record_is_quarantined(&owner->record, number);
}

/* The live one that owns least; those that are to own nothing, and then those that are damaged or
 * quarantined, only if there is no other. 0: none lives. */
static uint64_t heir_among(struct coord *coord, uint32_t number, const uint64_t *ids,
                           uint32_t count)
{
    uint64_t best = 0;
    uint32_t best_owned = UINT32_MAX;
    uint32_t best_flaw = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        const struct node *node = node_find(coord, ids[i]);

        if (node == NULL)
            continue;
        uint32_t owned = coord->owned[node - coord->nodes];
        uint32_t flaw = node_is_avoided(coord, node);

        if (!node_record_may_own(&node->record, number))
            flaw = 2;
        if (best != 0 && (flaw > best_flaw || (flaw == best_flaw && owned >= best_owned)))
            continue;
        best = ids[i];
        best_owned = owned;
        best_flaw = flaw;
    }
    return best;
}

/* ---- steps ---- */
static bool write_step(struct coord *coord, uint32_t number, const struct shard_record *next,
                       const char *step)
{
    const struct shard_record *now = &coord->shards[number].record;

    if (!flight_put_shard(coord, number, next))
        return false;
    log_event(coord->log, LOG_INFO, "coordinator.members_change", LOG_N("shard", number),
              LOG_S("step", step), LOG_N("epoch", next->epoch), LOG_N("config", next->config),
              LOG_N("owner", next->owner), LOG_N("previous_owner", now->owner),
              LOG_N("learner", next->learner));
    return true;
}

static bool begin(struct coord *coord, uint32_t number, const struct change *change)
{
    const struct shard *shard = &coord->shards[number];
    struct shard_record next;
    struct record_error why;

    err e = shard_change_begin(&shard->record, change->adding, change->removing, &next, &why);
    if (e != ERR_OK || !change_can_start(coord, number, &next))
        return false;
    if (!write_step(coord, number, &next, next.learner != 0 ? "learn" : "join"))
        return false;
    coord->stats.changes_begun++;
    coord->stats.repairs_begun +=
        shard->wish_revision > 0 && change->removing != 0 && shard->wish.repair == change->removing;
    return true;
}

/* The node that joins by the open change; 0: none. */
static uint64_t who_comes(const struct shard_record *record)
{
    if (record->learner != 0)
        return record->learner;
    for (uint32_t i = 0; i < record->new_member_count; i++) {
        if (!replica_is_among(record->members, record->member_count, record->new_members[i]))
            return record->new_members[i];
    }
    return 0;
}

static bool has_majority(struct coord *coord, uint32_t number, const uint64_t *members,
                         uint32_t count)
{
    uint32_t whole = 0;

    for (uint32_t i = 0; i < count; i++)
        whole += node_find(coord, members[i]) != NULL && !node_is_removed(coord, members[i]) &&
                 !replica_is_damaged(coord, number, members[i]);
    return whole > count / 2;
}

/* In a joint phase entries need a majority of both: without one of the new members it stands still,
 * while the old ones, who have all that was ever committed, could serve. */
static bool new_ones_are_lost(struct coord *coord, uint32_t number)
{
    const struct shard_record *record = &coord->shards[number].record;

    return record->new_member_count > 0 &&
           !has_majority(coord, number, record->new_members, record->new_member_count) &&
           has_majority(coord, number, record->members, record->member_count);
}

static bool must_abort(struct coord *coord, uint32_t number)
{
    struct shard *shard = &coord->shards[number];
    uint64_t comer = who_comes(&shard->record);

    if (comer != 0 && (node_is_removed(coord, comer) || replica_is_damaged(coord, number, comer)))
        return true; /* A damaged one learns nothing before it has dropped what it has. */
    bool waits = comer != 0 && node_find(coord, comer) == NULL;
    if (!waits && !new_ones_are_lost(coord, number)) {
        shard->lost_since_ms = 0;
        return false;
    }
    if (shard->lost_since_ms == 0)
        shard->lost_since_ms = coord->now_ms;
    return coord->now_ms - shard->lost_since_ms >= coord->limits.change_abort_ms;
}

static void abort_change(struct coord *coord, uint32_t number)
{
    const struct shard_record *now = &coord->shards[number].record;
    uint64_t heir = heir_among(coord, number, now->members, now->member_count);
    struct shard_record next;

    if (shard_change_abort(now, heir, &next, NULL) == ERR_OK &&
        write_step(coord, number, &next, "abort"))
        coord->stats.changes_aborted++;
}

void change_told(struct coord *coord, const struct open_call *call, const struct coord_event *event)
{
    struct shard *shard = &coord->shards[call->shard];

    CHECK(shard->state_calls > 0); /* Counted when it was called; a term ends with its calls. */
    shard->state_calls--;
    if (event->status != WIRE_OK)
        return;
    Holdfast__Internal__V1__MemberStateResponse *told =
        holdfast__internal__v1__member_state_response__unpack(NULL, event->body.size,
                                                              event->body.data);
    if (told == NULL)
        return;
    shard->state = (struct told_state){ .epoch = told->epoch,
                                        .told_ms = coord->now_ms,
                                        .learner = told->learner,
                                        .learner_lag = told->learner_lag,
                                        .silent_ms = told->learner_silent_ms,
                                        .documents_lacking = told->documents_lacking };
    load_told(coord, shard, told);
    for (size_t i = 0; i < told->n_members && i < CLUSTER_MEMBERS_MAX; i++)
        shard->state.members[shard->state.member_count++] =
            (struct told_member){ told->members[i]->replica_id, told->members[i]->lag,
                                  told->members[i]->silent_ms };
    holdfast__internal__v1__member_state_response__free_unpacked(told, NULL);
}

void change_drop(struct coord *coord)
{
    for (uint32_t i = 0; i < coord->shard_count; i++)
        coord->shards[i].state_calls = 0;
}

static bool learner_is_near(const struct coord *coord, const struct shard *shard)
{
    return shard->state.learner == shard->record.learner &&
           shard->state.learner_lag <= coord->limits.change_lag_entries &&
           shard->state.silent_ms <= coord->limits.change_silent_ms;
}

static void go_on(struct coord *coord, uint32_t number, struct coord_out *out)
{
    struct shard *shard = &coord->shards[number];
    const struct shard_record *now = &shard->record;
    struct shard_record next;
    bool started = shard->state.epoch == now->epoch;

    if (must_abort(coord, number)) {
        abort_change(coord, number);
        return;
    }
    if (!started ||
        (now->learner != 0 ? !learner_is_near(coord, shard) : shard->state.documents_lacking > 0)) {
        delivery_ask_state(coord, number, out);
        return;
    }
    if (now->learner != 0) {
        CHECK(shard_change_join(now, &next, NULL) == ERR_OK);
        if (joint_can_start(coord, number, &next))
            (void)write_step(coord, number, &next, "join");
        shard->state.epoch = 0; /* If the write is lost, ask again under this record. */
        return;
    }
    uint64_t heir = heir_among(coord, number, now->new_members, now->new_member_count);

    if (shard_change_leave(now, heir, &next, NULL) == ERR_OK &&
        write_step(coord, number, &next, "leave"))
        coord->stats.changes_done++;
}

/* ---- wishes that are fulfilled ---- */
static bool is_named_anywhere(const struct coord *coord, uint64_t replica_id)
{
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct shard *shard = &coord->shards[i];

        if (shard->mod_revision == 0 || shard_record_has_member(&shard->record, replica_id) ||
            shard->record.learner == replica_id)
            return true;
    }
    return false;
}

/* Removed nodes that are gone are remembered, lest one that was away for a moment comes back as a
 * new one; but not all of them for ever. */
static void forget_removed(struct coord *coord)
{
    uint32_t removed = 0;

    for (uint32_t i = 0; i < coord->wanted_count; i++)
        removed += coord->wanted[i].wish.kind == NODE_REMOVE && !coord->wanted[i].in_txn;
    for (uint32_t i = 0; i < coord->wanted_count && removed > coord->limits.removed_kept; i++) {
        struct wanted_node *wanted = &coord->wanted[i];

        if (wanted->wish.kind == NODE_REMOVE && !wanted->in_txn &&
            node_find(coord, wanted->replica_id) == NULL &&
            !is_named_anywhere(coord, wanted->replica_id)) {
            wanted->in_txn = flight_remove_node_wish(coord, wanted->replica_id);
            removed--;
        }
    }
}

/* ---- owners that are to own nothing ---- */
static void drain(struct coord *coord)
{
    if (coord->wanted_count == 0 || coord->now_ms < coord->drain_at_ms)
        return;
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct shard *shard = &coord->shards[i];

        if (shard->mod_revision == 0 || !shard_is_settled(shard) ||
            shard->record.phase != SHARD_STABLE || !node_is_leaving(coord, shard->record.owner))
            continue;
        uint64_t heir = heir_among(coord, i, shard->record.members, shard->record.member_count);

        if (!replica_may_own(coord, i, heir) || node_is_leaving(coord, heir) ||
            node_is_full(coord, node_find(coord, heir)))
            continue;
        if (ownership_hand_over(coord, i, heir, "drain"))
            coord->stats.drained++;
        coord->drain_at_ms = coord->now_ms + coord->limits.drain_period_ms;
        return;
    }
}

/* ---- all ---- */
/* A shard that a restore raised the floor above is named by ownership first. */
static bool may_change(const struct coord *coord, const struct shard *shard)
{
    return shard_may_change(shard) && shard->record.epoch > coord->cluster.epoch_floor;
}

void change_run(struct coord *coord, struct coord_out *out)
{
    uint32_t open = 0, sent = 0; /* `sent`: may begin one, and etcd has not answered yet. */

    forget_removed(coord);
    drain(coord);
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct shard *shard = &coord->shards[i];

        if (shard->mod_revision == 0 || !shard_change_is_open(&shard->record)) {
            sent += shard->in_txn;
            continue;
        }
        open++;
        if (may_change(coord, shard))
            go_on(coord, i, out);
    }
    coord->changes_open = open;
    for (uint32_t n = 0; n < coord->shard_count && open + sent < coord->limits.changes_max; n++) {
        uint32_t i = (coord->change_from + n) % coord->shard_count;
        struct shard *shard = &coord->shards[i];
        struct change change;

        if (shard->mod_revision == 0 || !may_change(coord, shard) ||
            shard_change_is_open(&shard->record))
            continue;
        if (shard->wish_revision == 0)
            shard->lost_since_ms = 0;
        wanted_change(coord, i, &change, out);
        if (change.adding == 0 && change.removing == 0)
            repair_look(coord, i, out);
        else if (begin(coord, i, &change))
            open++;
    }
    coord->change_from = coord->shard_count > 0 ? (coord->change_from + 1) % coord->shard_count : 0;
}
