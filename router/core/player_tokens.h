/*
 * player_tokens: whose token of a player a caller brings, by the keys of the service that signs
 * them. What a token says is read first, which is cheap; its signature is checked last. A token
 * that was proven is remembered by its SHA-256 until it expires or the keys change, so that the
 * next request with it costs one hash. Pure: keys and time are told; how long a signature took is
 * the caller's to measure.
 */
#ifndef ROUTER_CORE_PLAYER_TOKENS_H
#define ROUTER_CORE_PLAYER_TOKENS_H

#include "runtime/jwt/jwt_claims.h"

#define PLAYER_TOKENS_REMEMBERED 8192u

struct player_tokens;

/* The texts of the rules must outlive it. */
struct player_tokens *player_tokens_new(const struct jwt_rules *rules);
/* NULL is allowed. */
void player_tokens_free(struct player_tokens *tokens);

/* From now on these keys and no others; takes them out of *set. Nothing is remembered. */
void player_tokens_set_keys(struct player_tokens *tokens, struct jwk_set *set);
uint32_t player_tokens_keys(const struct player_tokens *tokens);

/* The player of a token that is remembered and has not expired. NULL: it has to be read. Good until
 * the next call of player_tokens_prove or player_tokens_set_keys. */
const char *player_tokens_recall(struct player_tokens *tokens, struct slice text, uint64_t wall_ms);
/* Everything but its signature: form, key, claims, times. JWT_OK: player_tokens_prove says the
 * rest, before `text` goes and before any other call. Else *ret_refusal says why. */
enum jwt_fault player_tokens_read(struct player_tokens *tokens, struct slice text, uint64_t wall_ms,
                                  struct jwt_refusal *ret_refusal);
/* Of the token that was read last: JWT_OK, and it is remembered: *ret_player, good as above. Or
 * JWT_SIGNATURE. */
enum jwt_fault player_tokens_prove(struct player_tokens *tokens, const char **ret_player,
                                   struct jwt_refusal *ret_refusal);

/* CHECKs that what is remembered is where it is looked for. For tests. */
void player_tokens_check(const struct player_tokens *tokens);

#endif
