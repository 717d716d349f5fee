/*
 * living: which game servers live, as a member knows it from etcd (gs/known, docs/sessions.md):
 * what the presence of their players hangs on. Pure. A server is dead from the moment in which the
 * coordinator has decided that it is. What a member has not heard of yet counts as living: a server
 * may use its registration before the watch has told of it.
 */
#ifndef NODE_CORE_DOCUMENT_LIVING_H
#define NODE_CORE_DOCUMENT_LIVING_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/cluster/incarnation.h"

/* Beyond, the oldest are forgotten, and are dead then; no cluster has as many. */
#define LIVING_SERVERS_MAX 65536u
/* So many dead ones are known by name; one that is older than these is dead by its age. */
#define LIVING_DEAD_MAX 4096u
/* A registration is told at most so long after a later write of etcd's. */
#define LIVING_SETTLE_MS 5000u

struct living_server {
    struct incarnation incarnation;
    bool dead;
};

/* A zeroed one is valid and has heard of nothing. */
struct living {
    uint32_t count, capacity, dead;
    struct living_server *list; /* Ascending. */
    /* Revisions of etcd: all registrations up to `settled` were told, those up to `told` will have
     * been LIVING_SETTLE_MS after `told_ms`; the greatest that was heard of. */
    uint64_t settled, told, told_ms, heard;
    uint64_t generation; /* The cluster's: all registrations of earlier ones have ended. */
    bool complete;       /* All that there were have been told. */
    uint64_t ended;      /* Rises when some died, or turn out to be dead. */
};

void living_deinit(struct living *living);
/* A registration is told: new, changed, or marked as expiring. */
void living_put(struct living *living, struct incarnation incarnation, bool expiring);
/* Its registration is gone. */
void living_remove(struct living *living, struct incarnation incarnation);
/* etcd has come to this revision. `now_ms`: the wall clock. */
void living_hear(struct living *living, uint64_t revision, uint64_t now_ms);
/* The cluster is of this generation, or of a later one: it was restored from a backup, its etcd or
 * all of it, as often as that. */
void living_begin_generation(struct living *living, uint64_t generation);
/* All are told again: until living_complete none of this generation is dead. */
void living_reset(struct living *living);
void living_complete(struct living *living);

enum living_state {
    LIVING_YES,
    LIVING_UNHEARD, /* Perhaps not yet told of. */
    LIVING_DEAD
};
enum living_state living_state_of(const struct living *living, struct incarnation incarnation,
                                  uint64_t now_ms);
/* How many live. */
uint32_t living_count(const struct living *living);
/* CHECKs the order and the counts. For tests: it walks all. */
void living_check(const struct living *living);

#endif
