#include "node/core/consumer/consumer.h"

#include <inttypes.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/event.h"
#include "node/core/handler/record_version.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

#define PLAYER_KIND     "player:"
#define DEFINITION_KIND "definition:"

static struct slice key_of(const char *name, struct row_key *ret_key)
{
    consumer_row_key(ret_key, slice_from_text(name));
    return row_key_slice(ret_key);
}

/* ---- before the log ---- */
err consumer_check_name(struct check_context *context, const char *name)
{
    struct slice text = slice_from_text(name);
    struct row_key key;

    if (!consumer_name_is_good(text))
        return refuse_invalid(context->arena, context->refusal, "consumer", CONSUMER_NAME_RULE,
                              text_shorten(context->arena, text));
    if (context->meta->apply_version < CONSUMER_APPLY_VERSION) {
        (void)refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                     "shard %" PRIu32 " applies version %" PRIu32
                     "; consumers begin with %u, once all its replicas are updated",
                     context->shard, context->meta->apply_version, CONSUMER_APPLY_VERSION);
        return ERR_INVALID;
    }
    struct slice whole = key_of(name, &key);
    struct slice entity = { whole.data + 1, whole.size - 1 };
    if (context->shard_count > 0 && shard_of_entity(entity, context->shard_count) != context->shard)
        return refuse_invalid(context->arena, context->refusal, "consumer",
                              "the name of a consumer of this shard",
                              text_shorten(context->arena, text));
    return ERR_OK;
}

err consumer_check_op(struct check_context *context, char **op_id)
{
    struct slice text = slice_from_text(*op_id);
    struct op_id id;
    const char *why;

    if (op_id_parse(text, &id, &why) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "op_id", why,
                              text_shorten(context->arena, text));
    if (!id.typed) {
        *op_id = arena_alloc(context->arena, UUID_TEXT_SIZE);
        uuid_print(&id.uuid, *op_id);
    }
    return ERR_OK;
}

err consumer_check_cursor(struct check_context *context, const char *cursor, bool may_be_empty)
{
    struct slice text = slice_from_text(cursor);
    struct event_cursor read;

    if (text.size == 0 && may_be_empty)
        return ERR_OK;
    if (text.size > CONSUMER_CURSOR_MAX ||
        event_cursor_decode(text, context->shard_count, context->arena, &read) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of Poll or Subscribe of this cluster",
                              text_shorten(context->arena, text));
    return ERR_OK;
}

static err check_entity(struct check_context *context, const char *entity)
{
    struct slice text = slice_from_text(entity);
    bool player =
        slice_begins_with(text, SLICE_LITERAL(PLAYER_KIND)) && text.size > sizeof PLAYER_KIND - 1;
    bool definition = slice_begins_with(text, SLICE_LITERAL(DEFINITION_KIND)) &&
                      text.size > sizeof DEFINITION_KIND - 1;

    if (text.size == 0 || ((player || definition) && text.size <= CONSUMER_PREFIX_MAX))
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "entity",
                          "player:<id> or definition:<kind>/<name>, of at most 128 bytes",
                          text_shorten(context->arena, text));
}

err consumer_check_filter(struct check_context *context,
                          const Holdfast__V1__CreateConsumerRequest *request)
{
    struct slice prefix = slice_from_text(request->entity_prefix);

    if (request->n_kinds > CONSUMER_KINDS_MAX)
        return refuse_number(context->arena, context->refusal, "kinds", "at most 16",
                             (int64_t)request->n_kinds);
    for (size_t i = 0; i < request->n_kinds; i++) {
        int kind = (int)request->kinds[i];
        bool known = protobuf_c_enum_descriptor_get_value(&holdfast__v1__event_kind__descriptor,
                                                          kind) != NULL;
        if (kind <= 0 || kind > UINT8_MAX || !known)
            return refuse_number(context->arena, context->refusal,
                                 arena_printf(context->arena, "kinds[%zu]", i),
                                 "a kind of events that there is", kind);
    }
    if (prefix.size > CONSUMER_PREFIX_MAX)
        return refuse_number(context->arena, context->refusal, "entity_prefix", "at most 128 bytes",
                             (int64_t)prefix.size);
    if (prefix.size > 0 && request->entity[0] != '\0')
        return refuse_invalid(context->arena, context->refusal, "entity",
                              "no entity beside entity_prefix",
                              text_shorten(context->arena, slice_from_text(request->entity)));
    return check_entity(context, request->entity);
}

/* ---- applied ---- */
void consumer_footprint(const char *name, struct need *keys)
{
    struct row_key key;

    if (consumer_name_is_good(slice_from_text(name)))
        need_add_key(keys, key_of(name, &key));
}

err consumer_find(struct state *state, struct arena *arena, struct need *need, const char *name,
                  struct consumer *ret_consumer)
{
    struct row_key key;
    struct slice value;

