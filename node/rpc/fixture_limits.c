#include "node/rpc/fixture_limits.h"

#include <string.h>

#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/consumer/consumer.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_metadata.h"
#include "runtime/base/check.h"

#define PATCH_REMOVE HOLDFAST__V1__PATCH_KIND__PATCH_KIND_REMOVE
#define CLEAN        "bytes of UTF-8 without control characters"

/* clang-format off */
const struct limit_row limit_rows[] = {
    { "amount", METHOD_GRANT, "currencies[0].amount", LIMIT_NUMBER, 1, LIMIT_AMOUNT,
      "currencies[\"gold\"].amount", "1 to 9007199254740991" },
    { "amount", METHOD_SPEND, "currencies[0].amount", LIMIT_NUMBER, 1, LIMIT_AMOUNT,
      "currencies[\"gold\"].amount", "1 to 9007199254740991" },
    { "currencies", METHOD_GRANT, "currencies", LIMIT_COUNT, 0, LIMIT_CURRENCIES, "currencies", "at most 16" },
    { "currencies", METHOD_SPEND, "currencies", LIMIT_COUNT, 0, LIMIT_CURRENCIES, "currencies", "at most 16" },
    { "items", METHOD_GRANT, "items", LIMIT_COUNT, 0, LIMIT_ITEMS, "items", "at most 64" },
    { "item_kind_bytes", METHOD_GRANT, "items[0].kind", LIMIT_TEXT, 1, LIMIT_ITEM_KIND_BYTES,
      "items[0].kind", "1 to 64 " CLEAN },
    { "item_attributes_bytes", METHOD_GRANT, "items[0].attributes", LIMIT_OBJECT, 0,
      LIMIT_ITEM_ATTRIBUTES_BYTES, "items[0].attributes", "a JSON object of at most 1024 bytes" },
    { "player_id_bytes", METHOD_SEND_MAIL, "to_player_id", LIMIT_TEXT, 1, LIMIT_PLAYER_ID_BYTES,
      "to_player_id", "1 to 100 " CLEAN },
    { "mail_text_bytes", METHOD_SEND_MAIL, "text", LIMIT_TEXT, 0, LIMIT_MAIL_TEXT_BYTES, "text",
      "at most 1024 " CLEAN },
    { "mail_expiry_ms", METHOD_SEND_MAIL, "expires_in_ms", LIMIT_NUMBER, 1000, LIMIT_MAIL_EXPIRY_MS,
      "expires_in_ms", "1000 to 31536000000, or 0" },
    { "reason_bytes", METHOD_TRANSFER_CURRENCIES, "reason", LIMIT_TEXT, 0, LIMIT_REASON_BYTES, "reason",
      "at most 64 " CLEAN },
    { "metadata_title_bytes", METHOD_PUT_TARGET_METADATA, "title", LIMIT_TEXT, 0,
      LIMIT_METADATA_TITLE_BYTES, "title", "at most 256 " CLEAN },
    { "metadata_attributes_bytes", METHOD_PUT_TARGET_METADATA, "attributes", LIMIT_OBJECT, 0,
      LIMIT_METADATA_MORE_BYTES, "attributes", "a JSON object of at most 1024 bytes" },
    { "reason_bytes", METHOD_GRANT, "reason", LIMIT_TEXT, 0, LIMIT_REASON_BYTES, "reason", "at most 64 " CLEAN },
    { "reason_bytes", METHOD_SPEND, "reason", LIMIT_TEXT, 0, LIMIT_REASON_BYTES, "reason", "at most 64 " CLEAN },
    { "reason_bytes", METHOD_RESERVE_CURRENCIES, "reason", LIMIT_TEXT, 0, LIMIT_REASON_BYTES, "reason",
      "at most 64 " CLEAN },
    { "reservation_ms", METHOD_RESERVE_CURRENCIES, "expires_in_ms", LIMIT_NUMBER, 1000,
      LIMIT_RESERVATION_MS, "expires_in_ms", "1000 to 2592000000" },
    { "mails_claimed", METHOD_CLAIM_MAIL, "mail_ids", LIMIT_COUNT, 1, LIMIT_MAILS_CLAIMED, "mail_ids", "1 to 16" },
    { "session_grace_ms", METHOD_START_SESSION, "grace_ms", LIMIT_NUMBER, 0, LIMIT_SESSION_GRACE_MS,
      "grace_ms", "0 to 60000" },
    { "sessions_renewed", METHOD_RENEW_TOKENS, "tokens", LIMIT_COUNT, 0, LIMIT_SESSIONS_RENEWED, "tokens",
      "at most 1000" },
    { "section_edits", METHOD_UPDATE_PROFILE, "edits", LIMIT_COUNT, 0, LIMIT_SECTION_EDITS, "edits",
      "at most 32 edits" },
    { "section_name_bytes", METHOD_UPDATE_PROFILE, "edits[0].name", LIMIT_TEXT, 1,
      LIMIT_SECTION_NAME_BYTES, "edits[*].name", "1 to 64 of [a-z0-9_]" },
    { "section_bytes", METHOD_UPDATE_PROFILE, "edits[0].replace", LIMIT_OBJECT, 0, LIMIT_SECTION_BYTES,
      "edits[*].replace", "at most 262144 bytes" },
    { "transaction_players", METHOD_EXECUTE_TRANSACTION, "others", LIMIT_COUNT, 0,
      LIMIT_TRANSACTION_PLAYERS - 1, "others", "at most 7, with the home player 8" },
    { "transaction_checks", METHOD_EXECUTE_TRANSACTION, "checks", LIMIT_COUNT, 0,
      LIMIT_TRANSACTION_CHECKS, "checks", "at most 32" },
    { "transaction_changes", METHOD_EXECUTE_TRANSACTION, "changes", LIMIT_COUNT, 1,
      LIMIT_TRANSACTION_CHANGES, "changes", "1 to 32" },
    { "currency_name_bytes", METHOD_LIST_ENTRIES, "currency", LIMIT_TEXT, 0, LIMIT_CURRENCY_NAME_BYTES,
      "currency", "at most 32 bytes" },
    { "op_id_bytes", METHOD_GRANT, "op_id", LIMIT_OP_ID, 7, sizeof "admin:" - 1 + 150, "op_id",
      "a kind of op_id with 1 to 150 bytes behind it" },
    { "op_id_ahead_ms", METHOD_GRANT, "op_id", LIMIT_AHEAD, 0, LIMIT_OP_ID_AHEAD_MS, "op_id",
      "a UUIDv7 at most 5 minutes ahead of now" },
    { "entity_bytes", METHOD_CREATE_CONSUMER, "entity", LIMIT_ENTITY, 8, LIMIT_ENTITY_BYTES, "entity",
      "player:<id> or definition:<kind>/<name>, of at most 128 bytes" },
    { "entity_bytes", METHOD_CREATE_CONSUMER, "entity_prefix", LIMIT_TEXT, 0, LIMIT_ENTITY_BYTES,
      "entity_prefix", "at most 128 bytes" },
    { "consumer_name_bytes", METHOD_CREATE_CONSUMER, "consumer", LIMIT_TEXT, 1, LIMIT_CONSUMER_NAME_BYTES,
      "consumer", CONSUMER_NAME_RULE },
    { "", METHOD_CREATE_CONSUMER, "kinds", LIMIT_COUNT, 0, CONSUMER_KINDS_MAX, "kinds", "at most 16" },
    { "patch_steps", METHOD_UPDATE_PROFILE, "edits[0].patch.steps", LIMIT_COUNT, 1, LIMIT_PATCH_STEPS,
      "edits[*].patch.steps", "1 to 64 steps" },
    { "patch_steps", METHOD_UPDATE_PROFILE, "edits[0].remove", LIMIT_COUNT, 0, LIMIT_PATCH_STEPS,
      "edits[*].remove", "at most 64 paths" },
    { "patch_path_bytes", METHOD_UPDATE_PROFILE, "edits[0].patch.steps[0].path", LIMIT_PATH, 0,
      LIMIT_PATCH_PATH_BYTES, "edits[*].path", "a JSON Pointer of at most 512 bytes and 64 parts" },
    { "document_depth", METHOD_UPDATE_PROFILE, "edits[0].replace", LIMIT_NESTED, 0, LIMIT_DOCUMENT_DEPTH,
      "edits[*].replace", "JSON nested at most 64 deep" },
    { "metadata_url_bytes", METHOD_PUT_TARGET_METADATA, "thumbnail_url", LIMIT_URL, 0,
      LIMIT_METADATA_URL_BYTES, "thumbnail_url",
      "empty, or https:// and at most 1024 bytes of visible ASCII without quotes, <, > and "
      "backslashes" },
    { "user_roles", METHOD_SET_USER_FLAGS, "add_roles", LIMIT_COUNT, 0, LIMIT_USER_ROLES, "add_roles",
      "at most 32" },
    { "user_roles", METHOD_SET_USER_FLAGS, "remove_roles", LIMIT_COUNT, 0, LIMIT_USER_ROLES, "remove_roles",
      "at most 32" },
    { "user_flags", METHOD_SET_USER_FLAGS, "set_flags", LIMIT_COUNT, 0, LIMIT_USER_FLAGS, "set_flags",
      "at most 32" },
    { "user_flags", METHOD_SET_USER_FLAGS, "clear_flags", LIMIT_COUNT, 0, LIMIT_USER_FLAGS, "clear_flags",
      "at most 32" },
    { "", METHOD_LIST_ENTRIES, "page_size", LIMIT_NUMBER, 0, 200, "page_size", "1 to 200, or 0" },
    { "", METHOD_LIST_ITEMS, "page_size", LIMIT_NUMBER, 0, 500, "page_size", "1 to 500, or 0" },
    { "", METHOD_LIST_FAVORITES, "page_size", LIMIT_NUMBER, 0, 200, "page_size", "1 to 200, or 0" },
    { "", METHOD_LIST_BY_TARGET, "page_size", LIMIT_NUMBER, 0, 1000, "page_size", "1 to 1000, or 0" },
    { "", METHOD_LIST_PLAYERS, "page_size", LIMIT_NUMBER, 0, 1000, "page_size", "1 to 1000, or 0" },
    { "", METHOD_LIST_QUARANTINED, "page_size", LIMIT_NUMBER, 0, 1024, "page_size", "1 to 1024, or 0" },
    { "", METHOD_LIST_CONSUMERS, "page_size", LIMIT_NUMBER, 0, 100, "page_size", "1 to 100, or 0" },
    { "", METHOD_LIST_FLAGGED_EDGES, "page_size", LIMIT_NUMBER, 0, 200, "page_size", "1 to 200, or 0" },
    { "", METHOD_CHECK_PLAYER, "page_size", LIMIT_NUMBER, 0, 64, "page_size", "1 to 64, or 0" },
    { "", METHOD_LIST_PLAYER_COUNTERS, "page_size", LIMIT_NUMBER, 0, 200, "page_size", "1 to 200, or 0" },
    { "reason_bytes", METHOD_CONTAIN_PLAYER, "reason", LIMIT_TEXT, 1, LIMIT_REASON_BYTES, "reason",
      "1 to 64 " CLEAN },
    { "", METHOD_LIST_MAIL, "page_size", LIMIT_NUMBER, 0, 100, "page_size", "1 to 100, or 0" },
    { "", METHOD_LIST_RESERVATIONS, "page_size", LIMIT_NUMBER, 0, 64, "page_size", "1 to 64, or 0" },
    { "items", METHOD_RELEASE_QUARANTINE, "made_items", LIMIT_COUNT, 0, LIMIT_ITEMS, "made_items",
      "at most 64" },
    { "currencies", METHOD_RELEASE_QUARANTINE, "made_amounts", LIMIT_COUNT, 0, LIMIT_CURRENCIES,
      "made_amounts", "at most 16" },
    { "", METHOD_EXPORT_PLAYER, "page_size", LIMIT_NUMBER, 0, 200, "page_size", "1 to 200, or 0" },
    { "", METHOD_GET_SHARD_TOP, "limit", LIMIT_NUMBER, 1, 1000, "limit", "1 to 1000" },
    { "", METHOD_LIST_SHARD_EVENTS, "limit", LIMIT_NUMBER, 1, 1000, "limit", "1 to 1000" },
    { "", METHOD_LIST_SHARD_EVENTS, "kinds", LIMIT_COUNT, 0, 16, "kinds", "at most 16" },
    { "", METHOD_LIST_SHARD_EVENTS, "entity_prefix", LIMIT_TEXT, 0, 128, "entity_prefix", "at most 128 bytes" },
    { "", METHOD_LIST_SHARD_EVENTS, "entity", LIMIT_TEXT, 0, 128, "entity", "at most 128 bytes" },
    { "", METHOD_DEFINE, "definitions", LIMIT_COUNT, 0, 64, "definitions", "at most 64" },
    { "", METHOD_AUDIT_SEARCH, "buckets", LIMIT_COUNT, 0, 64, "buckets", "at most 64" },
    { "", METHOD_AUDIT_SEARCH, "currencies", LIMIT_COUNT, 0, 16, "currencies", "at most 16" },
    { "", METHOD_ITEM_HISTORY, "limit", LIMIT_NUMBER, 1, 200, "limit", "1 to 200" },
    { "", METHOD_CHECK_COUNTS, "rows", LIMIT_NUMBER, 1, 512, "rows", "1 to 512" },
    { "", METHOD_REBUILD_COUNTS, "rows", LIMIT_NUMBER, 0, 512, "rows", "0 to 512" },
    { "", METHOD_REBUILD_COUNTS, "rebuild_id", LIMIT_TEXT, 1, 64, "rebuild_id",
      "1 to 64 " CLEAN },
    { "", METHOD_CHANNEL_DELIVER, "credits", LIMIT_COUNT, 0, 256, "credits", "at most 256" },
    { "", METHOD_CHANNEL_DELIVER, "cancels", LIMIT_COUNT, 0, 256, "credits", "at most 256" },
    { "", METHOD_APPLY_POLICY, "policy.currencies", LIMIT_COUNT, 0, 64, "policy.currencies", "at most 64" },
    { "", METHOD_APPLY_POLICY, "policy.items_max", LIMIT_NUMBER, 0, 1000000, "policy.items_max",
      "1 to 1000000" },
    { "", METHOD_APPLY_POLICY, "policy.mailbox_max", LIMIT_NUMBER, 0, 100000, "policy.mailbox_max",
      "1 to 100000" },
};
/* clang-format on */
const size_t limit_row_count = ARRAY_SIZE(limit_rows);

