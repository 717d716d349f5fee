/* One step of a rebuild of this shard's counts, or of its totals: docs/rebuild.md. */
#include <inttypes.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/definition/collection.h"
#include "node/core/definition/counter_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/repair/recount.h"
#include "node/core/repair/row_repair.h"
#include "node/rpc/methods.h"

#define ROWS_DEFAULT 256u
#define PART_COUNTS  HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS
#define PART_TOTALS  HOLDFAST__V1__REBUILD_PART__REBUILD_PART_TOTALS

typedef Holdfast__V1__RebuildCountsRequest rebuild_request;
typedef Holdfast__V1__RebuildCountsResponse rebuild_response;

/* ---- before the log ---- */
static err check_what(struct check_context *context, const rebuild_request *request)
{
    struct slice target = slice_from_text(request->target_id);
    struct counter_rule unused;

    if (request->collection[0] != '\0' && request->counter[0] != '\0')
        return refuse_invalid(context->arena, context->refusal, "counter",
                              "no counter beside a collection", request->counter);
    if (target.size > 0 && request->collection[0] == '\0' && request->counter[0] == '\0')
        return refuse_invalid(context->arena, context->refusal, "target_id",
                              "a collection or a counter beside it",
                              text_shorten(context->arena, target));
    if (target.size > 0 && !target_is_sound(target))
        return refuse_invalid(context->arena, context->refusal, "target_id",
                              "1 to 128 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, target));
    if (request->collection[0] != '\0')
        return collection_check(context, request->collection);
    if (request->counter[0] == '\0')
        return ERR_OK;
    err e = counter_rule_check(context, request->counter, &unused);
    return e == ERR_NEED ? ERR_OK : e; /* Rows are to be loaded: apply decides. */
}

static err admin_rebuild_counts_check(struct check_context *context, ProtobufCMessage *message)
{
    const rebuild_request *request = (const rebuild_request *)message;
    struct slice id = slice_from_text(request->rebuild_id);

    if (id.size == 0 || id.size > RECOUNT_ID_MAX || !text_is_clean(id))
        return refuse_invalid(context->arena, context->refusal, "rebuild_id",
                              "1 to 64 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, id));
    if (request->part != PART_COUNTS && request->part != PART_TOTALS)
        return refuse_number(context->arena, context->refusal, "part",
                             "REBUILD_PART_COUNTS or REBUILD_PART_TOTALS", (int64_t)request->part);
    if (request->rows > RECOUNT_ROWS_MAX)
        return refuse_number(context->arena, context->refusal, "rows", "0 to 512", request->rows);
    err e = check_what(context, request);
    return e == ERR_OK ? row_repair_check_version(context, RECOUNT_APPLY_VERSION) : e;
}

/* ---- at apply ---- */
static err refuse_stand(struct apply_context *context, const struct recount_row *row)
{
    return refuse(context->arena, context->refusal,
                  HOLDFAST__V1__ERROR_CODE__ERROR_CODE_VERSION_CONFLICT, "step",
                  "the shard is at step %" PRIu64 " of the rebuild %s", row->step,
                  row->id.size > 0 ? arena_text(context->arena, row->id) : "of no one");
}

static err number_of(struct apply_context *context, const rebuild_request *request,
                     uint64_t *ret_number)
{
    struct collection collection = { 0 };
    struct counter_rule rule = { 0 };
    err e = ERR_OK;

    if (request->collection[0] != '\0')
        e = collection_get(context, request->collection, &collection);
    else if (request->counter[0] != '\0')
        e = counter_rule_get(context, request->counter, &rule);
    *ret_number = request->counter[0] != '\0' ? rule.number : collection.number;
    return e;
}

static err begin(struct apply_context *context, const rebuild_request *request,
                 struct recount_row *ret_row)
{
    *ret_row = (struct recount_row){
        .id = slice_from_text(request->rebuild_id),
        .part = request->part == PART_COUNTS ? RECOUNT_COUNTS : RECOUNT_TOTALS,
        .dry_run = request->dry_run,
        .only_target = slice_from_text(request->target_id),
    };
    return number_of(context, request, &ret_row->only_number);
}

static void answer(rebuild_response *response, const struct recount_row *row)
{
    response->next_step = row->step;
    response->done = row->done;
    response->targets = row->targets;
    response->different = row->different;
    response->left_alone = row->left_alone;
    response->rows = row->rows;
}

/* Texts of the row must not point into what the step changes. */
static void copy_texts(struct arena *arena, struct recount_row *row)
{
    row->id = arena_copy(arena, row->id);
    row->only_target = arena_copy(arena, row->only_target);
    row->target = arena_copy(arena, row->target);
    row->place = arena_copy(arena, row->place);
    row->entity = arena_copy(arena, row->entity);
}

static err step(struct apply_context *context, const rebuild_request *request,
                struct recount_row *row, rebuild_response *response)
{
    struct recount recount = {
        .arena = context->arena,
        .state = context->state,
        .need = context->need,
        .context = context,
        .shard_count = context->op->shard_count,
        .hour = hour_of(context->owner_ms),
        .rows =
            request->rows > 0 && request->rows <= RECOUNT_ROWS_MAX ? request->rows : ROWS_DEFAULT,
        .row = row,
        .told = arena_alloc(context->arena, RECOUNT_TOLD_MAX * sizeof *recount.told),
    };

    copy_texts(context->arena, row);
    err e = recount_step(&recount);
    if (e == ERR_CORRUPT)
        return apply_damaged(context, (struct slice){ 0 }, RECOUNT_KEYS_DAMAGE);
    if (e != ERR_OK)
        return e;
    row->step++;
    recount_store(context, row);
    answer(response, row);
    response->differences = recount.told;
    response->n_differences = recount.told_count;
    return ERR_OK;
}

/* A step that was carried out before tells how far the rebuild has come since. */
static err admin_rebuild_counts_handle(struct apply_context *context,
                                       const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const rebuild_request *request = (const rebuild_request *)message;
    rebuild_response *response = (rebuild_response *)reply;
    struct recount_row row;

    if (context->version < RECOUNT_APPLY_VERSION)
        return refuse_invalid(context->arena, context->refusal, "part", "a later apply version",
                              "");
    err e = recount_find(context->state, context->need, &row);
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK && request->step > 0)
        return apply_damaged(context, (struct slice){ 0 }, RECOUNT_DAMAGE);
    bool known = e == ERR_OK && slice_equal(row.id, slice_from_text(request->rebuild_id));
    if (!known && request->step > 0)
        return refuse_stand(context, &row);
    if (!known) {
        e = begin(context, request, &row);
        if (e != ERR_OK)
            return e;
    }
    if (request->step > row.step)
        return refuse_stand(context, &row);
    if (request->step < row.step || row.done) {
        answer(response, &row);
        return ERR_OK;
    }
    return step(context, request, &row, response);
}

const struct handler admin_rebuild_counts_handler = {
    .method = METHOD_REBUILD_COUNTS,
    .check = admin_rebuild_counts_check,
    .handle = admin_rebuild_counts_handle,
};
