/*
 * state_row: what state.h keeps, for its own files alone: one row, the table that finds it, the
 * order that ranges walk.
 */
#ifndef NODE_CORE_ROWS_STATE_ROW_H
#define NODE_CORE_ROWS_STATE_ROW_H

#include "node/core/rows/row_pool.h"
#include "node/core/rows/state.h"
#include "node/core/rows/state_run.h"
#include "runtime/base/check.h"

#define DIRTY_NONE     UINT32_MAX
#define NOTE_KEY_BYTES 2u

struct row {
    uint64_t hash;
    struct blob *value;        /* NULL: absent. */
    struct row *older, *newer; /* In the list it leaves by; clean rows that may be dropped. */
    struct row *left, *right; /* In key order, or of those that wait for it; ordered tables only. */
    uint32_t dirty_place;     /* In state->dirty; DIRTY_NONE: as in the database. */
    bool frozen;              /* In the open checkpoint. */
    bool unwritten;           /* Put as new, and no checkpoint saw it: not in the database. */
    bool forgotten;           /* Goes with the transaction's commit, if it is deleted then. */
    uint8_t listed;           /* enum drop_kind: where it waits to be dropped. */
    bool ordered;             /* In a tree, or waiting for a place in it. */
    bool waiting;
    uint16_t key_size;
    uint8_t key[];
};

struct row_slot {
    struct row *row;
    uint32_t hash; /* Lower half: most slots are passed by, and moved, without looking at rows. */
    bool left;     /* `old`: a row stood here. */
};

struct row_slots {
    struct row_slot *slots;
    uint64_t capacity; /* A power of two, or 0. */
};

/* Open addressing. When it grows, rows move a few at a time, so that no single insert pauses. */
struct row_table {
    struct row_slots now, old;
    uint64_t migrated; /* Slots of `old` that are empty for good. */
    uint64_t row_count;
};

/* What an open transaction changed: a row, or a record that it added to the run. */
struct undo {
    struct run_record *record;
    struct row *row; /* Neither: a note; `value` is its own. */
    struct blob *value;
    bool was_dirty;
    bool was_missing;
    bool was_forgotten;
    uint8_t note[NOTE_KEY_BYTES];
};

/* Every row of the database under `prefix`, above `after` and up to `to`, is in memory. */
struct coverage {
    struct buf prefix, after, to;
    bool complete; /* ... and there are none above `to`. */
    uint64_t used; /* Larger is later. */
};
#define COVERAGES_MAX 128u

/* A treap, and rows that have no place in it yet: they get it when somebody asks for the order.
 * Most rows are never asked for before they are dropped. */
struct order_tree {
    struct row *root;
    struct row *waiting; /* Linked by `left` and `right`, the newest first. */
    bool asked;          /* Somebody asked for a range: of tables that are ordered from then on. */
    uint32_t shape;      /* Rises with each change of the tree. */
};

/* Of one table: new rows that were never looked at. */
struct fresh {
    struct run run;
    struct run frozen;    /* Those of the open checkpoint... */
    bool frozen_unpacked; /* ... which are dirty rows, too. */
    uint64_t row_count;   /* Of this table among the rows that are found by key. */
};
#define ORDER_GROUPS 2048u

/* Clean rows, in the order in which they leave memory: the oldest first, of each kind. */
enum drop_kind {
    DROP_NONE,  /* In no list: dirty, frozen, or never dropped. */
    DROP_FIRST, /* Hardly ever asked for. */
    DROP_AGED,  /* As they came, which is nearly by age. */
    DROP_LARGE, /* Most operations need none. */
    DROP_USED,  /* The rest: by use. */
    DROP_KINDS
};
struct drop_list {
    struct row *oldest, *newest;
    uint64_t bytes;
};

