#include "coordinator/core/coord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/audit.h"
#include "coordinator/core/audit_search.h"
#include "coordinator/core/change.h"
#include "coordinator/core/definition_change.h"
#include "coordinator/core/definition_find.h"
#include "coordinator/core/definition_send.h"
#include "coordinator/core/definitions.h"
#include "coordinator/core/delivery.h"
#include "coordinator/core/expiry.h"
#include "coordinator/core/flight.h"
#include "coordinator/core/hold.h"
#include "coordinator/core/ownership.h"
#include "coordinator/core/records.h"
#include "coordinator/core/repair.h"
#include "coordinator/core/server_keys.h"
#include "coordinator/core/spread.h"
#include "coordinator/core/term.h"
#include "coordinator/core/word.h"
#include "idl/method.h"
#include "runtime/base/check.h"

struct coord *coord_new(const struct coord_options *options)
{
    struct coord *coord = mem_zalloc(sizeof *coord);

    CHECK(cluster_name_valid(options->cluster));
    CHECK(cluster_record_validate(options->initial, NULL) == ERR_OK);
    coord->limits = options->limits != NULL ? *options->limits : coord_limits_default();
    coord_limits_check(&coord->limits);
    snprintf(coord->cluster_name, sizeof coord->cluster_name, "%s", options->cluster);
    coord->initial = *options->initial;
    buf_append(&coord->initial_policy, options->initial_policy.data, options->initial_policy.size);
    coord->placement_nodes = options->placement_nodes;
    coord->log = options->log;
    coord->flights = mem_zalloc(coord->limits.txns_max * sizeof *coord->flights);
    coord->calls = mem_zalloc(coord->limits.calls_max * sizeof *coord->calls);
    return coord;
}

void coord_free(struct coord *coord)
{
    if (coord == NULL)
        return;
    while (coord->server_count > 0)
        server_remove(coord, coord->servers[coord->server_count - 1]);
    for (uint32_t i = 0; i < coord->limits.txns_max; i++)
        arena_deinit(&coord->flights[i].arena);
    buf_deinit(&coord->initial_policy);
    buf_deinit(&coord->election_key);
    buf_deinit(&coord->policy);
    audit_free(coord);
    definitions_free(coord);
    server_keys_free(coord);
    free(coord->servers);
    free(coord->shards);
    free(coord->flights);
    free(coord->calls);
    free(coord);
}

/* Every way to lose an election ends here, at most once a term. */
static void stop_acting(struct coord *coord, const char *event)
{
    if (!coord->elected)
        return;
    coord->elected = false;
    term_drop(coord);
    log_event(coord->log, LOG_WARN, event, LOG_N("election_revision", coord->election_revision));
}

static void on_elected(struct coord *coord, const struct coord_event *event)
{
    stop_acting(coord, "coordinator.deposed");
    buf_clear(&coord->election_key);
    buf_append(&coord->election_key, event->key.data, event->key.size);
    coord->election_revision = event->create_revision;
    coord->elected = true;
    coord->elected_ms = coord->now_ms;
    coord->wall_ahead_ms = event->wall_ms - coord->now_ms;
    coord->audit.counted_ms = coord->now_ms;
    word_begin(coord);
    log_event(coord->log, LOG_INFO, "coordinator.elected",
              LOG_N("election_revision", event->create_revision));
}

static void on_halt(struct coord *coord)
{
    term_drop(coord); /* It may lead: it goes on, elected, once the restore is accepted. */
    coord->halted = true;
    log_event(coord->log, LOG_ERROR, "coordinator.halted",
              LOG_S("reason", "etcd went back to an earlier state; nothing is written until "
                              "holdfast admin accept-etcd-restore"));
}

/* Records come again, under revisions that begin again. The election still says who leads; it
 * finds out by itself. */
static void on_reset(struct coord *coord)
{
    term_drop(coord);
    while (coord->server_count > 0)
        server_remove(coord, coord->servers[coord->server_count - 1]);
    definitions_free(coord);
    coord->definitions.unseen = (struct definition_unseen){ 0 };
    audit_free(coord);
    memset(&coord->audit, 0, sizeof coord->audit);
    coord->audit.counted_ms = coord->now_ms;
    free(coord->shards);
    coord->shards = NULL;
    coord->shard_count = 0;
    coord->node_count = coord->wanted_count = 0;
    memset(coord->words, 0, sizeof coord->words);
    memset(&coord->candidates, 0, sizeof coord->candidates);
    coord->cluster_revision = coord->policy_revision = 0;
    buf_clear(&coord->policy);
    coord->elected_ms = coord->now_ms;
    coord->synced = coord->halted = false;
    coord->held_back = false;
    log_event(coord->log, LOG_WARN, "coordinator.restore_accepted",
              LOG_N("election_revision", coord->election_revision));
}

