/*
 * When several players were read as of one moment (router/core/txn_read.h): never but after two
 * rounds that agree, and then at once; until then what each round asks of the owners, and how long
 * the read may make writes wait.
 */
#include <string.h>

#include "router/core/txn_read.h"
#include "tests/sim/cores/rsim.h"

#define PLAYERS  8u
#define EARLY_MS 60u

struct player {
    uint64_t version;
    uint32_t held_by; /* The number of a transaction; 0: none. */
};

struct reading {
    struct rsim *sim;
    struct txn_read core;
    struct player players[PLAYERS];
    uint32_t count;
    uint64_t now_ms, began_ms, deadline_ms;
    enum txn_read_phase phase;
    uint32_t rounds, looks, pauses; /* `rounds`: of the phase. */
    bool lets_go;                   /* The next look lets waiting writes go. */
    uint64_t round_began_ms;
    /* Of the round before, and of this one. */
    bool rested, any_before;
    uint64_t seen[PLAYERS];
    bool dirty, changed, refused, may_hold;
    uint32_t passes[PLAYERS], pass_count; /* Transactions that held somebody at REGISTER. */
};

static bool passed(const struct reading *r, uint32_t holder)
{
    for (uint32_t i = 0; i < r->pass_count; i++) {
        if (r->passes[i] == holder)
            return true;
    }
    return false;
}

static void ask_check(struct reading *r)
{
    const struct txn_read_ask ask = txn_read_ask(&r->core);
    bool draining = r->phase == TXN_READ_DRAIN;

    PROMISE(r->sim, r->core.phase == r->phase, "the phase is %d, not %d", (int)r->core.phase,
            (int)r->phase);
    PROMISE(r->sim, ask.wait == (r->phase != TXN_READ_REGISTER), "an owner is to wait, or not");
    PROMISE(r->sim, ask.hold == (r->phase != TXN_READ_LOOK), "writes are to wait, or not");
    PROMISE(r->sim, ask.release == (r->phase == TXN_READ_LOOK && r->lets_go),
            "writes that wait are let go, or not");
    PROMISE(r->sim, ask.urgent == (r->round_began_ms >= r->began_ms + 500),
            "urgent after %llu ms, or not", (unsigned long long)(r->round_began_ms - r->began_ms));
    PROMISE(r->sim, ask.pass_count == (draining ? r->pass_count : 0), "%u may pass, not %u",
            ask.pass_count, draining ? r->pass_count : 0);
    for (uint32_t i = 0; i < ask.pass_count; i++)
        PROMISE(r->sim,
                passed(r, (uint32_t)ask.pass[i].seq) && ask.pass[i].home == 1 &&
                    ask.pass[i].destination == (uint32_t)ask.pass[i].seq % 3,
                "another transaction may pass");
}

/* What may happen to players between the answers of a round. */
static void players_go_on(struct reading *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        struct player *player = &r->players[i];

        if (player->held_by != 0 && rsim_chance(r->sim, 40)) {
            player->version += rsim_between(r->sim, 0, 1);
            player->held_by = 0;
        } else if (rsim_chance(r->sim, r->phase == TXN_READ_LOOK ? 4 : 1)) {
            player->version++;
        } else if (rsim_chance(r->sim, r->phase == TXN_READ_LOOK ? 5 : 1)) {
            player->held_by = (uint32_t)rsim_between(r->sim, 1, 6);
        }
    }
}

static struct txn_read_answer answer_of(struct reading *r, uint32_t place)
{
    const struct player *player = &r->players[place];
    struct txn_read_answer answer = { .settled = player->held_by == 0 };

    answer.held = r->phase != TXN_READ_LOOK && rsim_chance(r->sim, 97);
    answer.may_hold = rsim_chance(r->sim, 95);
    r->refused |= !answer.held;
    r->may_hold &= answer.may_hold;
    if (answer.settled) {
        answer.version = player->version;
        r->changed |= r->seen[place] != player->version;
        r->seen[place] = player->version;
        return answer;
    }
    r->dirty = true;
    if (rsim_chance(r->sim, 90))
        answer.holder = (struct txn_read_ref){ 1, player->held_by % 3, player->held_by };
    if (r->phase == TXN_READ_REGISTER && answer.holder.seq != 0 && !passed(r, player->held_by))
        r->passes[r->pass_count++] = player->held_by;
    return answer;
}

static void phase_begins(struct reading *r, enum txn_read_phase phase)
{
    r->rounds = r->phase == phase ? r->rounds + 1 : 1;
    r->phase = phase;
}

/* It lets go of what it holds, and looks again later, unless that were too late. */
static enum txn_read_next gives_way(struct reading *r)
{
    uint64_t resume_ms = r->core.resume_ms;

    r->pauses += r->pauses < 5;
    r->looks = 2;
    r->phase = TXN_READ_LOOK;
    r->rounds = 1;
    PROMISE(r->sim,
            resume_ms >= r->now_ms + 10 * r->pauses && resume_ms < r->now_ms + 10 * r->pauses + 10,
            "a pause of %lld ms, the %u.", (long long)(resume_ms - r->now_ms), r->pauses);
    return resume_ms + EARLY_MS >= r->deadline_ms ? TXN_READ_BUSY : TXN_READ_PAUSE;
}

