/* What becomes of an operation that is asked for under its own authority: it is carried out, or
 * there is a reason why not. Part of the model. */
#include <inttypes.h>

#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/proto_scan.h"
#include "runtime/base/check.h"
#include "tests/sim/model/erasure.h"
#include "tests/sim/model/model.h"

#define IF_VERSION 5u

static void op_committed(struct change *c, struct op_model *op)
{
    if (op->packets == 0)
        model_fail_op(c, op, "is carried out, and was never asked for under that id");
    if (op->state == OP_COMMITTED)
        model_fail_op(c, op, "is carried out a second time");
    if (op->state == OP_ABORTED)
        model_fail_op(c, op, "is carried out after it was sealed");
    if (op->too_old)
        model_fail_op(c, op, "is carried out after it was refused as too old");
    if (op->state == OP_REFUSED && c->op.attempt <= op->attempt)
        model_fail_op(c, op, "is carried out by an attempt that was refused");
    if (op->method != 0 && !hash128_equal(op->payload, c->payload))
        model_fail_op(c, op, "is carried out with another payload");
    c->sim->oracle->pending -= op->state == OP_PENDING;
    op->state = OP_COMMITTED;
    op->index = c->entry->index;
    op->dot = c->entry->dot;
    op->version = c->outcome->version;
    op->attempt = c->op.attempt;
    c->sim->counts.waits_granted += op->waited;
}

/* Of the request, with presence. */
static bool condition_of(const struct change *c, uint64_t *ret_version)
{
    return proto_scan_varint(c->op.request, IF_VERSION, ret_version);
}

void model_check_version(const struct change *c, const struct op_model *op)
{
    uint64_t wanted;

    if (!condition_of(c, &wanted))
        return;
    c->sim->counts.versions_held++;
    if (wanted != c->player->now.version)
        model_fail_op(c, op, "is carried out at another version than it wants");
}

static void check_version_refused(const struct change *c, const struct op_model *op)
{
    uint64_t wanted;

    c->sim->counts.versions_refused++;
    if ((!condition_of(c, &wanted) || wanted == c->player->now.version) &&
        (c->rule->edit_refused == NULL || !c->rule->edit_refused(c)))
        model_fail_op(c, op, "is refused for its version, and that stands");
    if (c->was == OP_PENDING && !receipt_is_id(c->op.id.text))
        model_fail_op(c, op, "is compared again after it waited");
}

/* Before any other shard was asked. */
static void check_plan_refused(const struct change *c, const struct op_model *op, int code)
{
    uint64_t wanted;

    if (c->was == OP_PENDING || plan_is_hindered(c))
        return;
    if (code == (int)CODE(VERSION_CONFLICT) && condition_of(c, &wanted) &&
        wanted != c->player->now.version)
        return;
    if (code == (int)CODE(VERSION_CONFLICT) || code == (int)CODE(SCHEMA_TOO_NEW) ||
        code == (int)CODE(INSUFFICIENT_FUNDS) || code == (int)CODE(ITEM_NOT_HELD) ||
        code == (int)CODE(CAPACITY_FULL))
        model_fail_op(c, op, "is refused, and all who are here could take part");
}

void model_check_reason(const struct change *c, const struct op_model *op, int code)
{
    const struct authority *authority = &c->op.authority;
    const struct player_model *player = c->player;

    if (code == (int)CODE(TXN_CONFLICT) && c->player->txn == 0 && c->rule->plans == NULL)
        model_fail_op(c, op, "meets a transaction, and none holds the player");
    c->sim->counts.txn_conflicts_told += code == (int)CODE(TXN_CONFLICT);
    c->sim->counts.refused_contained += code == (int)CODE(QUARANTINED);
    c->sim->counts.erasures_refused += code == (int)CODE(QUARANTINED) && erasure_blocks(c);
    if (code == (int)CODE(QUARANTINED) && !c->player->contained && c->rule->plans == NULL &&
        !erasure_blocks(c))
        model_fail_op(c, op, "is refused for a review that there is not");
    if (c->rule->plans != NULL) {
        check_plan_refused(c, op, code);
        return;
    }
    if (code == (int)CODE(VERSION_CONFLICT))
        check_version_refused(c, op);
    if (code == (int)CODE(SCHEMA_TOO_NEW) &&
        (c->rule->edit_refused == NULL || !c->rule->edit_refused(c)))
        model_fail_op(c, op, "is refused for a schema that is not newer");
    if (code == (int)CODE(INSUFFICIENT_FUNDS))
        policy_check_funds(c, op);
    if (code == (int)CODE(CAPACITY_FULL))
        policy_check_full(c, op);
    if (code == (int)CODE(SESSION_LOST) && model_is_held(c, c->player) &&
        authority->fence == player->fence &&
        incarnation_compare(authority->incarnation, player->incarnation) == 0)
        model_fail_op(c, op, "is refused as of a session that is lost, and the session stands");
    if (code == (int)CODE(SESSION_LOCKED) && !model_is_held(c, c->player) && player->claim_ms == 0)
        model_fail_op(c, op, "is refused for another's session, and no server has one");
    if (c->rule->refused_now != NULL)
        c->rule->refused_now(c, op, code);
}

