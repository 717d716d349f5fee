/* ownership: places shards and names owners. DESIGN section 4; the rules stand in coord.h. */
#include "coordinator/core/ownership.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/core/flight.h"
#include "coordinator/core/records.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "runtime/cluster/shard_change.h"

#define PLACEMENT_LOG_MS 10000u

bool shard_is_settled(const struct shard *shard)
{
    return !shard->in_txn && shard->mod_revision > shard->stale_revision && !shard->doubted;
}

bool shard_may_change(const struct shard *shard)
{
    return shard_is_settled(shard) && shard->heard;
}

static bool is_shunned(const struct coord *coord, uint64_t replica_id)
{
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        if (coord->shunned[i].replica_id == replica_id)
            return coord->now_ms < coord->shunned[i].until_ms;
    }
    return false;
}

bool node_is_full(const struct coord *coord, const struct node *node)
{
    return coord->now_ms < node->full_until_ms;
}

/* Not an owner if anybody else can be: a node with damage, too, until all of it is repaired. */
bool node_is_avoided(const struct coord *coord, const struct node *node)
{
    return node->record.damaged_shards > 0 || node_is_full(coord, node) ||
           is_shunned(coord, node->record.replica_id) ||
           node_is_leaving(coord, node->record.replica_id);
}

static bool is_replica(const struct shard_record *record, uint64_t replica_id)
{
    for (uint32_t i = 0; i < record->member_count; i++) {
        if (record->members[i] == replica_id)
            return true;
    }
    for (uint32_t i = 0; i < record->new_member_count; i++) {
        if (record->new_members[i] == replica_id)
            return true;
    }
    return false;
}

bool replica_may_own(const struct coord *coord, uint32_t number, uint64_t replica_id)
{
    for (uint32_t i = 0; i < coord->node_count; i++) {
        if (coord->nodes[i].record.replica_id == replica_id)
            return node_record_may_own(&coord->nodes[i].record, number);
    }
    return false;
}

bool ownership_is_possible(const struct coord *coord, uint32_t number)
{
    const struct shard_record *record = &coord->shards[number].record;

    for (uint32_t i = 0; i < coord->node_count; i++) {
        const struct node_record *node = &coord->nodes[i].record;

        if (is_replica(record, node->replica_id) && node_record_may_own(node, number))
            return true;
    }
    return false;
}

uint32_t ownership_quarantined_count(const struct coord *coord, uint32_t number)
{
    const struct shard_record *record = &coord->shards[number].record;
    uint32_t count = 0;

    for (uint32_t i = 0; i < coord->node_count; i++) {
        const struct node_record *node = &coord->nodes[i].record;

        count += is_replica(record, node->replica_id) && node_record_is_quarantined(node, number);
    }
    return count;
}

static void shun(struct coord *coord, uint64_t replica_id)
{
    struct shunned *place = &coord->shunned[0];

    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        struct shunned *candidate = &coord->shunned[i];

        if (candidate->replica_id == replica_id) {
            place = candidate;
            break;
        }
        if (candidate->until_ms < place->until_ms)
            place = candidate;
    }
    *place = (struct shunned){ replica_id, coord->now_ms + coord->limits.rebalance_shun_ms };
}

void ownership_new_life(struct coord *coord, uint64_t replica_id)
{
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        if (coord->shunned[i].replica_id == replica_id)
            coord->shunned[i] = (struct shunned){ 0 };
    }
}

static void count_owned(struct coord *coord)
{
    memset(coord->owned, 0, sizeof coord->owned);
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        struct node *owner = NULL;

        if (coord->shards[i].mod_revision > 0)
            owner = node_find(coord, coord->shards[i].record.owner);
        if (owner != NULL)
            coord->owned[owner - coord->nodes]++;
    }
}

