/* The rules of docs/receipts.md, once more: a receipt is bound by the log of its own shard, first
 * come, for ever; only then, and only to whom it is bound, it pays, once. */
#include <inttypes.h>
#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/ledger.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "tests/sim/model/model.h"

#define STATE(name) HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_##name
#define KIND        "receipt:"
#define PAID_MAX    1024u

bool receipt_is_id(struct slice op_id)
{
    return op_id.size > strlen(KIND) && memcmp(op_id.data, KIND, strlen(KIND)) == 0;
}

static void fail(const struct change *c, const struct receipt_model *receipt, const char *what)
{
    sim_fail(c->sim, c->number, "entry %" PRIu64 ": %s %s", c->entry->index, receipt->id, what);
}

/* ---- whose they are ---- */
static uint32_t find(const struct goods_book *book, struct slice id)
{
    for (uint32_t i = 0; i < book->receipt_count; i++) {
        if (slice_equal(slice_from_text(book->receipts[i].id), id))
            return i + 1;
    }
    return 0;
}

static uint32_t get(const struct change *c, struct slice id)
{
    struct goods_book *book = &c->sim->oracle->book;
    uint32_t found = find(book, id);

    if (found != 0)
        return found;
    if (book->receipt_count == book->receipt_capacity) {
        book->receipt_capacity = book->receipt_capacity * 2 + 64;
        book->receipts =
            mem_realloc(book->receipts, sizeof *book->receipts * book->receipt_capacity);
    }
    struct receipt_model *receipt = &book->receipts[book->receipt_count++];
    *receipt = (struct receipt_model){ 0 };
    CHECK(id.size < sizeof receipt->id);
    memcpy(receipt->id, id.data, id.size);
    return book->receipt_count;
}

static struct receipt_model *at(const struct change *c, uint32_t place)
{
    CHECK(place > 0 && place <= c->sim->oracle->book.receipt_count);
    return &c->sim->oracle->book.receipts[place - 1];
}

static bool may_have(const struct receipt_model *receipt, uint32_t player, struct hash128 payload)
{
    return !receipt->bound ||
           (receipt->player == player && hash128_equal(receipt->payload, payload));
}

static void bind(const struct change *c, struct receipt_model *receipt, uint32_t player,
                 struct hash128 payload)
{
    if (!may_have(receipt, player, payload))
        fail(c, receipt, "is bound a second time");
    if (!receipt->bound) {
        receipt->bound_index = c->entry->index;
        c->sim->counts.receipts_bound++;
    }
    receipt->bound = true;
    receipt->player = player;
    receipt->payload = payload;
}

/* Mail without goods stands in no ledger. */
static bool is_letter(const struct change *c)
{
    const Holdfast__Internal__V1__DeliverToPlayerRequest *mail = (const void *)c->request;

    return c->op.method == METHOD_DELIVER_TO_PLAYER && mail->n_currencies + mail->n_items == 0;
}

static void pay(const struct change *c, struct receipt_model *receipt)
{
    if (!receipt->bound || receipt->player != model_player_number(c))
        fail(c, receipt, "pays whom it is not bound to");
    if (receipt->paid)
        fail(c, receipt, "pays twice");
    receipt->paid = true;
    receipt->entered = !is_letter(c);
    c->sim->counts.receipts_paid++;
}

static bool is_here(const struct change *c)
{
    return shard_of_entity(c->op.id.text, c->sim->shard_count) == c->number;
}

/* ---- in one entry ---- */
void receipt_done(struct change *c)
{
    struct receipt_model *receipt = at(c, get(c, c->op.id.text));

    if (!is_here(c))
        fail(c, receipt, "pays before it was asked for");
    bind(c, receipt, model_player_number(c), c->payload);
    pay(c, receipt);
    c->sim->counts.receipts_local++;
}

void receipt_refused(struct change *c, const Holdfast__Internal__V1__Refusal *detail)
{
    struct receipt_model *receipt = at(c, get(c, c->op.id.text));

    if (detail->code == CODE(SESSION_LOST) || detail->code == CODE(SESSION_LOCKED) ||
        detail->code == CODE(PERMISSION_DENIED) || detail->code == CODE(VERSION_CONFLICT))
        return;
    if (!is_here(c))
        fail(c, receipt, "is refused before it was asked for");
    else if (detail->code != CODE(OPERATION_ID_MISMATCH))
        bind(c, receipt, model_player_number(c), c->payload);
    else if (may_have(receipt, model_player_number(c), c->payload))
        fail(c, receipt, "is refused as another's, and is not");
    else
        c->sim->counts.receipts_rejected++;
}

