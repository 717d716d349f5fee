/*
 * Records of a channel between two shards, and decisions on them, that cannot be read
 * (docs/containment.md; node/core/repair/record_*.c, decision_repair.c): whenever a row is spoilt
 * and whenever it is repaired, the operation is carried out whole or not at all, its goods are
 * there once, and no player is held for ever.
 */
#include "idl/error_code.h"
#include "node/rpc/fixture_records.h"
#include "tests/sim/cores/rsim.h"

#define NEVER 0

struct post {
    struct rsim *sim;
    struct record_world *w;
    const struct record_kind *kind;
    const char *op;
    bool is_receipt;
    bool record_spoilt, decision_spoilt;
    int decided;  /* DECISION of the first record by its receiver; NEVER: not yet. */
    bool settled; /* The sender has heard of it. */
    bool again;   /* The record was made again: it tells no more to whom it went. */
    bool lost;    /* The repair of a receipt's record: the operation begins again. */
    bool sealed;
};

static void seal(struct post *p)
{
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;
    struct record_world *w = p->w;

    request.entity = arena_printf(&w->s.arena, "player:%s", w->ann);
    request.op_id = text_lend(p->op);
    request.seal = true;
    (void)fixture_mutate(records_on(w, 0), METHOD_RESOLVE_OPERATION, &request.base);
    p->sealed = true;
}

static void deliver(struct post *p)
{
    if (fixture_batch(&p->w->s, 0, 1)->n_credits == 0)
        return;
    deliver_response *told = records_deliver(p->w);

    for (size_t i = 0; i < told->n_results; i++) {
        int decision = (int)told->results[i]->decision;
        if (told->results[i]->seq != 1)
            continue;
        if (p->decision_spoilt)
            PROMISE(p->sim, decision == (int)DECISION(HELD), "decided again, as %d", decision);
        else if (p->decided != NEVER)
            PROMISE(p->sim, decision == p->decided, "decided as %d, and before as %d", decision,
                    p->decided);
        else if (decision != (int)DECISION(HELD))
            p->decided = decision;
    }
}

static void settle(struct post *p)
{
    if (p->w->decided == NULL || p->decided == NEVER || p->decision_spoilt)
        return;
    fixture_settle(&p->w->s, 0, 1, p->w->decided);
    p->settled |= !p->record_spoilt;
}

static void spoil_record(struct post *p)
{
    if (p->settled || p->record_spoilt || p->lost)
        return;
    records_spoil(p->w, true, 1);
    p->record_spoilt = true;
}

static void spoil_decision(struct post *p)
{
    if (p->settled || p->decided == NEVER || p->decision_spoilt || p->record_spoilt)
        return;
    records_spoil(p->w, false, 1);
    p->decision_spoilt = true;
}

static void repair_record(struct post *p)
{
    struct record_world *w = p->w;

    if (!p->record_spoilt)
        return;
    PROMISE(p->sim, fixture_batch(&w->s, 0, 1)->n_credits == 0, "a spoilt record is sent");
    repair_response *told = records_repair_sent(w, 1, records_stated(w, p->op));
    PROMISE(p->sim, told != NULL, "%s: a repair is refused: %s (%s)", p->kind->name,
            records_on(w, 0)->error->message, records_on(w, 0)->error->field);
    PROMISE(p->sim, told->record->kind == (Holdfast__V1__RecordKind)p->kind->kind,
            "%s is told as a record of kind %d", p->kind->name, (int)told->record->kind);
    p->record_spoilt = false;
    p->again = true;
    p->lost = p->is_receipt;
    p->sim->counts.records_repaired++;
}

/* By what the sender tells, and what a person adds. */
static repair_response *decide(struct post *p, int decision)
{
    struct record_world *w = p->w;
    repair_request request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    record_message record = *records_channel(w, 0, 1, "")->sent;
    char *bob = w->bob;

    if (!p->again)
        return records_repair_decision(w, 1, decision);
    record.decision = (Holdfast__V1__RecordDecision)decision;
    record.to_player_id = bob;
    record.player_ids = &bob;
    record.n_player_ids = 1;
    request.record =
        (record_message *)arena_unpack(&w->s.arena, &holdfast__v1__channel_record__descriptor,
                                       arena_pack(&w->s.arena, &record.base));
    return records_repair(w, false, 1, &request);
}

