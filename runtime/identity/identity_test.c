#include "runtime/identity/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define URI(text)                                                                                  \
    {                                                                                              \
        IDENTITY_URI,                                                                              \
        {                                                                                          \
            (const uint8_t *)(text), sizeof(text) - 1                                              \
        }                                                                                          \
    }
#define DNS(text)                                                                                  \
    {                                                                                              \
        IDENTITY_DNS,                                                                              \
        {                                                                                          \
            (const uint8_t *)(text), sizeof(text) - 1                                              \
        }                                                                                          \
    }

static struct identity good(struct identity_san san)
{
    struct identity identity = { 0 };
    struct identity_error why;

    assert_int_equal(identity_parse(&san, &identity, &why), ERR_OK);
    assert_string_equal(why.text, "");
    return identity;
}

static void an_identity_is_read_and_printed_back(void **state)
{
    static const struct {
        struct identity_san san;
        uint8_t role;
        const char *cluster, *name, *scopes, *printed;
    } cases[] = {
        { URI("holdfast://prod/node/node-1"), ROLE_NODE, "prod", "node-1", "",
          "holdfast://prod/node/node-1" },
        { URI("holdfast://a/router/R_2.x"), ROLE_ROUTER, "a", "R_2.x", "",
          "holdfast://a/router/R_2.x" },
        { URI("holdfast://a/coordinator/*"), ROLE_COORDINATOR, "a", "*", "",
          "holdfast://a/coordinator/*" },
        { URI("holdfast://a/client/ops?scopes=admin+read"), ROLE_CLIENT, "a", "ops", "admin+read",
          "holdfast://a/client/ops?scopes=admin+read" },
        { DNS("*.node.prod.id.holdfast.internal"), ROLE_NODE, "prod", "*", "",
          "holdfast://prod/node/*" },
        { DNS("n.1.router.prod.id.holdfast.internal"), ROLE_ROUTER, "prod", "n.1", "",
          "holdfast://prod/router/n.1" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct identity identity = good(cases[i].san);
        char printed[IDENTITY_TEXT_SIZE];

        assert_int_equal(identity.role, cases[i].role);
        assert_string_equal(identity.cluster, cases[i].cluster);
        assert_string_equal(identity.name, cases[i].name);
        assert_string_equal(identity.scopes, cases[i].scopes);
        identity_print(&identity, printed);
        assert_string_equal(printed, cases[i].printed);
    }
}

#define TEN   "0123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN

static void what_is_malformed_is_refused_with_its_part(void **state)
{
    static const struct {
        struct identity_san san;
        err e;
        const char *why;
    } cases[] = {
        { URI("HOLDFAST://prod/node/node-1"), ERR_INVALID, "small letters" },
        { URI("holdfast:prod/node/node-1"), ERR_INVALID, "small letters" },
        { URI("holdfast:/prod/node/node-1"), ERR_INVALID, "small letters" },
        { URI("holdfast://"), ERR_INVALID, "fewer parts" },
        { URI("holdfast://prod/node"), ERR_INVALID, "fewer parts" },
        { URI("holdfast:///node/node-1"), ERR_INVALID, "its cluster is empty" },
        { URI("holdfast://prod//node-1"), ERR_INVALID, "its role" },
        { URI("holdfast://prod/node/"), ERR_INVALID, "its name is empty" },
        { URI("holdfast://prod/node/?scopes=game"), ERR_INVALID, "its name is empty" },
        { URI("holdfast://prod/Node/a"), ERR_INVALID, "its role" },
        { URI("holdfast://prod/unknown/a"), ERR_INVALID, "its role" },
        { URI("holdfast://Prod/node/a"), ERR_INVALID, "byte 1 of its cluster is 0x50" },
        { URI("holdfast://prod:1/node/a"), ERR_INVALID, "byte 5 of its cluster is 0x3a" },
        { URI("holdfast://u@prod/node/a"), ERR_INVALID, "byte 2 of its cluster" },
        { URI("holdfast://prod/node/node%2d1"), ERR_INVALID, "byte 5 of its name is 0x25" },
        { URI("holdfast://prod/node/node-1/x"), ERR_INVALID, "byte 7 of its name is 0x2f" },
        { URI("holdfast://prod/node/node-1#x"), ERR_INVALID, "byte 7 of its name is 0x23" },
        { URI("holdfast://prod/node/node-*"), ERR_INVALID, "byte 6 of its name is 0x2a" },
        { URI("holdfast://prod/node/**"), ERR_INVALID, "byte 1 of its name is 0x2a" },
        { URI("holdfast://prod/node/node-1\0x"), ERR_INVALID, "byte 7 of its name is 0x00" },
        { URI("holdfast://pr\0od/node/node-1"), ERR_INVALID, "byte 3 of its cluster is 0x00" },
        { URI("holdfast://prod/node/node-1\n"), ERR_INVALID, "byte 7 of its name is 0x0a" },
        { URI("holdfast://prod/node/" SIXTY "0123"), ERR_TOO_LARGE,
          "its name has 64 bytes; the limit is 63" },
        { URI("holdfast://" SIXTY "0123/node/a"), ERR_TOO_LARGE, "its cluster has 64 bytes" },
        { URI("holdfast://prod/node/" SIXTY SIXTY SIXTY SIXTY), ERR_TOO_LARGE,
          "it has 261 bytes; the limit is 255" },
        { URI("holdfast://prod/node/a?scopes=game"), ERR_INVALID, "a node has no scopes" },
        { URI("holdfast://prod/client/a?"), ERR_INVALID, "something else than scopes=" },
        { URI("holdfast://prod/client/a?scope=game"), ERR_INVALID, "something else than scopes=" },
        { URI("holdfast://prod/client/a?scopes="), ERR_INVALID, "its scopes is empty" },
        { URI("holdfast://prod/client/a?scopes=game,read"), ERR_INVALID, "byte 5 of its scopes" },
        { URI("holdfast://prod/client/a?scopes=GAME"), ERR_INVALID, "byte 1 of its scopes" },
        { DNS(".id.holdfast.internal"), ERR_INVALID, "fewer parts" },
        { DNS("prod.id.holdfast.internal"), ERR_INVALID, "fewer parts" },
        { DNS("node.prod.id.holdfast.internal"), ERR_INVALID, "fewer parts" },
        { DNS(".node.prod.id.holdfast.internal"), ERR_INVALID, "its name is empty" },
        { DNS("a.node.prod.ID.holdfast.internal"), ERR_INVALID, "small letters" },
        { DNS("a.king.prod.id.holdfast.internal"), ERR_INVALID, "its role" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct identity identity = { .role = 99 };
        struct identity_error why;

        assert_int_equal(identity_parse(&cases[i].san, &identity, &why), cases[i].e);
        if (strstr(why.text, cases[i].why) == NULL)
            fail_msg("case %zu says '%s', not '%s'", i, why.text, cases[i].why);
        assert_int_equal(identity.role, 99);
    }
}

static void other_names_say_nothing(void **state)
{
    static const struct identity_san others[] = {
        URI("https://prod/node/a"),
        URI("spiffe://prod/node/a"),
        URI("holdfas"),
        URI(""),
        URI(" holdfast://prod/node/a"),
        URI("xholdfast://prod/node/a"),
        DNS("holdfast://prod/node/a"),
        DNS("node-1"),
        DNS(""),
        DNS("id.holdfast.internal"),
        URI("a.node.prod.id.holdfast.internal"),
    };
    struct identity identity;
    struct identity_error why;

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(identity_parse(&others[i], &identity, &why), ERR_NOT_FOUND);
    assert_int_equal(identity_find(others, sizeof others / sizeof others[0], &identity, &why),
                     ERR_NOT_FOUND);
}

static void a_certificate_names_one_identity(void **state)
{
    const struct identity_san one[] = { DNS("localhost"), URI("https://x"),
                                        URI("holdfast://a/node/n") };
    const struct identity_san two[] = { URI("holdfast://a/node/n"), URI("holdfast://a/node/m") };
    const struct identity_san same[] = { URI("holdfast://a/node/n"),
                                         DNS("n.node.a.id.holdfast.internal") };
    const struct identity_san bad[] = { URI("holdfast://a/node/n"), URI("holdfast://a/node/") };
    struct identity_san many[IDENTITY_SANS_MAX + 1];
    struct identity identity = { 0 };
    struct identity_error why;

    (void)state;
    assert_int_equal(identity_find(one, 3, &identity, &why), ERR_OK);
    assert_string_equal(identity.name, "n");
    assert_int_equal(identity_find(two, 2, &identity, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "two identities"));
    assert_int_equal(identity_find(same, 2, &identity, &why), ERR_INVALID);
    assert_int_equal(identity_find(bad, 2, &identity, &why), ERR_INVALID);
    for (size_t i = 0; i <= IDENTITY_SANS_MAX; i++)
        many[i] = one[0];
    many[0] = one[2];
    assert_int_equal(identity_find(many, IDENTITY_SANS_MAX, &identity, &why), ERR_OK);
    assert_int_equal(identity_find(many, IDENTITY_SANS_MAX + 1, &identity, &why), ERR_TOO_LARGE);
    assert_non_null(strstr(why.text, "65 alternative names; the limit is 64"));
}

static void any_name_covers_every_name_and_a_name_itself_alone(void **state)
{
    struct identity any = good((struct identity_san)URI("holdfast://a/node/*"));
    struct identity one = good((struct identity_san)URI("holdfast://a/node/n1"));

    (void)state;
    assert_true(identity_covers(&any, "n1"));
    assert_true(identity_covers(&one, "n1"));
    assert_false(identity_covers(&one, "n"));
    assert_false(identity_covers(&one, "n11"));
    assert_false(identity_covers(&one, "*"));
    assert_false(identity_covers(&one, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_identity_is_read_and_printed_back),
        cmocka_unit_test(what_is_malformed_is_refused_with_its_part),
        cmocka_unit_test(other_names_say_nothing),
        cmocka_unit_test(a_certificate_names_one_identity),
        cmocka_unit_test(any_name_covers_every_name_and_a_name_itself_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
