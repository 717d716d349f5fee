/*
 * record: one mergeable record, a dotted causal container: cells that are there, each with the dot
 * of the write that made it, and the context of all that was taken in. A dot in the context without
 * a cell was overwritten or removed. All policies merge alike; they differ in what a write replaces
 * and in what a read shows (policy.h).
 *
 * A merge drops no cell by its time or value: of concurrent values the losers stay, unseen, until a
 * write covers them. Else a merge were not associative: what a loser's removal depends on would
 * depend on the order of messages.
 */
#ifndef NODE_CORE_MERGEABLE_RECORD_H
#define NODE_CORE_MERGEABLE_RECORD_H

#include "node/core/mergeable/causal.h"
#include "runtime/base/hash.h"

#define MERGE_PATH_BYTES_MAX  255u
#define MERGE_VALUE_BYTES_MAX (1024u * 1024u)
/* What a write may leave behind. */
#define MERGE_CELLS_WRITTEN_MAX 1024u
#define MERGE_BYTES_WRITTEN_MAX (2u * 1024u * 1024u)
/* What so many members can merge into that each wrote as much, apart from all others: the old, the
 * new and the departing ones of a shard. No record becomes larger (absorb.h): all bounds of what
 * carries one, on a disk or on a link, are above. */
#define MERGE_SIDES_MAX 21u
#define MERGE_CELLS_MAX (MERGE_SIDES_MAX * MERGE_CELLS_WRITTEN_MAX)
#define MERGE_BYTES_MAX (MERGE_SIDES_MAX * MERGE_BYTES_WRITTEN_MAX)

/* The numbers stand in rows, for ever. */
enum merge_policy {
    MERGE_POLICY_NONE = 0,    /* Of a record that a replica does not have; no row says so. */
    MERGE_POLICY_LWW = 1,     /* A value, or one per top-level field: the last write is shown. */
    MERGE_POLICY_MERGE = 2,   /* A value per leaf of a document; "/" between the names of a path. */
    MERGE_POLICY_SET = 3,     /* Elements; an addition wins over a concurrent removal. */
    MERGE_POLICY_VECTOR = 4,  /* Siblings: all values that no write has seen. */
    MERGE_POLICY_COUNTER = 5, /* Sums of increments (counter.h). */
    MERGE_POLICY_COUNT
};

/* One value. Immutable and counted: records share cells. */
struct merge_cell {
    uint32_t refs;
    uint32_t path_size, value_size;
    struct merge_dot dot;
    uint64_t hlc;        /* Unix ms in the upper 48 bits, a count in the lower 16. */
    uint64_t expires_ms; /* Unix time from which it is not shown; 0: never. */
    uint64_t op;         /* Hash of the operation's id; 0: none. Siblings of one are one. */
    uint8_t bytes[];     /* Path, then value. */
};

/* A zeroed record is a valid empty one: nothing is there, nothing was taken in. */
struct merge_record {
    enum merge_policy policy;
    uint64_t erasure; /* Of its entity, when it was written. Greater numbers win over all below. */
    uint32_t count, capacity;
    struct merge_cell **cells; /* By path, then dot. Their dots are in the context. */
    struct causal context;
    /* The record's own latest dots that some member may lack, those of removals too: what a caller
     * that was shown this record has seen. The context cannot tell, as floors of the clock are
     * mixed in. */
    struct causal recent;
};

struct merge_cell_form {
    struct slice path, value;
    struct merge_dot dot;
    uint64_t hlc, expires_ms, op;
};
/* Copies what the form has; one reference, the caller's. */
struct merge_cell *merge_cell_new(const struct merge_cell_form *form);
struct merge_cell *merge_cell_ref(struct merge_cell *cell);
void merge_cell_unref(struct merge_cell *cell);
struct slice merge_cell_path(const struct merge_cell *cell);
struct slice merge_cell_value(const struct merge_cell *cell);
/* The order of last write wins: hybrid time, then dot. Never 0 for two dots. */
int merge_cell_order(const struct merge_cell *a, const struct merge_cell *b);

void merge_record_deinit(struct merge_record *record);
void merge_record_copy(struct merge_record *to, const struct merge_record *from);
/* Adds a cell and takes over the caller's reference; its dot goes into the context. */
void merge_record_add(struct merge_record *record, struct merge_cell *cell);
/* Removes the cells for which `gone` is true: one flag a cell. */
void merge_record_remove(struct merge_record *record, const bool *gone);
/* Nothing is there, and clocks say all the rest: it needs no row. */
bool merge_record_is_void(const struct merge_record *record);
/* Bytes of paths and values. */
uint64_t merge_record_bytes(const struct merge_record *record);

/* Merges the state of another replica. Both contexts are full, or the record's own limit is what it
 * says. True: cells, context or erasure changed. The policies are equal or one is NONE. */
bool merge_record_join(struct merge_record *record, const struct merge_record *other);
/* The same cells of the same erasure, and, with `context`, the same context. */
bool merge_record_equal(const struct merge_record *a, const struct merge_record *b, bool context);
/* Of what all replicas have to agree on: policy, erasure and cells. */
struct hash128 merge_record_digest(const struct merge_record *record);

/* u8 format (1), u8 policy, compact erasure, context, recent, compact count of cells; if there are
 * any, compact count of actors, u64 each, compact Unix ms of the earliest; per cell u8 flags (1
 * count, 2 op, 4 end), compact place of its actor, compact counter, compact ms since the earliest,
 * compact count of its time, u64 op, compact expires_ms, u8 path size, path, compact value size,
 * value. */
void merge_record_encode(const struct merge_record *record, struct buf *out);
/* Decodes exactly what one encode wrote, from a reader that may hold more. ERR_CORRUPT: malformed,
 * over a limit, or out of order; *ret_record untouched. Free with merge_record_deinit. */
NODISCARD err merge_record_decode(struct reader *reader, struct merge_record *ret_record);

#endif
