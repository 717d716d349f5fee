#include "node/core/transaction/txn_part.h"

#include <inttypes.h>
#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/limit.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/balance_list.h"
#include "node/core/goods/goods.h"
#include "node/core/goods/wallet_change.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/profile/section_edit.h"
#include "node/core/session/authority.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define RETRY_MS_MIN    20u
#define RETRY_MS_SPREAD 60u
#define TOKEN_BYTES_MAX LIMIT_TOKEN_BYTES
/* Before it, who had entered another transaction since was taken for damaged. */
#define FINISHED_BEFORE_APPLY_VERSION 10u

typedef Holdfast__Internal__V1__TxnPart txn_part;
typedef Holdfast__Internal__V1__TxnTaken txn_taken;
typedef Holdfast__Internal__V1__TxnIntent txn_intent;

err txn_refuse_held(struct arena *arena, struct refusal *refusal, const char *player_id,
                    struct slice op_id)
{
    err e = refuse(arena, refusal, CODE(TXN_CONFLICT), "player_id",
                   "a transaction holds the player %s; nothing was done", player_id);

    /* Spread, so that two that met do not meet again. */
    refusal->retry_after_ms = RETRY_MS_MIN + (uint32_t)(hash_u64(op_id) % RETRY_MS_SPREAD);
    refusal->value = player_id;
    refusal->transient = true;
    return e;
}

/* ---- players ---- */

err txn_player_load(struct apply_context *entry, const char *player_id, const char *op_id,
                    struct txn_player **ret_player)
{
    struct txn_player *p = arena_alloc(entry->arena, sizeof *p);

    memset(p, 0, sizeof *p);
    p->entry = entry;
    p->context = *entry;
    p->op.entity = entity_of_player(entry->arena, player_id);
    p->op.id.text = slice_from_text(op_id);
    p->context.op = &p->op;
    *ret_player = p;
    if (entry->player != NULL && slice_equal(entry->player->entity, p->op.entity)) {
        if (entry->unreadable)
            return apply_damaged(entry, p->op.entity, PLAYER_DAMAGE);
        p->borrowed = true;
        p->risen = entry->op->id.text.size > 0;
        return ERR_OK;
    }
    p->context.player = &p->own;
    return player_row_apply(entry, p->op.entity, &p->own);
}

void txn_player_store(struct txn_player *p)
{
    struct row_key key;

    if (p->borrowed) {
        p->entry->player_changed = true;
        return;
    }
    buf_clear(p->context.scratch);
    player_encode(&p->own, p->context.scratch);
    row_key_player(&key, p->op.entity);
    state_put(p->context.state, row_key_slice(&key), buf_slice(p->context.scratch));
}

static void rise(struct txn_player *p)
{
    struct player *player = p->context.player;

    if (p->risen)
        return;
    p->risen = true;
    player->version++;
    if (player->created_at_ms == 0)
        player->created_at_ms = p->context.owner_ms;
}

/* ---- authority ---- */

err txn_authority_load(const Holdfast__Internal__V1__StoredAuthority *stored,
                       struct authority *ret_authority)
{
    struct authority authority = { 0 };
    int kind = stored != NULL ? (int)stored->kind_case : 0;

    if (kind == HOLDFAST__INTERNAL__V1__STORED_AUTHORITY__KIND_SESSION) {
        struct slice token = slice_from_text(stored->session->token);
        authority.kind = AUTHORITY_SESSION;
        if (token.size > AUTHORITY_TOKEN_BYTES_MAX ||
            token_parse(token, &authority.incarnation, &authority.fence) != ERR_OK)
            return ERR_CORRUPT;
    } else if (kind == HOLDFAST__INTERNAL__V1__STORED_AUTHORITY__KIND_SYSTEM) {
        authority.kind = AUTHORITY_SYSTEM;
        authority.scope = slice_from_text(stored->system->scope);
        authority.caller = slice_from_text(stored->system->caller);
        if (!authority_scope_is_known(authority.scope) ||
            (authority.caller.size > 0 && !caller_name_is_good(authority.caller)))
            return ERR_CORRUPT;
    } else if (kind == HOLDFAST__INTERNAL__V1__STORED_AUTHORITY__KIND_UNHELD) {
        authority.kind = AUTHORITY_UNHELD;
    } else {
        return ERR_CORRUPT;
    }
    *ret_authority = authority;
    return ERR_OK;
}

