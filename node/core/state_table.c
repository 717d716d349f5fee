#include <stdlib.h>

#include "node/core/state_row.h"
#include "runtime/base/check.h"

#define CAPACITY_MIN  64u
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
        if (slot->row != NULL && slot->hash == (uint32_t)(hash >> 32) && slot->row->hash == hash &&
            slice_equal(row_slice(slot->row), key))
            return slot;
    }
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

static void slots_put(struct row_slots *slots, struct row *row)
{
    uint64_t mask = slots->capacity - 1;
    uint64_t at = row->hash & mask;

    while (slots->slots[at].row != NULL)
        at = (at + 1) & mask;
    if (slots->slots[at].left) {
        slots->slots[at].left = false;
        slots->left--;
    }
    slots->slots[at].row = row;
    slots->slots[at].hash = (uint32_t)(row->hash >> 32);
}

static void slots_leave(struct row_slots *slots, struct row_slot *slot)
{
    slot->row = NULL;
    slot->left = true;
    slots->left++;
}

static void migrate(struct row_table *table)
{
    for (uint32_t i = 0; i < MIGRATE_SLOTS && table->old.capacity > 0; i++) {
        struct row_slot *slot = &table->old.slots[table->migrated++];
        if (slot->row != NULL) {
            slots_put(&table->now, slot->row);
            slots_leave(&table->old, slot);
        }
        if (table->migrated == table->old.capacity) {
            free(table->old.slots);
            table->old = (struct row_slots){ 0 };
        }
    }
}

/* Twice as many slots when rows fill them, as many when most were left behind by dropped rows. */
static void grow(struct row_table *table)
{
    uint64_t capacity = table->now.capacity;

    while (table->old.capacity > 0)
        migrate(table);
    if (capacity == 0)
        capacity = CAPACITY_MIN;
    else if (table->row_count * 4 > capacity)
        capacity *= 2;
    table->old = table->now;
    table->migrated = 0;
    table->now = (struct row_slots){
        .slots = mem_zalloc(sizeof(struct row_slot) * capacity),
        .capacity = capacity,
    };
}

void row_table_add(struct row_table *table, struct row *row)
{
    if ((table->row_count + table->now.left + 1) * 8 > table->now.capacity * 5)
        grow(table);
    migrate(table);
    slots_put(&table->now, row);
    table->row_count++;
}

void row_table_remove(struct row_table *table, struct row *row)
{
    struct row_slots *slots = &table->now;
    struct row_slot *slot = slot_find(slots, row_slice(row), row->hash);

    if (slot == NULL) {
        slots = &table->old;
        slot = slot_find(slots, row_slice(row), row->hash);
    }
    CHECK(slot != NULL && slot->row == row);
    slots_leave(slots, slot);
    table->row_count--;
}

static void slots_show(const struct row_slots *slots, void (*visit)(void *context, struct row *row),
                       void *context)
{
    for (uint64_t i = 0; i < slots->capacity; i++) {
        if (slots->slots[i].row != NULL)
            visit(context, slots->slots[i].row);
    }
}

void row_table_visit(const struct row_table *table, void (*visit)(void *context, struct row *row),
                     void *context)
{
    slots_show(&table->now, visit, context);
    slots_show(&table->old, visit, context);
}

static void slots_visit(const struct row_slots *slots, void (*visit)(struct row *row))
{
    for (uint64_t i = 0; i < slots->capacity; i++) {
        if (slots->slots[i].row != NULL)
            visit(slots->slots[i].row);
    }
}

void row_table_deinit(struct row_table *table, void (*visit)(struct row *row))
{
    slots_visit(&table->now, visit);
    slots_visit(&table->old, visit);
    free(table->now.slots);
    free(table->old.slots);
    *table = (struct row_table){ 0 };
}
