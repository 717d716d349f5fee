#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <pthread.h>

#include "runtime/config/log_sink.h"

static const struct log_sink json_sink = { .fd = -1, .format = LOG_FORMAT_JSON, .program = "node" };
static const struct log_sink text_sink = { .fd = -1, .format = LOG_FORMAT_TEXT, .program = "node" };

#define FIELDS(...) ((const struct log_field[]){ __VA_ARGS__, { .key = NULL } })

static void json_line_has_time_level_program_and_event(void **state)
{
    char line[LOG_LINE_MAX + 1];
    (void)state;

    const struct log_entry entry = {
        LOG_INFO, "shard.promoted",
        FIELDS(LOG_N("shard", 3), LOG_S("name", "a\"b\n\x01\xc3\xa4\xff")), 1714564800123
    };
    size_t size = log_line_format(&json_sink, &entry, line);
    line[size] = '\0';
    assert_string_equal(line, "{\"time\":\"2024-05-01T12:00:00.123Z\",\"level\":\"info\","
                              "\"program\":\"node\",\"event\":\"shard.promoted\",\"shard\":3,"
                              "\"name\":\"a\\\"b\\u000a\\u0001\xc3\xa4\\u00ff\"}\n");
}

static void text_line_quotes_what_could_mislead(void **state)
{
    char line[LOG_LINE_MAX + 1];
    (void)state;

    const struct log_entry entry = { LOG_WARN, "x.y",
                                     FIELDS(LOG_S("a", "plain"), LOG_S("b", "two words"),
                                            LOG_S("c", "k=v\nERROR forged"), LOG_S("d", "")),
                                     0 };
    size_t size = log_line_format(&text_sink, &entry, line);
    line[size] = '\0';
    assert_string_equal(line, "1970-01-01T00:00:00.000Z WARN  node x.y a=plain b=\"two words\" "
                              "c=\"k=v\\u000aERROR forged\" d=\"\"\n");
}

/* At every length around the limit the line is one JSON object that ends with a newline. */
static void long_lines_are_cut_but_stay_json(void **state)
{
    static char value[LOG_LINE_MAX + 64];
    (void)state;

    for (size_t length = LOG_LINE_MAX - 200; length < LOG_LINE_MAX + 50; length++) {
        char line[LOG_LINE_MAX];
        memset(value, 'x', length);
        value[length] = '\0';
        const struct log_entry entry = {
            LOG_ERROR, "e",
            FIELDS(LOG_S("value", value), LOG_S("after", "\n\n"), LOG_N("number", 12345)), 0
        };
        size_t size = log_line_format(&json_sink, &entry, line);
        assert_in_range(size, 1, LOG_LINE_MAX);
        assert_int_equal(line[size - 1], '\n');
        json_t *object = json_loadb(line, size, 0, NULL);
        assert_non_null(object);
        json_decref(object);
    }
}

static void level_filters_and_words_parse(void **state)
{
    enum log_level level;
    enum log_format format;
    int ends[2];
    char text[LOG_LINE_MAX];
    (void)state;

    assert_int_equal(pipe(ends), 0);
    struct log_sink sink = { .fd = ends[1], .format = LOG_FORMAT_TEXT, .program = "p" };
    struct log log = log_sink_open(&sink, LOG_WARN);
    log_event(&log, LOG_INFO, "unheard", LOG_N("n", 1));
    log_event(&log, LOG_WARN, "heard", LOG_N("n", 2));
    close(ends[1]);
    ssize_t size = read(ends[0], text, sizeof text - 1);
    assert_true(size > 0);
    text[size] = '\0';
    assert_null(strstr(text, "unheard"));
    assert_non_null(strstr(text, " WARN  p heard n=2\n"));
    close(ends[0]);
    assert_int_equal(log_level_parse("error", &level), ERR_OK);
    assert_int_equal(level, LOG_ERROR);
    assert_int_equal(log_level_parse("loud", &level), ERR_INVALID);
    assert_int_equal(log_format_parse("json", &format), ERR_OK);
    assert_int_equal(format, LOG_FORMAT_JSON);
    assert_int_equal(log_format_parse("xml", &format), ERR_INVALID);
}

enum { THREADS = 4, LINES = 500 };

static void *write_many(void *context)
{
    for (int i = 0; i < LINES; i++)
        log_event(context, LOG_INFO, "line", LOG_S("text", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    FILE *file = tmpfile();
    pthread_t threads[THREADS];
    char line[LOG_LINE_MAX];
    int count = 0;
    (void)state;

    assert_non_null(file);
    struct log_sink sink = { .fd = fileno(file), .format = LOG_FORMAT_JSON, .program = "p" };
    struct log log = log_sink_open(&sink, LOG_DEBUG);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &log), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    rewind(file);
    for (; fgets(line, sizeof line, file) != NULL; count++) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        json_decref(object);
    }
    assert_int_equal(count, THREADS * LINES);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_line_has_time_level_program_and_event),
        cmocka_unit_test(text_line_quotes_what_could_mislead),
        cmocka_unit_test(long_lines_are_cut_but_stay_json),
        cmocka_unit_test(level_filters_and_words_parse),
        cmocka_unit_test(lines_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
