/* The rules of DESIGN sections 5 and 6, once more, as plainly as they can be said: sessions by
 * fences, operations by their ids, balances by sums. */
#include <inttypes.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/outcome_row.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "tests/sim/events/event.h"
#include "tests/sim/model/model.h"

/* DESIGN section 6. */
#define OP_ID_AHEAD_MS (5u * 60u * 1000u)

static void item_refused(const struct change *c, const struct op_model *op,
                         const Holdfast__Internal__V1__Refusal *detail)
{
    CHECK(detail->code == CODE(ITEM_NOT_HELD));
    c->sim->counts.refused_items++;
    if (model_item_is_held(c, goods_item_find(&c->sim->oracle->book, detail->value)))
        model_fail_op(c, op, "is refused for an item that the player holds");
}

static void op_refused(struct change *c, struct op_model *op)
{
    const Holdfast__Internal__V1__Refusal *detail = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__internal__v1__refusal__descriptor, c->outcome->body);

    CHECK(detail != NULL);
    if (detail->code == CODE(OPERATION_ID_MISMATCH) && !detail->final) {
        c->sim->counts.mismatches++;
        if (op->method == 0 || hash128_equal(op->payload, c->payload))
            model_fail_op(c, op, "is refused as another request, and is the same");
        return;
    }
    if (!c->outcome->duplicate)
        model_check_reason(c, op, (int)detail->code);
    if (detail->code == CODE(SERVER_EXPIRED))
        c->sim->counts.expired_refused++;
    c->sim->counts.stale_writes_refused += c->outcome->stale_write;
    op->waited |= c->outcome->waits;
    if (!detail->final)
        return;
    c->sim->oracle->pending -= op->state == OP_PENDING;
    if (op->state == OP_COMMITTED)
        model_fail_op(c, op, "is refused after it was carried out");
    if (c->outcome->duplicate) {
        if (op->state != OP_ABORTED && (op->state != OP_REFUSED || c->op.attempt > op->attempt))
            model_fail_op(c, op, "gets a stored refusal that was never stored");
        return;
    }
    op->state = OP_REFUSED;
    op->attempt = c->op.attempt;
    op->refused_index = c->entry->index;
    op->refused_ms = c->sim->now_ms;
    if (receipt_is_id(c->op.id.text))
        receipt_refused(c, detail);
    if (c->rule->plans == NULL && detail->code == CODE(ITEM_NOT_HELD))
        item_refused(c, op, detail);
    if (c->rule->refused != NULL)
        c->rule->refused(c, op, detail);
}

static void op_repeated(struct change *c, const struct op_model *op)
{
    if (op->body_hash != 0 && op->body_hash != hash_u64(c->outcome->body))
        model_fail_op(c, op, "gets another outcome than the first time");
    c->sim->counts.duplicates++;
    c->sim->counts.callers_again +=
        op->caller[0] != 0 && !slice_equal(slice_from_text(op->caller), c->op.caller);
    if (op->state != OP_COMMITTED || dot_compare(op->dot, c->outcome->dot) != 0 ||
        op->version != c->outcome->version)
        model_fail_op(c, op, "gets a stored outcome that is not its own");
    if (!hash128_equal(op->payload, c->payload))
        model_fail_op(c, op, "gets the outcome of another request");
}

/* An id so old that nothing is remembered of it, or would be for long. What is PENDING is never
 * forgotten; of what is decided the shard may know for a while below the floor, and then tells it.
 */
static bool is_too_old(const struct change *c, const struct op_model *op)
{
    uint64_t window_ms = applier_meta(c->shard->applier)->policy.operation_window_ms;

    if (op->ms > c->shard->floor_ms)
        return op->state == OP_NONE && op->ms != UINT64_MAX &&
               op->ms + window_ms < c->entry->owner_ms;
    return op->state == OP_NONE || op->forgotten ||
           (op->state != OP_PENDING && !c->outcome->duplicate && floor_refuses(c));
}

