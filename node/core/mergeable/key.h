/*
 * key: what a mergeable record is called: an entity ("player:7"), which erasures name, and a name
 * in it, which begins with the number of its collection. Immutable and counted.
 */
#ifndef NODE_CORE_MERGEABLE_KEY_H
#define NODE_CORE_MERGEABLE_KEY_H

#include <stdint.h>

#include "runtime/base/buf.h"

#define MERGE_ENTITY_BYTES_MAX 255u
#define MERGE_NAME_BYTES_MAX   255u

struct merge_key {
    uint32_t refs;
    uint32_t entity_size, name_size;
    uint8_t bytes[]; /* Entity, then name. */
};

/* ERR_INVALID: empty, or over a limit; *ret_key untouched. One reference, the caller's. */
NODISCARD err merge_key_new(struct slice entity, struct slice name, struct merge_key **ret_key);
struct merge_key *merge_key_ref(struct merge_key *key);
void merge_key_unref(struct merge_key *key);
struct slice merge_key_entity(const struct merge_key *key);
struct slice merge_key_name(const struct merge_key *key);
/* By entity, then name; NULL is before all. */
int merge_key_compare(const struct merge_key *a, const struct merge_key *b);
/* u8 size, entity, u8 size, name. */
void merge_key_encode(const struct merge_key *key, struct buf *out);
/* ERR_CORRUPT: malformed. */
NODISCARD err merge_key_decode(struct reader *reader, struct merge_key **ret_key);

#endif
