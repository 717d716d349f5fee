/*
 * outcome_row: what is stored under an op_id, in TABLE_OPERATION or TABLE_TYPED: the operation's
 * one outcome, for its retries. DESIGN section 6.
 */
#ifndef NODE_CORE_HANDLER_OUTCOME_ROW_H
#define NODE_CORE_HANDLER_OUTCOME_ROW_H

#include "holdfast/internal/v1/operation.pb-c.h"
#include "node/core/handler/handler.h"

enum outcome_state {
    OUTCOME_ROW_UNREADABLE = 0, /* Found, never stored: the row's bytes are no outcome.      */
    OUTCOME_ROW_PENDING = 1,    /* A steal in its grace period.                               */
    OUTCOME_ROW_COMMITTED = 2,  /* body: the response without WriteInfo.                      */
    OUTCOME_ROW_REFUSED = 3,    /* body: Refusal. A higher attempt is evaluated again.    */
    OUTCOME_ROW_ABORTED = 4     /* Sealed before it was carried out; attempt is UINT32_MAX.   */
};

/* What a REFUSED row said, beside its method and its payload. */
struct outcome_before {
    uint32_t attempt; /* 0 to UINT32_MAX - 1. */
    struct dot dot;
    uint64_t version;
    uint64_t decided_at_ms;
    struct slice body;
};

struct outcome_row {
    enum outcome_state state;
    uint32_t method;        /* 0: sealed unseen. */
    uint32_t attempt;       /* Highest evaluated, or the seal's. */
    struct hash128 payload; /* Zero with method 0. */
    struct dot dot;         /* Of the entry that decided it. */
    uint64_t version;       /* Of the entity, after it. */
    uint64_t decided_at_ms;
    bool keyed; /* Of a `key:` id: a row of TABLE_KEYED says when it is over. */
    /* PENDING: an earlier attempt was refused, and is if this one ends without an outcome. */
    bool refused_before;
    struct outcome_before before;
    struct slice body;
};

void outcome_row_encode(const struct outcome_row *row, struct buf *out);
NODISCARD err outcome_row_decode(struct slice bytes, struct outcome_row *ret_row);

#define OUTCOME_DAMAGE "the outcome of an operation cannot be read"

/* MISSING: the key is noted in `need`. PRESENT: ret_row->body is borrowed from the state; its state
 * may be OUTCOME_ROW_UNREADABLE, and all else is zero then. */
enum state_found outcome_row_find(struct state *state, struct slice entity, const struct op_id *id,
                                  struct need *need, struct outcome_row *ret_row);
/* Of a `key:` alone: it was decided, or sealed, more than OP_ID_KEY_MS ago, so the id stands for
 * nothing any more, and may be carried out again. What is pending stays, and what was sealed under
 * an apply version below 5. */
bool outcome_row_is_over(const struct outcome_row *row, const struct op_id *id, uint64_t now_ms);
/* Whether the answer or the refusal that it keeps can be read; the row itself can. */
bool outcome_row_body_is_sound(const struct outcome_row *row, struct arena *arena);
/* Writes the row in the open transaction; `before` follows from what stands. `is_new`: none stood,
 * or it is over; the shard's counters follow, and from apply version 5 on a `key:`'s row of
 * TABLE_KEYED. What stood under the id is in memory. */
void outcome_row_store(struct apply_context *context, const struct op_id *id, bool is_new,
                       const struct outcome_row *row);
/* COMMITTED: the ledger entry that the operation wrote, as its answer says; 0: none. */
uint64_t outcome_row_ledger_seq(const struct outcome_row *row, struct arena *arena);
/* A row of TABLE_KEYED for what was written under a `key:` by other means (row_repair.h). */
void outcome_row_date(struct apply_context *context, struct slice entity, struct slice op_id,
                      uint64_t decided_at_ms);
#define KEYS_APPLY_VERSION 5u
/* Of an operation that is pending: this attempt ends without an outcome. Its row goes, or says
 * again how an earlier attempt was refused: packets of that may still come. ERR_NEED. */
NODISCARD err outcome_row_withdraw(struct apply_context *context, const struct op_id *id);
#define REFUSED_BEFORE_APPLY_VERSION 10u
/* Who tells it. */
struct outcome_teller {
    const struct meta *meta;
    uint32_t shard;
    uint32_t version; /* What an entry of an earlier apply version told, it tells when replayed. */
};
/* The status as GetOperation and ResolveOperation tell it; a COMMITTED result has its WriteInfo.
 * Texts and bytes live in the arena. */
Holdfast__Internal__V1__OperationRecord *outcome_row_status(const struct outcome_row *row,
                                                            const struct outcome_teller *teller,
                                                            struct arena *arena);

#endif
