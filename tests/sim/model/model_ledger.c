/* What Spend, Reverse and the methods of reservations share: an item that is gone may come back;
 * a reservation is closed once, in time. */

#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/delivery/channel_settle.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"

#define CLOSE_MS 50u /* Just before its end. */

bool model_item_is_held(const struct change *c, uint32_t item)
{
    const struct goods_book *book = &c->sim->oracle->book;
    uint32_t player = model_player_number(c);

    CHECK(item <= book->item_count);
    return item != 0 && book->items[item - 1].place == ITEM_HELD &&
           book->items[item - 1].player == player;
}

void model_item_goes(const struct change *c, const struct op_model *op, uint32_t item)
{
    struct goods_book *book = &c->sim->oracle->book;

    CHECK(item <= book->item_count);
    if (!model_item_is_held(c, item)) {
        model_fail_op(c, op, "takes an item that the player does not hold");
        return;
    }
    book->items[item - 1].place = ITEM_GONE;
    book->items_gone++;
    c->player->now.items--;
    trace_step(c, item, book->items[item - 1].player, false, c->op.id.text);
}

void model_item_comes_back(const struct change *c, const struct op_model *op, uint32_t item)
{
    struct goods_book *book = &c->sim->oracle->book;

    CHECK(item <= book->item_count);
    if (item == 0 || book->items[item - 1].place != ITEM_GONE) {
        model_fail_op(c, op, "brings back an item that is not gone");
        return;
    }
    book->items[item - 1].place = ITEM_HELD;
    book->items[item - 1].player = model_player_number(c);
    book->items_gone--;
    c->player->now.items++;
    trace_step(c, item, book->items[item - 1].player, true, c->op.id.text);
}

struct op_model *model_target(const struct change *c, const char *op_id)
{
    CHECK(c->player != NULL);
    return model_op(c->sim->oracle, c->op.entity, slice_from_text(op_id));
}

/* ---- reservations ---- */
bool model_names_another(const struct change *c, const struct op_model *target)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(c->request->descriptor, "reserve_seq");

    CHECK(field != NULL);
    uint64_t seq = *(const uint64_t *)(const void *)((const uint8_t *)c->request + field->offset);
    return seq != 0 && seq != target->entry_seq;
}

void model_close_reservation(const struct change *c, const struct op_model *op,
                             struct op_model *target, const struct goods *posted)
{
    const struct goods *goods = &target->set_aside;

    CHECK(op != target);
    c->sim->counts.closed_just_before +=
        target->open && target->expires_ms < c->entry->owner_ms + CLOSE_MS;
    if (model_names_another(c, target) && !target->is_key)
        model_fail_op(c, op, "closes a reservation by another's entry");
    if (target->state != OP_COMMITTED || target->method != METHOD_RESERVE_CURRENCIES)
        model_fail_op(c, op, "closes a reservation that never was");
    else if (!target->open)
        model_fail_op(c, op, "closes a reservation a second time");
    else if (target->expires_ms <= c->entry->owner_ms)
        model_fail_op(c, op, "closes a reservation that has expired");
    target->open = false;
    c->player->now.reservations--;
    target->closed_index = c->entry->index;
    target->closed_by = (uint32_t)(op - c->sim->oracle->ops) + 1;
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if (posted->amounts[i] > goods->amounts[i])
            model_fail_op(c, op, "posts more than was reserved");
        c->player->now.reserved[i] -= goods->amounts[i];
        c->player->now.balances[i] += goods->amounts[i] - posted->amounts[i];
    }
}

/* Goods that came back are never told as posted, nor what is on its way as decided. */
static void closed_is_told(const struct change *c, const struct op_model *op,
                           const struct op_model *target,
                           const Holdfast__Internal__V1__Refusal *detail)
{
    const struct op_model *by =
        target->closed_by > 0 ? &c->sim->oracle->ops[target->closed_by - 1] : NULL;

    if (by == NULL || by->is_key || target->is_key || model_names_another(c, target) ||
        applier_meta(c->shard->applier)->apply_version < CAME_BACK_APPLY_VERSION)
        return;
    bool came_back = by->sent && (by == op || by->state == OP_REFUSED || by->state == OP_ABORTED);
    bool on_its_way = by->sent && by != op && by->state == OP_PENDING;
    if (came_back != detail->came_back || on_its_way != detail->on_its_way)
        model_fail_op(c, op, "is told that what a reservation posted arrived, or came back");
}

void model_reservation_refused(const struct change *c, const struct op_model *op,
                               const struct op_model *target,
                               const Holdfast__Internal__V1__Refusal *detail)
{
    int code = (int)detail->code;

    if (code == (int)CODE(RESERVATION_CLOSED)) {
        c->sim->counts.refused_closed++;
        if (target->open || target->expired)
            model_fail_op(c, op, "is refused as posted or voided before, and was not");
        closed_is_told(c, op, target, detail);
    }
    if (code == (int)CODE(RESERVATION_EXPIRED)) {
        c->sim->counts.refused_expired++;
        c->sim->counts.refused_before_due += target->open;
        if (!target->expired && (!target->open || target->expires_ms > c->entry->owner_ms))
            model_fail_op(c, op, "is refused as expired before its time");
    }
    if (code == (int)CODE(NOT_FOUND) && !model_names_another(c, target) &&
        target->state == OP_COMMITTED && target->method == METHOD_RESERVE_CURRENCIES &&
        target->ms > c->shard->floor_ms &&
        !model_key_may_be_over(c->shard, target, c->entry->owner_ms))
        model_fail_op(c, op, "does not find what was reserved");
}
