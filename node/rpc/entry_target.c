#include "node/rpc/entry_target.h"

#include <inttypes.h>
#include <string.h>

#include "node/core/codec/text_rule.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

err entry_target_check(struct check_context *context, const char *field, char **op_id)
{
    struct slice text = slice_from_text(*op_id);
    struct op_id id;
    const char *why;

    if (op_id_parse(text, &id, &why) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, field, why,
                              text_shorten(context->arena, text));
    if (!id.typed) {
        /* Canonical, since ledger entries tell it so and the payload is compared. */
        *op_id = arena_alloc(context->arena, UUID_TEXT_SIZE);
        uuid_print(&id.uuid, *op_id);
    }
    return ERR_OK;
}

static struct op_id target_id(const struct entry_target *target)
{
    struct op_id id;
    const char *why;

    CHECK(op_id_parse(slice_from_text(target->op_id), &id, &why) == ERR_OK);
    return id;
}

void entry_target_footprint(const struct op *op, const struct entry_target *target,
                            struct need *keys)
{
    struct op_id id = target_id(target);
    struct row_key key;

    if (target->seq == 0) {
        row_key_operation(&key, op->entity, &id);
        need_add_key(keys, row_key_slice(&key));
        return;
    }
    row_key_ledger(&key, op->entity, target->seq);
    need_add_key(keys, row_key_slice(&key));
    row_key_reversal(&key, op->entity, target->seq);
    need_add_key(keys, row_key_slice(&key));
}

static err refuse_not_found(struct apply_context *context, const char *field, const char *why,
                            const char *value)
{
    err e = refuse(context->arena, context->refusal, CODE(NOT_FOUND), field, "%s", why);

    context->refusal->value = value;
    return e;
}

/* The newest of the player's last entries that has the op_id; 0: none. ERR_NEED. */
static err search_seq(struct apply_context *context, const char *op_id, uint64_t *ret_seq)
{
    const struct player *player = context->player;
    const uint64_t newest = player->ledger_seq;
    err result = ERR_OK;

    *ret_seq = 0;
    for (uint64_t seq = newest; seq > 0 && newest - seq < ENTRY_SEARCH_MAX; seq--) {
        struct slice row, id;
        err e = ledger_row_find(context->state, player->entity, seq, context->need, &row);
        if (e == ERR_NEED)
            result = e; /* Go on, so that every missing row is noted. */
        if (e == ERR_OK && *ret_seq == 0 && ledger_row_peek_op_id(row, &id) == ERR_OK &&
            slice_equal(id, slice_from_text(op_id)))
            *ret_seq = seq;
    }
    return result;
}

static err refuse_unknown(struct apply_context *context, const struct entry_target *target,
                          bool searched)
{
    if (searched && context->player->ledger_seq > ENTRY_SEARCH_MAX) {
        err e = refuse(context->arena, context->refusal, CODE(INVALID_ARGUMENT), target->seq_field,
                       "none of the newest %u entries is of %s %s; an older one is named by its "
                       "seq, which ListEntries tells",
                       ENTRY_SEARCH_MAX, target->op_id_field, target->op_id);
        context->refusal->limit = "the seq of an entry of that op_id";
        context->refusal->value = "0";
        return e;
    }
    return refuse_not_found(context, target->op_id_field,
                            "no ledger entry of this player is known by that op_id; one "
                            "older than the outcomes that are kept needs its seq",
                            target->op_id);
}

/* An operation that is known as not carried out wrote none: one that the entries tell is of an
 * earlier life of the op_id. */
static bool may_search(const struct apply_context *context, const struct entry_target *target,
                       enum state_found found, const struct outcome_row *row)
{
    return target->searched && context->version >= ENTRY_SEARCH_APPLY_VERSION &&
           (found != STATE_PRESENT || row->state == OUTCOME_ROW_COMMITTED);
}

/* As given, or as the operation's stored outcome says, or as the newest entries say. */
static err find_seq(struct apply_context *context, const struct entry_target *target,
                    uint64_t *ret_seq)
{
    struct op_id id = target_id(target);
    struct outcome_row row;
    uint64_t seq = target->seq;

    if (seq == 0) {
        enum state_found found =
            outcome_row_find(context->state, context->player->entity, &id, context->need, &row);
        if (found == STATE_MISSING)
            return ERR_NEED;
        if (found == STATE_PRESENT && row.state == OUTCOME_ROW_UNREADABLE)
            return apply_damaged(context, context->player->entity, OUTCOME_DAMAGE);
        if (found == STATE_PRESENT)
            seq = outcome_row_ledger_seq(&row, context->arena);
        bool searches = seq == 0 && may_search(context, target, found, &row);
        if (searches && search_seq(context, target->op_id, &seq) != ERR_OK)
            return ERR_NEED;
        if (seq == 0)
            return refuse_unknown(context, target, searches);
    }
    if (seq > context->player->ledger_seq)
        return refuse_not_found(context, target->seq_field,
                                "the player's ledger ends before that entry",
                                arena_printf(context->arena, "%" PRIu64, seq));
    *ret_seq = seq;
    return ERR_OK;
}

err entry_read(struct apply_context *context, uint64_t seq, Holdfast__V1__LedgerEntry **ret_entry)
{
    struct slice entity = context->player->entity;
    struct slice row;

    err e = ledger_row_find(context->state, entity, seq, context->need, &row);
    if (e == ERR_OK)
        e = ledger_row_decode(row, context->arena, ret_entry);
    return e == ERR_CORRUPT ? apply_damaged(context, entity, LEDGER_DAMAGE) : e;
}

err entry_undone_read(struct apply_context *context, uint64_t seq, uint64_t *ret_undone_by)
{
    struct row_key key;
    struct slice row;

    row_key_reversal(&key, context->player->entity, seq);
    enum state_found found = state_find(context->state, row_key_slice(&key), &row);
    *ret_undone_by = 0;
    if (found == STATE_MISSING) {
        need_add_key(context->need, row_key_slice(&key));
        return ERR_NEED;
    }
    if (found == STATE_ABSENT)
        return ERR_OK;
    if (reversal_row_decode(row, ret_undone_by) != ERR_OK)
        return apply_damaged(context, context->player->entity, REVERSAL_DAMAGE);
    return ERR_OK;
}

err entry_target_read(struct apply_context *context, const struct entry_target *target,
                      Holdfast__V1__LedgerEntry **ret_entry, uint64_t *ret_undone_by)
{
    Holdfast__V1__LedgerEntry *entry = NULL;
    uint64_t seq = 0;

    err e = find_seq(context, target, &seq);
    if (e != ERR_OK)
        return e;
    e = entry_read(context, seq, &entry);
    err undone = entry_undone_read(context, seq, ret_undone_by);
    if (e == ERR_NEED || undone == ERR_NEED)
        return ERR_NEED;
    if (e != ERR_OK || undone != ERR_OK)
        return e != ERR_OK ? e : undone;
    if (strcmp(entry->op_id, target->op_id) != 0)
        return refuse_not_found(context, target->seq_field, "that entry is of another operation",
                                entry->op_id);
    *ret_entry = entry;
    return ERR_OK;
}

void entry_target_mark(struct apply_context *context, uint64_t seq)
{
    struct row_key key;

    row_key_reversal(&key, context->player->entity, seq);
    buf_clear(context->scratch);
    reversal_row_encode(context->player->ledger_seq, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}
