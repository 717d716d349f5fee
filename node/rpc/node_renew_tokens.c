#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/limit.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"

#define TOKENS_MAX LIMIT_SESSIONS_RENEWED

static void add_release(struct arena *arena, uint32_t position, uint32_t remaining_ms,
                        Holdfast__Internal__V1__RenewTokensResponse *response)
{
    Holdfast__Internal__V1__RenewRelease *release =
        (Holdfast__Internal__V1__RenewRelease *)arena_message(
            arena, &holdfast__internal__v1__renew_release__descriptor);

    release->position = position;
    release->remaining_ms = remaining_ms;
    response->release_requested[response->n_release_requested++] = release;
}

static err renew(struct read_context *context, struct incarnation incarnation,
                 const Holdfast__Internal__V1__RenewToken *token,
                 Holdfast__Internal__V1__RenewTokensResponse *response)
{
    struct player player;

    if (player_id_check(slice_from_text(token->player_id)) != ERR_OK) {
        response->lost[response->n_lost++] = token->position;
        return ERR_OK;
    }
    context->entity = entity_of_player(context->arena, token->player_id);
    err e = player_row_read(context, &player);
    if (e == ERR_CONFLICT) /* Whether it is lost cannot be told; its writes are refused. */
        return ERR_OK;
    if (e != ERR_OK)
        return e;
    if (!session_is_current(&player.session, context->meta, incarnation, token->fence))
        response->lost[response->n_lost++] = token->position;
    else if (session_has_claim(&player.session))
        add_release(context->arena, token->position,
                    session_claim_left_ms(&player.session, context->now_unix_ms), response);
    return ERR_OK;
}

static err node_renew_tokens_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__RenewTokensRequest *request =
        (const Holdfast__Internal__V1__RenewTokensRequest *)message;
    Holdfast__Internal__V1__RenewTokensResponse *response =
        (Holdfast__Internal__V1__RenewTokensResponse *)reply;
    struct slice text = slice_from_text(request->incarnation);
    struct incarnation incarnation;
    err result = ERR_OK;

    if (incarnation_parse(text, &incarnation) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "incarnation",
                              "an incarnation that RegisterServer returned",
                              text_shorten(context->arena, text));
    if (request->n_tokens > TOKENS_MAX)
        return refuse_number(context->arena, context->refusal, "tokens", "at most 1000",
                             (int64_t)request->n_tokens);
    response->lost = arena_alloc(context->arena, sizeof(uint32_t) * (request->n_tokens + 1));
    response->release_requested =
        arena_alloc(context->arena, sizeof *response->release_requested * (request->n_tokens + 1));
    for (size_t i = 0; i < request->n_tokens; i++) {
        err e = renew(context, incarnation, request->tokens[i], response);
        if (e != ERR_OK)
            result = e;
    }
    return result;
}

const struct handler node_renew_tokens_handler = {
    .method = METHOD_RENEW_TOKENS,
    .read = node_renew_tokens_read,
};