/* What is to follow on a round in which not everybody rested. */
static enum txn_read_next wanted_next(struct reading *r)
{
    bool hopeless = r->refused || r->dirty;

    switch (r->phase) {
    case TXN_READ_LOOK:
        r->lets_go = false;
        if (!r->dirty && r->rounds < r->looks) {
            phase_begins(r, TXN_READ_LOOK);
        } else if (r->may_hold) {
            phase_begins(r, TXN_READ_REGISTER);
            r->lets_go = true;
        } else {
            return gives_way(r);
        }
        return TXN_READ_AGAIN;
    case TXN_READ_REGISTER:
        if (r->refused)
            return gives_way(r);
        phase_begins(r, r->dirty ? TXN_READ_DRAIN : TXN_READ_SETTLE);
        return TXN_READ_AGAIN;
    case TXN_READ_DRAIN:
        if (hopeless)
            return gives_way(r);
        phase_begins(r, TXN_READ_SETTLE);
        return TXN_READ_AGAIN;
    case TXN_READ_SETTLE:
        if (hopeless || r->rounds == 3)
            return gives_way(r);
        phase_begins(r, TXN_READ_SETTLE);
        return TXN_READ_AGAIN;
    }
    return TXN_READ_BUSY;
}

static void round_begins(struct reading *r, uint64_t at_ms)
{
    r->round_began_ms = at_ms;
    r->dirty = r->changed = r->refused = false;
    r->may_hold = true;
    if (r->phase == TXN_READ_REGISTER)
        r->pass_count = 0;
}

static enum txn_read_next one_round(struct reading *r)
{
    uint32_t order[PLAYERS];
    enum txn_read_next next = TXN_READ_WAIT, wanted;

    ask_check(r);
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t at = (uint32_t)rsim_between(r->sim, 0, i);
        order[i] = order[at];
        order[at] = i;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        PROMISE(r->sim, next == TXN_READ_WAIT, "a round ends without all answers: %d", (int)next);
        players_go_on(r);
        r->now_ms += rsim_chance(r->sim, 30) ? rsim_between(r->sim, 1, 12) : 0;
        if (rsim_chance(r->sim, 3) && r->now_ms + EARLY_MS + 2 < r->deadline_ms)
            r->now_ms = r->deadline_ms - EARLY_MS - 2 + rsim_between(r->sim, 0, 2);
        const struct txn_read_answer answer = answer_of(r, order[i]);
        next = txn_read_take(&r->core, order[i], &answer, r->now_ms);
    }
    bool agree = !r->dirty && ((r->any_before && r->rested && !r->changed) || r->count == 1);
    if (agree)
        wanted = TXN_READ_ANSWER;
    else if (r->now_ms + EARLY_MS >= r->deadline_ms)
        wanted = TXN_READ_BUSY;
    else
        wanted = wanted_next(r);
    PROMISE(r->sim, next == wanted, "after a round of %u players follows %d, not %d", r->count,
            (int)next, (int)wanted);
    r->rested = !r->dirty;
    r->any_before = true;
    return next;
}

static void one_read(struct rsim *sim)
{
    struct reading r = { .sim = sim, .looks = 3, .rounds = 1, .may_hold = true };
    enum txn_read_next next;
    uint32_t rounds = 0;

    r.count = (uint32_t)rsim_between(sim, 1, PLAYERS);
    for (uint32_t i = 0; i < r.count; i++)
        r.players[i].version = rsim_between(sim, 1, 9);
    r.now_ms = r.began_ms = r.round_began_ms = rsim_between(sim, 0, 1000);
    r.deadline_ms = r.now_ms + rsim_between(sim, 50, rsim_chance(sim, 50) ? 300 : 2000);
    if (rsim_chance(sim, 30))
        r.now_ms += rsim_between(sim, 470, 500);
    txn_read_init(&r.core, r.count, rsim_next(sim), r.began_ms, r.deadline_ms);
    do {
        next = one_round(&r);
        if (next == TXN_READ_PAUSE)
            r.now_ms = r.core.resume_ms;
        round_begins(&r, r.now_ms);
        sim->counts.reads_settled += next == TXN_READ_AGAIN && r.phase == TXN_READ_SETTLE;
        sim->counts.reads_drained += next == TXN_READ_AGAIN && r.phase == TXN_READ_DRAIN;
        sim->counts.reads_paused += next == TXN_READ_PAUSE;
        PROMISE(sim, ++rounds < 1000, "a read has no end");
    } while (next == TXN_READ_AGAIN || next == TXN_READ_PAUSE);
    sim->counts.reads_answered += next == TXN_READ_ANSWER;
    sim->counts.reads_busy += next == TXN_READ_BUSY;
}

void room_reads(struct rsim *sim)
{
    for (uint32_t i = 0; i < 10; i++)
        one_read(sim);
}
