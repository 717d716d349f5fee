/*
 * state: the rows of one shard that are in memory, over those in the database. Pure. Rows are
 * bytes under keys; what they mean is said in rows.h and session.h.
 *
 * A row is MISSING (the database must be asked), ABSENT (known not to exist) or PRESENT. Apply
 * works inside a transaction: on ERR_NEED it is rolled back, the shell loads the missing rows,
 * and apply runs again. Dirty rows stay in memory until a checkpoint has written them; only
 * clean rows are evicted. DESIGN section 8.
 */
#ifndef NODE_CORE_ROWS_STATE_H
#define NODE_CORE_ROWS_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/rows/blob.h"
#include "node/core/rows/table.h"
#include "runtime/base/buf.h"

enum state_found { STATE_MISSING, STATE_ABSENT, STATE_PRESENT };

struct state;

struct state *state_new(uint32_t shard);
void state_free(struct state *state);

/* Told of each change of a row as it is made, and the other way round when it is undone. A value
 * of size 0: there was none, or there is none any more. May change nothing in the state. */
struct state_observer {
    void (*row)(void *context, struct slice key, struct slice before, struct slice after);
    void *context;
};
void state_observe(struct state *state, struct state_observer observer);

/* Sees the open transaction's own writes. *ret_value is borrowed until the next put or evict. */
enum state_found state_find(struct state *state, struct slice key, struct slice *ret_value);

/* Lets the processor fetch what finding `key` will touch, while other work goes on. */
void state_prefetch(const struct state *state, struct slice key);

/* One transaction at a time. Puts and deletes need no earlier load. */
void state_begin(struct state *state);
void state_put(struct state *state, struct slice key, struct slice value);
void state_delete(struct state *state, struct slice key);
/* Of a row that is known not to stand, neither here nor in the database... */
void state_put_new(struct state *state, struct slice key, struct slice value);
/* ... and of one that is no longer looked for: if it was put as new and no checkpoint saw it,
 * nothing is left of it once the transaction is committed; else it is a deletion like any other. */
void state_forget(struct state *state, struct slice key);
/* Tells the observer as if a row of TABLE_NOTE were put: undone with the transaction, kept nowhere.
 */
void state_note(struct state *state, struct slice key, struct slice value);
void state_commit(struct state *state);
void state_rollback(struct state *state);
/* A point in the open transaction to go back to, which undoes what came after it alone. */
uint32_t state_mark(const struct state *state);
void state_rollback_to(struct state *state, uint32_t mark);

/*
 * Visits the rows of a range in key order, the database's and memory's merged.
 * ERR_NEED: the page is not in memory; added to `need`; nothing was visited.
 * `visit` returns false to stop.
 */
NODISCARD err state_range_visit(struct state *state, const struct state_range *range,
                                struct need *need,
                                bool (*visit)(void *context, struct slice key, struct slice value),
                                void *context);

/*
 * Takes in what the shell read from the database: value NULL means absent. A row that memory
 * knows already is left alone. False: rows were evicted since `load_generation`, so the answer
 * may be stale; nothing was taken in, ask again.
 */
bool state_load(struct state *state, uint64_t load_generation, struct slice key,
                const struct slice *value);
/* After every row of a page was given to state_load; `complete`: there are no more rows. */
bool state_load_range(struct state *state, uint64_t load_generation,
                      const struct state_range *range, struct slice last_key, bool complete);
uint64_t state_load_generation(const struct state *state);

/* Rows of TABLE_OPERATION whose id is younger than this are all in memory: a miss is ABSENT. */
void state_set_operations_known_ms(struct state *state, uint64_t known_ms);

struct state_write {
    struct slice key;   /* Borrowed until state_checkpoint_end. */
    struct blob *value; /* NULL: delete. Borrowed likewise, in the state's own memory: to be read,
                         * or copied, never to be referred to for longer. */
};

/* Freezes every dirty row as it stands. False when a checkpoint is open. *ret_writes lives until
 * state_checkpoint_end. A key may be among them twice, if its table joins runs: the later write
 * holds. */
bool state_checkpoint_begin(struct state *state, const struct state_write **ret_writes,
                            uint32_t *ret_count);
/* `written`: the rows are in the database; those unchanged since are clean now. */
void state_checkpoint_end(struct state *state, bool written);

/* Drops clean rows until at most `bytes_max` are held, or half as much beside the rows that wait
 * for a checkpoint, or none is left to drop: histories first, then outcomes above an eighth and
 * sections above half, then the least recently used. Never drops TABLE_TIMER rows. */
void state_evict(struct state *state, size_t bytes_max);

/* Walks every row: CHECKs that lists, sums, order and what can be undone fit together. For tests
 * and the simulator. */
void state_check(const struct state *state);

struct state_stats {
    uint64_t rows, dirty_rows, bytes, dirty_bytes, hits, misses, evictions;
    uint64_t unread_rows; /* Among the dirty ones: in a run of bytes, until somebody looks. */
};
void state_stats_get(const struct state *state, struct state_stats *ret_stats);

#endif
