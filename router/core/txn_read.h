/*
 * txn_read: when several players have been read as of one moment (DESIGN section 7,
 * docs/transactions.md). Pure: the shell reads every player, round by round, each as this says, and
 * tells of every answer.
 *
 * If in two rounds, one after the other, no transaction held any player and no version rose
 * from one to the next, all that was read stood at one moment, between the two, and no transaction
 * was half done then: one would have held its players from before that moment until after it, and
 * would have been met, or would have raised the version of each that it changed.
 *
 * Under steady writes there may be no two such rounds. So after some that came to nothing the read
 * asks the owners to let new writes of its players wait (node/core/shard/read_hold.h):
 *
 *   LOOK     each player once no transaction holds it; TXN_READ_LOOKS such rounds
 *   REGISTER new writes wait from here on. Who holds a player now is told at once: these
 *            transactions, at most one for each player, may go on everywhere. No other one can hold
 *            a player of the read: it would have to begin to
 *   DRAIN    each player once they have let go of it
 *   SETTLE   the same; no later one may pass: those have all been decided. What their ends have
 *            changed since DRAIN shows here; the next SETTLE then agrees
 *
 * That comes to an end after four rounds, or five, unless the owners' patience does (they bound how
 * long writes wait). Then, or if it is refused, the read lets go, pauses and looks again, until its
 * deadline. What keeps writes waiting makes a read likely, and has no part in the proof.
 */
#ifndef ROUTER_CORE_TXN_READ_H
#define ROUTER_CORE_TXN_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "idl/limit.h"

#define TXN_READ_PLAYERS_MAX LIMIT_TRANSACTION_PLAYERS
#define TXN_READ_LOOKS       3u
#define TXN_READ_LOOKS_AGAIN 2u /* After a pause. */
#define TXN_READ_SETTLES     3u
#define TXN_READ_PAUSE_MS    10u  /* Longer by as much each time, */
#define TXN_READ_PAUSES      5u   /* so often, and by up to as much at random. */
#define TXN_READ_URGENT_MS   500u /* Having lasted so long, it may ask for more. */
#define TXN_READ_EARLY_MS    60u  /* Before the deadline no further round begins. */

enum txn_read_phase { TXN_READ_LOOK, TXN_READ_REGISTER, TXN_READ_DRAIN, TXN_READ_SETTLE };

enum txn_read_next {
    TXN_READ_WAIT,   /* Answers of this round are missing. */
    TXN_READ_AGAIN,  /* Begin the next round: read everybody once more. */
    TXN_READ_PAUSE,  /* The same, at resume_ms. */
    TXN_READ_ANSWER, /* With what this round has read. */
    TXN_READ_BUSY    /* The players were never at rest together, and time is over. */
};

/* A transaction by its name (TxnRef). */
struct txn_read_ref {
    uint32_t home, destination;
    uint64_t seq; /* 0: none. */
};

/* What a player's owner has answered. */
struct txn_read_answer {
    bool settled;               /* No transaction held the player: */
    uint64_t version;           /* it had this version. */
    struct txn_read_ref holder; /* Else; seq 0: not told. */
    bool held;                  /* New writes of the player wait for this read. */
    bool may_hold;              /* They would, if it asked. */
};

/* What a round asks of each owner (ReadSettledRequest). */
struct txn_read_ask {
    bool wait, hold, release, urgent;
    const struct txn_read_ref *pass;
    uint32_t pass_count;
};

struct txn_read {
    uint32_t count;
    uint64_t began_ms, deadline_ms;
    uint64_t random;
    enum txn_read_phase phase;
    uint32_t rounds; /* Of this phase, this one included. */
    uint32_t looks;  /* That many in the phase LOOK. */
    uint32_t pauses;
    uint32_t total; /* Rounds begun. */
    uint32_t open;  /* Answers missing in this round. */
    bool told[TXN_READ_PLAYERS_MAX];
    bool release; /* Writes may still wait for this read: at its end it lets them go. */
    bool urgent;
    /* Of this round, so far: */
    bool dirty;   /* Some player was not settled. */
    bool changed; /* Some version is another than in the round before. */
    bool refused; /* Somewhere new writes do not wait. */
    bool may_hold;
    struct txn_read_ref pass[TXN_READ_PLAYERS_MAX]; /* Holders told in this round, or the last. */
    uint32_t pass_count;
    bool clean;                              /* The round before: all were settled. */
    uint64_t versions[TXN_READ_PLAYERS_MAX]; /* Of the last answer. */
    uint64_t resume_ms;
};

/* The first round begins. `count`: 1 to TXN_READ_PLAYERS_MAX (CHECK). `random`: any number; spreads
 * the pauses. */
void txn_read_init(struct txn_read *reading, uint32_t count, uint64_t random, uint64_t now_ms,
                   uint64_t deadline_ms);
/* How each player is to be read in this round. `pass` points into `reading`. */
struct txn_read_ask txn_read_ask(const struct txn_read *reading);
/* Once in a round for each `place` (CHECK). After AGAIN and PAUSE the next round has begun; after
 * ANSWER and BUSY nothing may follow. */
enum txn_read_next txn_read_take(struct txn_read *reading, uint32_t place,
                                 const struct txn_read_answer *answer, uint64_t now_ms);

#endif
