/*
 * Decisions of transactions on their way to another shard, whose records cannot be read
 * (docs/containment.md; node/core/repair/record_repair.c): whether the outcome still tells how it
 * was decided, or a person does, the transaction ends whole or not at all, and no player is held
 * for ever. No person is believed against what a row tells.
 */
#include "idl/error_code.h"
#include "node/rpc/fixture_records.h"
#include "tests/sim/cores/rsim.h"

#define FINISH_SEQ 2u /* Behind the request for a vote. */
#define ORB_STEP   2u /* The transaction took it. */

struct ending {
    struct rsim *sim;
    struct record_world *w;
    Holdfast__V1__TransactionRef ref;
    Holdfast__V1__Item orb, *orbs[1];
    bool committed;
    bool pruned;
};

/* Shard 1 votes, and the home decides: by the vote, or by a seal that comes before it. */
static void decide(struct ending *e)
{
    struct record_world *w = e->w;

    records_swap(w, OP);
    deliver_response *vote = records_deliver(w);
    e->committed = rsim_chance(e->sim, 50);
    if (!e->committed) {
        (void)fixture_seal(records_on(w, 0), w->ann, OP);
        vote = records_deliver(w);
    }
    fixture_settle(&w->s, 0, 1, vote);
    e->ref = *records_channel(w, 1, 0, w->bob)->held_by;
    if (rsim_chance(e->sim, 30)) /* It is learned, and the answer is lost. */
        (void)records_deliver(w);
}

static void spoil(struct ending *e)
{
    struct record_world *w = e->w;

    records_spoil(w, true, FINISH_SEQ);
    e->pruned = rsim_chance(e->sim, 60);
    if (e->pruned)
        records_prune(w, OP);
    if (e->pruned && rsim_chance(e->sim, 40)) /* It says nothing of what was before. */
        (void)fixture_seal(records_on(w, 0), w->ann, OP);
    if (rsim_chance(e->sim, 30))
        fixture_restart_all(&w->s);
}

static repair_response *state(struct ending *e, int decision)
{
    record_message *record = records_finish_stated(e->w, e->w->bob, &e->ref);

    record->decision = (Holdfast__V1__RecordDecision)decision;
    if (e->pruned && decision == RECORD_DECISION(COMMITTED)) {
        record->items = e->orbs;
        record->n_items = 1;
    }
    return records_repair_sent(e->w, FINISH_SEQ, record);
}

static void repair(struct ending *e)
{
    int truth = e->committed ? RECORD_DECISION(COMMITTED) : RECORD_DECISION(ABORTED);
    int lie = e->committed ? RECORD_DECISION(ABORTED) : RECORD_DECISION(COMMITTED);

    PROMISE(e->sim, fixture_batch(&e->w->s, 0, 1)->n_credits == 0, "a spoilt record is sent");
    if (e->pruned)
        PROMISE(e->sim, state(e, RECORD_DECISION(UNSPECIFIED)) == NULL, "no row tells of it");
    else
        PROMISE(e->sim, state(e, lie) == NULL, "a lie is believed against the outcome");
    bool says = e->pruned || rsim_chance(e->sim, 50);
    PROMISE(e->sim, state(e, says ? truth : (int)RECORD_DECISION(UNSPECIFIED)) != NULL,
            "a repair is refused: %s (%s)", records_on(e->w, 0)->error->message,
            records_on(e->w, 0)->error->field);
    e->sim->counts.decisions_stated += e->pruned;
    e->sim->counts.decisions_told_again += !e->pruned;
}

void room_finishes(struct rsim *sim)
{
    struct ending e = { .sim = sim };
    void *world = NULL;

    (void)records_setup(&world);
    e.w = world;
    holdfast__v1__item__init(&e.orb);
    e.orb.uid = e.w->orb;
    e.orb.kind = text_lend("orb");
    e.orb.step = ORB_STEP;
    e.orbs[0] = &e.orb;
    decide(&e);
    spoil(&e);
    repair(&e);
    fixture_carry_all(&e.w->s);
    PROMISE(sim, records_channel(e.w, 1, 0, e.w->bob)->held_by == NULL, "a player is held");
    const struct record_wealth bob = records_wealth_of(e.w, 1);
    PROMISE(sim, (bob.gold > 0) == e.committed && (bob.orbs > 0) == e.committed,
            "the goods are where they should not be");
    records_assert_all_is_there(e.w, 0);
    if (!e.committed)
        records_assert_as_before(e.w);
    (void)records_teardown(&world);
}