/* The same record, one epoch on. False: too much is in flight; a later step sees to it. */
static bool name_owner(struct coord *coord, uint32_t number, uint64_t owner, const char *reason)
{
    struct shard *shard = &coord->shards[number];
    struct shard_record record = shard->record;
    struct node *from = node_find(coord, record.owner);
    struct node *to = node_find(coord, owner);

    CHECK(to != NULL);
    /* An acceptance of a restored etcd that was cut short has raised those of some shards. */
    if (record.generation < coord->cluster.generation)
        record.generation = coord->cluster.generation;
    record.epoch = epoch_after(coord, shard);
    record.owner = owner;
    if (!flight_put_shard(coord, number, &record))
        return false;
    if (from != NULL)
        coord->owned[from - coord->nodes]--;
    coord->owned[to - coord->nodes]++;
    log_event(coord->log, LOG_INFO, "coordinator.owner_named", LOG_N("shard", number),
              LOG_N("epoch", record.epoch), LOG_N("owner", owner),
              LOG_N("previous", shard->record.owner), LOG_S("reason", reason));
    return true;
}

bool ownership_hand_over(struct coord *coord, uint32_t number, uint64_t owner, const char *reason)
{
    return name_owner(coord, number, owner, reason);
}

/* ---- reports ---- */

/* The reporter's valid report on the shard as it is recorded now, or NULL. */
static const struct report *find_report(const struct coord *coord, const struct shard *shard,
                                        uint64_t reporter)
{
    for (uint32_t i = 0; i < REPLICAS_MAX; i++) {
        const struct report *report = &shard->reports[i];

        if (report->reporter == reporter && report->epoch == shard->record.epoch &&
            coord->now_ms - report->at_ms <= coord->limits.report_valid_ms)
            return report;
    }
    return NULL;
}

static struct report *report_place(struct shard *shard, uint64_t reporter)
{
    struct report *oldest = &shard->reports[0];

    for (uint32_t i = 0; i < REPLICAS_MAX; i++) {
        if (shard->reports[i].reporter == reporter)
            return &shard->reports[i];
        if (shard->reports[i].at_ms < oldest->at_ms)
            oldest = &shard->reports[i];
    }
    return oldest;
}

static void report_full(struct coord *coord, uint64_t replica_id)
{
    struct node *node = node_find(coord, replica_id);

    if (node == NULL)
        return;
    if (!node_is_full(coord, node))
        log_event(coord->log, LOG_WARN, "coordinator.node_full", LOG_N("replica", replica_id),
                  LOG_S("name", node->record.name));
    node->full_until_ms = coord->now_ms + coord->limits.report_valid_ms;
}

/* What an owner itself may say of its shards, of the record as it is: it takes another epoch. */
enum wish { WISH_NONE, WISH_DECLINED, WISH_OUTGROWN, WISH_CLOCK };

static enum wish wish_of(const Holdfast__Internal__V1__ReportOwnerRequest *report)
{
    if (report->reporter != report->owner || report->reason == NULL)
        return WISH_NONE;
    if (strcmp(report->reason, "declined") == 0)
        return WISH_DECLINED;
    if (strcmp(report->reason, "clock") == 0)
        return WISH_CLOCK;
    return strcmp(report->reason, "outgrown") == 0 ? WISH_OUTGROWN : WISH_NONE;
}

static void report_wish(struct coord *coord, enum wish wish,
                        const Holdfast__Internal__V1__ReportOwnerRequest *report)
{
    for (size_t i = 0; i < report->n_shards; i++) {
        const Holdfast__Internal__V1__ShardPosition *position = report->shards[i];

        if (position->shard >= coord->shard_count)
            continue;
        struct shard *shard = &coord->shards[position->shard];

        if (shard->mod_revision == 0 || position->epoch != shard->record.epoch ||
            report->owner != shard->record.owner)
            continue;
        if (wish == WISH_DECLINED)
            shard->declined_epoch = position->epoch;
        else if (wish == WISH_OUTGROWN)
            shard->outgrown_epoch = position->epoch;
        else
            shard->clock_epoch = position->epoch;
        if (wish == WISH_CLOCK) {
            shard->clock_until_ms = coord->now_ms + coord->limits.report_valid_ms;
            shun(coord, shard->record.owner); /* Before it gets more of them. */
        }
    }
}

