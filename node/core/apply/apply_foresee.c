/*
 * The rows that an entry will want, told before it is applied. What a handler's footprint cannot
 * name is named here: rows under the number of a collection or a counter, where memory knows it.
 * Whatever is told too much is loaded in vain; what is missed, apply asks for.
 */
#include "idl/method.h"
#include "node/core/apply/apply.h"
#include "node/core/apply/apply_internal.h"
#include "node/core/apply/outcome_share.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/counter/counter.h"
#include "node/core/favorite/favorite.h"
#include "node/core/receipt/receipt.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

static bool is_under_a_number(uint32_t method)
{
    return method == METHOD_FAVORITE || method == METHOD_UNFAVORITE ||
           method == METHOD_ADD_TO_COUNTER;
}

static void name_numbered(struct applier *applier, const struct op *op,
                          const ProtobufCMessage *request, struct need *keys)
{
    const Holdfast__V1__FavoriteRequest *made = (const void *)request;
    const Holdfast__V1__UnfavoriteRequest *gone = (const void *)request;
    struct favorite_call call = { 0 };

    if (op->method == METHOD_ADD_TO_COUNTER) {
        counter_foresee(applier->state, &applier->scratch, (const void *)request, op->entity, keys);
        return;
    }
    call.collection = op->method == METHOD_FAVORITE ? made->collection : gone->collection;
    call.target = op->method == METHOD_FAVORITE ? made->target_id : gone->target_id;
    favorite_foresee(applier->state, &applier->scratch, &call, op->entity, keys);
}

/* ERR_CORRUPT: the request cannot be read. */
static err name_rows(struct applier *applier, const struct op *op, struct need *keys)
{
    const struct handler *handler = handler_find(applier->handlers, op->method);
    struct row_key key;

    if (op->entity.size > 0) {
        row_key_player(&key, op->entity);
        need_add_key(keys, row_key_slice(&key));
    }
    if (op->id.text.size > 0) {
        row_key_operation(&key, op->entity, &op->id);
        need_add_key(keys, row_key_slice(&key));
    }
    outcome_share_footprint(op, keys);
    if (handler != NULL && receipt_concerns(handler, op))
        receipt_enter_footprint(op, applier->shard, keys);
    if (handler == NULL || handler->footprint == NULL)
        return ERR_OK;
    const ProtobufCMessage *request =
        arena_unpack(&applier->scratch, method_find(op->method)->request, op->request);
    if (request == NULL)
        return ERR_CORRUPT;
    handler->footprint(op, request, keys);
    if (is_under_a_number(op->method))
        name_numbered(applier, op, request, keys);
    return ERR_OK;
}

/* ERR_CORRUPT: it is no operation with a request that can be read. */
static err foresee(struct applier *applier, struct slice body, bool numbered_alone,
                   struct need *need)
{
    struct need keys = { 0 };
    struct slice value;
    struct op op;

    arena_reset(&applier->scratch);
    if (op_decode(body, &op) != ERR_OK)
        return ERR_CORRUPT;
    if (numbered_alone && !is_under_a_number(op.method))
        return ERR_OK;
    op.shard_count = applier->shard_count;
    err e = name_rows(applier, &op, &keys);
    struct reader reader = reader_from(buf_slice(&keys.keys));
    for (uint32_t i = 0; i < keys.key_count; i++) {
        struct slice each = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        if (state_find(applier->state, each, &value) == STATE_MISSING)
            need_add_key(need, each);
    }
    need->load_generation = state_load_generation(applier->state);
    need_deinit(&keys);
    return e;
}

void applier_footprint(struct applier *applier, struct slice op_body, struct need *need)
{
    CHECK(foresee(applier, op_body, false, need) == ERR_OK);
}

void applier_foresee(struct applier *applier, const struct entry *entry, struct need *need)
{
    if (entry->kind == ENTRY_OP)
        (void)foresee(applier, entry->body, true, need); /* What cannot be read, apply tells of. */
}
