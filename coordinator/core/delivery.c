/*
 * delivery: calls that every shard's owner must carry out: ExpireServer for each game server that
 * is EXPIRING, ApplyPolicy until each shard confirmed the policy in etcd. Both are idempotent in
 * the shard, so whatever is not answered well is called again, a new coordinator included. What
 * came of the calls that other units make, coord.c tells them.
 */
#include "coordinator/core/delivery.h"

#include <string.h>

#include "coordinator/core/records.h"
#include "idl/method.h"
#include "runtime/base/check.h"

/* Every incarnation below it is expired: the least that is not, but never above the successor of
 * the one being expired, so that a registration on its way is not refused. */
static struct incarnation lowest_live(const struct coord *coord, struct incarnation expired)
{
    struct incarnation lowest = { expired.generation, expired.revision + 1 };

    for (uint32_t i = 0; i < coord->server_count; i++) {
        const struct server *server = coord->servers[i];

        if (server->known_revision > 0 && server->record.state == SERVER_EXPIRING)
            continue;
        if (incarnation_compare(server->incarnation, lowest) < 0)
            lowest = server->incarnation;
        break; /* They are sorted. */
    }
    return lowest;
}

/* All from there up to `expired` are expired: the successor of the nearest one below that is not.
 * Not told where the list is full, since it may then lack one that lives. */
static bool expired_from(const struct coord *coord, struct incarnation expired,
                         struct incarnation *ret_from)
{
    bool found = false;

    if (coord->server_count >= COORD_SERVERS_MAX)
        return false;
    for (uint32_t i = 0; i < coord->server_count; i++) {
        const struct server *server = coord->servers[i];

        if (incarnation_compare(server->incarnation, expired) >= 0)
            break; /* They are sorted. */
        if (server->known_revision > 0 && server->record.state == SERVER_EXPIRING)
            continue;
        *ret_from = (struct incarnation){ server->incarnation.generation,
                                          server->incarnation.revision + 1 };
        found = true;
    }
    return found;
}

static struct slice expire_body(struct coord *coord, const struct server *server, uint32_t shard,
                                struct arena *arena)
{
    Holdfast__Internal__V1__ExpireServerRequest request =
        HOLDFAST__INTERNAL__V1__EXPIRE_SERVER_REQUEST__INIT;
    char incarnation[INCARNATION_TEXT_SIZE], lowest[INCARNATION_TEXT_SIZE];
    char from_text[INCARNATION_TEXT_SIZE];
    struct incarnation from;

    incarnation_print(server->incarnation, incarnation);
    incarnation_print(lowest_live(coord, server->incarnation), lowest);
    request.shard = shard;
    request.incarnation = incarnation;
    request.lowest_live = lowest;
    if (expired_from(coord, server->incarnation, &from)) {
        incarnation_print(from, from_text);
        request.from = from_text;
    }
    size_t size = holdfast__internal__v1__expire_server_request__get_packed_size(&request);
    uint8_t *data = arena_alloc(arena, size);

    holdfast__internal__v1__expire_server_request__pack(&request, data);
    return (struct slice){ data, size };
}

static struct slice policy_body(const struct coord *coord, uint32_t shard, struct arena *arena)
{
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;

    request.shard = shard;
    request.generation = coord->cluster.generation;
    request.policy = holdfast__v1__policy__unpack(NULL, coord->policy.size, coord->policy.data);
    CHECK(request.policy != NULL); /* records.c unpacked it before. */
    size_t size = holdfast__internal__v1__apply_policy_request__get_packed_size(&request);
    uint8_t *data = arena_alloc(arena, size);

    holdfast__internal__v1__apply_policy_request__pack(&request, data);
    holdfast__v1__policy__free_unpacked(request.policy, NULL);
    return (struct slice){ data, size };
}

/* A free place and the number that belongs to it, or NULL. */
static struct open_call *call_place(struct coord *coord, uint64_t *ret_call)
{
    for (uint32_t i = 1; i <= coord->limits.calls_max; i++) {
        uint64_t call = coord->call + i;

        if (coord->calls[call % coord->limits.calls_max].call == 0) {
            *ret_call = call;
            return &coord->calls[call % coord->limits.calls_max];
        }
    }
    return NULL;
}

bool shard_takes_calls(struct coord *coord, const struct shard *shard, enum call_kind kind)
{
    return shard->mod_revision > 0 && coord->now_ms >= shard->call_at_ms &&
           coord->now_ms >= shard->refused_until_ms[kind] &&
           node_find(coord, shard->record.owner) != NULL;
}

