/*
 * An incarnation belongs to the key that registered it, and to those that replace it: with another
 * key's, no caller opens, renews or ends anything. And what lives with a server needs a
 * registration that there is: shards are told of those that have gone, but not of those that never
 * were. A session of one would be free never, a presence of it online for ever. (Of a session whose
 * server has gone the shard says what became of it: the call may be a repetition.) Asked before the
 * method's handler, of every incarnation that the request names, one after another: a batch names
 * one, as a rule.
 */
#include <string.h>

#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "router/core/scatter.h"
#include "router/rpc/request/handlers.h"

struct owner_check {
    struct request *request;
    handle_fn *handle;
    const char *const *names; /* Distinct. */
    uint32_t count;
    uint32_t next;
};

static const char *incarnation_of(const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, "incarnation");
    const char *text = NULL;

    if (field != NULL && field->type == PROTOBUF_C_TYPE_STRING &&
        field->label != PROTOBUF_C_LABEL_REPEATED)
        memcpy(&text, (const char *)message + field->offset, sizeof text);
    return text;
}

/* With a time to live a presence names none, or is refused for it. */
static bool has_ttl(const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, "ttl_ms");
    int64_t ttl_ms = 0;

    if (field != NULL && field->type == PROTOBUF_C_TYPE_INT64)
        memcpy(&ttl_ms, (const char *)message + field->offset, sizeof ttl_ms);
    return ttl_ms != 0;
}

static void add_name(struct owner_check *check, const char **names, const ProtobufCMessage *message)
{
    const char *name = has_ttl(message) ? NULL : incarnation_of(message);

    for (uint32_t i = 0; name != NULL && i < check->count; i++) {
        if (strcmp(names[i], name) == 0)
            return;
    }
    if (name != NULL && name[0] != 0)
        names[check->count++] = name;
}

/* Of the elements, which have what their batch says once (scatter_share); else of the request. */
static void find_names(struct owner_check *check)
{
    const struct request *request = check->request;
    struct scatter_elements elements = { 0 };
    Holdfast__V1__ErrorDetail detail;

    if (scatter_limit(request->method) == 0 ||
        scatter_split(request->method, request->message, request->arena, &elements, &detail) !=
            ERR_OK)
        elements.count = 0;
    const char **names = arena_alloc(request->arena, (elements.count + 1) * sizeof *names);
    if (scatter_limit(request->method) == 0)
        add_name(check, names, request->message);
    for (uint32_t i = 0; i < elements.count; i++)
        add_name(check, names, elements.messages[i]);
    check->names = names;
}

static void refuse_foreign(struct request *request, const char *name)
{
    Holdfast__V1__ErrorDetail detail;

    request->router->foreign_incarnations++;
    refusal_make(request->arena, &detail, CODE(PERMISSION_DENIED),
                 "incarnation: another API key registered %s; this one is %s", name,
                 request->key_id);
    detail.field = arena_printf(request->arena, "incarnation");
    detail.limit = arena_printf(request->arena, "one that this API key registered");
    detail.value = arena_printf(request->arena, "%s", name);
    request_fail(request, &detail);
}

static void refuse_gone(struct request *request, const char *name)
{
    Holdfast__V1__ErrorDetail detail;

    refusal_make(request->arena, &detail, CODE(SERVER_EXPIRED),
                 "incarnation: no server is registered as %s any more; register again", name);
    detail.field = arena_printf(request->arena, "incarnation");
    detail.limit = arena_printf(request->arena, "one that RegisterServer returned");
    detail.value = arena_printf(request->arena, "%s", name);
    request_fail(request, &detail);
}

static bool has_key(const struct request *request)
{
    return request->key_id != NULL && request->key_id[0] != 0;
}

static bool starts_session(const struct method_info *method)
{
    return method->id == METHOD_START_SESSION || method->id == METHOD_BATCH_START_SESSION;
}

