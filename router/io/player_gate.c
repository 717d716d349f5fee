#include "router/io/player_gate.h"

#include <stdlib.h>

#include "runtime/base/check.h"

#define PERCENT_US 10000u /* Of a second. */
#define DOUBT_RATE 1u     /* A token refused is a second of doubt. */

struct player_gate {
    const struct router_config *config;
    struct player_keys *feed;
    uint64_t (*clock_ns)(void);
    struct jwt_rules rules;
    struct player_tokens *tokens;
    struct rate_table *doubts; /* By address: full where there is none. */
    /* Microseconds of the loop for signatures: of all, and of addresses in doubt. */
    struct rate_bucket all, doubted;
    uint64_t refused[JWT_FAULT_COUNT];
    uint64_t signatures;
};

static void on_keys(void *user, struct jwk_set *set)
{
    struct player_gate *gate = user;

    player_tokens_set_keys(gate->tokens, set);
}

struct player_gate *player_gate_new(const struct router_config *config, struct player_keys *feed,
                                    uint64_t (*clock_ns)(void))
{
    struct player_gate *gate = mem_zalloc(sizeof *gate);

    gate->config = config;
    gate->feed = feed;
    gate->clock_ns = clock_ns;
    gate->doubts = rate_table_new();
    gate->rules = (struct jwt_rules){ .audience = config->player_audience,
                                      .issuer = config->player_issuer,
                                      .skew_ms = config->player_skew };
    gate->tokens = player_tokens_new(&gate->rules);
    player_keys_watch(feed, on_keys, gate);
    return gate;
}

void player_gate_free(struct player_gate *gate)
{
    if (gate == NULL)
        return;
    player_keys_watch(gate->feed, NULL, NULL);
    player_tokens_free(gate->tokens);
    rate_table_free(gate->doubts);
    free(gate);
}

static enum player_found refuse(struct player_gate *gate, const struct player_visit *visit,
                                const struct jwt_refusal *refusal)
{
    gate->refused[refusal->fault]++;
    rate_charge(visit->failures, visit->failure_rate, 1, visit->now_ms);
    rate_charge(rate_table_get(gate->doubts, visit->address), DOUBT_RATE, 1, visit->now_ms);
    if (refusal->fault == JWT_UNKNOWN_KEY)
        player_keys_want(gate->feed);
    return PLAYER_REFUSED;
}

static bool has_time(const struct player_gate *gate, const struct player_visit *visit, bool doubted,
                     uint32_t *ret_retry_after_ms)
{
    uint32_t share_us = gate->config->player_token_share * PERCENT_US;

    return rate_has(&gate->all, share_us, visit->now_ms, ret_retry_after_ms) &&
           (!doubted || rate_has(&gate->doubted, share_us / 2, visit->now_ms, ret_retry_after_ms));
}

static enum player_found prove(struct player_gate *gate, const struct player_visit *visit,
                               const char **ret_player, struct jwt_refusal *ret_refusal,
                               uint32_t *ret_retry_after_ms)
{
    uint32_t share_us = gate->config->player_token_share * PERCENT_US;
    const struct rate_bucket *doubt = rate_table_get(gate->doubts, visit->address);
    bool doubted = doubt->full_at_us > visit->now_ms * 1000;

    if (!has_time(gate, visit, doubted, ret_retry_after_ms))
        return PLAYER_NO_TIME;
    uint64_t began_ns = gate->clock_ns();
    enum jwt_fault fault = player_tokens_prove(gate->tokens, ret_player, ret_refusal);
    uint32_t took_us = (uint32_t)((gate->clock_ns() - began_ns) / 1000);
    gate->signatures++;
    rate_charge(&gate->all, share_us, took_us, visit->now_ms);
    if (doubted)
        rate_charge(&gate->doubted, share_us / 2, took_us, visit->now_ms);
    return fault == JWT_OK ? PLAYER_FOUND : refuse(gate, visit, ret_refusal);
}

enum player_found player_gate_find(struct player_gate *gate, const struct player_visit *visit,
                                   const char **ret_player, struct jwt_refusal *ret_refusal,
                                   uint32_t *ret_retry_after_ms)
{
    if (!player_keys_known(gate->feed))
        return PLAYER_KEYS_UNREAD;
    *ret_player = player_tokens_recall(gate->tokens, visit->token, visit->wall_ms);
    if (*ret_player != NULL)
        return PLAYER_FOUND;
    if (!rate_has(visit->failures, visit->failure_rate, visit->now_ms, ret_retry_after_ms))
        return PLAYER_FAILS_TOO_OFTEN;
    if (player_tokens_read(gate->tokens, visit->token, visit->wall_ms, ret_refusal) != JWT_OK)
        return refuse(gate, visit, ret_refusal);
    return prove(gate, visit, ret_player, ret_refusal, ret_retry_after_ms);
}

uint64_t player_gate_refused(const struct player_gate *gate, enum jwt_fault fault)
{
    return gate->refused[fault];
}

uint64_t player_gate_signatures(const struct player_gate *gate)
{
    return gate->signatures;
}

uint32_t player_gate_keys(const struct player_gate *gate)
{
    return player_tokens_keys(gate->tokens);
}