struct coord_call *delivery_call(struct coord *coord, uint32_t shard, struct coord_out *out,
                                 struct open_call **ret_open)
{
    uint64_t number = 0;
    struct open_call *place = call_place(coord, &number);

    if (place == NULL)
        return NULL;
    if (out->call_count == out->call_capacity) {
        out->call_capacity = out->call_capacity == 0 ? 64 : out->call_capacity * 2;
        out->calls = mem_realloc(out->calls, out->call_capacity * sizeof *out->calls);
    }
    struct coord_call *call = &out->calls[out->call_count++];

    coord->call = number;
    *place = (struct open_call){ .call = number, .shard = shard };
    *call = (struct coord_call){
        .call = number,
        .node = coord->shards[shard].record.owner,
        .shard = shard,
        .timeout_ms = coord->limits.call_timeout_ms,
    };
    coord->call_count++;
    coord->stats.calls++;
    *ret_open = place;
    return call;
}

void delivery_ask_state(struct coord *coord, uint32_t number, struct coord_out *out)
{
    Holdfast__Internal__V1__MemberStateRequest request =
        HOLDFAST__INTERNAL__V1__MEMBER_STATE_REQUEST__INIT;
    struct shard *shard = &coord->shards[number];
    struct open_call *open = NULL;

    if (shard->state_calls > 0 || coord->now_ms < shard->state_next_ms ||
        !shard_takes_calls(coord, shard, CALL_STATE))
        return;
    struct coord_call *call = delivery_call(coord, number, out, &open);

    if (call == NULL)
        return;
    request.shard = number;
    size_t size = holdfast__internal__v1__member_state_request__get_packed_size(&request);
    uint8_t *data = arena_alloc(&out->arena, size + 1);

    holdfast__internal__v1__member_state_request__pack(&request, data);
    call->method = METHOD_MEMBER_STATE;
    call->body = (struct slice){ data, size };
    open->method = call->method;
    shard->state_calls++;
    shard->state_next_ms = coord->now_ms + coord->limits.change_ask_ms;
}

/* False: calls_max are open. */
static bool deliver_expiry(struct coord *coord, struct server *server, struct coord_out *out)
{
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        struct open_call *open = NULL;

        if (server->acks[i] != ACK_WANTED ||
            !shard_takes_calls(coord, &coord->shards[i], CALL_EXPIRY))
            continue;
        struct coord_call *call = delivery_call(coord, i, out, &open);

        if (call == NULL)
            return false;
        call->method = METHOD_EXPIRE_SERVER;
        call->body = expire_body(coord, server, i, &out->arena);
        open->method = call->method;
        open->incarnation = server->incarnation;
        server->acks[i] = ACK_CALLING;
    }
    return true;
}

static bool deliver_policy(struct coord *coord, struct coord_out *out)
{
    coord->policy_left = 0;
    if (coord->policy_revision == 0)
        return true;
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        struct shard *shard = &coord->shards[i];
        struct open_call *open = NULL;

        if (shard->policy_revision >= coord->policy_revision)
            continue;
        coord->policy_left++;
        if (shard->policy_calls > 0 || !shard_takes_calls(coord, shard, CALL_POLICY))
            continue;
        struct coord_call *call = delivery_call(coord, i, out, &open);

        if (call == NULL)
            return false;
        call->method = METHOD_APPLY_POLICY;
        call->body = policy_body(coord, i, &out->arena);
        open->method = call->method;
        open->policy_revision = coord->policy_revision;
        open->policy_version = coord->policy_version;
        shard->policy_calls++;
    }
    return true;
}

void delivery_run(struct coord *coord, struct coord_out *out)
{
    if (!deliver_policy(coord, out))
        return;
    for (uint32_t i = 0; i < coord->server_count; i++) {
        struct server *server = coord->servers[i];

        if (server->known_revision > 0 && server->acks != NULL && server->acks_left > 0 &&
            !deliver_expiry(coord, server, out))
            return;
    }
}

static enum call_kind kind_of(uint16_t method)
{
    switch (method) {
    case METHOD_APPLY_POLICY:
        return CALL_POLICY;
    case METHOD_EXPIRE_SERVER:
        return CALL_EXPIRY;
    case METHOD_MEMBER_STATE:
        return CALL_STATE;
    case METHOD_TAKE_CUT:
        return CALL_CUT;
    case METHOD_AUDIT_SEARCH:
        return CALL_SEARCH;
    case METHOD_CONTAIN_PLAYER:
        return CALL_CONTAINMENT;
    default:
        return CALL_DEFINITION;
    }
}

