/* Grant: currency comes to be, or an item, or both. */
#include "tests/sim/servers/workload.h"

/* Of six grants one is of an item, and one of both. Receipts have amounts that 3 divides. */
static bool has_item(const struct sim_op *op)
{
    return op->amount / 3 % 6 > 3;
}

static bool has_currency(const struct sim_op *op)
{
    return op->amount / 3 % 6 != 4;
}

static bool is_large(const struct sim_op *op)
{
    return op->twist / 16 % 24 == 0;
}

/* More often several than what takes them. */
static size_t currencies(const struct sim_op *op)
{
    return op->twist % 2 > 0 || is_large(op) ? 1 : 1 + op->twist / 2 % SIM_CURRENCIES;
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.currencies = parts->amounts;
    parts->amount.amount += op->twist >> 27; /* What is spent must be given. */
    if (is_large(op))
        request_large(op, parts);
    request.n_currencies = has_currency(op) ? currencies(op) : 0;
    parts->item.attributes = parts->json; /* Another amount is another request. */
    parts->more_items[0].attributes = request_text("{ }");
    parts->more_items[1].attributes = request_text("{\"worn\": true, \"by\": 1}");
    request.items = parts->items;
    request.n_items = has_item(op) ? parts->item_count : 0;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__GrantRequest *request = (const void *)c->request;
    const Holdfast__V1__GrantResponse *told = (const void *)response;

    model_change_balances(c, request->n_currencies, request->currencies, 1);
    model_check_balances(c, request->n_currencies, request->currencies, told->n_balances,
                         told->balances);
    if (told->n_item_uids != request->n_items || request->n_items > SIM_GOODS_ITEMS) {
        model_fail(c, "other items are told than were asked for", told->n_item_uids);
        return;
    }
    for (size_t i = 0; i < request->n_items; i++) {
        c->player->now.items++;
        op->items[i] = goods_item_add(c, told->item_uids[i], ITEM_HELD, model_player_number(c));
        goods_item_made(c, op->items[i], request->items[i]);
    }
    op->item_count = (uint32_t)request->n_items;
    if (op->item_count > 0 && c->player->now.items > c->shard->policy.items_max)
        model_fail_op(c, op, "passes the highest number of items");
}

const struct workload_row workload_grant = {
    .method = METHOD_GRANT,
    .shares = { [WISH_WRITE] = { .place = 0, .weight = 3 },
                [WISH_RECEIPT] = { .place = 0, .weight = 3 } },
    .reverse_tried = true,
    .encode = encode,
    .rule = { .system_admitted = true,
              .reversal = REVERSED_BY_TAKING,
              .wants = WANTS_ROOM,
              .effect = effect },
};
