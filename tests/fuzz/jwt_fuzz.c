/*
 * jwt_fuzz: players' tokens, and the sets of keys that they are checked by. The first byte picks: a
 * text in the place of a token; claims and a header that are signed here, so that what stands
 * behind the signature is reached; a good token with one byte changed; a JWK Set.
 */
#include <stdlib.h>
#include <string.h>

#include "router/core/player_tokens.h"
#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"
#include "runtime/jwt/jwt_vectors.h"
#include "tests/fuzz/fuzz.h"

enum kind { KIND_TEXT, KIND_SIGNED, KIND_CHANGED, KIND_SET };

#define SETS    "{\"keys\":[" PLAYER_SECRET "," PLAYER_RSA "," PLAYER_EC "]}"
#define WALL_MS (PLAYER_ISSUED_S * 1000ull)
#define DEPTH   8

static const struct jwt_rules rules = { .audience = "game",
                                        .issuer = "https://id.example",
                                        .skew_ms = 30000 };

static const char *const good[] = { PLAYER_HS256, PLAYER_RS256, PLAYER_ES256 };

static void read_set(struct slice json, struct jwk_set *ret_set)
{
    struct jwk_why why;

    CHECK(jwk_set_read(json, true, ret_set, &why) == ERR_OK);
}

static struct player_tokens *tokens_of(void)
{
    static struct player_tokens *tokens;
    struct jwk_set set;

    if (tokens == NULL) {
        tokens = player_tokens_new(&rules);
        read_set(SLICE_LITERAL(SETS), &set);
        player_tokens_set_keys(tokens, &set);
    }
    return tokens;
}

/* A caller who is let in has a player's id, and a token of strict form within its limits. */
static bool is_let_in(struct slice text)
{
    struct player_tokens *tokens = tokens_of();
    struct jwt_refusal refusal = { JWT_OK, NULL, NULL };
    const char *player = NULL;
    enum jwt_fault fault = player_tokens_read(tokens, text, WALL_MS, &refusal);

    if (fault == JWT_OK)
        fault = player_tokens_prove(tokens, &player, &refusal);
    CHECK(fault == refusal.fault);
    if (fault != JWT_OK) {
        CHECK(refusal.field[0] != 0 && refusal.limit[0] != 0);
        CHECK(player_tokens_recall(tokens, text, WALL_MS) == NULL);
        return false;
    }
    CHECK(player[0] != 0 && strlen(player) <= JWT_SUBJECT_BYTES_MAX);
    CHECK(utf8_valid(slice_from_text(player)) && text.size <= JWS_TEXT_MAX && jws_is_meant(text));
    for (const char *at = player; *at != 0; at++)
        CHECK((uint8_t)*at >= 0x20 && *at != 0x7f);
    CHECK(strcmp(player_tokens_recall(tokens, text, WALL_MS), player) == 0);
    return true;
}

/* Only the secret's owner makes such: so any other text is refused, and these three are not. */
static void check_text(struct slice text)
{
    bool is_good = false;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        is_good = is_good || slice_equal(text, slice_from_text(good[i]));
    CHECK(is_let_in(text) == is_good);
}

static void check_changed(struct slice input)
{
    if (input.size < 3)
        return;
    char *text = strdup(good[input.data[0] % ARRAY_SIZE(good)]);
    CHECK(text != NULL);
    size_t size = strlen(text);
    text[(size_t)(input.data[1] * 5u + input.data[2] % 5u) % size] ^= (char)(input.data[2] / 5 + 1);
    check_text((struct slice){ (const uint8_t *)text, size });
    free(text);
}

