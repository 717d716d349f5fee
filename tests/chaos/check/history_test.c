#include "tests/chaos/check/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/chaos/check/whole.h"

#define HEAD "{\"history\":\"holdfast\",\"version\":1,\"seed\":7}\n"

/* Ann gets 9, sends Bob 4, who claims them. */
static const char sound[] =
    HEAD "{\"fault\":\"sigkill\",\"at\":1}\n"
         "{\"call\":1,\"at\":10,\"player\":\"ann\",\"do\":\"grant\",\"gold\":9}\n"
         "{\"answer\":1,\"at\":20,\"state\":\"ok\",\"gold\":9}\n"
         "{\"call\":2,\"at\":30,\"player\":\"ann\",\"do\":\"send\",\"gold\":4}\n"
         "{\"answer\":2,\"at\":40,\"state\":\"ok\",\"gold\":5,\"mail\":\"m1\"}\n"
         "{\"call\":3,\"at\":50,\"player\":\"bob\",\"do\":\"claim\",\"mail\":\"m1\",\"gold\":4}\n"
         "{\"answer\":3,\"at\":60,\"state\":\"ok\",\"gold\":4}\n"
         "{\"call\":4,\"at\":70,\"player\":\"bob\",\"do\":\"read\"}\n"
         "{\"answer\":4,\"at\":80,\"state\":\"ok\",\"gold\":4,\"document\":0,\"version\":0}\n"
         "{\"final\":\"ann\",\"gold\":5,\"mail\":0}\n"
         "{\"final\":\"bob\",\"gold\":4,\"mail\":0}\n"
         "{\"replica\":\"node-1\",\"shard\":0,\"digest\":\"ab\"}\n"
         "{\"replica\":\"node-2\",\"shard\":0,\"digest\":\"ab\"}\n";

struct judged {
    err e;
    struct history_error error;
    size_t violations;
    char text[4096];
};

static struct judged judge(const char *text)
{
    struct judged judged = { 0 };
    struct findings findings = { 0 };
    struct history history;
    size_t undecided = 0;
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    assert_non_null(file);
    judged.e = history_read(file, &history, &judged.error);
    if (judged.e == ERR_OK) {
        whole_order(&history, &findings, &undecided);
        whole_conservation(&history, &findings);
        whole_mails(&history, &findings);
        whole_convergence(&history, &findings);
    }
    judged.violations = findings.count;
    if (findings.text.size > 0)
        (void)snprintf(judged.text, sizeof judged.text, "%.*s", (int)findings.text.size,
                       (const char *)findings.text.data);
    assert_int_equal(undecided, 0);
    findings_deinit(&findings);
    history_deinit(&history);
    (void)fclose(file);
    return judged;
}

/* `sound` with the first `from` replaced by `to`. */
static struct judged doctored(const char *from, const char *to)
{
    char text[sizeof sound + 512];
    const char *at = strstr(sound, from);

    assert_non_null(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - sound), sound, to, at + strlen(from));
    return judge(text);
}

static void assert_violated(struct judged judged, const char *why)
{
    assert_int_equal(judged.e, ERR_OK);
    assert_int_not_equal(judged.violations, 0);
    if (strstr(judged.text, why) == NULL)
        fail_msg("\"%s\" is not in: %s", why, judged.text);
}

static void assert_refused(struct judged judged, size_t line, const char *why)
{
    assert_int_equal(judged.e, ERR_INVALID);
    assert_int_equal(judged.error.line, line);
    if (strstr(judged.error.message, why) == NULL)
        fail_msg("\"%s\" is not in: %s", why, judged.error.message);
}

static void test_a_sound_history_holds(void **state)
{
    struct judged judged = judge(sound);

    (void)state;
    assert_int_equal(judged.e, ERR_OK);
    assert_string_equal(judged.text, "");
    assert_int_equal(judged.violations, 0);
}

static void test_a_removed_write_is_found(void **state)
{
    (void)state;
    assert_violated(
        doctored("{\"call\":1,\"at\":10,\"player\":\"ann\",\"do\":\"grant\",\"gold\":9}\n"
                 "{\"answer\":1,\"at\":20,\"state\":\"ok\",\"gold\":9}\n",
                 ""),
        "player ann: no order explains");
}

static void test_an_added_stale_read_is_found(void **state)
{
    (void)state;
    assert_violated(
        doctored(
            "{\"final\":\"ann\"",
            "{\"call\":9,\"at\":90,\"player\":\"ann\",\"do\":\"read\"}\n"
            "{\"answer\":9,\"at\":95,\"state\":\"ok\",\"gold\":9,\"document\":0,\"version\":0}\n"
            "{\"final\":\"ann\""),
        "player ann: no order explains");
}

static void test_gold_from_nowhere_is_found(void **state)
{
    (void)state;
    assert_violated(doctored("{\"final\":\"ann\",\"gold\":5", "{\"final\":\"ann\",\"gold\":6"),
                    "gold: 10 is held in the end");
    assert_violated(doctored("{\"final\":\"ann\",\"gold\":5,\"mail\":0}\n", ""),
                    "does not say what the player ann held");
}

static void test_a_mail_claimed_twice_is_found(void **state)
{
    (void)state;
    assert_violated(doctored("{\"call\":4",
                             "{\"call\":7,\"at\":62,\"player\":\"ann\",\"do\":\"claim\","
                             "\"mail\":\"m1\",\"gold\":4}\n"
                             "{\"answer\":7,\"at\":64,\"state\":\"ok\"}\n{\"call\":4"),
                    "the mail m1 was claimed in line 7 already");
}

static void test_replicas_that_differ_are_found(void **state)
{
    (void)state;
    assert_violated(doctored("\"node-2\",\"shard\":0,\"digest\":\"ab\"",
                             "\"node-2\",\"shard\":0,\"digest\":\"cd\""),
                    "shard 0 is cd on node-2, and ab on node-1");
    assert_violated(doctored("{\"replica\":\"node-2\",\"shard\":0,\"digest\":\"ab\"}\n", ""),
                    "shard 0 has one replica");
}

static void test_what_is_no_history_is_refused_with_its_line(void **state)
{
    (void)state;
    assert_refused(judge("\n"), 1, "a JSON object");
    assert_refused(judge("{\"history\":\"holdfast\",\"version\":2}\n"), 1, "version 1");
    assert_refused(doctored("{\"fault\":\"sigkill\"", "{\"fault\":7"), 2, "fault: a text");
    assert_refused(doctored("\"do\":\"grant\"", "\"do\":\"steal\""), 3, "\"steal\"");
    assert_refused(doctored("\"gold\":9}", "\"gold\":-9}"), 3, "gold: at least 1");
    assert_refused(doctored("{\"answer\":1", "{\"answer\":8"), 4, "no call 8");
    assert_refused(doctored("{\"call\":2", "{\"call\":1"), 5, "a call 1 already");
    assert_refused(doctored("\"at\":20", "\"at\":2"), 4, "at: at least 10");
    assert_refused(doctored("\"state\":\"ok\"", "\"state\":\"fine\""), 4, "\"fine\"");
    assert_refused(doctored(",\"document\":0,\"version\":0", ""), 10, "tells gold, document");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sound_history_holds),
        cmocka_unit_test(test_a_removed_write_is_found),
        cmocka_unit_test(test_an_added_stale_read_is_found),
        cmocka_unit_test(test_gold_from_nowhere_is_found),
        cmocka_unit_test(test_a_mail_claimed_twice_is_found),
        cmocka_unit_test(test_replicas_that_differ_are_found),
        cmocka_unit_test(test_what_is_no_history_is_refused_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
