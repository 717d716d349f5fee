#include "node/core/document/call.h"

#include <inttypes.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/json_canon.h"
#include "node/core/codec/text_rule.h"
#include "node/core/document/shown.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/read.h"
#include "node/core/mergeable/seen.h"
#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/base/nearest.h"

#define CONTEXT_PREFIX    "d1."
#define RETRY_MS          200u
#define OPEN_RETRY_MS_MIN 1000u
#define FOLD_LATE_MS      5000u /* Members have to hear of the last of them. */
#define ERASED_RETRY_MS   1000u

/* ---- what a request names ---- */

const void *document_unpack(struct document_context *context,
                            const ProtobufCMessageDescriptor *type, struct slice request)
{
    const void *message = arena_unpack(context->arena, type, request);

    if (message == NULL)
        (void)refuse_invalid(context->arena, context->refusal, "", "a message of its type", "");
    return message;
}

static err check_entity(struct document_context *context, const char *entity)
{
    struct slice text = slice_from_text(entity);

    if (text.size >= 3 && text.size <= ENTITY_BYTES_MAX && text_is_clean(text) &&
        text.data[0] != ':' && text.data[text.size - 1] != ':' && entity_has_kind(text))
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "entity",
                          "kind:id, 3 to 128 bytes of UTF-8 without control characters",
                          text_shorten(context->arena, text));
}

err document_unavailable(struct document_context *context, const char *message)
{
    err e = refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "", "%s", message);

    context->refusal->retry_after_ms = RETRY_MS;
    return e;
}

static err no_such_collection(struct document_context *context, struct slice name)
{
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest;

    if (!context->rules->complete)
        return document_unavailable(context, "this member has not read all definitions yet");
    nearest_init(&nearest, name);
    for (uint32_t i = 0; i < context->rules->count; i++) {
        if (!context->rules->list[i].deleted)
            nearest_offer_text(&nearest, context->rules->list[i].name);
    }
    err e = refuse(context->arena, context->refusal, CODE(NOT_FOUND), "collection",
                   "no collection of documents is called \"%.*s\"%s", (int)name.size,
                   (const char *)name.data,
                   nearest.name.size > 0 ? nearest_hint(nearest.name, hint) : "");

    context->refusal->value =
        arena_printf(context->arena, "%.*s", (int)name.size, (const char *)name.data);
    return e;
}

err document_find_rule(struct document_context *context, const char *entity, const char *collection,
                       const struct document_rule **ret_rule)
{
    struct slice name = slice_from_text(collection);
    err e = check_entity(context, entity);

    if (e != ERR_OK)
        return e;
    if (!text_is_name(name, DOCUMENT_NAME_BYTES_MAX))
        return refuse_invalid(context->arena, context->refusal, "collection",
                              "1 to 64 of [a-z0-9_]", text_shorten(context->arena, name));
    *ret_rule = document_rules_find(context->rules, name);
    return *ret_rule != NULL ? ERR_OK : no_such_collection(context, name);
}

struct slice document_row_name(struct arena *arena, const struct document_rule *rule,
                               struct slice key)
{
    struct buf bytes = { 0 };

    buf_put_u32_be(&bytes, (uint32_t)(rule->number >> 32));
    buf_put_u32_be(&bytes, (uint32_t)rule->number);
    buf_append(&bytes, key.data, key.size);
    struct slice name = arena_copy(arena, buf_slice(&bytes));

    buf_deinit(&bytes);
    return name;
}

static err refuse_context(struct document_context *context, const char *limit)
{
    return refuse_invalid(context->arena, context->refusal, "context", limit, "");
}

err document_open_context(struct document_context *context, const char *text,
                          struct slice *ret_token)
{
    static const char limit[] = "the context of an earlier answer about this document";
    const size_t prefix = sizeof CONTEXT_PREFIX - 1;
    struct slice encoded = slice_from_text(text);
    size_t size = 0;

    *ret_token = (struct slice){ 0 };
    if (encoded.size == 0)
        return ERR_OK;
    if (encoded.size > DOCUMENT_CONTEXT_BYTES_MAX || strncmp(text, CONTEXT_PREFIX, prefix) != 0)
        return refuse_context(context, limit);
    encoded = (struct slice){ encoded.data + prefix, encoded.size - prefix };
    uint8_t *bytes = arena_alloc(context->arena, base64_size_max(encoded.size) + 1);

