#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/console/outcome.h"

static void assert_shown(const char *json, const char *expected)
{
    json_t *operation = json_loads(json, 0, NULL);
    struct buf out = { 0 };

    assert_non_null(operation);
    outcome_format(operation, &out);
    buf_put_u8(&out, 0);
    assert_string_equal((char *)out.data, expected);
    buf_deinit(&out);
    json_decref(operation);
}

static void an_answer_has_a_line_for_each_field(void **state)
{
    (void)state;
    assert_shown("{\"state\":\"committed\",\"method\":\"holdfast.v1.LedgerService/Grant\","
                 "\"dot\":{\"epoch\":3,\"seq\":7},\"decidedAtMs\":1793534400000,"
                 "\"grant\":{\"write\":{\"version\":3,\"asOf\":\"c1.AAE\"},\"ledgerSeq\":3,"
                 "\"balances\":{\"gold\":50,\"gems\":2},\"itemUids\":[\"u-1\",\"u-2\"]}}",
                 "COMMITTED holdfast.v1.LedgerService/Grant\n"
                 "dot        epoch 3, seq 7\n"
                 "decidedAt  2026-11-01T12:00:00Z\n"
                 "write      version 3, asOf c1.AAE\n"
                 "ledgerSeq  3\n"
                 "balances   gold 50, gems 2\n"
                 "itemUids   u-1, u-2\n");
}

static void a_refusal_says_why(void **state)
{
    (void)state;
    assert_shown("{\"state\":\"refused\",\"attempt\":2,\"method\":\"m\",\"refusal\":{\"code\":"
                 "\"insufficient_funds\",\"message\":\"too little gold\",\"about\":{\"funds\":"
                 "{\"currency\":\"gold\",\"needed\":5}}}}",
                 "REFUSED m\n"
                 "attempt  2\n"
                 "code     insufficient_funds\n"
                 "message  too little gold\n"
                 "about    funds (currency gold, needed 5)\n");
}

static void a_state_alone_is_one_line(void **state)
{
    struct buf out = { 0 };
    (void)state;

    assert_shown("{\"state\":\"unknown\"}", "UNKNOWN\n");
    assert_shown("{\"state\":\"aborted\",\"attempt\":4294967295}", "ABORTED\n");
    assert_shown("{\"state\":\"bound\",\"boundPlayerId\":\"radia\"}", "BOUND radia\n");
    outcome_format(NULL, &out);
    assert_int_equal(out.size, strlen("UNSPECIFIED\n"));
    buf_deinit(&out);
}

static void what_a_player_wrote_controls_no_terminal(void **state)
{
    char json[8192];
    size_t size = 0;
    struct buf out = { 0 };
    (void)state;

    assert_shown("{\"state\":\"x\\u001b[2J\",\"mail\":{\"text\":\"a\\nb\",\"e\\u0007\":[{\"deep\":"
                 "[{\"er\":{\"x\":[1]}}]}]}}",
                 "X?[2J\ntext  a?b\ne?    (deep ((er {\"x\":[1]})))\n");
    size = (size_t)snprintf(json, sizeof json, "{\"mail\":{\"text\":\"");
    memset(json + size, 'x', 5000);
    memcpy(json + size + 5000, "\"}}", 4);
    json_t *operation = json_loads(json, 0, NULL);
    assert_non_null(operation);
    outcome_format(operation, &out);
    assert_int_equal(out.size, strlen("UNSPECIFIED\ntext  ") + 4095 + 1);
    assert_memory_equal(out.data + out.size - 4, "...\n", 4);
    buf_deinit(&out);
    json_decref(operation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_has_a_line_for_each_field),
        cmocka_unit_test(a_refusal_says_why),
        cmocka_unit_test(a_state_alone_is_one_line),
        cmocka_unit_test(what_a_player_wrote_controls_no_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
