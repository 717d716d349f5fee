#include <stdlib.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

/* From here on a shard keeps ranges of expired servers, and not each of them: beside one that lives
 * for weeks any number of others may come and go. */
#define EXPIRED_RANGES_APPLY_VERSION 10u

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
    if (e == ERR_OK && request->from[0] != 0)
        e = check_incarnation(context, "from", request->from);
    return e;
}

/* Nothing lies between the end of `a` and `b`, which begins no earlier. */
static bool touches(const struct expired_range *a, const struct expired_range *b)
{
    const struct incarnation next = { a->last.generation, a->last.revision + 1 };

    return incarnation_compare(b->first, next) <= 0;
}

/* Behind the others, or into the last one. */
static void add_range(struct expired_range *list, uint32_t *count, struct expired_range range)
{
    if (*count == 0 || !touches(&list[*count - 1], &range))
        list[(*count)++] = range;
    else if (incarnation_compare(range.last, list[*count - 1].last) > 0)
        list[*count - 1].last = range.last;
}

/* The expired at or above `lowest`, with `given` among them. */
static struct expired_range *expired_with(const struct meta *meta, struct incarnation lowest,
                                          struct expired_range given, uint32_t *ret_count)
{
    struct expired_range *list = mem_alloc(sizeof *list * (meta->expired_count + 1u));
    bool placed = incarnation_compare(given.last, lowest) < 0;
    uint32_t count = 0;

    if (incarnation_compare(given.first, lowest) < 0)
        given.first = lowest;
    for (uint32_t i = 0; i < meta->expired_count; i++) {
        struct expired_range range = meta->expired[i];
        if (incarnation_compare(range.last, lowest) < 0)
            continue;
        if (incarnation_compare(range.first, lowest) < 0)
            range.first = lowest;
        if (!placed && incarnation_compare(given.first, range.first) <= 0) {
            add_range(list, &count, given);
            placed = true;
        }
        add_range(list, &count, range);
    }
    if (!placed)
        add_range(list, &count, given);
    *ret_count = count;
    return list;
}

/* The same of single ones, as apply versions below 10 keep them. */
static struct expired_range *ones_with(const struct meta *meta, struct incarnation lowest,
                                       struct incarnation incarnation, uint32_t *ret_count)
{
    struct expired_range *expired = mem_alloc(sizeof *expired * (meta->expired_count + 1u));
    const struct expired_range one = { incarnation, incarnation };
    uint32_t count = 0;
    bool placed = incarnation_compare(incarnation, lowest) < 0;

    for (uint32_t i = 0; i < meta->expired_count; i++) {
        int order = incarnation_compare(incarnation, meta->expired[i].last);
        if (incarnation_compare(meta->expired[i].last, lowest) < 0)
            continue;
        if (!placed && order <= 0) {
            expired[count++] = one;
            placed = true;
            if (order == 0)
                continue;
        }
        expired[count++] = meta->expired[i];
    }
    if (!placed)
        expired[count++] = one;
    *ret_count = count;
    return expired;
}

/* Empty, or none: `otherwise`. */
static struct incarnation parsed_or(const char *text, struct incarnation otherwise)
{
    struct incarnation parsed;

    return incarnation_parse(slice_from_text(text), &parsed) == ERR_OK ? parsed : otherwise;
}

static struct incarnation lesser(struct incarnation a, struct incarnation b)
{
    return incarnation_compare(a, b) < 0 ? a : b;
}

static err node_expire_server_handle(struct apply_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__ExpireServerRequest *request =
        (const Holdfast__Internal__V1__ExpireServerRequest *)message;
    Holdfast__Internal__V1__ExpireServerResponse *response =
        (Holdfast__Internal__V1__ExpireServerResponse *)reply;
    bool in_ranges = context->version >= EXPIRED_RANGES_APPLY_VERSION;
    uint32_t most = in_ranges ? EXPIRED_MAX : EXPIRED_MAX_OF_ONES;
    struct meta *meta = context->meta;
    struct incarnation lowest = meta->lowest_live, incarnation;
    uint32_t count;

    CHECK(incarnation_parse(slice_from_text(request->incarnation), &incarnation) == ERR_OK);
    const struct incarnation given = parsed_or(request->lowest_live, lowest);
    if (incarnation_compare(given, lowest) > 0)
        lowest = given;
    response->dot = dot_message(context->arena, context->dot);
    const struct expired_range range = { lesser(parsed_or(request->from, incarnation), incarnation),
                                         incarnation };
    struct expired_range *expired = in_ranges ? expired_with(meta, lowest, range, &count)
                                              : ones_with(meta, lowest, incarnation, &count);
    if (count > most) {
        free(expired);
        err e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "incarnation",
                       "the shard remembers %u expired servers; raise lowest_live", most);
        context->refusal->limit = arena_printf(context->arena, "%u", most);
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
