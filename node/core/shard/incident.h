/*
 * incident: something that seldom happens in a shard and that an operator may ask about later:
 * a duplicate, a fenced writer, what a crash left half done and how it ended. Plain data that a
 * shard hands to its shell; nothing depends on it. docs/incidents.md.
 */
#ifndef NODE_CORE_SHARD_INCIDENT_H
#define NODE_CORE_SHARD_INCIDENT_H

#include <stdint.h>

#define INCIDENT_PLAYER_SIZE 104u
#define INCIDENT_OP_ID_SIZE  164u
#define INCIDENT_WHAT_SIZE   72u
#define INCIDENT_BY_SIZE     129u
/* Of one step; more are not told. */
#define INCIDENTS_STEP_MAX 1024u

/* As IncidentKind in idl/holdfast/v1/admin.proto. */
enum incident_kind {
    INCIDENT_DUPLICATE_ATTEMPT = 1,
    INCIDENT_RECONCILED,
    INCIDENT_STALE_WRITE_REFUSED,
    INCIDENT_CONTAINED,
    INCIDENT_RELEASED,
    INCIDENT_KINDS
};

struct incident {
    enum incident_kind kind;
    uint32_t shard;
    uint32_t method; /* 0: none. */
    uint64_t unix_ms;
    uint64_t count;
    char player[INCIDENT_PLAYER_SIZE]; /* Without its kind; empty: none. */
    char op_id[INCIDENT_OP_ID_SIZE];
    char what[INCIDENT_WHAT_SIZE];
    char by[INCIDENT_BY_SIZE]; /* Who asked, as ledgers have it; empty: no caller did. */
};

#endif
