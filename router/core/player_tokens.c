#include "router/core/player_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "idl/limit.h"
#include "runtime/base/check.h"

#define WAYS 8u
#define SETS (PLAYER_TOKENS_REMEMBERED / WAYS)

_Static_assert(JWT_SUBJECT_BYTES_MAX == LIMIT_PLAYER_ID_BYTES, "a subject is a player's id");

struct proven {
    uint64_t until_ms; /* 0: nothing is remembered here. */
    uint8_t hash[SHA256_BYTES];
    char player[JWT_SUBJECT_BYTES_MAX + 1];
};

struct player_tokens {
    struct jwt_rules rules;
    struct jwk_set keys;
    /* Of the token that was read last. */
    struct slice text; /* Empty: none, or it was refused. */
    struct jws jws;
    struct jwk *key;
    struct jwt_claims claims;
    struct proven proven[SETS][WAYS];
};

struct player_tokens *player_tokens_new(const struct jwt_rules *rules)
{
    struct player_tokens *tokens = mem_zalloc(sizeof *tokens);

    CHECK(rules->audience[0] != 0 && rules->skew_ms <= JWT_SKEW_MS_MAX);
    tokens->rules = *rules;
    return tokens;
}

void player_tokens_free(struct player_tokens *tokens)
{
    if (tokens == NULL)
        return;
    jwk_set_deinit(&tokens->keys);
    free(tokens);
}

void player_tokens_set_keys(struct player_tokens *tokens, struct jwk_set *set)
{
    jwk_set_deinit(&tokens->keys);
    tokens->keys = *set;
    explicit_bzero(set, sizeof *set);
    tokens->text = (struct slice){ 0 };
    memset(tokens->proven, 0, sizeof tokens->proven);
}

uint32_t player_tokens_keys(const struct player_tokens *tokens)
{
    return tokens->keys.count;
}

/* Only proven tokens are here, and a caller cannot choose their hashes, so the places need no
 * secret. */
static uint32_t place_of(const uint8_t *hash)
{
    return (hash[0] * 256u + hash[1]) % SETS;
}

static struct proven *set_of(struct player_tokens *tokens, const uint8_t *hash)
{
    return tokens->proven[place_of(hash)];
}

const char *player_tokens_recall(struct player_tokens *tokens, struct slice text, uint64_t wall_ms)
{
    uint8_t hash[SHA256_BYTES];
    const struct proven *set;

    if (text.size > JWS_TEXT_MAX)
        return NULL;
    sha256_pair(text, (struct slice){ 0 }, hash);
    set = set_of(tokens, hash);
    for (uint32_t i = 0; i < WAYS; i++) {
        if (set[i].until_ms > wall_ms && memcmp(set[i].hash, hash, sizeof hash) == 0)
            return set[i].player;
    }
    return NULL;
}

/* In the place of the one that expires first. */
static const char *remember(struct player_tokens *tokens)
{
    uint8_t hash[SHA256_BYTES];
    struct proven *set, *place;

    sha256_pair(tokens->text, (struct slice){ 0 }, hash);
    set = set_of(tokens, hash);
    place = &set[0];
    for (uint32_t i = 1; i < WAYS; i++) {
        if (set[i].until_ms < place->until_ms)
            place = &set[i];
    }
    place->until_ms = tokens->claims.expires_ms + tokens->rules.skew_ms;
    memcpy(place->hash, hash, sizeof hash);
    memcpy(place->player, tokens->claims.subject, sizeof place->player);
    return place->player;
}

enum jwt_fault player_tokens_read(struct player_tokens *tokens, struct slice text, uint64_t wall_ms,
                                  struct jwt_refusal *ret_refusal)
{
    enum jwt_fault fault = jws_read(text, &tokens->jws, ret_refusal);

    tokens->text = (struct slice){ 0 };
    if (fault == JWT_OK)
        fault = jws_find_key(&tokens->jws, &tokens->keys, &tokens->key, ret_refusal);
    if (fault == JWT_OK)
        fault = jwt_claims_read(tokens->jws.payload, &tokens->rules, &tokens->claims, ret_refusal);
    if (fault == JWT_OK)
        fault = jwt_claims_check_time(&tokens->claims, &tokens->rules, wall_ms, ret_refusal);
    if (fault == JWT_OK)
        tokens->text = text;
    return fault;
}

enum jwt_fault player_tokens_prove(struct player_tokens *tokens, const char **ret_player,
                                   struct jwt_refusal *ret_refusal)
{
    CHECK(tokens->text.size > 0);
    bool is_signed = jws_is_signed(&tokens->jws, tokens->key);
    if (is_signed)
        *ret_player = remember(tokens);
    tokens->text = (struct slice){ 0 };
    if (is_signed)
        return JWT_OK;
    *ret_refusal = (struct jwt_refusal){ JWT_SIGNATURE, "signature", "that of the key" };
    return JWT_SIGNATURE;
}

void player_tokens_check(const struct player_tokens *tokens)
{
    for (uint32_t i = 0; i < SETS; i++) {
        for (uint32_t j = 0; j < WAYS; j++) {
            const struct proven *one = &tokens->proven[i][j];

            if (one->until_ms == 0)
                continue;
            CHECK(place_of(one->hash) == i);
            CHECK(one->player[0] != 0);
            CHECK(memchr(one->player, 0, sizeof one->player) != NULL);
        }
    }
}
