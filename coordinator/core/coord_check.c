/*
 * coord_check: walks what a coordinator knows and has on its way, and checks that it fits together.
 * Tests and the simulator do so after every step.
 */
#include <string.h>

#include "coordinator/core/coord.h"
#include "coordinator/core/coord_state.h"
#include "coordinator/core/delivery.h"
#include "coordinator/core/flight.h"
#include "idl/method.h"
#include "runtime/base/check.h"

/* ---- transactions ---- */
static bool is_open(const struct flight *flight)
{
    return flight->state != FLIGHT_FREE;
}

static const struct server *server_of(const struct coord *coord, struct incarnation incarnation)
{
    for (uint32_t i = 0; i < coord->server_count; i++) {
        if (incarnation_compare(coord->servers[i]->incarnation, incarnation) == 0)
            return coord->servers[i];
    }
    return NULL;
}

/* A server's record may have gone, and come again, since the write was sent. */
static void check_server_target(const struct coord *coord, const struct flight *flight,
                                const struct target *target)
{
    const struct server *server = server_of(coord, target->incarnation);

    CHECK(server == NULL || server->txn == 0 || server->txn >= flight->ticket);
}

/* What a write that is on its way is about says so. Wishes may be wished again meanwhile. */
static void check_target(const struct coord *coord, const struct flight *flight, uint32_t place)
{
    const struct target *target = &flight->targets[place];

    switch (target->kind) {
    case TARGET_SHARD:
        CHECK(target->shard < coord->shard_count);
        CHECK(coord->shards[target->shard].in_txn);
        break;
    case TARGET_SHARD_WISH:
        CHECK(target->shard < coord->shard_count);
        break;
    case TARGET_SERVER_MARK:
    case TARGET_SERVER_HOLD:
    case TARGET_SERVER_FORGET:
        check_server_target(coord, flight, target);
        break;
    case TARGET_CLUSTER:
    case TARGET_POLICY:
    case TARGET_NODE_WISH:
    case TARGET_DEFINITION:
        break;
    }
}

static void check_flight(const struct coord *coord, const struct flight *flight)
{
    CHECK(flight->count > 0 && flight->count <= COORD_TXN_WRITES_MAX);
    CHECK(flight->ticket <= coord->ticket);
    CHECK(flight->unelected || coord->elected);
    for (uint32_t i = 0; i < flight->count; i++)
        check_target(coord, flight, i);
}

static void check_flights(const struct coord *coord)
{
    uint32_t writes = 0, shards = 0;

    for (uint32_t i = 0; i < coord->limits.txns_max; i++) {
        const struct flight *flight = &coord->flights[i];
        if (!is_open(flight))
            continue;
        check_flight(coord, flight);
        for (uint32_t j = 0; j < i; j++)
            CHECK(!is_open(&coord->flights[j]) || coord->flights[j].ticket != flight->ticket);
        for (uint32_t j = 0; j < flight->count; j++)
            writes += flight->targets[j].kind == TARGET_SHARD;
    }
    for (uint32_t i = 0; i < coord->shard_count; i++)
        shards += coord->shards[i].in_txn;
    CHECK(writes == shards); /* No shard waits for a write that was not sent. */
}

/* ---- calls ---- */

/* Open calls, by what they are about. */
struct calls {
    uint32_t all, policy, state, expiry, defined;
};

static void check_calls(const struct coord *coord, struct calls *ret_calls)
{
    *ret_calls = (struct calls){ 0 };
    for (uint32_t i = 0; i < coord->limits.calls_max; i++) {
        const struct open_call *call = &coord->calls[i];
        if (call->call == 0)
            continue;
        CHECK(call->call <= coord->call);
        CHECK(call->call % coord->limits.calls_max == i);
        CHECK(call->method == METHOD_GET_NODE_STATUS || call->shard < coord->shard_count);
        ret_calls->all++;
        ret_calls->policy += call->method == METHOD_APPLY_POLICY;
        ret_calls->state += call->method == METHOD_MEMBER_STATE;
        ret_calls->defined += call->method == METHOD_DEFINE || call->method == METHOD_GET_DEFINED;
        ret_calls->expiry += call->method == METHOD_EXPIRE_SERVER;
    }
    CHECK(ret_calls->all == coord->call_count);
}

