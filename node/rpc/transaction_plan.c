#include "node/rpc/transaction_plan.h"

#include <string.h>

#include "idl/limit.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/section_edit.h"
#include "node/core/session/authority.h"
#include "node/rpc/item_uids.h"
#include "node/rpc/wallet.h"
#include "runtime/base/check.h"

#define CHECKS_MAX        LIMIT_TRANSACTION_CHECKS
#define CHANGES_MAX       LIMIT_TRANSACTION_CHANGES
#define REQUEST_BYTES_MAX (128u * 1024u)

typedef Holdfast__Internal__V1__TxnPart txn_part;
typedef Holdfast__V1__CurrencyAmount amount_message;

/* A plan in the making. A request from the log was found right before it went there: what only the
 * policy in force can say is not asked again. */
struct planner {
    struct check_context *context;
    bool logged;
    struct txn_plan plan;
    size_t items;
    char *uids[TXN_ITEMS_MAX];
    size_t uid_count;
    const char *field; /* Of what is being looked at: "changes[3].grant". */
};

static const char *field_of(struct planner *p, const char *name)
{
    return name[0] != 0 ? arena_printf(p->context->arena, "%s.%s", p->field, name) : p->field;
}

/* From here on a part of it is looked at. */
static void enter(struct planner *p, const char *name)
{
    p->field = field_of(p, name);
}

/* What checks a part by itself names fields of the part alone. */
static err within(struct planner *p, err e)
{
    if (e != ERR_OK)
        refusal_set_within(p->context->arena, p->context->refusal, p->field);
    return e;
}

static err wrong(struct planner *p, const char *name, const char *expected, const char *value)
{
    return refuse_invalid(p->context->arena, p->context->refusal, field_of(p, name), expected,
                          text_shorten(p->context->arena, slice_from_text(value)));
}

/* ---- players ---- */

static txn_part *part_find(const struct planner *p, const char *player_id)
{
    for (size_t i = 0; i < p->plan.part_count; i++) {
        if (strcmp(p->plan.parts[i]->player_id, player_id) == 0)
            return p->plan.parts[i];
    }
    return NULL;
}

static err part_get(struct planner *p, const char *name, const char *player_id, txn_part **ret_part)
{
    *ret_part = part_find(p, player_id);
    if (*ret_part != NULL)
        return ERR_OK;
    return wrong(p, name, "a player that takes part", player_id);
}

static void begin(struct planner *p, char *player_id, size_t others)
{
    p->plan.parts = arena_messages(p->context->arena, &holdfast__internal__v1__txn_part__descriptor,
                                   others + 1);
    p->plan.parts[0]->player_id = player_id;
    p->plan.part_count = 1;
}

/* A request from the log may hold an authority in its old form; one from a caller may not. */
static err part_authority(struct planner *p, const char *text, const char *name,
                          struct authority *ret_authority)
{
    struct slice authority = slice_from_text(text);
    struct authority_fault fault;

    if (p->logged)
        return authority_parse_logged(authority, ret_authority);
    if (authority_parse(p->context->arena, authority, ret_authority, &fault) != ERR_OK)
        return refuse_invalid(p->context->arena, p->context->refusal, field_of(p, name),
                              fault.limit, fault.value);
    return ERR_OK;
}

static err add_player(struct planner *p, char *player_id, const char *authority,
                      const char *id_name, const char *authority_name)
{
    struct slice id = slice_from_text(player_id);
    struct authority parsed;

    if (player_id_check(id) != ERR_OK)
        return wrong(p, id_name, "1 to 100 bytes of UTF-8 without control characters", player_id);
    if (part_find(p, player_id) != NULL)
        return wrong(p, id_name, "each player once", player_id);
    err e = part_authority(p, authority, authority_name, &parsed);
    if (e != ERR_OK)
        return e;
    txn_part *part = p->plan.parts[p->plan.part_count++];
    part->player_id = player_id;
    if (parsed.kind == AUTHORITY_SYSTEM)
        parsed.caller = p->context->caller;
    part->authority = txn_authority_store(p->context->arena, &parsed);
    return ERR_OK;
}

