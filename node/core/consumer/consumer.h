/*
 * consumer: the rules of named consumers of events (docs/events.md): who may change one, and how
 * its place moves. A commit names the version that it follows, so two workers of one consumer
 * cannot set each other back unseen; and what stands committed goes back only if that is asked for.
 */
#ifndef NODE_CORE_CONSUMER_CONSUMER_H
#define NODE_CORE_CONSUMER_CONSUMER_H

#include "node/core/consumer/consumer_row.h"
#include "node/core/handler/handler.h"

/* Before it a row did not keep the op_id that made the consumer, and versions fell in a shard that
 * was restored. */
#define CONSUMER_MADE_APPLY_VERSION 10u

/* A consumer as its row has it. */
struct consumer {
    struct slice name;
    bool exists;
    struct consumer_row row;
    struct event_cursor cursor; /* As row.cursor says; shard_count 0: nothing was committed. */
};

/* ---- before the log: ERR_INVALID, `context->refusal` names the field ---- */

/* That the shard keeps consumers, and is the one of that name. */
NODISCARD err consumer_check_name(struct check_context *context, const char *name);
/* The op_id, which becomes canonical. */
NODISCARD err consumer_check_op(struct check_context *context, char **op_id);
/* A cursor of this cluster's events; `may_be_empty`: or none. */
NODISCARD err consumer_check_cursor(struct check_context *context, const char *cursor,
                                    bool may_be_empty);
NODISCARD err consumer_check_filter(struct check_context *context,
                                    const Holdfast__V1__CreateConsumerRequest *request);

/* ---- applied ---- */

void consumer_footprint(const char *name, struct need *keys);
/* ERR_NEED. ERR_CORRUPT: its row cannot be read. Texts are in the arena. */
NODISCARD err consumer_find(struct state *state, struct arena *arena, struct need *need,
                            const char *name, struct consumer *ret_consumer);
/* The same at apply; ERR_CONFLICT, QUARANTINED: its row cannot be read. No entry of a log meets a
 * CHECK: bad names are refused once more. */
NODISCARD err consumer_find_applied(struct apply_context *context, const char *name,
                                    struct consumer *ret_consumer);
/* How many the shard has, LIMIT_CONSUMERS at most. ERR_NEED. */
NODISCARD err consumer_count(struct apply_context *context, uint32_t *ret_count);
/* Whether this operation is what changed the consumer last, or made it. ERR_CONFLICT: something
 * else did, under this op_id. */
NODISCARD err consumer_repeats(struct apply_context *context, const struct consumer *consumer,
                               const char *op_id, enum consumer_change change, bool *ret_repeats);
/* Writes the row, with who did it, when, and a version of its own. */
void consumer_store(struct apply_context *context, struct consumer *consumer, const char *op_id,
                    enum consumer_change change);

/* ---- told ---- */

/* As the API has it, in the arena; with its cursor or without. */
Holdfast__V1__EventConsumer *consumer_tell(struct arena *arena, const struct consumer *consumer,
                                           bool with_cursor);
/* NOT_FOUND: ERR_CONFLICT. */
err consumer_refuse_absent(struct arena *arena, struct refusal *refusal, struct slice name);

#endif