Holdfast__Internal__V1__StoredAuthority *txn_authority_store(struct arena *arena,
                                                             const struct authority *authority)
{
    Holdfast__Internal__V1__StoredAuthority *stored =
        (void *)arena_message(arena, &holdfast__internal__v1__stored_authority__descriptor);

    CHECK(authority->kind != AUTHORITY_NONE);
    if (authority->kind == AUTHORITY_SESSION) {
        char *token = arena_alloc(arena, TOKEN_TEXT_SIZE);
        token_print(authority->incarnation, authority->fence, token);
        stored->kind_case = HOLDFAST__INTERNAL__V1__STORED_AUTHORITY__KIND_SESSION;
        stored->session =
            (void *)arena_message(arena, &holdfast__internal__v1__stored_session__descriptor);
        stored->session->token = token;
    } else if (authority->kind == AUTHORITY_SYSTEM) {
        stored->kind_case = HOLDFAST__INTERNAL__V1__STORED_AUTHORITY__KIND_SYSTEM;
        stored->system =
            (void *)arena_message(arena, &holdfast__internal__v1__stored_system__descriptor);
        stored->system->scope = arena_text(arena, authority->scope);
        stored->system->caller = arena_text(arena, authority->caller);
    } else {
        stored->kind_case = HOLDFAST__INTERNAL__V1__STORED_AUTHORITY__KIND_UNHELD;
        stored->unheld =
            (void *)arena_message(arena, &holdfast__internal__v1__stored_unheld__descriptor);
    }
    return stored;
}

/* The home player's stands in the operation, and was checked with it. */
static err authorise(struct txn_player *p, const txn_part *part)
{
    static const struct handler handler = {
        .method = METHOD_EXECUTE_TRANSACTION,
        .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    };

    if (part->authority == NULL)
        return ERR_OK;
    CHECK(txn_authority_load(part->authority, &p->op.authority) == ERR_OK);
    return authority_apply(&p->context, &handler);
}

/* ---- checks ---- */

static err check_balance(struct txn_player *p, const Holdfast__V1__CurrencyAmount *amount)
{
    const struct balance *held =
        player_find_balance(p->context.player, slice_from_text(amount->currency));
    int64_t stands = held != NULL ? held->amount : 0;

    if (stands >= amount->amount)
        return ERR_OK;
    err e =
        refuse(p->context.arena, p->context.refusal, CODE(INSUFFICIENT_FUNDS), "checks",
               "%s is %" PRId64 ", less than %" PRId64, amount->currency, stands, amount->amount);
    p->context.refusal->limit = arena_printf(p->context.arena, "%" PRId64, amount->amount);
    p->context.refusal->value = arena_printf(p->context.arena, "%" PRId64, stands);
    refusal_tell_funds(&p->context, amount->currency, stands, amount->amount);
    return e;
}

static err check_item(struct txn_player *p, const char *text)
{
    uint8_t uid[ITEM_UID_BYTES];
    struct row_key key;
    struct slice value;

    CHECK(item_uid_parse(slice_from_text(text), uid) == ERR_OK);
    row_key_item(&key, p->op.entity, uid);
    enum state_found found = state_find(p->context.state, row_key_slice(&key), &value);
    if (found == STATE_PRESENT)
        return ERR_OK;
    if (found == STATE_MISSING) {
        need_add_key(p->context.need, row_key_slice(&key));
        return ERR_NEED;
    }
    err e = refuse(p->context.arena, p->context.refusal, CODE(ITEM_NOT_HELD), "checks",
                   "the item %s is not held", text);
    p->context.refusal->value = text;
    return e;
}

static err check_section(struct txn_player *p, const Holdfast__V1__SectionCheck *check)
{
    struct player *player = p->context.player;

    if (player_sections(player, p->context.arena) != ERR_OK)
        return apply_damaged(&p->context, p->op.entity, SECTIONS_DAMAGE);
    const struct section_info *section = player_find_section(player, slice_from_text(check->name));
    uint64_t stands = section != NULL ? section->version : 0;
    if (stands == check->version)
        return ERR_OK;
    return refuse_version(&p->context, "checks",
                          arena_printf(p->context.arena, "section %s", check->name),
                          &(struct version_pair){ stands, check->version });
}

