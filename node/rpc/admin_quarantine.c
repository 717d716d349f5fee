#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/arena_proto.h"
#include "node/core/profile.h"
#include "node/core/refusal.h"
#include "node/core/text_rule.h"
#include "node/rpc/methods.h"

#define REASON_MAX 64u

static Holdfast__V1__Quarantined *message_of(struct arena *arena, const struct quarantined *held)
{
    Holdfast__V1__Quarantined *message =
        (Holdfast__V1__Quarantined *)arena_message(arena, &holdfast__v1__quarantined__descriptor);

    message->player_id = arena_text(arena, slice_from_text(held->player));
    message->reason = arena_text(arena, slice_from_text(held->reason));
    message->at_ms = (int64_t)held->at_ms;
    return message;
}

static err admin_list_quarantined_read(struct read_context *context,
                                       const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    Holdfast__V1__ListQuarantinedResponse *response =
        (Holdfast__V1__ListQuarantinedResponse *)reply;
    const struct meta *meta = context->meta;

    (void)message;
    response->players = arena_alloc(context->arena, sizeof(void *) * (meta->quarantine_count + 1u));
    for (uint32_t i = 0; i < meta->quarantine_count; i++)
        response->players[response->n_players++] = message_of(context->arena, &meta->quarantine[i]);
    response->as_of = dot_message(context->arena, context->as_of);
    return ERR_OK;
}

const struct handler admin_list_quarantined_handler = {
    .method = METHOD_LIST_QUARANTINED,
    .read = admin_list_quarantined_read,
};

static err admin_get_quarantine_read(struct read_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    const Holdfast__V1__GetQuarantineRequest *request =
        (const Holdfast__V1__GetQuarantineRequest *)message;
    Holdfast__V1__GetQuarantineResponse *response = (Holdfast__V1__GetQuarantineResponse *)reply;
    const struct quarantined *held =
        meta_find_quarantined(context->meta, slice_from_text(request->player_id));

    if (held != NULL)
        response->quarantined = message_of(context->arena, held);
    response->as_of = dot_message(context->arena, context->as_of);
    return ERR_OK;
}

const struct handler admin_get_quarantine_handler = {
    .method = METHOD_GET_QUARANTINE,
    .read = admin_get_quarantine_read,
};

static err admin_release_check(struct check_context *context, ProtobufCMessage *message)
{
    const Holdfast__V1__ReleaseQuarantineRequest *request =
        (const Holdfast__V1__ReleaseQuarantineRequest *)message;
    struct slice reason = slice_from_text(request->reason);

    if (reason.size == 0 || reason.size > REASON_MAX || !text_is_clean(reason))
        return refuse_invalid(context->arena, context->refusal, "reason",
                              "1 to 64 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, reason));
    return ERR_OK;
}

static err admin_release_handle(struct apply_context *context, const ProtobufCMessage *message,
                                ProtobufCMessage *reply)
{
    Holdfast__V1__ReleaseQuarantineResponse *response =
        (Holdfast__V1__ReleaseQuarantineResponse *)reply;
    struct slice scope = context->op->authority.scope;
    const struct quarantined *held =
        meta_find_quarantined(context->meta, player_id(context->player));

    (void)message;
    if (!slice_equal(scope, SLICE_LITERAL("admin")) &&
        !slice_equal(scope, SLICE_LITERAL("moderation")))
        return refuse(context->arena, context->refusal, CODE(PERMISSION_DENIED), "authority",
                      "a release needs the scope admin or moderation");
    if (held == NULL)
        return refuse(context->arena, context->refusal, CODE(NOT_FOUND), "player_id",
                      "the player is not quarantined");
    response->was_for = arena_text(context->arena, slice_from_text(held->reason));
    meta_release(context->meta, held);
    return ERR_OK;
}

const struct handler admin_release_quarantine_handler = {
    .method = METHOD_RELEASE_QUARANTINE,
    .admits = ADMITS_SYSTEM,
    .check = admin_release_check,
    .handle = admin_release_handle,
};
