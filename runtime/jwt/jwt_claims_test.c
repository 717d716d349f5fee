#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/jwt/jwt_claims.h"

#define REST "\"aud\":\"game\",\"sub\":\"ada\"}"

static const struct jwt_rules rules = { .audience = "game", .issuer = "", .skew_ms = 30000 };
static const struct jwt_rules strict = { .audience = "game", .issuer = "id", .skew_ms = 30000 };
static struct jwt_claims claims;
static struct jwt_refusal refusal;

static enum jwt_fault read_by(const struct jwt_rules *by, const char *json)
{
    return jwt_claims_read(slice_from_text(json), by, &claims, &refusal);
}

static void assert_refused(const char *json, enum jwt_fault fault, const char *field)
{
    assert_int_equal(read_by(&rules, json), fault);
    assert_int_equal(refusal.fault, fault);
    assert_string_equal(refusal.field, field);
    assert_true(refusal.limit[0] != 0);
}

static void claims_name_a_player_and_a_time(void **state)
{
    (void)state;
    assert_int_equal(read_by(&rules, "{\"exp\":1700003600,\"iat\":1700000000,\"nbf\":1700000001.5,"
                                     "\"aud\":[\"shop\",\"game\"],\"sub\":\"ad\\u00e4\"}"),
                     JWT_OK);
    assert_string_equal(claims.subject, "ad\xc3\xa4");
    assert_true(claims.expires_ms == 1700003600000ull);
    assert_true(claims.not_before_ms == 1700000001500ull);
    assert_int_equal(read_by(&rules, "{\"exp\":1.25," REST), JWT_OK);
    assert_true(claims.expires_ms == 1250 && claims.not_before_ms == 0);
}

static void a_token_without_an_end_is_refused(void **state)
{
    (void)state;
    assert_refused("{" REST, JWT_FORM, "exp");
    assert_refused("{\"exp\":\"1700003600\"," REST, JWT_FORM, "exp");
    assert_refused("{\"exp\":null," REST, JWT_FORM, "exp");
    assert_refused("{\"exp\":-1," REST, JWT_FORM, "exp");
    assert_refused("{\"exp\":1e300," REST, JWT_FORM, "exp");
    assert_refused("{\"exp\":9223372036854775807," REST, JWT_FORM, "exp");
    assert_refused("{\"exp\":253402300800," REST, JWT_FORM, "exp");
    assert_refused("{\"exp\":99999999999999999999999," REST, JWT_FORM, "claims");
    assert_refused("{\"exp\":1,\"nbf\":\"now\"," REST, JWT_FORM, "nbf");
    assert_refused("{\"exp\":1,\"iat\":true," REST, JWT_FORM, "iat");
}

static void an_audience_is_one_of_those_named(void **state)
{
    (void)state;
    assert_refused("{\"exp\":1,\"sub\":\"ada\"}", JWT_AUDIENCE, "aud");
    assert_refused("{\"exp\":1,\"sub\":\"ada\",\"aud\":\"Game\"}", JWT_AUDIENCE, "aud");
    assert_refused("{\"exp\":1,\"sub\":\"ada\",\"aud\":\"game \"}", JWT_AUDIENCE, "aud");
    assert_refused("{\"exp\":1,\"sub\":\"ada\",\"aud\":[]}", JWT_AUDIENCE, "aud");
    assert_refused("{\"exp\":1,\"sub\":\"ada\",\"aud\":[\"shop\"]}", JWT_AUDIENCE, "aud");
    assert_refused("{\"exp\":1,\"sub\":\"ada\",\"aud\":[\"game\",7]}", JWT_FORM, "aud");
    assert_refused("{\"exp\":1,\"sub\":\"ada\",\"aud\":[[\"game\"]]}", JWT_FORM, "aud");
    assert_refused("{\"exp\":1,\"sub\":\"ada\",\"aud\":{\"game\":1}}", JWT_FORM, "aud");
}

