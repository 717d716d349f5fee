#include "node/core/repair/player_rebuild.h"

#include <inttypes.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/repair/row_check.h"
#include "node/core/rows/rows.h"
#include "node/core/session/session_apply.h"
#include "node/core/transaction/txn_row.h"
#include "runtime/base/check.h"

#define KIND(name)             HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name
#define FENCE_GENERATION_SHIFT 40u
#define LOOK_AHEAD             256u
#define PAGE_ROWS              1000u
#define SEQ_BYTES              8u
#define UNKNOWN_BALANCE        "the balances that the ledger does not tell"

struct rebuild {
    struct apply_context *context;
    const struct rebuild_hints *hints;
    struct player old, player;
    bool old_readable;
    bool told_all; /* The whole ledger was read: a currency it does not name was never held. */
    bool told[CURRENCIES_MAX]; /* By place in the policy. */
    uint32_t told_count;
};

static err refuse_unreadable(struct rebuild *r, const char *what, uint64_t number)
{
    struct apply_context *context = r->context;
    err e =
        refuse(context->arena, context->refusal, CODE(QUARANTINED), "rows",
               "%s %" PRIu64 " cannot be read: name its row, too; nothing was done", what, number);

    context->refusal->value = arena_printf(context->arena, "%" PRIu64, number);
    return e;
}

/* ---- the ledger ---- */

/* ERR_NEED, with those before it that will be asked for next. */
static err need_entries(struct rebuild *r, uint64_t seq)
{
    struct slice row;

    for (uint64_t i = 0; i < LOOK_AHEAD && seq > i; i++)
        (void)!ledger_row_find(r->context->state, r->player.entity, seq - i, r->context->need,
                               &row);
    return ERR_NEED;
}

static bool is_told(const struct rebuild *r, struct slice currency)
{
    return player_find_balance(&r->player, currency) != NULL;
}

static err refuse_currencies(struct rebuild *r)
{
    return refuse(r->context->arena, r->context->refusal, CODE(QUARANTINED), "rebuild",
                  "the ledger names more currencies than a player can hold");
}

static err take_change(struct rebuild *r, const Holdfast__V1__LedgerChange *change)
{
    const struct policy *policy = &r->context->meta->policy;
    struct slice name = slice_from_text(change->currency);

    if (is_told(r, name))
        return ERR_OK;
    if (r->player.balance_count == CURRENCIES_MAX || name.size == 0 ||
        name.size > CURRENCY_NAME_BYTES_MAX)
        return refuse_currencies(r);
    player_get_balance(&r->player, r->context->arena, name)->amount = change->balance_after;
    const struct currency *currency = policy_find_currency(policy, name);
    if (currency != NULL) {
        r->told[currency - policy->currencies] = true;
        r->told_count++;
    }
    return ERR_OK;
}

/* The newest entry of each currency tells its balance. */
static err walk(struct rebuild *r)
{
    struct apply_context *context = r->context;
    uint64_t seq = r->player.ledger_seq;
    uint64_t last = seq > REBUILD_ENTRIES_MAX ? seq - REBUILD_ENTRIES_MAX : 0;

    while (seq > last && r->told_count < context->meta->policy.currency_count) {
        Holdfast__V1__LedgerEntry *entry = NULL;
        struct slice row;
        err e = ledger_row_find(context->state, r->player.entity, seq, context->need, &row);
        if (e == ERR_NEED)
            return need_entries(r, seq);
        if (e == ERR_OK)
            e = ledger_row_decode(row, context->arena, &entry);
        if (e != ERR_OK)
            return refuse_unreadable(r, "entry", seq);
        if ((int)entry->kind == KIND(LOST))
            return ERR_OK; /* It may have changed any balance. */
        /* Mail from the system changes no balance. */
        for (size_t i = entry->n_changes; i > 0 && entry->kind != KIND(MAIL); i--) {
            e = take_change(r, entry->changes[i - 1]);
            if (e != ERR_OK)
                return e;
        }
        seq--;
    }
    r->told_all = seq == 0;
    return ERR_OK;
}