static void check_authority(const struct change *c)
{
    const struct authority *authority = &c->op.authority;
    const struct player_model *player = c->player;

    if (authority->kind == AUTHORITY_SYSTEM && !c->rule->system_admitted)
        sim_fail(c->sim, c->number, "entry %" PRIu64 " takes or overwrites as the system",
                 c->entry->index);
    if (authority->kind == AUTHORITY_UNHELD && model_is_held(c, c->player))
        sim_fail(c->sim, c->number, "entry %" PRIu64 " writes as if no server held the player",
                 c->entry->index);
    if (authority->kind != AUTHORITY_SESSION)
        return;
    if (!model_is_held(c, c->player) || authority->fence != player->fence ||
        incarnation_compare(authority->incarnation, player->incarnation) != 0)
        sim_fail(c->sim, c->number,
                 "entry %" PRIu64 " writes under fence %" PRIu64 ", the fence is %" PRIu64 "%s",
                 c->entry->index, authority->fence, player->fence,
                 model_is_held(c, c->player) ? "" : " and free");
}

static int64_t owned(const struct player_model *player, uint32_t currency)
{
    return player->now.balances[currency] + player->now.reserved[currency];
}

static void take_effect(struct change *c, struct op_model *op)
{
    const ProtobufCMessage *response = arena_unpack(
        &c->sim->oracle->arena, method_answer(method_find(c->op.method)), c->outcome->body);
    int64_t before[SIM_CURRENCIES];

    CHECK(response != NULL);
    if (c->rule->plans != NULL) {
        txn_done(c, op);
        return;
    }
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        before[i] = owned(c->player, i);
    CHECK(c->rule->effect != NULL); /* a mutation that the workload knows */
    c->rule->effect(c, op, response);
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        op->net[i] = owned(c->player, i) - before[i];
    op->by_system = c->op.authority.kind == AUTHORITY_SYSTEM;
}

void model_attempt_ends(struct op_model *op)
{
    op->state = op->refused_before ? OP_REFUSED : OP_NONE;
    if (op->refused_before)
        op->attempt = op->attempt_before;
    else
        op->method = 0;
}

void model_check_free(const struct change *c, const struct op_model *op)
{
    if (c->player->txn != 0)
        model_fail_op(c, op, "writes a player that a transaction holds");
}

void model_asked(struct change *c, struct op_model *op)
{
    if (c->player->contained && !c->rule->passes_review)
        model_fail_op(c, op, "is carried out while the player is held back for review");
    model_check_free(c, op);
    op_committed(c, op);
    check_authority(c);
    if (c->op.authority.kind == AUTHORITY_SESSION)
        c->player->granted_ms = 0;
}

void model_version_rises(struct change *c, const struct op_model *op)
{
    if (c->outcome->version != c->player->now.version + 1)
        model_fail_op(c, op, "does not raise the version by one");
    c->player->now.version = c->outcome->version;
}

void model_carried_out(struct change *c, struct op_model *op)
{
    model_asked(c, op);
    if (c->was != OP_PENDING || receipt_is_id(c->op.id.text))
        model_check_version(c, op); /* Else it was compared before it waited. */
    model_version_rises(c, op);
    take_effect(c, op);
}
