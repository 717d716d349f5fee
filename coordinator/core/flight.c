/*
 * flight: transactions on their way. A transaction without a definite answer is repeated as it
 * is: each of its writes compares the mod_revision that the write itself changes, so whichever
 * attempt comes first is the only one. A write whose compare failed is never judged from the
 * answer: the record in etcd, once it has come, says what is so, be it our own earlier attempt's.
 */
#include "coordinator/core/flight.h"

#include "coordinator/core/definitions.h"
#include "coordinator/core/records.h"
#include "runtime/base/check.h"

static struct slice keep(struct flight *flight, struct cluster_key key)
{
    return arena_copy(&flight->arena, cluster_key_slice(&key));
}

/* Room for `count` more writes in the open flight, or NULL. */
static struct flight *open_flight(struct coord *coord, uint32_t count)
{
    struct flight *vacant = NULL;

    for (uint32_t i = 0; i < coord->limits.txns_max; i++) {
        struct flight *flight = &coord->flights[i];

        if (flight->state == FLIGHT_FILLING && !flight->unelected &&
            flight->count + count <= coord->limits.txn_writes_max)
            return flight;
        if (flight->state == FLIGHT_FREE && vacant == NULL)
            vacant = flight;
    }
    if (vacant == NULL)
        return NULL;
    arena_reset(&vacant->arena);
    vacant->state = FLIGHT_FILLING;
    vacant->ticket = ++coord->ticket;
    vacant->unelected = false;
    vacant->count = 0;
    return vacant;
}

/* The next write, zeroed, for the caller to fill. */
static struct coord_write *add(struct flight *flight, const struct target *target)
{
    uint32_t place = flight->count++;

    CHECK(place < COORD_TXN_WRITES_MAX);
    flight->targets[place] = *target;
    flight->writes[place] = (struct coord_write){ 0 };
    return &flight->writes[place];
}

bool flights_define(const struct coord *coord)
{
    for (uint32_t i = 0; i < coord->limits.txns_max; i++) {
        const struct flight *flight = &coord->flights[i];

        for (uint32_t k = 0; flight->state != FLIGHT_FREE && k < flight->count; k++) {
            if (flight->targets[k].kind == TARGET_DEFINITION && !flight->targets[k].removal)
                return true;
        }
    }
    return false;
}

/* The policy comes first and also wants the cluster's record absent, so that only
 * the coordinator that creates the cluster writes it. */
bool flight_put_cluster(struct coord *coord)
{
    struct flight *flight = open_flight(coord, 2);
    struct buf value = { 0 };

    if (flight == NULL)
        return false;
    struct slice key = keep(flight, cluster_key_cluster(coord->cluster_name));

    flight->unelected = true;
    if (coord->initial_policy.size > 0) {
        struct coord_write *policy = add(flight, &(struct target){ .kind = TARGET_POLICY });

        policy->key = keep(flight, cluster_key_policy(coord->cluster_name));
        policy->value = buf_slice(&coord->initial_policy);
        policy->absent_key = key;
    }
    struct coord_write *write = add(flight, &(struct target){ .kind = TARGET_CLUSTER });

    cluster_record_encode(&coord->initial, &value);
    write->key = key;
    write->value = arena_copy(&flight->arena, buf_slice(&value));
    buf_deinit(&value);
    return true;
}

bool flight_put_shard(struct coord *coord, uint32_t number, const struct shard_record *record)
{
    struct shard *shard = &coord->shards[number];
    struct flight *flight = open_flight(coord, 1);
    struct buf value = { 0 };

    CHECK(!shard->in_txn);
    CHECK(record->epoch == epoch_after(coord, shard));
    if (flight == NULL)
        return false;
    struct coord_write *write =
        add(flight, &(struct target){ .kind = TARGET_SHARD, .shard = number, .record = *record });

    shard_record_encode(record, &value);
    write->key = keep(flight, cluster_key_shard(coord->cluster_name, number));
    write->value = arena_copy(&flight->arena, buf_slice(&value));
    write->mod_revision = shard->mod_revision;
    shard->in_txn = true;
    buf_deinit(&value);
    return true;
}

bool flight_put_server(struct coord *coord, struct server *server,
                       const struct server_record *record)
{
    struct flight *flight = open_flight(coord, 1);
    struct buf value = { 0 };
    bool expiring = record->state == SERVER_EXPIRING;

    CHECK(server->txn == 0 && (expiring || record->held_since_ms > 0));
    if (flight == NULL)
        return false;
    struct coord_write *write =
        add(flight, &(struct target){ .kind = expiring ? TARGET_SERVER_MARK : TARGET_SERVER_HOLD,
                                      .incarnation = server->incarnation,
                                      .held_since_ms = record->held_since_ms });

    server_record_encode(record, &value);
    write->key = keep(flight, cluster_key_server_known(coord->cluster_name, server->incarnation));
    write->value = arena_copy(&flight->arena, buf_slice(&value));
    write->mod_revision = server->known_revision;
    write->absent_key =
        keep(flight, cluster_key_server_live(coord->cluster_name, server->incarnation));
    server->txn = flight->ticket;
    buf_deinit(&value);
    return true;
}

