#include "router/rpc/admin/node_survey.h"

#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/codec/proto_codec.h"

/* Other nodes may answer much later: what is kept until then counts. */
static void take(struct node_answer *answer, struct slice body)
{
    struct node_survey *survey = answer->survey;
    struct codec_scope scope = { .arena = survey->request->arena };
    ProtobufCMessage *message;

    if (!request_hold(survey->request, body.size, &survey->refusal))
        survey->refused = true;
    else if (proto_decode(survey->question->response, body, &scope, &message) == ERR_OK)
        answer->message = message;
}

static void answered(void *user, err result, const struct frame *response)
{
    struct node_answer *answer = user;
    struct node_survey *survey = answer->survey;

    answer->call = 0;
    answer->took_ms = (loop_clock_ns() - answer->begun_ns) / 1000000;
    answer->answered_wall_ms = loop_wall_ms();
    if (result == ERR_OK && response->status == WIRE_OK)
        take(answer, response->body);
    CHECK(survey->open > 0);
    if (--survey->open > 0)
        return;
    if (survey->refused)
        request_fail(survey->request, &survey->refusal);
    else
        survey->done(survey);
}

static void survey_cancel(struct request *request)
{
    struct node_survey *survey = request->state;
    const struct node_port *port = &request->router->options.port;

    for (uint32_t i = 0; i < survey->count; i++) {
        if (survey->answers[i].call != 0)
            port->cancel(port->context, survey->answers[i].call);
    }
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CANCELED,
                      "the caller has gone");
}

static struct slice body_of(struct node_survey *survey, uint64_t replica_id)
{
    const struct node_question *question = survey->question;

    return question->body != NULL ? question->body(survey, replica_id) : (struct slice){ 0 };
}

static void ask(struct node_survey *survey, struct node_answer *answer)
{
    struct request *request = survey->request;
    const struct node_port *port = &request->router->options.port;
    const struct call_request call = {
        .method = (uint16_t)survey->question->method,
        .priority = (uint8_t)request->priority,
        .deadline_ms = request_time_left(request, ROUTER_STATUS_MS_MAX),
        .trace = request->trace.trace_id,
        .body = body_of(survey, answer->replica_id),
        .done = answered,
        .user = answer,
    };

    answer->begun_ns = loop_clock_ns();
    if (port->start(port->context, answer->replica_id, &call, &answer->call) == ERR_OK)
        survey->open++;
    else
        answer->call = 0;
}

void node_survey_ask(struct request *request, const struct node_question *question,
                     void (*done)(struct node_survey *survey), void *user)
{
    struct node_survey *survey = arena_zalloc(request->arena, sizeof *survey);
    const struct node_record *nodes = shard_map_nodes(request->router->options.map, &survey->count);

    survey->request = request;
    survey->question = question;
    survey->done = done;
    survey->user = user;
    survey->answers = arena_zalloc(request->arena, (survey->count + 1) * sizeof *survey->answers);
    request->state = survey;
    request->cancel = survey_cancel;
    for (uint32_t i = 0; i < survey->count; i++) {
        survey->answers[i].survey = survey;
        survey->answers[i].replica_id = nodes[i].replica_id;
        ask(survey, &survey->answers[i]);
    }
    if (survey->open == 0)
        done(survey);
}

static struct slice status_body(struct node_survey *survey, uint64_t replica_id)
{
    Holdfast__Internal__V1__GetNodeStatusRequest message;
    uint8_t *body = arena_alloc(survey->request->arena, 16);

    (void)replica_id;
    holdfast__internal__v1__get_node_status_request__init(&message);
    message.shards = true;
    CHECK(holdfast__internal__v1__get_node_status_request__get_packed_size(&message) <= 16);
    return (struct slice){ body,
                           holdfast__internal__v1__get_node_status_request__pack(&message, body) };
}

void node_survey_start(struct request *request, void (*done)(struct node_survey *survey),
                       void *user)
{
    static const struct node_question question = {
        .method = METHOD_GET_NODE_STATUS,
        .response = &holdfast__internal__v1__get_node_status_response__descriptor,
        .body = status_body,
    };

    node_survey_ask(request, &question, done, user);
}

const Holdfast__Internal__V1__GetNodeStatusResponse *
node_survey_find(const struct node_survey *survey, uint64_t replica_id)
{
    for (uint32_t i = 0; i < survey->count; i++) {
        if (survey->answers[i].replica_id == replica_id)
            return (const Holdfast__Internal__V1__GetNodeStatusResponse *)(const void *)survey
                ->answers[i]
                .message;
    }
    return NULL;
}

const Holdfast__V1__ShardStatus *node_survey_find_shard(const struct node_survey *survey,
                                                        uint64_t replica_id, uint32_t shard)
{
    const Holdfast__Internal__V1__GetNodeStatusResponse *status =
        node_survey_find(survey, replica_id);

    for (size_t i = 0; status != NULL && i < status->n_shards; i++) {
        if (status->shards[i]->shard == shard)
            return status->shards[i];
    }
    return NULL;
}
