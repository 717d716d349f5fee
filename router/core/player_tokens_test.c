#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "router/core/player_tokens.h"
#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/jwt/jwt_vectors.h"

#define NOW_MS (PLAYER_ISSUED_S * 1000ull + 5000)

static const struct jwt_rules rules = { .audience = "game",
                                        .issuer = "https://id.example",
                                        .skew_ms = 30000 };

static struct player_tokens *tokens;
static struct jwt_refusal refusal;

static void use_keys(const char *list)
{
    struct buf json = { 0 };
    struct jwk_set set;
    struct jwk_why why;

    buf_printf(&json, "{\"keys\":[%s]}", list);
    CHECK(jwk_set_read(buf_slice(&json), true, &set, &why) == ERR_OK);
    player_tokens_set_keys(tokens, &set);
    assert_int_equal(set.count, 0);
    buf_deinit(&json);
}

static int setup(void **state)
{
    (void)state;
    tokens = player_tokens_new(&rules);
    use_keys(PLAYER_SECRET "," PLAYER_RSA "," PLAYER_EC);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    player_tokens_check(tokens);
    player_tokens_free(tokens);
    return 0;
}

static enum jwt_fault check(struct slice text, uint64_t wall_ms, const char **ret_player)
{
    enum jwt_fault fault = player_tokens_read(tokens, text, wall_ms, &refusal);

    *ret_player = NULL;
    return fault != JWT_OK ? fault : player_tokens_prove(tokens, ret_player, &refusal);
}

static enum jwt_fault check_text(const char *text, uint64_t wall_ms)
{
    const char *player;
    enum jwt_fault fault = check(slice_from_text(text), wall_ms, &player);

    if (fault == JWT_OK)
        assert_string_equal(player, "ada");
    return fault;
}

static const char *recall(const char *text, uint64_t wall_ms)
{
    return player_tokens_recall(tokens, slice_from_text(text), wall_ms);
}

static void a_token_is_proven_once_and_remembered_until_it_expires(void **state)
{
    static const char *const all[] = { PLAYER_HS256, PLAYER_RS256, PLAYER_ES256 };
    const uint64_t end_ms = (PLAYER_EXPIRES_S + 30) * 1000ull;

    (void)state;
    assert_int_equal(player_tokens_keys(tokens), 3);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        assert_null(recall(all[i], NOW_MS));
        assert_int_equal(check_text(all[i], NOW_MS), JWT_OK);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        assert_string_equal(recall(all[i], NOW_MS), "ada");
        assert_string_equal(recall(all[i], end_ms - 1), "ada");
        assert_null(recall(all[i], end_ms));
        assert_int_equal(check_text(all[i], end_ms - 1), JWT_OK);
        assert_int_equal(check_text(all[i], end_ms), JWT_EXPIRED);
    }
}

static void a_token_that_is_read_is_not_yet_remembered(void **state)
{
    (void)state;
    assert_int_equal(player_tokens_read(tokens, SLICE_LITERAL(PLAYER_RS256), NOW_MS, &refusal),
                     JWT_OK);
    assert_null(recall(PLAYER_RS256, NOW_MS));
}

static void another_signature_is_refused_and_not_remembered(void **state)
{
    char *text = strdup(PLAYER_RS256);
    size_t size = strlen(text);

    (void)state;
    CHECK(text != NULL);
    text[size - 20] = text[size - 20] == 'A' ? 'B' : 'A';
    assert_int_equal(check_text(text, NOW_MS), JWT_SIGNATURE);
    assert_int_equal(refusal.fault, JWT_SIGNATURE);
    assert_string_equal(refusal.field, "signature");
    assert_null(recall(text, NOW_MS));
    free(text);
}

static void other_keys_forget_every_token(void **state)
{
    (void)state;
    assert_int_equal(check_text(PLAYER_RS256, NOW_MS), JWT_OK);
    assert_int_equal(check_text(PLAYER_ES256, NOW_MS), JWT_OK);
    use_keys(PLAYER_EC);
    assert_null(recall(PLAYER_RS256, NOW_MS));
    assert_null(recall(PLAYER_ES256, NOW_MS));
    assert_int_equal(check_text(PLAYER_RS256, NOW_MS), JWT_UNKNOWN_KEY);
    assert_int_equal(check_text(PLAYER_ES256, NOW_MS), JWT_OK);
    use_keys("");
    assert_int_equal(player_tokens_keys(tokens), 0);
    assert_int_equal(check_text(PLAYER_ES256, NOW_MS), JWT_UNKNOWN_KEY);
}

