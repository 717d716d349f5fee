/* outcome: what came of an entry that was applied: for its callers, and for replicas to compare. */
#ifndef NODE_CORE_APPLY_OUTCOME_H
#define NODE_CORE_APPLY_OUTCOME_H

#include "node/core/handler/handler.h"

enum outcome_kind {
    OUTCOME_COMMITTED, /* body: the response, without its WriteInfo (answer.h adds it).   */
    OUTCOME_REFUSED,   /* body: Refusal. Stored, unless `final` is false in it.            */
    OUTCOME_PENDING,   /* Not decided: the shard keeps the caller waiting.                     */
    OUTCOME_NONE       /* No caller waits for this one (owner-made entries, START).            */
};

struct outcome {
    enum outcome_kind kind;
    bool duplicate;
    uint64_t version;  /* The entity's, after. */
    struct dot dot;    /* The first commit's, for a duplicate. */
    struct slice body; /* Valid until the next apply. */
    uint32_t method;
    struct slice entity; /* Inside the entry. */
    bool waits;          /* REFUSED: a StartSession WAIT that may be queued, then proposed again. */
    bool stale_write;    /* REFUSED: SESSION_LOST, a fenced writer. */
    bool rate_refused;   /* REFUSED: a rate rule is passed. */
    bool unapplied;      /* REFUSED: this program cannot make sense of the entry. */
    bool session_freed;  /* Waiters of `entity` (or, if empty, of the shard) may go on. */
    /* A steal that was pending is decided by this entry (EndSession, SessionDue): the claimant's
     * operation id and its outcome body. Empty when none. */
    struct slice decided_op_id;
    bool decided_refused; /* decided_body is a Refusal: replaced, or its server expired. */
    struct slice decided_body;
    uint64_t decided_version; /* Its dot is this entry's. */
    /* What became of transfers between shards; PENDING: opened_seq is the one that is waited for.
     */
    struct channel_effect channel;
};

/* Where replicas' outcomes differ, the hash differs from here on. */
struct hash128 outcome_fold(struct hash128 running, const struct outcome *outcome,
                            uint32_t version);

#endif
