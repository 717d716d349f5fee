/* The rules of Consume and Reverse, once more: an item that is consumed is gone; an operation is
 * reversed once, by what it did, and by nothing else. */
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/model.h"

#define CODE(name) HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name

/* Place in the book plus one; 0: there never was one. */
static uint32_t find_item(const struct goods_book *book, const char *uid)
{
    for (uint32_t i = 0; i < book->item_count; i++) {
        if (strcmp(book->items[i].uid, uid) == 0)
            return i + 1;
    }
    return 0;
}

static bool holds(const struct change *c, uint32_t item)
{
    const struct goods_book *book = &c->sim->oracle->book;
    uint32_t player = (uint32_t)(c->player - c->sim->oracle->players);

    return item != 0 && book->items[item - 1].place == ITEM_HELD &&
           book->items[item - 1].player == player;
}

static void leave(const struct change *c, const struct op_model *op, uint32_t item)
{
    struct goods_book *book = &c->sim->oracle->book;

    if (!holds(c, item)) {
        model_fail_op(c, op, "takes an item that the player does not hold");
        return;
    }
    book->items[item - 1].place = ITEM_GONE;
    book->items_gone++;
    c->player->now.items--;
    trace_step(c, item, book->items[item - 1].player, false, c->op.id.text);
}

static void come_back(const struct change *c, const struct op_model *op, uint32_t item)
{
    struct goods_book *book = &c->sim->oracle->book;

    if (item == 0 || book->items[item - 1].place != ITEM_GONE) {
        model_fail_op(c, op, "brings back an item that is not gone");
        return;
    }
    book->items[item - 1].place = ITEM_HELD;
    book->items[item - 1].player = (uint32_t)(c->player - c->sim->oracle->players);
    book->items_gone--;
    c->player->now.items++;
    trace_step(c, item, book->items[item - 1].player, true, c->op.id.text);
}

static struct op_model *target_of(const struct change *c)
{
    const Holdfast__V1__ReverseRequest *request = (const void *)c->request;

    return model_op(c->sim->oracle, c->op.entity, slice_from_text(request->target_op_id));
}

static bool gave(const struct op_model *target)
{
    return target->method == METHOD_GRANT || target->method == METHOD_MINT;
}

static bool is_reversible(const struct op_model *target)
{
    if (target->method == METHOD_POST)
        return !target->sent;
    return gave(target) || target->method == METHOD_SPEND || target->method == METHOD_CONSUME;
}

static void reverse(const struct change *c, const struct op_model *op)
{
    struct op_model *target = target_of(c);

    c->sim->counts.reversals++;
    if (target->state != OP_COMMITTED)
        model_fail_op(c, op, "reverses what was not carried out");
    else if (!is_reversible(target))
        model_fail_op(c, op, "reverses what cannot be reversed");
    else if (target->reversed)
        model_fail_op(c, op, "reverses a second time");
    if (c->op.authority.kind == AUTHORITY_SYSTEM && gave(target) && !target->by_system)
        model_fail_op(c, op, "takes back as the system what it did not give");
    target->reversed = true;
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        c->player->now.balances[i] -= target->net[i];
        c->sim->oracle->book.made[i] -= target->net[i];
        if (c->player->now.balances[i] < 0)
            model_fail_op(c, op, "takes back what is not there");
    }
    if (target->item != 0 && gave(target))
        leave(c, op, target->item);
    else if (target->item != 0)
        come_back(c, op, target->item);
}

/* ---- reservations ---- */
static void reserve(const struct change *c, struct op_model *op,
                    const Holdfast__V1__ReserveResponse *response)
{
    const Holdfast__V1__ReserveRequest *request = (const void *)c->request;
    struct goods *goods = &op->set_aside;

    c->sim->counts.reservations++;
    goods->amount = request->currencies[0]->amount;
    goods->currency = strcmp(request->currencies[0]->currency, "gems") == 0;
    op->expires_ms = c->entry->owner_ms + request->expires_in_ms;
    op->ledger_seq = response->ledger_seq;
    op->player = (uint32_t)(c->player - c->sim->oracle->players);
    op->open = true;
    c->player->now.balances[goods->currency] -= goods->amount;
    c->player->now.reserved[goods->currency] += goods->amount;
    if (c->player->now.balances[goods->currency] < 0)
        model_fail_op(c, op, "reserves what is not there");
    if ((uint64_t)response->expires_at_ms != op->expires_ms)
        model_fail_op(c, op, "is reserved until another time");
}

/* Once, in time; what is not posted is in the balance again. */
static void close_reservation(const struct change *c, const struct op_model *op,
                              struct op_model *target, int64_t posted)
{
    const struct goods *goods = &target->set_aside;

    if (target->state != OP_COMMITTED || target->method != METHOD_RESERVE)
        model_fail_op(c, op, "closes a reservation that never was");
    else if (!target->open)
        model_fail_op(c, op, "closes a reservation a second time");
    else if (target->expires_ms <= c->entry->owner_ms)
        model_fail_op(c, op, "closes a reservation that has expired");
    if (posted > goods->amount)
        model_fail_op(c, op, "posts more than was reserved");
    target->open = false;
    c->player->now.reserved[goods->currency] -= goods->amount;
    c->player->now.balances[goods->currency] += goods->amount - posted;
}