static err check_holds(struct txn_player *p, const Holdfast__V1__TransactionCheck *check)
{
    uint64_t version = p->context.player->version - (p->risen ? 1 : 0);

    switch (check->check_case) {
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_BALANCE:
        return check_balance(p, check->balance);
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_ITEM_UID:
        return check_item(p, check->item_uid);
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_SECTION:
        return check_section(p, check->section);
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_PLAYER_VERSION:
        if (version == check->player_version)
            return ERR_OK;
        return refuse_version(&p->context, "checks", "the player",
                              &(struct version_pair){ version, check->player_version });
    default:
        CHECK(false); /* Not sound: never logged. */
        return ERR_INVALID;
    }
}

/* ---- prepared ---- */

/* The other players, `first` before the rest. */
static void others_from(const txn_part *part, const char *first,
                        const char *ret_others[COUNTERPARTS_MAX])
{
    size_t count = 0;

    CHECK(part->n_others <= COUNTERPARTS_MAX);
    for (size_t i = 0; i < part->n_others; i++) {
        if (strcmp(part->others[i], first) == 0)
            ret_others[count++] = part->others[i];
    }
    for (size_t i = 0; i < part->n_others; i++) {
        if (strcmp(part->others[i], first) != 0)
            ret_others[count++] = part->others[i];
    }
    CHECK(count == part->n_others);
}

/* One entry for each player that gets items, so that an item's history says where it went. */
static void record_taken(struct apply_context *context, const txn_part *part, const char *reason,
                         const struct ledger_change *changes, const struct item_row *items)
{
    struct item_row rows[LEDGER_ITEMS_MAX];
    bool told[LEDGER_ITEMS_MAX] = { false };
    const char *others[COUNTERPARTS_MAX];
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_TXN_TAKE,
        .reason = slice_from_text(reason),
        .change_count = (uint32_t)part->n_take,
        .changes = changes,
        .items = rows,
        .items_taken = true,
        .counterpart_count = (uint32_t)part->n_others,
    };

    for (size_t i = 0; i < part->n_take_uids; i++) {
        if (told[i])
            continue;
        const char *to = part->take_to[i];
        entry.item_count = 0;
        for (size_t j = i; j < part->n_take_uids; j++) {
            if (strcmp(part->take_to[j], to) != 0)
                continue;
            told[j] = true;
            rows[entry.item_count++] = items[j];
        }
        entry.next = to[0] != 0 ? entity_of_player(context->arena, to) : (struct slice){ 0 };
        others_from(part, to, others);
        entry.counterparts = others;
        ledger_append(context, &entry);
        entry.change_count = 0;
    }
    if (part->n_take_uids > 0)
        return;
    entry.counterparts = (const char *const *)part->others;
    ledger_append(context, &entry);
}

static err take(struct txn_player *p, const txn_part *part, const char *reason, txn_taken *taken)
{
    struct apply_context *context = &p->context;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row items[LEDGER_ITEMS_MAX];

    err e = wallet_change(context, part->n_take, part->take, -1, changes);
    if (e == ERR_OK) {
        e = goods_take_items(context, part->n_take_uids, part->take_uids, items);
        if (e == ERR_CONFLICT)
            refusal_tell_field(context, "item_uids"); /* Of several changes: `value` says which. */
    }
    if (e != ERR_OK || part->n_take + part->n_take_uids == 0)
        return e;
    CHECK(part->n_take_to == part->n_take_uids);
    taken->n_items = part->n_take_uids;
    taken->items = arena_alloc(context->arena, sizeof *taken->items * (taken->n_items + 1));
    for (size_t i = 0; i < taken->n_items; i++)
        taken->items[i] = goods_item_message(context->arena, &items[i]);
    record_taken(context, part, reason, changes, items);
    rise(p);
    return ERR_OK;
}

/* A copy of the player that may be thrown away. */
static struct player trial_of(struct txn_player *p)
{
    struct arena *arena = p->context.arena;
    struct player trial = *p->context.player;

