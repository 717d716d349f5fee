#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "router/core/refusal.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/admin/node_survey.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__GetShardClockRequest clock_request;
typedef Holdfast__V1__GetShardClockResponse clock_response;

#define BODY_BYTES 16u

static char state_unreachable[] = "unreachable";

static const clock_request *request_of(const struct node_survey *survey)
{
    return (const void *)survey->request->message;
}

static Holdfast__V1__MemberClock *clock_of(const struct node_survey *survey, uint64_t replica_id)
{
    for (uint32_t i = 0; i < survey->count; i++) {
        const Holdfast__Internal__V1__GetNodeClockResponse *said =
            (const void *)survey->answers[i].message;

        if (survey->answers[i].replica_id == replica_id && said != NULL && said->clock != NULL)
            return said->clock;
    }
    Holdfast__V1__MemberClock *absent = arena_alloc(survey->request->arena, sizeof *absent);

    holdfast__v1__member_clock__init(absent);
    absent->state = state_unreachable;
    return absent;
}

static void add_members(const struct node_survey *survey, const uint64_t *members, uint32_t count,
                        clock_response *response)
{
    for (uint32_t i = 0; i < count; i++) {
        bool seen = false;

        for (size_t k = 0; k < response->n_members; k++)
            seen = seen || response->members[k]->replica_id == members[i];
        if (seen)
            continue;
        Holdfast__V1__MemberClock *clock = clock_of(survey, members[i]);

        clock->replica_id = members[i];
        response->members[response->n_members++] = clock;
    }
}

static void fail_not_known(struct request *request)
{
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                      "the router does not know the shard now");
}

/* Its record may have gone meanwhile. */
static void surveyed(struct node_survey *survey)
{
    clock_response *response = survey->user;
    const struct shard_entry *entry =
        shard_map_find(survey->request->router->options.map, response->shard);

    if (entry == NULL) {
        fail_not_known(survey->request);
        return;
    }
    const struct shard_record *record = &entry->record;

    response->members =
        arena_alloc(survey->request->arena, 2 * CLUSTER_MEMBERS_MAX * sizeof *response->members);
    add_members(survey, record->members, record->member_count, response);
    add_members(survey, record->new_members, record->new_member_count, response);
    request_reply(survey->request, &response->base);
}

static struct slice body_of(struct node_survey *survey, uint64_t replica_id)
{
    Holdfast__Internal__V1__GetNodeClockRequest message =
        HOLDFAST__INTERNAL__V1__GET_NODE_CLOCK_REQUEST__INIT;
    uint8_t *body = arena_alloc(survey->request->arena, BODY_BYTES);

    (void)replica_id;
    message.shard = request_of(survey)->shard;
    CHECK(protobuf_c_message_get_packed_size(&message.base) <= BODY_BYTES);
    return (struct slice){ body, protobuf_c_message_pack(&message.base, body) };
}

void admin_get_shard_clock_handle(struct request *request)
{
    static const struct node_question question = {
        .method = METHOD_GET_NODE_CLOCK,
        .response = &holdfast__internal__v1__get_node_clock_response__descriptor,
        .body = body_of,
    };
    const struct shard_map *map = request->router->options.map;
    uint32_t shard = ((const clock_request *)(const void *)request->message)->shard;
    clock_response *response = arena_alloc(request->arena, sizeof *response);

    if (shard_map_shard_count(map) > 0 && shard >= shard_map_shard_count(map)) {
        Holdfast__V1__ErrorDetail detail;

        refusal_make_shard(request->arena, &detail, "shard", shard, shard_map_shard_count(map));
        request_fail(request, &detail);
        return;
    }
    if (shard_map_find(map, shard) == NULL) {
        fail_not_known(request);
        return;
    }
    holdfast__v1__get_shard_clock_response__init(response);
    response->shard = shard;
    node_survey_ask(request, &question, surveyed, response);
}