/* ---- shards ---- */
static void check_shards(const struct coord *coord, const struct calls *calls)
{
    uint32_t policy = 0, state = 0, defined = 0;

    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct shard *shard = &coord->shards[i];
        policy += shard->policy_calls;
        state += shard->state_calls;
        defined += shard->defined.calls;
        CHECK(shard->defined.calls <= 1);
        CHECK(shard->policy_calls <= 1);
        CHECK(shard->state_calls <= 1);
        CHECK(shard->mute_count <= REPLICAS_MAX);
        CHECK(shard->state.member_count <= CLUSTER_MEMBERS_MAX);
        CHECK(IMPLIES(shard->mod_revision > 0, shard->seen));
    }
    CHECK(policy == calls->policy);
    CHECK(state == calls->state);
    CHECK(defined == calls->defined);
    CHECK(coord->changes_open <= coord->shard_count);
    CHECK(coord->policy_left <= coord->shard_count);
    CHECK(IMPLIES(coord->cluster_revision == 0, coord->shard_count == 0));
}

/* ---- what every shard is to confirm ---- */

/* How many of the shards' answers are still wanted; adds those that are on their way. */
static uint32_t left_of(const struct coord *coord, const uint8_t *acks, uint32_t *calling)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < coord->shard_count; i++) {
        left += acks[i] != ACK_DONE;
        *calling += acks[i] == ACK_CALLING;
    }
    return left;
}

/* No server waits for a write that was not sent. */
static void check_server_txn(const struct coord *coord, const struct server *server)
{
    bool sent = server->txn == 0 || server->record.state == SERVER_EXPIRING;

    for (uint32_t i = 0; i < coord->limits.txns_max && !sent; i++)
        sent = is_open(&coord->flights[i]) && coord->flights[i].ticket == server->txn;
    CHECK(sent);
}

static void check_servers(const struct coord *coord, const struct calls *calls)
{
    uint32_t calling = 0, belonging = 0;

    CHECK(coord->server_count <= coord->server_capacity);
    for (uint32_t i = 0; i < coord->server_count; i++) {
        const struct server *server = coord->servers[i];
        CHECK(i == 0 ||
              incarnation_compare(coord->servers[i - 1]->incarnation, server->incarnation) < 0);
        check_server_txn(coord, server);
        CHECK(IMPLIES(server->known_revision > 0, server->key != NULL));
        belonging += server->key != NULL;
        CHECK(IMPLIES(server->acks == NULL, server->acks_left == 0));
        if (server->acks != NULL)
            CHECK(server->acks_left == left_of(coord, server->acks, &calling));
    }
    for (uint32_t i = 0; i < coord->key_count; i++) {
        CHECK(coord->keys[i]->servers <= belonging);
        belonging -= coord->keys[i]->servers;
    }
    CHECK(belonging == 0);
    CHECK(calling <= calls->expiry); /* A server may be gone before its calls are answered. */
}

static void check_audit(const struct coord *coord)
{
    const struct audit *audit = &coord->audit;
    uint32_t calling = 0;

    CHECK(IMPLIES(audit->running, audit->acks_left > 0));
    if (audit->running)
        CHECK(audit->acks_left == left_of(coord, audit->acks, &calling));
    if (audit->search.state == SEARCH_PAGES)
        CHECK(audit->search.acks_left == left_of(coord, audit->search.acks, &calling));
    CHECK(audit->search.found_count <= audit->search.found_capacity);
    CHECK(audit->search.suspect_count <= AUDIT_SUSPECTS_MAX);
    for (uint32_t i = 0; i < AUDIT_CUTS; i++) {
        const struct audit_sum *sum = &audit->sums[i];
        uint32_t left = 0;
        CHECK(sum->currency_count <= AUDIT_CURRENCIES_MAX);
        for (uint32_t shard = 0; sum->cut != 0 && shard < coord->shard_count; shard++)
            left += sum->told[shard] == 0;
        CHECK(IMPLIES(sum->cut != 0, sum->left == left));
        CHECK(IMPLIES(sum->cut != 0, sum->bucket_parts <= coord->shard_count));
        CHECK(IMPLIES(audit->running && sum->cut != 0, sum->cut < audit->cut));
    }
}

