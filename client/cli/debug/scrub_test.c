#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/debug/scrub.h"
#include "runtime/base/check.h"

#define KEY "hf_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static struct scrub scrub;

static int setup(void **state)
{
    (void)state;
    scrub = (struct scrub){ .api_key = "", .players = json_object() };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(scrub.players);
    return 0;
}

static void assert_clean(const char *before, const char *after)
{
    struct buf text = { 0 };

    buf_append(&text, before, strlen(before));
    scrub_secrets(&scrub, &text);
    buf_put_u8(&text, 0);
    assert_string_equal((const char *)text.data, after);
    buf_deinit(&text);
}

static void secrets_are_taken_out_wherever_they_stand(void **state)
{
    (void)state;

    assert_clean("", "");
    assert_clean("nothing here: hf_12, http://h:1/x@y", "nothing here: hf_12, http://h:1/x@y");
    assert_clean("a " KEY " b " KEY, "a (removed) b (removed)");
    assert_clean("http://root:pass@etcd:2379/v3", "http://(removed)@etcd:2379/v3");
    assert_clean("x\n-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\ny",
                 "x\n(removed)\ny");
    assert_clean("-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n",
                 "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n");
    assert_clean("-----BEGIN PRIVATE KEY-----\nAAAA\ncut", "(removed)");
    scrub.api_key = "of-the-caller";
    assert_clean("Bearer of-the-caller.", "Bearer (removed).");
}

static void ids_are_kept_and_noted_unless_redacted(void **state)
{
    json_t *rows = json_pack("[{s:s, s:s}, {s:{s:s}}]", "playerId", "zoe", "opId", "receipt:G1",
                             "deep", "playerId", "yan");
    (void)state;

    scrub_json(&scrub, rows);
    assert_int_equal(json_object_size(scrub.players), 2);
    assert_non_null(json_object_get(scrub.players, "zoe"));
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "opId")),
                        "receipt:G1");

    json_object_clear(scrub.players);
    scrub.redact = true;
    scrub_json(&scrub, rows);
    char *text = json_dumps(rows, JSON_COMPACT);
    assert_null(strstr(text, "zoe"));
    assert_null(strstr(text, "yan"));
    assert_null(strstr(text, "receipt"));
    assert_int_equal(json_object_size(scrub.players), 2);
    assert_null(json_object_get(scrub.players, "zoe"));
    free(text);
    json_decref(rows);
}

static void one_id_is_one_hash_under_one_salt(void **state)
{
    const char *names[3];
    json_t *rows[3];
    (void)state;

    scrub.redact = true;
    for (int i = 0; i < 3; i++) {
        scrub.salt[0] = i == 2;
        rows[i] = json_pack("{s:s}", "playerId", "42");
        scrub_json(&scrub, rows[i]);
        names[i] = json_string_value(json_object_get(rows[i], "playerId"));
    }
    assert_string_equal(names[0], names[1]);
    assert_string_not_equal(names[0], names[2]);
    for (int i = 0; i < 3; i++)
        json_decref(rows[i]);
}

static void players_in_logs_are_replaced_too(void **state)
{
    static const char log[] = "t WARN audit.contained shard=3 player=zoe reason=x\n"
                              "{\"event\":\"audit.contained\",\"player\":\"zoe\",\"shard\":3}\n";
    struct buf text = { 0 };
    (void)state;

    buf_append(&text, log, strlen(log));
    scrub_log(&scrub, &text);
    assert_true(slice_equal(buf_slice(&text), slice_from_text(log)));
    assert_non_null(json_object_get(scrub.players, "zoe"));

    scrub.redact = true;
    scrub_log(&scrub, &text);
    buf_put_u8(&text, 0);
    assert_null(strstr((const char *)text.data, "zoe"));
    assert_non_null(strstr((const char *)text.data, " reason=x\n"));
    assert_non_null(strstr((const char *)text.data, "\",\"shard\":3}\n"));
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(secrets_are_taken_out_wherever_they_stand, setup, teardown),
        cmocka_unit_test_setup_teardown(ids_are_kept_and_noted_unless_redacted, setup, teardown),
        cmocka_unit_test_setup_teardown(one_id_is_one_hash_under_one_salt, setup, teardown),
        cmocka_unit_test_setup_teardown(players_in_logs_are_replaced_too, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
