#include "node/core/favorite/metadata.h"

#include <inttypes.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/json_canon.h"
#include "node/core/codec/text_rule.h"
#include "node/core/favorite/favorite.h"
#include "node/core/handler/record_version.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/cluster/metadata_rule.h"
#include "runtime/cluster/placement.h"

typedef Holdfast__V1__PutTargetMetadataRequest put_request;

/* ---- before the log ---- */
static err refuse_early(struct check_context *context)
{
    (void)refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                 "shard %" PRIu32 " applies version %" PRIu32
                 "; metadata of targets begins with %u, once all its replicas are updated",
                 context->shard, context->meta->apply_version, METADATA_APPLY_VERSION);
    return ERR_INVALID;
}

err metadata_check(struct check_context *context, const char *collection, const char *target)
{
    struct slice id = slice_from_text(target);

    err e = favorite_target_check(context->arena, context->refusal, "target_id", target);
    if (e != ERR_OK)
        return e;
    if (context->meta->apply_version < METADATA_APPLY_VERSION)
        return refuse_early(context);
    if (context->shard_count > 0 && shard_of_target(id, context->shard_count) != context->shard)
        return refuse_invalid(context->arena, context->refusal, "target_id",
                              "a target of this shard", text_shorten(context->arena, id));
    return collection_check(context, collection);
}

static err check_attributes(struct check_context *context, char **attributes)
{
    static char empty[] = "{}";
    struct slice given = slice_from_text(*attributes);
    struct buf canonical = { 0 };
    const char *why = "a JSON object of at most 1024 bytes";

    if (given.size == 0) {
        *attributes = empty;
        return ERR_OK;
    }
    err e = given.size > 4u * LIMIT_METADATA_MORE_BYTES ? ERR_INVALID
                                                        : json_canon(given, &canonical, &why);
    if (e == ERR_OK && (canonical.data[0] != '{' || canonical.size > LIMIT_METADATA_MORE_BYTES)) {
        why = "a JSON object of at most 1024 bytes";
        e = ERR_INVALID;
    }
    if (e == ERR_OK)
        *attributes = arena_text(context->arena, buf_slice(&canonical));
    else
        e = refuse_invalid(context->arena, context->refusal, "attributes", why,
                           text_shorten(context->arena, given));
    buf_deinit(&canonical);
    return e;
}

static err check_op(struct check_context *context, char **op_id)
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

err metadata_check_put(struct check_context *context, put_request *request)
{
    struct slice title = slice_from_text(request->title);
    struct slice url = slice_from_text(request->thumbnail_url);

    if (!metadata_title_is_good(title))
        return refuse_invalid(context->arena, context->refusal, "title",
                              "at most 256 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, title));
    if (!metadata_url_is_good(url))
        return refuse_invalid(context->arena, context->refusal, "thumbnail_url",
                              "empty, or https:// and at most 1024 bytes of visible ASCII without "
                              "quotes, <, > and backslashes",
                              text_shorten(context->arena, url));
    err e = check_attributes(context, &request->attributes);
    return e == ERR_OK ? check_op(context, &request->op_id) : e;
}

/* ---- applied ---- */
err metadata_find(struct state *state, struct arena *arena, struct need *need,
                  struct metadata *metadata)
{
    struct row_key key;
    struct slice value;

    metadata->exists = false;
    metadata->row = (struct metadata_row){ 0 };
    row_key_metadata(&key, metadata->collection, metadata->target);
    enum state_found found = row_find(state, &key, need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    metadata->exists = found == STATE_PRESENT;
    return found == STATE_ABSENT ? ERR_OK
                                 : metadata_row_decode(arena_copy(arena, value), &metadata->row);
}

err metadata_find_applied(struct apply_context *context, const char *collection, const char *target,
                          struct metadata *ret_metadata)
{
    struct collection of = { 0 };

    *ret_metadata = (struct metadata){ .target = slice_from_text(target) };
    if (!target_is_sound(ret_metadata->target) || context->version < METADATA_APPLY_VERSION)
        return refuse_invalid(context->arena, context->refusal, "target_id", "a target's id", "");
    err e = collection_get(context, collection, &of);
    ret_metadata->collection = of.number;
    if (e == ERR_OK)
        e = metadata_find(context->state, context->arena, context->need, ret_metadata);
    return e == ERR_CORRUPT ? apply_damaged(context, (struct slice){ 0 }, METADATA_DAMAGE) : e;
}

err metadata_check_version(struct apply_context *context, const struct metadata *metadata,
                           const uint64_t *expected)
{
    struct version_pair versions = { .current = metadata->row.version };

    if (expected == NULL || *expected == versions.current)
        return ERR_OK;
    versions.expected = *expected;
    return refuse_version(context, "if_version", "the target's metadata", &versions);
}

err metadata_repeats(struct apply_context *context, const struct metadata *metadata,
                     const char *op_id, bool *ret_repeats)
{
    *ret_repeats = false;
    if (!metadata->exists || !slice_equal(metadata->row.op_id, slice_from_text(op_id)))
        return ERR_OK;
    if (hash128_equal(metadata->row.payload, context->op->payload)) {
        *ret_repeats = true;
        return ERR_OK;
    }
    return refuse(context->arena, context->refusal, CODE(OPERATION_ID_MISMATCH), "op_id",
                  "the metadata was written under this op_id, by another request");
}

err metadata_store(struct apply_context *context, const put_request *request,
                   struct metadata *metadata)
{
    struct metadata_row row = {
        .version = record_version_next(context, metadata->row.version),
        .changed_at_ms = context->owner_ms,
        .title = slice_from_text(request->title),
        .thumbnail_url = slice_from_text(request->thumbnail_url),
        .attributes = slice_from_text(request->attributes),
        .by = context->op->caller,
        .op_id = slice_from_text(request->op_id),
        .payload = context->op->payload,
    };
    struct row_key key;
    struct op_id id;
    const char *why;

    if (!metadata_title_is_good(row.title) || !metadata_url_is_good(row.thumbnail_url) ||
        row.attributes.size == 0 || row.attributes.size > LIMIT_METADATA_MORE_BYTES ||
        op_id_parse(row.op_id, &id, &why) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "", "a request within its limits",
                              "");
    buf_clear(context->scratch);
    metadata_row_encode(&row, context->scratch);
    row_key_metadata(&key, metadata->collection, metadata->target);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
    metadata->row = row;
    metadata->exists = true;
    return ERR_OK;
}

void metadata_remove(struct apply_context *context, const struct metadata *metadata)
{
    struct row_key key;

    row_key_metadata(&key, metadata->collection, metadata->target);
    state_delete(context->state, row_key_slice(&key));
}

/* ---- told ---- */
Holdfast__V1__TargetMetadata *metadata_tell(struct arena *arena, const struct metadata *metadata)
{
    const struct metadata_row *row = &metadata->row;
    Holdfast__V1__TargetMetadata *told =
        (void *)arena_message(arena, &holdfast__v1__target_metadata__descriptor);

    told->target_id = arena_text(arena, metadata->target);
    told->title = arena_text(arena, row->title);
    told->thumbnail_url = arena_text(arena, row->thumbnail_url);
    told->attributes = arena_text(arena, row->attributes);
    told->version = row->version;
    told->changed_at_ms = (int64_t)row->changed_at_ms;
    told->changed_by = arena_text(arena, row->by);
    return told;
}
