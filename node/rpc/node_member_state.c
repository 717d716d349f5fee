#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/rpc/methods.h"

static err node_member_state_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    Holdfast__Internal__V1__MemberStateResponse *response = (void *)reply;

    (void)message;
    response->epoch = context->members.epoch;
    response->config = context->members.config;
    response->learner = context->members.learner;
    response->learner_lag = context->members.learner_lag;
    response->learner_silent_ms = context->members.learner_silent_ms;
    response->operations = context->members.operations;
    return ERR_OK;
}

const struct handler node_member_state_handler = {
    .method = METHOD_MEMBER_STATE,
    .read = node_member_state_read,
};