void ownership_report(struct coord *coord, const Holdfast__Internal__V1__ReportOwnerRequest *report)
{
    bool closed = report->reason != NULL && strcmp(report->reason, "closed") == 0;
    uint32_t since_ms_min = closed ? coord->limits.claim_closed_ms : coord->limits.claim_silent_ms;

    coord->stats.reports++;
    if (report->reporter == report->owner && report->reason != NULL &&
        strcmp(report->reason, "full") == 0) {
        report_full(coord, report->reporter);
        return;
    }
    if (wish_of(report) != WISH_NONE) {
        report_wish(coord, wish_of(report), report);
        return;
    }
    if (report->since_ms < since_ms_min || report->reporter == 0)
        return;
    for (size_t i = 0; i < report->n_shards; i++) {
        const Holdfast__Internal__V1__ShardPosition *position = report->shards[i];

        if (position->shard >= coord->shard_count)
            continue;
        struct shard *shard = &coord->shards[position->shard];

        if (shard->mod_revision == 0 || position->epoch != shard->record.epoch ||
            report->owner != shard->record.owner || report->reporter == report->owner ||
            !is_replica(&shard->record, report->reporter))
            continue;
        coord->reported_ms = coord->now_ms;
        *report_place(shard, report->reporter) = (struct report){
            .reporter = report->reporter,
            .at_ms = coord->now_ms,
            .epoch = position->epoch,
            .dot_epoch = position->last != NULL ? position->last->epoch : 0,
            .dot_counter = position->last != NULL ? position->last->counter : 0,
        };
    }
}

static bool majority_reports(const struct coord *coord, const struct shard *shard,
                             const uint64_t *members, uint32_t member_count)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < member_count; i++)
        count += find_report(coord, shard, members[i]) != NULL;
    return count > member_count / 2;
}

bool shard_is_calm(const struct coord *coord, const struct shard *shard)
{
    return shard->changed_ms == 0 ||
           coord->now_ms - shard->changed_ms >= coord->limits.claim_calm_ms;
}

/* Early claim: enough replicas that could carry the shard on without its owner say so. */
static bool is_claimed(const struct coord *coord, const struct shard *shard)
{
    const struct shard_record *record = &shard->record;

    if (coord->reported_ms == 0 ||
        coord->now_ms - coord->reported_ms > coord->limits.report_valid_ms ||
        !shard_is_calm(coord, shard) ||
        !majority_reports(coord, shard, record->members, record->member_count))
        return false;
    return record->phase == SHARD_STABLE ||
           majority_reports(coord, shard, record->new_members, record->new_member_count);
}

/* ---- who should own it ---- */

/* A candidate's rank; compared field by field, the greatest wins, the first of equals. */
struct rank {
    uint64_t whole;       /* 1: its replica is not damaged, nor quarantined. */
    uint64_t writable;    /* 1: its disk has room. */
    uint64_t dot_epoch;   /* 0: it did not report. Promotion adopts the greatest log anyway, this */
    uint64_t dot_counter; /* saves fetching it. */
    uint64_t trusted;     /* 1: no node claimed against it lately. */
    uint64_t room;        /* The fewer shards it owns, the greater. */
};

static bool rank_above(const struct rank *a, const struct rank *b)
{
    if (a->whole != b->whole)
        return a->whole > b->whole;
    if (a->writable != b->writable)
        return a->writable > b->writable;
    if (a->dot_epoch != b->dot_epoch)
        return a->dot_epoch > b->dot_epoch;
    if (a->dot_counter != b->dot_counter)
        return a->dot_counter > b->dot_counter;
    if (a->trusted != b->trusted)
        return a->trusted > b->trusted;
    return a->room > b->room;
}

static struct rank rank_of(const struct coord *coord, const struct shard *shard,
                           const struct node *node)
{
    const struct report *report = find_report(coord, shard, node->record.replica_id);

    return (struct rank){
        .whole = node_record_may_own(&node->record, (uint32_t)(shard - coord->shards)),
        .writable = !node_is_full(coord, node),
        .dot_epoch = report != NULL ? report->dot_epoch : 0,
        .dot_counter = report != NULL ? report->dot_counter : 0,
        .trusted = !node_is_avoided(coord, node),
        .room = CLUSTER_SHARDS_MAX - coord->owned[node - coord->nodes],
    };
}

/* The best live replica other than the owner, only reporters if so wanted; 0: there is none. One
 * that is quarantined would not promote itself: named, it only hides that the shard has no owner.
 */