struct state {
    uint32_t shard;
    struct row_pool pool; /* Of rows and their values. */
    struct row_table table;
    struct order_tree order[TABLE_TREES];
    struct order_tree grouped[ORDER_GROUPS];  /* Of the tables ordered by entity, by hash. */
    uint64_t groups_used[ORDER_GROUPS / 64u]; /* Those that ever held a row: a bit each. */
    struct drop_list drops[DROP_KINDS];
    struct fresh fresh[TABLE_RUNS];
    struct row **dirty;
    uint32_t dirty_count, dirty_capacity;
    struct row **frozen;
    struct state_write *writes;
    uint32_t frozen_count, write_capacity;
    uint64_t frozen_bytes; /* As they were when frozen. */
    bool checkpoint_open;
    bool transaction_open;
    struct undo *undo;
    uint32_t undo_count, undo_capacity;
    struct coverage coverages[COVERAGES_MAX];
    uint32_t coverage_count;
    uint64_t coverage_clock;
    uint64_t load_generation;
    uint64_t operations_known_ms;
    uint64_t aged_bytes; /* Of present rows of tables that are dropped by age. */
    struct state_stats stats;
    struct state_observer observer; /* `row` NULL: none. */
};

static inline struct slice row_slice(const struct row *row)
{
    return (struct slice){ row->key, row->key_size };
}

static inline struct slice row_value(const struct row *row)
{
    CHECK(row->value != NULL);
    return (struct slice){ row->value->bytes, row->value->size };
}

size_t row_bytes(const struct row *row);

struct row *row_table_find(const struct row_table *table, struct slice key, uint64_t hash);
void row_table_prefetch(const struct row_table *table, uint64_t hash);
void row_table_add(struct row_table *table, struct row *row);
void row_table_remove(struct row_table *table, struct row *row);
/* In no order that means anything; `visit` may not change the table. */
void row_table_visit(const struct row_table *table, void (*visit)(void *context, struct row *row),
                     void *context);
/* Hands every row to `visit`, which frees it. */
void row_table_deinit(struct row_table *table, void (*visit)(void *context, struct row *row),
                      void *context);

/* Whether rows of this key's table are kept in order. */
bool order_has(const struct state *state, struct slice key);
/* Before a range: some tables are kept in order only from the first one on. */
void order_ask(struct state *state, struct slice prefix);
void order_add(struct state *state, struct row *row);
void order_remove(struct state *state, struct row *row);
/* The rows above `after` under `prefix`, in order, without a search from the root for each. The
 * tree may change meanwhile. */
#define ORDER_WALK_MAX 32u
struct order_walk {
    struct order_tree *tree;
    struct slice prefix;
    struct slice after; /* What the caller said, then the row that came last. */
    uint32_t shape;
    struct row *above[ORDER_WALK_MAX]; /* The nearest that come next, the first of them last. */
    uint32_t count;
    bool whole; /* There are no others. */
};
void order_walk_begin(const struct state *state, struct slice prefix, struct slice after,
                      struct order_walk *ret_walk);
/* NULL: there are no more. */
struct row *order_walk_next(struct order_walk *walk);

/* The row is where the order has it: in its tree, which is one, or among those that wait. */
void order_check_row(const struct state *state, const struct row *row);
uint32_t order_count_roots(const struct state *state);

/* The list in which a clean row waits to be dropped; DROP_NONE: it never is. `used`: somebody has
 * looked at it. */
enum drop_kind state_drop_kind(const struct row *row, bool used);
/* It counts in `aged_bytes`. */
bool state_is_aged(const struct row *row);
/* The row of `key`, made absent and clean when memory had none (*ret_made). */
struct row *state_row_make(struct state *state, struct slice key, bool *ret_made);
/* Forgets a row that is clean, not frozen and in no transaction. */
void state_row_drop(struct state *state, struct row *row);
void state_row_set_dirty(struct state *state, struct row *row);
void state_row_set_clean(struct state *state, struct row *row);
void state_row_set_value(struct state *state, struct row *row, struct blob *value);
void state_row_use(struct state *state, struct row *row);
/* Values are of the state's own memory: blob_unref is not for them. */
struct blob *state_value_new(struct state *state, struct slice bytes);
void state_value_unref(struct state *state, struct blob *value);
/* For row_table_deinit: `context` is the state. */
void state_row_free(void *context, struct row *row);

/* NULL: new rows of this key's table are like any others. */
struct fresh *state_fresh(struct state *state, struct slice key);
/* Makes rows of those of this key's table, before anybody looks for one. */
void state_unpack(struct state *state, struct slice key);

/* Forgets what is known of pages that include `key`. */
void state_uncover(struct state *state, struct slice key);
bool state_miss_is_absent(const struct state *state, struct slice key);

#endif
