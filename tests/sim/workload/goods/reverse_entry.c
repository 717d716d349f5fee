/* Reverse: an operation is undone once, by what it did, and by nothing else. */
#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "tests/sim/servers/workload.h"

#define SEARCH_APPLY_VERSION 10u
#define SEARCHED_MAX         64u
#define TRIES_MAX            5u /* For one that is done. */

static bool is_tried(const struct sim *sim, uint32_t method)
{
    return workload_get(sim, method)->reverse_tried;
}

static bool choose(struct sim *sim, struct workload_choice *choice)
{
    const struct sim_op *earlier = NULL;

    for (uint32_t i = 0; i < TRIES_MAX && (earlier == NULL || !earlier->told_done); i++)
        earlier = server_earlier_op(sim, choice->player, is_tried);
    if (earlier != NULL)
        choice->target = (uint32_t)(earlier - sim->ops);
    return earlier != NULL;
}

static bool fill(const struct sim *sim, struct sim_op *op, const struct workload_choice *choice)
{
    CHECK(choice->target < sim->op_count);
    op->target = choice->target;
    return true;
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ReverseEntryRequest request = HOLDFAST__V1__REVERSE_ENTRY_REQUEST__INIT;

    REQUEST_HEAD(request, op, parts);
    request.target_op_id = request_text(sim->ops[op->target].id);
    request.target_seq = op->target_seq;
    request.reason = request_text("support");
    request_pack(&request.base, out);
}

static struct op_model *target_of(const struct change *c)
{
    const Holdfast__V1__ReverseEntryRequest *request = (const void *)c->request;

    return model_target(c, request->target_op_id);
}

static enum model_reversal reversal_of(const struct change *c, const struct op_model *target)
{
    return target->sent ? NOT_REVERSED : model_rule(c->sim->oracle, target->method)->reversal;
}

static void check_target(const struct change *c, const struct op_model *op,
                         const struct op_model *target)
{
    enum model_reversal reversal = reversal_of(c, target);

    if (target->state != OP_COMMITTED)
        model_fail_op(c, op, "reverses what was not carried out");
    else if (reversal == NOT_REVERSED)
        model_fail_op(c, op, "reverses what cannot be reversed");
    else if (target->reversed)
        model_fail_op(c, op, "reverses a second time");
    if (c->op.authority.kind == AUTHORITY_SYSTEM && reversal == REVERSED_BY_TAKING &&
        !target->by_system)
        model_fail_op(c, op, "takes back as the system what it did not give");
}

/* It says which entry, and the operation left another. */
static bool names_another(const struct change *c, const struct op_model *target)
{
    const Holdfast__V1__ReverseEntryRequest *request = (const void *)c->request;

    return request->target_seq != 0 && request->target_seq != target->entry_seq;
}

/* For what comes back. */
static bool lacks_room(const struct change *c, const struct op_model *target)
{
    struct goods more = { 0 };

    if (reversal_of(c, target) == REVERSED_BY_GIVING)
        more.item_count = target->item_count;
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        more.amounts[i] = target->net[i] < 0 ? -target->net[i] : 0;
    return !policy_has_room(c, &c->player->now, &more);
}

static bool lacks_funds(const struct change *c, const struct op_model *target)
{
    bool lacks = false;

    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        lacks |=
            target->net[i] > 0 && c->player->now.balances[i] - target->net[i] < policy_least(c, i);
    return lacks;
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    struct op_model *target = target_of(c);

    (void)response;
    c->sim->counts.reversals++;
    check_target(c, op, target);
    if (lacks_room(c, target))
        model_fail_op(c, op, "gives back more than the player may have");
    if (names_another(c, target) && !target->is_key)
        model_fail_op(c, op, "reverses an operation by another's entry");
    target->reversed = true;
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        c->player->now.balances[i] -= target->net[i];
        c->sim->oracle->book.made[i] -= target->net[i];
        if (target->net[i] > 0 && c->player->now.balances[i] < policy_least(c, i))
            model_fail_op(c, op, "takes back what is not there");
    }
    for (uint32_t i = 0; i < target->item_count; i++) {
        if (reversal_of(c, target) == REVERSED_BY_TAKING)
            model_item_goes(c, op, target->items[i]);
        else
            model_item_comes_back(c, op, target->items[i]);
    }
}

/* All entries of the player are looked through, so none needs a stored outcome. */
static bool is_searched(const struct change *c)
{
    return applier_meta(c->shard->applier)->apply_version >= SEARCH_APPLY_VERSION &&
           c->player->entry_count <= SEARCHED_MAX;
}

static void refused(const struct change *c, const struct op_model *op,
                    const Holdfast__Internal__V1__Refusal *detail)
{
    const struct op_model *target = target_of(c);
    bool reversible = reversal_of(c, target) != NOT_REVERSED;

    if (detail->code == CODE(ALREADY_REVERSED)) {
        c->sim->counts.refused_reversed++;
        if (!target->reversed)
            model_fail_op(c, op, "is refused as reversed before, and was not");
    }
    if (detail->code == CODE(INSUFFICIENT_FUNDS) && !lacks_funds(c, target))
        model_fail_op(c, op, "is refused for funds that are there");
    if (detail->code == CODE(CAPACITY_FULL) && !lacks_room(c, target))
        model_fail_op(c, op, "is refused for a limit that is not reached");
    if (detail->code == CODE(PERMISSION_DENIED) &&
        (target->by_system || c->op.authority.kind != AUTHORITY_SYSTEM ||
         reversal_of(c, target) != REVERSED_BY_TAKING))
        model_fail_op(c, op, "is refused to the system, which gave it");
    if (detail->code == CODE(NOT_REVERSIBLE) && reversible)
        model_fail_op(c, op, "is refused as of a kind that is not reversed");
    if (detail->code == CODE(NOT_FOUND) && !names_another(c, target) &&
        target->state == OP_COMMITTED && reversible &&
        (is_searched(c) || (target->ms > c->shard->floor_ms &&
                            !model_key_may_be_over(c->shard, target, c->entry->owner_ms))))
        model_fail_op(c, op, "does not find what was carried out");
}

const struct workload_row workload_reverse_entry = {
    .method = METHOD_REVERSE_ENTRY,
    .shares = { [WISH_LEDGER] = { .place = 1, .weight = 40 } },
    .reverse_tried = true,
    .choose = choose,
    .fill = fill,
    .encode = encode,
    .rule = { .system_admitted = true, .effect = effect, .refused = refused },
};
