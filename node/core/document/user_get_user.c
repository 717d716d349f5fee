#include "node/core/codec/arena_proto.h"
#include "node/core/document/user.h"
#include "node/core/mergeable/read.h"

typedef Holdfast__V1__GetUserRequest get_request;

static err read_one(struct document_context *context, const struct document_place *place,
                    struct merge_record *ret_record)
{
    struct merge_refusal refusal = { .field = context->replica->syncing ? "syncing" : "token" };
    err e = merge_read(context->replica, place->key, place->token, ret_record);

    return e == ERR_OK ? e : document_refuse(context, e, &refusal);
}

static err read_both(struct document_context *context, const struct user_place *place,
                     const get_request *request, struct slice *ret_answer)
{
    Holdfast__V1__GetUserResponse response = HOLDFAST__V1__GET_USER_RESPONSE__INIT;
    struct merge_record record, presence;
    err e = read_one(context, &place->record, &record);

    if (e != ERR_OK)
        return e;
    e = read_one(context, &place->presence, &presence);
    if (e == ERR_OK) {
        response.user = user_show(context, request->player_id, &record, &presence);
        response.context = user_context(context, place, &record, &presence);
        *ret_answer = arena_pack(context->arena, &response.base);
        merge_record_deinit(&presence);
    }
    merge_record_deinit(&record);
    return e;
}

static err begin(struct document_context *context, struct slice bytes,
                 struct document_begun *ret_begun)
{
    static const Holdfast__V1__GetUserResponse hidden = HOLDFAST__V1__GET_USER_RESPONSE__INIT;
    const get_request *request =
        document_unpack(context, &holdfast__v1__get_user_request__descriptor, bytes);
    struct user_place place;

    if (request == NULL)
        return ERR_INVALID;
    err e = user_find(context, request->player_id, request->context, &place);

    if (e != ERR_OK)
        return e;
    if (context->erased)
        ret_begun->answer = arena_pack(context->arena, &hidden.base);
    else
        e = read_both(context, &place, request, &ret_begun->answer);
    user_place_deinit(&place);
    return e;
}

const struct document_method user_get_user_method = { begin };
