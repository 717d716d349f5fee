/*
 * repair: a replica that its own node found damaged leaves its shard and comes back empty, to be
 * filled by the others (docs/membership.md, "Repair"). It is wished in etcd, like an operator's
 * move, and the record says which half is done: while it names the replica, and that is damaged, it
 * is to leave; once it does not, it is to come. So any coordinator goes on where the last one
 * stopped. A node says what it found damaged in its record, and takes it out once it dropped it.
 * A quarantined replica is rebuilt the same way, but only when an operator wishes it: its volume is
 * what shows the cause.
 *
 * A replica leaves only while all others are there, whole and near: three with one damaged need
 * both others already, so for the time being nothing is lost. Two damaged ones are left alone.
 */
#include "coordinator/core/repair.h"

#include <string.h>

#include "coordinator/core/delivery.h"
#include "coordinator/core/flight.h"
#include "coordinator/core/ownership.h"
#include "coordinator/core/records.h"

#define MEMBERS_MIN 3u  /* Of two, the one that is left is no majority. */
#define ASK_FACTOR  10u /* No caller waits: owners are asked more rarely than about a learner. */

bool replica_is_damaged(struct coord *coord, uint32_t number, uint64_t replica_id)
{
    const struct node *node = node_find(coord, replica_id);

    return node != NULL && node_record_is_damaged(&node->record, number);
}

bool replica_is_whole(struct coord *coord, uint32_t number, uint64_t replica_id)
{
    const struct node *node = node_find(coord, replica_id);

    return node != NULL && !node_record_is_damaged(&node->record, number);
}

uint32_t repair_damaged_count(const struct coord *coord, uint32_t number)
{
    const struct shard *shard = &coord->shards[number];
    uint32_t count = 0;

    for (uint32_t i = 0; i < coord->node_count && shard->mod_revision > 0; i++) {
        const struct node_record *node = &coord->nodes[i].record;

        count += node_record_is_damaged(node, number) &&
                 shard_record_has_member(&shard->record, node->replica_id);
    }
    return count;
}

/* ---- who ---- */
/* The one member that is damaged, as long as it is the only one; 0: none. */
static uint64_t find_damaged(struct coord *coord, uint32_t number)
{
    const struct shard_record *record = &coord->shards[number].record;

    if (repair_damaged_count(coord, number) != 1)
        return 0;
    for (uint32_t i = 0; i < record->member_count; i++) {
        if (replica_is_damaged(coord, number, record->members[i]))
            return record->members[i];
    }
    return 0;
}

static bool is_up_long(struct coord *coord, uint64_t replica_id)
{
    const struct node *node = node_find(coord, replica_id);

    return node != NULL && coord->now_ms - node->since_ms >= coord->limits.repair_wait_ms;
}

/* As the owner of this epoch said a moment ago. */
static bool is_near(const struct coord *coord, const struct shard *shard, uint64_t replica_id)
{
    const struct told_state *state = &shard->state;

    if (state->epoch != shard->record.epoch ||
        coord->now_ms - state->told_ms > coord->limits.report_valid_ms)
        return false;
    if (replica_id == shard->record.owner)
        return true;
    for (uint32_t i = 0; i < state->member_count; i++) {
        const struct told_member *member = &state->members[i];

        if (member->replica_id == replica_id)
            return member->lag <= coord->limits.change_lag_entries &&
                   member->silent_ms <= coord->limits.change_silent_ms;
    }
    return false;
}

/* An upgrade is under way: the others might go on to entries that the damaged one's program cannot
 * apply, were it away. Not for ever: at worst that node stops until it is upgraded too. */
static bool waits_for_upgrade(struct coord *coord, uint64_t damaged, uint64_t other)
{
    const struct node *node = node_find(coord, damaged);

    return strcmp(node->record.version, node_find(coord, other)->record.version) != 0 &&
           coord->now_ms - node->since_ms < coord->limits.repair_upgrade_ms;
}

/* Rows come from one whose outcomes are right: a majority of the members, without `replica`. A
 * quarantined one stores and votes, so several may be rebuilt, one after the other. */
static bool majority_is_sound(struct coord *coord, uint32_t number, uint64_t replica)
{
    const struct shard_record *record = &coord->shards[number].record;
    uint32_t sound = 0;

    for (uint32_t i = 0; i < record->member_count; i++)
        sound +=
            record->members[i] != replica && replica_may_own(coord, number, record->members[i]);
    return sound > record->member_count / 2;
}

/* All others are there, whole, and near. Asks the owner if only that is not known. */
static bool can_do_without(struct coord *coord, uint32_t number, uint64_t damaged,
                           struct coord_out *out)
{
    struct shard *shard = &coord->shards[number];
    const struct shard_record *record = &shard->record;
    bool near = true;

    if (record->member_count < MEMBERS_MIN || !is_up_long(coord, damaged))
        return false;
    for (uint32_t i = 0; i < record->member_count; i++) {
        uint64_t other = record->members[i];

        if (other == damaged)
            continue;
        if (!replica_is_whole(coord, number, other) || !is_up_long(coord, other) ||
            waits_for_upgrade(coord, damaged, other))
            return false;
        near = near && is_near(coord, shard, other);
    }
    if (!near && shard->state_calls == 0 && coord->now_ms >= shard->state_next_ms) {
        delivery_ask_state(coord, number, out);
        shard->state_next_ms = coord->now_ms + ASK_FACTOR * coord->limits.change_ask_ms;
    }
    return near;
}