/* ---- through the channel ---- */
void receipt_opened(struct change *c, struct op_model *op)
{
    uint32_t place = get(c, c->op.id.text);
    uint32_t player = model_player_number(c);

    if (is_here(c))
        fail(c, at(c, place), "is pending on one shard");
    if (c->outcome->version != c->player->now.version)
        model_fail_op(c, op, "changes the player before it is paid");
    const struct transfer_model *t =
        goods_record_open(c, &(struct transfer_model){
                                 .from = player,
                                 .to = player,
                                 .op = (uint32_t)(op - c->sim->oracle->ops) + 1,
                                 .receipt = place,
                                 .payload = c->payload,
                             });
    if (c->outcome->channel.opened_seq != t->seq ||
        c->outcome->channel.destination != t->destination)
        fail(c, at(c, place), "waits for a record that it did not open");
    c->sim->counts.receipts_asked++;
}

void receipt_delivered(struct change *c, struct transfer_model *record,
                       const Holdfast__Internal__V1__ChannelCredit *credit)
{
    struct receipt_model *receipt = at(c, record->receipt);

    CHECK(record->receipt != 0);
    c->sim->counts.receipts_cancelled += record->decision == CANCELLED;
    if (credit == NULL) {
        if (record->decision != CANCELLED)
            fail(c, receipt, "is decided by a cancel");
        return;
    }
    if (credit->receipt == NULL || strcmp(credit->op_id, receipt->id) != 0 ||
        credit->receipt->player_id[1] != (char)('0' + (int)record->from))
        fail(c, receipt, "is asked for by another record");
    if (record->decision == APPLIED)
        bind(c, receipt, record->from, record->payload);
    else if (may_have(receipt, record->from, record->payload))
        fail(c, receipt, "is rejected without a reason");
    c->sim->counts.receipts_rejected += record->decision == REJECTED;
}

static const struct settled *told_of(const struct change *c, const struct transfer_model *record)
{
    const struct channel_effect *effect = &c->outcome->channel;

    for (uint32_t i = 0; i < effect->settled_count; i++) {
        if (effect->settled[i].destination == record->destination &&
            effect->settled[i].seq == record->seq)
            return &effect->settled[i];
    }
    return NULL;
}

/* The operation as its own entry had it, and this one's time and outcome. */
static struct change own_change(const struct change *c, const struct op_model *op,
                                const struct transfer_model *record, const struct outcome *outcome)
{
    const struct entry *opened = c->shard->entries[op->index - 1];
    struct change own = *c;

    CHECK(op->index > 0 && op->index <= c->shard->count);
    CHECK(op_decode(opened->body, &own.op) == ERR_OK);
    own.rule = model_rule(c->sim->oracle, own.op.method);
    own.player = &c->sim->oracle->players[record->from];
    own.request =
        arena_unpack(&c->sim->oracle->arena, method_find(own.op.method)->request, own.op.request);
    own.payload = record->payload;
    own.outcome = outcome;
    own.was = OP_PENDING;
    CHECK(own.request != NULL);
    return own;
}

static void ends_refused(struct change *own, struct op_model *op,
                         const struct transfer_model *record, const struct settled *told)
{
    struct receipt_model *receipt = at(own, record->receipt);
    const Holdfast__Internal__V1__Refusal *detail = (const void *)arena_unpack(
        &own->sim->oracle->arena, &holdfast__internal__v1__refusal__descriptor, told->body);

    CHECK(op->state == OP_PENDING && told->refused);
    CHECK(detail != NULL);
    own->sim->oracle->pending--;
    if ((record->decision == REJECTED) != (detail->code == CODE(OPERATION_ID_MISMATCH)))
        fail(own, receipt, "is refused otherwise than decided");
    if (!detail->final) {
        if (record->decision != APPLIED || record->sealed)
            fail(own, receipt, "has no outcome though it was decided");
        model_check_reason(own, op, (int)detail->code);
        model_attempt_ends(op);
        own->sim->counts.receipts_put_off++;
        return;
    }
    bool aborted = detail->code == CODE(OPERATION_ABORTED);
    if (aborted && !record->sealed)
        fail(own, receipt, "is aborted, and was never sealed");
    if (!aborted && record->decision == CANCELLED)
        fail(own, receipt, "was cancelled, and is refused");
    if (!aborted && record->decision == APPLIED)
        model_check_reason(own, op, (int)detail->code);
    own->sim->counts.receipts_refused += !aborted && record->decision == APPLIED;
    op->state = aborted ? OP_ABORTED : OP_REFUSED;
    op->refused_index = own->entry->index;
    if (aborted)
        op->index = own->entry->index;
    if (record->sealed)
        op->attempt = UINT32_MAX;
}

