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
        cmocka_unit_test(tags_are_compared_without_their_weakness),
        cmocka_unit_test(what_is_no_list_of_tags_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