/* Of JSON that was taken: brackets outside of strings. */
static unsigned depth_of(struct slice json)
{
    unsigned depth = 0, deepest = 0;
    bool in_string = false;

    for (size_t i = 0; i < json.size; i++) {
        uint8_t c = json.data[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            deepest = ++depth > deepest ? depth : deepest;
        else if (!in_string && (c == '}' || c == ']'))
            depth--;
    }
    return deepest;
}

/* Header and claims, a zero between them, signed with the secret of the vectors. */
static void check_signed(struct slice input)
{
    const uint8_t *zero = input.size > 0 ? memchr(input.data, 0, input.size) : NULL;
    struct slice header = input, claims = { 0 };
    struct buf text = { 0 };
    struct jwk_set set;
    uint8_t mac[HMAC_BYTES];

    if (zero != NULL) {
        header.size = (size_t)(zero - input.data);
        claims = (struct slice){ zero + 1, input.size - header.size - 1 };
    }
    read_set(SLICE_LITERAL("{\"keys\":[" PLAYER_SECRET "]}"), &set);
    base64_encode_url(header, &text);
    buf_put_u8(&text, '.');
    base64_encode_url(claims, &text);
    hmac_sign(&set.keys[0].secret, buf_slice(&text), mac);
    buf_put_u8(&text, '.');
    base64_encode_url((struct slice){ mac, sizeof mac }, &text);
    if (is_let_in(buf_slice(&text))) {
        CHECK(depth_of(header) <= DEPTH && depth_of(claims) <= DEPTH);
        CHECK(memmem(header.data, header.size, "HS256", 5) != NULL ||
              memchr(header.data, '\\', header.size) != NULL);
    }
    jwk_set_deinit(&set);
    buf_deinit(&text);
}

/* Of a set that anyone may fetch: no secret is in it, no key is weak, no name is there twice. */
static void check_set(struct slice json)
{
    struct jwk_set set;
    struct jwk_why why;

    if (jwk_set_read(json, false, &set, &why) != ERR_OK) {
        CHECK(why.text[0] != 0);
        return;
    }
    CHECK(set.count + set.unfit <= JWK_SET_KEYS_MAX && (set.unfit > 0) == (why.text[0] != 0));
    for (uint32_t i = 0; i < set.count; i++) {
        CHECK(set.keys[i].algorithm == JWS_RS256 || set.keys[i].algorithm == JWS_ES256);
        CHECK(set.keys[i].public_key != NULL);
        for (uint32_t j = 0; j < i; j++)
            CHECK(set.keys[i].id[0] == 0 || strcmp(set.keys[i].id, set.keys[j].id) != 0);
    }
    jwk_set_deinit(&set);
}

void fuzz_one(struct slice input)
{
    if (input.size == 0)
        return;
    struct slice rest = { input.data + 1, input.size - 1 };

    switch (input.data[0] % (KIND_SET + 1)) {
    case KIND_TEXT:
        check_text(rest);
        break;
    case KIND_SIGNED:
        check_signed(rest);
        break;
    case KIND_CHANGED:
        check_changed(rest);
        break;
    default:
        check_set(rest);
        break;
    }
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    static const char both[] = "{\"alg\":\"HS256\",\"kid\":\"mac-1\"}\0" PLAYER_CLAIMS;
    static const char times[] =
        "{\"alg\":\"HS256\"}\0{\"exp\":1700000100.5,\"nbf\":1,\"iat\":2,"
        "\"aud\":\"game\",\"iss\":\"https://id.example\",\"sub\":\"\\u00e4\"}";

    fuzz_seed_add_kind(seeds, "hs256", KIND_TEXT, SLICE_LITERAL(PLAYER_HS256));
    fuzz_seed_add_kind(seeds, "rs256", KIND_TEXT, SLICE_LITERAL(PLAYER_RS256));
    fuzz_seed_add_kind(seeds, "es256", KIND_TEXT, SLICE_LITERAL(PLAYER_ES256));
    fuzz_seed_add_kind(seeds, "signed", KIND_SIGNED, SLICE_LITERAL(both));
    fuzz_seed_add_kind(seeds, "times", KIND_SIGNED, SLICE_LITERAL(times));
    fuzz_seed_add_kind(seeds, "changed", KIND_CHANGED, SLICE_LITERAL("\x01\x30\x07"));
    fuzz_seed_add_kind(seeds, "set", KIND_SET, SLICE_LITERAL(SETS));
    fuzz_seed_add_kind(seeds, "weak", KIND_SET, SLICE_LITERAL("{\"keys\":[" WEAK_RSA "]}"));
}