/* ---- a request ---- */

static void set(struct fixture *f, ProtobufCMessage *message, const char *path,
                enum limit_shape shape, uint64_t value)
{
    limit_set(&f->arena, message, path, shape, (int64_t)value);
}

void limit_set_text(ProtobufCMessage *message, const char *name, const char *text)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);

    if (field != NULL && field->type == PROTOBUF_C_TYPE_STRING)
        *(char **)((char *)message + field->offset) = text_lend(text);
}

/* Makes the first entry of a list and names it, if the request has such a list. */
static void set_first(struct fixture *f, ProtobufCMessage *request, const char *list,
                      const char *name, const char *text)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, list);

    if (field == NULL || field->type != PROTOBUF_C_TYPE_MESSAGE)
        return;
    set(f, request, list, LIMIT_COUNT, 1);
    ProtobufCMessage *first = **(ProtobufCMessage ***)((char *)request + field->offset);
    limit_set_text(first, name, text);
    const ProtobufCFieldDescriptor *amount =
        protobuf_c_message_descriptor_get_field_by_name(first->descriptor, "amount");
    if (amount != NULL)
        *(int64_t *)((char *)first + amount->offset) = 1;
}

/* What other servers send. */
static void fill_internal(struct fixture *f, uint32_t method, ProtobufCMessage *request)
{
    if (method == METHOD_DEFINE)
        set(f, request, "generation", LIMIT_NUMBER, 1);
    if (method == METHOD_CHANNEL_DELIVER)
        set(f, request, "source", LIMIT_NUMBER, f->shard + 1u);
    if (method == METHOD_APPLY_POLICY)
        set(f, request, "policy.version", LIMIT_NUMBER,
            applier_meta(f->applier)->policy.version + 1);
    if (method == METHOD_LIST_SHARD_EVENTS || method == METHOD_GET_SHARD_TOP)
        set(f, request, "limit", LIMIT_NUMBER, 1);
    if (method == METHOD_CHECK_COUNTS)
        set(f, request, "rows", LIMIT_NUMBER, 1);
    if (method == METHOD_ITEM_HISTORY)
        limit_set_text(request, "item_uid", "0123456789abcdef0123456789abcdef");
    if (method != METHOD_REBUILD_COUNTS && method != METHOD_CHECK_COUNTS)
        return;
    set(f, request, "part", LIMIT_NUMBER, HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS);
    limit_set_text(request, "rebuild_id", "rebuild");
    limit_set_text(request, "target_id", "");
}