/* ---- goods ---- */

static err list_add(struct planner *p, const amount_message *amount, size_t *count,
                    amount_message ***list)
{
    struct arena *arena = p->context->arena;

    for (size_t i = 0; i < *count; i++) {
        if (strcmp((*list)[i]->currency, amount->currency) != 0)
            continue;
        (*list)[i]->amount += amount->amount;
        if ((*list)[i]->amount <= AMOUNT_MAX)
            return ERR_OK;
        return wrong(p, "currencies", "in sum at most 9007199254740991 of a currency",
                     amount->currency);
    }
    if (*count == LEDGER_CHANGES_MAX)
        return wrong(p, "currencies", "at most 16 currencies for each player and direction",
                     amount->currency);
    if (*list == NULL)
        *list =
            arena_messages(arena, &holdfast__v1__currency_amount__descriptor, LEDGER_CHANGES_MAX);
    (*list)[*count]->currency = amount->currency;
    (*list)[*count]->amount = amount->amount;
    ++*count;
    return ERR_OK;
}

static err amounts_check(struct planner *p, size_t count, amount_message *const *amounts)
{
    if (p->logged)
        return ERR_OK;
    bool had = p->context->deferred.code != 0;
    err e = within(p, wallet_amounts_check(p->context, count, amounts));

    if (!had && p->context->deferred.code != 0)
        refusal_set_within(p->context->arena, &p->context->deferred, p->field);
    return e;
}

static err take_amounts(struct planner *p, txn_part *part, size_t count,
                        amount_message *const *amounts)
{
    err e = amounts_check(p, count, amounts);

    for (size_t i = 0; i < count && e == ERR_OK; i++)
        e = list_add(p, amounts[i], &part->n_take, &part->take);
    return e;
}

static err give_amounts(struct planner *p, txn_part *part, size_t count,
                        amount_message *const *amounts)
{
    err e = amounts_check(p, count, amounts);

    for (size_t i = 0; i < count && e == ERR_OK; i++)
        e = list_add(p, amounts[i], &part->n_give, &part->give);
    return e;
}

static err count_items(struct planner *p, const char *name, size_t count)
{
    p->items += count;
    if (p->items <= TXN_ITEMS_MAX)
        return ERR_OK;
    return refuse_number(p->context->arena, p->context->refusal, field_of(p, name),
                         "at most 64 items in a transaction", (int64_t)p->items);
}

static err uid_check(struct planner *p, const char *name, char *uid)
{
    uint8_t bytes[ITEM_UID_BYTES];

    if (item_uid_parse(slice_from_text(uid), bytes) != ERR_OK)
        return wrong(p, name, "32 hex digits, lower case", uid);
    return ERR_OK;
}

static void part_makes_room(struct arena *arena, txn_part *part)
{
    part->take_uids = arena_alloc(arena, sizeof(char *) * TXN_ITEMS_MAX);
    part->take_to = arena_alloc(arena, sizeof(char *) * TXN_ITEMS_MAX);
}

/* `to` NULL: they are spent. */
static err take_uids(struct planner *p, txn_part *part, txn_part *to, size_t count, char **uids)
{
    static char no_player[] = "";
    struct arena *arena = p->context->arena;
    err e = count_items(p, "item_uids", count);

    if (e != ERR_OK || count == 0)
        return e;
    if (part->take_uids == NULL)
        part_makes_room(arena, part);
    if (to != NULL && to->receive_uids == NULL)
        to->receive_uids = arena_alloc(arena, sizeof(char *) * TXN_ITEMS_MAX);
    for (size_t i = 0; i < count; i++) {
        e = uid_check(p, "item_uids", uids[i]);
        if (e != ERR_OK)
            return e;
        for (size_t j = 0; j < p->uid_count; j++) {
            if (strcmp(p->uids[j], uids[i]) == 0)
                return wrong(p, "item_uids", "each item once", uids[i]);
        }
        p->uids[p->uid_count++] = uids[i];
        part->take_uids[part->n_take_uids++] = uids[i];
        part->take_to[part->n_take_to++] = to != NULL ? to->player_id : no_player;
        if (to != NULL)
            to->receive_uids[to->n_receive_uids++] = uids[i];
    }
    return ERR_OK;
}