    trial.balances = arena_alloc(arena, sizeof *trial.balances * (trial.balance_count + 1));
    if (trial.balance_count > 0)
        memcpy(trial.balances, p->context.player->balances,
               sizeof *trial.balances * trial.balance_count);
    if (trial.sections_loaded) {
        trial.sections = arena_alloc(arena, sizeof *trial.sections * SECTIONS_MAX);
        memcpy(trial.sections, p->context.player->sections,
               sizeof *trial.sections * trial.section_count);
    }
    return trial;
}

static err check_item_room(struct txn_player *p, const txn_part *part)
{
    uint64_t max = p->context.meta->policy.items_max;
    uint64_t more = part->n_mint + part->n_receive_uids;
    uint64_t after = p->context.player->item_count + more;

    if (more == 0 || after <= max)
        return ERR_OK;
    err e = refuse(p->context.arena, p->context.refusal, CODE(CAPACITY_FULL), "changes",
                   "the player would hold %" PRIu64 " items, more than the maximum of %" PRIu64,
                   after, max);
    p->context.refusal->limit = arena_printf(p->context.arena, "%" PRIu64, max);
    p->context.refusal->value = arena_printf(p->context.arena, "%" PRIu64, after);
    refusal_tell_capacity(&p->context, "items", (int64_t)max);
    return e;
}

static void add_balances(struct balance_list *list, const struct apply_context *context,
                         size_t count, Holdfast__V1__CurrencyAmount *const *amounts)
{
    for (size_t i = 0; i < count; i++) {
        char *currency = amounts[i]->currency;
        if (balance_list_has(list, currency))
            continue;
        const struct balance *held =
            player_find_balance(context->player, slice_from_text(currency));
        CHECK(held != NULL);
        balance_list_add(list, currency, held->amount, context->version >= 2 ? held->reserved : 0);
    }
}

/* Whether what would come fits, so that FINISH always can be carried out. */
static err try_give(struct txn_player *p, const txn_part *part, txn_taken *taken)
{
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    Holdfast__V1__SectionVersion **versions;
    struct player trial = trial_of(p);
    struct apply_context context = p->context;
    struct balance_list list;

    context.player = &trial;
    err e = check_item_room(p, part);
    if (e == ERR_OK)
        e = wallet_change(&context, part->n_give, part->give, 1, changes);
    if (e == ERR_OK && part->n_edits > 0) {
        uint32_t mark = state_mark(context.state);
        e = section_edits_apply(&context, part->n_edits, part->edits, &versions);
        state_rollback_to(context.state, mark);
    }
    if (e != ERR_OK)
        return e;
    balance_list_init(&list, context.arena, part->n_take + part->n_give, context.version);
    add_balances(&list, &context, part->n_take, part->take);
    add_balances(&list, &context, part->n_give, part->give);
    BALANCE_LIST_TELL(&list, taken);
    return ERR_OK;
}

static void choose_uids(struct txn_player *p, const txn_part *part, struct txn_terms *terms,
                        txn_taken *taken)
{
    const struct apply_context *context = &p->context;
    uint8_t uid[ITEM_UID_BYTES];

    taken->n_mint_uids = part->n_mint;
    taken->mint_uids = arena_alloc(context->arena, sizeof(char *) * (part->n_mint + 1));
    for (size_t i = 0; i < part->n_mint; i++) {
        item_uid_make(context->shard, context->dot.epoch, context->dot.counter, terms->uid_place++,
                      uid);
        taken->mint_uids[i] = arena_alloc(context->arena, ITEM_UID_TEXT_SIZE);
        item_uid_print(uid, taken->mint_uids[i]);
    }
}

static void leave_intent(struct txn_player *p, const txn_part *part, const struct txn_terms *terms,
                         txn_taken *taken)
{
    struct arena *arena = p->context.arena;
    txn_intent intent = HOLDFAST__INTERNAL__V1__TXN_INTENT__INIT;

    p->context.player->txn = terms->ref;
    intent.txn = txn_ref_message(arena, terms->ref);
    intent.op_id = text_lend(terms->op_id);
    intent.reason = text_lend(terms->reason);
    intent.authority = arena_text(arena, p->context.authority_text);
    intent.part = (txn_part *)(uintptr_t)part;
    intent.taken = taken;
    intent.prepared_at_ms = p->context.owner_ms;
    intent_store(&p->context, p->op.entity, &intent);
}

