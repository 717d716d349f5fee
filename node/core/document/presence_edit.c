#include "node/core/codec/arena_proto.h"
#include "node/core/codec/json_canon.h"
#include "node/core/codec/text_rule.h"
#include "node/core/document/presence.h"
#include "runtime/base/check.h"

static err refuse_expired(struct document_context *context, const char *incarnation)
{
    err e = refuse(context->arena, context->refusal, CODE(SERVER_EXPIRED), "incarnation",
                   "the registration of server %s has expired; register again", incarnation);

    context->refusal->value = incarnation;
    return e;
}

static err check_server(struct document_context *context, const struct presence_setting *setting)
{
    struct incarnation incarnation;
    struct slice text = slice_from_text(setting->incarnation);

    if (setting->ttl_ms != 0)
        return refuse_number(context->arena, context->refusal, "ttl_ms",
                             "0 together with `incarnation`", setting->ttl_ms);
    if (incarnation_parse(text, &incarnation) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "incarnation",
                              "an incarnation that RegisterServer returned",
                              text_shorten(context->arena, text));
    if (context->living != NULL &&
        living_state_of(context->living, incarnation, context->now_ms) == LIVING_DEAD)
        return refuse_expired(context, setting->incarnation);
    return ERR_OK;
}

/* By what it lives: a server, or its time. */
static err check_life(struct document_context *context, const struct presence_setting *setting,
                      uint64_t *ret_expires_ms)
{
    *ret_expires_ms = 0;
    if (setting->incarnation[0] != 0)
        return check_server(context, setting);
    if (setting->ttl_ms < PRESENCE_TTL_MS_MIN || setting->ttl_ms > PRESENCE_TTL_MS_MAX)
        return refuse_number(context->arena, context->refusal, "ttl_ms",
                             "1000 to 86400000, or an `incarnation`", setting->ttl_ms);
    *ret_expires_ms = context->now_ms + (uint64_t)setting->ttl_ms;
    return ERR_OK;
}

static err make_status(struct document_context *context, const char *given, char **ret_status)
{
    struct slice text = slice_from_text(given);
    struct buf canonical = { 0 };
    const char *why = NULL;
    err e = ERR_OK;

    if (text.size > PRESENCE_STATUS_BYTES_MAX)
        return refuse_invalid(context->arena, context->refusal, "status", "at most 1024 bytes",
                              arena_printf(context->arena, "%zu", text.size));
    if (text.size > 0)
        e = json_canon(text, &canonical, &why);
    if (e == ERR_OK)
        *ret_status = arena_text(context->arena, buf_slice(&canonical));
    else
        e = refuse_invalid(context->arena, context->refusal, "status", why,
                           text_shorten(context->arena, text));
    buf_deinit(&canonical);
    return e;
}

/* What the part keeps: what its cell does not tell by itself. In the arena. */
static err make_value(struct document_context *context, const struct presence_setting *setting,
                      struct slice *ret_value)
{
    Holdfast__V1__PresenceConnection connection = HOLDFAST__V1__PRESENCE_CONNECTION__INIT;
    err e = make_status(context, setting->status, &connection.status);

    connection.incarnation = setting->incarnation;
    if (e == ERR_OK)
        *ret_value = arena_pack(context->arena, &connection.base);
    return e;
}

static bool is_edited(const struct value_edits *edits, struct slice path)
{
    bool found = false;

    for (uint32_t i = 0; i < edits->count && !found; i++)
        found = slice_equal(edits->list[i].path, path);
    return found;
}

/* Dead parts go with the write, and do not count. */
static err add_edits(struct document_context *context, const struct presence_parts *parts,
                     const struct merge_edit *edit, struct value_edits *edits)
{
    uint32_t others = 0;

    CHECK(value_add(edits, edit) == ERR_OK);
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct presence_part *part = &parts->list[i];

        if (is_edited(edits, merge_cell_path(part->cell)))
            continue;
        others += !part->dead;
        if (part->dead && edits->count < MERGE_EDITS_MAX)
            (void)presence_remove(edits, part);
    }
    if (others < PRESENCE_CONNECTIONS_MAX)
        return ERR_OK;
    return document_refuse(context, ERR_FULL,
                           &(struct merge_refusal){ .field = "connections",
                                                    .limit = PRESENCE_CONNECTIONS_MAX,
                                                    .value = others + 1 });
}

err presence_set_edits(struct document_context *context, const struct document_place *place,
                       const struct presence_setting *setting, struct value_edits *edits)
{
    struct merge_edit edit = { .path = slice_from_text(setting->connection), .exact = true };
    struct presence_parts parts;
    struct merge_record record;
    err e = presence_check_connection(context, setting->connection);

    if (e == ERR_OK)
        e = make_value(context, setting, &edit.value);
    if (e == ERR_OK)
        e = check_life(context, setting, &edits->expires_ms);
    if (e != ERR_OK)
        return e;
    document_stored(context, place, &record);
    presence_parts_of(context, &record, &parts);
    e = add_edits(context, &parts, &edit, edits);
    merge_record_deinit(&record);
    return e;
}
