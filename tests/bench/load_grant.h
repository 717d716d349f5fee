/* load_grant: which grant comes next. All load generators draw players, op_ids and repeats the same
 * way, so that every store gets the same work. */
#ifndef TESTS_BENCH_LOAD_GRANT_H
#define TESTS_BENCH_LOAD_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "load_options.h"
#include "runtime/base/id.h"

struct load_grant {
    unsigned player;
    char op_id[UUID_TEXT_SIZE]; /* UUIDv7. */
};

/* Of one connection. A repeat is of a grant that was acknowledged. */
struct load_history {
    struct load_grant acknowledged;
    struct load_grant sent;
    bool has_acknowledged;
    bool has_sent;
    unsigned repeats; /* Among the grants drawn since the last answer. */
};

uint64_t load_random(void);
void load_op_id(char ret_text[UUID_TEXT_SIZE]);
unsigned load_player(const struct load_options *options);
/* A new grant or, one time in --repeat, one that was acknowledged before. */
struct load_grant load_grant_next(const struct load_options *options, struct load_history *history);
/* The request with the grants drawn since the last call was carried out, or was not. */
void load_grant_answered(struct load_history *history, bool carried_out);

#endif