bool flight_remove_server(struct coord *coord, struct server *server)
{
    struct flight *flight = open_flight(coord, 1);

    CHECK(server->txn == 0 && server->record.state == SERVER_EXPIRING);
    if (flight == NULL)
        return false;
    struct coord_write *write = add(flight, &(struct target){ .kind = TARGET_SERVER_FORGET,
                                                              .incarnation = server->incarnation });

    write->remove = true;
    write->key = keep(flight, cluster_key_server_known(coord->cluster_name, server->incarnation));
    write->mod_revision = server->known_revision;
    server->txn = flight->ticket;
    return true;
}

static bool remove_record(struct coord *coord, struct cluster_key key, const struct target *target,
                          int64_t mod_revision)
{
    struct flight *flight = open_flight(coord, 1);

    if (flight == NULL)
        return false;
    struct coord_write *write = add(flight, target);

    write->remove = true;
    write->key = keep(flight, key);
    write->mod_revision = mod_revision;
    return true;
}

bool flight_remove_node_wish(struct coord *coord, uint64_t replica_id)
{
    for (uint32_t i = 0; i < coord->wanted_count; i++) {
        if (coord->wanted[i].replica_id == replica_id)
            return remove_record(
                coord, cluster_key_node_wish(coord->cluster_name, replica_id),
                &(struct target){ .kind = TARGET_NODE_WISH, .replica_id = replica_id },
                coord->wanted[i].mod_revision);
    }
    return false;
}

bool flight_remove_shard_wish(struct coord *coord, uint32_t number)
{
    return remove_record(coord, cluster_key_shard_wish(coord->cluster_name, number),
                         &(struct target){ .kind = TARGET_SHARD_WISH, .shard = number },
                         coord->shards[number].wish_revision);
}

bool flight_put_shard_wish(struct coord *coord, uint32_t number, const struct shard_wish *wish)
{
    struct shard *shard = &coord->shards[number];
    struct flight *flight = open_flight(coord, 1);
    struct buf value = { 0 };

    CHECK(!shard->wish_in_txn && shard->wish_revision == 0);
    if (flight == NULL)
        return false;
    struct coord_write *write =
        add(flight, &(struct target){ .kind = TARGET_SHARD_WISH, .shard = number });

    shard_wish_encode(wish, &value);
    write->key = keep(flight, cluster_key_shard_wish(coord->cluster_name, number));
    write->value = arena_copy(&flight->arena, buf_slice(&value));
    shard->wish = *wish;
    shard->wish_in_txn = true;
    buf_deinit(&value);
    return true;
}

/* Left in_txn until etcd's change comes, unless an operator wished again. */
static void wish_done(struct coord *coord, const struct target *target, bool written)
{
    if (written)
        return;
    coord->stats.writes_lost++;
    if (target->kind == TARGET_SHARD_WISH) {
        coord->shards[target->shard].wish_in_txn = false;
        return;
    }
    for (uint32_t i = 0; i < coord->wanted_count; i++) {
        if (coord->wanted[i].replica_id == target->replica_id)
            coord->wanted[i].in_txn = false;
    }
}

bool flight_put_definition(struct coord *coord, uint64_t number, uint64_t version,
                           int64_t after_revision, struct slice packed)
{
    struct flight *flight = open_flight(coord, 1);

    if (flight == NULL)
        return false;
    struct coord_write *write =
        add(flight,
            &(struct target){ .kind = TARGET_DEFINITION, .number = number, .version = version });

    write->key = keep(flight, cluster_key_definition(coord->cluster_name, number, version));
    write->value = arena_copy(&flight->arena, packed);
    if (version > 1)
        write->after_key =
            keep(flight, cluster_key_definition(coord->cluster_name, number, version - 1));
    write->after_revision = after_revision;
    return true;
}

bool flight_remove_definition(struct coord *coord, uint64_t number, uint64_t version,
                              int64_t revision)
{
    return remove_record(
        coord, cluster_key_definition(coord->cluster_name, number, version),
        &(struct target){
            .kind = TARGET_DEFINITION, .number = number, .version = version, .removal = true },
        revision);
}

/* The record may have gone, and a new one of the same server may have come, before the answer. */
static void server_done(struct coord *coord, const struct flight *flight,
                        const struct target *target, bool written, int64_t revision)
{
    struct server *server = server_find(coord, target->incarnation);

    if (server == NULL || server->txn != flight->ticket)
        return;
    if (!written) {
        coord->stats.writes_lost++;
        server->txn = 0;
        server->retry_ms = coord->now_ms + coord->limits.txn_retry_ms;
        return;
    }
    if (target->kind == TARGET_SERVER_FORGET) {
        coord->stats.servers_expired++;
        return; /* `txn` is kept until etcd's delete comes. */
    }
    server->txn = 0;
    if (revision > server->known_revision) {
        server->known_revision = revision;
        server->record.held_since_ms = target->held_since_ms;
        if (target->kind == TARGET_SERVER_MARK) {
            server->record.state = SERVER_EXPIRING;
            server->held_since_ms = 0;
        }
    }
    coord->stats.servers_marked += target->kind == TARGET_SERVER_MARK;
}

