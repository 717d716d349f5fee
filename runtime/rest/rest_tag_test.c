/* ETag of an answer, and what If-None-Match says of it. */
#include "runtime/rest/rest_tag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/definition.pb-c.h"
#include "holdfast/v1/favorites.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "runtime/base/check.h"

static void assert_tag(const ProtobufCMessage *answer, const char *wanted)
{
    char tag[REST_TAG_BYTES];

    assert_true(rest_tag_of(answer, tag));
    assert_string_equal(tag, wanted);
    assert_true(rest_tags_are_sound(slice_from_text(tag)));
    assert_true(rest_tags_have(slice_from_text(tag), tag));
}

static void a_version_is_the_tag_where_it_tells_all(void **state)
{
    Holdfast__V1__WriteInfo write = HOLDFAST__V1__WRITE_INFO__INIT;
    Holdfast__V1__GrantResponse grant = HOLDFAST__V1__GRANT_RESPONSE__INIT;
    Holdfast__V1__Profile profile = HOLDFAST__V1__PROFILE__INIT;
    Holdfast__V1__GetProfileResponse got = HOLDFAST__V1__GET_PROFILE_RESPONSE__INIT;
    Holdfast__V1__GetBalancesResponse balances = HOLDFAST__V1__GET_BALANCES_RESPONSE__INIT;
    Holdfast__V1__ListMailResponse mail = HOLDFAST__V1__LIST_MAIL_RESPONSE__INIT;

    (void)state;
    write.version = 12;
    grant.write = &write;
    assert_tag(&grant.base, "\"12\"");
    got.profile = &profile;
    got.as_of = (char *)"c1.abc";
    assert_tag(&got.base, "\"0\"");
    profile.version = UINT64_MAX;
    assert_tag(&got.base, "\"18446744073709551615\"");
    profile.mail = &mail; /* A piece of mail that comes raises no version. */
    assert_tag(&got.base, "W/\"c1.abc\"");
    balances.version = 3;
    balances.as_of = (char *)"c1.abc";
    assert_tag(&balances.base, "\"3\"");
}

static void else_the_token_is(void **state)
{
    Holdfast__V1__ListEntriesResponse entries = HOLDFAST__V1__LIST_ENTRIES_RESPONSE__INIT;
    Holdfast__V1__GetClusterResponse cluster = HOLDFAST__V1__GET_CLUSTER_RESPONSE__INIT;
    char longest[AS_OF_TEXT_SIZE], wanted[REST_TAG_BYTES], tag[REST_TAG_BYTES];
    const struct as_of as_of = { UINT32_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };

    (void)state;
    assert_false(rest_tag_of(&entries.base, tag)); /* A read of nothing. */
    assert_false(rest_tag_of(&cluster.base, tag));
    as_of_print(&as_of, longest);
    entries.as_of = longest;
    snprintf(wanted, sizeof wanted, "W/\"%s\"", longest);
    assert_tag(&entries.base, wanted);
}

/* Whenever it was read; but a stale one is never "not modified". */
static void of_a_count_the_number_is(void **state)
{
    Holdfast__V1__TargetCount count = HOLDFAST__V1__TARGET_COUNT__INIT;
    Holdfast__V1__GetCountResponse answer = HOLDFAST__V1__GET_COUNT_RESPONSE__INIT;
    char tag[REST_TAG_BYTES];
    (void)state;

    assert_false(rest_tag_of(&answer.base, tag));
    answer.count = &count;
    assert_tag(&answer.base, "W/\"n0\"");
    count.count = 12;
    count.as_of_from_ms = 7;
    assert_tag(&answer.base, "W/\"n12\"");
    count.stale = true;
    assert_false(rest_tag_of(&answer.base, tag));
}

static void of_settings_the_number_and_the_version_are(void **state)
{
    Holdfast__V1__GetSettingsResponse answer = HOLDFAST__V1__GET_SETTINGS_RESPONSE__INIT;
    (void)state;

    answer.number = UINT64_MAX;
    answer.version = 31;
    assert_tag(&answer.base, "W/\"sffffffffffffffff.1f\"");
    answer.unchanged = true;
    assert_tag(&answer.base, "W/\"sffffffffffffffff.1f\"");
}