/* ---- checks ---- */

static err balance_check(struct planner *p, amount_message *balance)
{
    struct refusal *refusal = p->context->refusal;

    if (p->logged) /* A footprint knows no policy. */
        return ERR_OK;
    err e = wallet_currency_check(p->context->arena, refusal, &p->context->meta->policy,
                                  field_of(p, "currency"), balance->currency);
    if (e == ERR_INVALID)
        wallet_currency_hint(p->context, balance->currency);
    e = refusal_defer(p->context, e);
    if (e == ERR_OK && (balance->amount < 1 || balance->amount > AMOUNT_MAX))
        e = refuse_number(p->context->arena, refusal, field_of(p, "amount"),
                          "1 to 9007199254740991", balance->amount);
    return e;
}

static err plan_check(struct planner *p, Holdfast__V1__TransactionCheck *check)
{
    txn_part *part;

    err e = part_get(p, "player_id", check->player_id, &part);
    if (e != ERR_OK)
        return e;
    switch (check->check_case) {
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_BALANCE:
        enter(p, "balance");
        e = balance_check(p, check->balance);
        break;
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_ITEM_UID:
        e = uid_check(p, "item_uid", check->item_uid);
        break;
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_SECTION:
        if (!text_is_name(slice_from_text(check->section->name), SECTION_NAME_BYTES_MAX))
            e = wrong(p, "section.name", "1 to 64 of [a-z0-9_]", check->section->name);
        break;
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_PLAYER_VERSION:
        break;
    default:
        e = wrong(p, "", "one of balance, item_uid, section, player_version", "");
        break;
    }
    if (e != ERR_OK)
        return e;
    if (part->checks == NULL)
        part->checks = arena_alloc(p->context->arena, sizeof *part->checks * CHECKS_MAX);
    part->checks[part->n_checks++] = check;
    return ERR_OK;
}

/* ---- changes ---- */

static err plan_grant(struct planner *p, Holdfast__V1__TransactionGrant *grant)
{
    txn_part *part;

    enter(p, "grant");
    err e = part_get(p, "player_id", grant->player_id, &part);
    if (e == ERR_OK && grant->n_currencies + grant->n_items == 0)
        e = wrong(p, "", "at least one currency or item", "");
    if (e == ERR_OK)
        e = give_amounts(p, part, grant->n_currencies, grant->currencies);
    if (e == ERR_OK)
        e = count_items(p, "items", grant->n_items);
    if (e == ERR_OK && !p->logged)
        e = within(p, wallet_items_check(p->context, grant->n_items, grant->items));
    if (e != ERR_OK || grant->n_items == 0)
        return e;
    if (part->mint == NULL)
        part->mint = arena_alloc(p->context->arena, sizeof *part->mint * TXN_ITEMS_MAX);
    for (size_t i = 0; i < grant->n_items; i++)
        part->mint[part->n_mint++] = grant->items[i];
    return ERR_OK;
}

static err plan_spend(struct planner *p, Holdfast__V1__TransactionSpend *spend)
{
    txn_part *part;

    enter(p, "spend");
    err e = part_get(p, "player_id", spend->player_id, &part);
    if (e == ERR_OK && spend->n_currencies + spend->n_item_uids == 0)
        e = wrong(p, "", "at least one currency or item", "");
    return e == ERR_OK ? take_amounts(p, part, spend->n_currencies, spend->currencies) : e;
}

static bool uids_fit(const struct planner *p, size_t count, char *const *uids)
{
    if (p->items + count > TXN_ITEMS_MAX || !item_uids_are_sound(count, uids))
        return false;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < p->uid_count; j++) {
            if (strcmp(p->uids[j], uids[i]) == 0)
                return false;
        }
    }
    return true;
}

