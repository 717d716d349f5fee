/* ListFavorites with `include`: the page of the player's shard, then what its targets are called.
 * The owner of the shard never sees `include`: cursors are the same with it and without. */
#include <string.h>

#include "holdfast/v1/favorites.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/forward/forward.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/metadata/metadata_include.h"
#include "runtime/codec/proto_codec.h"

typedef Holdfast__V1__ListFavoritesRequest list_request;
typedef Holdfast__V1__ListFavoritesResponse list_response;

static void joined(struct metadata_ask *ask)
{
    list_response *response = ask->user;

    for (size_t i = 0; i < ask->count; i++)
        response->favorites[i]->metadata = metadata_listed(ask->told[i]);
    if (ask->reason != NULL) {
        response->metadata_incomplete = true;
        response->metadata_reason = arena_printf(ask->request->arena, "%s", ask->reason);
    }
    request_reply(ask->request, &response->base);
}

static void join(struct request *request, list_response *response)
{
    const list_request *message = (const void *)request->message;
    char **targets;
    struct metadata_ask *ask =
        metadata_ask_new(request, message->collection, response->n_favorites, &targets);

    for (size_t i = 0; i < response->n_favorites; i++)
        targets[i] = response->favorites[i]->target_id;
    ask->user = response;
    ask->done = joined;
    metas_ask(ask);
}

static void page_done(struct caller_call *call, const struct caller_result *result)
{
    struct request *request = call->user;
    struct codec_scope scope = { .arena = request->arena };
    Holdfast__V1__ErrorDetail detail;
    ProtobufCMessage *message;

    forward_count(request, call);
    request->cancel = NULL;
    if (result->detail != NULL)
        request_fail(request, result->detail);
    else if (!request_hold(request, result->body.size, &detail))
        request_fail(request, &detail);
    else if (proto_decode(request->method->response, result->body, &scope, &message) != ERR_OK)
        request_fail_text(request, CODE(INTERNAL), "a node's answer cannot be read");
    else
        join(request, (list_response *)(void *)message);
}

static void page_cancel(struct request *request)
{
    struct caller_call *call = request->state;

    forward_count(request, call);
    caller_cancel(call);
    request_fail_text(request, CODE(CANCELED), "the caller has gone");
}

void listed_targets_handle(struct request *request)
{
    const list_request *message = (const void *)request->message;
    Holdfast__V1__ErrorDetail detail;

    if (message->n_include == 0) {
        forward_handle(request);
        return;
    }
    if (!metadata_include_check(request, message->n_include, message->include))
        return;
    list_request *bare = arena_alloc(request->arena, sizeof *bare);
    struct caller_call *call = arena_zalloc(request->arena, sizeof *call);
    memcpy(bare, message, sizeof *bare);
    bare->n_include = 0;
    const struct forward_message page = { .method = request->method, .message = &bare->base };
    if (forward_prepare(request, &page, call, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    call->done = page_done;
    call->user = request;
    call->at_once = true;
    request->state = call;
    request->cancel = page_cancel;
    caller_start(request->router->options.caller, call);
}
