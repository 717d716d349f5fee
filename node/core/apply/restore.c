#include "node/core/apply/restore.h"

#include <inttypes.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/handler/operation_floor.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

bool restore_row_next(struct reader *reader, struct slice *ret_key, struct slice *ret_value)
{
    if (reader->bad || reader_left(reader) == 0)
        return false;
    *ret_key = read_bytes(reader, STATE_KEY_BYTES_MAX);
    *ret_value = read_bytes(reader, STATE_VALUE_BYTES_MAX);
    reader->bad |= ret_key->size < 2;
    return !reader->bad;
}

bool restore_holds_back(uint32_t method, uint32_t version)
{
    const struct method_info *info = method_find(method);

    if (method == METHOD_REPAIR_ROW && version >= REPAIR_AFTER_RESTORE_APPLY_VERSION)
        return true;
    return info->writes && (info->traits & METHOD_PASSES_RESTORE) == 0;
}

/* ---- before the log ---- */

err restore_check_id(struct check_context *context, const ProtobufCBinaryData *id)
{
    if (id->len == sizeof(struct hash128))
        return ERR_OK;
    return refuse_number(context->arena, context->refusal, "restore_id", "16 bytes",
                         (int64_t)id->len);
}

err restore_check_meta(struct check_context *context, const ProtobufCBinaryData *row)
{
    struct meta meta;

    meta_init(&meta);
    err e = meta_decode((struct slice){ row->data, row->len }, &meta);
    uint32_t apply_version = meta.apply_version;
    meta_deinit(&meta);
    if (e != ERR_OK)
        return refuse(context->arena, context->refusal, CODE(SCHEMA_TOO_NEW), "meta",
                      "the shard's own row cannot be read: a newer version made it, or it is "
                      "damaged");
    if (apply_version > context->meta->apply_version)
        return refuse(context->arena, context->refusal, CODE(SCHEMA_TOO_NEW), "meta",
                      "the backup is of apply version %" PRIu32 ", the cluster is at %" PRIu32,
                      apply_version, context->meta->apply_version);
    return ERR_OK;
}

static bool row_is_sound(struct slice key)
{
    switch ((enum table_carried)table_of(key)->carried) {
    case TABLE_CARRIED_ROWS:
    case TABLE_CARRIED_READ: /* One that cannot be read is passed over, as in the old shard. */
        break;
    case TABLE_CARRIED_DATED:
        return key.size > sizeof(struct uuid);
    case TABLE_CARRIED_APART:
    case TABLE_CARRIED_NOWHERE:
        return false;
    }
    return true;
}

err restore_check_rows(struct check_context *context, const ProtobufCBinaryData *rows)
{
    struct reader reader = reader_from((struct slice){ rows->data, rows->len });
    struct slice key, value;

    if (rows->len > RESTORE_PART_BYTES_MAX)
        return refuse_number(context->arena, context->refusal, "rows", "at most 1000000 bytes",
                             (int64_t)rows->len);
    while (restore_row_next(&reader, &key, &value))
        reader.bad |= !row_is_sound(key);
    if (reader.bad)
        return refuse_invalid(context->arena, context->refusal, "rows",
                              "rows as ReadBackup gives them", "");
    return ERR_OK;
}

/* ---- at apply ---- */

static err refuse_shard(struct apply_context *context, const char *why)
{
    return refuse(context->arena, context->refusal, CODE(VERSION_CONFLICT), "shard", "shard %u %s",
                  context->shard, why);
}

/* What was given out before must stay below what will be. */
static err check_above(struct apply_context *context, const struct meta *backup)
{
    const struct meta *meta = context->meta;

    if (meta->generation <= backup->generation || context->dot.epoch <= backup->applied_dot.epoch)
        return refuse_shard(context, "has not risen above the backup's generation and epoch yet: "
                                     "PrepareRestore comes first");
    if (context->owner_ms < backup->owner_ms)
        return refuse_shard(context, "has a clock behind the backup's newest entry");
    return ERR_OK;
}

/* `ret_backup` is initialised, and the caller's to deinit, in any case. */
static err read_meta(struct apply_context *context, struct slice row, struct meta *ret_backup)
{
    meta_init(ret_backup);
    if (meta_decode(row, ret_backup) != ERR_OK)
        return refuse_shard(context, "cannot read the backup's own row");
    return ERR_OK;
}

