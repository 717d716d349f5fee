#include "router/core/txn_read.h"

#include <string.h>

#include "runtime/base/check.h"

static void round_begin(struct txn_read *reading, uint64_t now_ms)
{
    reading->total++;
    reading->open = reading->count;
    memset(reading->told, 0, sizeof reading->told);
    reading->dirty = false;
    reading->changed = false;
    reading->refused = false;
    reading->may_hold = true;
    reading->urgent = now_ms >= reading->began_ms + TXN_READ_URGENT_MS;
    if (reading->phase == TXN_READ_LOOK || reading->phase == TXN_READ_REGISTER)
        reading->pass_count = 0;
}

void txn_read_init(struct txn_read *reading, uint32_t count, uint64_t random, uint64_t now_ms,
                   uint64_t deadline_ms)
{
    CHECK(count > 0 && count <= TXN_READ_PLAYERS_MAX);
    *reading = (struct txn_read){
        .count = count,
        .began_ms = now_ms,
        .deadline_ms = deadline_ms,
        .random = random,
        .phase = TXN_READ_LOOK,
        .rounds = 1,
        .looks = TXN_READ_LOOKS,
    };
    round_begin(reading, now_ms);
}

struct txn_read_ask txn_read_ask(const struct txn_read *reading)
{
    enum txn_read_phase phase = reading->phase;

    return (struct txn_read_ask){
        .wait = phase != TXN_READ_REGISTER,
        .hold = phase != TXN_READ_LOOK,
        .release = phase == TXN_READ_LOOK && reading->release,
        .urgent = reading->urgent,
        .pass = reading->pass,
        .pass_count = phase == TXN_READ_DRAIN ? reading->pass_count : 0,
    };
}

static void pass_add(struct txn_read *reading, const struct txn_read_ref *holder)
{
    for (uint32_t i = 0; i < reading->pass_count; i++) {
        const struct txn_read_ref *known = &reading->pass[i];
        if (known->home == holder->home && known->destination == holder->destination &&
            known->seq == holder->seq)
            return;
    }
    CHECK(reading->pass_count < TXN_READ_PLAYERS_MAX); /* One for each player. */
    reading->pass[reading->pass_count++] = *holder;
}

static void note(struct txn_read *reading, uint32_t place, const struct txn_read_answer *answer)
{
    CHECK(place < reading->count && !reading->told[place]);
    CHECK(reading->open > 0);
    reading->told[place] = true;
    reading->open--;
    reading->refused |= !answer->held;
    reading->may_hold &= answer->may_hold;
    if (!answer->settled) {
        reading->dirty = true;
        if (reading->phase == TXN_READ_REGISTER && answer->holder.seq != 0)
            pass_add(reading, &answer->holder);
        return;
    }
    reading->changed |= reading->versions[place] != answer->version;
    reading->versions[place] = answer->version;
}

static void enter(struct txn_read *reading, enum txn_read_phase phase)
{
    reading->rounds = reading->phase == phase ? reading->rounds + 1 : 1;
    reading->phase = phase;
    reading->release |= phase == TXN_READ_REGISTER;
}

/* Lets go of what it holds; looks again later. */
static enum txn_read_next give_way(struct txn_read *reading, uint64_t now_ms)
{
    reading->rounds = 0;
    enter(reading, TXN_READ_LOOK);
    reading->rounds = 1;
    reading->looks = TXN_READ_LOOKS_AGAIN;
    reading->random = reading->random * 6364136223846793005u + 1442695040888963407u;
    reading->pauses += reading->pauses < TXN_READ_PAUSES;
    reading->resume_ms =
        now_ms + reading->pauses * TXN_READ_PAUSE_MS + (reading->random >> 33) % TXN_READ_PAUSE_MS;
    if (reading->resume_ms + TXN_READ_EARLY_MS >= reading->deadline_ms)
        return TXN_READ_BUSY;
    return TXN_READ_PAUSE;
}

/* After a round in which not everybody rested: which is the next? */
static enum txn_read_next go_on(struct txn_read *reading, uint64_t now_ms)
{
    switch (reading->phase) {
    case TXN_READ_LOOK:
        reading->release = false;
        if (reading->rounds < reading->looks && !reading->dirty)
            enter(reading, TXN_READ_LOOK);
        else if (reading->may_hold)
            enter(reading, TXN_READ_REGISTER);
        else
            return give_way(reading, now_ms);
        return TXN_READ_AGAIN;
    case TXN_READ_REGISTER:
        if (reading->refused)
            return give_way(reading, now_ms);
        enter(reading, reading->dirty ? TXN_READ_DRAIN : TXN_READ_SETTLE);
        return TXN_READ_AGAIN;
    case TXN_READ_DRAIN:
    case TXN_READ_SETTLE:
        if (reading->refused || reading->dirty ||
            (reading->phase == TXN_READ_SETTLE && reading->rounds == TXN_READ_SETTLES))
            return give_way(reading, now_ms);
        enter(reading, TXN_READ_SETTLE);
        return TXN_READ_AGAIN;
    }
    return TXN_READ_BUSY;
}

enum txn_read_next txn_read_take(struct txn_read *reading, uint32_t place,
                                 const struct txn_read_answer *answer, uint64_t now_ms)
{
    note(reading, place, answer);
    if (reading->open > 0)
        return TXN_READ_WAIT;
    bool agree = !reading->dirty && reading->clean && !reading->changed;
    bool single = !reading->dirty && reading->count == 1;
    if (agree || single)
        return TXN_READ_ANSWER;
    if (now_ms + TXN_READ_EARLY_MS >= reading->deadline_ms)
        return TXN_READ_BUSY;
    enum txn_read_next next = go_on(reading, now_ms);
    reading->clean = !reading->dirty;
    if (next == TXN_READ_AGAIN)
        round_begin(reading, now_ms);
    else if (next == TXN_READ_PAUSE)
        round_begin(reading, reading->resume_ms);
    return next;
}
