#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/handler.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/field_key.h"

#define PLAYER_PREFIX    "player:"
#define FIELD_IF_VERSION 5u

const struct handler *handler_find(const struct handler_table *table, uint32_t method)
{
    return method < table->count ? table->handlers[method] : NULL;
}

err refuse(struct arena *arena, struct refusal *refusal, Holdfast__V1__ErrorCode code,
           const char *field, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CHECK(length >= 0);
    char *message = arena_alloc(arena, (size_t)length + 1);
    va_start(args, format);
    vsnprintf(message, (size_t)length + 1, format, args);
    va_end(args);
    *refusal = (struct refusal){ .code = code, .message = message, .field = field };
    if (code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT)
        return ERR_INVALID;
    return ERR_CONFLICT;
}

err refuse_invalid(struct arena *arena, struct refusal *refusal, const char *field,
                   const char *limit, const char *value)
{
    (void)refuse(arena, refusal, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT, field,
                 value[0] != 0 ? "%s%sexpected %s, got \"%s\"" : "%s%sexpected %s%s", field,
                 field[0] != 0 ? ": " : "", limit, value);
    refusal->limit = limit;
    refusal->value = value;
    return ERR_INVALID;
}

err refusal_defer(struct check_context *context, err e)
{
    if (e == ERR_OK || context->meta->apply_version < DEFER_APPLY_VERSION)
        return e;
    if (context->deferred.code == 0)
        context->deferred = *context->refusal;
    *context->refusal = (struct refusal){ 0 };
    return ERR_OK;
}

err refuse_number(struct arena *arena, struct refusal *refusal, const char *field,
                  const char *limit, int64_t value)
{
    return refuse_invalid(arena, refusal, field, limit,
                          arena_printf(arena, "%lld", (long long)value));
}

err refuse_unsigned(struct arena *arena, struct refusal *refusal, const char *field,
                    const char *limit, uint64_t value)
{
    return refuse_invalid(arena, refusal, field, limit, arena_printf(arena, "%" PRIu64, value));
}

const char *entry_field(struct arena *arena, const char *list, size_t place, const char *key,
                        const char *name)
{
    char text[FIELD_KEY_BYTES];

    field_key_print(slice_from_text(key), place, text);
    return arena_printf(arena, "%s%s%s%s", list, text, name[0] != 0 ? "." : "", name);
}

const char *entry_field_applied(const struct apply_context *context, const char *list, size_t place,
                                const char *key, const char *name)
{
    bool by_key = context->version >= ENTRY_KEYS_APPLY_VERSION;

    return entry_field(context->arena, list, place, by_key ? key : "", name);
}

const char *value_shorten_applied(const struct apply_context *context, struct slice value)
{
    return context->version >= LETTERS_APPLY_VERSION ? text_shorten(context->arena, value)
                                                     : text_shorten_ascii(context->arena, value);
}

void refusal_tell_field(struct apply_context *context, const char *field)
{
    struct refusal *refusal = context->refusal;

    if (context->version >= ENTRY_KEYS_APPLY_VERSION && refusal->field != NULL &&
        refusal->field[0] != 0)
        refusal->field = field;
}

void refusal_tell_own(struct apply_context *context, const char *field)
{
    if (context->version >= OWN_FIELD_APPLY_VERSION)
        refusal_tell_field(context, field);
}

err refuse_twin(struct arena *arena, struct refusal *refusal, const char *field)
{
    err e =
        refuse(arena, refusal, CODE(INVALID_ARGUMENT), field, "%s: the name is there twice", field);

    refusal->limit = "once";
    return e;
}

void refusal_set_within(struct arena *arena, struct refusal *refusal, const char *whole)
{
    size_t size = strlen(refusal->field);

    if (size == 0)
        return;
    if (strncmp(refusal->message, refusal->field, size) == 0 && refusal->message[size] == ':')
        refusal->message = arena_printf(arena, "%s.%s", whole, refusal->message);
    refusal->field = arena_printf(arena, "%s.%s", whole, refusal->field);
}

void refusal_tell_funds(struct apply_context *context, const char *currency, int64_t balance,
                        int64_t needed)
{
    Holdfast__V1__ErrorDetail__Funds *funds;

    if (context->version < FACTS_APPLY_VERSION)
        return;
    funds = arena_alloc(context->arena, sizeof *funds);
    holdfast__v1__error_detail__funds__init(funds);
    funds->currency = text_lend(currency); /* Read only. */
    funds->balance = balance;
    funds->needed = needed;
    context->refusal->funds = funds;
}

void refusal_tell_capacity(struct apply_context *context, const char *what, int64_t max)
{
    Holdfast__V1__ErrorDetail__Capacity *capacity;

    if (context->version < FACTS_APPLY_VERSION)
        return;
    capacity = arena_alloc(context->arena, sizeof *capacity);
    holdfast__v1__error_detail__capacity__init(capacity);
    capacity->what = text_lend(what); /* Read only. */
    capacity->max = max;
    context->refusal->capacity = capacity;
}