static bool sets_presence(const struct method_info *method)
{
    return method->id == METHOD_SET_PRESENCE || method->id == METHOD_BATCH_SET_PRESENCE ||
           method->id == METHOD_UPSERT_USER || method->id == METHOD_BATCH_UPSERT_USERS;
}

static bool lives_with_server(const struct method_info *method)
{
    return starts_session(method) || sets_presence(method);
}

static void ask_next(struct owner_check *check);

static void judge(struct owner_check *check, enum servers_claim claim)
{
    struct request *request = check->request;
    bool renews = request->method->id == METHOD_RENEW_SESSIONS;

    if (claim == SERVERS_CLAIM_FOREIGN) {
        refuse_foreign(request, check->names[check->next]);
    } else if (claim == SERVERS_CLAIM_NEVER && lives_with_server(request->method)) {
        refuse_gone(request, check->names[check->next]);
    } else if (claim == SERVERS_CLAIM_GONE && sets_presence(request->method)) {
        refuse_gone(request, check->names[check->next]);
    } else if (claim == SERVERS_CLAIM_UNSURE && !renews &&
               (has_key(request) || starts_session(request->method))) {
        /* A heartbeat goes on: its tokens tell whose they are. */
        request_fail_text(request, CODE(UNAVAILABLE),
                          "incarnation: this router has not seen that registration yet, and etcd "
                          "does not answer; nothing was done");
    } else { /* Its own; or gone, of which the handler or the node says what it means. */
        check->next++;
        ask_next(check);
    }
}

static void claimed(void *user, enum servers_claim claim)
{
    judge(user, claim);
}

static void owner_cancel(struct request *request)
{
    struct owner_check *check = request->state;

    servers_cancel(request->router->options.servers, check);
    request_fail_text(request, CODE(CANCELED), "the caller has gone; nothing was done");
}

static void ask_next(struct owner_check *check)
{
    struct request *request = check->request;
    const struct router_options *options = &request->router->options;
    uint64_t now_ms = loop_now_ms(options->loop);
    uint64_t left_ms = request->answer_by_ms > now_ms ? request->answer_by_ms - now_ms : 1;
    const struct cluster_record *cluster = shard_map_cluster(options->map);
    struct servers_claimant claimant = { .key = request_holder(request),
                                         .generation = cluster != NULL ? cluster->generation : 0 };

    claimant.timeout_ms = left_ms < ROUTER_RENEW_MS_MAX ? left_ms : ROUTER_RENEW_MS_MAX;
    /* The handler says what is wrong with a text that is no incarnation. */
    while (check->next < check->count &&
           incarnation_parse(slice_from_text(check->names[check->next]), &claimant.incarnation) !=
               ERR_OK)
        check->next++;
    if (check->next == check->count) {
        request->state = NULL;
        request->cancel = NULL;
        check->handle(request);
        return;
    }
    request->state = check;
    request->cancel = owner_cancel;
    enum servers_claim claim = servers_claim(options->servers, &claimant, claimed, check);
    if (claim != SERVERS_CLAIM_PENDING)
        judge(check, claim);
}

static bool names_incarnations(const struct method_info *method)
{
    return lives_with_server(method) || method->id == METHOD_RENEW_SESSIONS ||
           method->id == METHOD_UNREGISTER_SERVER;
}

void server_owner_then(struct request *request, handle_fn *handle)
{
    bool asks =
        has_key(request) ? names_incarnations(request->method) : lives_with_server(request->method);

    if (!asks || request->router->options.servers == NULL) {
        handle(request);
        return;
    }
    struct owner_check *check = arena_zalloc(request->arena, sizeof *check);
    check->request = request;
    check->handle = handle;
    find_names(check);
    ask_next(check);
}

void server_call_cancel(struct request *request)
{
    servers_cancel(request->router->options.servers, request);
    request_fail_text(request, CODE(OUTCOME_UNKNOWN), "the caller has gone");
}