/* A node that knows a newer etcd says so in its own record. */
static bool is_held_back(struct coord *coord)
{
    uint32_t nodes = word_doubting_nodes(coord);

    if ((nodes > 0) == coord->held_back)
        return coord->held_back;
    coord->held_back = nodes > 0;
    term_drop(coord);
    if (coord->held_back)
        log_event(coord->log, LOG_ERROR, "coordinator.halted", LOG_N("nodes", nodes),
                  LOG_S("reason", "nodes know a newer etcd than this one: was it restored from a "
                                  "backup? holdfast admin accept-etcd-restore"));
    else
        log_event(coord->log, LOG_WARN, "coordinator.goes_on",
                  LOG_N("generation", coord->cluster.generation));
    return coord->held_back;
}

/* Everything that follows from the records as they stand. */
static void reconcile(struct coord *coord, struct coord_out *out)
{
    if (!coord->synced || coord->halted)
        return;
    if (coord->cluster_revision == 0) {
        if (flights_open(coord) == 0 && coord->now_ms >= coord->cluster_retry_ms)
            (void)flight_put_cluster(coord);
    } else if (is_held_back(coord)) {
        return;
    } else if (coord->elected) {
        word_run(coord, out);
        ownership_run(coord);
        spread_run(coord, out);
        change_run(coord, out);
        expiry_run(coord);
        delivery_run(coord, out);
        definitions_run(coord, out);
        audit_run(coord, out);
    }
    flights_send(coord, out);
}

static void on_put(struct coord *coord, const struct coord_event *event)
{
    uint64_t newborn = records_put(coord, event);

    if (newborn != 0)
        ownership_new_life(coord, newborn);
}

/* The unit that made the call takes the answer. */
static void on_call_done(struct coord *coord, const struct coord_event *event)
{
    struct open_call call;

    if (!delivery_take(coord, event, &call))
        return; /* Of an earlier term. */
    switch (call.method) {
    case METHOD_GET_NODE_STATUS:
        word_told(coord, &call, event);
        break;
    case METHOD_TAKE_CUT:
        audit_done(coord, &call, event);
        break;
    case METHOD_AUDIT_SEARCH:
        search_page_done(coord, &call, event);
        break;
    case METHOD_CONTAIN_PLAYER:
        search_contained(coord, &call, event);
        break;
    case METHOD_MEMBER_STATE:
        change_told(coord, &call, event);
        break;
    case METHOD_DEFINE:
    case METHOD_GET_DEFINED:
        definitions_told(coord, &call, event);
        break;
    case METHOD_APPLY_POLICY:
        delivery_policy_done(coord, &call, event);
        break;
    default:
        delivery_done(coord, &call, event->status == WIRE_OK);
        break;
    }
}

static void on_ask(struct coord *coord, const struct coord_event *event, struct coord_out *out)
{
    if (event->method == METHOD_CHANGE_DEFINITION)
        definition_change(coord, event, out);
    else
        definition_search(coord, event, out);
}

static void take(struct coord *coord, const struct coord_event *event, struct coord_out *out)
{
    switch (event->type) {
    case COORD_PUT:
        on_put(coord, event);
        definitions_reached(coord, event->mod_revision);
        return; /* Bursts come one by one: the next tick looks at them all. */
    case COORD_DELETED:
        definitions_reached(coord, event->mod_revision);
        if (!records_deleted(coord, event))
            return;
        break;
    case COORD_SYNCED:
        coord->synced = true;
        definitions_reached(coord, INT64_MAX);
        break;
    case COORD_ELECTED:
        on_elected(coord, event);
        break;
    case COORD_LOST:
        stop_acting(coord, "coordinator.deposed");
        break;
    case COORD_HALT:
        on_halt(coord);
        break;
    case COORD_RESET:
        on_reset(coord);
        return;
    case COORD_TXN_DONE:
        if (!flights_done(coord, event)) /* The election will say so too. */
            stop_acting(coord, "coordinator.write_refused");
        break;
    case COORD_CALL_DONE:
        on_call_done(coord, event);
        return; /* Up to calls_max of them at once: the next tick starts the next ones. */
    case COORD_ASK:
        on_ask(coord, event, out);
        break;
    case COORD_REPORT:
        ownership_report(coord, event->report);
        break;
    case COORD_TICK:
        break;
    }
    reconcile(coord, out);
}

