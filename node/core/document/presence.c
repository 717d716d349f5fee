#include "node/core/document/presence.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/mergeable/message.h"
#include "runtime/base/check.h"

#define PRESENCE_NAME  "presence"
#define HLC_COUNT_BITS 16u

static const struct document_rule presence_rule = { .name = PRESENCE_NAME,
                                                    .policy = MERGE_POLICY_MERGE,
                                                    .durability = MERGE_MEMORY,
                                                    .bytes_max = DOCUMENT_BYTES_MAX };

/* ---- what a request names ---- */

err presence_find(struct document_context *context, const char *player_id, const char *token,
                  struct document_place *ret_place)
{
    struct arena *arena = context->arena;
    struct slice id = slice_from_text(player_id);

    if (player_id_check(id) != ERR_OK)
        return refuse_invalid(arena, context->refusal, "player_id",
                              "1 to 100 bytes of UTF-8 without control characters",
                              text_shorten(arena, id));
    err e = document_open_context(context, token, &ret_place->token);

    if (e != ERR_OK)
        return e;
    ret_place->rule = &presence_rule;
    CHECK(merge_key_new(entity_of_player(arena, player_id),
                        document_row_name(arena, &presence_rule, slice_from_text(PRESENCE_NAME)),
                        &ret_place->key) == ERR_OK);
    return ERR_OK;
}

static bool is_of_connections(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == ':' || byte == '-';
}

err presence_check_connection(struct document_context *context, const char *connection)
{
    struct slice text = slice_from_text(connection);
    bool well = text.size > 0 && text.size <= PRESENCE_CONNECTION_BYTES_MAX;

    for (size_t i = 0; well && i < text.size; i++)
        well = is_of_connections(text.data[i]);
    if (well)
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "connection",
                          "1 to 64 of a-z, A-Z, 0-9 and \"._:-\"",
                          text_shorten(context->arena, text));
}

/* ---- parts ---- */

static bool is_dead(const struct document_context *context, const char *incarnation)
{
    struct incarnation parsed;

    if (incarnation[0] == 0)
        return false;
    if (incarnation_parse(slice_from_text(incarnation), &parsed) != ERR_OK)
        return true;
    return context->living != NULL &&
           living_state_of(context->living, parsed, context->now_ms) == LIVING_DEAD;
}

/* Values come from disks and from other members: what is no part is not shown, and goes; what a
 * later version has besides is not shown either. */
static struct presence_part part_of(struct document_context *context, const struct merge_cell *cell)
{
    const Holdfast__V1__PresenceConnection *kept =
        (const Holdfast__V1__PresenceConnection *)arena_unpack(
            context->arena, &holdfast__v1__presence_connection__descriptor, merge_cell_value(cell));
    struct presence_part part = { .cell = cell,
                                  .dead = kept == NULL || is_dead(context, kept->incarnation) };

    if (part.dead)
        return part;
    part.connection = arena_alloc(context->arena, sizeof *part.connection);
    holdfast__v1__presence_connection__init(part.connection);
    part.connection->connection = arena_text(context->arena, merge_cell_path(cell));
    part.connection->status = kept->status;
    part.connection->incarnation = kept->incarnation;
    part.connection->set_at_ms = (int64_t)(cell->hlc >> HLC_COUNT_BITS);
    part.connection->expires_at_ms = (int64_t)cell->expires_ms;
    return part;
}

void presence_parts_of(struct document_context *context, const struct merge_record *record,
                       struct presence_parts *ret_parts)
{
    struct merge_view view;

    merge_view_init(&view, record, context->now_ms);
    *ret_parts =
        (struct presence_parts){ .list = arena_alloc(context->arena,
                                                     (view.count + 1) * sizeof *ret_parts->list) };
    for (uint32_t i = 0; i < view.count; i++) {
        struct presence_part part = part_of(context, view.cells[i]);

        ret_parts->dead += part.dead;
        ret_parts->list[ret_parts->count++] = part;
    }
    merge_view_deinit(&view);
}

static int later_first(const void *a, const void *b)
{
    const struct presence_part *left = a, *right = b;

    return -merge_cell_order(left->cell, right->cell);
}

void presence_show(struct document_context *context, struct presence_parts *parts,
                   size_t *ret_count, Holdfast__V1__PresenceConnection ***ret_list)
{
    *ret_count = 0;
    *ret_list = arena_alloc(context->arena, (parts->count + 1) * sizeof **ret_list);
    if (parts->count > 0)
        qsort(parts->list, parts->count, sizeof *parts->list, later_first);
    for (uint32_t i = 0; i < parts->count; i++) {
        if (!parts->list[i].dead)
            (*ret_list)[(*ret_count)++] = parts->list[i].connection;
    }
}

bool presence_remove(struct value_edits *edits, const struct presence_part *part)
{
    const struct merge_edit edit = { .path = merge_cell_path(part->cell),
                                     .remove = true,
                                     .exact = true };

    return value_add(edits, &edit) == ERR_OK;
}

/* ---- the sweep ---- */

bool presence_is(const struct merge_key *key)
{
    static const uint8_t name[] = "\0\0\0\0\0\0\0\0" PRESENCE_NAME;
    struct slice text = merge_key_name(key);

    return text.size == sizeof name - 1 && memcmp(text.data, name, text.size) == 0;
}

static err sweep_row(struct document_context *context, struct merge_key *key)
{
    struct value_edits *edits = arena_zalloc(context->arena, sizeof *edits);
    struct merge_refusal refusal;
    struct presence_parts parts;
    struct merge_written written;
    struct merge_record record;
    err e = ERR_NOT_FOUND;

    merge_record_full(context->replica, key, &record);
    presence_parts_of(context, &record, &parts);
    for (uint32_t i = 0; i < parts.count; i++) {
        if (parts.list[i].dead)
            (void)presence_remove(edits, &parts.list[i]);
    }
    const struct merge_write write = { .key = key,
                                       .policy = MERGE_POLICY_MERGE,
                                       .durability = MERGE_MEMORY,
                                       .edit_count = edits->count,
                                       .edits = edits->list };
    if (edits->count > 0)
        e = merge_write(context->replica, context->now_ms, &write, &written, &refusal);
    merge_record_deinit(&record);
    return e;
}

err presence_sweep(struct document_context *context, const struct merge_key *after,
                   struct merge_key **ret_key)
{
    const struct merge_store *store = &context->replica->store;

    for (uint32_t i = merge_store_after(store, after); i < store->count; i++) {
        if (!presence_is(store->rows[i].key))
            continue;
        struct merge_key *key = merge_key_ref(store->rows[i].key);
        err e = sweep_row(context, key);

        if (e == ERR_OK) {
            *ret_key = key;
            return e;
        }
        merge_key_unref(key);
        if (e != ERR_NOT_FOUND)
            return e;
    }
    return ERR_NOT_FOUND;
}
