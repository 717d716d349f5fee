#include "tests/chaos/check/documents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"

#define HEAD "{\"history\":\"holdfast\",\"version\":1}\n"
#define EDIT(number, at, of, hand, kind, rest)                                                     \
    "{\"edit\":" number ",\"at\":" at ",\"of\":\"" of "\",\"hand\":\"" hand "\",\"do\":\"" kind    \
    "\"," rest "}\n"
#define EDITED(number, at, state) "{\"edited\":" number ",\"at\":" at ",\"state\":\"" state "\"}\n"
#define LOOK(of, hand, from, at, shows)                                                            \
    "{\"look\":\"" of "\",\"hand\":\"" hand "\",\"from\":" from ",\"at\":" at ",\"shows\":[" shows \
    "]}\n"
#define STANDS(of, shows) "{\"stands\":\"" of "\",\"at\":900000000000,\"shows\":[" shows "]}\n"
#define MINUTES           "120000000000"
#define LATER             "120000000009"

/* Two siblings of two who did not know of each other, and one that saw both. */
#define TWO                                                                                        \
    EDIT("1", "10", "room", "a", "add", "\"value\":1")                                             \
    EDIT("2", "11", "room", "b", "add", "\"value\":2")                                             \
    EDITED("1", "20", "ok") EDITED("2", "21", "ok")
#define BOTH                                                                                       \
    EDIT("3", MINUTES, "room", "a", "add", "\"value\":3,\"replaces\":[1,2]")                       \
    EDITED("3", LATER, "ok")
#define COUNTED                                                                                    \
    EDIT("1", "10", "wins", "a", "count", "\"value\":5")                                           \
    EDITED("1", "20", "ok")                                                                        \
    EDIT("2", "30", "wins", "a", "count", "\"value\":7")                                           \
    EDITED("2", "40", "unknown")                                                                   \
    EDIT("3", "50", "wins", "b", "count", "\"value\":9") EDITED("3", "60", "refused")

static void judged(const char *text, char *ret_found, size_t size)
{
    struct findings findings = { 0 };
    struct history_error error;
    struct history history;
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    assert_non_null(file);
    if (history_read(file, &history, &error) == ERR_OK)
        documents_judge(&history.edits, &findings);
    else
        finding_add(&findings, "line %zu: %s", error.line, error.message);
    (void)snprintf(ret_found, size, "%.*s", (int)findings.text.size,
                   findings.text.size > 0 ? (const char *)findings.text.data : "");
    findings_deinit(&findings);
    history_deinit(&history);
    (void)fclose(file);
}

/* What is found in each; "": nothing. */
static const struct {
    const char *history, *found;
} cases[] = {
    { HEAD TWO STANDS("room", "1,2") STANDS("room", "2,1"), "" },
    { HEAD TWO BOTH STANDS("room", "3"), "" },
    { HEAD TWO STANDS("room", "1"), "2 is lost" },
    { HEAD TWO STANDS("room", "1,2") STANDS("room", "1"), "members differ" },
    { HEAD TWO BOTH STANDS("room", "3,1"), "1 is back" },
    { HEAD TWO, "does not say how room stood" },
    { HEAD TWO STANDS("room", "1,2,4"), "shows 4, which nothing wrote" },
    { HEAD TWO EDIT("3", "30", "room", "a", "add", "\"value\":3") EDITED("3", "40", "refused")
          STANDS("room", "1,2,3"),
      "shows 3, which was refused" },
    { HEAD TWO EDIT("3", "30", "room", "a", "add", "\"value\":3,\"replaces\":[1]")
          EDITED("3", "40", "unknown") STANDS("room", "2"),
      "" },
    { HEAD TWO LOOK("room", "a", "30", "40", "1") STANDS("room", "1,2"), "" },
    { HEAD TWO LOOK("room", "a", "30", "40", "2") STANDS("room", "1,2"), "goes back for a: 1" },
    { HEAD TWO LOOK("room", "c", "30", "40", "1,2") LOOK("room", "c", "50", "60", "1")
          STANDS("room", "1,2"),
      "goes back for c: 2" },
    { HEAD TWO LOOK("room", "c", "30", "40", "1,2") BOTH LOOK("room", "c", MINUTES, LATER, "3")
          STANDS("room", "3"),
      "" },
    { HEAD TWO EDIT("3", MINUTES, "room", "b", "discard", "\"replaces\":[1]")
          EDITED("3", LATER, "ok") STANDS("room", "2"),
      "" },
    { HEAD TWO EDIT("3", MINUTES, "room", "b", "discard", "\"replaces\":[1]")
          EDITED("3", LATER, "ok") STANDS("room", "1,2"),
      "1 is back" },
    { HEAD EDIT("1", "10", "last", "a", "write", "\"value\":1") EDITED("1", "20", "ok")
          EDIT("2", "10", "last", "b", "write", "\"value\":2") EDITED("2", "20", "ok")
              STANDS("last", "2"),
      "" },
    { HEAD EDIT("1", "10", "last", "a", "write", "\"value\":1") EDITED("1", "20", "ok")
          STANDS("last", ""),
      "shows 0 values" },
    { HEAD COUNTED STANDS("wins", "5") STANDS("wins", "5"), "" },
    { HEAD COUNTED STANDS("wins", "12"), "" },
    { HEAD COUNTED STANDS("wins", "4"), "makes 5 to 12" },
    { HEAD COUNTED STANDS("wins", "13"), "makes 5 to 12" },
    { HEAD COUNTED LOOK("wins", "b", "30", "40", "0") STANDS("wins", "5"), "" },
    { HEAD COUNTED LOOK("wins", "a", "30", "40", "4") STANDS("wins", "5"), "makes 5 to 12" },
    { HEAD COUNTED LOOK("wins", "b", "70", "80", "12") LOOK("wins", "b", "81", "82", "5")
          STANDS("wins", "12"),
      "makes 12 to 12" },
    { HEAD EDIT("1", "10", "r", "a", "add", "\"value\":0"), "value: at least 1" },
    { HEAD EDIT("1", "10", "r", "a", "take", "\"value\":1"), "do: \"take\"" },
    { HEAD EDIT("1", "10", "r", "a", "count", "\"value\":1000001"), "at most 1000000" },
    { HEAD EDIT("1", "10", "r", "a", "discard", "\"value\":1"), "replaces: an array" },
    { HEAD TWO EDITED("1", "30", "ok"), "was answered in line 4" },
    { HEAD EDITED("1", "30", "ok"), "no edit 1 before" },
    { HEAD TWO LOOK("room", "a", "30", "40", "-1"), "shows: integers from 0" },
};

static void test_each_promise_of_documents_is_judged(void **state)
{
    char found[2000];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        judged(cases[i].history, found, sizeof found);
        bool right = cases[i].found[0] != 0 ? strstr(found, cases[i].found) != NULL : found[0] == 0;
        if (!right)
            fail_msg("case %zu: wanted \"%s\", found \"%s\"", i, cases[i].found, found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        test_each_promise_of_documents_is_judged) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
