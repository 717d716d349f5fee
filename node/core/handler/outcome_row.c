#include "node/core/handler/outcome_row.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/answer.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define OUTCOME_ROW_VERSION       1u
#define OUTCOME_ROW_VERSION_KEYED 2u /* A row of TABLE_KEYED stands for it. */
#define OUTCOME_ROW_VERSION_AGAIN 3u /* PENDING, and an earlier attempt was refused. */

static void before_put(const struct outcome_before *before, struct buf *out)
{
    buf_put_u32(out, before->attempt);
    dot_encode(before->dot, out);
    buf_put_u64(out, before->version);
    buf_put_u64(out, before->decided_at_ms);
    buf_put_u32(out, (uint32_t)before->body.size);
    buf_append(out, before->body.data, before->body.size);
}

static struct outcome_before before_read(struct reader *reader)
{
    struct outcome_before before;

    before.attempt = read_u32(reader);
    before.dot = dot_decode(reader);
    before.version = read_u64(reader);
    before.decided_at_ms = read_u64(reader);
    before.body = read_raw(reader, read_u32(reader));
    return before;
}

void outcome_row_encode(const struct outcome_row *row, struct buf *out)
{
    CHECK(row->method <= UINT16_MAX);
    CHECK(!row->refused_before || (row->state == OUTCOME_ROW_PENDING && !row->keyed));
    (void)buf_reserve(out, row->body.size + 80);
    buf_put_u8(out, row->refused_before ? OUTCOME_ROW_VERSION_AGAIN
                    : row->keyed        ? OUTCOME_ROW_VERSION_KEYED
                                        : OUTCOME_ROW_VERSION);
    buf_put_u8(out, (uint8_t)row->state);
    buf_put_u16(out, (uint16_t)row->method);
    buf_put_u32(out, row->attempt);
    buf_append(out, row->payload.bytes, sizeof row->payload.bytes);
    dot_encode(row->dot, out);
    buf_put_u64(out, row->version);
    buf_put_u64(out, row->decided_at_ms);
    if (row->refused_before)
        before_put(&row->before, out);
    buf_append(out, row->body.data, row->body.size);
}