static const Holdfast__V1__CurrencyAmount *hint_of(const struct rebuild *r, struct slice currency)
{
    for (size_t i = 0; i < r->hints->balance_count; i++) {
        if (slice_equal(slice_from_text(r->hints->balances[i]->currency), currency))
            return r->hints->balances[i];
    }
    return NULL;
}

/* What a person says counts only where the ledger is silent. */
static err take_hints(struct rebuild *r)
{
    struct apply_context *context = r->context;
    const struct policy *policy = &context->meta->policy;
    struct arena *arena = context->arena;

    for (uint32_t i = 0; i < policy->currency_count; i++) {
        struct slice name = slice_from_text(policy->currencies[i].name);
        const Holdfast__V1__CurrencyAmount *hint = hint_of(r, name);
        bool silent = !r->told[i] && !r->told_all;
        if (hint != NULL && !silent)
            return refuse_invalid(arena, context->refusal, "balances", UNKNOWN_BALANCE,
                                  arena_text(arena, name));
        const struct balance *old =
            r->old_readable && silent ? player_find_balance(&r->old, name) : NULL;
        if (hint == NULL && silent && r->old_readable) {
            if (old != NULL && r->player.balance_count == CURRENCIES_MAX)
                return refuse_currencies(r);
            if (old != NULL) /* Nothing speaks against it. */
                player_get_balance(&r->player, arena, arena_copy(arena, name))->amount =
                    old->amount;
            continue;
        }
        if (hint == NULL && silent)
            return refuse_invalid(arena, context->refusal, "balances",
                                  "each currency that the readable end of the ledger does not tell",
                                  arena_printf(arena, "none of %s", policy->currencies[i].name));
        if (hint != NULL && r->player.balance_count == CURRENCIES_MAX && !is_told(r, name))
            return refuse_currencies(r);
        if (hint != NULL)
            player_get_balance(&r->player, arena, arena_copy(arena, name))->amount = hint->amount;
    }
    return ERR_OK;
}

static err take_ledger(struct rebuild *r)
{
    struct apply_context *context = r->context;
    struct player *player = &r->player;
    Holdfast__V1__LedgerEntry *first = NULL;
    struct slice row;

    err e = ledger_head_find(context->state, player->entity, context->need, &player->ledger_seq);
    if (e == ERR_OK && player->ledger_seq > 0)
        e = ledger_hash_find(context->state, player->entity, player->ledger_seq, context->need,
                             player->ledger_hash);
    if (e == ERR_CORRUPT)
        return refuse_unreadable(r, "entry", player->ledger_seq);
    if (e == ERR_OK)
        e = walk(r);
    if (e == ERR_OK)
        e = take_hints(r);
    if (e != ERR_OK || player->ledger_seq == 0)
        return e;
    e = ledger_row_find(context->state, player->entity, 1, context->need, &row);
    if (e == ERR_OK && ledger_row_decode(row, context->arena, &first) == ERR_OK)
        player->created_at_ms = (uint64_t)first->at_ms;
    return e == ERR_NEED ? e : ERR_OK;
}

/* ---- rows of a range ---- */

struct found {
    struct rebuild *rebuild;
    uint64_t seqs[RESERVATIONS_MAX + 1];
    uint32_t count;
    struct slice last;
    bool unreadable;
};

static bool take_reservation(void *user, struct slice key, struct slice value)
{
    struct found *found = user;
    struct reader reader =
        reader_from((struct slice){ key.data + key.size - SEQ_BYTES, SEQ_BYTES });
    uint64_t expires_at_ms;

    found->seqs[found->count++] = read_u64_be(&reader);
    found->unreadable |= reservation_row_decode(value, &expires_at_ms) != ERR_OK;
    return !found->unreadable;
}