static uint64_t best_replica(struct coord *coord, const struct shard *shard, bool reporters_only)
{
    const struct shard_record *record = &shard->record;
    struct rank best = { 0 };
    uint64_t winner = 0;

    for (uint32_t i = 0; i < record->member_count + record->new_member_count; i++) {
        uint64_t id = i < record->member_count ? record->members[i]
                                               : record->new_members[i - record->member_count];
        struct node *node = node_find(coord, id);

        if (node == NULL || id == record->owner ||
            node_record_is_quarantined(&node->record, (uint32_t)(shard - coord->shards)) ||
            (reporters_only && find_report(coord, shard, id) == NULL))
            continue;
        struct rank rank = rank_of(coord, shard, node);

        if (winner == 0 || rank_above(&rank, &best)) {
            winner = id;
            best = rank;
        }
    }
    return winner;
}

/* Reads are served where they are; writes go on where there is room. False: as check_owner. */
static bool relieve_owner(struct coord *coord, uint32_t number)
{
    struct shard *shard = &coord->shards[number];
    struct node *heir = node_find(coord, best_replica(coord, shard, false));

    if (!shard_is_calm(coord, shard) || heir == NULL || node_is_full(coord, heir) ||
        node_record_is_damaged(&heir->record, number))
        return true;
    coord->stats.evacuations++;
    return name_owner(coord, number, heir->record.replica_id, "owner's disk is full");
}

/* Its members refuse what it dates. For a while it gets no other shard, either: only an owner
 * learns that its clock is ahead. False: as check_owner. */
static bool replace_clock(struct coord *coord, uint32_t number)
{
    struct shard *shard = &coord->shards[number];
    struct node *heir = node_find(coord, best_replica(coord, shard, false));

    if (heir == NULL || node_record_is_damaged(&heir->record, number))
        return true;
    coord->stats.clocks_ahead++;
    shun(coord, shard->record.owner);
    return name_owner(coord, number, heir->record.replica_id, "owner's clock is ahead");
}

/* It neither serves nor promotes itself. False: as check_owner. */
static bool replace_quarantined(struct coord *coord, uint32_t number)
{
    struct shard *shard = &coord->shards[number];
    struct node *heir = node_find(coord, best_replica(coord, shard, false));

    if (!shard_is_calm(coord, shard) || heir == NULL ||
        node_record_is_damaged(&heir->record, number))
        return true;
    coord->stats.quarantined++;
    return name_owner(coord, number, heir->record.replica_id, "owner's replica is quarantined");
}

/* False: no transaction is free. */
static bool check_owner(struct coord *coord, uint32_t number)
{
    struct shard *shard = &coord->shards[number];
    const struct node *owner = node_find(coord, shard->record.owner);

    if (owner == NULL) {
        uint64_t heir = best_replica(coord, shard, false);

        if (heir == 0)
            return true;
        coord->stats.failovers++;
        return name_owner(coord, number, heir, "owner's lease is gone");
    }
    if (node_record_is_quarantined(&owner->record, number))
        return replace_quarantined(coord, number);
    if (shard->record.epoch <= coord->cluster.epoch_floor)
        return name_owner(coord, number, shard->record.owner, "a backup had later epochs");
    if (owner->life_revision > shard->mod_revision) {
        coord->stats.restarts++;
        if (owner->record.damaged_shards > 0) {
            const struct node *heir = node_find(coord, best_replica(coord, shard, false));

            if (heir != NULL && !node_record_is_damaged(&heir->record, number) &&
                (heir->record.damaged_shards == 0 ||
                 node_record_is_damaged(&owner->record, number)))
                return name_owner(coord, number, heir->record.replica_id,
                                  "owner restarted with damage");
        }
        return name_owner(coord, number, shard->record.owner, "owner restarted");
    }
    if (shard->declined_epoch == shard->record.epoch && shard_is_calm(coord, shard)) {
        coord->stats.declined++;
        return name_owner(coord, number, shard->record.owner, "owner had this epoch before");
    }
    if (shard->clock_epoch == shard->record.epoch && coord->now_ms < shard->clock_until_ms &&
        shard_is_calm(coord, shard))
        return replace_clock(coord, number);
    if (shard->outgrown_epoch == shard->record.epoch && shard_is_calm(coord, shard)) {
        coord->stats.outgrown++;
        return name_owner(coord, number, shard->record.owner, "its members apply a later version");
    }
    if (is_claimed(coord, shard)) {
        uint64_t heir = best_replica(coord, shard, true);

        if (heir == 0)
            return true;
        coord->stats.claims++;
        shun(coord, shard->record.owner);
        return name_owner(coord, number, heir, "early claim");
    }
    return !node_is_full(coord, owner) || relieve_owner(coord, number);
}

