#include <stdlib.h>

#include "node/core/rows/state_row.h"
#include "runtime/base/check.h"

#define CAPACITY_MIN  64u
#define CAPACITY_MAX  (1ull << 32)
#define MIGRATE_SLOTS 16u /* Old slots emptied by each row added: done long before it grows. */

/* Probing goes on past a slot that held a row, and ends at one that never did. */
static bool never_used(const struct row_slot *slot)
{
    return slot->row == NULL && !slot->left;
}

static struct row_slot *slot_find(const struct row_slots *slots, struct slice key, uint64_t hash)
{
    uint64_t mask = slots->capacity - 1;

    if (slots->capacity == 0)
        return NULL;
    for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
        struct row_slot *slot = &slots->slots[at];
        if (never_used(slot))
            return NULL;
        if (slot->row != NULL && slot->hash == (uint32_t)hash && slot->row->hash == hash &&
            slice_equal(row_slice(slot->row), key))
            return slot;
    }
}

static struct row_slot *slot_of(const struct row_slots *slots, const struct row *row)
{
    uint64_t mask = slots->capacity - 1;

    if (slots->capacity == 0)
        return NULL;
    for (uint64_t at = row->hash & mask; !never_used(&slots->slots[at]); at = (at + 1) & mask) {
        if (slots->slots[at].row == row)
            return &slots->slots[at];
    }
    return NULL;
}

struct row *row_table_find(const struct row_table *table, struct slice key, uint64_t hash)
{
    struct row_slot *slot = slot_find(&table->now, key, hash);

    if (slot == NULL && table->old.capacity > 0)
        slot = slot_find(&table->old, key, hash);
    return slot != NULL ? slot->row : NULL;
}

void row_table_prefetch(const struct row_table *table, uint64_t hash)
{
    if (table->now.capacity > 0)
        __builtin_prefetch(&table->now.slots[hash & (table->now.capacity - 1)]);
    if (table->old.capacity > 0)
        __builtin_prefetch(&table->old.slots[hash & (table->old.capacity - 1)]);
}

/* Only into `now`, whose slots have no marks. */
static void slots_put(struct row_slots *slots, struct row *row, uint32_t hash)
{
    uint64_t mask = slots->capacity - 1;
    uint64_t at = hash & mask;

    while (slots->slots[at].row != NULL)
        at = (at + 1) & mask;
    slots->slots[at].row = row;
    slots->slots[at].hash = hash;
}

/* Out of `old`, where a row cannot move: those before it may be gone already. */
static void slot_leave(struct row_slot *slot)
{
    slot->row = NULL;
    slot->left = true;
}

/* Out of `now`: moves later rows of the run into the hole, so that no mark is left behind. With
 * marks, a load that adds and drops as many rows rebuilt the table again and again. */
static void slots_close(struct row_slots *slots, struct row_slot *slot)
{
    uint64_t mask = slots->capacity - 1;
    uint64_t hole = (uint64_t)(slot - slots->slots);

    for (uint64_t at = (hole + 1) & mask; !never_used(&slots->slots[at]); at = (at + 1) & mask) {
        uint64_t home = slots->slots[at].hash & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        slots->slots[hole] = slots->slots[at];
        hole = at;
    }
    slots->slots[hole] = (struct row_slot){ 0 };
}

static void migrate(struct row_table *table)
{
    for (uint32_t i = 0; i < MIGRATE_SLOTS && table->old.capacity > 0; i++) {
        struct row_slot *slot = &table->old.slots[table->migrated++];
        if (slot->row != NULL) {
            slots_put(&table->now, slot->row, slot->hash);
            slot_leave(slot);
        }
        if (table->migrated == table->old.capacity) {
            free(table->old.slots);
            table->old = (struct row_slots){ 0 };
        }
    }
}

static void grow(struct row_table *table)
{
    uint64_t capacity = table->now.capacity > 0 ? table->now.capacity * 2 : CAPACITY_MIN;

    CHECK(capacity <= CAPACITY_MAX);
    while (table->old.capacity > 0)
        migrate(table);
    table->old = table->now;
    table->migrated = 0;
    table->now = (struct row_slots){
        .slots = mem_zalloc(sizeof(struct row_slot) * capacity),
        .capacity = capacity,
    };
}

void row_table_add(struct row_table *table, struct row *row)
{
    if ((table->row_count + 1) * 8 > table->now.capacity * 5)
        grow(table);
    migrate(table);
    slots_put(&table->now, row, (uint32_t)row->hash);
    table->row_count++;
}

void row_table_remove(struct row_table *table, struct row *row)
{
    struct row_slot *slot = slot_of(&table->now, row);

    if (slot != NULL) {
        slots_close(&table->now, slot);
    } else {
        slot = slot_of(&table->old, row);
        CHECK(slot != NULL);
        slot_leave(slot);
    }
    CHECK(table->row_count > 0);
    table->row_count--;
}

static void slots_visit(const struct row_slots *slots,
                        void (*visit)(void *context, struct row *row), void *context)
{
    for (uint64_t i = 0; i < slots->capacity; i++) {
        if (slots->slots[i].row != NULL)
            visit(context, slots->slots[i].row);
    }
}

void row_table_visit(const struct row_table *table, void (*visit)(void *context, struct row *row),
                     void *context)
{
    slots_visit(&table->now, visit, context);
    slots_visit(&table->old, visit, context);
}

void row_table_deinit(struct row_table *table, void (*visit)(void *context, struct row *row),
                      void *context)
{
    row_table_visit(table, visit, context);
    free(table->now.slots);
    free(table->old.slots);
    *table = (struct row_table){ 0 };
}