/* What an open reservation holds stands in its entry. */
static err take_reserved(struct rebuild *r, uint64_t seq)
{
    struct apply_context *context = r->context;
    Holdfast__V1__LedgerEntry *entry = NULL;
    struct slice row;

    err e = ledger_row_find(context->state, r->player.entity, seq, context->need, &row);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_OK)
        e = ledger_row_decode(row, context->arena, &entry);
    if (e != ERR_OK || (int)entry->kind != KIND(RESERVE))
        return refuse_unreadable(r, "what was set aside by entry", seq);
    for (size_t i = 0; i < entry->n_changes; i++) {
        struct slice name = slice_from_text(entry->changes[i]->currency);
        struct balance *balance = player_find_balance(&r->player, name);
        if (balance == NULL || entry->changes[i]->reserved < 0 ||
            __builtin_add_overflow(balance->reserved, entry->changes[i]->reserved,
                                   &balance->reserved))
            return refuse_unreadable(r, "what was set aside by entry", seq);
    }
    return ERR_OK;
}

static err take_reservations(struct rebuild *r)
{
    struct apply_context *context = r->context;
    struct found found = { .rebuild = r };
    struct row_key first;
    err result = ERR_OK;

    row_key_reservation(&first, r->player.entity, 0);
    const struct state_range range = {
        .prefix = { first.bytes, first.size - SEQ_BYTES },
        .after = row_key_slice(&first),
        .limit = RESERVATIONS_MAX + 1,
    };
    err e = state_range_visit(context->state, &range, context->need, take_reservation, &found);
    if (e != ERR_OK)
        return e;
    if (found.unreadable || found.count > RESERVATIONS_MAX)
        return refuse_unreadable(r, "the reservation of entry", found.seqs[found.count - 1]);
    for (uint32_t i = 0; i < found.count; i++) {
        e = take_reserved(r, found.seqs[i]);
        if (e == ERR_NEED || result == ERR_OK)
            result = e;
    }
    r->player.reservation_count = found.count;
    return result;
}

static bool take_item(void *user, struct slice key, struct slice value)
{
    struct found *found = user;

    (void)value;
    found->count++;
    found->last = arena_copy(found->rebuild->context->arena, key);
    return true;
}

static err count_items(struct rebuild *r)
{
    struct apply_context *context = r->context;
    struct found found = { .rebuild = r };
    struct row_key prefix;
    uint32_t before;

    row_key_item_prefix(&prefix, r->player.entity);
    do {
        const struct state_range range = {
            .prefix = row_key_slice(&prefix),
            .after = found.last,
            .limit = PAGE_ROWS,
        };
        before = found.count;
        err e = state_range_visit(context->state, &range, context->need, take_item, &found);
        if (e != ERR_OK)
            return e;
    } while (found.count == before + PAGE_ROWS);
    r->player.item_count = found.count;
    return ERR_OK;
}

/* ---- sections ---- */

static err take_section(struct rebuild *r, const struct section_info *known, size_t place)
{
    struct apply_context *context = r->context;
    struct row_check check;
    struct row_key key;
    struct slice row;

    row_key_section(&key, r->player.entity, known->name);
    enum state_found found = state_find(context->state, row_key_slice(&key), &row);
    if (found == STATE_MISSING) {
        need_add_key(context->need, row_key_slice(&key));
        return ERR_NEED;
    }
    if (found == STATE_PRESENT)
        row_check(context->arena, row_key_slice(&key), row, &check);
    if (found == STATE_ABSENT || !check.readable || row.size > SECTION_BYTES_MAX) {
        if (place == SIZE_MAX)
            return ERR_OK; /* The old index names what is not there. */
        return refuse_invalid(context->arena, context->refusal,
                              arena_printf(context->arena, "sections[%zu]", place),
                              "a section that the player has, and that can be read",
                              value_shorten_applied(context, known->name));
    }
    if (player_find_section(&r->player, known->name) != NULL)
        return ERR_OK;
    if (r->player.section_count == SECTIONS_MAX)
        return refuse_number(context->arena, context->refusal, "sections", "at most 64",
                             SECTIONS_MAX + 1);
    struct section_info *section = player_add_section(&r->player, known->name);
    *section = *known;
    section->size_bytes = (uint32_t)row.size;
    return ERR_OK;
}