void limit_fill(struct fixture *f, uint32_t method, const char *path, ProtobufCMessage *request)
{
    char target[FIXTURE_TARGET_SIZE], ann[16];

    fixture_target_name(f, 0, target);
    fixture_name_on(0, "ann", ann);
    limit_set_text(request, "player_id", arena_printf(&f->arena, "%s", ann));
    limit_set_text(request, "to_player_id", "bob");
    limit_set_text(request, "target_id", arena_printf(&f->arena, "%s", target));
    limit_set_text(request, "op_id", fixture_op_id(f));
    limit_set_text(request, "authority",
                   method == METHOD_GRANT ? "system:payments"
                   : method == METHOD_RELEASE_QUARANTINE || method == METHOD_SET_USER_FLAGS
                       ? "system:admin"
                       : "unheld");
    if (method == METHOD_RELEASE_QUARANTINE)
        limit_set_text(request, "reason", "looked at");
    limit_set_text(request, "incarnation", SERVER_A);
    if (method == METHOD_CREATE_CONSUMER)
        limit_set_text(request, "consumer", "x");
    if (method == METHOD_RESERVE_CURRENCIES)
        set(f, request, "expires_in_ms", LIMIT_NUMBER, 1000);
    fill_internal(f, method, request);
    if (strcmp(path, "currencies") != 0)
        set_first(f, request, "currencies", "currency", "gold");
    if (strstr(path, "[0].") != NULL) {
        set_first(f, request, "items", "kind", "sword");
        set_first(f, request, "edits", "name", "main");
        if (strstr(path, "remove") != NULL)
            set(f, request, "edits[0].merge", LIMIT_NESTED, 1);
        if (strstr(path, "steps[0]") != NULL)
            set(f, request, "edits[0].patch.steps[0].kind", LIMIT_NUMBER, PATCH_REMOVE);
    }
}

static bool is_field(const char *told, const char *field)
{
    const char *any = strstr(field, "[*]"), *end = strrchr(told, ']');

    if (any == NULL || end == NULL)
        return strcmp(told, field) == 0;
    return strncmp(told, field, (size_t)(any - field) + 1) == 0 && strcmp(end, any + 2) == 0;
}

bool limit_is_refused(struct fixture *f, const struct limit_row *row, uint64_t value)
{
    const struct method_info *method = method_find(row->method);
    ProtobufCMessage *request = arena_message(&f->arena, method->request);

    limit_fill(f, row->method, row->path, request);
    if (row->shape == LIMIT_AHEAD)
        limit_set_text(request, row->path, fixture_op_id_at(f, f->now_ms + value));
    else
        set(f, request, row->path, row->shape, value);
    (void)(method->writes ? fixture_mutate(f, row->method, request)
                          : fixture_read(f, row->method, request));
    return f->error != NULL && f->error->code == ERROR(INVALID_ARGUMENT) &&
           is_field(f->error->field, row->field) && strcmp(f->error->limit, row->limit) == 0;
}