    if (!base64_decode_url(encoded, bytes, &size) || size == 0)
        return refuse_context(context, limit);
    *ret_token = (struct slice){ bytes, size };
    return ERR_OK;
}

err document_find(struct document_context *context, const struct document_name *name,
                  const char *token, struct document_place *ret_place)
{
    struct slice key = slice_from_text(name->key);
    err e = document_find_rule(context, name->entity, name->collection, &ret_place->rule);

    if (e != ERR_OK)
        return e;
    if (key.size == 0 || key.size > DOCUMENT_KEY_BYTES_MAX || !text_is_clean(key))
        return refuse_invalid(context->arena, context->refusal, "key",
                              "1 to 200 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, key));
    e = document_open_context(context, token, &ret_place->token);
    if (e != ERR_OK)
        return e;
    CHECK(merge_key_new(slice_from_text(name->entity),
                        document_row_name(context->arena, ret_place->rule, key),
                        &ret_place->key) == ERR_OK);
    return ERR_OK;
}

/* ---- writes ---- */

err document_expiry(struct document_context *context, const struct document_place *place,
                    const struct document_write *write, uint64_t *ret_expires_ms)
{
    uint64_t ttl_ms = write->has_ttl ? (uint64_t)write->ttl_ms : place->rule->ttl_ms;

    *ret_expires_ms = ttl_ms > 0 ? context->now_ms + ttl_ms : 0;
    if (!write->has_ttl ||
        (write->ttl_ms >= DOCUMENT_TTL_MS_MIN && write->ttl_ms <= DOCUMENT_TTL_MS_MAX))
        return ERR_OK;
    return refuse_number(context->arena, context->refusal, "ttl_ms", "1000 to 31536000000",
                         write->ttl_ms);
}

json_t *document_parse(struct document_context *context, const char *field, const char *text)
{
    const char *why = NULL;
    json_t *json = json_canon_parse(slice_from_text(text), &why);

    if (json == NULL && text[0] == 0 && strcmp(field, "json") == 0)
        why =
            "a JSON value: absent, empty and null are none, and DeleteDocument removes a document";
    if (json == NULL)
        (void)refuse_invalid(context->arena, context->refusal, field, why,
                             text_shorten(context->arena, slice_from_text(text)));
    return json;
}

void document_stored(struct document_context *context, const struct document_place *place,
                     struct merge_record *ret_record)
{
    merge_record_full(context->replica, place->key, ret_record);
}

static err choose_durability(struct document_context *context, const struct document_rule *rule,
                             Holdfast__V1__DocumentDurability asked,
                             enum merge_durability *ret_durability)
{
    static const enum merge_durability known[] = {
        [HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_MEMORY] = MERGE_MEMORY,
        [HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_ONE] = MERGE_ONE,
        [HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_MAJORITY] = MERGE_MAJORITY,
    };

    *ret_durability = rule->durability;
    if (asked == HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_UNSPECIFIED)
        return ERR_OK;
    if ((size_t)asked >= ARRAY_SIZE(known) || known[asked] < rule->durability)
        return refuse_number(context->arena, context->refusal, "durability",
                             "at least the collection's durability", (int64_t)asked);
    *ret_durability = known[asked];
    return ERR_OK;
}

/* An increment is one by its op_id alone. 0: no attempt is told from another. */
static uint64_t op_of(const struct document_rule *rule, const struct document_write *asked,
                      struct slice op_id)
{
    struct buf named = { 0 };

    if (rule->policy == MERGE_POLICY_COUNTER)
        return hash_u64(op_id) | 1;
    if (asked->content.size == 0)
        return 0;
    buf_put_bytes(&named, op_id);
    buf_append(&named, asked->content.data, asked->content.size);
    uint64_t op = hash_u64(buf_slice(&named)) | 1;

    buf_deinit(&named);
    return op;
}

/* Which operation it is, so that a retry counts once, wherever it is carried out. A counter is
 * deleted under any op_id, however old: that counts nothing. */
static err find_op(struct document_context *context, const struct document_rule *rule,
                   const struct document_write *asked, struct merge_write *write)
{
    bool counter = rule->policy == MERGE_POLICY_COUNTER, counts = counter && write->edit_count > 0;
    const char *why = NULL, *text = asked->op_id;
    struct op_id id;

    if (op_id_parse(slice_from_text(text), &id, &why) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "op_id", why,
                              text_shorten(context->arena, slice_from_text(text)));
    write->op = counter && !counts ? 0 : op_of(rule, asked, id.text);
    if (!id.typed)
        write->op_ms = uuid_v7_ms(&id.uuid);
    else if (counts)
        return refuse_invalid(context->arena, context->refusal, "op_id",
                              "a UUIDv7, which says when the increment was first asked for",
                              text_shorten(context->arena, slice_from_text(text)));
    return ERR_OK;
}

static bool stands(const struct document_context *context, const struct merge_key *key, uint64_t op)
{
    const struct merge_record *record = merge_store_find(&context->replica->store, key);

    return record != NULL && merge_edits_stand(record, op);
}

bool document_stands(struct document_context *context, const struct document_place *place,
                     const struct document_write *write)
{
    const char *why;
    struct op_id id;

    return op_id_parse(slice_from_text(write->op_id), &id, &why) == ERR_OK &&
           stands(context, place->key, op_of(place->rule, write, id.text));
}

/* In a shard that has all bytes: what a write leaves of the whole record, siblings included. */
static err check_growth(struct document_context *context, const struct document_place *place,
                        const struct document_change *change, const struct merge_record *record)
{
    const struct merge_write write = { .key = place->key,
                                       .edit_count = change->edits->count,
                                       .edits = change->edits->list,
                                       .whole = change->whole,
                                       .token = place->token };
    struct merge_left left = merge_write_left(context->replica, record, &write);
    uint64_t before = merge_record_bytes(record);

    if (left.added == 0 || left.bytes <= before)
        return ERR_OK;
    return document_refuse(
        context, ERR_FULL,
        &(struct merge_refusal){ .field = "shard_bytes",
                                 .limit = DOCUMENTS_BYTES_MAX,
                                 .value = DOCUMENTS_BYTES_MAX + left.bytes - before });
}

/* What two sides of a cut wrote may be above the limit, and so may what stood when a definition
 * lowered it: what takes away is let through, and what an update makes smaller. */
static err check_bytes(struct document_context *context, const struct document_place *place,
                       const struct document_change *change)
{
    uint32_t limit = place->rule->bytes_max;
    struct merge_record record;
    bool whole = change->whole || place->rule->policy == MERGE_POLICY_VECTOR;
    const struct merge_edits edits = { .count = change->edits->count,
                                       .list = change->edits->list,
                                       .whole = whole };

    document_stored(context, place, &record);
    struct merge_left left = merge_edits_left(&record, &edits); /* Of the caller's value alone. */
    uint64_t before = merge_record_bytes(&record);
    err e = context->bytes_full ? check_growth(context, place, change, &record) : ERR_OK;

    merge_record_deinit(&record);
    if (e != ERR_OK)
        return e;
    if (left.bytes <= limit || left.added == 0 || (change->updates && left.bytes < before))
        return ERR_OK;
    struct merge_refusal refusal = { .field = "json", .limit = limit, .value = left.bytes };

    if (whole)
        return document_refuse(context, ERR_TOO_LARGE, &refusal);
    refusal.field = "bytes";
    return document_refuse(context, ERR_FULL, &refusal);
}

bool document_adds_row(const struct document_context *context, const struct document_place *place,
                       const struct value_edits *edits)
{
    bool gives = false;

    for (uint32_t i = 0; i < edits->count; i++)
        gives |= !edits->list[i].remove;
    return gives && merge_store_find(&context->replica->store, place->key) == NULL;
}

err document_check_rows(struct document_context *context, uint32_t added)
{
    uint32_t count = context->replica->store.count;

    if (added == 0 || (!context->full && count + added <= DOCUMENT_ROWS_MAX))
        return ERR_OK;
    struct merge_refusal refusal = { .field = "documents", .limit = DOCUMENTS_MAX, .value = count };

    return document_refuse(context, ERR_FULL, &refusal);
}

static err check_room(struct document_context *context, const struct document_place *place,
                      const struct document_change *change)
{
    err e = document_check_rows(context, document_adds_row(context, place, change->edits));

    return e == ERR_OK ? check_bytes(context, place, change) : e;
}

/* Takes the token, empty: there is none. In the arena. */
static const char *print_context(struct document_context *context, struct buf *token)
{
    struct buf text = { 0 };
    const char *printed = "";

    if (token->size > 0) {
        buf_append(&text, CONTEXT_PREFIX, sizeof CONTEXT_PREFIX - 1);
        base64_encode_url(buf_slice(token), &text);
        printed = arena_text(context->arena, buf_slice(&text));
    }
    buf_deinit(token);
    buf_deinit(&text);
    return printed;
}

const char *document_context_of(struct document_context *context, const struct merge_key *key,
                                const struct merge_record *record, struct slice before)
{
    struct buf token = { 0 };

    (void)!merge_token_of(context->replica, key, record, before, &token);
    return print_context(context, &token);
}

static err refuse_erased(struct document_context *context)
{
    err e = refuse(context->arena, context->refusal, CODE(QUARANTINED), "entity",
                   "the entity is erased, and not purged yet");

    context->refusal->retry_after_ms = ERASED_RETRY_MS;
    return e;
}

static err make_write(struct document_context *context, const struct document_place *place,
                      const struct document_write *asked, const struct document_change *change,
                      struct merge_write *ret_write)
{
    *ret_write = (struct merge_write){
        .key = place->key,
        .policy = place->rule->policy,
        .edit_count = change->edits->count,
        .edits = change->edits->list,
        .whole = change->whole,
        .token = place->token,
    };
    err e = context->erased ? refuse_erased(context)
                            : choose_durability(context, place->rule, asked->durability,
                                                &ret_write->durability);

    if (e == ERR_OK)
        e = find_op(context, place->rule, asked, ret_write);
    if (e == ERR_OK && !stands(context, place->key, ret_write->op))
        e = check_room(context, place, change);
    return e;
}

err document_check(struct document_context *context, const struct document_place *place,
                   const struct document_write *asked, const struct document_change *change)
{
    struct merge_write write;

    return make_write(context, place, asked, change, &write);
}

/* As the collection's policy has paths, and each once. */
static err refuse_path(struct document_context *context, const struct document_change *change,
                       uint64_t place)
{
    CHECK(place < change->edits->count);
    return refuse_invalid(context->arena, context->refusal, change->updates ? "patch" : "json",
                          "paths that differ, each of names of at least a byte",
                          text_shorten(context->arena, change->edits->list[place].path));
}

/* Each step of a counter is one edit. */
static err refuse_delta(struct document_context *context, const struct document_change *change,
                        const struct merge_refusal *refusal)
{
    const struct merge_edit *edit = &change->edits->list[refusal->edit];
    struct slice path = edit->path;
    err e = refuse_invalid(context->arena, context->refusal,
                           arena_printf(context->arena, "patch[%u]", refusal->edit),
                           arena_printf(context->arena, "an increment of -%" PRIu64 " to %" PRIu64,
                                        refusal->limit, refusal->limit),
                           arena_printf(context->arena, "%" PRId64, edit->delta));

    context->refusal->message = arena_printf(
        context->arena,
        "patch[%u]: the increment of /%.*s is %" PRId64 ", beyond %" PRIu64 " either way",
        refusal->edit, (int)path.size, (const char *)path.data, edit->delta, refusal->limit);
    return e;
}

err document_commit(struct document_context *context, const struct document_place *place,
                    const struct document_write *asked, const struct document_change *change,
                    struct document_begun *ret_begun)
{
    struct merge_refusal refusal = { 0 };
    struct merge_written written;
    struct merge_record record;
    struct merge_write write;
    err e = make_write(context, place, asked, change, &write);

    if (e != ERR_OK)
        return e;
    e = merge_write(context->replica, context->now_ms, &write, &written, &refusal);
    if (e == ERR_INVALID && refusal.field != NULL && strcmp(refusal.field, "path") == 0)
        return refuse_path(context, change, refusal.value);
    if (e == ERR_TOO_LARGE && refusal.field != NULL && strcmp(refusal.field, "delta") == 0)
        return refuse_delta(context, change, &refusal);
    if (e != ERR_OK)
        return document_refuse(context, e, &refusal);
    struct buf token = { 0 };

    document_stored(context, place, &record);
    ret_begun->ticket = written.ticket;
    (void)!merge_token_written(context->replica, &write, &record, written.dot, &token);
    ret_begun->context = print_context(context, &token);
    merge_record_deinit(&record);
    return ERR_OK;
}

void document_written(const char *context, uint32_t replicas, struct buf *out)
{
    Holdfast__V1__DocumentWritten written = HOLDFAST__V1__DOCUMENT_WRITTEN__INIT;
    Holdfast__V1__PutDocumentResponse response = HOLDFAST__V1__PUT_DOCUMENT_RESPONSE__INIT;

    written.context = text_lend(context);
    written.replicas = replicas;
    response.written = &written;
    size_t size = protobuf_c_message_get_packed_size(&response.base);
    uint8_t *bytes = mem_alloc(size + 1);

    (void)protobuf_c_message_pack(&response.base, bytes);
    buf_append(out, bytes, size);
    free(bytes);
}

/* ---- reads ---- */

static struct slice answer_get(struct document_context *context, const struct document_place *place,
                               const Holdfast__V1__GetDocumentRequest *request,
                               const struct merge_record *record)
{
    Holdfast__V1__GetDocumentResponse response = HOLDFAST__V1__GET_DOCUMENT_RESPONSE__INIT;
    struct merge_token seen = { 0 };
    struct shown shown = { 0 };

    (void)!merge_token_take(context->replica, place->key, place->token, &seen);
    bool some = shown_part(record, context->now_ms, &seen, &shown);

    if (some)
        record = &shown.record;
    response.document = value_document(record, some, context->now_ms, context->arena);
    if (response.document != NULL) {
        response.document->collection = request->collection;
        response.document->key = request->key;
        response.document->siblings_unseen = shown.unseen;
    }
    response.context = text_lend(document_context_of(context, place->key, record, place->token));
    merge_record_deinit(&shown.record);
    return arena_pack(context->arena, &response.base);
}

struct slice document_hidden(struct document_context *context)
{
    const Holdfast__V1__GetDocumentResponse response = HOLDFAST__V1__GET_DOCUMENT_RESPONSE__INIT;

    return arena_pack(context->arena, &response.base);
}

err document_told(struct document_context *context, struct slice bytes,
                  const struct merge_record *record, struct slice *ret_answer)
{
    const Holdfast__V1__GetDocumentRequest *request =
        document_unpack(context, &holdfast__v1__get_document_request__descriptor, bytes);
    struct document_place place;

    if (request == NULL)
        return ERR_INVALID;
    err e = document_find(
        context, &(struct document_name){ request->entity, request->collection, request->key },
        request->context, &place);

    if (e != ERR_OK)
        return e;
    if (context->erased || record->erasure < merge_store_erasure(&context->replica->store,
                                                                 merge_key_entity(place.key)))
        *ret_answer = document_hidden(context);
    else
        *ret_answer = answer_get(context, &place, request, record);
    merge_key_unref(place.key);
    return ERR_OK;
}

/* ---- deleted collections ---- */

err document_sweep_deleted(struct document_context *context, const struct merge_key *after,
                           struct merge_key **ret_key)
{
    const struct merge_store *store = &context->replica->store;
    err e = ERR_NOT_FOUND;

    for (uint32_t i = merge_store_after(store, after);
         context->rules->deleted_count > 0 && i < store->count && e == ERR_NOT_FOUND; i++) {
        struct reader name = reader_from(merge_key_name(store->rows[i].key));
        struct merge_written written;

        if (store->rows[i].record.count == 0 ||
            !document_rules_deleted(context->rules, read_u64_be(&name)))
            continue;
        struct merge_key *key = merge_key_ref(store->rows[i].key);

        e = merge_drop(context->replica, context->now_ms, key, &written);
        if (e == ERR_OK)
            *ret_key = key;
        else
            merge_key_unref(key);
    }
    return e;
}

/* ---- what the core refused ---- */

static err refuse_unavailable(struct document_context *context, const struct merge_refusal *refusal)
{
    static const struct {
        const char *field;
        const char *message;
    } reasons[] = {
        { "majority", "a majority of the shard's members is out of this one's reach" },
        { "syncing", "this member takes in what it lacks first" },
        { "disk", "this member's disk takes nothing now" },
        { "clock", "this member's clock is off its peers' by more than a second" },
        { "op_ms", "the op_id is ahead of this member's clock by more than a second" },
        { "member", "this node is not a member of the shard" },
        { "token", "this member has not heard of what the context has seen" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (refusal->field != NULL && strcmp(refusal->field, reasons[i].field) == 0)
            return document_unavailable(context, reasons[i].message);
    }
    return document_unavailable(context, "this member cannot write now");
}

/* Calls are answered, processes that ended are closed, and increments are folded. */
static bool passes_by_waiting(const char *field)
{
    return strcmp(field, "pending") == 0 || strcmp(field, "pending_bytes") == 0 ||
           strcmp(field, "actors") == 0 || strcmp(field, "operations") == 0;
}

static const char *open_things(const char *field)
{
    return strcmp(field, "pending") == 0         ? "calls"
           : strcmp(field, "pending_bytes") == 0 ? "bytes of calls that wait for a majority"
                                                 : field;
}

/* Increments that are told apart, until they fold into one. */
static err refuse_open(struct document_context *context, const struct merge_refusal *refusal)
{
    uint64_t window_ms = context->replica->options.op_window_ms;
    uint64_t folds_ms = refusal->open_ms + window_ms + FOLD_LATE_MS;
    uint64_t now_ms = context->now_ms;
    err e =
        refuse(context->arena, context->refusal, CODE(THROTTLED), "patch",
               "%" PRIu64 " increments of the document are told apart from their retries, which "
               "lasts %" PRIu64 " ms; nothing was done: add up what you count, or send it again "
               "after retry_after_ms, under a new op_id if this one is older by then",
               refusal->limit, window_ms);

    context->refusal->limit = arena_printf(context->arena, "%" PRIu64, refusal->limit);
    context->refusal->value = arena_printf(context->arena, "%" PRIu64, refusal->value);
    context->refusal->retry_after_ms =
        folds_ms > now_ms + OPEN_RETRY_MS_MIN ? (uint32_t)(folds_ms - now_ms) : OPEN_RETRY_MS_MIN;
    return e;
}

static err refuse_full(struct document_context *context, const struct merge_refusal *refusal)
{
    Holdfast__V1__ErrorDetail__Capacity *capacity;
    const char *field = refusal->field != NULL ? refusal->field : "documents";

    if (strcmp(field, "increments") == 0)
        return refuse_open(context, refusal);
    if (passes_by_waiting(field)) {
        err e = refuse(context->arena, context->refusal, CODE(THROTTLED), "",
                       "%" PRIu64 " %s are open at this member already; nothing was done",
                       refusal->limit, open_things(field));
        context->refusal->retry_after_ms = RETRY_MS;
        return e;
    }
    err e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "",
                   "the %s would pass %" PRIu64 "; nothing was done", field, refusal->limit);

    capacity = arena_alloc(context->arena, sizeof *capacity);
    holdfast__v1__error_detail__capacity__init(capacity);
    capacity->what = text_lend(field);
    capacity->max = (int64_t)refusal->limit;
    context->refusal->capacity = capacity;
    context->refusal->limit = arena_printf(context->arena, "%" PRIu64, refusal->limit);
    context->refusal->value = arena_printf(context->arena, "%" PRIu64, refusal->value);
    return e;
}

err document_refuse(struct document_context *context, err why, const struct merge_refusal *refusal)
{
    struct arena *arena = context->arena;
    const char *field = refusal->field != NULL ? refusal->field : "";

    switch (why) {
    case ERR_UNAVAILABLE:
    case ERR_NEED:
        return refuse_unavailable(context, refusal);
    case ERR_FULL:
        return refuse_full(context, refusal);
    case ERR_TOO_LARGE:
        return refuse_invalid(arena, context->refusal, strcmp(field, "value") == 0 ? "json" : field,
                              arena_printf(arena, "at most %" PRIu64, refusal->limit),
                              arena_printf(arena, "%" PRIu64, refusal->value));
    case ERR_CONFLICT:
        return refuse(arena, context->refusal, CODE(OPERATION_EXPIRED), "op_id",
                      "the op_id is older than the %" PRIu64
                      " ms for which increments are told apart; nothing was done",
                      refusal->limit);
    case ERR_STALE_EPOCH:
        return refuse_context(context, "a context of after the last erasure of the entity, and of "
                                       "after the last restore of the cluster from a backup");
    default:
        break;
    }
    if (strcmp(field, "op_id") == 0)
        return refuse(
            arena, context->refusal, CODE(OPERATION_ID_MISMATCH), "op_id",
            "the op_id was used before for other increments of this document; nothing was "
            "done");
    if (strcmp(field, "token") == 0)
        return refuse_context(context, "the context of an earlier answer about this document");
    return refuse_invalid(arena, context->refusal, field, "what the collection's policy allows",
                          "");
}
