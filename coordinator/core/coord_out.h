/* coord_out: what a step wants done: transactions in etcd and calls to nodes. */
#ifndef COORDINATOR_CORE_COORD_OUT_H
#define COORDINATOR_CORE_COORD_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/cluster/wire.h"

enum { COORD_TXN_WRITES_MAX = 64 };

/* Carried out if `key` still has mod_revision (0: is absent) and, unless they are empty, absent_key
 * is absent and after_key has after_revision, 0 if it is absent; each write on its own, as a nested
 * transaction. What is new rests on records that were read: an etcd that was restored meanwhile may
 * lack them. */
struct coord_write {
    bool remove; /* Delete `key` instead of putting `value`. */
    struct slice key;
    struct slice value;
    int64_t mod_revision;
    struct slice absent_key;
    struct slice after_key;
    int64_t after_revision;
};

/*
 * One transaction: if election_key (unless empty) has election_revision as its create revision,
 * then each write. Only creating the cluster's record comes without an election key: a listener
 * needs the cluster's id before it can campaign, and create-if-absent needs no leader.
 */
struct coord_txn {
    uint64_t ticket;
    struct slice election_key;
    int64_t election_revision;
    const struct coord_write *writes;
    uint32_t write_count; /* 1 to COORD_TXN_WRITES_MAX. */
};

/* A call to `node`, which the record names as owner of `shard`. */
struct coord_call {
    uint64_t call;
    uint64_t node;
    uint32_t shard;
    uint16_t method; /* EXPIRE_SERVER, APPLY_POLICY, TAKE_CUT, AUDIT_SEARCH, CONTAIN_PLAYER,
                      * MEMBER_STATE, DEFINE, GET_DEFINED; GET_NODE_STATUS goes to any node, about
                      * all shards. */
    uint32_t timeout_ms;
    struct slice body;
};

/* The answer to an ASK: exactly one, at once or in a later step. */
struct coord_answer {
    uint64_t call;
    enum wire_status status; /* OK: the response. REFUSED: a Refusal. UNKNOWN: no body. */
    struct slice body;
};

/* Actions of one step; all memory is the core's or the out's, valid until the next step or
 * coord_out_clear. A zeroed one is valid. */
struct coord_out {
    struct coord_txn *txns;
    uint32_t txn_count, txn_capacity;
    struct coord_call *calls;
    uint32_t call_count, call_capacity;
    struct coord_answer *answers;
    uint32_t answer_count, answer_capacity;
    struct arena arena;
};

void coord_out_clear(struct coord_out *out);
void coord_out_deinit(struct coord_out *out);

/* An answer to a caller; `body` is packed into `out`. NULL: none. */
void coord_answer_put(struct coord_out *out, uint64_t call, enum wire_status status,
                      const ProtobufCMessage *body);
/* A Refusal; texts are copied. */
void coord_refusal_put(struct coord_out *out, uint64_t call,
                       const Holdfast__Internal__V1__Refusal *refusal);

#endif