/* Behind all else: an owner of an earlier version knew no items here, and logged whatever bytes a
 * caller had there. It took none, so those that do not fit are left alone. */
static err plan_spent_items(struct planner *p, const Holdfast__V1__TransactionSpend *spend)
{
    txn_part *part;

    enter(p, "spend");
    err e = part_get(p, "player_id", spend->player_id, &part);
    if (e != ERR_OK || (p->logged && !uids_fit(p, spend->n_item_uids, spend->item_uids)))
        return e;
    return take_uids(p, part, NULL, spend->n_item_uids, spend->item_uids);
}

static err plan_move(struct planner *p, Holdfast__V1__TransactionMove *move)
{
    txn_part *from, *to;

    enter(p, "move");
    err e = part_get(p, "from_player_id", move->from_player_id, &from);
    if (e == ERR_OK)
        e = part_get(p, "to_player_id", move->to_player_id, &to);
    if (e == ERR_OK && from == to)
        e = wrong(p, "to_player_id", "another player than from_player_id", move->to_player_id);
    if (e == ERR_OK && move->n_currencies + move->n_item_uids == 0)
        e = wrong(p, "", "at least one currency or item", "");
    if (e == ERR_OK)
        e = take_amounts(p, from, move->n_currencies, move->currencies);
    if (e == ERR_OK)
        e = give_amounts(p, to, move->n_currencies, move->currencies);
    return e == ERR_OK ? take_uids(p, from, to, move->n_item_uids, move->item_uids) : e;
}

/* Of a log of an earlier version. */
static err plan_consume(struct planner *p, Holdfast__V1__TransactionConsume *consume)
{
    txn_part *part;

    if (!p->logged)
        return wrong(p, "consume", "`spend`, which takes items, too", "consume");
    err e = part_get(p, "consume.player_id", consume->player_id, &part);
    return e == ERR_OK ? take_uids(p, part, NULL, consume->n_item_uids, consume->item_uids) : e;
}

static err edit_check(struct planner *p, const txn_part *part, Holdfast__V1__SectionEdit *edit)
{
    for (size_t i = 0; i < part->n_edits; i++) {
        if (strcmp(part->edits[i]->name, edit->name) == 0)
            return wrong(p, "edit.name", "each section of a player once", edit->name);
    }
    return section_edit_check(p->context, field_of(p, "edit"), edit);
}

static err plan_patch(struct planner *p, Holdfast__V1__TransactionPatch *patch)
{
    txn_part *part;

    enter(p, "patch");
    err e = part_get(p, "player_id", patch->player_id, &part);
    if (e == ERR_OK && patch->edit == NULL)
        e = wrong(p, "edit", "an edit of a section", "");
    if (e == ERR_OK && !p->logged)
        e = edit_check(p, part, patch->edit);
    if (e != ERR_OK)
        return e;
    if (part->edits == NULL)
        part->edits = arena_alloc(p->context->arena, sizeof *part->edits * CHANGES_MAX);
    part->edits[part->n_edits++] = patch->edit;
    return ERR_OK;
}

static err plan_change(struct planner *p, Holdfast__V1__TransactionChange *change)
{
    switch (change->change_case) {
    case HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_GRANT:
        return plan_grant(p, change->grant);
    case HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_SPEND:
        return plan_spend(p, change->spend);
    case HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_MOVE:
        return plan_move(p, change->move);
    case HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_CONSUME:
        return plan_consume(p, change->consume);
    case HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_PATCH:
        return plan_patch(p, change->patch);
    default:
        return wrong(p, "", "one of grant, spend, move, patch", "");
    }
}

/* ---- the whole ---- */

