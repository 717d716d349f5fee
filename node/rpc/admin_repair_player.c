#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/apply.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/erasure/erasure.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/repair/edge_repair.h"
#include "node/core/repair/player_rebuild.h"
#include "node/core/repair/row_repair.h"
#include "node/core/session/timers.h"
#include "node/core/transaction/txn_home.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"

/* Before it a trial changed counts of the shard. */
#define TRIAL_APPLY_VERSION 10u

typedef Holdfast__V1__RepairPlayerRequest repair_request;
typedef Holdfast__V1__RepairPlayerResponse repair_response;

/* ---- before the log ---- */

static err check_sections(struct check_context *context, const repair_request *request)
{
    if (request->n_sections > SECTIONS_MAX)
        return refuse_number(context->arena, context->refusal, "sections", "at most 64",
                             (int64_t)request->n_sections);
    for (size_t i = 0; i < request->n_sections; i++) {
        struct slice name = slice_from_text(request->sections[i]->name);
        if (!text_is_name(name, SECTION_NAME_BYTES_MAX))
            return refuse_invalid(context->arena, context->refusal,
                                  arena_printf(context->arena, "sections[%zu].name", i),
                                  "1 to 64 of [a-z0-9_]", text_shorten(context->arena, name));
    }
    return ERR_OK;
}

static err check_balances(struct check_context *context, const repair_request *request)
{
    if (request->n_balances > CURRENCIES_MAX)
        return refuse_number(context->arena, context->refusal, "balances", "at most 64",
                             (int64_t)request->n_balances);
    for (size_t i = 0; i < request->n_balances; i++) {
        const Holdfast__V1__CurrencyAmount *each = request->balances[i];
        struct slice name = slice_from_text(each->currency);
        const struct currency *currency = policy_find_currency(&context->meta->policy, name);
        if (currency == NULL) {
            err e = refuse_invalid(
                context->arena, context->refusal,
                entry_field(context->arena, "balances", i, each->currency, "currency"),
                "a currency of the policy", text_shorten(context->arena, name));
            wallet_currency_hint(context, each->currency);
            return e;
        }
        if (each->amount < currency->lowest_min || each->amount > AMOUNT_MAX)
            return refuse_number(
                context->arena, context->refusal,
                entry_field(context->arena, "balances", i, each->currency, "amount"),
                "the currency's minimum to 9007199254740991", each->amount);
    }
    return ERR_OK;
}

static err check_rows(struct check_context *context, const repair_request *request)
{
    struct row_key key;

    if (request->n_rows > REPAIR_ROWS_MAX)
        return refuse_number(context->arena, context->refusal, "rows", "at most 64",
                             (int64_t)request->n_rows);
    for (size_t i = 0; i < request->n_rows; i++) {
        struct slice text = slice_from_text(request->rows[i]);
        if (row_key_parse(text, &key) != ERR_OK)
            return refuse_invalid(
                context->arena, context->refusal, arena_printf(context->arena, "rows[%zu]", i),
                "keys in hex digits, lower case", text_shorten(context->arena, text));
    }
    return ERR_OK;
}

static err admin_repair_player_check(struct check_context *context, ProtobufCMessage *message)
{
    const repair_request *request = (const repair_request *)message;

    err e = row_repair_check(context, request->reason);
    if (e != ERR_OK)
        return e;
    if (request->n_rows == 0 && !request->rebuild)
        return refuse_invalid(context->arena, context->refusal, "rows",
                              "at least one row, or rebuild", "");
    if (!request->rebuild && request->n_sections + request->n_balances > 0)
        return refuse_invalid(context->arena, context->refusal, "rebuild",
                              "true where sections or balances are given", "false");
    e = check_rows(context, request);
    if (e == ERR_OK)
        e = check_sections(context, request);
    return e == ERR_OK ? check_balances(context, request) : e;
}

static void admin_repair_player_footprint(const struct op *op, const ProtobufCMessage *message,
                                          struct need *keys)
{
    const repair_request *request = (const repair_request *)message;
    struct row_key key;

    (void)op;
    for (size_t i = 0; i < request->n_rows; i++) {
        if (row_key_parse(slice_from_text(request->rows[i]), &key) == ERR_OK)
            need_add_key(keys, row_key_slice(&key));
    }
}

/* ---- at apply ---- */

struct repairing {
    struct apply_context *context;
    const repair_request *request;
    repair_response *response;
    struct row_repair *rows;
    bool orphan; /* What a lost transaction held is given back. */
};

static err repair_rows(struct repairing *r)
{
    const repair_request *request = r->request;
    struct arena *arena = r->context->arena;
    err result = ERR_OK;

    r->rows = arena_zalloc(arena, sizeof *r->rows * (request->n_rows + 1));
    for (size_t i = 0; i < request->n_rows; i++) {
        struct row_key *key = arena_alloc(arena, sizeof *key);
        if (row_key_parse(slice_from_text(request->rows[i]), key) != ERR_OK)
            return refuse_invalid(arena, r->context->refusal, "rows", "keys in hex digits", "");
        r->rows[i] = (struct row_repair){
            .key = row_key_slice(key),
            .reason = slice_from_text(request->reason),
            .rebuilt = request->rebuild,
        };
    }
    qsort(r->rows, request->n_rows, sizeof *r->rows, row_repair_compare);
    r->response->rows = arena_zalloc(arena, sizeof(void *) * (request->n_rows + 1));
    for (size_t i = 0; i < request->n_rows && result == ERR_OK; i++) {
        if (i > 0 && slice_equal(r->rows[i].key, r->rows[i - 1].key))
            continue; /* Named twice. */
        result = row_repair(r->context, &r->rows[i]);
        r->response->rows[r->response->n_rows++] = r->rows[i].told;
        r->orphan |= r->rows[i].orphan;
    }
    return result;
}

