#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "router/core/key_table.h"
#include "runtime/base/check.h"

#define NOW_MS 1000000u

/* The key of that number, in text, and its record. */
static struct api_key_record record_of(uint32_t number, char ret_text[API_KEY_TEXT_SIZE])
{
    uint8_t secret[API_KEY_SECRET_BYTES] = { (uint8_t)number, (uint8_t)(number >> 8) };
    struct api_key_record record = { .scopes = SCOPE_GAME, .name = "test" };

    api_key_print(secret, ret_text);
    api_key_digest("dev", secret, record.digest);
    api_key_id(record.digest, record.id);
    return record;
}

static enum key_found find(struct key_table *table, const char *text)
{
    struct key_entry *entry;

    return key_table_find(table, slice_from_text(text), NOW_MS, &entry);
}

static int make_table(void **state)
{
    *state = key_table_new("dev", 42);
    return 0;
}

static int free_table(void **state)
{
    key_table_free(*state);
    return 0;
}

static void a_key_is_found_from_its_record_until_it_is_removed(void **state)
{
    struct key_table *table = *state;
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record record = record_of(1, text);

    assert_int_equal(find(table, text), KEY_UNKNOWN);
    assert_int_equal(key_table_put(table, &record), ERR_OK);
    assert_false(key_table_remembers(table, slice_from_text(text)));
    assert_int_equal(find(table, text), KEY_FOUND);
    assert_true(key_table_remembers(table, slice_from_text(text)));
    assert_int_equal(find(table, text), KEY_FOUND);
    key_table_check(table);
    key_table_remove(table, slice_from_text(record.id));
    key_table_check(table);
    assert_int_equal(find(table, text), KEY_UNKNOWN); /* Also what was remembered. */
    assert_int_equal(key_table_count(table), 0);
}

static void what_is_no_key_is_unknown(void **state)
{
    struct key_table *table = *state;
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record record = record_of(1, text);

    assert_int_equal(key_table_put(table, &record), ERR_OK);
    assert_int_equal(find(table, ""), KEY_MISSING);
    assert_int_equal(find(table, "hf_"), KEY_UNKNOWN);
    assert_int_equal(find(table, record.id), KEY_UNKNOWN);
    assert_int_equal(find(table, text), KEY_FOUND);
    text[10] = text[10] == '0' ? '1' : '0'; /* Nearly the key that is remembered. */
    assert_int_equal(find(table, text), KEY_UNKNOWN);
}

static void a_key_ends_at_its_time(void **state)
{
    struct key_table *table = *state;
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record record = record_of(1, text);
    struct key_entry *entry;

    record.expires_at_ms = NOW_MS;
    assert_int_equal(key_table_put(table, &record), ERR_OK);
    assert_int_equal(key_table_find(table, slice_from_text(text), NOW_MS - 1, &entry), KEY_FOUND);
    assert_int_equal(find(table, text), KEY_EXPIRED);
}

static void a_changed_record_counts_at_once(void **state)
{
    struct key_table *table = *state;
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record record = record_of(1, text);
    struct key_entry *entry;

    assert_int_equal(key_table_put(table, &record), ERR_OK);
    assert_int_equal(find(table, text), KEY_FOUND);
    record.scopes = SCOPE_READ;
    assert_int_equal(key_table_put(table, &record), ERR_OK);
    assert_int_equal(key_table_find(table, slice_from_text(text), NOW_MS, &entry), KEY_FOUND);
    assert_int_equal(entry->record.scopes, SCOPE_READ);
    assert_int_equal(key_table_count(table), 1);
}

static void as_many_keys_as_there_is_room_are_all_found(void **state)
{
    struct key_table *table = *state;
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record record;

    for (uint32_t i = 0; i < API_KEYS_MAX; i++) {
        record = record_of(i, text);
        assert_int_equal(key_table_put(table, &record), ERR_OK);
    }
    record = record_of(API_KEYS_MAX, text);
    assert_int_equal(key_table_put(table, &record), ERR_FULL);
    assert_int_equal(find(table, text), KEY_UNKNOWN);
    record = record_of(77, text);
    key_table_remove(table, slice_from_text(record.id));
    for (uint32_t i = 0; i < API_KEYS_MAX; i++) {
        (void)record_of(i, text);
        assert_int_equal(find(table, text), i == 77 ? KEY_UNKNOWN : KEY_FOUND);
    }
    key_table_clear(table);
    assert_int_equal(find(table, text), KEY_UNKNOWN);
}

/* Digests of one place, and of those beside it: what is removed leaves the others found. */
static void keys_that_crowd_together_are_found_after_others_went(void **state)
{
    struct key_table *table = *state;
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record records[64];
    uint64_t random = 7;

    for (uint32_t i = 0; i < ARRAY_SIZE(records); i++) {
        records[i] = record_of(i, text);
        records[i].digest[0] = (uint8_t)(i % 5 == 0 ? 0 : 0xf9 + i % 7); /* Around the end, too. */
        records[i].digest[1] = i % 5 == 0 ? 0 : 0xff;
        records[i].digest[2] = (uint8_t)i;
        api_key_id(records[i].digest, records[i].id);
        assert_int_equal(key_table_put(table, &records[i]), ERR_OK);
    }
    for (uint32_t left = ARRAY_SIZE(records); left > 0; left--) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t gone = (uint32_t)(random >> 33) % left;
        key_table_remove(table, slice_from_text(records[gone].id));
        records[gone] = records[left - 1];
        assert_int_equal(key_table_count(table), left - 1);
        key_table_check(table);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_table, free_table)
    const struct CMUnitTest tests[] = {
        TEST(a_key_is_found_from_its_record_until_it_is_removed),
        TEST(what_is_no_key_is_unknown),
        TEST(a_key_ends_at_its_time),
        TEST(a_changed_record_counts_at_once),
        TEST(as_many_keys_as_there_is_room_are_all_found),
        TEST(keys_that_crowd_together_are_found_after_others_went),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
