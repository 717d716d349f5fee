/*
 * player_gate: which player's token a request brings: the checks of router/core/player_tokens.h,
 * and what they may cost. A token that is refused spends its address's failure allowance, as a
 * wrong API key does; an address without any left is not looked at, unless its token is remembered.
 * Signatures, which cost the loop up to a millisecond each, have a share of its time
 * (player_token_share); half of that is for addresses without a doubt: an address is doubted for a
 * second after each token of its own that was refused, ten seconds at most.
 */
#ifndef ROUTER_IO_PLAYER_GATE_H
#define ROUTER_IO_PLAYER_GATE_H

#include "router/core/player_tokens.h"
#include "router/core/rate_limit.h"
#include "router/io/player_keys.h"
#include "router/io/router_config.h"

struct player_gate;

/* player_audience, player_issuer, player_skew, player_token_share; keys come from `feed`. Both must
 * outlive it. `clock_ns` measures what signatures take: loop_thread_ns, but in tests. */
struct player_gate *player_gate_new(const struct router_config *config, struct player_keys *feed,
                                    uint64_t (*clock_ns)(void));
/* NULL is allowed. */
void player_gate_free(struct player_gate *gate);

struct player_visit {
    struct slice token;
    uint64_t address;             /* Stands for the address, as in the next. */
    struct rate_bucket *failures; /* Of the address. */
    uint32_t failure_rate;
    uint64_t now_ms;  /* Of a clock that never goes back. */
    uint64_t wall_ms; /* Unix time. */
};

enum player_found {
    PLAYER_FOUND,
    PLAYER_REFUSED,         /* *ret_refusal says why. */
    PLAYER_FAILS_TOO_OFTEN, /* Not looked at, as the next: *ret_retry_after_ms. */
    PLAYER_NO_TIME,
    PLAYER_KEYS_UNREAD
};

/* *ret_player is good until the next call. */
enum player_found player_gate_find(struct player_gate *gate, const struct player_visit *visit,
                                   const char **ret_player, struct jwt_refusal *ret_refusal,
                                   uint32_t *ret_retry_after_ms);

/* Tokens refused for that fault so far, each request counted. */
uint64_t player_gate_refused(const struct player_gate *gate, enum jwt_fault fault);
/* Signatures checked so far, good or not. */
uint64_t player_gate_signatures(const struct player_gate *gate);
uint32_t player_gate_keys(const struct player_gate *gate);

#endif