static void an_issuer_counts_where_one_is_configured(void **state)
{
    (void)state;
    assert_int_equal(read_by(&rules, "{\"exp\":1,\"iss\":\"other\"," REST), JWT_OK);
    assert_int_equal(read_by(&strict, "{\"exp\":1,\"iss\":\"id\"," REST), JWT_OK);
    assert_int_equal(read_by(&strict, "{\"exp\":1,\"iss\":\"id2\"," REST), JWT_ISSUER);
    assert_string_equal(refusal.field, "iss");
    assert_int_equal(read_by(&strict, "{\"exp\":1,\"iss\":[\"id\"]," REST), JWT_ISSUER);
    assert_int_equal(read_by(&strict, "{\"exp\":1," REST), JWT_ISSUER);
}

static void a_subject_is_a_players_id(void **state)
{
    struct buf json = { 0 };

    (void)state;
    assert_refused("{\"exp\":1,\"aud\":\"game\"}", JWT_SUBJECT, "sub");
    assert_refused("{\"exp\":1,\"aud\":\"game\",\"sub\":\"\"}", JWT_SUBJECT, "sub");
    assert_refused("{\"exp\":1,\"aud\":\"game\",\"sub\":42}", JWT_SUBJECT, "sub");
    assert_refused("{\"exp\":1,\"aud\":\"game\",\"sub\":\"a\\nb\"}", JWT_SUBJECT, "sub");
    assert_refused("{\"exp\":1,\"aud\":\"game\",\"sub\":\"a\\u007f\"}", JWT_SUBJECT, "sub");
    assert_refused("{\"exp\":1,\"aud\":\"game\",\"sub\":\"a\\u0085b\"}", JWT_SUBJECT, "sub");
    assert_refused("{\"exp\":1,\"aud\":\"game\",\"sub\":\"a\\u0000b\"}", JWT_FORM, "claims");
    for (int size = 100; size <= 101; size++) {
        buf_clear(&json);
        buf_printf(&json, "{\"exp\":1,\"aud\":\"game\",\"sub\":\"%0*d\"}", size, 7);
        buf_put_u8(&json, 0);
        assert_int_equal(read_by(&rules, (const char *)json.data),
                         size <= 100 ? JWT_OK : JWT_SUBJECT);
    }
    buf_deinit(&json);
}

static void claims_are_one_object_that_names_nothing_twice(void **state)
{
    (void)state;
    assert_refused("", JWT_FORM, "claims");
    assert_refused("[]", JWT_FORM, "claims");
    assert_refused("{\"sub\":\"eve\",\"exp\":1," REST, JWT_FORM, "claims");
    assert_refused("{\"exp\":1,\"x\":[[[[[[[[]]]]]]]]," REST, JWT_FORM, "claims");
    assert_int_equal(read_by(&rules, "{\"exp\":1,\"x\":[[[[[[[]]]]]]]," REST), JWT_OK);
}

static void clocks_may_differ_by_the_skew(void **state)
{
    (void)state;
    assert_int_equal(read_by(&rules, "{\"exp\":1000,\"nbf\":500," REST), JWT_OK);
    assert_int_equal(jwt_claims_check_time(&claims, &rules, 1029999, &refusal), JWT_OK);
    assert_int_equal(jwt_claims_check_time(&claims, &rules, 1030000, &refusal), JWT_EXPIRED);
    assert_string_equal(refusal.field, "exp");
    assert_int_equal(jwt_claims_check_time(&claims, &rules, 470000, &refusal), JWT_OK);
    assert_int_equal(jwt_claims_check_time(&claims, &rules, 469999, &refusal), JWT_NOT_YET);
    assert_int_equal(read_by(&rules, "{\"exp\":1000,\"iat\":900," REST), JWT_OK);
    assert_int_equal(jwt_claims_check_time(&claims, &rules, 800000, &refusal), JWT_NOT_YET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_name_a_player_and_a_time),
        cmocka_unit_test(a_token_without_an_end_is_refused),
        cmocka_unit_test(an_audience_is_one_of_those_named),
        cmocka_unit_test(an_issuer_counts_where_one_is_configured),
        cmocka_unit_test(a_subject_is_a_players_id),
        cmocka_unit_test(claims_are_one_object_that_names_nothing_twice),
        cmocka_unit_test(clocks_may_differ_by_the_skew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
