#include <stdlib.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

static err check_incarnation(struct check_context *context, const char *field, const char *text)
{
    struct incarnation incarnation;

    if (incarnation_parse(slice_from_text(text), &incarnation) == ERR_OK)
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, field, "an incarnation",
                          text_shorten(context->arena, slice_from_text(text)));
}

static err node_expire_server_check(struct check_context *context, ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__ExpireServerRequest *request =
        (const Holdfast__Internal__V1__ExpireServerRequest *)message;

    err e = check_incarnation(context, "incarnation", request->incarnation);
    if (e == ERR_OK && request->lowest_live[0] != 0)
        e = check_incarnation(context, "lowest_live", request->lowest_live);
    return e;
}

/* The expired at or above `lowest`, with `incarnation` in its place. */
static struct incarnation *expired_with(const struct meta *meta, struct incarnation lowest,
                                        struct incarnation incarnation, uint32_t *ret_count)
{
    struct incarnation *expired = mem_alloc(sizeof *expired * (meta->expired_count + 1u));
    uint32_t count = 0;
    bool placed = incarnation_compare(incarnation, lowest) < 0;

    for (uint32_t i = 0; i < meta->expired_count; i++) {
        int order = incarnation_compare(incarnation, meta->expired[i]);
        if (incarnation_compare(meta->expired[i], lowest) < 0)
            continue;
        if (!placed && order <= 0) {
            expired[count++] = incarnation;
            placed = true;
            if (order == 0)
                continue;
        }
        expired[count++] = meta->expired[i];
    }
    if (!placed)
        expired[count++] = incarnation;
    *ret_count = count;
    return expired;
}

static err node_expire_server_handle(struct apply_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__ExpireServerRequest *request =
        (const Holdfast__Internal__V1__ExpireServerRequest *)message;
    Holdfast__Internal__V1__ExpireServerResponse *response =
        (Holdfast__Internal__V1__ExpireServerResponse *)reply;
    struct meta *meta = context->meta;
    struct incarnation lowest = meta->lowest_live;
    struct incarnation incarnation;
    struct incarnation given;
    uint32_t count;

    CHECK(incarnation_parse(slice_from_text(request->incarnation), &incarnation) == ERR_OK);
    if (request->lowest_live[0] != 0) {
        CHECK(incarnation_parse(slice_from_text(request->lowest_live), &given) == ERR_OK);
        if (incarnation_compare(given, lowest) > 0)
            lowest = given;
    }
    response->dot = dot_message(context->arena, context->dot);
    struct incarnation *expired = expired_with(meta, lowest, incarnation, &count);
    if (count > EXPIRED_MAX) {
        free(expired);
        err e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "incarnation",
                       "the shard remembers %u expired servers; raise lowest_live", EXPIRED_MAX);
        context->refusal->limit = arena_printf(context->arena, "%u", EXPIRED_MAX);
        return e;
    }
    free(meta->expired);
    meta->expired = expired;
    meta->expired_count = count;
    meta->lowest_live = lowest;
    (*context->freed)++;
    return ERR_OK;
}

const struct handler node_expire_server_handler = {
    .method = METHOD_EXPIRE_SERVER,
    .check = node_expire_server_check,
    .handle = node_expire_server_handle,
};
