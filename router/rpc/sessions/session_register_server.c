#include "holdfast/v1/session.pb-c.h"
#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "router/rpc/request/handlers.h"
#include "runtime/cluster/api_key.h"

#include <stdio.h>
#include <string.h>

#define FULL_RETRY_MS 1000u

static void registered(void *user, enum servers_register_outcome outcome,
                       struct incarnation incarnation, uint32_t ttl_ms)
{
    struct request *request = user;
    Holdfast__V1__RegisterServerResponse response;
    char text[INCARNATION_TEXT_SIZE];

    switch (outcome) {
    case SERVERS_REGISTERED:
        incarnation_print(incarnation, text);
        holdfast__v1__register_server_response__init(&response);
        response.incarnation = text;
        response.ttl_ms = ttl_ms;
        response.renew_every_ms = SERVERS_RENEW_EVERY_MS;
        request_reply(request, &response.base);
        return;
    case SERVERS_TOO_MANY:
        request_fail_text(request, CODE(CAPACITY_FULL),
                          "the cluster has as many game servers as it may; not registered");
        return;
    case SERVERS_NOT_REGISTERED:
        request_fail_text(request, CODE(UNAVAILABLE), "etcd could not be reached; not registered");
        return;
    case SERVERS_REGISTER_UNKNOWN:
        request_fail_text(request, CODE(OUTCOME_UNKNOWN),
                          "etcd did not answer; register again: a registration without "
                          "heartbeats lapses by itself");
        return;
    }
}

/* ERR_INVALID: *ret_detail says what is wrong. */
static err make_record(const struct request *request,
                       const Holdfast__V1__RegisterServerRequest *message,
                       struct server_record *ret_record, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct arena *arena = request->arena;
    struct slice name = slice_from_text(message->name);
    struct record_error why;
    char value[16];

    *ret_record = (struct server_record){ .state = SERVER_LIVE, .lease_id = 1 };
    ret_record->ttl_ms = message->ttl_ms != 0 ? message->ttl_ms : SERVERS_TTL_MS_DEFAULT;
    if (name.size == 0 || name.size >= sizeof ret_record->name) {
        refusal_make_field(arena, ret_detail,
                           &(struct refusal_field){ "name", "1 to 128 bytes", name },
                           "the server's name is empty or too long");
        return ERR_INVALID;
    }
    memcpy(ret_record->name, name.data, name.size);
    (void)snprintf(ret_record->key, sizeof ret_record->key, "%s", request_holder(request));
    if (ret_record->ttl_ms < SERVER_TTL_MS_MIN || ret_record->ttl_ms > SERVER_TTL_MS_MAX) {
        (void)snprintf(value, sizeof value, "%u", message->ttl_ms);
        refusal_make_field(
            arena, ret_detail,
            &(struct refusal_field){ "ttl_ms", "5000 to 10000, or 0", slice_from_text(value) },
            "the time to live is out of range");
        return ERR_INVALID;
    }
    if (server_record_validate(ret_record, &why) != ERR_OK) {
        refusal_make_field(arena, ret_detail,
                           &(struct refusal_field){ "name", "no control characters", name },
                           why.text);
        return ERR_INVALID;
    }
    return ERR_OK;
}

/* A key may be for servers of some names alone. */
static err check_name(const struct request *request, const struct server_record *record,
                      Holdfast__V1__ErrorDetail *ret_detail)
{
    const char *servers = request->key_servers != NULL ? request->key_servers : "";

    if (api_key_admits_server(servers, slice_from_text(record->name)))
        return ERR_OK;
    refusal_make(request->arena, ret_detail, CODE(PERMISSION_DENIED),
                 "name: the API key %s may register servers named %s; this one is named %s",
                 request->key_id, servers, record->name);
    ret_detail->field = arena_printf(request->arena, "name");
    ret_detail->limit = arena_printf(request->arena, "%s", servers);
    ret_detail->value = arena_printf(request->arena, "%s", record->name);
    return ERR_PERMISSION;
}

static err refuse_many(const struct request *request, const char *limit, uint32_t retry_after_ms,
                       Holdfast__V1__ErrorDetail *ret_detail)
{
    refusal_make(request->arena, ret_detail, CODE(THROTTLED),
                 "too many game servers are registered by %s: expected %s; not registered",
                 request->key_id, limit);
    ret_detail->limit = arena_printf(request->arena, "%s", limit);
    ret_detail->retry_after_ms = retry_after_ms;
    return ERR_FULL;
}

/* Each costs a lease, and an entry in every shard's log when it lapses: one key's servers come a
 * few at a time, and leave room for those of others. Where anyone may call, none is counted. */
static err check_count(const struct request *request, Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct router_options *options = &request->router->options;
    uint32_t retry_after_ms = 0;

    if (request->key_id == NULL || request->key_id[0] == 0)
        return ERR_OK;
    if (!servers_has_room(options->servers, request_holder(request)))
        return refuse_many(
            request, arena_printf(request->arena, "at most %u through one router", SERVERS_KEY_MAX),
            FULL_RETRY_MS, ret_detail);
    if (!rate_take(rate_table_get(request->router->registrations, request->caller),
                   options->register_rate, loop_now_ms(options->loop), &retry_after_ms))
        return refuse_many(
            request, arena_printf(request->arena, "at most %u a second", options->register_rate),
            retry_after_ms, ret_detail);
    return ERR_OK;
}

void session_register_server_handle(struct request *request)
{
    const Holdfast__V1__RegisterServerRequest *message =
        (const Holdfast__V1__RegisterServerRequest *)(const void *)request->message;
    const struct router_options *options = &request->router->options;
    const struct cluster_record *cluster = shard_map_cluster(options->map);
    uint64_t now_ms = loop_now_ms(options->loop);
    struct server_record record;
    Holdfast__V1__ErrorDetail detail;

    if (make_record(request, message, &record, &detail) != ERR_OK ||
        check_name(request, &record, &detail) != ERR_OK ||
        check_count(request, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    if (cluster == NULL || request->answer_by_ms <= now_ms) {
        request_fail_text(request, CODE(UNAVAILABLE),
                          "the router does not know the cluster yet; not registered");
        return;
    }
    if ((options->etcd != NULL && etcd_rolled_back(options->etcd)) ||
        shard_map_doubts(options->map) > 0) {
        request_fail_text(request, CODE(UNAVAILABLE),
                          "etcd was restored from a backup that was not accepted yet (holdfast "
                          "admin accept-etcd-restore); not registered");
        return;
    }
    const struct servers_newcomer newcomer = { &record, cluster->generation,
                                               request->answer_by_ms - now_ms };

    request->cancel = server_call_cancel;
    if (servers_register(options->servers, &newcomer, registered, request) != ERR_OK)
        request_fail_text(request, CODE(UNAVAILABLE), "too many calls to etcd; not registered");
}
