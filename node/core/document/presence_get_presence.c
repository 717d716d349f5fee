#include "node/core/codec/arena_proto.h"
#include "node/core/document/presence.h"
#include "node/core/mergeable/read.h"

static struct slice answer(struct document_context *context, char *player_id,
                           struct presence_parts *parts)
{
    Holdfast__V1__GetPresenceResponse response = HOLDFAST__V1__GET_PRESENCE_RESPONSE__INIT;
    Holdfast__V1__Presence presence = HOLDFAST__V1__PRESENCE__INIT;

    presence_show(context, parts, &presence.n_connections, &presence.connections);
    if (presence.n_connections > 0) {
        presence.player_id = player_id;
        presence.last_set_at_ms = presence.connections[0]->set_at_ms;
        response.presence = &presence;
    }
    return arena_pack(context->arena, &response.base);
}

static err read_here(struct document_context *context, const struct document_place *place,
                     char *player_id, struct slice *ret_answer)
{
    struct merge_refusal refusal = { .field = context->replica->syncing ? "syncing" : "token" };
    struct presence_parts parts = { 0 };
    struct merge_record record;

    if (context->erased) {
        *ret_answer = answer(context, player_id, &parts);
        return ERR_OK;
    }
    err e = merge_read(context->replica, place->key, place->token, &record);

    if (e != ERR_OK)
        return document_refuse(context, e, &refusal);
    presence_parts_of(context, &record, &parts);
    *ret_answer = answer(context, player_id, &parts);
    merge_record_deinit(&record);
    return ERR_OK;
}

static err begin(struct document_context *context, struct slice bytes,
                 struct document_begun *ret_begun)
{
    const Holdfast__V1__GetPresenceRequest *request =
        document_unpack(context, &holdfast__v1__get_presence_request__descriptor, bytes);
    struct document_place place;

    if (request == NULL)
        return ERR_INVALID;
    err e = presence_find(context, request->player_id, request->context, &place);

    if (e != ERR_OK)
        return e;
    e = read_here(context, &place, request->player_id, &ret_begun->answer);
    merge_key_unref(place.key);
    return e;
}

const struct document_method presence_get_presence_method = { begin };