/* A transfer to another shard: debited, and pending until it is decided there. */
static void on_its_way(struct change *c, struct op_model *op)
{
    if (c->outcome->duplicate) {
        c->sim->counts.duplicates++;
        if (op->state != OP_PENDING)
            model_fail_op(c, op, "is told as pending, and is not");
        return;
    }
    if (op->state == OP_PENDING)
        model_fail_op(c, op, "is debited a second time");
    bool refused_before = op->state == OP_REFUSED;
    uint32_t attempt_before = op->attempt;
    model_asked(c, op);
    caller_take(c, op);
    op->refused_before = refused_before && applier_meta(c->shard->applier)->apply_version >=
                                               REFUSED_BEFORE_APPLY_VERSION;
    op->attempt_before = attempt_before;
    model_check_version(c, op);
    if (!receipt_is_id(c->op.id.text))
        model_version_rises(c, op);
    op->state = OP_PENDING;
    op->settled_index = 0;
    c->sim->oracle->pending++;
    if (receipt_is_id(c->op.id.text))
        receipt_opened(c, op);
    else if (c->rule->plans != NULL)
        txn_opened(c, op);
    else if (c->rule->sends != NULL)
        goods_opened(c, op);
    else
        model_fail_op(c, op, "is pending, and is of a kind that waits for nothing");
}

/* What is refused for the moment leaves what stood, though it is over. */
static bool is_for_the_moment(const struct change *c)
{
    if (c->outcome->kind != OUTCOME_REFUSED)
        return false;
    const Holdfast__Internal__V1__Refusal *detail = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__internal__v1__refusal__descriptor, c->outcome->body);
    CHECK(detail != NULL);
    return !detail->final;
}

/* The operation that the id stands for, from this entry on. */
static struct op_model *op_of(struct change *c)
{
    struct op_model *op = model_op(c->sim->oracle, c->op.entity, c->op.id.text);
    uint64_t now_ms = c->entry->owner_ms;

    op->shard = c->number;
    c->was = op->state;
    if (model_key_is_over(c->shard, op, now_ms) && c->outcome->duplicate)
        model_fail_op(c, op, "is over, and its outcome is told");
    if (!model_key_may_be_over(c->shard, op, now_ms) || c->outcome->duplicate ||
        is_for_the_moment(c))
        return op;
    return model_key_again(c, op);
}

static void identified(struct change *c)
{
    struct op_model *op = op_of(c);
    const struct outcome *outcome = c->outcome;
    bool fresh = outcome->kind == OUTCOME_COMMITTED && !outcome->duplicate;

    if (op->ms != UINT64_MAX && op->ms > c->entry->owner_ms + OP_ID_AHEAD_MS &&
        outcome->kind != OUTCOME_REFUSED)
        model_fail_op(c, op, "has an id of the future, and is not refused");
    if (is_too_old(c, op)) {
        c->sim->counts.ops_expired++;
        op->too_old = true;
        if (outcome->kind != OUTCOME_REFUSED || outcome->duplicate)
            model_fail_op(c, op, "is older than what is remembered, and not refused");
        return;
    }
    if (fresh) {
        caller_take(c, op);
        model_carried_out(c, op);
        op->body_hash = hash_u64(c->outcome->body);
        if (receipt_is_id(c->op.id.text))
            receipt_done(c);
    } else if (outcome->kind == OUTCOME_COMMITTED) {
        op_repeated(c, op);
    } else if (outcome->kind == OUTCOME_REFUSED) {
        op_refused(c, op);
    } else if (c->rule->claims != NULL) {
        if (!outcome->duplicate) {
            model_check_free(c, op);
            if (c->was != OP_PENDING)
                model_check_version(c, op);
            c->rule->claims(c, op);
        }
    } else {
        on_its_way(c, op);
    }
    if (op->method == 0 && op->state != OP_NONE && op->state != OP_ABORTED) {
        op->method = c->op.method;
        op->payload = c->payload;
    }
}

