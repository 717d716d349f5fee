/*
 * candidates: the keys of the election that were heard of, to know when all was heard of that
 * coordinators of earlier terms wrote. Their transactions are carried out only while their key is
 * in etcd, and the one with the lowest create revision leads: what they wrote is in etcd before
 * the last older key goes. DESIGN section 4.
 */
#ifndef COORDINATOR_CORE_CANDIDATES_H
#define COORDINATOR_CORE_CANDIDATES_H

#include "runtime/cluster/cluster_key.h"

#define CANDIDATES_MAX 64u

struct candidate {
    char key[CLUSTER_KEY_SIZE];
    int64_t create_revision;
};

/* A zeroed one is valid: none was heard of. */
struct candidates {
    struct candidate list[CANDIDATES_MAX];
    uint32_t count;
    bool too_many; /* Some are not in the list; until etcd is read from the beginning. */
};

/* The key is in etcd; it may be known already. */
void candidates_put(struct candidates *candidates, struct slice key, int64_t create_revision);
/* The key is gone; it may be unknown. */
void candidates_deleted(struct candidates *candidates, struct slice key);
/* The key of that revision was heard of, and of no older one that is still there. */
bool candidates_are_over(const struct candidates *candidates, int64_t create_revision);

#endif
