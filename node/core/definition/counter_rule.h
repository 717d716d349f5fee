/*
 * counter_rule: what a counter's definition says (docs/counters.md), found by its name.
 */
#ifndef NODE_CORE_DEFINITION_COUNTER_RULE_H
#define NODE_CORE_DEFINITION_COUNTER_RULE_H

#include "node/core/handler/handler.h"

/* Since which apply version there are counters, and the row of their names. */
#define COUNTER_APPLY_VERSION 8u
#define COUNTER_VALUE_MAX     9007199254740991ll /* 2^53 - 1: exact in every JSON reader. */
#define COUNTER_NAMES_DAMAGE  "the row of all counters cannot be read"

struct counter_rule {
    uint64_t number;   /* Data is kept under it: a name made again has another one. */
    int64_t value_max; /* Of what one player adds to one target in all. */
    int64_t add_max;   /* Of one call. */
};

/* Before the log: INVALID_ARGUMENT, `counter`, if the name could be none; NOT_FOUND if there is
 * none for sure. ERR_NEED: apply decides. */
NODISCARD err counter_rule_check(struct check_context *context, const char *given,
                                 struct counter_rule *ret_rule);
/* Refuses with NOT_FOUND, ERR_CONFLICT, and says which name is near. ERR_NEED. */
NODISCARD err counter_rule_read(struct read_context *context, const char *given,
                                struct counter_rule *ret_rule);
NODISCARD err counter_rule_get(struct apply_context *context, const char *given,
                               struct counter_rule *ret_rule);
/* Whether memory knows one of that name: what is to be loaded for it may be told ahead. */
bool counter_rule_known(struct state *state, struct arena *arena, const char *given,
                        struct counter_rule *ret_rule);
/* Makes the row of all names again, at apply. ERR_NEED. */
NODISCARD err counter_rule_index(struct apply_context *context);
/* Whether that row can be read. */
bool counter_names_are_sound(struct slice key, struct slice value);

#endif
