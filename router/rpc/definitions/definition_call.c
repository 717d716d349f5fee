#include "router/rpc/definitions/definition_call.h"

#include "idl/error_code.h"
#include "idl/error_tell.h"
#include "idl/limit.h"
#include "router/core/refusal.h"
#include "router/rpc/call/node_port.h"
#include "router/rpc/request/router_state.h"
#include "router/rpc/call/said_refusal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/codec/proto_codec.h"

#define ANSWER_MS 200u /* For an answer's way here, of the time that a caller gives. */

struct question {
    struct request *request;
    definition_told *told;
    const ProtobufCMessageDescriptor *answer;
    bool changes;
    uint64_t call;
    void *state; /* Of the method that asks, and what it does when its caller goes. */
    void (*cancel)(struct request *);
};

/* ---- the answer ---- */
static void fail_unknown_outcome(struct question *question)
{
    if (question->changes)
        request_fail_text(question->request, CODE(OUTCOME_UNKNOWN),
                          "the coordinator did not answer in time; send the same again under its "
                          "op_id");
    else
        request_fail_text(question->request, CODE(UNAVAILABLE),
                          "the coordinator did not answer in time");
}

static void fail_refused(struct question *question, struct slice body)
{
    struct request *request = question->request;
    const Holdfast__Internal__V1__Refusal *refusal = said_refusal(body, request->arena);

    if (refusal == NULL) {
        fail_unknown_outcome(question);
        return;
    }
    const Holdfast__V1__ErrorDetail detail = error_tell(refusal, request->arena);

    request_fail(request, &detail);
}

static void on_done(void *user, err result, const struct frame *response)
{
    struct question *question = user;
    struct request *request = question->request;
    struct codec_scope scope = { .arena = request->arena };
    ProtobufCMessage *message = NULL;

    question->call = 0;
    request->state = question->state;
    request->cancel = question->cancel;
    if (result != ERR_OK && err_retry(result) != RETRY_UNKNOWN_OUTCOME)
        request_fail_text(request, CODE(UNAVAILABLE), "the coordinator cannot be reached");
    else if (result != ERR_OK || response->status == WIRE_UNKNOWN)
        fail_unknown_outcome(question);
    else if (response->status == WIRE_REFUSED)
        fail_refused(question, response->body);
    else if (response->status != WIRE_OK)
        request_fail_text(request, CODE(UNAVAILABLE),
                          "the coordinator is not elected, or of an earlier version");
    else if (proto_decode(question->answer, response->body, &scope, &message) != ERR_OK)
        fail_unknown_outcome(question);
    else
        question->told(request, message);
}

static void on_cancel(struct request *request)
{
    struct question *question = request->state;
    const struct node_port *port = &request->router->options.port;

    if (question->call != 0)
        port->cancel(port->context, question->call);
    if (question->changes)
        request_fail_text(request, CODE(OUTCOME_UNKNOWN), "the caller has gone");
    else
        request_fail_text(request, CODE(CANCELED), "the caller has gone");
}

/* ---- the question ---- */
static void ask(struct request *request, uint16_t method, const ProtobufCMessage *body,
                definition_told *told)
{
    const struct node_port *port = &request->router->options.port;
    struct question *question = arena_zalloc(request->arena, sizeof *question);
    size_t size = protobuf_c_message_get_packed_size(body);
    uint8_t *data = arena_alloc(request->arena, size + 1);

    protobuf_c_message_pack(body, data);
    *question = (struct question){ .request = request,
                                   .told = told,
                                   .answer = method_find(method)->response,
                                   .changes = method == METHOD_CHANGE_DEFINITION,
                                   .state = request->state,
                                   .cancel = request->cancel };
    const struct call_request call = {
        .method = method,
        .priority = (uint8_t)request->priority,
        .deadline_ms = request_time_left(request, LIMIT_DEADLINE_MS),
        .trace = request->trace.trace_id,
        .body = { data, size },
        .done = on_done,
        .user = question,
    };

    request->state = question;
    request->cancel = on_cancel;
    if (shard_map_find_coordinator(request->router->options.map) == NULL ||
        port->start(port->context, NODE_PORT_COORDINATOR, &call, &question->call) != ERR_OK)
        request_fail_text(request, CODE(UNAVAILABLE),
                          "no coordinator is elected, or no link to it is ready; nothing was done");
}

void definition_change_ask(struct request *request,
                           Holdfast__Internal__V1__ChangeDefinitionRequest *change,
                           definition_told *told)
{
    uint32_t left_ms = request_time_left(request, LIMIT_DEADLINE_MS);

    if (change->wait_ms > 0 && change->wait_ms + ANSWER_MS > left_ms && change->wait_ms <= 60000)
        change->wait_ms = left_ms > ANSWER_MS ? left_ms - ANSWER_MS : 0;
    change->author = text_lend(request->key_id != NULL ? request->key_id : "");
    ask(request, METHOD_CHANGE_DEFINITION, &change->base, told);
}

void definition_find_ask(struct request *request,
                         const Holdfast__Internal__V1__FindDefinitionsRequest *find,
                         definition_told *told)
{
    ask(request, METHOD_FIND_DEFINITIONS, &find->base, told);
}

/* ---- telling ---- */
const char *definition_body_kind(const Holdfast__V1__DefinitionBody *body)
{
    const ProtobufCMessageDescriptor *type = &holdfast__v1__definition_body__descriptor;

    for (unsigned i = 0; body != NULL && i < type->n_fields; i++) {
        if (type->fields[i].id == (uint32_t)body->kind_case)
            return type->fields[i].name;
    }
    return "";
}

Holdfast__V1__Definition *definition_tell(struct arena *arena,
                                          const Holdfast__Internal__V1__DefinitionVersion *version)
{
    Holdfast__V1__Definition *told = arena_alloc(arena, sizeof *told);

    holdfast__v1__definition__init(told);
    told->kind = text_lend(definition_body_kind(version->body));
    told->name = version->name;
    told->number = version->number;
    told->version = version->version;
    told->body = version->body;
    told->deleted = version->deleted;
    told->author = version->author;
    told->made_at_ms = version->at_ms;
    told->reason = version->reason;
    told->op_id = version->op_id;
    told->rolled_back_to = version->rolled_back_to;
    return told;
}

Holdfast__V1__Definition *
definition_tell_found(struct arena *arena, const Holdfast__Internal__V1__FoundDefinition *found)
{
    Holdfast__V1__Definition *told = definition_tell(arena, found->version);

    told->current = found->current;
    told->in_force = found->in_force;
    told->shards_left = found->current ? found->shards_left : 0;
    return told;
}

Holdfast__V1__Definition *
definition_tell_made(struct arena *arena,
                     const Holdfast__Internal__V1__ChangeDefinitionResponse *answer, bool dry_run)
{
    Holdfast__V1__Definition *told = definition_tell(arena, answer->made);

    told->current = !dry_run || answer->unchanged;
    told->in_force = answer->in_force && told->current;
    told->shards_left = answer->shards_left;
    return told;
}

void definition_fail_unknown(struct request *request, const char *field, const char *value)
{
    Holdfast__V1__ErrorDetail detail;

    refusal_make(request->arena, &detail, CODE(NOT_FOUND),
                 "there is no such definition, or that version of it is not kept");
    detail.field = text_lend(field);
    detail.value = text_lend(value);
    request_fail(request, &detail);
}