/* `system` may add, and nothing else. */
static err system_check(struct planner *p, size_t place, enum authority_kind kind)
{
    const txn_part *part = p->plan.parts[place];

    if (kind != AUTHORITY_SYSTEM || part->n_take + part->n_take_uids + part->n_edits == 0)
        return ERR_OK;
    err e = refuse(p->context->arena, p->context->refusal, CODE(PERMISSION_DENIED), "authority",
                   "player %s: the authority \"system\" may only give", part->player_id);
    p->context->refusal->limit = "session or unheld";
    p->context->refusal->value = "system";
    if (!p->logged)
        p->context->refusal->player_id = part->player_id;
    return e;
}

static err parts_check(struct planner *p)
{
    for (size_t i = 0; i < p->plan.part_count; i++) {
        txn_part *part = p->plan.parts[i];
        struct authority authority = { .kind = p->context->authority };
        if (i > 0)
            CHECK(txn_authority_load(part->authority, &authority) == ERR_OK);
        err e = system_check(p, i, authority.kind);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

/* Callers cannot see it: routers and nodes find the shard by the home player (request_shard.h). */
static err home_check(struct planner *p)
{
    struct check_context *context = p->context;
    char *home = p->plan.parts[0]->player_id;

    if (channel_shard_of(context->arena, home, context->shard_count) == context->shard)
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "player_id",
                          "a player of the shard that is asked",
                          text_shorten(context->arena, slice_from_text(home)));
}

static err room_check(struct planner *p)
{
    const struct check_context *context = p->context;

    for (size_t i = 1; i < p->plan.part_count; i++) {
        if (channel_shard_of(context->arena, p->plan.parts[i]->player_id, context->shard_count) !=
            context->shard)
            return refusal_defer(
                p->context, channel_check_room(context->arena, context->refusal, context->meta));
    }
    return ERR_OK;
}

static err whole_check(struct planner *p, const ProtobufCMessage *request)
{
    struct check_context *context = p->context;
    size_t bytes = protobuf_c_message_get_packed_size(request);

    if (p->logged)
        return ERR_OK;
    if (context->shard_count == 0)
        return refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                      "the node does not know the cluster yet; nothing was done");
    if (bytes > REQUEST_BYTES_MAX)
        return refuse_number(context->arena, context->refusal, "request",
                             "at most 131072 bytes in protobuf", (int64_t)bytes);
    err e = wallet_reason_check(context, p->plan.reason);
    if (e == ERR_OK)
        e = parts_check(p);
    if (e == ERR_OK)
        e = home_check(p);
    if (e == ERR_OK)
        e = room_check(p);
    return e;
}