static void repair_decision(struct post *p)
{
    struct record_world *w = p->w;
    bool applied = p->decided == (int)DECISION(APPLIED);
    int truth = applied ? RECORD_DECISION(APPLIED) : RECORD_DECISION(CANCELLED);
    int lie = applied ? RECORD_DECISION(CANCELLED) : RECORD_DECISION(APPLIED);

    if (!p->decision_spoilt || p->record_spoilt || p->lost)
        return;
    if (!p->is_receipt && rsim_chance(p->sim, 40)) /* The receiver's rows know better. */
        PROMISE(p->sim, decide(p, lie) == NULL, "%s: a lie is believed", p->kind->name);
    bool asks = !applied && p->kind->kind == (int)RECORD_KIND(MAIL);
    if (asks)
        PROMISE(p->sim, decide(p, RECORD_DECISION(UNSPECIFIED)) == NULL,
                "no row proves that mail never came");
    bool says = asks || (!p->is_receipt && rsim_chance(p->sim, 50));
    repair_response *told = decide(p, says ? truth : (int)RECORD_DECISION(UNSPECIFIED));
    PROMISE(p->sim, told != NULL, "%s: a decision's repair is refused: %s (%s)", p->kind->name,
            records_on(w, 1)->error->message, records_on(w, 1)->error->field);
    PROMISE(p->sim, told->record->decision == (Holdfast__V1__RecordDecision)truth,
            "%s: decided as %d, and made again as %d", p->kind->name, truth,
            (int)told->record->decision);
    p->decision_spoilt = false;
    p->sim->counts.decisions_repaired++;
}

static void restart(struct post *p)
{
    fixture_restart_all(&p->w->s);
}

static void seal_sometimes(struct post *p)
{
    if (!p->sealed && !p->lost && !p->record_spoilt && rsim_chance(p->sim, 40))
        seal(p);
}

static void repair_all(struct post *p)
{
    repair_record(p);
    repair_decision(p);
    PROMISE(p->sim, !p->record_spoilt && (!p->decision_spoilt || p->lost), "not all is repaired");
}

/* Whole, or not at all. */
static void judge(struct post *p)
{
    struct record_world *w = p->w;
    struct rsim *sim = p->sim;

    if (p->lost) {
        records_try_again(w, p->kind);
        sim->counts.records_given_back++;
        return;
    }
    int state = records_state_of(w, p->op);
    bool committed = state == (int)OPERATION(COMMITTED);

    PROMISE(sim, committed || state == (int)OPERATION(ABORTED), "%s: the state is %d",
            p->kind->name, state);
    records_assert_all_is_there(w, committed && p->is_receipt ? PAID : 0);
    if (p->decided != NEVER && p->kind->kind != (int)RECORD_KIND(PREPARE))
        PROMISE(sim, committed == (p->decided == (int)DECISION(APPLIED)),
                "%s: the receiver has decided otherwise", p->kind->name);
    if (!committed)
        records_assert_as_before(w);
    const struct record_wealth bob = records_wealth_of(w, 1);
    PROMISE(sim,
            p->is_receipt || p->kind->open == records_text ||
                committed == (bob.gold + (int64_t)bob.orbs > 0),
            "%s: the goods are where they should not be", p->kind->name);
    sim->counts.records_went_through += committed;
    sim->counts.records_given_back += !committed;
}

void room_records(struct rsim *sim)
{
    static void (*const steps[])(struct post *) = { deliver,        settle,         spoil_record,
                                                    spoil_decision, repair_record,  repair_decision,
                                                    restart,        seal_sometimes, deliver };
    void *state = NULL;
    struct post p = { .sim = sim };
    uint32_t turns = (uint32_t)rsim_between(sim, 2, 10);

    (void)records_setup(&state);
    p.w = state;
    p.kind = &record_kinds[rsim_between(sim, 0, RECORD_KINDS - 1)];
    p.op = records_op_of(p.w, p.kind);
    p.is_receipt = p.kind->kind == (int)RECORD_KIND(RECEIPT);
    p.kind->open(p.w, OP);
    for (uint32_t i = 0; i < turns && !p.lost; i++)
        RSIM_PICK(sim, steps)(&p);
    repair_all(&p);
    if (!p.lost)
        fixture_carry_all(&p.w->s);
    judge(&p);
    (void)records_teardown(&state);
}
