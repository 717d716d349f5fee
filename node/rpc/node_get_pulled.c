/* How far a home has logged what its sources say: the node that owns it goes on from there. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/top/top.h"
#include "node/rpc/methods.h"

struct pulled {
    struct read_context *context;
    struct buf out;
};

static bool take(void *user, struct slice key, struct slice value)
{
    struct pulled *pulled = user;
    struct pull_home source;

    if (pulled_row_decode(key, value, &source.home, &source.after) != ERR_OK)
        damage_note(pulled->context->damage, (struct slice){ 0 }, PULLED_DAMAGE);
    else
        pull_home_encode(&source, &pulled->out);
    return true;
}

static err node_get_pulled_read(struct read_context *context, const ProtobufCMessage *message,
                                ProtobufCMessage *reply)
{
    Holdfast__Internal__V1__GetPulledResponse *response = (void *)reply;
    struct pulled pulled = { .context = context };
    const uint8_t letter = TABLE_PULLED;
    const struct state_range range = { .prefix = { &letter, 1 }, .limit = UINT16_MAX + 1u };

    (void)message;
    err e = state_range_visit(context->state, &range, context->need, take, &pulled);
    struct slice told = arena_copy(context->arena, buf_slice(&pulled.out));
    response->sources = (ProtobufCBinaryData){ told.size, (uint8_t *)(uintptr_t)told.data };
    buf_deinit(&pulled.out);
    return e;
}

const struct handler node_get_pulled_handler = {
    .method = METHOD_GET_PULLED,
    .read = node_get_pulled_read,
};