static void what_is_stale_or_was_to_be_fresh_is_not_kept(void **state)
{
    Holdfast__V1__TargetCount count = HOLDFAST__V1__TARGET_COUNT__INIT;
    Holdfast__V1__TargetCount other = HOLDFAST__V1__TARGET_COUNT__INIT;
    Holdfast__V1__TargetCount *counts[] = { &other, &count };
    Holdfast__V1__GetCountRequest one = HOLDFAST__V1__GET_COUNT_REQUEST__INIT;
    Holdfast__V1__GetCountResponse answer = HOLDFAST__V1__GET_COUNT_RESPONSE__INIT;
    Holdfast__V1__BatchGetCountsRequest batch = HOLDFAST__V1__BATCH_GET_COUNTS_REQUEST__INIT;
    Holdfast__V1__BatchGetCountsResponse all = HOLDFAST__V1__BATCH_GET_COUNTS_RESPONSE__INIT;
    Holdfast__V1__GetBalancesRequest ask = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;
    Holdfast__V1__GetBalancesResponse balances = HOLDFAST__V1__GET_BALANCES_RESPONSE__INIT;
    (void)state;

    answer.count = &count;
    all.counts = counts;
    all.n_counts = 2;
    assert_int_equal(rest_keep_s(METHOD_GET_COUNT, &one.base, &answer.base), 2);
    assert_int_equal(rest_keep_s(METHOD_BATCH_GET_COUNTS, &batch.base, &all.base), 2);
    assert_int_equal(rest_keep_s(METHOD_GET_BALANCES, &ask.base, &balances.base), 0);
    count.stale = true;
    assert_int_equal(rest_keep_s(METHOD_GET_COUNT, &one.base, &answer.base), 0);
    assert_int_equal(rest_keep_s(METHOD_BATCH_GET_COUNTS, &batch.base, &all.base), 0);
    count.stale = false;
    one.fresh = true;
    batch.fresh = true;
    assert_int_equal(rest_keep_s(METHOD_GET_COUNT, &one.base, &answer.base), 0);
    assert_int_equal(rest_keep_s(METHOD_BATCH_GET_COUNTS, &batch.base, &all.base), 0);
}

static void tags_are_compared_without_their_weakness(void **state)
{
    static const struct {
        const char *header;
        const char *tag;
        bool has;
    } cases[] = {
        { "\"7\"", "\"7\"", true },          { "W/\"7\"", "\"7\"", true },
        { "\"c1.a\"", "W/\"c1.a\"", true },  { "W/\"c1.a\"", "W/\"c1.a\"", true },
        { "\"6\", \"7\"", "\"7\"", true },   { "\"6\",W/\"5\" ,\t\"7\"", "\"7\"", true },
        { "\"a,b\", \"7\"", "\"7\"", true }, { "*", "\"7\"", true },
        { "\"77\"", "\"7\"", false },        { "\"\"", "\"7\"", false },
        { "\"8\"", "\"7\"", false },         { "\"*\"", "\"7\"", false },
        { "\"a,\"", "\"7\"", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_true(rest_tags_are_sound(slice_from_text(cases[i].header)));
        assert_int_equal(rest_tags_have(slice_from_text(cases[i].header), cases[i].tag),
                         cases[i].has);
    }
}

static void what_is_no_list_of_tags_is_told_apart(void **state)
{
    static const char *const headers[] = {
        "",         "7",        "\"7",      "7\"", "w/\"7\"", "W/7",       "\"7\" \"8\"",
        "\"7\",",   ",\"7\"",   "*, *",     "*,",  "\"a b\"", "\"7\",,",   "\"7\", *",
        "W/ \"7\"", "\"\x7f\"", "\"a\nb\"", "W/",  "\"",      "\"7\";a=b", "\"7\", 8",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        assert_false(rest_tags_are_sound(slice_from_text(headers[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_is_the_tag_where_it_tells_all),
        cmocka_unit_test(else_the_token_is),
        cmocka_unit_test(of_a_count_the_number_is),
        cmocka_unit_test(of_settings_the_number_and_the_version_are),
        cmocka_unit_test(what_is_stale_or_was_to_be_fresh_is_not_kept),
        cmocka_unit_test(tags_are_compared_without_their_weakness),
        cmocka_unit_test(what_is_no_list_of_tags_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
