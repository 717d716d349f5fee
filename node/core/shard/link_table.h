/* link_table: a hash table of links that live inside what they link. Its user compares keys; it
 * knows their hashes alone. Links of one hash come in the order in which they were added. */
#ifndef NODE_CORE_SHARD_LINK_TABLE_H
#define NODE_CORE_SHARD_LINK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct hash_link {
    struct hash_link *next;
    uint64_t hash;
};

struct link_table {
    struct hash_link **heads;
    uint32_t capacity; /* A power of two, or 0. */
    uint32_t count;
};

void link_table_add(struct link_table *table, struct hash_link *link, uint64_t hash);
/* CHECKs that it is there. */
void link_table_remove(struct link_table *table, struct hash_link *link);
/* NULL: none has that hash. */
struct hash_link *link_table_first(const struct link_table *table, uint64_t hash);
/* The next one of the same hash. */
struct hash_link *hash_link_next(const struct hash_link *link);
/* Walks the table: CHECKs that every link is found. */
void link_table_check(const struct link_table *table);
/* CHECKs that it is empty. */
void link_table_deinit(struct link_table *table);

#endif