/* One shard of a node after the other, and no more of them all than change members at a time. */
static bool may_begin(const struct coord *coord, uint64_t damaged)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct shard *shard = &coord->shards[i];

        if ((shard->wish_revision == 0 && !shard->wish_in_txn) || shard->wish.repair == 0)
            continue;
        open += shard->wish.config == 0; /* An operator's do not keep damaged ones waiting. */
        if (shard->wish.repair == damaged)
            return false;
    }
    return open < coord->limits.changes_max;
}

void repair_look(struct coord *coord, uint32_t number, struct coord_out *out)
{
    struct shard *shard = &coord->shards[number];
    const struct shard_record *record = &shard->record;
    struct shard_wish wish = { .member_count = record->member_count };

    if (shard->wish_revision > 0 || shard->wish_in_txn)
        return;
    wish.repair = find_damaged(coord, number);
    if (wish.repair == 0 || node_is_removed(coord, wish.repair) || !may_begin(coord, wish.repair))
        return;
    if (!can_do_without(coord, number, wish.repair, out))
        return;
    for (uint32_t i = 0; i < record->member_count; i++)
        wish.members[i] = record->members[i];
    if (flight_put_shard_wish(coord, number, &wish))
        log_event(coord->log, LOG_WARN, "coordinator.repair_begun", LOG_N("shard", number),
                  LOG_N("replica", wish.repair));
}

/* ---- how ---- */
/* Whether a repair that stands still is to be waited for. */
static bool waits(struct coord *coord, struct shard *shard)
{
    /* While others had their turn, no one looked whether it could go on. */
    bool looked = coord->now_ms - shard->looked_ms <= coord->limits.report_valid_ms;

    shard->looked_ms = coord->now_ms;
    if (shard->lost_since_ms == 0 || !looked)
        shard->lost_since_ms = coord->now_ms;
    return coord->now_ms - shard->lost_since_ms < coord->limits.change_abort_ms;
}

static bool may_come_back(struct coord *coord, uint32_t number, uint64_t replica_id)
{
    const struct node *node = node_find(coord, replica_id);

    return node != NULL && node_record_may_own(&node->record, number) &&
           !node_is_full(coord, node) && !node_is_leaving(coord, replica_id);
}

/* A leave that is given up: the joint record, and the one that goes back. To leave and to come back
 * takes twice as many. */
#define CONFIGS_OF_AN_ABORT 2u

/* It came back since it was wished: whatever it is now, it is not rebuilt for ever. */
static bool came_back(const struct shard *shard)
{
    return shard->wish.config != 0 && shard->record.phase == SHARD_STABLE &&
           shard->record.config > shard->wish.config + CONFIGS_OF_AN_ABORT;
}

/* Of a member. A damaged replica is only to be whole: if it then turns out to be wrong, that is for
 * an operator to see, and to end. */
static bool is_over(struct coord *coord, uint32_t number, uint64_t replica)
{
    const struct shard *shard = &coord->shards[number];

    return came_back(shard) || replica_may_own(coord, number, replica) ||
           (shard->wish.config == 0 && replica_is_whole(coord, number, replica));
}

static bool may_leave(struct coord *coord, uint32_t number, uint64_t replica, struct coord_out *out)
{
    bool alone = replica_is_damaged(coord, number, replica)
                     ? find_damaged(coord, number) == replica
                     : majority_is_sound(coord, number, replica);

    return alone && can_do_without(coord, number, replica, out);
}

void repair_over(struct coord *coord, uint32_t number)
{
    const struct shard *shard = &coord->shards[number];
    uint64_t replica = shard->wish.repair;
    bool done = replica_is_among(shard->record.members, shard->record.member_count, replica) &&
                (shard->wish.config == 0 ? replica_is_whole(coord, number, replica)
                                         : replica_may_own(coord, number, replica));

    coord->stats.repairs_done += done;
    coord->stats.repairs_given_up += !done;
    log_event(coord->log, done ? LOG_INFO : LOG_WARN,
              done ? "coordinator.repair_done" : "coordinator.repair_given_up",
              LOG_N("shard", number), LOG_N("replica", replica));
}

bool repair_follow(struct coord *coord, uint32_t number, struct change *ret_change,
                   struct coord_out *out)
{
    struct shard *shard = &coord->shards[number];
    const struct shard_record *record = &shard->record;
    uint64_t replica = shard->wish.repair;
    bool is_member = replica_is_among(record->members, record->member_count, replica);

    if (!is_member && record->member_count >= shard->wish.member_count)
        return false; /* Another came in its place: an operator moved the shard. */
    if (node_is_removed(coord, replica) || (is_member && is_over(coord, number, replica)))
        return false;
    if (is_member && may_leave(coord, number, replica, out))
        ret_change->removing = replica;
    if (!is_member && may_come_back(coord, number, replica))
        ret_change->adding = replica;
    if (ret_change->adding != 0 || ret_change->removing != 0) {
        shard->lost_since_ms = 0;
        return true;
    }
    return waits(coord, shard);
}
