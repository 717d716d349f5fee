#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/profile/profile.h"
#include "node/core/transaction/txn_part.h"
#include "node/rpc/methods.h"

typedef Holdfast__Internal__V1__ReadSettledRequest settled_request;
typedef Holdfast__Internal__V1__ReadSettledResponse settled_response;

/* What else the request asks for concerns the owner, not the state:
 * node/core/shard/shard_settled.c. */
static err node_read_settled_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    const settled_request *request = (const settled_request *)message;
    settled_response *response = (settled_response *)reply;
    struct include include;
    struct player player;

    err e = include_parse(context->arena, context->refusal, request->n_include, request->include,
                          &include);
    if (e == ERR_OK)
        e = player_row_read(context, &player);
    if (e != ERR_OK)
        return e;
    bool held = player.txn.seq != 0;
    if (held && request->wait)
        return txn_refuse_held(context->arena, context->refusal, request->player_id,
                               slice_from_text(request->player_id));
    if (held)
        response->holder = txn_ref_message(context->arena, player.txn);
    else
        e = profile_read(context, &player, &include, &response->profile);
    if (e == ERR_OK)
        response->as_of = as_of_text(context);
    return e;
}

const struct handler node_read_settled_handler = {
    .method = METHOD_READ_SETTLED,
    .read = node_read_settled_read,
};
