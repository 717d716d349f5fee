/*
 * key_table: the API keys of the cluster as this router knows them, and whose key a request brings
 * (DESIGN section 11). A key that was found is remembered by its text, so that the next request
 * with it costs one comparison instead of an HMAC; whatever changes in the table forgets that, so a
 * revocation acts with the next request. Pure: records, time and a secret seed are told.
 */
#ifndef ROUTER_CORE_KEY_TABLE_H
#define ROUTER_CORE_KEY_TABLE_H

#include "router/core/rate_limit.h"
#include "runtime/cluster/api_key.h"

struct key_table;

struct key_entry {
    struct api_key_record record;
    struct rate_bucket bucket;
};

/* `seed`: any number that no outsider knows; it places keys in the memory of those found. */
struct key_table *key_table_new(const char *cluster, uint64_t seed);
void key_table_free(struct key_table *table);

/* New or changed. ERR_FULL: API_KEYS_MAX are there; nothing was changed. */
NODISCARD err key_table_put(struct key_table *table, const struct api_key_record *record);
/* Allowed when it is not there. */
void key_table_remove(struct key_table *table, struct slice id);
void key_table_clear(struct key_table *table);
uint32_t key_table_count(const struct key_table *table);

enum key_found { KEY_FOUND, KEY_MISSING, KEY_UNKNOWN, KEY_EXPIRED };

/* The entry of the key in a text that the caller sent. It is good until the table changes.
 *   KEY_MISSING  the text is empty
 *   KEY_UNKNOWN  it is no key, or one that was revoked or never issued
 *   KEY_EXPIRED  its time is over at wall_ms (Unix time) */
enum key_found key_table_find(struct key_table *table, struct slice text, uint64_t wall_ms,
                              struct key_entry **ret_entry);
/* Whether that text was found before, so that key_table_find will cost little. */
bool key_table_remembers(const struct key_table *table, struct slice text);

/* CHECKs that each key is found by its digest, and that nothing else is. For tests. */
void key_table_check(const struct key_table *table);

#endif
