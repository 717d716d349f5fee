#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/config/config.h"
#include "runtime/config/config_file.h"
#include "runtime/config/config_yaml.h"

/* clang-format off */
#define TEST_CONFIG(X)                                                                          \
    X(listen_address, ADDRESS,  "127.0.0.1:7000", 3, 20,      "host:port", "where it listens")  \
    X(workers,        U32,      "2",      1,    64,           "",          "event loops")       \
    X(seed,           U64,      "0",      0,    UINT64_MAX,   "",          "of the random bits") \
    X(verbose,        BOOL,     "false",  0,    1,            "",          "say more")          \
    X(data_dir,       PATH,     "data",   1,    100,          "",          "where it stores")   \
    X(endpoints,      LIST,     "a,b",    1,    3,            "URLs",      "whom it asks")      \
    X(ttl,            DURATION, "5s",     500,  60000,        "ms",        "how long it lasts") \
    X(cache,          SIZE,     "64MiB",  4096, 1ull << 40,   "bytes",     "memory for rows")
/* clang-format on */

CONFIG_STRUCT(test_config, TEST_CONFIG)
CONFIG_OPTIONS(test_config, TEST_CONFIG)

static const struct config_program program = { .name = "test",
                                               .version = "1.2.3",
                                               .summary = "a test",
                                               .options = test_config_options,
                                               .option_count = ARRAY_SIZE(test_config_options) };

static err load(struct test_config *config, struct config_error *why, char *const *env, ...)
{
    char *argv[16] = { text_lend("test") };
    int argc = 1;
    enum config_action action;
    va_list args;

    va_start(args, env);
    for (char *arg = va_arg(args, char *); arg != NULL; arg = va_arg(args, char *))
        argv[argc++] = arg;
    va_end(args);
    struct config_input input = { argc, argv, env };
    err e = config_load(&program, &input, config, &action, why);
    if (e == ERR_OK)
        assert_int_equal(action, CONFIG_RUN);
    return e;
}

static void an_address_has_a_host_and_a_port(void **state)
{
    static const char *const good[] = { "h:1", "127.0.0.1:0", "[::1]:65535", "node-0.x:7401" };
    static const char *const bad[] = { "nonsense", "host:",    "host:port", ":7401",   "h:65536",
                                       "h:-1",     "::1:7401", "[::1:7401", "[]:7401", "h:1 " };
    struct test_config config;
    struct config_error why;
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(load(&config, &why, NULL, "--listen-address", good[i], NULL), ERR_OK);
        config_deinit(&program, &config);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(load(&config, &why, NULL, "--listen-address", bad[i], NULL), ERR_INVALID);
        assert_non_null(strstr(why.text, "--listen-address"));
        assert_non_null(strstr(why.text, bad[i]));
        assert_non_null(strstr(why.text, "no address (such as 127.0.0.1:7400"));
    }
}

static void write_file(char *path, const char *text)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void defaults_hold_without_any_source(void **state)
{
    struct test_config c;
    struct config_error why;
    (void)state;

    assert_int_equal(load(&c, &why, NULL, NULL), ERR_OK);
    assert_string_equal(c.listen_address, "127.0.0.1:7000");
    assert_true(c.workers == 2 && c.seed == 0 && !c.verbose);
    assert_true(c.endpoints.count == 2 && strcmp(c.endpoints.items[1], "b") == 0);
    assert_true(c.ttl == 5000 && c.cache == 64u << 20);
    config_deinit(&program, &c);
}

static void later_sources_win(void **state)
{
    char path[] = "/tmp/config_test_XXXXXX";
    char *env[] = { text_lend("HOLDFAST_WORKERS=5"), text_lend("HOLDFAST_TTL=20s"),
                    text_lend("HOLDFAST_UNKNOWN=1"), NULL };
    struct test_config c;
    struct config_error why;
    (void)state;

    write_file(path, "# a comment\nworkers: 4\nttl: 1s\nseed: 9\nverbose: true\n"
                     "endpoints: [x, \"y z\"]\n");
    assert_int_equal(load(&c, &why, env, "--config", path, "--ttl=3s", "--cache", "8KiB", NULL),
                     ERR_OK);
    assert_true(c.seed == 9 && c.verbose);
    assert_int_equal(c.workers, 5);
    assert_int_equal(c.ttl, 3000);
    assert_int_equal(c.cache, 8192);
    assert_true(c.endpoints.count == 2 && strcmp(c.endpoints.items[1], "y z") == 0);
    config_deinit(&program, &c);
    unlink(path);
}