static bool is_of(const struct meta *meta, const struct restore_call *call)
{
    return hash128_equal(meta->use.restore_id, call->id);
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* At the beginning, which notes by it under which rules that was, and at the end. */
static void raise_versions(struct apply_context *context, const struct meta *backup)
{
    struct meta *meta = context->meta;

    if (context->version >= RESTORE_PULLS_APPLY_VERSION)
        meta->versions_above =
            greater(meta->versions_above, backup->versions_above + backup->applied_index);
}

/* A restore goes on by the rules under which it began, though START raises the version meanwhile:
 * part of the rows by either would be neither. */
static bool began_by_later_rules(const struct meta *meta)
{
    return meta->versions_above > 0;
}

err restore_begin(struct apply_context *context, const struct restore_call *call)
{
    struct shard_use *use = &context->meta->use;
    struct meta backup;

    if (use->kind == USE_SERVING)
        return is_of(context->meta, call)
                   ? ERR_OK
                   : refuse_shard(context, "is not empty: only a new cluster can be restored");
    if (use->kind == USE_RESTORING)
        return is_of(context->meta, call)
                   ? ERR_OK
                   : refuse_shard(context, "is being restored from another "
                                           "backup: begin with a new cluster");
    err e = read_meta(context, call->meta_row, &backup);
    if (e == ERR_OK)
        e = check_above(context, &backup);
    if (e == ERR_OK) {
        *use = (struct shard_use){ .kind = USE_RESTORING, .restore_id = call->id };
        raise_versions(context, &backup);
    }
    meta_deinit(&backup);
    return e;
}

static err check_restoring(struct apply_context *context, const struct restore_call *call)
{
    if (context->meta->use.kind != USE_RESTORING || !is_of(context->meta, call))
        return refuse_shard(context, "is not being restored from this backup");
    return ERR_OK;
}

/* Whether rows of the table are the new shard's as the backup has them. All are counted. */
static bool is_taken_over(const struct apply_context *context, enum table table)
{
    /* This cluster's stand holds, not the backup's. */
    if (table == TABLE_DEFINITION || table == TABLE_COLLECTION || table == TABLE_RATE_RULES)
        return false;
    /* Events begin again: readers have seen some that the backup has not (events.md). */
    if (table == TABLE_EVENT)
        return false;
    /* Totals are pulled again: a pull carries no cut, so what a home had logged by its cut may be
     * of after the cut of the source, or of before what the source has forgotten. */
    bool of_totals = table == TABLE_PULLED || table == TABLE_SHARE || table == TABLE_TALLY ||
                     table == TABLE_RANK;
    return !of_totals || !began_by_later_rules(context->meta);
}

err restore_put(struct apply_context *context, const struct restore_call *call, uint64_t part,
                struct slice rows)
{
    struct reader reader = reader_from(rows);
    struct meta *meta = context->meta;
    struct slice key, value;

    err e = check_restoring(context, call);
    if (e != ERR_OK || part < meta->use.parts)
        return e;
    if (part > meta->use.parts)
        return refuse_shard(context, "lacks the parts before this one");
    while (restore_row_next(&reader, &key, &value)) {
        if (is_taken_over(context, (enum table)key.data[0]))
            state_put(context->state, key, value);
        row_digest_add(&meta->use.rows, key, value);
        /* A replica that restarts asks the database for ids up to here. */
        if (table_of(key)->carried == TABLE_CARRIED_DATED &&
            row_operation_ms(key) > meta->operation_ms_max)
            meta->operation_ms_max = row_operation_ms(key);
    }
    CHECK(!reader.bad);
    meta->use.parts++;
    return ERR_OK;
}

/* Debts that a policy allowed once stand. */
static void keep_lowest(const struct apply_context *context, const struct policy *backup)
{
    struct policy *policy = &context->meta->policy;

    if (context->version >= DROPPED_MIN_APPLY_VERSION) {
        policy_keep_lowest(backup, policy);
        return;
    }
    for (uint32_t i = 0; i < policy->currency_count; i++) {
        struct currency *currency = &policy->currencies[i];
        const struct currency *stood =
            policy_find_currency(backup, slice_from_text(currency->name));
        if (stood != NULL && stood->lowest_min < currency->lowest_min)
            currency->lowest_min = stood->lowest_min;
    }
}

/* Servers of earlier generations are expired, and so are the sessions that they held. */
static void expire_elders(struct meta *meta)
{
    struct incarnation lowest = { meta->generation, 0 };
    uint32_t kept = 0;

    if (incarnation_compare(meta->lowest_live, lowest) >= 0)
        return;
    meta->lowest_live = lowest;
    for (uint32_t i = 0; i < meta->expired_count; i++) {
        struct expired_range range = meta->expired[i];
        if (incarnation_compare(range.last, lowest) < 0)
            continue;
        if (incarnation_compare(range.first, lowest) < 0)
            range.first = lowest;
        meta->expired[kept++] = range;
    }
    meta->expired_count = kept;
}

/* Positions, members, epochs and policy stay this cluster's own. Cuts that were being counted are
 * given up: those who counted them are not here. */
static void take_over(struct apply_context *context, struct meta *backup)
{
    struct meta *meta = context->meta;

    meta->cut_id = greater(meta->cut_id, backup->cut_id);
    operation_floor_take_over(context, backup);
    meta->operation_ms_max = greater(meta->operation_ms_max, backup->operation_ms_max);
    raise_versions(context, backup);
    meta->operation_count = backup->operation_count;
    meta->key_count = backup->key_count;
    meta->session_count = backup->session_count;
    meta->outbox_open = backup->outbox_open;
    meta->review_count = backup->review_count;
    meta->review_since_ms = backup->review_since_ms;
    meta->unread_rows = backup->unread_rows;
    meta->inboxes_told &= backup->inboxes_told;
    totals_copy(&meta->totals, &backup->totals);
    for (uint32_t i = 0; i < CUTS_KEPT; i++) {
        totals_deinit(&meta->cuts[i].totals);
        meta->cuts[i] = (struct cut){ 0 };
    }
    struct quarantined *none = meta->quarantine;
    meta->quarantine = backup->quarantine;
    meta->quarantine_count = backup->quarantine_count;
    backup->quarantine = none;
    backup->quarantine_count = 0;
    keep_lowest(context, &backup->policy);
    expire_elders(meta);
    meta->use.kind = USE_SERVING;
}

err restore_finish(struct apply_context *context, const struct restore_call *call,
                   uint64_t row_count, struct hash128 digest)
{
    struct meta *meta = context->meta;
    struct meta backup;

    if (meta->use.kind == USE_SERVING && is_of(meta, call))
        return ERR_OK;
    err e = check_restoring(context, call);
    if (e != ERR_OK)
        return e;
    if (meta->use.rows.count != row_count ||
        !hash128_equal(row_digest_sum(&meta->use.rows), digest))
        return refuse_shard(context, "has other rows than the backup says");
    e = read_meta(context, call->meta_row, &backup);
    if (e == ERR_OK) {
        take_over(context, &backup);
        (*context->freed)++;
    }
    meta_deinit(&backup);
    return e;
}
