/*
 * txn_read: when several players have been read as of one moment (DESIGN section 7,
 * docs/transactions.md). Pure: the shell reads each player while no transaction holds it, round by
 * round, and tells of every answer.
 *
 * If nobody's version has risen between two rounds, all that was read stood at one moment, between
 * the two, and no transaction was half done then: one would have held its players from before that
 * moment until after it, and would have been met, or would have raised the version of each that it
 * changed.
 */
#ifndef ROUTER_CORE_TXN_READ_H
#define ROUTER_CORE_TXN_READ_H

#include <stdbool.h>
#include <stdint.h>

#define TXN_READ_PLAYERS_MAX 8u
#define TXN_READ_ROUNDS_MAX  5u

enum txn_read_next {
    TXN_READ_WAIT,   /* Answers of this round are missing. */
    TXN_READ_AGAIN,  /* Begin the next round: read everybody once more. */
    TXN_READ_ANSWER, /* With what this round has read. */
    TXN_READ_BUSY    /* They change too often; nothing can be said. */
};

struct txn_read {
    uint32_t count;
    uint32_t open;                           /* Answers missing in this round. */
    uint32_t round;                          /* Ended so far. */
    bool changed;                            /* Since the round before. */
    uint64_t versions[TXN_READ_PLAYERS_MAX]; /* Of the last answer. */
};

/* The first round begins. `count`: 1 to TXN_READ_PLAYERS_MAX. */
void txn_read_init(struct txn_read *reading, uint32_t count);
/* A player was read, and was not held. Once in a round for each `place`; after AGAIN the next round
 * has begun, after ANSWER and BUSY nothing may follow (CHECK). */
enum txn_read_next txn_read_take(struct txn_read *reading, uint32_t place, uint64_t version);

#endif
