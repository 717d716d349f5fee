#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cluster/api_key.h"

static struct api_key_record record_of(uint8_t first)
{
    uint8_t secret[API_KEY_SECRET_BYTES] = { first };
    struct api_key_record record = { .name = "shop",
                                     .scopes = SCOPE_PAYMENTS | SCOPE_READ,
                                     .created_at_ms = 1,
                                     .expires_at_ms = 1ull << 60,
                                     .authority = SCOPE_PAYMENTS,
                                     .rate_per_s = 100 };

    api_key_digest("dev", secret, record.digest);
    api_key_id(record.digest, record.id);
    return record;
}

static void a_key_in_text_is_the_same_key(void **state)
{
    uint8_t secret[API_KEY_SECRET_BYTES];
    uint8_t read[API_KEY_SECRET_BYTES] = { 0 };
    char text[API_KEY_TEXT_SIZE];
    (void)state;

    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (uint8_t)(i * 37 + 1);
    api_key_print(secret, text);
    assert_int_equal(strlen(text), API_KEY_TEXT_SIZE - 1);
    assert_true(api_key_parse(slice_from_text(text), read));
    assert_memory_equal(read, secret, sizeof secret);
    text[API_KEY_TEXT_SIZE - 2] = 'g';
    assert_false(api_key_parse(slice_from_text(text), read));
    assert_false(api_key_parse(SLICE_LITERAL("hf_00"), read));
    assert_false(api_key_parse((struct slice){ 0 }, read));
}

/* HMAC-SHA-256 of 32 zeros under "holdfast api key 1 dev", by Python's hmac. */
static void the_digest_is_an_hmac_under_the_clusters_name(void **state)
{
    static const uint8_t known[4] = { 0x06, 0xda, 0xf8, 0x46 };
    uint8_t secret[API_KEY_SECRET_BYTES] = { 0 };
    uint8_t digest[API_KEY_DIGEST_BYTES], other[API_KEY_DIGEST_BYTES];
    (void)state;

    api_key_digest("dev", secret, digest);
    assert_memory_equal(digest, known, sizeof known);
    api_key_digest("production", secret, other);
    assert_memory_not_equal(digest, other, sizeof digest);
}

static void a_key_holds_for_the_one_that_it_replaces(void **state)
{
    struct api_key_record record = record_of(1), decoded;
    struct record_error why;
    struct buf json = { 0 };
    (void)state;

    assert_string_equal(api_key_holder(&record), record.id);
    snprintf(record.holder, sizeof record.holder, "%s", record_of(2).id);
    assert_string_equal(api_key_holder(&record), record_of(2).id);
    api_key_record_encode(&record, &json);
    assert_int_equal(api_key_record_decode(buf_slice(&json), &decoded, &why), ERR_OK);
    assert_string_equal(decoded.holder, record.holder);
    buf_deinit(&json);
    for (const char *const *bad = (const char *const[]){ "0", "cert:gs", "00000000000G", NULL };
         *bad != NULL; bad++) {
        snprintf(record.holder, sizeof record.holder, "%s", *bad);
        assert_int_equal(api_key_record_validate(&record, &why), ERR_INVALID);
    }
}

static void a_record_is_decoded_as_it_was_encoded(void **state)
{
    struct api_key_record record = record_of(1);
    struct api_key_record read = { 0 };
    struct record_error why;
    struct buf json = { 0 };
    (void)state;

    api_key_record_encode(&record, &json);
    assert_int_equal(api_key_record_decode(buf_slice(&json), &read, &why), ERR_OK);
    assert_string_equal(read.id, record.id);
    assert_string_equal(read.name, record.name);
    assert_memory_equal(read.digest, record.digest, sizeof read.digest);
    assert_int_equal(read.scopes, record.scopes);
    assert_int_equal(read.created_at_ms, record.created_at_ms);
    assert_int_equal(read.expires_at_ms, record.expires_at_ms);
    assert_int_equal(read.authority, SCOPE_PAYMENTS);
    assert_int_equal(read.rate_per_s, record.rate_per_s);
    buf_deinit(&json);
}

/* A record of before keys had one decodes, too. */
static void an_authority_is_one_scope_that_the_key_has_or_none(void **state)
{
    struct api_key_record record = record_of(1);
    struct api_key_record read;
    struct record_error why;
    struct buf json = { 0 };
    (void)state;

    record.authority = 0;
    api_key_record_encode(&record, &json);
    buf_put_u8(&json, 0);
    assert_null(strstr((const char *)json.data, "authority"));
    json.size--;
    assert_int_equal(api_key_record_decode(buf_slice(&json), &read, &why), ERR_OK);
    assert_int_equal(read.authority, 0);
    record.authority = SCOPE_MAIL;
    assert_int_equal(api_key_record_validate(&record, &why), ERR_INVALID);
    record.authority = SCOPE_READ;
    assert_int_equal(api_key_record_validate(&record, &why), ERR_INVALID);
    record.scopes |= SCOPE_GAME | SCOPE_MAIL;
    record.authority = SCOPE_GAME;
    assert_int_equal(api_key_record_validate(&record, &why), ERR_INVALID);
    record.authority = SCOPE_PAYMENTS | SCOPE_MAIL;
    assert_int_equal(api_key_record_validate(&record, &why), ERR_INVALID);
    record.authority = SCOPE_MAIL;
    assert_int_equal(api_key_record_validate(&record, &why), ERR_OK);
    buf_deinit(&json);
}

static void a_record_with_a_scope_that_is_none_opens_nothing(void **state)
{
    struct api_key_record record = record_of(2);
    struct api_key_record read;
    struct record_error why;
    struct buf json = { 0 };
    (void)state;

    api_key_record_encode(&record, &json);
    buf_put_u8(&json, 0);
    char *scope = strstr((char *)json.data, "payments");
    assert_non_null(scope);
    memcpy(scope, "everyone", 8);
    assert_int_equal(api_key_record_decode((struct slice){ json.data, json.size - 1 }, &read, &why),
                     ERR_INVALID);
    assert_string_equal(why.text, "API key record: there is no scope \"everyone\"");
    buf_deinit(&json);
}

static void a_record_whose_id_belongs_to_another_is_refused(void **state)
{
    struct api_key_record record = record_of(3);
    struct record_error why;
    (void)state;

    record.id[0] = record.id[0] == 'a' ? 'b' : 'a';
    assert_int_equal(api_key_record_validate(&record, &why), ERR_INVALID);
    record = record_of(3);
    record.scopes = 0;
    assert_int_equal(api_key_record_validate(&record, &why), ERR_INVALID);
    record = record_of(3);
    record.name[0] = 0;
    assert_int_equal(api_key_record_validate(&record, &why), ERR_INVALID);
    assert_string_equal(why.text, "API key record: name: empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_in_text_is_the_same_key),
        cmocka_unit_test(the_digest_is_an_hmac_under_the_clusters_name),
        cmocka_unit_test(a_key_holds_for_the_one_that_it_replaces),
        cmocka_unit_test(a_record_is_decoded_as_it_was_encoded),
        cmocka_unit_test(an_authority_is_one_scope_that_the_key_has_or_none),
        cmocka_unit_test(a_record_with_a_scope_that_is_none_opens_nothing),
        cmocka_unit_test(a_record_whose_id_belongs_to_another_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
