/*
 * top_targets: the targets that gain the most: from top lists of two instants. Pure: answers of
 * GetTop or GetCounterTop in, rows out.
 */
#ifndef CLIENT_CLI_TOP_TOP_TARGETS_H
#define CLIENT_CLI_TOP_TOP_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#define TOP_TARGETS_MAX      1000u /* Of a list: the most that a router tells. */
#define TOP_TARGET_BYTES     129u
#define TOP_TARGET_ROWS_MAX  40u
#define TOP_TARGETS_OF_BYTES 80u

struct top_target {
    char id[TOP_TARGET_BYTES];
    uint64_t count;
};

struct top_target_list {
    uint64_t as_of_ms; /* 0: no list was told yet. */
    bool stale;
    struct top_target targets[TOP_TARGETS_MAX]; /* By id. */
    uint32_t target_count;
};

struct top_target_row {
    const struct top_target *target;
    double rate; /* Below 0: unknown. */
};

struct top_targets {
    char of[TOP_TARGETS_OF_BYTES]; /* "collection favorites"; empty: not asked for. */
    char why[128];                 /* Why the last list did not come; empty: it did. */
    struct top_target_list *before, *after;
    struct top_target_row rows[TOP_TARGET_ROWS_MAX];
    uint32_t row_count;
};

/* `kind` is "collection" or "counter". */
void top_targets_init(struct top_targets *targets, const char *kind, const char *name);
void top_targets_deinit(struct top_targets *targets);
/* Takes a list and puts the rows in order: the highest rate first, then the highest count. A list
 * that is no newer than the one before changes nothing: routers remember lists for a second. NULL:
 * it did not come, because of `why`. */
void top_targets_take(struct top_targets *targets, const json_t *answer, const char *why);

#endif
