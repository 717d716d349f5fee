#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/apply.h"
#include "node/core/apply/apply_internal.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/answer.h"
#include "node/core/profile/profile.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

struct answer outcome_answer(uint32_t shard, const struct outcome *outcome,
                             uint32_t replicas_fsynced)
{
    CHECK(outcome->kind == OUTCOME_COMMITTED);
    return (struct answer){
        .method = outcome->method,
        .shard = shard,
        .duplicate = outcome->duplicate,
        .version = outcome->version,
        .dot = outcome->dot,
        .body = outcome->body,
        .replicas_fsynced = replicas_fsynced,
    };
}

/* `refusal`: what a row that cannot be read is answered with. */
static struct read_context scratch_context(struct applier *applier, struct need *need,
                                           struct refusal *refusal)
{
    arena_reset(&applier->scratch);
    return (struct read_context){
        .refusal = refusal,
        .damage = &applier->damage,
        .arena = &applier->scratch,
        .state = applier->state,
        .meta = &applier->meta,
        .need = need,
        .shard = applier->shard,
        .as_of = applier->meta.applied_dot,
        .now_unix_ms = applier->meta.owner_ms,
    };
}

err applier_profile_append(struct applier *applier, const struct granted *granted,
                           struct need *need, struct buf *out)
{
    struct refusal unread;
    struct read_context context = scratch_context(applier, need, &unread);
    struct player player;
    struct incarnation incarnation;
    uint64_t fence;
    struct op op;
    Holdfast__V1__Profile *profile;

    CHECK(op_decode(granted->operation, &op) == ERR_OK);
    CHECK(op.method == METHOD_START_SESSION);
    context.entity = op.entity;
    Holdfast__V1__StartSessionRequest *request = (Holdfast__V1__StartSessionRequest *)arena_unpack(
        context.arena, &holdfast__v1__start_session_request__descriptor, op.request);
    Holdfast__V1__StartSessionResponse *response =
        (Holdfast__V1__StartSessionResponse *)arena_unpack(
            context.arena, &holdfast__v1__start_session_response__descriptor, granted->answer);
    CHECK(request != NULL);
    if (response == NULL ||
        token_parse(slice_from_text(response->token), &incarnation, &fence) != ERR_OK) {
        (void)read_damaged(&context, "the outcome of a StartSession cannot be read");
        return ERR_CORRUPT;
    }
    need->load_generation = state_load_generation(applier->state);
    err e = player_row_read(&context, &player);
    if (e != ERR_OK)
        return e;
    if (!session_is_current(&player.session, &applier->meta, incarnation, fence))
        return ERR_OK;
    const struct include include = include_of_session(context.arena, request);
    e = profile_read(&context, &player, &include, &profile);
    if (e != ERR_OK)
        return e;
    answer_put_message(out, 4, &profile->base);
    return ERR_OK;
}

void applier_renew_holds(struct applier *applier, struct slice request, struct buf *out_bodies)
{
    struct need unused = { 0 };
    struct refusal refusal;
    struct read_context context = scratch_context(applier, &unused, &refusal);
    struct incarnation incarnation;
    struct player player;
    struct buf body = { 0 };
    Holdfast__Internal__V1__RenewTokensRequest *renew =
        (Holdfast__Internal__V1__RenewTokensRequest *)arena_unpack(
            context.arena, &holdfast__internal__v1__renew_tokens_request__descriptor, request);

    if (renew == NULL ||
        incarnation_parse(slice_from_text(renew->incarnation), &incarnation) != ERR_OK)
        return;
    for (size_t i = 0; i < renew->n_tokens; i++) {
        const Holdfast__Internal__V1__RenewToken *token = renew->tokens[i];
        Holdfast__Internal__V1__SessionHoldRequest hold =
            HOLDFAST__INTERNAL__V1__SESSION_HOLD_REQUEST__INIT;
        if (player_id_check(slice_from_text(token->player_id)) != ERR_OK)
            continue;
        context.entity = entity_of_player(context.arena, token->player_id);
        if (player_row_read(&context, &player) != ERR_OK ||
            player.session.state != SESSION_GRANTED ||
            !session_is_current(&player.session, &applier->meta, incarnation, token->fence))
            continue;
        hold.player_id = token->player_id;
        hold.fence = token->fence;
        buf_clear(&body);
        owner_op_encode(METHOD_SESSION_HOLD, context.entity, &hold.base, &body);
        buf_put_bytes(out_bodies, buf_slice(&body));
    }
    buf_deinit(&body);
    need_deinit(&unused);
}

bool applier_session_held(struct applier *applier, struct slice entity, uint64_t now_unix_ms)
{
    struct need unused = { 0 };
    struct refusal refusal;
    struct read_context context = scratch_context(applier, &unused, &refusal);
    struct player player;

    (void)now_unix_ms; /* Sessions change by entries only, never by a clock that is read here. */
    context.entity = entity;
    bool held = player_row_read(&context, &player) == ERR_OK &&
                session_is_live(&player.session, &applier->meta);
    need_deinit(&unused);
    return held;
}
