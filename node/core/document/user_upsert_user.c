/* UpsertUser writes two records, the user's and the presence, at one member. All that either write
 * may be refused for is looked at before the first one; both are in one batch of the log. */
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/document/user.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__UpsertUserRequest upsert_request;

/* One call while it is carried out. */
struct upsert {
    struct document_context *context;
    const upsert_request *request;
    const struct user_place *place;
    struct slice content;                  /* All that is asked for. */
    struct value_edits *record, *presence; /* What becomes of each. */
};

static err invalid(const struct upsert *upsert, const char *field, const char *limit,
                   const char *value)
{
    struct arena *arena = upsert->context->arena;

    return refuse_invalid(arena, upsert->context->refusal, field, limit,
                          text_shorten(arena, slice_from_text(value)));
}

/* ---- the record ---- */

static err add_leaf(struct upsert *upsert, const char *path, json_t *value)
{
    err e = value_leaves(upsert->record, slice_from_text(path), value, false);

    json_decref(value);
    return e == ERR_OK ? e : invalid(upsert, "", upsert->record->why, "");
}

static err add_name(struct upsert *upsert)
{
    const char *name = upsert->request->display_name;
    struct slice text = slice_from_text(name);

    if (upsert->request->clear_display_name && text.size > 0)
        return invalid(upsert, "display_name", "none, with clear_display_name", name);
    if (upsert->request->clear_display_name)
        return value_add(upsert->record, &(struct merge_edit){
                                             .path = slice_from_text(USER_PATH_NAME),
                                             .remove = true,
                                         });
    if (text.size == 0)
        return ERR_OK;
    if (text.size > USER_NAME_BYTES_MAX || !text_is_clean(text))
        return invalid(upsert, "display_name",
                       "at most 64 bytes of UTF-8 without control characters", name);
    return add_leaf(upsert, USER_PATH_NAME, json_string(name));
}

static err add_patch(struct upsert *upsert, const char *field, const char *path, const char *text)
{
    if (text[0] == 0)
        return ERR_OK;
    json_t *patch = document_parse(upsert->context, field, text);
    err e = patch != NULL ? ERR_OK : ERR_INVALID;

    if (e == ERR_OK && !json_is_object(patch))
        e = invalid(upsert, field, "a merge patch that is a JSON object", text);
    else if (e == ERR_OK &&
             value_leaves(upsert->record, slice_from_text(path), patch, true) != ERR_OK)
        e = invalid(upsert, field, upsert->record->why, "");
    json_decref(patch);
    return e;
}

static bool is_new(const struct upsert *upsert)
{
    struct merge_record record;

    document_stored(upsert->context, &upsert->place->record, &record);
    json_t *json = value_json(&record, upsert->context->now_ms);
    bool has = json_object_get(json, USER_PATH_CREATED) != NULL;

    json_decref(json);
    merge_record_deinit(&record);
    return !has;
}

static struct document_write record_write(const struct upsert *upsert)
{
    return (struct document_write){ .op_id = upsert->request->op_id, .content = upsert->content };
}

/* Another attempt may stand that made the user: this one asks for no less, and changes nothing. */
static err add_times(struct upsert *upsert)
{
    const upsert_request *request = upsert->request;
    const struct document_write write = record_write(upsert);
    json_int_t now_ms = (json_int_t)upsert->context->now_ms;
    err e = ERR_OK;

    if (is_new(upsert) || document_stands(upsert->context, &upsert->place->record, &write))
        e = add_leaf(upsert, USER_PATH_CREATED, json_integer(now_ms));
    if (e == ERR_OK && (request->connection[0] != 0 || request->n_disconnect > 0))
        e = add_leaf(upsert, USER_PATH_SEEN, json_integer(now_ms));
    if (e == ERR_OK && upsert->record->count == 0)
        e = invalid(upsert, "",
                    "at least one of display_name, clear_display_name, attributes, settings, "
                    "connection, disconnect",
                    "");
    return e;
}

static err make_record(struct upsert *upsert)
{
    const upsert_request *request = upsert->request;
    err e = add_name(upsert);

    if (e == ERR_OK)
        e = add_patch(upsert, "attributes", USER_PATH_ATTRIBUTES, request->attributes);
    if (e == ERR_OK)
        e = add_patch(upsert, "settings", USER_PATH_SETTINGS, request->settings);
    if (e == ERR_OK && upsert->record->count > USER_LEAVES_MAX)
        e = invalid(upsert, "", "at most 62 leaves in display_name, attributes and settings", "");
    return e == ERR_OK ? add_times(upsert) : e;
}

/* ---- the presence ---- */

static bool is_named_before(const upsert_request *request, size_t place)
{
    bool found = strcmp(request->disconnect[place], request->connection) == 0;

    for (size_t i = 0; i < place && !found; i++)
        found = strcmp(request->disconnect[place], request->disconnect[i]) == 0;
    return found;
}

static err add_disconnects(struct upsert *upsert)
{
    const upsert_request *request = upsert->request;
    struct document_context *context = upsert->context;

    if (request->n_disconnect > USER_DISCONNECTS_MAX)
        return refuse_number(context->arena, context->refusal, "disconnect", "at most 16 names",
                             (int64_t)request->n_disconnect);
    for (size_t i = 0; i < request->n_disconnect; i++) {
        const char *name = request->disconnect[i];
        const struct merge_edit edit = { .path = slice_from_text(name),
                                         .remove = true,
                                         .exact = true };

        if (presence_check_connection(context, name) != ERR_OK || is_named_before(request, i))
            return invalid(upsert, "disconnect",
                           "names of 1 to 64 of a-z, A-Z, 0-9 and \"._:-\", each once and none of "
                           "them `connection`",
                           name);
        CHECK(value_add(upsert->presence, &edit) == ERR_OK);
    }
    return ERR_OK;
}

