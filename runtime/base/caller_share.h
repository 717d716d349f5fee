/*
 * caller_share: how much of something each caller holds now: places for calls, bytes of requests
 * (DESIGN section 11). What is limited for all is limited for each as well, so that one who holds
 * on to things takes nothing from the others. Pure.
 */
#ifndef RUNTIME_BASE_CALLER_SHARE_H
#define RUNTIME_BASE_CALLER_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct caller_shares;

struct caller_shares *caller_shares_new(void);
/* CHECK: nothing is held. NULL is allowed. */
void caller_shares_free(struct caller_shares *shares);
/*
 * Takes `amount` for the caller of that name. False: with it the caller would hold more than
 * `limit`, and nothing was taken. One who holds nothing may take any amount.
 */
bool caller_share_take(struct caller_shares *shares, uint64_t name, uint64_t amount,
                       uint64_t limit);
/* Gives back what was taken; CHECK: so much is held. Of none is left no trace. */
void caller_share_give(struct caller_shares *shares, uint64_t name, uint64_t amount);
uint64_t caller_share_held(const struct caller_shares *shares, uint64_t name);
/* CHECKs that a caller is in the table exactly while it holds something. For tests. */
void caller_shares_check(const struct caller_shares *shares);

#endif