void coord_step(struct coord *coord, const struct coord_event *event, struct coord_out *out)
{
    CHECK(event->now_ms >= coord->now_ms);
    coord->now_ms = event->now_ms;
    take(coord, event, out);
    definition_waits_run(coord, out);
}

bool coord_is_active(const struct coord *coord)
{
    return coord_decides(coord);
}

bool coord_is_halted(const struct coord *coord)
{
    return coord_stands_still(coord);
}

const char *coord_work_left(const struct coord *coord)
{
    return term_work_left(coord);
}

const struct cluster_record *coord_cluster(const struct coord *coord)
{
    return coord->cluster_revision > 0 ? &coord->cluster : NULL;
}

const struct node_record *coord_find_node(const struct coord *coord, uint64_t replica_id)
{
    for (uint32_t i = 0; i < coord->node_count; i++) {
        if (coord->nodes[i].record.replica_id == replica_id)
            return &coord->nodes[i].record;
    }
    return NULL;
}

uint32_t coord_node_count(const struct coord *coord)
{
    return coord->node_count;
}

const struct node_record *coord_node(const struct coord *coord, uint32_t index)
{
    CHECK(index < coord->node_count);
    return &coord->nodes[index].record;
}

const struct shard_record *coord_find_shard(const struct coord *coord, uint32_t shard)
{
    if (shard >= coord->shard_count || coord->shards[shard].mod_revision == 0)
        return NULL;
    return &coord->shards[shard].record;
}

static void count_owners(const struct coord *coord, uint32_t number, struct coord_stats *stats)
{
    const struct shard *shard = &coord->shards[number];

    if (shard->mod_revision == 0)
        return;
    const struct node_record *owner = coord_find_node(coord, shard->record.owner);

    stats->shards_unowned += owner == NULL || node_record_is_quarantined(owner, number);
    stats->shards_unownable += !ownership_is_possible(coord, number);
    stats->replicas_quarantined += ownership_quarantined_count(coord, number);
}

void coord_stats_get(const struct coord *coord, struct coord_stats *ret_stats)
{
    struct coord_stats stats = coord->stats;

    stats.active = coord_is_active(coord);
    stats.halted = coord_is_halted(coord);
    stats.nodes_live = coord->node_count;
    stats.nodes_doubting = word_doubting_nodes(coord);
    for (uint32_t i = 0; i < coord->node_count; i++)
        stats.nodes_full += coord->now_ms < coord->nodes[i].full_until_ms;
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct shard *shard = &coord->shards[i];

        stats.shards_placed_now += shard->mod_revision > 0;
        stats.shards_doubted += shard->doubted || shard->defined.doubted;
        stats.shards_unheard += shard->mod_revision > 0 && !shard->heard;
        stats.repairs_open += shard->wish_revision > 0 && shard->wish.repair != 0;
        stats.replicas_damaged += repair_damaged_count(coord, i);
        count_owners(coord, i, &stats);
    }
    for (uint32_t i = 0; i < coord->server_count; i++) {
        const struct server *server = coord->servers[i];
        bool known = server->known_revision > 0;
        bool expiring = known && server->record.state == SERVER_EXPIRING;

        stats.servers_known += known;
        stats.servers_expiring += expiring;
        stats.servers_gone += known && !expiring && !server->live;
    }
    stats.changes_open = coord->changes_open;
    stats.nodes_leaving = coord->wanted_count;
    stats.server_hold = hold_is_on(coord);
    stats.policy_pending = coord->policy_left;
    for (uint32_t i = 0; i < coord->definitions.count; i++)
        stats.definitions += !definition_newest(coord->definitions.list[i])->deleted;
    stats.definitions_pending = coord->definitions.left;
    if (coord->definitions.behind_since_ms > 0)
        stats.definitions_lag_seconds = (coord->now_ms - coord->definitions.behind_since_ms) / 1000;
    stats.transactions_open = flights_open(coord);
    stats.calls_open = coord->call_count;
    stats.audit_imbalance = coord->audit.imbalance;
    stats.audit_age_seconds = stats.active ? (coord->now_ms - coord->audit.counted_ms) / 1000 : 0;
    if (coord->limits.audit_interval_ms == 0)
        stats.audit_age_seconds = 0;
    *ret_stats = stats;
}
