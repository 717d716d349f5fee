/* Game servers let players exchange things: swaps, and transactions of two or three. */
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/transaction.pb-c.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/goods.h"

/* Mostly somebody who plays here. */
static uint32_t choose_player(struct sim *sim, uint32_t server)
{
    uint32_t player = (uint32_t)sim_between(sim, 0, sim->player_count - 1);

    for (uint32_t i = 0; i < 4 && !sim->servers[server].held[player].held; i++)
        player = (uint32_t)sim_between(sim, 0, sim->player_count - 1);
    return player;
}

static void choose_other(struct sim *sim, struct sim_op *op, uint32_t place)
{
    const struct sim_server *server = &sim->servers[op->server];
    uint32_t player;

    do {
        player = choose_player(sim, op->server);
    } while (player == op->player || (place == 1 && player == op->others[0]));
    op->others[place] = player;
    op->other_authority[place] = server->held[player].held ? BY_SESSION : BY_UNHELD;
    memcpy(op->other_tokens[place], server->held[player].token, sizeof op->other_tokens[place]);
}

/* Those who take part, while they trade. */
static void read_traders(struct sim *sim, uint32_t server, uint32_t target)
{
    struct sim_op *op = op_new(sim, server, sim->ops[target].player, METHOD_TRANSACTION_READ);
    const struct sim_op *trade = &sim->ops[target];

    op->other_count = trade->other_count;
    memcpy(op->others, trade->others, sizeof op->others);
    if (sim_chance(sim, 500)) { /* The other way round. */
        op->player = trade->others[0];
        op->others[0] = trade->player;
    }
    op_call_later(sim, op, sim_between(sim, 0, 60));
}

static struct sim_op *op_of_group(struct sim *sim, uint32_t server, const uint32_t *group,
                                  uint32_t method)
{
    uint32_t first = (uint32_t)sim_between(sim, 0, SIM_READ_PLAYERS - 1);
    struct sim_op *op = op_new(sim, server, group[first], method);
    const struct sim_server *asker = &sim->servers[server];

    op->authority = asker->held[op->player].held ? BY_SESSION : BY_UNHELD;
    memcpy(op->token, asker->held[op->player].token, sizeof op->token);
    op->other_count = SIM_READ_PLAYERS - 1;
    for (uint32_t i = 0; i < op->other_count; i++) {
        uint32_t player = group[(first + 1 + i) % SIM_READ_PLAYERS];
        op->others[i] = player;
        op->other_authority[i] = asker->held[player].held ? BY_SESSION : BY_UNHELD;
        memcpy(op->other_tokens[i], asker->held[player].token, sizeof op->other_tokens[i]);
    }
    return op;
}

void server_trade(struct sim *sim, uint32_t server, const uint32_t *group)
{
    struct sim_op *op =
        op_of_group(sim, server, group, sim_chance(sim, 500) ? METHOD_SWAP : METHOD_EXECUTE);

    if (op->method == METHOD_SWAP || sim_chance(sim, 300))
        op->other_count = 1;
    op_call(sim, op);
}

void server_read_group(struct sim *sim, uint32_t server, const uint32_t *group)
{
    op_call(sim, op_of_group(sim, server, group, METHOD_TRANSACTION_READ));
}

void server_give(struct sim *sim, uint32_t server, uint32_t player)
{
    struct sim_op *op = op_new(sim, server, player, METHOD_GRANT);

    op->authority = BY_SYSTEM;
    op_call(sim, op);
}

void server_transact(struct sim *sim, uint32_t server)
{
    uint32_t player = choose_player(sim, server);
    const struct held *held = &sim->servers[server].held[player];

    if (sim->player_count < 2)
        return;
    struct sim_op *op =
        op_new(sim, server, player, sim_chance(sim, 500) ? METHOD_SWAP : METHOD_EXECUTE);
    op->authority = held->held ? BY_SESSION : BY_UNHELD;
    memcpy(op->token, held->token, sizeof op->token);
    op->other_count = 1;
    choose_other(sim, op, 0);
    if (op->method == METHOD_EXECUTE && sim->player_count > 2 && sim_chance(sim, 600)) {
        op->other_count = 2;
        choose_other(sim, op, 1);
    }
    const char *uid = sim_chance(sim, 500) ? goods_pick_item(sim, player) : NULL;
    if (uid != NULL)
        snprintf(op->uid, sizeof op->uid, "%s", uid);
    uid = sim_chance(sim, 500) ? goods_pick_item(sim, op->others[0]) : NULL;
    if (uid != NULL && strcmp(uid, op->uid) != 0)
        snprintf(op->other_uid, sizeof op->other_uid, "%s", uid);
    uint32_t target = (uint32_t)(op - sim->ops);
    op_call(sim, op);
    if (sim_chance(sim, 400))
        read_traders(sim, server, target);
    if (!sim_chance(sim, 200))
        return;
    struct sim_op *seal = op_new(sim, server, player, METHOD_RESOLVE_OPERATION);
    seal->target = target;
    seal->seal = true;
    op_call_later(sim, seal, sim_between(sim, 1, 60)); /* While it is on its way. */
}

