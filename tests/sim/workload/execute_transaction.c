/* Execute: two or three players; moves, grants, spends, edits and a check, all of it or nothing. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/workload.h"

/* The parts of one; they point at each other. */
struct changes {
    struct request_txn_parts shared;
    char json[48];
    Holdfast__V1__TransactionMove moves[2];
    Holdfast__V1__TransactionGrant grant;
    Holdfast__V1__TransactionSpend spend;
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

static Holdfast__V1__TransactionChange *change_add(struct changes *t, int kind)
{
    Holdfast__V1__TransactionChange *change = &t->changes[t->change_count];

    holdfast__v1__transaction_change__init(change);
    change->change_case = (Holdfast__V1__TransactionChange__ChangeCase)kind;
    t->list[t->change_count++] = change;
    return change;
}

static void add_moves(const struct sim_op *op, const struct request_parts *p, struct changes *t)
{
    for (uint32_t i = 0; i < op->other_count; i++) {
        Holdfast__V1__TransactionMove *move = &t->moves[i];
        holdfast__v1__transaction_move__init(move);
        move->from_player_id = i == 0 ? request_text(p->player) : t->shared.names[0];
        move->to_player_id = t->shared.names[i];
        move->currencies = i == 0 ? t->shared.amounts : t->shared.other_amounts;
        move->n_currencies = 1;
        move->item_uids = i == 0 ? t->shared.uids : t->shared.other_uids;
        move->n_item_uids = (i == 0 ? op->uid : op->other_uid)[0] != '\0';
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_MOVE)->move = move;
    }
}

/* That of the one other player, which no move takes. */
static bool spends_item(const struct sim_op *op)
{
    return op->other_count == 1 && op->other_uid[0] != '\0' && op->amount % 2 == 0;
}

static void add_rest(const struct sim_op *op, const struct request_parts *p, struct changes *t)
{
    char *last = t->shared.names[op->other_count - 1];

    if (op->amount % 3 == 0) {
        holdfast__v1__item_spec__init(&t->item);
        t->item.kind = request_text("ring");
        t->items[0] = &t->item;
        holdfast__v1__transaction_grant__init(&t->grant);
        t->grant.player_id = op->amount % 2 > 0 ? last : request_text(p->player);
        t->grant.currencies = t->shared.other_amounts;
        t->grant.n_currencies = 1;
        t->grant.items = t->items;
        t->grant.n_items = op->amount % 4 < 2;
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_GRANT)->grant = &t->grant;
    }
    if (op->amount % 5 == 0 || spends_item(op)) {
        holdfast__v1__transaction_spend__init(&t->spend);
        t->spend.player_id = last;
        t->spend.currencies = t->shared.amounts;
        t->spend.n_currencies = op->amount % 5 == 0;
        t->spend.item_uids = t->shared.other_uids;
        t->spend.n_item_uids = spends_item(op);
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_SPEND)->spend = &t->spend;
    }
    if (op->amount % 7 < 3) {
        holdfast__v1__section_edit__init(&t->edit);
        t->edit.name = request_text(op->amount % 2 > 0 ? "quests" : "progress");
        t->edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
        snprintf(t->json, sizeof t->json, "{\"n\":%u}", op->amount);
        t->edit.replace = t->json;
        holdfast__v1__transaction_patch__init(&t->patch);
        t->patch.player_id = last;
        t->patch.edit = &t->edit;
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_PATCH)->patch = &t->patch;
    }
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ExecuteTransactionRequest request =
        HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST__INIT;
    struct changes t = { .change_count = 0 };

    (void)sim;
    request_txn_parts_fill(op, parts, &t.shared);
    add_moves(op, parts, &t);
    add_rest(op, parts, &t);
    holdfast__v1__transaction_check__init(&t.check);
    t.check.player_id = t.shared.names[0];
    t.check.check_case = HOLDFAST__V1__TRANSACTION_CHECK__CHECK_BALANCE;
    t.check.balance = &t.shared.other_amount;
    t.checks[0] = &t.check;
    REQUEST_HEAD(request, op, parts);
    request.others = t.shared.others;
    request.n_others = op->other_count;
    request.checks = t.checks;
    request.n_checks = op->amount % 11 < 4;
    request.changes = t.list;
    request.n_changes = t.change_count;
    request_pack(&request.base, out);
}

static void plan_change(const struct change *c, struct txn_model *txn,
                        const Holdfast__V1__TransactionChange *change)
{
    struct txn_part_model *part;

    if (change->change_case == HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_MOVE) {
        const Holdfast__V1__TransactionMove *move = change->move;
        part = plan_part(txn, move->from_player_id);
        struct txn_part_model *to = plan_part(txn, move->to_player_id);
        plan_move(part, to, move->n_currencies, move->currencies);
        plan_items(c, part, to, move->n_item_uids, move->item_uids);
    } else if (change->change_case == HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_GRANT) {
        part = plan_part(txn, change->grant->player_id);
        for (size_t i = 0; i < change->grant->n_currencies; i++)
            plan_add(part->give, change->grant->currencies[i]);
        part->mint_count += (uint32_t)change->grant->n_items;
    } else if (change->change_case == HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_SPEND) {
        part = plan_part(txn, change->spend->player_id);
        for (size_t i = 0; i < change->spend->n_currencies; i++)
            plan_add(part->take, change->spend->currencies[i]);
        plan_items(c, part, NULL, change->spend->n_item_uids, change->spend->item_uids);
    } else {
        CHECK(change->change_case == HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_PATCH);
        part = plan_part(txn, change->patch->player_id);
        uint32_t section = strcmp(change->patch->edit->name, "quests") == 0;
        part->edits[section] = model_section(change->patch->edit->replace) + 1;
    }
}

static void plans(const struct change *c, struct txn_model *txn)
{
    const Holdfast__V1__ExecuteTransactionRequest *r = (const void *)c->request;

    (void)plan_part(txn, r->player_id);
    for (size_t i = 0; i < r->n_others; i++)
        (void)plan_other(txn, r->others[i]->player_id, r->others[i]->authority);
    for (size_t i = 0; i < r->n_checks; i++) {
        CHECK(r->checks[i]->check_case == HOLDFAST__V1__TRANSACTION_CHECK__CHECK_BALANCE);
        plan_add(plan_part(txn, r->checks[i]->player_id)->at_least, r->checks[i]->balance);
    }
    for (size_t i = 0; i < r->n_changes; i++)
        plan_change(c, txn, r->changes[i]);
}

const struct workload_row workload_execute_transaction = {
    .method = METHOD_EXECUTE_TRANSACTION,
    .shares = { [WISH_TRADE] = { .place = 1, .weight = 500 } },
    .others_max = 2,
    .encode = encode,
    .rule = { .plans = plans },
};