/* ---- first placement ---- */
static bool placement_is_due(struct coord *coord)
{
    uint32_t wanted = coord->placement_nodes > coord->cluster.replication_factor
                          ? coord->placement_nodes
                          : coord->cluster.replication_factor;

    if (coord->node_count < wanted) {
        if (coord->placement_logged_ms == 0 ||
            coord->now_ms - coord->placement_logged_ms >= PLACEMENT_LOG_MS) {
            coord->placement_logged_ms = coord->now_ms;
            log_event(coord->log, LOG_INFO, "coordinator.waiting_for_nodes",
                      LOG_N("nodes", coord->node_count), LOG_N("wanted", wanted));
        }
        return false;
    }
    return coord->now_ms - coord->node_added_ms >= coord->limits.placement_settle_ms;
}

static bool is_unplaced(const struct shard *shard)
{
    return shard->mod_revision == 0 && !shard->seen && shard_may_change(shard);
}

struct placement_shard *ownership_proposals_new(struct coord *coord)
{
    struct placement_shard *proposals = mem_zalloc(coord->shard_count * sizeof *proposals);
    struct placement_node nodes[CLUSTER_NODES_MAX];

    for (uint32_t i = 0; i < coord->node_count; i++)
        nodes[i] = (struct placement_node){ .replica_id = coord->nodes[i].record.replica_id,
                                            .zone = coord->nodes[i].record.zone };
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct shard *shard = &coord->shards[i];
        struct placement_shard *proposal = &proposals[i];

        if (shard->mod_revision == 0) {
            proposal->member_count = placement_members(
                i, nodes, coord->node_count, coord->cluster.replication_factor, proposal->members);
            continue;
        }
        proposal->member_count = shard->record.member_count;
        memcpy(proposal->members, shard->record.members, sizeof proposal->members);
        proposal->owner = shard->record.owner;
    }
    return proposals;
}

static bool place_shard(struct coord *coord, uint32_t number,
                        const struct placement_shard *proposal)
{
    struct shard_record record = {
        .generation = coord->cluster.generation,
        .epoch = epoch_after(coord, &coord->shards[number]),
        .owner = proposal->owner,
        .config = 1,
        .phase = SHARD_STABLE,
        .member_count = proposal->member_count,
    };

    memcpy(record.members, proposal->members, sizeof record.members);
    if (!flight_put_shard(coord, number, &record))
        return false;
    coord->stats.shards_placed++;
    return true;
}

static void place_shards(struct coord *coord)
{
    uint64_t owners[CLUSTER_NODES_MAX];
    uint32_t unplaced = 0;

    for (uint32_t i = 0; i < coord->shard_count; i++)
        unplaced += is_unplaced(&coord->shards[i]);
    if (unplaced == 0 || !placement_is_due(coord))
        return;
    struct placement_shard *proposals = ownership_proposals_new(coord);

    for (uint32_t i = 0; i < coord->node_count; i++)
        owners[i] = coord->nodes[i].record.replica_id;
    (void)placement_balance(proposals, coord->shard_count, owners, coord->node_count);
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        if (is_unplaced(&coord->shards[i]) && !place_shard(coord, i, &proposals[i]))
            break;
    }
    log_event(coord->log, LOG_INFO, "coordinator.placing", LOG_N("shards", unplaced),
              LOG_N("nodes", coord->node_count));
    free(proposals);
}

void ownership_run(struct coord *coord)
{
    place_shards(coord);
    count_owned(coord);
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct shard *shard = &coord->shards[i];

        if (shard->mod_revision > 0 && shard_is_settled(shard) && !check_owner(coord, i))
            break;
    }
}