/* ---- requests ---- */

/* The parts of one; they point at each other. */
struct txn_parts {
    char names[2][16];
    char json[48];
    Holdfast__V1__Authority authorities[2];
    Holdfast__V1__SessionAuthority sessions[2];
    Holdfast__V1__UnheldAuthority unheld;
    Holdfast__V1__CurrencyAmount amount, other_amount;
    Holdfast__V1__CurrencyAmount *amounts[1], *other_amounts[1];
    char *uids[1], *other_uids[1];
    Holdfast__V1__TransactionPlayer players[2];
    Holdfast__V1__TransactionPlayer *others[2];
    Holdfast__V1__TransactionMove moves[2];
    Holdfast__V1__TransactionGrant grant;
    Holdfast__V1__TransactionDebit debit;
    Holdfast__V1__TransactionPatch patch;
    Holdfast__V1__ItemSpec item;
    Holdfast__V1__ItemSpec *items[1];
    Holdfast__V1__SectionEdit edit;
    Holdfast__V1__TransactionCheck check;
    Holdfast__V1__TransactionCheck *checks[1];
    Holdfast__V1__TransactionChange changes[5];
    Holdfast__V1__TransactionChange *list[5];
    size_t change_count;
};

static char *text(const char *borrowed)
{
    return (char *)(uintptr_t)borrowed;
}

static void pack(const ProtobufCMessage *message, struct buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    protobuf_c_message_pack(message, buf_reserve(out, size + 1));
    out->size += size;
}

static void fill_others(const struct sim_op *op, struct txn_parts *t)
{
    holdfast__v1__unheld_authority__init(&t->unheld);
    for (uint32_t i = 0; i < op->other_count; i++) {
        memcpy(t->names[i], (char[3]){ 'p', (char)('0' + op->others[i]) }, 3);
        holdfast__v1__authority__init(&t->authorities[i]);
        holdfast__v1__session_authority__init(&t->sessions[i]);
        t->sessions[i].token = text(op->other_tokens[i]);
        t->authorities[i].kind_case = HOLDFAST__V1__AUTHORITY__KIND_UNHELD;
        t->authorities[i].unheld = &t->unheld;
        if (op->other_authority[i] == BY_SESSION) {
            t->authorities[i].kind_case = HOLDFAST__V1__AUTHORITY__KIND_SESSION;
            t->authorities[i].session = &t->sessions[i];
        }
        holdfast__v1__transaction_player__init(&t->players[i]);
        t->players[i].player_id = t->names[i];
        t->players[i].authority = &t->authorities[i];
        t->others[i] = &t->players[i];
    }
}

static void fill_goods(const struct sim_op *op, const struct goods_parts *p, struct txn_parts *t)
{
    t->amount = *p->amount;
    t->amount.amount = 1 + op->amount / 2 % 5;
    t->other_amount = t->amount;
    t->other_amount.currency = text(strcmp(p->amount->currency, "gold") == 0 ? "gems" : "gold");
    t->other_amount.amount = 1 + op->amount / 3 % 5;
    t->amounts[0] = &t->amount;
    t->other_amounts[0] = &t->other_amount;
    t->uids[0] = text(op->uid);
    t->other_uids[0] = text(op->other_uid);
}

static void swap_encode(const struct sim_op *op, const struct goods_parts *p, struct txn_parts *t,
                        struct buf *out)
{
    Holdfast__V1__SwapRequest request = HOLDFAST__V1__SWAP_REQUEST__INIT;

    request.player_id = text(p->player);
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = p->authority;
    request.other_player_id = t->names[0];
    request.other_authority = &t->authorities[0];
    request.currencies = t->amounts;
    request.n_currencies = 1;
    request.item_uids = t->uids;
    request.n_item_uids = op->uid[0] != '\0';
    request.other_currencies = t->other_amounts;
    request.n_other_currencies = op->amount % 3 > 0;
    request.other_item_uids = t->other_uids;
    request.n_other_item_uids = op->other_uid[0] != '\0';
    pack(&request.base, out);
}