/* What the model itself relies on, as long as nothing is broken. */
static void model_check(const struct change *c)
{
    const struct oracle *oracle = c->sim->oracle;
    const struct goods_book *book = &oracle->book;

    if (c->sim->failure[0] != '\0')
        return;
    CHECK(oracle->pending <= oracle->op_count);
    CHECK(book->items_gone <= book->item_count && book->open <= book->transfer_count);
    for (uint32_t i = 0; i < SIM_CURRENCIES && c->player != NULL; i++)
        CHECK(c->player->now.reserved[i] >= 0);
    CHECK(c->player == NULL || c->player->txn <= book->txn_count);
    CHECK(c->player == NULL || c->player->now.index == c->entry->index);
}

static void say(const struct change *c)
{
    static const char *const kinds[] = { "done", "refused", "pending", "-" };
    const struct op *op = &c->op;

    if (!c->sim->verbose)
        return;
    sim_say(c->sim,
            "LOG      s%u %" PRIu64 " (%" PRIu64 ".%" PRIu64 ") %s %.*s %.*s attempt %u "
            "fence %" PRIu64 ": %s%s",
            c->number, c->entry->index, c->entry->dot.epoch, c->entry->dot.counter,
            strchr(method_find(op->method)->name, '/') + 1, (int)op->entity.size,
            (const char *)op->entity.data, (int)op->id.text.size, (const char *)op->id.text.data,
            op->attempt, op->authority.fence, kinds[c->outcome->kind],
            c->outcome->duplicate ? ", again" : "");
}

static void touch(const struct change *c)
{
    for (uint32_t i = 0; i < c->sim->player_count; i++) {
        struct player_model *player = &c->sim->oracle->players[i];
        if (player == c->player ||
            (player->shard == c->number && player->free_ms == c->sim->now_ms))
            player->touched_index = c->entry->index;
    }
}

void model_apply(struct sim *sim, uint32_t number, const struct entry *entry,
                 const struct outcome *outcome)
{
    struct change c = { .sim = sim,
                        .shard = &sim->oracle->shards[number],
                        .number = number,
                        .entry = entry,
                        .outcome = outcome };

    arena_reset(&sim->oracle->arena);
    if (entry->kind != ENTRY_OP) {
        sim_say(sim, "LOG      s%u %" PRIu64 " (%" PRIu64 ".%" PRIu64 ") of node %" PRIu64, number,
                entry->index, entry->dot.epoch, entry->dot.counter, entry->dot.owner);
        return;
    }
    CHECK(op_decode(entry->body, &c.op) == ERR_OK);
    c.rule = model_rule(sim->oracle, c.op.method);
    /* Attempt and authority stand beside the request in an entry, not in it. */
    c.payload =
        hash_chain((struct hash128){ { (uint8_t)c.op.method } }, c.op.request, (struct slice){ 0 });
    c.player = model_player(sim, c.op.entity);
    c.request = arena_unpack(&sim->oracle->arena, method_find(c.op.method)->request, c.op.request);
    CHECK(c.request != NULL);
    say(&c);
    if (sim->damaged)
        return;
    if (c.op.id.text.size > 0 && !valid_request(c.op.method, c.request)) {
        model_fail(&c, "a request is logged that is not valid", c.op.method);
        return;
    }
    if (c.op.id.text.size > 0)
        identified(&c);
    else if (c.rule->logged != NULL)
        c.rule->logged(&c);
    if (c.op.method == METHOD_SESSION_DUE && c.player->txn != 0 &&
        (outcome->session_freed || outcome->decided_op_id.size > 0))
        sim_fail(sim, number,
                 "entry %" PRIu64 ": a session passes on while a transaction holds "
                 "the player",
                 entry->index);
    if (outcome->decided_op_id.size > 0) {
        model_session_decided(&c);
        if (c.op.method == METHOD_SESSION_DUE && !outcome->decided_refused)
            c.player->now.version++;
    }
    touch(&c);
    if (c.player != NULL)
        model_remember(c.player, entry->index);
    model_check(&c);
    rows_check(&c);
    event_check(&c);
    answer_check(&c);
}