/* A transaction that was decided while the player could not be finished, or that is lost. */
static err finish_transaction(struct repairing *r)
{
    struct player *player = r->context->player;
    bool finished = false;

    if (r->context->unreadable || player->txn.seq == 0)
        return ERR_OK;
    if (r->orphan)
        return txn_give_back(r->context, player->txn);
    err e = txn_finish_owed(r->context, player->txn, &finished);
    r->response->transaction_finished = finished;
    return e;
}

static void tell_sections(struct repairing *r)
{
    struct apply_context *context = r->context;
    struct player *player = context->player;

    if (player_sections(player, context->arena) != ERR_OK)
        return;
    r->response->sections =
        arena_alloc(context->arena, sizeof(char *) * (player->section_count + 1));
    for (uint32_t i = 0; i < player->section_count; i++)
        r->response->sections[r->response->n_sections++] =
            arena_text(context->arena, player->sections[i].name);
}

static void tell(struct repairing *r)
{
    const struct player *player = r->context->player;
    repair_response *response = r->response;

    response->dry_run = r->request->dry_run;
    if (r->context->unreadable)
        return;
    struct balance_list list = balances_read(r->context->arena, player, r->context->version);
    BALANCE_LIST_TELL(&list, response);
    response->item_count = player->item_count;
    response->ledger_seq = player->ledger_seq;
    response->reservation_count = player->reservation_count;
    tell_sections(r);
}

static err repair(struct repairing *r)
{
    const struct rebuild_hints hints = {
        .section_count = r->request->n_sections,
        .sections = r->request->sections,
        .balance_count = r->request->n_balances,
        .balances = r->request->balances,
    };
    struct erasure_row found;

    /* Noted with the first rows that are missing. */
    err erasure = erasure_find(r->context->state, r->context->op->entity, r->context->need, &found);
    err e = repair_rows(r);
    if (e == ERR_OK && r->request->rebuild)
        e = player_rebuild(r->context, &hints);
    if (e == ERR_OK)
        e = finish_transaction(r);
    if (e != ERR_OK || r->context->unreadable)
        return e;
    timers_drop(r->context, r->context->op->entity);
    e = timers_renew(r->context);
    erasure = erasure_timer_renew(r->context);
    return e == ERR_OK ? erasure : e;
}

/* What a trial puts back. */
struct stood {
    struct player player;
    bool unreadable;
    uint32_t freed, mark;
    struct meta_counts counts;
    struct decided decided;
    struct channel_effect channel;
};

static struct stood stood_take(const struct apply_context *context)
{
    return (struct stood){
        .player = *context->player,
        .unreadable = context->unreadable,
        .freed = *context->freed,
        .mark = state_mark(context->state),
        .counts = meta_counts_take(context->meta),
        .decided = *context->decided,
        .channel = *context->channel,
    };
}

static void stood_put(struct apply_context *context, const struct stood *stood)
{
    state_rollback_to(context->state, stood->mark);
    *context->player = stood->player;
    if (!stood->unreadable)
        context->player->version--; /* Nothing was written. */
    context->unreadable = stood->unreadable;
    *context->freed = stood->freed;
    context->meta->session_count = stood->counts.session_count;
    if (context->version < TRIAL_APPLY_VERSION)
        return;
    meta_counts_put(context->meta, &stood->counts);
    *context->decided = stood->decided;
    *context->channel = stood->channel;
}

/* Balances change in place: a trial works on others, so that the first ones can be put back. */
static void part_balances(struct apply_context *context)
{
    struct player *player = context->player;
    size_t size = sizeof *player->balances * player->balance_count;

    if (size == 0)
        return;
    struct balance *copies = arena_alloc(context->arena, size);
    memcpy(copies, player->balances, size);
    player->balances = copies;
}

static err admin_repair_player_handle(struct apply_context *context,
                                      const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    struct repairing r = {
        .context = context,
        .request = (const repair_request *)message,
        .response = (repair_response *)reply,
    };
    const struct stood stood = stood_take(context);

    if (!slice_equal(context->op->authority.scope, SLICE_LITERAL("admin")))
        return refuse(context->arena, context->refusal, CODE(PERMISSION_DENIED), "authority",
                      "a repair needs the scope admin");
    if (meta_find_quarantined(context->meta, player_id(context->player)) == NULL)
        return refuse(context->arena, context->refusal, CODE(NOT_FOUND), "player_id",
                      "the player is not quarantined");
    part_balances(context);
    err e = repair(&r);
    if (e != ERR_OK) {
        /* With other rows named, the same attempt may be carried out. */
        context->refusal->transient = context->refusal->code == CODE(QUARANTINED);
        return e;
    }
    tell(&r);
    if (!r.request->dry_run) {
        context->damage->found &= context->unreadable;
        return ERR_OK;
    }
    stood_put(context, &stood);
    return ERR_OK;
}

const struct handler admin_repair_player_handler = {
    .method = METHOD_REPAIR_PLAYER,
    .admits = ADMITS_SYSTEM,
    .check = admin_repair_player_check,
    .footprint = admin_repair_player_footprint,
    .handle = admin_repair_player_handle,
};
