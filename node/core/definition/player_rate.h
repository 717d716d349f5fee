/*
 * player_rate: how often one player may change something (docs/abuse.md). Each rule about a subject
 * counts the player's changes in windows: the first change begins one, it ends `period_ms` later,
 * and the next change after that begins another. Within a window there are at most `limit` changes.
 * Time is that of the log's entries, so all replicas count alike.
 *
 * A handler loads the rate with its other rows, and takes from it right before it changes anything:
 * an operation that is refused afterwards is rolled back, and what it took with it. A repeated
 * operation finds its outcome before any handler runs, so it takes nothing.
 */
#ifndef NODE_CORE_DEFINITION_PLAYER_RATE_H
#define NODE_CORE_DEFINITION_PLAYER_RATE_H

#include "node/core/definition/rate_rule.h"

#define RATE_DAMAGE "how often the player changed something lately cannot be read"
/* Of a collection about which there is no rule. */
#define RATE_EDGES_LIMIT     30u
#define RATE_EDGES_PERIOD_MS 60000u

/* What is counted: the number of its definition, under which the player's counts are kept, and the
 * name by which rules mean it. */
struct rate_subject {
    uint64_t number;
    struct slice name;
    /* While no rule is about it; `limit` 0: as often as the player likes. */
    uint32_t default_limit, default_period_ms;
};

/* In place of a subject's number, of the row that counts what is kept of a player's calls
 * (outcome_share.h): no collection or counter has it, and no key of the player's rates is lower. */
#define OUTCOME_SHARE_SUBJECT 0u

/* Of as many rules, and what holds besides those that flag. */
#define RATE_USES_MAX (RATE_RULES_MAX + 1u)

/* A window of one rule. */
struct rate_use {
    uint64_t number, generation, revision; /* Of the rule, as in rate_rule.h. */
    uint64_t since_ms;
    uint32_t used; /* At least 1. */
};

/* TABLE_RATE, of one player and subject: of rules that have none yet there is no entry, and what is
 * not in force any more goes with the next change. */
struct rate_row {
    uint32_t count;
    struct rate_use list[RATE_USES_MAX];
};
void rate_row_encode(const struct rate_row *row, struct buf *out);
NODISCARD err rate_row_decode(struct slice value, struct rate_row *ret_row);

/* Loaded by player_rate_load for player_rate_take. */
struct player_rate {
    struct rate_subject subject;
    struct rate_rules rules;
    struct rate_row row;
};

/* Of the operation's own player. ERR_NEED; ERR_CORRUPT: the row cannot be read, RATE_DAMAGE. */
NODISCARD err player_rate_load(struct apply_context *context, const struct rate_subject *subject,
                               struct player_rate *ret_rate);
/* One change is about to be made; `makes`: it makes an edge, which rules that flag count alone.
 * ERR_CONFLICT: refused as THROTTLED, which is not stored as the outcome; `retry_after_ms` is when
 * every rule that refuses has room again, and nothing was taken. */
NODISCARD err player_rate_take(struct apply_context *context, const struct player_rate *rate,
                               bool makes);
/* What a rule flags an edge for that the player makes at this entry: of the rules that are loaded,
 * before player_rate_take. */
enum rate_flag { RATE_FLAGS_NOTHING, RATE_FLAGS_YOUNG, RATE_FLAGS_FAST };
enum rate_flag player_rate_flag(const struct apply_context *context,
                                const struct player_rate *rate);

#endif