/* A token of that player, signed with the secret of the vectors. */
static void make(const char *claims, struct buf *out)
{
    struct hmac_key key;
    uint8_t secret[128], mac[HMAC_BYTES];
    const char *k = strstr(PLAYER_SECRET, "\"k\":\"") + 5;
    size_t size;

    CHECK(base64_decode_url((struct slice){ (const uint8_t *)k, strcspn(k, "\"") }, secret, &size));
    hmac_key_init(&key, (struct slice){ secret, size });
    buf_clear(out);
    base64_encode_url(SLICE_LITERAL("{\"alg\":\"HS256\",\"kid\":\"mac-1\"}"), out);
    buf_put_u8(out, '.');
    base64_encode_url(slice_from_text(claims), out);
    hmac_sign(&key, buf_slice(out), mac);
    buf_put_u8(out, '.');
    base64_encode_url((struct slice){ mac, sizeof mac }, out);
}

static void claims_are_looked_at_before_the_signature(void **state)
{
    static const struct {
        const char *claims;
        enum jwt_fault fault;
    } all[] = {
        { "{\"exp\":1700003600,\"aud\":\"shop\",\"iss\":\"https://id.example\",\"sub\":\"a\"}",
          JWT_AUDIENCE },
        { "{\"exp\":1700003600,\"aud\":\"game\",\"iss\":\"https://id.example.evil\",\"sub\":\"a\"}",
          JWT_ISSUER },
        { "{\"exp\":1700003600,\"aud\":\"game\",\"iss\":\"https://id.example\"}", JWT_SUBJECT },
        { "{\"aud\":\"game\",\"iss\":\"https://id.example\",\"sub\":\"a\"}", JWT_FORM },
        { "{\"exp\":1699999900,\"aud\":\"game\",\"iss\":\"https://id.example\",\"sub\":\"a\"}",
          JWT_EXPIRED },
        { "{\"exp\":1700003600,\"nbf\":1700000100,\"aud\":\"game\",\"iss\":\"https://id.example\","
          "\"sub\":\"a\"}",
          JWT_NOT_YET },
    };
    struct buf text = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        make(all[i].claims, &text);
        assert_int_equal(player_tokens_read(tokens, buf_slice(&text), NOW_MS, &refusal),
                         all[i].fault);
        assert_int_equal(refusal.fault, all[i].fault);
    }
    buf_deinit(&text);
}

/* More players than there are places: each of them comes in, whether remembered or not. */
static void what_is_remembered_is_bounded(void **state)
{
    struct buf text = { 0 }, claims = { 0 };
    uint32_t remembered = 0;
    const char *player;

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 2 * PLAYER_TOKENS_REMEMBERED; i++) {
            char name[16];
            buf_clear(&claims);
            buf_printf(
                &claims,
                "{\"exp\":%u,\"aud\":\"game\",\"iss\":\"https://id.example\",\"sub\":\"p%u\"}",
                PLAYER_EXPIRES_S + i, i);
            buf_put_u8(&claims, 0);
            make((const char *)claims.data, &text);
            (void)snprintf(name, sizeof name, "p%u", i);
            player = player_tokens_recall(tokens, buf_slice(&text), NOW_MS);
            if (round == 1) {
                remembered += player != NULL;
                if (player != NULL)
                    assert_string_equal(player, name);
                continue;
            }
            assert_null(player);
            assert_int_equal(check(buf_slice(&text), NOW_MS, &player), JWT_OK);
            assert_string_equal(player, name);
        }
    }
    assert_in_range(remembered, PLAYER_TOKENS_REMEMBERED / 2, PLAYER_TOKENS_REMEMBERED);
    buf_deinit(&text);
    buf_deinit(&claims);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_token_is_proven_once_and_remembered_until_it_expires),
        TEST(a_token_that_is_read_is_not_yet_remembered),
        TEST(another_signature_is_refused_and_not_remembered),
        TEST(other_keys_forget_every_token),
        TEST(claims_are_looked_at_before_the_signature),
        TEST(what_is_remembered_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