/* A field of a connection that has no name would say nothing. */
static err check_unnamed(struct upsert *upsert)
{
    const upsert_request *request = upsert->request;

    if (request->status[0] == 0 && request->incarnation[0] == 0 && request->ttl_ms == 0)
        return ERR_OK;
    return invalid(upsert, "connection",
                   "the name of a connection, with status, incarnation or ttl_ms", "");
}

static err make_presence(struct upsert *upsert)
{
    const upsert_request *request = upsert->request;
    const struct presence_setting setting = { request->connection, request->status,
                                              request->incarnation, request->ttl_ms };
    err e = add_disconnects(upsert);

    if (e != ERR_OK)
        return e;
    if (request->connection[0] == 0)
        return check_unnamed(upsert);
    return presence_set_edits(upsert->context, &upsert->place->presence, &setting,
                              upsert->presence);
}

/* ---- both ---- */

static struct document_change change_of(const struct value_edits *edits)
{
    return (struct document_change){ .edits = edits };
}

/* After it the second write can be refused for nothing. */
static err check_second(struct upsert *upsert, const struct document_write *write)
{
    const struct merge_replica *replica = upsert->context->replica;
    const struct document_change change = change_of(upsert->presence);
    struct merge_refusal refusal = { .field = "pending", .limit = MERGE_PENDING_MAX };
    struct merge_record stored;
    const struct merge_edits edits = { .count = upsert->presence->count,
                                       .list = upsert->presence->list };

    if (upsert->presence->count == 0)
        return ERR_OK;
    err e = document_check(upsert->context, &upsert->place->presence, write, &change);

    if (e == ERR_OK)
        e = document_check_rows(
            upsert->context,
            (uint32_t)document_adds_row(upsert->context, &upsert->place->record, upsert->record) +
                document_adds_row(upsert->context, &upsert->place->presence, upsert->presence));
    if (e != ERR_OK)
        return e;
    if (replica->pending_count + 2 > MERGE_PENDING_MAX)
        return document_refuse(upsert->context, ERR_FULL, &refusal);
    document_stored(upsert->context, &upsert->place->presence, &stored);
    e = merge_edits_fit(&stored, &edits, &refusal);
    merge_record_deinit(&stored);
    return e == ERR_OK ? e : document_refuse(upsert->context, e, &refusal);
}

static void answer(struct upsert *upsert, struct document_begun *ret_begun)
{
    Holdfast__V1__UpsertUserResponse response = HOLDFAST__V1__UPSERT_USER_RESPONSE__INIT;
    const struct user_place *place = upsert->place;
    struct merge_record record, presence;

    document_stored(upsert->context, &place->record, &record);
    document_stored(upsert->context, &place->presence, &presence);
    response.user = user_show(upsert->context, upsert->request->player_id, &record, &presence);
    ret_begun->context = user_context(upsert->context, place, &record, &presence);
    ret_begun->more = arena_pack(upsert->context->arena, &response.base);
    merge_record_deinit(&presence);
    merge_record_deinit(&record);
}

/* The record's write waits for the disk, and with it for what the log has of the presence. */
static err write_both(struct upsert *upsert, struct document_begun *ret_begun)
{
    const struct document_write first = record_write(upsert);
    const struct document_write second = { .op_id = upsert->request->op_id };
    const struct document_change record = change_of(upsert->record);
    const struct document_change presence = change_of(upsert->presence);
    struct document_begun beside = { 0 };
    err e = check_second(upsert, &second);

    if (e == ERR_OK)
        e = document_commit(upsert->context, &upsert->place->record, &first, &record, ret_begun);
    if (e == ERR_OK && presence.edits->count > 0 &&
        document_commit(upsert->context, &upsert->place->presence, &second, &presence, &beside) !=
            ERR_OK)
        e = refuse(upsert->context->arena, upsert->context->refusal, CODE(OUTCOME_UNKNOWN), "",
                   "the user is written, its connections are not; send the same again");
    if (e == ERR_OK)
        answer(upsert, ret_begun);
    return e;
}

static err begin(struct document_context *context, struct slice bytes,
                 struct document_begun *ret_begun)
{
    const upsert_request *request =
        document_unpack(context, &holdfast__v1__upsert_user_request__descriptor, bytes);
    struct user_place place;

    if (request == NULL)
        return ERR_INVALID;
    err e = user_find(context, request->player_id, "", &place);

    if (e != ERR_OK)
        return e;
    struct upsert upsert = { context,
                             request,
                             &place,
                             bytes,
                             arena_zalloc(context->arena, sizeof *upsert.record),
                             arena_zalloc(context->arena, sizeof *upsert.presence) };

    upsert.record->arena = upsert.presence->arena = context->arena;
    e = make_record(&upsert);
    if (e == ERR_OK)
        e = make_presence(&upsert);
    if (e == ERR_OK)
        e = write_both(&upsert, ret_begun);
    user_place_deinit(&place);
    return e;
}

const struct document_method user_upsert_user_method = { begin };