static err take_sections(struct rebuild *r)
{
    struct apply_context *context = r->context;
    err result = ERR_OK;

    (void)!player_sections(&r->player, context->arena); /* Of no bytes: it has none yet. */
    r->player.sections_gone_version = context->owner_ms;
    bool known = r->old_readable && player_sections(&r->old, context->arena) == ERR_OK;
    for (uint32_t i = 0; known && i < r->old.section_count; i++) {
        if (text_is_name(r->old.sections[i].name, SECTION_NAME_BYTES_MAX)) {
            err e = take_section(r, &r->old.sections[i], SIZE_MAX);
            if (e == ERR_NEED || result == ERR_OK)
                result = e;
        }
    }
    for (size_t i = 0; i < r->hints->section_count; i++) {
        const struct section_info hint = {
            .name = slice_from_text(r->hints->sections[i]->name),
            .schema_version = r->hints->sections[i]->schema_version,
            .version = context->owner_ms,
            .last_write_ms = context->owner_ms,
        };
        err e = take_section(r, &hint, i);
        if (e == ERR_NEED || result == ERR_OK)
            result = e;
    }
    return result;
}

/* ---- the rest ---- */

static err take_intent(struct rebuild *r)
{
    struct apply_context *context = r->context;
    Holdfast__Internal__V1__TxnIntent *intent = NULL;

    enum state_found found =
        intent_find(context->state, context->arena, r->player.entity, context->need, &intent);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT && intent == NULL)
        return refuse(context->arena, context->refusal, CODE(QUARANTINED), "rows",
                      "%s: name its row, too; nothing was done", INTENT_DAMAGE);
    if (intent != NULL)
        r->player.txn = txn_ref_of(intent->txn);
    return ERR_OK;
}

/* Above all that were given out, and free: no server that wrote before writes on. */
static void end_session(struct rebuild *r)
{
    struct apply_context *context = r->context;
    uint64_t generation = context->meta->generation;
    uint64_t base = (generation > 0 ? generation - 1 : 0) << FENCE_GENERATION_SHIFT;
    struct session *session = &r->player.session;

    session->fence = base + context->owner_ms / 1000;
    if (r->old_readable && r->old.session.fence > session->fence &&
        r->old.session.fence < base + (1ull << FENCE_GENERATION_SHIFT))
        session->fence = r->old.session.fence;
    if (r->old_readable && r->old.session.state != SESSION_FREE) {
        if (context->meta->session_count > 0)
            context->meta->session_count--;
        session_tell(context, &r->old.session, false);
    }
    (*context->freed)++;
}

/* Versions are milliseconds since 1970 then: above any that was counted. */
static void set_version(struct rebuild *r)
{
    const struct apply_context *context = r->context;

    r->player.version = context->owner_ms;
    if (!r->old_readable)
        return;
    if (r->old.version < context->owner_ms)
        r->player.version = r->old.version;
    if (r->old.created_at_ms > 0 && r->old.created_at_ms <= context->owner_ms)
        r->player.created_at_ms = r->old.created_at_ms;
}

err player_rebuild(struct apply_context *context, const struct rebuild_hints *hints)
{
    struct rebuild r = {
        .context = context,
        .hints = hints,
        .old = *context->player,
        .old_readable = !context->unreadable,
    };
    err (*const steps[])(struct rebuild *) = { take_ledger, take_reservations, count_items,
                                               take_sections, take_intent };

    player_init(&r.player, context->player->entity);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        err e = steps[i](&r);
        if (e != ERR_OK)
            return e;
    }
    end_session(&r);
    set_version(&r);
    *context->player = r.player;
    context->unreadable = false;
    context->player_changed = true;
    return ERR_OK;
}
