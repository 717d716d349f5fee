/*
 * write: a caller writes a record at this member, on whichever side of a partition it is.
 */
#ifndef NODE_CORE_MERGEABLE_WRITE_H
#define NODE_CORE_MERGEABLE_WRITE_H

#include "node/core/mergeable/policy.h"
#include "node/core/mergeable/replica.h"

struct merge_write {
    struct merge_key *key;
    enum merge_policy policy; /* Of its collection, for ever. */
    enum merge_durability durability;
    uint32_t edit_count;
    const struct merge_edit *edits;
    bool whole;         /* Replaces everything that is there. */
    struct slice token; /* What the caller had seen; empty: it does not say. */
    /* Hash of what names the operation; 0: none. While a value of another attempt stands, this one
     * changes nothing. */
    uint64_t op;
    uint64_t op_ms; /* Of a counter's operation: Unix time of its first attempt. */
};

struct merge_written {
    struct merge_dot dot;
    uint64_t ticket; /* Names the answer in merge_out. */
};

/* What it would leave of the record; a token that cannot be read has seen nothing. */
struct merge_left merge_write_left(const struct merge_replica *replica,
                                   const struct merge_record *record,
                                   const struct merge_write *write);

/* Writes, logs, and sends to all peers. The answer comes in merge_out: at once with MEMORY, once on
 * this disk with ONE, once on the disks of a majority, of both in a joint configuration, with
 * MAJORITY. Nothing is written on error, and ret_refusal names the field.
 *
 * ERR_INVALID: the write, or the token, is none; "op_id": an attempt
 * of the operation that stands asked for other increments. ERR_TOO_LARGE: over a limit of one
 * write. ERR_FULL: over a limit of the record, of actors or of pending calls. ERR_CONFLICT:
 * "op_ms", the operation is older than the window of retries. ERR_STALE_EPOCH: the token is of
 * another generation, or before an erasure. ERR_UNAVAILABLE: "member": not one; "syncing"; "clock":
 * off its peers' by `value` ms; "op_ms": ahead of this member's clock; "majority": out of reach;
 * "actor": this process's was closed; "token": of a later erasure. */
NODISCARD err merge_write(struct merge_replica *replica, uint64_t now_ms,
                          const struct merge_write *write, struct merge_written *ret_written,
                          struct merge_refusal *ret_refusal);

/* Removes all that the record has, of a counter too, whose operations are told apart no more: by a
 * write of this member's, as merge_write with ONE. ERR_NOT_FOUND: it has nothing. */
NODISCARD err merge_drop(struct merge_replica *replica, uint64_t now_ms, struct merge_key *key,
                         struct merge_written *ret_written);

/* The owner's sweep: removes by a write of its own what expired MERGE_SWEEP_LATE_MS ago in the
 * first record behind `after` (NULL: of all) that has such values. ERR_NOT_FOUND: none has. Other
 * errors as merge_write. *ret_key is a reference of the caller. */
NODISCARD err merge_sweep(struct merge_replica *replica, uint64_t now_ms,
                          const struct merge_key *after, struct merge_key **ret_key,
                          struct merge_written *ret_written);

#endif
