#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/rpc/methods.h"

static err node_member_state_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    Holdfast__Internal__V1__MemberStateResponse *response = (void *)reply;
    uint32_t count = context->members.member_count;

    (void)message;
    response->epoch = context->members.epoch;
    response->config = context->members.config;
    response->learner = context->members.learner;
    response->learner_lag = context->members.learner_lag;
    response->learner_silent_ms = context->members.learner_silent_ms;
    response->operations = context->members.operations;
    response->members = arena_alloc(context->arena, (count + 1) * sizeof *response->members);
    for (uint32_t i = 0; i < count; i++) {
        Holdfast__Internal__V1__MemberLag *member = arena_alloc(context->arena, sizeof *member);

        holdfast__internal__v1__member_lag__init(member);
        member->replica_id = context->members.members[i].replica;
        member->lag = context->members.members[i].lag;
        member->silent_ms = context->members.members[i].silent_ms;
        response->members[response->n_members++] = member;
    }
    return ERR_OK;
}

const struct handler node_member_state_handler = {
    .method = METHOD_MEMBER_STATE,
    .read = node_member_state_read,
};
