/*
 * entry: one entry of a shard's log: its dot, its place, its link in the hash chain, its body.
 * The encoded form is the same on the wire and on disk, and is made once. DESIGN section 4.
 *
 * An entry is immutable once made, and counted by reference. References are taken and dropped
 * only on the thread of the shard's worker; other threads may read an entry they were lent.
 */
#ifndef NODE_CORE_ENTRY_ENTRY_H
#define NODE_CORE_ENTRY_ENTRY_H

#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/base/hash.h"

#define ENTRY_BODY_BYTES_MAX (1024u * 1024u)

/* A position no two histories share. Counters run from 1 without gaps inside an epoch. */
struct dot {
    uint64_t epoch;
    uint64_t owner; /* Replica id. */
    uint64_t counter;
};

enum entry_kind {
    ENTRY_START = 1, /* First of an epoch; body: start.h.              */
    ENTRY_OP = 2,    /* An operation; body: op.h.                      */
    ENTRY_CHECK = 3, /* Compare full digests here; body: empty.        */
    ENTRY_CUT = 4    /* Cut id raised (DESIGN section 7); body: u64.   */
};

struct entry {
    uint32_t refs;
    enum entry_kind kind;
    uint64_t index; /* Place in the shard's log, from 1 without gaps. */
    struct dot dot;
    uint64_t owner_ms;        /* Unix time of the owner; never below the entry before. */
    struct hash128 prev_hash; /* Of the entry before; zero for index 1. */
    struct hash128 hash;      /* XXH3-128 chain over prev_hash, header and body. */
    struct slice body;        /* Inside `encoded`. */
    struct slice encoded;
    uint8_t bytes[];
};

/* Orders by epoch, then counter: what promotion compares. */
int dot_compare(struct dot a, struct dot b);
/* 24 bytes: epoch, owner, counter. */
void dot_encode(struct dot dot, struct buf *out);
struct dot dot_decode(struct reader *reader);

/* What an entry says beside its body: see there. */
struct entry_head {
    uint64_t index;
    struct dot dot;
    uint64_t owner_ms;
    struct hash128 prev_hash;
};
/* Copies `body`. One reference, the caller's. */
struct entry *entry_new(enum entry_kind kind, const struct entry_head *head, struct slice body);
struct entry *entry_ref(struct entry *entry);
void entry_unref(struct entry *entry);

/*
 * The form between replicas. An entry that follows the one before it, as nearly all do, leaves out
 * what can be told from that one (its index, its dot, the hash before); any other goes whole.
 */
struct entry_place {
    uint64_t index;
    struct dot dot;
    uint64_t owner_ms;
    struct hash128 hash;
};
/* Where `entry` stands, for the one behind it. */
struct entry_place entry_place(const struct entry *entry);
/* Appends `entry` as it stands behind `before`. */
void entry_encode_after(const struct entry *entry, const struct entry_place *before,
                        struct buf *out);
/* One reference, the caller's. ERR_CORRUPT: malformed, or the hash does not match; *ret_entry
 * untouched. */
NODISCARD err entry_decode_after(struct reader *reader, const struct entry_place *before,
                                 struct entry **ret_entry);

/* Copies one encoded entry out of `bytes` (exactly one). Verifies lengths, kind and hash.
 * ERR_CORRUPT: malformed, or the hash does not match; *ret_entry untouched. */
NODISCARD err entry_decode(struct slice bytes, struct entry **ret_entry);

#endif
