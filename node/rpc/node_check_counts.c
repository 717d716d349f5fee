/* Compares some of what a shard keeps of targets with what it comes to: what the node that owns the
 * shard looks at, little by little (node/core/top/drift.h). */
#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/core/repair/recount.h"
#include "node/rpc/methods.h"

typedef Holdfast__Internal__V1__CheckCountsRequest check_request;
typedef Holdfast__Internal__V1__CheckCountsResponse check_response;

static err refuse_request(struct read_context *context, const char *field, const char *limit,
                          int64_t value)
{
    return refuse_number(context->arena, context->refusal, field, limit, value);
}

/* Where the caller stands; of its counters those of this answer alone count. */
static err place_of(struct read_context *context, const check_request *request,
                    struct recount_row *ret_row)
{
    struct slice place = { request->place.data, request->place.len };

    if (request->part != HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS &&
        request->part != HOLDFAST__V1__REBUILD_PART__REBUILD_PART_TOTALS)
        return refuse_request(context, "part", "REBUILD_PART_COUNTS or REBUILD_PART_TOTALS",
                              (int64_t)request->part);
    if (request->rows == 0 || request->rows > RECOUNT_ROWS_MAX)
        return refuse_request(context, "rows", "1 to 512", request->rows);
    *ret_row = (struct recount_row){ .id = SLICE_LITERAL("check") };
    ret_row->part = request->part == HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS
                        ? RECOUNT_COUNTS
                        : RECOUNT_TOTALS;
    if (place.size > 0 && recount_row_decode(place, ret_row) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "place",
                              "`place` of the answer before", "");
    ret_row->rows = ret_row->targets = ret_row->different = ret_row->left_alone = 0;
    return ERR_OK;
}

static err node_check_counts_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    const check_request *request = (const void *)message;
    check_response *response = (void *)reply;
    struct recount_row row;
    struct buf place = { 0 };

    err e = place_of(context, request, &row);
    if (e != ERR_OK)
        return e;
    struct recount recount = {
        .arena = context->arena,
        .state = context->state,
        .need = context->need,
        .shard_count = context->shard_count,
        .hour = hour_of(context->now_unix_ms),
        .rows = request->rows,
        .row = &row,
        .told = arena_alloc(context->arena, RECOUNT_TOLD_MAX * sizeof *recount.told),
    };
    e = recount_step(&recount);
    if (e == ERR_CORRUPT)
        return read_damaged(context, RECOUNT_KEYS_DAMAGE);
    if (e != ERR_OK)
        return e;
    response->targets = row.targets;
    response->different = row.different;
    response->differences = recount.told;
    response->n_differences = recount.told_count;
    if (row.done)
        return ERR_OK;
    recount_row_encode(&row, &place);
    struct slice told = arena_copy(context->arena, buf_slice(&place));
    response->place = (ProtobufCBinaryData){ told.size, (uint8_t *)(uintptr_t)told.data };
    buf_deinit(&place);
    return ERR_OK;
}

const struct handler node_check_counts_handler = {
    .method = METHOD_CHECK_COUNTS,
    .read = node_check_counts_read,
};