static struct op_model *reserve_of(const struct change *c)
{
    const char *id = c->op.method == METHOD_POST
                         ? ((const Holdfast__V1__PostRequest *)c->request)->reserve_op_id
                         : ((const Holdfast__V1__VoidRequest *)c->request)->reserve_op_id;

    return model_op(c->sim->oracle, c->op.entity, slice_from_text(id));
}

struct goods model_post(const struct change *c, const struct op_model *op)
{
    const Holdfast__V1__PostRequest *request = (const void *)c->request;
    uint32_t place = (uint32_t)(op - c->sim->oracle->ops);
    struct op_model *target = reserve_of(c);
    struct goods goods = target->set_aside;

    c->sim->counts.posted++;
    if (request->n_currencies > 0)
        goods.amount = request->currencies[0]->amount;
    close_reservation(c, op, target, goods.amount);
    c->sim->oracle->ops[place].sent = request->to_player_id[0] != 0;
    return goods;
}

void model_reservation_due(const struct change *c)
{
    const Holdfast__Internal__V1__ReservationDueRequest *request = (const void *)c->request;
    uint32_t player = (uint32_t)(c->player - c->sim->oracle->players);

    for (uint32_t i = 0; i < c->sim->oracle->op_count; i++) {
        struct op_model *op = &c->sim->oracle->ops[i];
        if (!op->open || op->player != player || op->ledger_seq != request->ledger_seq ||
            op->expires_ms > c->entry->owner_ms)
            continue;
        op->open = false;
        op->expired = true;
        c->player->now.version++;
        c->player->now.reserved[op->set_aside.currency] -= op->set_aside.amount;
        c->player->now.balances[op->set_aside.currency] += op->set_aside.amount;
        c->sim->counts.reservations_expired++;
    }
}

static void reservation_refused(const struct change *c, const struct op_model *op, int code)
{
    const struct op_model *target = reserve_of(c);

    if (code == (int)CODE(RESERVATION_CLOSED)) {
        c->sim->counts.refused_closed++;
        if (target->open || target->expired)
            model_fail_op(c, op, "is refused as posted or voided before, and was not");
    }
    if (code == (int)CODE(RESERVATION_EXPIRED)) {
        c->sim->counts.refused_expired++;
        if (!target->expired && (!target->open || target->expires_ms > c->entry->owner_ms))
            model_fail_op(c, op, "is refused as expired before its time");
    }
    if (code == (int)CODE(NOT_FOUND) && target->state == OP_COMMITTED &&
        target->method == METHOD_RESERVE && target->ms > c->shard->floor_ms)
        model_fail_op(c, op, "does not find what was reserved");
}

void model_ledger(const struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    switch (c->op.method) {
    case METHOD_REVERSE:
        reverse(c, op);
        return;
    case METHOD_RESERVE:
        reserve(c, op, (const void *)response);
        return;
    case METHOD_VOID:
        c->sim->counts.voided++;
        close_reservation(c, op, reserve_of(c), 0);
        return;
    case METHOD_POST: {
        struct goods goods = model_post(c, op);
        c->sim->oracle->book.made[goods.currency] -= goods.amount;
        return;
    }
    default:
        break;
    }
    const Holdfast__V1__ConsumeRequest *request = (const void *)c->request;
    CHECK(c->op.method == METHOD_CONSUME && request->n_item_uids == 1);
    c->sim->counts.consumed++;
    op->item = find_item(&c->sim->oracle->book, request->item_uids[0]);
    leave(c, op, op->item);
}

void model_ledger_refused(const struct change *c, const struct op_model *op,
                          const Holdfast__V1__ErrorDetail *detail)
{
    if (detail->code == CODE(ITEM_NOT_HELD)) {
        c->sim->counts.refused_items++;
        if (holds(c, find_item(&c->sim->oracle->book, detail->value)))
            model_fail_op(c, op, "is refused for an item that the player holds");
    }
    if (c->op.method == METHOD_POST || c->op.method == METHOD_VOID)
        reservation_refused(c, op, (int)detail->code);
    if (c->op.method != METHOD_REVERSE)
        return;
    const struct op_model *target = target_of(c);
    if (detail->code == CODE(ALREADY_REVERSED)) {
        c->sim->counts.refused_reversed++;
        if (!target->reversed)
            model_fail_op(c, op, "is refused as reversed before, and was not");
    }
    if (detail->code == CODE(NOT_REVERSIBLE) && is_reversible(target))
        model_fail_op(c, op, "is refused as of a kind that is not reversed");
    if (detail->code == CODE(NOT_FOUND) && target->state == OP_COMMITTED && is_reversible(target) &&
        target->ms > c->shard->floor_ms)
        model_fail_op(c, op, "does not find what was carried out");
}
