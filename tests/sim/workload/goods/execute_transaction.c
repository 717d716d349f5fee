/* Execute: two or three players; moves, grants, spends, edits and a check, all of it or nothing. */
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/servers/workload.h"

/* The parts of one; they point at each other. */
struct changes {
    struct request_txn_parts shared;
    Holdfast__V1__TransactionMove moves[2];
    Holdfast__V1__TransactionGrant grant;
    Holdfast__V1__TransactionSpend spend;
    Holdfast__V1__TransactionPatch patch;
    Holdfast__V1__ItemSpec item;
    Holdfast__V1__ItemSpec *items[1];
    struct edit_parts edits;
    Holdfast__V1__TransactionCheck checks[3];
    Holdfast__V1__SectionCheck section;
    Holdfast__V1__TransactionCheck *check_list[3];
    size_t check_count;
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

static bool shares_out(const struct sim_op *op, const struct changes *t)
{
    return op->other_count == 2 && t->shared.uid_count > 1 && op->twist / 7 % 4 > 0;
}

static void add_moves(const struct sim_op *op, const struct request_parts *p, struct changes *t)
{
    for (uint32_t i = 0; i < op->other_count; i++) {
        Holdfast__V1__TransactionMove *move = &t->moves[i];
        holdfast__v1__transaction_move__init(move);
        move->from_player_id = i == 0 ? request_text(p->player) : t->shared.names[0];
        move->to_player_id = t->shared.names[i];
        move->currencies = i == 0 ? t->shared.amounts : t->shared.other_amounts;
        move->n_currencies = t->shared.amount_count;
        move->item_uids = i == 0 ? t->shared.uids : t->shared.other_uids;
        if (i == 1 &&
            shares_out(op, t)) { /* Of one player's items some go to each of the others. */
            move->from_player_id = request_text(p->player);
            move->item_uids = t->shared.uids + 1;
            move->n_item_uids = t->shared.uid_count - 1;
            t->moves[0].n_item_uids = 1;
            change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_MOVE)->move = move;
            continue;
        }
        move->n_item_uids = i == 0 ? t->shared.uid_count : op->other_uid[0] != '\0';
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_MOVE)->move = move;
    }
}

/* That of the one other player, which no move takes. */
static bool spends_item(const struct sim_op *op)
{
    return op->other_count == 1 && op->other_uid[0] != '\0';
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
        t->grant.n_currencies = t->shared.amount_count;
        t->grant.items = t->items;
        t->grant.n_items = op->amount % 4 < 2;
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_GRANT)->grant = &t->grant;
    }
    if (op->amount % 5 == 0 || spends_item(op)) {
        holdfast__v1__transaction_spend__init(&t->spend);
        t->spend.player_id = last;
        t->spend.currencies = t->shared.amounts;
        t->spend.n_currencies = op->amount % 5 == 0 ? t->shared.amount_count : 0;
        t->spend.item_uids = t->shared.other_uids;
        t->spend.n_item_uids = spends_item(op);
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_SPEND)->spend = &t->spend;
    }
    if (op->amount % 7 < 3) {
        edit_parts_fill(op, &t->edits);
        holdfast__v1__transaction_patch__init(&t->patch);
        t->patch.player_id = last;
        t->patch.edit = t->edits.list[0];
        change_add(t, HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_PATCH)->patch = &t->patch;
    }
}

static Holdfast__V1__TransactionCheck *check_add(struct changes *t, int kind)
{
    Holdfast__V1__TransactionCheck *check = &t->checks[t->check_count];

    holdfast__v1__transaction_check__init(check);
    check->player_id = t->shared.names[0];
    check->check_case = (Holdfast__V1__TransactionCheck__CheckCase)kind;
    t->check_list[t->check_count++] = check;
    return check;
}

/* Of the first of the others, each kind now and then, mostly such that it holds, or nearly. */
static void add_checks(const struct sim_op *op, struct changes *t)
{
    if (op->amount % 11 < 4)
        check_add(t, HOLDFAST__V1__TRANSACTION_CHECK__CHECK_BALANCE)->balance =
            &t->shared.other_amount;
    if (op->twist / 5 % 6 == 0)
        check_add(t, HOLDFAST__V1__TRANSACTION_CHECK__CHECK_PLAYER_VERSION)->player_version =
            op->check_version;
    if (op->twist / 30 % 6 == 0) {
        holdfast__v1__section_check__init(&t->section);
        t->section.name = request_text(edit_section_name(op->twist >> 12 & 1));
        t->section.version = op->check_section;
        check_add(t, HOLDFAST__V1__TRANSACTION_CHECK__CHECK_SECTION)->section = &t->section;
    } else if (op->twist / 30 % 6 < 3 && op->other_uid[0] != '\0') {
        check_add(t, HOLDFAST__V1__TRANSACTION_CHECK__CHECK_ITEM_UID)->item_uid =
            request_text(op->other_uid);
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
    add_checks(op, &t);
    REQUEST_HEAD(request, op, parts);
    request.others = t.shared.others;
    request.n_others = op->other_count;
    request.checks = t.check_list;
    request.n_checks = t.check_count;
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
        CHECK(part->edit_count < SIM_SECTIONS);
        edit_read(change->patch->edit, &part->edits[part->edit_count++]);
    }
}

static void plan_check(const struct change *c, struct txn_model *txn,
                       const Holdfast__V1__TransactionCheck *check)
{
    struct txn_part_model *part = plan_part(txn, check->player_id);

    switch ((int)check->check_case) {
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_BALANCE:
        plan_add(part->at_least, check->balance);
        break;
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_PLAYER_VERSION:
        part->wants_version = true;
        part->version = check->player_version;
        break;
    case HOLDFAST__V1__TRANSACTION_CHECK__CHECK_SECTION:
        part->wants_section = true;
        part->section = edit_section_number(check->section->name);
        part->section_version = check->section->version;
        break;
    default:
        CHECK(check->check_case == HOLDFAST__V1__TRANSACTION_CHECK__CHECK_ITEM_UID);
        part->wants_item = true;
        part->item = goods_item_find(&c->sim->oracle->book, check->item_uid);
        break;
    }
}

static void plans(const struct change *c, struct txn_model *txn)
{
    const Holdfast__V1__ExecuteTransactionRequest *r = (const void *)c->request;

    (void)plan_part(txn, r->player_id);
    for (size_t i = 0; i < r->n_others; i++)
        (void)plan_other(txn, r->others[i]->player_id, r->others[i]->authority);
    for (size_t i = 0; i < r->n_checks; i++)
        plan_check(c, txn, r->checks[i]);
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
