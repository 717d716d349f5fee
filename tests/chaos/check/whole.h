/*
 * whole: what must hold of a history as a whole, beside the order of each player's operations:
 * every coin is somewhere, no mail is claimed twice, replicas ended alike. What is wrong is told as
 * text.
 */
#ifndef TESTS_CHAOS_CHECK_WHOLE_H
#define TESTS_CHAOS_CHECK_WHOLE_H

#include "runtime/base/buf.h"
#include "tests/chaos/check/history.h"

/* What was found wrong: a line each, with where in the file it shows. */
struct findings {
    struct buf text;
    size_t count;
};

#define FINDINGS_TOLD_MAX 100u /* The rest is only counted. */

void finding_add(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void findings_deinit(struct findings *findings);

/* Gold granted, less gold spent, is what players and mailboxes held in the end; calls without an
 * answer may have taken place or not. Every player that was called stands there in the end. */
void whole_conservation(const struct history *history, struct findings *findings);
/* A mail that was sent is claimed once at most, with the gold that was sent, by one player. */
void whole_mails(const struct history *history, struct findings *findings);
/* The replicas of a shard ended with one digest, and there is more than one. */
void whole_convergence(const struct history *history, struct findings *findings);
/* Every player's operations have an order that explains them (linear.h). *ret_undecided: how many
 * players could not be decided. */
void whole_order(const struct history *history, struct findings *findings, size_t *ret_undecided);

#endif
