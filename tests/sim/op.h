/* op: what a game server wants done, under one op_id. */
#ifndef TESTS_SIM_OP_H
#define TESTS_SIM_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/entry/entry.h"
#include "runtime/cluster/incarnation.h"

#define SIM_SECTIONS 2u

enum sim_authority { BY_SESSION, BY_SYSTEM, BY_UNHELD };

/* Which versions of a section an edit knows (edit.h). */
struct sim_edit {
    uint32_t schema;
    bool has_if_version, long_list;
    uint64_t if_version;
};

/* What a game server wants done: one op_id, however many calls. */
struct sim_op {
    uint32_t server, player, method;
    uint64_t server_life;
    char id[48];
    char entity[32];
    uint32_t attempt;
    bool has_if_version;
    uint64_t if_version;
    enum sim_authority authority;
    char token[64];
    char incarnation[INCARNATION_TEXT_SIZE];
    uint32_t mode;   /* StartSession. */
    uint32_t amount; /* Grant, Spend: also which currency. Update: the number written. */
    uint32_t twist;  /* Says what else the request has: more currencies, other edits (request.h). */
    bool seal;       /* ResolveOperation. */
    bool of_receipt; /* GetOperation: of the receipt itself. */
    uint32_t to;     /* Transfer, Send: the recipient. */
    char uid[33];    /* Transfer, Send, Spend: an item; empty: none. */
    char more_uids[2][33];        /* ... and others beside it. */
    char mail[33], more_mail[33]; /* Claim. */
    char cursor[96];              /* Lists: of the page before. */
    /* Swap, Execute: everybody else, and an item of the first of them. */
    uint32_t others[2], other_count;
    enum sim_authority other_authority[2];
    char other_tokens[2][64];
    char other_uid[33];
    uint64_t target_seq; /* Reverse, Post, Void: of the ledger entry, too; 0: by the op alone. */
    int64_t around_ms;   /* ListEntries: the time of an entry, or beside it. */
    uint64_t check_version, check_section; /* Execute: of the first of them, or nearly. */
    struct sim_edit edits[SIM_SECTIONS];
    uint32_t target;  /* Resolve, GetOperation: the op asked about. Reverse, Post, Void: which.
                       * ItemHistory: after which step. */
    uint64_t call;    /* Open call; 0: none. Rises. */
    uint32_t calls;   /* Made so far. */
    bool packet_late; /* A copy of a packet may come at any time. */
    bool shared_id;   /* Another op has it too. */
    bool hurried;     /* Its server gives it up soon, and wants it never done. */
    bool told_done, told_never, told_refused, told_nothing;
    struct dot told_dot;
};

#endif