/* Who it was about: the refusal's own words say only what. */
static void name_player(struct txn_player *p, const char *player_id)
{
    struct refusal *refusal = p->context.refusal;

    if (p->context.version >= TXN_NAMES_APPLY_VERSION)
        refusal->player_id = player_id;
    if (refusal->code != CODE(TXN_CONFLICT))
        refusal->message =
            arena_printf(p->context.arena, "player %s: %s", player_id, refusal->message);
}

static err prepare(struct txn_player *p, const txn_part *part, struct txn_terms *terms,
                   txn_taken *taken)
{
    err e = authorise(p, part);

    for (size_t i = 0; i < part->n_checks && e == ERR_OK; i++) {
        e = check_holds(p, part->checks[i]);
        if (e == ERR_CONFLICT && p->context.version >= TXN_NAMES_APPLY_VERSION)
            p->context.refusal->field = arena_printf(p->context.arena, "checks[%zu]", i);
    }
    if (e != ERR_OK)
        return e;
    e = take(p, part, terms->reason, taken);
    if (e == ERR_OK)
        e = try_give(p, part, taken);
    if (e == ERR_CONFLICT ||
        e == ERR_INVALID) /* Parts are put together from several changes: `value` says which. */
        refusal_tell_own(&p->context, "changes");
    return e;
}

err txn_part_prepare(struct txn_player *p, const txn_part *part, struct txn_terms *terms,
                     txn_taken *ret_taken)
{
    struct apply_context *context = &p->context;

    err e = context->player->txn.seq != 0
                ? txn_refuse_held(context->arena, context->refusal, part->player_id, p->op.id.text)
                : quarantine_check(context->arena, context->refusal, context->meta,
                                   player_id(context->player));
    if (e == ERR_OK)
        e = prepare(p, part, terms, ret_taken);
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK) {
        name_player(p, part->player_id);
        return e;
    }
    ret_taken->player_id = part->player_id;
    choose_uids(p, part, terms, ret_taken);
    if (terms->ref.seq != 0)
        leave_intent(p, part, terms, ret_taken);
    return ERR_OK;
}

/* ---- finished ---- */

static Holdfast__V1__Item **minted(struct txn_player *p, const txn_intent *intent)
{
    const txn_part *part = intent->part;
    Holdfast__V1__Item **items =
        arena_messages(p->context.arena, &holdfast__v1__item__descriptor, part->n_mint);

    for (size_t i = 0; i < part->n_mint; i++) {
        items[i]->uid = intent->taken->mint_uids[i];
        items[i]->kind = part->mint[i]->kind;
        items[i]->attributes = part->mint[i]->attributes;
        items[i]->minted_at_ms = (int64_t)p->context.owner_ms;
    }
    return items;
}

static void give(struct txn_player *p, const txn_intent *intent, size_t item_count,
                 Holdfast__V1__Item *const *items)
{
    struct apply_context *context = &p->context;
    const txn_part *part = intent->part;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row rows[LEDGER_ITEMS_MAX];

    if (part->n_give + item_count + part->n_mint == 0)
        return;
    CHECK(part->n_give <= LEDGER_CHANGES_MAX);
    CHECK(item_count + part->n_mint <= LEDGER_ITEMS_MAX);
    uint32_t change_count = goods_add_amounts(context, part->n_give, part->give, changes);
    CHECK(goods_put_items(context, item_count, items, UINT64_MAX, rows) == ERR_OK);
    CHECK(goods_put_items(context, part->n_mint, minted(p, intent), UINT64_MAX,
                          rows + item_count) == ERR_OK);
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_TXN_GIVE,
        .reason = slice_from_text(intent->reason),
        .change_count = change_count,
        .changes = changes,
        .item_count = (uint32_t)(item_count + part->n_mint),
        .items = rows,
        .counterpart_count = (uint32_t)part->n_others,
        .counterparts = (const char *const *)part->others,
    };
    ledger_append(context, &entry);
    rise(p);
}