static char *or_empty(const char *text)
{
    return text_lend(text != NULL ? text : protobuf_c_empty_string);
}

void refusal_encode(const struct refusal *refusal, struct buf *out)
{
    Holdfast__Internal__V1__Refusal detail = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;

    detail.code = refusal->code;
    detail.message = or_empty(refusal->message);
    detail.field = or_empty(refusal->field);
    detail.limit = or_empty(refusal->limit);
    detail.value = or_empty(refusal->value);
    detail.retry_after_ms = refusal->retry_after_ms;
    detail.holder = or_empty(refusal->holder);
    detail.player_id = or_empty(refusal->player_id);
    detail.final = refusal->final;
    detail.funds = refusal->funds;
    detail.capacity = refusal->capacity;
    detail.came_back = refusal->came_back;
    detail.on_its_way = refusal->on_its_way;
    size_t size = protobuf_c_message_get_packed_size(&detail.base);
    protobuf_c_message_pack(&detail.base, buf_reserve(out, size));
    out->size += size;
}

struct slice refusal_pack(const struct refusal *refusal, struct arena *arena)
{
    struct buf bytes = { 0 };

    refusal_encode(refusal, &bytes);
    struct slice packed = arena_copy(arena, buf_slice(&bytes));
    buf_deinit(&bytes);
    return packed;
}

void damage_note(struct damage *damage, struct slice entity, const char *reason)
{
    const size_t prefix = sizeof PLAYER_PREFIX - 1;
    bool is_player = entity.size > prefix && memcmp(entity.data, PLAYER_PREFIX, prefix) == 0;

    if (damage->found)
        return;
    *damage = (struct damage){ .found = true };
    if (is_player)
        (void)snprintf(damage->player, sizeof damage->player, "%.*s", (int)(entity.size - prefix),
                       (const char *)entity.data + prefix);
    (void)snprintf(damage->reason, sizeof damage->reason, "%s", reason);
}

void damage_count_down(struct damage *damage, uint64_t *count, uint64_t by)
{
    if (*count < by)
        damage_note(damage, (struct slice){ 0 }, "a shard counted fewer rows than there were");
    *count -= *count < by ? *count : by;
}

err refuse_damaged(struct arena *arena, struct refusal *refusal, struct damage *damage,
                   struct slice entity, const char *reason)
{
    damage_note(damage, entity, reason);
    err e = refuse(arena, refusal, CODE(QUARANTINED), "",
                   "the player is held back for review: %s; nothing was done", reason);
    refusal->transient = true;
    return e;
}

err apply_damaged(struct apply_context *context, struct slice entity, const char *reason)
{
    return refuse_damaged(context->arena, context->refusal, context->damage, entity, reason);
}

err read_damaged(struct read_context *context, const char *reason)
{
    return refuse_damaged(context->arena, context->refusal, context->damage, context->entity,
                          reason);
}

/* Where a request has it, it is field 5 of that name, with presence. */
static bool if_version_of(const ProtobufCMessage *request, uint64_t *ret_version)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(request->descriptor, FIELD_IF_VERSION);
    uint32_t present;

    if (field == NULL || strcmp(field->name, "if_version") != 0)
        return false;
    memcpy(&present, (const char *)request + field->quantifier_offset, sizeof present);
    memcpy(ret_version, (const char *)request + field->offset, sizeof *ret_version);
    return present == FIELD_IF_VERSION;
}

err refuse_version(struct apply_context *context, const char *field, const char *what,
                   const struct version_pair *versions)
{
    err e = refuse(context->arena, context->refusal, CODE(VERSION_CONFLICT), field,
                   "%s has version %llu, not %llu", what, (unsigned long long)versions->current,
                   (unsigned long long)versions->expected);

    context->refusal->limit =
        arena_printf(context->arena, "%llu", (unsigned long long)versions->expected);
    context->refusal->value =
        arena_printf(context->arena, "%llu", (unsigned long long)versions->current);
    return e;
}

err version_check(struct apply_context *context, const ProtobufCMessage *request, uint64_t version)
{
    struct version_pair versions = { .current = version };

    if (!if_version_of(request, &versions.expected) || versions.expected == version)
        return ERR_OK;
    return refuse_version(context, "if_version", "the player", &versions);
}

err quarantine_check(struct arena *arena, struct refusal *refusal, const struct meta *meta,
                     struct slice player)
{
    const struct quarantined *held =
        meta->quarantine_count > 0 ? meta_find_quarantined(meta, player) : NULL;

    if (held == NULL)
        return ERR_OK;
    err e = refuse(arena, refusal, CODE(QUARANTINED), "",
                   "the player is held back for review: %s; nothing was done", held->reason);
    refusal->transient = true;
    return e;
}
