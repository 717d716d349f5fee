/*
 * asked_rows: rows, and ranges of them, that were asked of the database and are not here yet, each
 * with those who wait for it. A waiter waits for one of the rows that it lacks: it looks again when
 * that one is here, and waits for another if it must. Pure. Keys are copied in; their number is
 * bounded by the user.
 */
#ifndef NODE_CORE_SHARD_ASKED_ROWS_H
#define NODE_CORE_SHARD_ASKED_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/shard/link_table.h"
#include "runtime/base/buf.h"

struct asked_row;

/* Inside of what waits. Zeroed: it waits for nothing. */
struct row_waiter {
    struct row_waiter *previous, *next;
    struct asked_row *row;
};

struct asked_row {
    struct hash_link link;
    struct row_waiter *first, *last; /* First come, first woken. */
    bool again;                      /* What came was stale. */
    uint32_t key_bytes;
    uint8_t key[];
};

struct asked_rows {
    struct link_table table;
};

/* True: the row is to be asked of the database now; it was not yet, or is to be asked again. */
bool asked_rows_add(struct asked_rows *rows, struct slice key, struct asked_row **ret_row);
/* NULL: it was not asked for. */
struct asked_row *asked_rows_find(const struct asked_rows *rows, struct slice key);
/* It is here. CHECKs that no one waits for it. */
void asked_rows_remove(struct asked_rows *rows, struct asked_row *row);
void asked_rows_check(const struct asked_rows *rows);
/* CHECKs likewise. */
void asked_rows_deinit(struct asked_rows *rows);

void row_waiter_begin(struct row_waiter *waiter, struct asked_row *row);
/* Does nothing if it waits for none. */
void row_waiter_end(struct row_waiter *waiter);

#endif
