/* The rules of Consume and Reverse, once more: an item that is consumed is gone; an operation is
 * reversed once, by what it did, and by nothing else. */
#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
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

void model_ledger(const struct change *c, struct op_model *op)
{
    if (c->op.method == METHOD_REVERSE) {
        reverse(c, op);
        return;
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