static err edit(struct txn_player *p, const txn_intent *intent)
{
    const txn_part *part = intent->part;
    Holdfast__V1__SectionVersion **versions;

    if (part->n_edits == 0)
        return ERR_OK;
    /* Tried by PREPARE, and not written since: but for damage it succeeds. */
    err e = section_edits_apply(&p->context, part->n_edits, part->edits, &versions);
    if (e == ERR_OK)
        rise(p);
    else if (e != ERR_NEED)
        e = apply_damaged(&p->context, p->op.entity, INTENT_DAMAGE);
    return e;
}

static void give_back(struct txn_player *p, const txn_intent *intent)
{
    Holdfast__V1__Mail escrow = HOLDFAST__V1__MAIL__INIT;

    escrow.n_currencies = intent->part->n_take;
    escrow.currencies = intent->part->take;
    escrow.n_items = intent->taken->n_items;
    escrow.items = intent->taken->items;
    escrow.reason = intent->reason;
    if (goods_are_none(&escrow))
        return;
    goods_refund(&p->context, &escrow, (uint32_t)intent->part->n_others,
                 (const char *const *)intent->part->others);
    rise(p);
}

err txn_part_finish(struct txn_player *p, const txn_intent *intent, bool commit, size_t item_count,
                    Holdfast__V1__Item *const *items)
{
    if (!commit) {
        give_back(p, intent);
        return ERR_OK;
    }
    err e = edit(p, intent);
    if (e == ERR_OK)
        give(p, intent, item_count, items);
    return e;
}

/* The player was finished before, and has entered another transaction since. */
static bool is_of_another(const struct player *player, const txn_intent *intent, struct txn_ref ref)
{
    return txn_ref_equal(txn_ref_of(intent->txn), player->txn) && !txn_ref_equal(player->txn, ref);
}

err txn_intent_finish(struct apply_context *entry, struct txn_ref ref, bool commit,
                      const Holdfast__Internal__V1__TxnGive *give)
{
    struct txn_player *p;
    txn_intent *intent = NULL;

    /* The entity alone is known yet; the operation's id stands in the intent. */
    err e = txn_player_load(entry, give->player_id, "", &p);
    enum state_found found =
        intent_find(entry->state, entry->arena, p->op.entity, entry->need, &intent);
    if (e == ERR_NEED || found == STATE_MISSING)
        return ERR_NEED;
    if (e != ERR_OK)
        return e;
    if (found == STATE_ABSENT && !txn_ref_equal(p->context.player->txn, ref))
        return ERR_NOT_FOUND;
    if (intent != NULL && entry->version >= FINISHED_BEFORE_APPLY_VERSION &&
        is_of_another(p->context.player, intent, ref))
        return ERR_NOT_FOUND;
    /* It was left by PREPARE, and not written since. */
    if (intent == NULL || !txn_ref_equal(p->context.player->txn, ref) ||
        !txn_ref_equal(txn_ref_of(intent->txn), ref))
        return apply_damaged(entry, p->op.entity, INTENT_DAMAGE);
    if (give->n_items + intent->part->n_mint > LEDGER_ITEMS_MAX)
        return apply_damaged(entry, p->op.entity, INTENT_DAMAGE);
    p->op.id.text = slice_from_text(intent->op_id);
    p->context.authority_text = slice_from_text(intent->authority);
    e = txn_part_finish(p, intent, commit, give->n_items, give->items);
    if (e != ERR_OK)
        return e;
    p->context.player->txn = (struct txn_ref){ 0 };
    intent_delete(&p->context, p->op.entity);
    txn_player_store(p);
    return ERR_OK;
}

void txn_part_footprint(const txn_part *part, struct need *keys)
{
    struct arena arena = { 0 };
    struct slice entity = entity_of_player(&arena, part->player_id);
    uint8_t uid[ITEM_UID_BYTES];
    struct row_key key;

    row_key_player(&key, entity);
    need_add_key(keys, row_key_slice(&key));
    for (size_t i = 0; i < part->n_take_uids; i++) {
        CHECK(item_uid_parse(slice_from_text(part->take_uids[i]), uid) == ERR_OK);
        row_key_item(&key, entity, uid);
        need_add_key(keys, row_key_slice(&key));
    }
    struct op op = { .entity = entity };
    section_edits_footprint(&op, part->n_edits, part->edits, keys);
    arena_deinit(&arena);
}