static void flags_have_their_forms(void **state)
{
    struct test_config c;
    struct config_error why;
    (void)state;

    assert_int_equal(load(&c, &why, NULL, "--verbose", "--listen-address=h:1", "--endpoints",
                          "u,v,w", "--seed", "18446744073709551615", NULL),
                     ERR_OK);
    assert_true(c.verbose && c.endpoints.count == 3 && c.seed == UINT64_MAX);
    assert_string_equal(c.listen_address, "h:1");
    config_deinit(&program, &c);
    assert_int_equal(load(&c, &why, NULL, "--verbose", "false", NULL), ERR_OK);
    assert_false(c.verbose);
    config_deinit(&program, &c);
    assert_int_equal(load(&c, &why, NULL, "--verbose=true", "--no-verbose", NULL), ERR_OK);
    assert_false(c.verbose);
    config_deinit(&program, &c);
}

static void errors_name_source_limit_and_value(void **state)
{
    static const struct {
        const char *flag;
        const char *why;
    } rows[] = {
        { "--ttl=100ms", "flag --ttl: \"100ms\": below the minimum of 500ms" },
        { "--ttl=2h", "flag --ttl: \"2h\": above the maximum of 1m" },
        { "--ttl=5 s", "flag --ttl: \"5 s\" is no duration" },
        { "--ttl=-1", "flag --ttl: \"-1\" is no duration" },
        { "--ttl=300000000000d", "is no duration" },
        { "--workers=65", "flag --workers: \"65\": above the maximum of 64" },
        { "--workers=0x10", "flag --workers: \"0x10\" is no integer" },
        { "--workers=", "flag --workers: \"\" is no integer" },
        { "--seed=18446744073709551616", "is no integer" },
        { "--listen-address=x", "length below the minimum of 3" },
        { "--endpoints=a,b,c,d", "count above the maximum of 3" },
        { "--endpoints=a,,c", "item 2 is empty" },
        { "--endpoints=", "count below the minimum of 1" },
        { "--verbose=yes", "flag --verbose: \"yes\" is neither true nor false" },
        { "--unknown=s3cret", "flag --unknown: unknown; see --help" },
        { "--listen_address=h:1", "unknown; did you mean --listen-address?" },
        { "--lisetn-address=h:1",
          "flag --lisetn-address: unknown; did you mean --listen-address?" },
        { "--wrokers=3", "did you mean --workers?" },
        { "--\xc2\x9b\x1b[31m", "flag --??[31m: unknown; see --help" },
        { "--no-workers", "unknown" },
        { "--workers", "lacks its value" },
        { "stray", "flag stray: not a flag" },
        { "etcd-key=s3cret", "flag etcd-key=...: not a flag" },
        { "--config=/nonexistent/x.yaml", "file /nonexistent/x.yaml: No such file" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct test_config c;
        struct config_error why = { "" };
        assert_int_not_equal(load(&c, &why, NULL, rows[i].flag, NULL), ERR_OK);
        if (strstr(why.text, rows[i].why) == NULL)
            fail_msg("%s gave: %s", rows[i].flag, why.text);
    }
    struct test_config c;
    struct config_error why;
    char *env[] = { text_lend("HOLDFAST_CACHE=1KiB"), NULL };
    assert_int_equal(load(&c, &why, env, NULL), ERR_INVALID);
    assert_string_equal(why.text,
                        "environment HOLDFAST_CACHE: \"1KiB\": below the minimum of 4KiB");
}

static void file_errors_name_the_line(void **state)
{
    static const struct {
        const char *yaml;
        const char *why;
    } rows[] = {
        { "workers: 1\nttll: 1s\n", "line 2: unknown option \"ttll\"; did you mean ttl?" },
        { "listen-address: a\n",
          "unknown option \"listen-address\"; did you mean listen_address?" },
        { "colour: red\n", "line 1: unknown option \"colour\"" },
        { "workers: 1\n\nworkers: 2\n", "line 3: stands twice: \"workers\"" },
        { "ttl: 1ms\n", "line 1: ttl: \"1ms\": below the minimum of 500ms" },
        { "workers: {a: 1}\n", "line 1: not a plain value for \"workers\"" },
        { "workers: [1]\n", "line 1: not a plain value for \"workers\"" },
        { "endpoints: [a, [b]]\n", "line 1: not a plain value in the list of \"endpoints\"" },
        { "endpoints: [a,b,c,d]\n", "count above the maximum of 3" },
        { "- a\n", "line 1: not a mapping" },
        { "just text\n", "line 1: not a mapping" },
        { "a: [1\n", "line" },
        { "data_dir: \"a\\0b\"\n", "not a plain value" },
        { "workers: *anchor\n", "not a plain value" },
        { "? [a]\n: 1\n", "a key must be plain text" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct test_config c = { 0 };
        struct config_error why = { "" };
        assert_int_equal(
            config_yaml_load(&program, "f.yaml", slice_from_text(rows[i].yaml), &c, &why),
            ERR_INVALID);
        if (strstr(why.text, rows[i].why) == NULL || strstr(why.text, "file f.yaml") == NULL)
            fail_msg("%s gave: %s", rows[i].yaml, why.text);
        config_deinit(&program, &c);
    }
    struct test_config c = { 0 };
    struct config_error why;
    assert_int_equal(config_yaml_load(&program, "f", SLICE_LITERAL(""), &c, &why), ERR_OK);
    assert_int_equal(config_yaml_load(&program, "f", SLICE_LITERAL("# nothing\n"), &c, &why),
                     ERR_OK);
}

static void help_shows_every_row_of_the_table(void **state)
{
    struct buf help = { 0 };
    (void)state;

    config_print_help(&program, &help);
    buf_put_u8(&help, 0);
    assert_non_null(strstr((char *)help.data, "--listen-address address, host:port"));
    assert_non_null(strstr((char *)help.data, "default \"5s\", 500ms to 1m; HOLDFAST_TTL"));
    assert_non_null(strstr((char *)help.data, "default \"64MiB\", 4KiB to 1024GiB"));
    assert_non_null(strstr((char *)help.data, "default \"a,b\", count 1 to 3"));
    buf_deinit(&help);
}

static void help_and_version_allocate_nothing(void **state)
{
    char *argv[] = { text_lend("test"), text_lend("--version") };
    struct config_input input = { 2, argv, NULL };
    struct test_config c;
    struct config_error why;
    enum config_action action;
    (void)state;

    assert_int_equal(config_load(&program, &input, &c, &action, &why), ERR_OK);
    assert_int_equal(action, CONFIG_PRINT_VERSION);
    argv[1] = text_lend("--help");
    assert_int_equal(config_load(&program, &input, &c, &action, &why), ERR_OK);
    assert_int_equal(action, CONFIG_PRINT_HELP);
}

static void printed_values_load_again(void **state)
{
    struct test_config a, b = { 0 };
    struct config_error why;
    struct buf yaml = { 0 };
    (void)state;

    assert_int_equal(load(&a, &why, NULL, "--data-dir=q\"\\:\t1", "--ttl=1500", "--cache=1GiB",
                          "--endpoints=x: y,#z\xc3\xa9\xc2\x85\xe2\x80\xa8", NULL),
                     ERR_OK);
    config_yaml_print(&program, &a, &yaml);
    assert_int_equal(config_yaml_load(&program, "f", buf_slice(&yaml), &b, &why), ERR_OK);
    assert_string_equal(a.data_dir, b.data_dir);
    assert_true(b.ttl == 1500 && b.cache == 1u << 30 && b.endpoints.count == 2);
    assert_string_equal(b.endpoints.items[1], "#z\xc3\xa9\xc2\x85\xe2\x80\xa8");
    buf_deinit(&yaml);
    config_deinit(&program, &a);
    config_deinit(&program, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_a_host_and_a_port),
        cmocka_unit_test(defaults_hold_without_any_source),
        cmocka_unit_test(later_sources_win),
        cmocka_unit_test(flags_have_their_forms),
        cmocka_unit_test(errors_name_source_limit_and_value),
        cmocka_unit_test(file_errors_name_the_line),
        cmocka_unit_test(help_shows_every_row_of_the_table),
        cmocka_unit_test(help_and_version_allocate_nothing),
        cmocka_unit_test(printed_values_load_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
