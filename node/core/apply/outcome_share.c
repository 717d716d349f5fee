#include "node/core/apply/outcome_share.h"

#include <inttypes.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define MINUTE_MS (60u * 1000u)
#define HOUR_MS   (60u * MINUTE_MS)

/*
 * Outcomes of a kind of ids are kept for so long, and counted in segments. Those of UUIDv7 ids are
 * kept for the policy's window, but a crowded shard forgets them after 15 minutes: what is older
 * is in no other player's way.
 */
struct kind {
    uint64_t number; /* In the row, as that of a rule. */
    uint32_t segment_ms, kept_ms;
};
static const struct kind of_keys = { 1, 4 * HOUR_MS, OP_ID_KEY_MS };
static const struct kind of_uuids = { 2, 15 * MINUTE_MS, 15 * MINUTE_MS };
#define SEGMENTS_MAX (7u + 2u) /* Of both kinds: those that are kept, and the one that begins. */
_Static_assert(SEGMENTS_MAX <= RATE_USES_MAX, "all segments have room in a row");

static const struct kind *kind_of(const struct op_id *id)
{
    return id->is_key ? &of_keys : &of_uuids;
}

bool outcome_share_concerns(const struct op *op)
{
    const struct method_info *method = method_find(op->method);

    return method != NULL && (method->traits & METHOD_SHARES_OUTCOMES) != 0 &&
           op->id.text.size > 0 && (op->id.is_key || !op->id.typed);
}

void outcome_share_footprint(const struct op *op, struct need *keys)
{
    struct row_key key;

    if (!outcome_share_concerns(op))
        return;
    row_key_rate(&key, op->entity, OUTCOME_SHARE_SUBJECT);
    need_add_key(keys, row_key_slice(&key));
}

uint64_t outcome_share_max(const struct policy *policy)
{
    uint64_t part = policy->operations_max / OUTCOME_SHARE_PART;

    return part > OUTCOME_SHARE_MIN ? part : OUTCOME_SHARE_MIN;
}

/* When none of its outcomes is kept any more. */
static uint64_t end_of(const struct kind *kind, const struct rate_use *use)
{
    return use->since_ms + kind->segment_ms + kind->kept_ms;
}

static uint64_t segment_of(const struct kind *kind, uint64_t now_ms)
{
    return now_ms - now_ms % kind->segment_ms;
}

/* A segment cannot begin after the entry, nor elsewhere, but where the row is damaged: then it is
 * forgotten. */
static bool is_kept(const struct kind *kind, const struct rate_use *use, uint64_t now_ms)
{
    return use->number == kind->number && use->since_ms <= now_ms &&
           use->since_ms % kind->segment_ms == 0 && end_of(kind, use) > now_ms;
}

/* Without what is forgotten. */
static void row_clean(struct rate_row *row, uint64_t now_ms)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < row->count; i++) {
        if (is_kept(&of_keys, &row->list[i], now_ms) || is_kept(&of_uuids, &row->list[i], now_ms))
            row->list[count++] = row->list[i];
    }
    row->count = count;
}

static err refuse_full(struct apply_context *context, const struct kind *kind, uint64_t used,
                       uint64_t wait_ms)
{
    struct arena *arena = context->arena;
    uint64_t max = outcome_share_max(&context->meta->policy);
    err e = refuse(arena, context->refusal, CODE(THROTTLED), "op_id",
                   "the shard keeps %" PRIu64 " outcomes of the player's calls under %s, at most "
                   "%" PRIu64 "; ids of other kinds may have room; nothing was done",
                   used, kind == &of_keys ? "`key:` ids" : "UUIDv7 ids", max);

    context->refusal->limit = arena_printf(arena, "%" PRIu64, max);
    context->refusal->value = arena_printf(arena, "%" PRIu64, used);
    context->refusal->retry_after_ms = (uint32_t)wait_ms;
    context->refusal->transient = true;
    return e;
}

static err look_for_room(struct apply_context *context, const struct rate_row *row)
{
    const struct kind *kind = kind_of(&context->op->id);
    uint64_t used = 0, end_ms = UINT64_MAX;

    for (uint32_t i = 0; i < row->count; i++) {
        const struct rate_use *use = &row->list[i];
        if (use->number != kind->number)
            continue;
        used += use->used;
        end_ms = end_of(kind, use) < end_ms ? end_of(kind, use) : end_ms;
    }
    if (used < outcome_share_max(&context->meta->policy))
        return ERR_OK;
    return refuse_full(context, kind, used, end_ms - context->owner_ms);
}

err outcome_share_admit(struct apply_context *context, bool is_new, struct outcome_share *ret_share)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_share = (struct outcome_share){ 0 };
    if (!is_new || context->version < SHARE_APPLY_VERSION || !outcome_share_concerns(context->op))
        return ERR_OK;
    row_key_rate(&key, context->op->entity, OUTCOME_SHARE_SUBJECT);
    enum state_found found = row_find(context->state, &key, context->need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT && rate_row_decode(value, &ret_share->row) != ERR_OK)
        return apply_damaged(context, context->op->entity, RATE_DAMAGE);
    row_clean(&ret_share->row, context->owner_ms);
    err e = look_for_room(context, &ret_share->row);
    ret_share->counts = e == ERR_OK;
    return e;
}

/* The segment of that time, which may begin; of a row that is damaged, the last one. */
static struct rate_use *segment_get(struct rate_row *row, const struct kind *kind, uint64_t now_ms)
{
    uint64_t since_ms = segment_of(kind, now_ms);

    for (uint32_t i = 0; i < row->count; i++) {
        if (row->list[i].number == kind->number && row->list[i].since_ms == since_ms)
            return &row->list[i];
    }
    if (row->count < RATE_USES_MAX)
        row->count++;
    struct rate_use *use = &row->list[row->count - 1];
    *use = (struct rate_use){ .number = kind->number, .since_ms = since_ms };
    return use;
}

void outcome_share_take(struct apply_context *context, struct outcome_share *share)
{
    struct row_key key;

    if (!share->counts)
        return;
    struct rate_use *use = segment_get(&share->row, kind_of(&context->op->id), context->owner_ms);
    use->used += use->used < UINT32_MAX;
    CHECK(use->used > 0 && share->row.count <= RATE_USES_MAX);
    row_key_rate(&key, context->op->entity, OUTCOME_SHARE_SUBJECT);
    buf_clear(context->scratch);
    rate_row_encode(&share->row, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}