/* Who does not answer is left alone for a while; a refusal says something of one kind of call only.
 */
static void shard_called(struct coord *coord, struct shard *shard, const struct open_call *call,
                         enum wire_status status)
{
    if (status == WIRE_OK)
        return;
    coord->stats.calls_failed++;
    if (status != WIRE_REFUSED) {
        shard->call_at_ms = coord->now_ms + coord->limits.call_retry_ms;
        return;
    }
    shard->refused_until_ms[kind_of(call->method)] = coord->now_ms + coord->limits.call_refused_ms;
    log_event(coord->log, LOG_ERROR, "coordinator.call_refused", LOG_N("shard", call->shard),
              LOG_N("owner", shard->record.owner),
              LOG_S("method", method_find(call->method)->name));
}

bool delivery_take(struct coord *coord, const struct coord_event *event, struct open_call *ret_call)
{
    struct open_call *open = &coord->calls[event->call % coord->limits.calls_max];

    if (event->call == 0 || open->call != event->call)
        return false;
    CHECK(coord->call_count > 0);
    *ret_call = *open;
    *open = (struct open_call){ 0 };
    coord->call_count--;
    if (ret_call->method != METHOD_GET_NODE_STATUS && ret_call->method != METHOD_DEFINE &&
        ret_call->method != METHOD_GET_DEFINED)
        shard_called(coord, &coord->shards[ret_call->shard], ret_call, event->status);
    return true;
}

/* What the shard says is in force is what it was told, or a later one of the same etcd. One that
 * does not say orders policies by their version alone: it has taken it, unless etcd was restored
 * once. Then it is asked again until it says. */
static bool policy_stands(const struct coord *coord, const struct open_call *call,
                          const struct coord_event *event)
{
    Holdfast__Internal__V1__ApplyPolicyResponse *response =
        holdfast__internal__v1__apply_policy_response__unpack(NULL, event->body.size,
                                                              event->body.data);
    bool stands = false, is_silent = response != NULL && response->generation == 0;

    if (response != NULL)
        stands = is_silent ? coord->cluster.generation == 1
                           : (response->generation == coord->cluster.generation &&
                              response->version >= call->policy_version);
    if (response != NULL && !stands && !is_silent)
        log_event(coord->log, LOG_ERROR, "coordinator.policy_not_taken",
                  LOG_N("shard", call->shard), LOG_N("generation", coord->cluster.generation),
                  LOG_N("version", call->policy_version),
                  LOG_N("generation_there", response->generation),
                  LOG_N("version_there", response->version));
    holdfast__internal__v1__apply_policy_response__free_unpacked(response, NULL);
    return stands;
}

void delivery_policy_done(struct coord *coord, const struct open_call *call,
                          const struct coord_event *event)
{
    struct shard *shard = &coord->shards[call->shard];

    CHECK(shard->policy_calls > 0);
    shard->policy_calls--;
    if (event->status != WIRE_OK)
        return;
    if (!policy_stands(coord, call, event))
        shard->refused_until_ms[CALL_POLICY] = coord->now_ms + coord->limits.call_refused_ms;
    else if (call->policy_revision > shard->policy_revision)
        shard->policy_revision = call->policy_revision;
}

void delivery_done(struct coord *coord, const struct open_call *call, bool ok)
{
    struct server *server = server_find(coord, call->incarnation);

    /* Of a record that went and came back, a shard may confirm twice. */
    if (server != NULL && server->acks != NULL && server->acks[call->shard] != ACK_DONE) {
        server->acks[call->shard] = ok ? ACK_DONE : ACK_WANTED;
        server->acks_left -= ok;
    }
}

/* Answers still to come are not known any more; what they were about is called again. */
void delivery_drop(struct coord *coord)
{
    memset(coord->calls, 0, coord->limits.calls_max * sizeof *coord->calls);
    coord->call_count = 0;
    for (uint32_t i = 0; i < coord->shard_count; i++)
        coord->shards[i].policy_calls = 0;
    for (uint32_t i = 0; i < coord->server_count; i++) {
        struct server *server = coord->servers[i];

        for (uint32_t shard = 0; server->acks != NULL && shard < coord->shard_count; shard++) {
            if (server->acks[shard] == ACK_CALLING)
                server->acks[shard] = ACK_WANTED;
        }
    }
}
