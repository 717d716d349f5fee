#include "node/core/shard/link_table.h"

#include <stdlib.h>

#include "runtime/base/buf.h"
#include "runtime/base/check.h"

#define CAPACITY_MIN 64u
/* An empty table that has grown beyond this gives its memory back. */
#define CAPACITY_KEPT 4096u

static struct hash_link **end_of(const struct link_table *table, uint64_t hash)
{
    struct hash_link **place = &table->heads[hash & (table->capacity - 1)];

    while (*place != NULL)
        place = &(*place)->next;
    return place;
}

static void grow(struct link_table *table)
{
    struct link_table grown = {
        .capacity = table->capacity > 0 ? table->capacity * 2 : CAPACITY_MIN,
        .count = table->count,
    };

    grown.heads = mem_zalloc(sizeof *grown.heads * grown.capacity);
    for (uint32_t i = 0; i < table->capacity; i++) {
        struct hash_link *next;
        for (struct hash_link *link = table->heads[i]; link != NULL; link = next) {
            next = link->next;
            link->next = NULL;
            *end_of(&grown, link->hash) = link;
        }
    }
    free(table->heads);
    *table = grown;
}

void link_table_add(struct link_table *table, struct hash_link *link, uint64_t hash)
{
    if (table->count == table->capacity)
        grow(table);
    link->next = NULL;
    link->hash = hash;
    *end_of(table, hash) = link;
    table->count++;
}

void link_table_remove(struct link_table *table, struct hash_link *link)
{
    CHECK(table->count > 0);
    struct hash_link **place = &table->heads[link->hash & (table->capacity - 1)];

    while (*place != NULL && *place != link)
        place = &(*place)->next;
    CHECK(*place == link);
    *place = link->next;
    link->next = NULL;
    if (--table->count == 0 && table->capacity > CAPACITY_KEPT)
        link_table_deinit(table);
}

static struct hash_link *find(struct hash_link *link, uint64_t hash)
{
    while (link != NULL && link->hash != hash)
        link = link->next;
    return link;
}

struct hash_link *link_table_first(const struct link_table *table, uint64_t hash)
{
    return table->count > 0 ? find(table->heads[hash & (table->capacity - 1)], hash) : NULL;
}

struct hash_link *hash_link_next(const struct hash_link *link)
{
    return find(link->next, link->hash);
}

void link_table_check(const struct link_table *table)
{
    uint32_t count = 0;

    CHECK((table->capacity & (table->capacity - 1)) == 0);
    for (uint32_t i = 0; i < table->capacity; i++) {
        for (const struct hash_link *link = table->heads[i]; link != NULL; link = link->next) {
            CHECK((link->hash & (table->capacity - 1)) == i);
            CHECK(++count <= table->count);
        }
    }
    CHECK(count == table->count);
}

void link_table_deinit(struct link_table *table)
{
    CHECK(table->count == 0);
    free(table->heads);
    *table = (struct link_table){ 0 };
}