static Holdfast__V1__TransactionChange *change_add(struct txn_parts *t, int kind)
{
    Holdfast__V1__TransactionChange *change = &t->changes[t->change_count];

    holdfast__v1__transaction_change__init(change);
    change->change_case = (Holdfast__V1__TransactionChange__ChangeCase)kind;
    t->list[t->change_count++] = change;
    return change;
}

static void add_moves(const struct sim_op *op, const struct goods_parts *p, struct txn_parts *t)
{
    for (uint32_t i = 0; i < op->other_count; i++) {
        Holdfast__V1__TransactionMove *move = &t->moves[i];
        holdfast__v1__transaction_move__init(move);
        move->from_player_id = i == 0 ? text(p->player) : t->names[0];
        move->to_player_id = t->names[i];
        move->currencies = i == 0 ? t->amounts : t->other_amounts;
        move->n_currencies = 1;
        move->item_uids = i == 0 ? t->uids : t->other_uids;
        move->n_item_uids = (i == 0 ? op->uid : op->other_uid)[0] != '\0';
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_MOVE)->move = move;
    }
}

static void add_rest(const struct sim_op *op, const struct goods_parts *p, struct txn_parts *t)
{
    char *last = t->names[op->other_count - 1];

    if (op->amount % 3 == 0) {
        holdfast__v1__item_spec__init(&t->item);
        t->item.kind = text("ring");
        t->items[0] = &t->item;
        holdfast__v1__transaction_grant__init(&t->grant);
        t->grant.player_id = op->amount % 2 > 0 ? last : text(p->player);
        t->grant.currencies = t->other_amounts;
        t->grant.n_currencies = 1;
        t->grant.items = t->items;
        t->grant.n_items = op->amount % 4 < 2;
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_GRANT)->grant = &t->grant;
    }
    if (op->amount % 5 == 0) {
        holdfast__v1__transaction_debit__init(&t->debit);
        t->debit.player_id = last;
        t->debit.currencies = t->amounts;
        t->debit.n_currencies = 1;
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_DEBIT)->debit = &t->debit;
    }
    if (op->amount % 7 < 3) {
        holdfast__v1__section_edit__init(&t->edit);
        t->edit.name = text(op->amount % 2 > 0 ? "quests" : "progress");
        t->edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
        snprintf(t->json, sizeof t->json, "{\"n\":%u}", op->amount);
        t->edit.replace = t->json;
        holdfast__v1__transaction_patch__init(&t->patch);
        t->patch.player_id = last;
        t->patch.edit = &t->edit;
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_PATCH)->patch = &t->patch;
    }
}

static void execute_encode(const struct sim_op *op, const struct goods_parts *p,
                           struct txn_parts *t, struct buf *out)
{
    Holdfast__V1__ExecuteRequest request = HOLDFAST__V1__EXECUTE_REQUEST__INIT;

    add_moves(op, p, t);
    add_rest(op, p, t);
    holdfast__v1__transaction_check__init(&t->check);
    t->check.player_id = t->names[0];
    t->check.check_case = HOLDFAST__V1__TRANSACTION_CHECK__CHECK_BALANCE;
    t->check.balance = &t->other_amount;
    t->checks[0] = &t->check;
    request.player_id = text(p->player);
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = p->authority;
    request.others = t->others;
    request.n_others = op->other_count;
    request.checks = t->checks;
    request.n_checks = op->amount % 11 < 4;
    request.changes = t->list;
    request.n_changes = t->change_count;
    pack(&request.base, out);
}

static void read_encode(const struct sim_op *op, const struct goods_parts *p, struct txn_parts *t,
                        struct buf *out)
{
    Holdfast__V1__TransactionServiceReadRequest request =
        HOLDFAST__V1__TRANSACTION_SERVICE_READ_REQUEST__INIT;
    char *names[] = { text(p->player), t->names[0], t->names[1] };

    request.player_ids = names;
    request.n_player_ids = 1 + op->other_count;
    pack(&request.base, out);
}

bool request_txn_encode(const struct sim_op *op, const struct goods_parts *p, struct buf *out)
{
    struct txn_parts t = { .change_count = 0 };

    if (op->method != METHOD_SWAP && op->method != METHOD_EXECUTE &&
        op->method != METHOD_TRANSACTION_READ)
        return false;
    fill_others(op, &t);
    fill_goods(op, p, &t);
    if (op->method == METHOD_SWAP)
        swap_encode(op, p, &t, out);
    else if (op->method == METHOD_EXECUTE)
        execute_encode(op, p, &t, out);
    else
        read_encode(op, p, &t, out);
    return true;
}