err outcome_row_decode(struct slice bytes, struct outcome_row *ret_row)
{
    struct reader reader = reader_from(bytes);
    struct outcome_row row = { .method = 0 };

    uint8_t version = read_u8(&reader);
    if (version < OUTCOME_ROW_VERSION || version > OUTCOME_ROW_VERSION_AGAIN)
        return ERR_CORRUPT;
    row.keyed = version == OUTCOME_ROW_VERSION_KEYED;
    row.refused_before = version == OUTCOME_ROW_VERSION_AGAIN;
    uint8_t state = read_u8(&reader);
    if (state < OUTCOME_ROW_PENDING || state > OUTCOME_ROW_ABORTED)
        return ERR_CORRUPT;
    row.state = (enum outcome_state)state;
    if (row.refused_before && row.state != OUTCOME_ROW_PENDING)
        return ERR_CORRUPT;
    row.method = read_u16(&reader);
    row.attempt = read_u32(&reader);
    struct slice payload = read_raw(&reader, sizeof row.payload.bytes);
    if (payload.size != sizeof row.payload.bytes)
        return ERR_CORRUPT;
    memcpy(row.payload.bytes, payload.data, payload.size);
    row.dot = dot_decode(&reader);
    row.version = read_u64(&reader);
    row.decided_at_ms = read_u64(&reader);
    if (row.refused_before)
        row.before = before_read(&reader);
    row.body = read_raw(&reader, reader_left(&reader));
    if (reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    if (row.state == OUTCOME_ROW_COMMITTED && method_find(row.method) == NULL)
        return ERR_CORRUPT;
    *ret_row = row;
    return ERR_OK;
}

enum state_found outcome_row_find(struct state *state, struct slice entity, const struct op_id *id,
                                  struct need *need, struct outcome_row *ret_row)
{
    struct row_key key;
    struct slice value;

    row_key_operation(&key, entity, id);
    enum state_found found = row_find(state, &key, need, &value);
    if (found == STATE_PRESENT && outcome_row_decode(value, ret_row) != ERR_OK)
        *ret_row = (struct outcome_row){ .state = OUTCOME_ROW_UNREADABLE };
    return found;
}

bool outcome_row_is_over(const struct outcome_row *row, const struct op_id *id, uint64_t now_ms)
{
    bool decided = row->state == OUTCOME_ROW_COMMITTED || row->state == OUTCOME_ROW_REFUSED;
    bool sealed = row->state == OUTCOME_ROW_ABORTED || row->attempt == UINT32_MAX;

    return id->is_key && (row->keyed || (decided && !sealed)) && now_ms > row->decided_at_ms &&
           now_ms - row->decided_at_ms > OP_ID_KEY_MS;
}

bool outcome_row_body_is_sound(const struct outcome_row *row, struct arena *arena)
{
    const struct method_info *method = method_find(row->method);

    switch (row->state) {
    case OUTCOME_ROW_COMMITTED:
        return method != NULL && arena_unpack(arena, method->response, row->body) != NULL;
    case OUTCOME_ROW_REFUSED:
        return arena_unpack(arena, &holdfast__internal__v1__refusal__descriptor, row->body) != NULL;
    default:
        return row->state != OUTCOME_ROW_UNREADABLE;
    }
}

void outcome_row_date(struct apply_context *context, struct slice entity, struct slice op_id,
                      uint64_t decided_at_ms)
{
    struct row_key key;

    row_key_keyed(&key, decided_at_ms, entity, op_id);
    buf_clear(context->scratch);
    keyed_row_encode(context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
    context->meta->key_count++;
}

/* The date of the outcome that stands under a `key:`, which is about to be another or none. */
static void drop_date(struct apply_context *context, const struct op_id *id)
{
    struct slice entity = context->op->entity, value;
    struct outcome_row stood;
    struct row_key key;

    if (!id->is_key)
        return;
    row_key_operation(&key, entity, id);
    if (state_find(context->state, row_key_slice(&key), &value) != STATE_PRESENT ||
        outcome_row_decode(value, &stood) != ERR_OK || !stood.keyed)
        return;
    row_key_keyed(&key, stood.decided_at_ms, entity, id->text);
    state_delete(context->state, row_key_slice(&key));
    damage_count_down(context->damage, &context->meta->key_count, 1);
}

/* How an earlier attempt was refused, whose row one that is PENDING takes the place of. */
static bool before_find(struct apply_context *context, const struct op_id *id,
                        struct outcome_before *ret_before)
{
    struct outcome_row stood;
    struct row_key key;
    struct slice value;

    row_key_operation(&key, context->op->entity, id);
    if (state_find(context->state, row_key_slice(&key), &value) != STATE_PRESENT ||
        outcome_row_decode(value, &stood) != ERR_OK)
        return false;
    if (stood.state == OUTCOME_ROW_REFUSED)
        *ret_before = (struct outcome_before){
            stood.attempt,
            stood.dot,
            stood.version,
            stood.decided_at_ms,
            arena_copy(context->arena, stood.body),
        };
    else
        *ret_before = stood.before;
    return stood.state == OUTCOME_ROW_REFUSED || stood.refused_before;
}

void outcome_row_store(struct apply_context *context, const struct op_id *id, bool is_new,
                       const struct outcome_row *row)
{
    struct outcome_row stored = *row;
    struct row_key key;

    stored.refused_before = row->state == OUTCOME_ROW_PENDING && !is_new &&
                            context->version >= REFUSED_BEFORE_APPLY_VERSION &&
                            before_find(context, id, &stored.before);
    stored.keyed =
        id->is_key && row->state != OUTCOME_ROW_PENDING && context->version >= KEYS_APPLY_VERSION;
    buf_clear(context->scratch);
    outcome_row_encode(&stored, context->scratch);
    drop_date(context, id);
    row_key_operation(&key, context->op->entity, id);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
    if (stored.keyed)
        outcome_row_date(context, context->op->entity, id->text, row->decided_at_ms);
    if (id->typed)
        return;
    uint64_t ms = uuid_v7_ms(&id->uuid);
    if (ms > context->meta->operation_ms_max)
        context->meta->operation_ms_max = ms;
    if (is_new)
        context->meta->operation_count++;
}

uint64_t outcome_row_ledger_seq(const struct outcome_row *row, struct arena *arena)
{
    const struct method_info *method = method_find(row->method);
    uint64_t seq;

    if (row->state != OUTCOME_ROW_COMMITTED || method == NULL)
        return 0;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(method->response, "ledger_seq");
    if (field == NULL || field->type != PROTOBUF_C_TYPE_UINT64)
        return 0;
    const ProtobufCMessage *response = arena_unpack(arena, method->response, row->body);
    if (response == NULL)
        return 0;
    memcpy(&seq, (const uint8_t *)response + field->offset, sizeof seq);
    return seq;
}

err outcome_row_withdraw(struct apply_context *context, const struct op_id *id)
{
    struct outcome_row row;
    struct row_key key;

    enum state_found found =
        outcome_row_find(context->state, context->op->entity, id, context->need, &row);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT && row.state == OUTCOME_ROW_PENDING && row.refused_before) {
        const struct outcome_row refused = {
            .state = OUTCOME_ROW_REFUSED,
            .method = row.method,
            .attempt = row.before.attempt,
            .payload = row.payload,
            .dot = row.before.dot,
            .version = row.before.version,
            .decided_at_ms = row.before.decided_at_ms,
            .body = arena_copy(context->arena, row.before.body),
        };
        outcome_row_store(context, id, false, &refused);
        return ERR_OK;
    }
    drop_date(context, id);
    row_key_operation(&key, context->op->entity, id);
    state_delete(context->state, row_key_slice(&key));
    if (!id->typed)
        damage_count_down(context->damage, &context->meta->operation_count, 1);
    return ERR_OK;
}

static Holdfast__V1__OperationState status_state(enum outcome_state state)
{
    switch (state) {
    case OUTCOME_ROW_UNREADABLE: /* Callers refuse it before. */
        break;
    case OUTCOME_ROW_PENDING:
        return HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_PENDING;
    case OUTCOME_ROW_COMMITTED:
        return HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED;
    case OUTCOME_ROW_REFUSED:
        return HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_REFUSED;
    case OUTCOME_ROW_ABORTED:
        return HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_ABORTED;
    }
    return HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_UNSPECIFIED;
}

static void set_result(const struct outcome_row *row, const struct outcome_teller *teller,
                       struct arena *arena, Holdfast__Internal__V1__OperationRecord *status)
{
    struct buf bytes = { 0 };
    const struct answer answer = {
        .method = row->method,
        .shard = teller->shard,
        .tells_dot = teller->version < AS_OF_APPLY_VERSION,
        .duplicate = true,
        .version = row->version,
        .dot = row->dot,
        .body = row->body,
        .replicas_fsynced = teller->meta->membership.count / 2 + 1,
    };

    answer_encode(&answer, &bytes);
    struct slice copy = arena_copy(arena, buf_slice(&bytes));
    buf_deinit(&bytes);
    status->result = (ProtobufCBinaryData){ copy.size, (uint8_t *)(uintptr_t)copy.data };
    status->dot = (Holdfast__V1__Dot *)arena_message(arena, &holdfast__v1__dot__descriptor);
    status->dot->epoch = row->dot.epoch;
    status->dot->owner = row->dot.owner;
    status->dot->counter = row->dot.counter;
}

Holdfast__Internal__V1__OperationRecord *outcome_row_status(const struct outcome_row *row,
                                                            const struct outcome_teller *teller,
                                                            struct arena *arena)
{
    Holdfast__Internal__V1__OperationRecord *status =
        (Holdfast__Internal__V1__OperationRecord *)arena_message(
            arena, &holdfast__internal__v1__operation_record__descriptor);
    const struct method_info *method = method_find(row->method);

    status->state = status_state(row->state);
    status->attempt = row->attempt;
    status->decided_at_ms = (int64_t)row->decided_at_ms;
    if (method != NULL)
        status->method = text_lend(method_told_name(method));
    if (row->state == OUTCOME_ROW_COMMITTED)
        set_result(row, teller, arena, status);
    if (row->state == OUTCOME_ROW_REFUSED)
        status->refusal = (Holdfast__Internal__V1__Refusal *)arena_unpack(
            arena, &holdfast__internal__v1__refusal__descriptor, row->body);
    /* Lost with a damaged row (row_repair.h): it is never applied again. */
    if (status->refusal != NULL &&
        status->refusal->code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OPERATION_EXPIRED)
        status->state = HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_EXPIRED;
    return status;
}