/* ---- API keys of servers ---- */
static void check_keys(const struct coord *coord)
{
    CHECK(coord->key_count <= coord->key_capacity);
    for (uint32_t i = 0; i < coord->key_count; i++) {
        const struct server_key *key = coord->keys[i];

        CHECK(i == 0 || strcmp(coord->keys[i - 1]->id, key->id) < 0);
        CHECK(key->mark_count <= key->mark_capacity);
        CHECK(key->mark_count <= MARKS_MAX);
        for (uint32_t j = 0; j < key->mark_count; j++) {
            CHECK(key->marks_ms[j] <= coord->now_ms);
            CHECK(j == 0 || key->marks_ms[j - 1] <= key->marks_ms[j]);
        }
    }
}

/* ---- definitions ---- */
static void check_definition(const struct definition *definition)
{
    CHECK(definition->count > 0); /* The last version takes it along. */
    CHECK(definition->count <= definition->capacity);
    CHECK(definition->name[0] != 0);
    for (uint32_t i = 0; i < definition->count; i++) {
        CHECK(definition->versions[i].packed.size > 0);
        CHECK(i == 0 || definition->versions[i - 1].version < definition->versions[i].version);
    }
    CHECK(definition->versions[definition->count - 1].deleted == (definition->bytes == 0));
}

/* A change waits for the one write that may be on its way, or for shards. */
static void check_waits(const struct coord *coord)
{
    uint32_t written = 0;

    for (uint32_t i = 0; i < DEFINITION_WAITS_MAX; i++) {
        const struct definition_wait *wait = &coord->definitions.waits[i];

        if (wait->state == WAIT_FREE)
            continue;
        CHECK(wait->number > 0);
        CHECK(wait->version > 0);
        written += wait->state == WAIT_WRITTEN;
    }
    CHECK(written <= 1);
}

static void check_definitions(const struct coord *coord)
{
    const struct definitions *all = &coord->definitions;

    CHECK(all->count <= all->capacity);
    CHECK(all->count <= DEFINITIONS_MAX);
    CHECK(all->left <= coord->shard_count);
    CHECK(IMPLIES(all->left == 0, all->behind_since_ms == 0));
    for (uint32_t i = 0; i < all->count; i++) {
        check_definition(all->list[i]);
        CHECK(i == 0 || all->list[i - 1]->number < all->list[i]->number);
    }
    check_waits(coord);
}

/* ---- nodes ---- */

/* Who was asked outlives its record, and is noted once; behind the last there is none. */
static void check_words(const struct coord *coord)
{
    uint32_t count = 0;

    while (count < CLUSTER_NODES_MAX && coord->words[count].replica_id != 0)
        count++;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < i; j++)
            CHECK(coord->words[j].replica_id != coord->words[i].replica_id);
    }
    if (count < CLUSTER_NODES_MAX)
        CHECK(!coord->words[count].told && !coord->words[count].calling);
}

static void check_nodes(const struct coord *coord)
{
    CHECK(coord->node_count <= CLUSTER_NODES_MAX);
    CHECK(coord->wanted_count <= CLUSTER_NODES_MAX);
    for (uint32_t i = 1; i < coord->node_count; i++)
        CHECK(coord->nodes[i - 1].record.replica_id < coord->nodes[i].record.replica_id);
}

/* What operators want of a node outlives its record, and names it once. */
static void check_wanted(const struct coord *coord)
{
    for (uint32_t i = 0; i < coord->wanted_count; i++) {
        CHECK(coord->wanted[i].replica_id != 0);
        for (uint32_t j = 0; j < i; j++)
            CHECK(coord->wanted[j].replica_id != coord->wanted[i].replica_id);
    }
}

void coord_check(const struct coord *coord)
{
    struct calls calls;

    check_flights(coord);
    check_calls(coord, &calls);
    check_shards(coord, &calls);
    check_servers(coord, &calls);
    check_audit(coord);
    check_nodes(coord);
    check_words(coord);
    check_wanted(coord);
    check_keys(coord);
    check_definitions(coord);
    CHECK(coord_is_active(coord) || coord_work_left(coord) == NULL);
}
