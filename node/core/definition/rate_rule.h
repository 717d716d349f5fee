/*
 * rate_rule: which rate rules a shard knows, by subject (docs/abuse.md): one row, made again of the
 * definitions' rows whenever a DEFINE changes one of them. Where there is no such row, since
 * definitions were logged under an earlier apply version, they are looked through.
 */
#ifndef NODE_CORE_DEFINITION_RATE_RULE_H
#define NODE_CORE_DEFINITION_RATE_RULE_H

#include "node/core/handler/handler.h"

/* Since which apply version rate rules hold, and that row is kept. */
#define RATE_APPLY_VERSION 8u
/* Since which some of them flag edges; those are not in a row of before. */
#define FLAG_APPLY_VERSION 9u
/* Of one subject. The coordinator makes no more; while etcd's restore is being accepted there may
 * be more rows of definitions, and those with the lowest numbers hold. */
#define RATE_RULES_MAX   8u
#define RATE_RULE_DAMAGE "the row of all rate rules cannot be read"

struct rate_rule {
    /* Its definition, and that one's version by its stamp (definition.h): no other body ever has
     * these three. All 0: a default, which is no definition's. */
    uint64_t number, generation, revision;
    bool flags;     /* What is past the limit is flagged; else it is refused. */
    uint32_t limit; /* So many in each period; 0: `age_ms` is the rule. */
    uint32_t period_ms;
    uint64_t age_ms;   /* Edges of players who are younger are flagged; 0: `limit` is the rule. */
    struct slice name; /* Empty: a default. In the arena. */
};

struct rate_rules {
    uint32_t count;
    struct rate_rule list[RATE_RULES_MAX + 1u]; /* One more for a default. */
};

/* All rules about the subject of that name, by number. ERR_NEED. */
NODISCARD err rate_rules_find(struct apply_context *context, struct slice subject,
                              struct rate_rules *ret_rules);
/* Makes the row again, at apply. ERR_NEED. */
NODISCARD err rate_rules_index(struct apply_context *context);
/* Whether the row can be read. */
bool rate_rules_row_is_sound(struct slice key, struct slice value);

#endif
