/*
 * papers: documents of one shard, as docs/documents.md promises them, for the room `collections`:
 * which writes each of two members knows of, what each write gave, and which later ones took that
 * away. Nothing of a record is here: no clock, no dot, no context.
 */
#ifndef TESTS_SIM_CORES_NODE_PAPERS_H
#define TESTS_SIM_CORES_NODE_PAPERS_H

#include "node/core/mergeable/policy.h"
#include "tests/sim/cores/rsim.h"

#define PAPER_MEMBERS    2u
#define PAPER_WRITES_MAX 60u
#define PAPER_PARTS_MAX  512u
#define PAPER_ADDS_MAX   12u

/* The leaves of objects, in the order of canonical JSON. PAPER_WHOLE takes the place of all that is
 * inside of "o". */
enum { PAPER_LEAVES = 8, PAPER_WHOLE = 6 };
struct paper_leaf {
    const char *path;  /* Of a step. */
    const char *outer; /* "o" of what is inside of it; "" of others. */
    const char *open;  /* As JSON has it: names, colons and braces. */
    const char *close;
};
extern const struct paper_leaf paper_leaves[PAPER_LEAVES];
/* Elements of sets and names of counters, ascending. */
enum { PAPER_NAMES = 5 };
extern const char *const paper_names[PAPER_NAMES];

/* An object; canonical text for each leaf that it has. */
struct paper_tree {
    const char *leaves[PAPER_LEAVES];
};
/* `loose`: with spaces that canonical JSON has not. In the seed's arena. */
char *paper_tree_print(struct rsim *sim, const struct paper_tree *tree, bool loose);

/* What one write gave at one place. */
struct paper_part {
    uint32_t write, place; /* A leaf, an element, a name; 0 of a whole. */
    const char *text;      /* Canonical. */
    const struct paper_tree *tree;
    int64_t delta;
    uint64_t ends_ms; /* 0: never. */
    uint64_t gone;    /* Writes that took it away. */
};
struct paper {
    enum merge_policy policy;
    const char *entity, *key;
    uint32_t write_count, part_count;
    struct {
        uint64_t op, at_ms;
    } writes[PAPER_WRITES_MAX];
    struct paper_part parts[PAPER_PARTS_MAX];
    uint64_t known[PAPER_MEMBERS]; /* Writes. */
    /* Those that took away nothing, by callers who had seen nothing: a member may do without them.
     */
    uint64_t idle;
};

/* One write as its caller means it. */
struct paper_plan {
    uint64_t op; /* What it is one operation with; 0: a delete. */
    uint64_t at_ms;
    bool whole;   /* Everything goes first. */
    bool updates; /* May leave a document above its limit if it makes it smaller. */
    bool has_context;
    /* By its context: writes that a read told, and the caller's own since then, which are taken
     * away by a write to `vector` alone, and where they have come. */
    uint64_t seen, own;
    uint32_t add_count, place_count;
    struct paper_part adds[PAPER_ADDS_MAX];
    uint32_t places[PAPER_ADDS_MAX]; /* All that is at these, and inside, goes. */
};

/* What a read of these writes tells. */
struct paper_shown {
    const char *json;              /* NULL: nothing is there. */
    const struct paper_tree *tree; /* Of `last_write`. */
    uint64_t at_ms, ends_ms;
    uint32_t sibling_count; /* Of `vector`, if several. */
    const struct paper_part *siblings[PAPER_WRITES_MAX];
};
void paper_show(struct rsim *sim, const struct paper *paper, uint64_t known, uint64_t now_ms,
                struct paper_shown *ret_shown);

bool paper_has_room(const struct paper *paper);
/* Of the parts that stand at these writes. */
uint32_t paper_count(const struct paper *paper, uint64_t known);
uint64_t paper_bytes(const struct paper *paper, uint64_t known);
/* Attempts of this operation of which something stands. */
uint64_t paper_standing(const struct paper *paper, uint64_t known, uint64_t op);
/* The operation is known, whether or not what it wrote stands. */
bool paper_knows(const struct paper *paper, uint64_t known, uint64_t op);
/* The context has seen that something was taken away which still stands at that member. Until that
 * has heard of it, a write to `vector` may leave it there. */
bool paper_lags(const struct paper *paper, uint32_t member, uint64_t seen);
/* What the plan would leave at a member. */
struct paper_left {
    uint32_t count;
    uint64_t bytes, own_bytes;
};
struct paper_left paper_left(const struct paper *paper, uint32_t member,
                             const struct paper_plan *plan);
/* Carries it out; the number of the write. */
uint32_t paper_write(struct paper *paper, uint32_t member, const struct paper_plan *plan);

#endif
