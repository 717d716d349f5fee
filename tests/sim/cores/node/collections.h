/* collections: what the files of the room `collections` share: two members of one shard, the calls
 * of documents to either, and what a caller is to be told (papers.h). */
#ifndef TESTS_SIM_CORES_NODE_COLLECTIONS_H
#define TESTS_SIM_CORES_NODE_COLLECTIONS_H

#include "idl/method.h"
#include "node/core/document/fixture.h"
#include "tests/sim/cores/node/papers.h"

#define SHELVES          5u /* Collections, one of each policy. */
#define SHELF_PAPERS     3u
#define CONTEXTS_MAX     24u
#define ASKS_MAX         12u
#define TICKETS_MAX      64u
#define STEPS_MAX        4u
#define LIMITS_TURNS     12u
#define WAITS_REPORT_MS  2000u
#define WAITS_UNHEARD_MS 6000u

struct shelf {
    char name[16];
    enum merge_policy policy;
    uint64_t number, version, ttl_ms;
    uint32_t bytes_max; /* 0: the most. */
    Holdfast__V1__DocumentDurability durability;
    bool deleted;
    struct paper papers[SHELF_PAPERS];
};

/* A context as an answer told it. */
struct context {
    const struct shelf *shelf;
    uint64_t number; /* Of the collection, then. */
    const struct paper *paper;
    const char *text;
    uint64_t seen, own; /* As of paper_plan. */
};

struct step {
    Holdfast__V1__PatchKind kind;
    const char *path, *json;
};
/* A write as a caller sends it, perhaps several times. */
struct ask {
    uint32_t method;
    struct shelf *shelf;
    struct paper *paper;
    uint64_t number;
    const char *op_id, *json;       /* Of Put; of a merge patch. NULL: steps. */
    const struct paper_tree *patch; /* Of a `last_write`: that merge patch. */
    const char *wrong;              /* The field for which it is refused; NULL: none. */
    uint32_t step_count;
    struct step steps[STEPS_MAX];
    struct context context; /* `text` NULL: none. */
    Holdfast__V1__DocumentDurability durability;
    int64_t ttl_ms; /* 0: none is said. */
    struct paper_plan plan;
};

struct hall {
    struct rsim *sim;
    struct pair pair;
    uint64_t heard_ms[PAPER_MEMBERS]; /* When a message of the other one came last; 0: never. */
    bool no_disk;
    uint64_t ops, numbers;
    struct shelf shelves[SHELVES];
    uint32_t context_count, ask_count;
    struct context contexts[CONTEXTS_MAX];
    struct ask asks[ASKS_MAX]; /* Carried out. */
    uint32_t done_count;
    struct {
        uint32_t member;
        struct merge_done told; /* Its record is the hall's. */
    } done[TICKETS_MAX];        /* The latest. */
};

/* A context that this document has, or seldom any. `text` NULL: none. */
void hall_draw_context(struct hall *h, const struct shelf *shelf, const struct paper *paper,
                       struct context *ret_context);
/* It holds for that document. */
bool context_holds(const struct context *context, const struct shelf *shelf,
                   const struct paper *paper);
/* Makes the definition known as the shelf has it, as a later version. */
void shelf_define(struct hall *h, struct shelf *shelf);
/* A UUIDv7 of this time that was never used. */
char *hall_op_id(struct hall *h, uint64_t at_ms);
/* A call to a member; sim->detail is its refusal. */
err hall_call(struct hall *h, uint32_t member, uint32_t method, const ProtobufCMessage *request);
err hall_send(struct hall *h, uint32_t member, const struct ask *ask);
/* What a member has for the other one arrives. */
void hall_deliver(struct hall *h, uint32_t from);
/* Both exchange all that they have. */
void hall_exchange(struct hall *h);
/* The refusal of the last call. */
void hall_refused(struct hall *h, err e, Holdfast__V1__ErrorCode code, const char *field);
/* What became of a member's ticket; NULL: nothing yet. */
const struct merge_done *hall_done(struct hall *h, uint32_t member, uint64_t ticket);
/* The other member was heard lately, so that both are a majority. */
bool hall_is_near(const struct hall *h, uint32_t member);
void hall_keep_context(struct hall *h, const struct context *context);

/* collections_write.c: a write of some kind, judged. */
void hall_write(struct hall *h, uint32_t member, struct shelf *shelf);

/* collections_told.c: reads, judged. */
void hall_get(struct hall *h, uint32_t member, struct shelf *shelf, struct paper *paper);
void hall_list(struct hall *h, uint32_t member, struct shelf *shelf);
/* The document that a read told is what these writes leave. */
void hall_check_told(struct hall *h, const struct paper *paper, uint64_t known,
                     const Holdfast__V1__Document *document);

/* collections_backup.c: what stands comes into a new cluster; then all goes on there. */
void hall_restore(struct hall *h);

/* collections_limits.c: what is refused, each at its limit and beside it. */
void hall_limits(struct hall *h);

#endif