static void target_done(struct coord *coord, struct flight *flight, uint32_t place, bool written,
                        int64_t revision)
{
    const struct target *target = &flight->targets[place];

    switch (target->kind) {
    case TARGET_CLUSTER:
        coord->cluster_retry_ms = coord->now_ms + coord->limits.txn_retry_ms;
        if (written)
            log_event(coord->log, LOG_INFO, "coordinator.cluster_created",
                      LOG_S("cluster_id", coord->initial.cluster_id));
        break;
    case TARGET_POLICY:
        break;
    case TARGET_SHARD: {
        struct shard *shard = &coord->shards[target->shard];

        shard->in_txn = false;
        if (written) {
            shard_adopt(coord, target->shard, &target->record, revision);
        } else {
            shard->stale_revision = flight->writes[place].mod_revision;
            shard->stale_ms = coord->now_ms;
            coord->stats.writes_lost++;
        }
        break;
    }
    case TARGET_SERVER_MARK:
    case TARGET_SERVER_HOLD:
    case TARGET_SERVER_FORGET:
        server_done(coord, flight, target, written, revision);
        break;
    case TARGET_NODE_WISH:
    case TARGET_SHARD_WISH:
        wish_done(coord, target, written);
        break;
    case TARGET_DEFINITION:
        if (target->removal && !written)
            coord->definitions.trimming = false; /* It is looked for again. */
        else if (!target->removal)
            definition_written(
                coord, target->number, target->version,
                &(struct definition_write){ written, revision, flight->writes[place].value });
        break;
    }
}

static struct flight *find_sent(struct coord *coord, uint64_t ticket)
{
    for (uint32_t i = 0; i < coord->limits.txns_max; i++) {
        if (coord->flights[i].state == FLIGHT_SENT && coord->flights[i].ticket == ticket)
            return &coord->flights[i];
    }
    return NULL;
}

bool flights_done(struct coord *coord, const struct coord_event *event)
{
    struct flight *flight = find_sent(coord, event->ticket);

    if (flight == NULL)
        return true; /* Of an earlier term: the records will tell. */
    switch (event->outcome) {
    case COORD_TXN_UNKNOWN:
        coord->stats.transactions_unknown++;
        flight->state = FLIGHT_WAITING;
        flight->retry_at_ms = coord->now_ms + coord->limits.txn_retry_ms;
        break;
    case COORD_TXN_DEPOSED:
        return false;
    case COORD_TXN_ANSWERED:
        flight->state = FLIGHT_FREE;
        for (uint32_t i = 0; i < flight->count; i++)
            target_done(coord, flight, i, event->written[i], event->mod_revision);
        break;
    }
    return true;
}

static void send_flight(struct coord *coord, struct flight *flight, struct coord_out *out)
{
    if (out->txn_count == out->txn_capacity) {
        out->txn_capacity = out->txn_capacity == 0 ? 8 : out->txn_capacity * 2;
        out->txns = mem_realloc(out->txns, out->txn_capacity * sizeof *out->txns);
    }
    struct coord_txn *txn = &out->txns[out->txn_count++];

    *txn = (struct coord_txn){
        .ticket = flight->ticket,
        .writes = flight->writes,
        .write_count = flight->count,
    };
    if (!flight->unelected) {
        CHECK(coord->elected && coord->election_key.size > 0); /* Empty would be without a fence. */
        txn->election_key = buf_slice(&coord->election_key);
        txn->election_revision = coord->election_revision;
    }
    flight->state = FLIGHT_SENT;
    coord->stats.transactions++;
}

void flights_send(struct coord *coord, struct coord_out *out)
{
    for (uint32_t i = 0; i < coord->limits.txns_max; i++) {
        struct flight *flight = &coord->flights[i];

        if (flight->state == FLIGHT_FILLING ||
            (flight->state == FLIGHT_WAITING && coord->now_ms >= flight->retry_at_ms))
            send_flight(coord, flight, out);
    }
}

void flights_drop(struct coord *coord)
{
    for (uint32_t i = 0; i < coord->limits.txns_max; i++)
        coord->flights[i].state = FLIGHT_FREE;
    for (uint32_t i = 0; i < coord->shard_count; i++)
        coord->shards[i].in_txn = coord->shards[i].wish_in_txn = false;
    for (uint32_t i = 0; i < coord->wanted_count; i++)
        coord->wanted[i].in_txn = false;
    for (uint32_t i = 0; i < coord->server_count; i++)
        coord->servers[i]->txn = 0;
}

uint32_t flights_open(const struct coord *coord)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < coord->limits.txns_max; i++)
        count += coord->flights[i].state != FLIGHT_FREE;
    return count;
}