    *ret_consumer = (struct consumer){ .name = slice_from_text(name) };
    consumer_row_key(&key, ret_consumer->name);
    enum state_found found = row_find(state, &key, need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    ret_consumer->exists = found == STATE_PRESENT;
    if (found == STATE_ABSENT)
        return ERR_OK;
    return consumer_row_decode(arena_copy(arena, value), arena, &ret_consumer->row,
                               &ret_consumer->cursor);
}

err consumer_find_applied(struct apply_context *context, const char *name,
                          struct consumer *ret_consumer)
{
    if (!consumer_name_is_good(slice_from_text(name)) || context->version < CONSUMER_APPLY_VERSION)
        return refuse_invalid(context->arena, context->refusal, "consumer", CONSUMER_NAME_RULE, "");
    err e = consumer_find(context->state, context->arena, context->need, name, ret_consumer);
    return e == ERR_CORRUPT ? apply_damaged(context, (struct slice){ 0 }, CONSUMER_DAMAGE) : e;
}

static bool count_one(void *user, struct slice key, struct slice value)
{
    uint32_t *count = user;

    (void)key;
    (void)value;
    *count += 1;
    return true;
}

err consumer_count(struct apply_context *context, uint32_t *ret_count)
{
    const uint8_t letter = TABLE_CONSUMER;
    const struct state_range all = { .prefix = { &letter, 1 }, .limit = LIMIT_CONSUMERS };

    *ret_count = 0;
    return state_range_visit(context->state, &all, context->need, count_one, ret_count);
}

err consumer_repeats(struct apply_context *context, const struct consumer *consumer,
                     const char *op_id, enum consumer_change change, bool *ret_repeats)
{
    const struct consumer_row *row = &consumer->row;
    struct slice asked = slice_from_text(op_id);
    bool last = slice_equal(row->op_id, asked);
    bool made = row->made_op_id.size > 0 && slice_equal(row->made_op_id, asked);

    *ret_repeats =
        (last && row->change == change && hash128_equal(row->payload, context->op->payload)) ||
        (made && change == CONSUMER_CREATED &&
         hash128_equal(row->made_payload, context->op->payload));
    if (*ret_repeats || (!last && !made))
        return ERR_OK;
    return refuse(context->arena, context->refusal, CODE(OPERATION_ID_MISMATCH), "op_id",
                  last ? "the consumer was last changed under this op_id, by another request"
                       : "the consumer was made under this op_id, by another request");
}

void consumer_store(struct apply_context *context, struct consumer *consumer, const char *op_id,
                    enum consumer_change change)
{
    struct consumer_row *row = &consumer->row;
    struct row_key key;

    if (context->version >= CONSUMER_MADE_APPLY_VERSION)
        row->version = record_version_next(context, row->version);
    else
        row->version = context->meta->applied_index + 1;
    if (change == CONSUMER_COMMITTED && row->change == CONSUMER_CREATED &&
        context->version >= CONSUMER_MADE_APPLY_VERSION) {
        row->made_op_id = row->op_id;
        row->made_payload = row->payload;
    }
    row->change = change;
    row->by = context->op->caller;
    row->op_id = slice_from_text(op_id);
    row->payload = context->op->payload;
    if (change == CONSUMER_CREATED)
        row->created_at_ms = context->owner_ms;
    else
        row->committed_at_ms = context->owner_ms;
    buf_clear(context->scratch);
    consumer_row_encode(row, context->scratch);
    consumer_row_key(&key, consumer->name);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
    consumer->exists = true;
}

/* ---- told ---- */

/* Of the shards that the filter asks. */
static uint64_t caught_up_ms(const struct consumer *consumer)
{
    const struct event_cursor *cursor = &consumer->cursor;
    uint32_t first = 0, last = cursor->shard_count - 1;

    if (cursor->shard_count == 0)
        return 0;
    if (slice_begins_with(consumer->row.entity, SLICE_LITERAL(PLAYER_KIND)))
        first = last = shard_of_entity(consumer->row.entity, cursor->shard_count);
    return event_cursor_passed_ms(cursor, first, last);
}

Holdfast__V1__EventConsumer *consumer_tell(struct arena *arena, const struct consumer *consumer,
                                           bool with_cursor)
{
    const struct consumer_row *row = &consumer->row;
    Holdfast__V1__EventConsumer *told =
        (void *)arena_message(arena, &holdfast__v1__event_consumer__descriptor);

    told->name = arena_text(arena, consumer->name);
    told->n_kinds = row->kind_count;
    told->kinds = arena_alloc(arena, (row->kind_count + 1) * sizeof *told->kinds);
    for (uint32_t i = 0; i < row->kind_count; i++)
        told->kinds[i] = (Holdfast__V1__EventKind)row->kinds[i];
    told->entity_prefix = arena_text(arena, row->entity_prefix);
    told->entity = arena_text(arena, row->entity);
    told->version = row->version;
    if (with_cursor)
        told->cursor = arena_text(arena, row->cursor);
    told->created_at_ms = (int64_t)row->created_at_ms;
    told->committed_at_ms = (int64_t)row->committed_at_ms;
    told->committed_by = arena_text(arena, row->by);
    told->caught_up_ms = (int64_t)caught_up_ms(consumer);
    return told;
}

err consumer_refuse_absent(struct arena *arena, struct refusal *refusal, struct slice name)
{
    return refuse(arena, refusal, CODE(NOT_FOUND), "consumer", "there is no consumer \"%.*s\"",
                  (int)name.size, (const char *)name.data);
}
