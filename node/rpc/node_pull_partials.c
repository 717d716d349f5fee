/* A source's side of totals: which of its partial counts changed, for the homes that ask. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/top/pull.h"
#include "node/rpc/methods.h"

static err node_pull_partials_read(struct read_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__PullPartialsRequest *request = (const void *)message;
    Holdfast__Internal__V1__PullPartialsResponse *response = (void *)reply;
    struct buf parts = { 0 };

    response->at_ms = (int64_t)context->now_unix_ms;
    response->as_of_epoch = context->as_of.epoch;
    response->as_of_owner = context->as_of.owner;
    response->as_of_counter = context->as_of.counter;
    response->unchanged = request->wanted.len == 0 && request->since_epoch > 0 &&
                          request->since_epoch == context->as_of.epoch &&
                          request->since_owner == context->as_of.owner &&
                          request->since_counter == context->as_of.counter;
    if (response->unchanged) /* For a program that has logged all of what it asks for. */
        return ERR_OK;
    const struct pull_asked asked = {
        .homes = { request->homes.data, request->homes.len },
        .wanted = { request->wanted.data, request->wanted.len },
        .since = { request->since_epoch, request->since_counter },
    };
    bool follows = false;
    err e = pull_read(context, &asked, &parts, &follows);
    response->follows = follows;
    if (e == ERR_OK) {
        struct slice told = arena_copy(context->arena, buf_slice(&parts));
        response->parts = (ProtobufCBinaryData){ told.size, (uint8_t *)(uintptr_t)told.data };
    }
    buf_deinit(&parts);
    return e;
}

const struct handler node_pull_partials_handler = {
    .method = METHOD_PULL_PARTIALS,
    .read = node_pull_partials_read,
};
