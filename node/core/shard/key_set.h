/* key_set: a set of byte keys, each copied in. Bounded by its user. Order is not observable. */
#ifndef NODE_CORE_SHARD_KEY_SET_H
#define NODE_CORE_SHARD_KEY_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

struct key_set {
    struct slice *slots; /* data NULL: empty. Owned copies. */
    uint32_t capacity;   /* A power of two, or 0. */
    uint32_t count;
};

/* False when it was in already. */
bool key_set_add(struct key_set *set, struct slice key);
/* False when it was not in. */
bool key_set_remove(struct key_set *set, struct slice key);
/* Walks the set: CHECKs that every member is found. */
void key_set_check(const struct key_set *set);
void key_set_deinit(struct key_set *set);

#endif