static err plan_players(struct planner *p, Holdfast__V1__ExecuteTransactionRequest *request)
{
    if (request->n_others >= TXN_PLAYERS_MAX)
        return refuse_number(p->context->arena, p->context->refusal, "others",
                             "at most 7, with the home player 8", (int64_t)request->n_others);
    begin(p, request->player_id, request->n_others);
    for (size_t i = 0; i < request->n_others; i++) {
        p->field = arena_printf(p->context->arena, "others[%zu]", i);
        err e = add_player(p, request->others[i]->player_id, request->others[i]->authority,
                           "player_id", "authority");
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

static err plan_execute(struct planner *p, Holdfast__V1__ExecuteTransactionRequest *request)
{
    struct arena *arena = p->context->arena;
    err e = plan_players(p, request);

    if (e == ERR_OK && request->n_checks > CHECKS_MAX)
        e = refuse_number(arena, p->context->refusal, "checks", "at most 32",
                          (int64_t)request->n_checks);
    if (e == ERR_OK && (request->n_changes == 0 || request->n_changes > CHANGES_MAX))
        e = refuse_number(arena, p->context->refusal, "changes", "1 to 32",
                          (int64_t)request->n_changes);
    for (size_t i = 0; e == ERR_OK && i < request->n_checks; i++) {
        p->field = arena_printf(arena, "checks[%zu]", i);
        e = plan_check(p, request->checks[i]);
    }
    for (size_t i = 0; e == ERR_OK && i < request->n_changes; i++) {
        p->field = arena_printf(arena, "changes[%zu]", i);
        e = plan_change(p, request->changes[i]);
    }
    for (size_t i = 0; e == ERR_OK && i < request->n_changes; i++) {
        p->field = arena_printf(arena, "changes[%zu]", i);
        if (request->changes[i]->change_case == HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_SPEND)
            e = plan_spent_items(p, request->changes[i]->spend);
    }
    p->plan.reason = request->reason;
    return e == ERR_OK ? whole_check(p, &request->base) : e;
}

/* Names of fields are those of holdfast.v1.SwapRequest: callers know no other. */
static err plan_goods(struct planner *p, Holdfast__Internal__V1__SwapGoodsRequest *r)
{
    txn_part *home = p->plan.parts[0];
    txn_part *other = p->plan.parts[1];

    p->field = "a.gives";
    err e = take_amounts(p, home, r->n_currencies, r->currencies);
    if (e == ERR_OK)
        e = give_amounts(p, other, r->n_currencies, r->currencies);
    if (e == ERR_OK)
        e = take_uids(p, home, other, r->n_item_uids, r->item_uids);
    p->field = "b.gives";
    if (e == ERR_OK)
        e = take_amounts(p, other, r->n_other_currencies, r->other_currencies);
    if (e == ERR_OK)
        e = give_amounts(p, home, r->n_other_currencies, r->other_currencies);
    if (e == ERR_OK)
        e = take_uids(p, other, home, r->n_other_item_uids, r->other_item_uids);
    return e;
}

static err plan_swap(struct planner *p, Holdfast__Internal__V1__SwapGoodsRequest *request)
{
    size_t goods = request->n_currencies + request->n_item_uids + request->n_other_currencies +
                   request->n_other_item_uids;

    p->field = "b";
    p->plan.reason = request->reason;
    if (strcmp(request->player_id, request->other_player_id) == 0)
        return wrong(p, "player_id", "another player than a.player_id", request->other_player_id);
    if (goods == 0)
        return refuse_invalid(p->context->arena, p->context->refusal, "a.gives",
                              "at least one currency or item in a.gives or b.gives", "");
    begin(p, request->player_id, 1);
    err e =
        add_player(p, request->other_player_id, request->other_authority, "player_id", "authority");
    if (e == ERR_OK)
        e = plan_goods(p, request);
    return e == ERR_OK ? whole_check(p, &request->base) : e;
}

err transaction_plan_execute(struct check_context *context,
                             Holdfast__V1__ExecuteTransactionRequest *request,
                             struct txn_plan *ret_plan)
{
    struct planner p = { .context = context };
    err e = plan_execute(&p, request);

    *ret_plan = p.plan;
    return e;
}

err transaction_plan_swap(struct check_context *context,
                          Holdfast__Internal__V1__SwapGoodsRequest *request,
                          struct txn_plan *ret_plan)
{
    struct planner p = { .context = context };
    err e = plan_swap(&p, request);

    *ret_plan = p.plan;
    return e;
}

struct txn_plan transaction_plan_logged(struct arena *arena, const struct meta *meta,
                                        const struct op *op, const ProtobufCMessage *request)
{
    struct refusal refusal = { 0 };
    struct check_context context = {
        .arena = arena, .meta = meta, .refusal = &refusal, .caller = op->caller
    };
    struct planner p = { .context = &context, .logged = true };
    void *message = (void *)(uintptr_t)request;

    if (request->descriptor == &holdfast__internal__v1__swap_goods_request__descriptor)
        CHECK(plan_swap(&p, message) == ERR_OK);
    else
        CHECK(plan_execute(&p, message) == ERR_OK);
    return p.plan;
}

void transaction_footprint(const struct op *op, const ProtobufCMessage *request, struct need *keys)
{
    struct arena arena = { 0 };
    struct txn_plan plan = transaction_plan_logged(&arena, NULL, op, request);

    txn_execute_footprint(op, &plan, keys);
    arena_deinit(&arena);
}
