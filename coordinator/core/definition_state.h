/* definition_state: what a coordinator knows of definitions between two steps, as plain data. */
#ifndef COORDINATOR_CORE_DEFINITION_STATE_H
#define COORDINATOR_CORE_DEFINITION_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/cluster/record_shape.h"

#define DEFINITIONS_MAX         4096u     /* Deleted ones count: their numbers stay theirs. */
#define DEFINITION_VERSIONS_MAX 100u      /* Of each are kept. */
#define DEFINITION_GRACE_MS     86400000u /* A deleted one keeps all of its versions so long. */
_Static_assert(DEFINITIONS_MAX *(DEFINITION_VERSIONS_MAX + 1) <= CLUSTER_DEFINITION_KEYS_MAX,
               "mirrors have room for every version");
#define DEFINITION_BODY_BYTES_MAX                                                                  \
    4000u /* What a shard takes of one (definition.h there), less its name. */
#define DEFINITIONS_BYTES_MAX (240u * 1024u) /* Of all that stand; a shard takes 256 KiB. */
#define DEFINITION_NAME_MAX   64u
#define DEFINITION_WAITS_MAX  64u /* Changes that wait for the shards. */
#define DEFINE_COUNT_MAX      64u /* In one call. */
#define DEFINE_BYTES_MAX      65536u

/* A version as etcd has it; never changed. */
struct definition_version {
    uint64_t version;
    int64_t revision;
    struct buf packed; /* internal.v1.DefinitionVersion, which was decoded once. */
    bool deleted;
};

struct definition {
    uint64_t number;
    uint32_t kind; /* kind_case of DefinitionBody. */
    char name[DEFINITION_NAME_MAX + 1];
    struct definition_version *versions; /* By rising version. At least one. */
    uint32_t count, capacity;
    uint32_t bytes;         /* Of the newest one in a shard. */
    uint64_t deleted_at_ms; /* The clock of the coordinator that deleted it; 0: it stands. */
};

/* How far a shard has followed, as it said last. */
struct defined_shard {
    bool known;   /* Asked in this term. */
    bool doubted; /* It has been ahead of etcd for long. */
    uint64_t generation, revision;
    uint64_t ask_at_ms;      /* Not asked earlier. */
    uint64_t ahead_since_ms; /* It knows of more than etcd has; 0: it does not. */
    uint32_t calls;          /* In flight: one at most. */
};

enum definition_wait_state {
    WAIT_FREE,
    WAIT_WRITTEN, /* The version is on its way to etcd, ... */
    WAIT_UNSURE,  /* ... was perhaps written by an earlier attempt: the record will say, ... */
    WAIT_SHARDS,  /* ... or is there: the shards are to log it. */
    WAIT_LOST     /* The term ended: to be answered as unknown. */
};

/* A change whose caller waits. */
struct definition_wait {
    enum definition_wait_state state;
    uint64_t call;
    uint64_t number, version;
    uint64_t until_ms; /* To be answered by then. */
    uint32_t wait_ms;  /* For the shards; 0: not at all. */
    bool duplicate, unchanged;
};

/* What etcd had when a write of it was refused, and this coordinator had not been told of: all up
 * to `revision`, that version among it. Until it is told, no other is made, or shards would pass it
 * by. */
struct definition_unseen {
    uint64_t number, version, revision; /* Zeros: none. */
};

struct definitions {
    struct definition **list; /* By rising number. */
    uint32_t count, capacity;
    struct definition_wait waits[DEFINITION_WAITS_MAX];
    uint32_t left;            /* Shards that are behind, as of the last look. */
    uint64_t behind_since_ms; /* Since when some are; 0: none is. */
    bool trimming;            /* The removal of an old version is on its way. */
    struct definition_unseen unseen;
};

#endif