void receipt_settled(struct change *c, const struct transfer_model *record)
{
    struct op_model *op = &c->sim->oracle->ops[record->op - 1];
    struct receipt_model *receipt = at(c, record->receipt);
    const struct settled *told = told_of(c, record);

    if (op->state != OP_PENDING || told == NULL) {
        fail(c, receipt, "is settled, and no operation waits for it");
        return;
    }
    struct outcome outcome = {
        .kind = OUTCOME_COMMITTED, .version = told->version, .dot = told->dot, .body = told->body
    };
    struct change own = own_change(c, op, record, &outcome);
    c->sim->counts.receipts_across_owners += record->epoch != c->entry->dot.epoch;
    if (told->refused) {
        ends_refused(&own, op, record, told);
    } else if (record->decision != APPLIED || dot_compare(told->dot, c->entry->dot) != 0) {
        fail(c, receipt, "is paid by what was never decided");
    } else {
        model_carried_out(&own, op);
        pay(&own, receipt);
    }
    model_remember(own.player, c->entry->index);
}

/* ---- what is told ---- */
void receipt_check_told(struct sim *sim, const char *id, uint64_t must_see,
                        const Holdfast__Internal__V1__OperationRecord *status)
{
    const struct goods_book *book = &sim->oracle->book;
    uint32_t place = find(book, slice_from_text(id));
    const struct receipt_model *receipt = place != 0 ? &book->receipts[place - 1] : NULL;
    bool bound = receipt != NULL && receipt->bound;

    sim->counts.receipts_told++;
    if (status->state == STATE(BOUND)) {
        if (!bound || status->bound_player_id[1] != (char)('0' + (int)receipt->player))
            sim_fail(sim, 0, "%s is told to be %s's, and is not", id, status->bound_player_id);
    } else if (status->state != STATE(UNKNOWN) || (bound && receipt->bound_index <= must_see)) {
        sim_fail(sim, 0, "%s is told to be free, and is bound", id);
    }
}

/* ---- by the rows ---- */
struct paid {
    struct sim *sim;
    struct arena arena;
    const char *ids[PAID_MAX];
    uint32_t count;
};

static void look_at(struct paid *paid, struct slice value)
{
    Holdfast__V1__LedgerEntry *entry;

    if (memmem(value.data, value.size, KIND, strlen(KIND)) == NULL)
        return;
    CHECK(ledger_row_decode(value, &paid->arena, &entry) == ERR_OK);
    if (!receipt_is_id(slice_from_text(entry->op_id)))
        return;
    for (uint32_t i = 0; i < paid->count; i++) {
        if (strcmp(paid->ids[i], entry->op_id) == 0)
            sim_fail(paid->sim, 0, "%s is in two ledgers, or twice in one", entry->op_id);
    }
    CHECK(paid->count < PAID_MAX);
    paid->ids[paid->count++] = entry->op_id;
}

void receipts_check(struct sim *sim)
{
    const struct goods_book *book = &sim->oracle->book;
    struct paid paid = { .sim = sim };
    uint32_t wanted = 0;

    for (uint32_t i = 0; i < sim->shard_count; i++) {
        struct state *state = applier_state(sim->oracle->shards[i].applier);
        const struct state_write *writes;
        uint32_t count;
        CHECK(state_checkpoint_begin(state, &writes, &count));
        for (uint32_t j = 0; j < count; j++) {
            if (writes[j].value != NULL && writes[j].key.data[0] == TABLE_LEDGER)
                look_at(&paid, (struct slice){ writes[j].value->bytes, writes[j].value->size });
        }
        state_checkpoint_end(state, false);
    }
    for (uint32_t i = 0; i < book->receipt_count; i++)
        wanted += book->receipts[i].entered;
    if (paid.count != wanted)
        sim_fail(sim, 0, "ledgers know %u receipts, paid were %u", paid.count, wanted);
    arena_deinit(&paid.arena);
}
