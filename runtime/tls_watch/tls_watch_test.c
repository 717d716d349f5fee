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
#include "runtime/base/test_directory.h"
#include "runtime/tls/certs.h"
#include "runtime/tls_watch/tls_watch.h"

#define WAIT_MS 60000

/* "used.crt" and "used.key" are watched; each test puts others in their place. */
struct fixture {
    char directory[TEST_DIRECTORY_BYTES];
    char ca[96], cert[96], key[96];
    struct loop *loop;
    struct tls_watch *watch;
    int changes;
    int wanted; /* Of changes. */
    int errors; /* Lines logged as such. */
};

static void count_errors(void *sink, enum log_level level, const char *event,
                         const struct log_field *fields)
{
    struct fixture *f = sink;

    (void)event;
    (void)fields;
    f->errors += level == LOG_ERROR;
}

static struct log log_of(struct fixture *f)
{
    return (struct log){ .write = count_errors, .sink = f };
}

static void make_leaf(struct fixture *f, const char *name, uint64_t not_after_ms)
{
    struct tls_error why;
    bool made;

    CHECK(certs_make_leaf(f->directory,
                          &(struct certs_leaf){ .name = name,
                                                .not_before_ms = not_after_ms > 0 ? 1 : 0,
                                                .not_after_ms = not_after_ms },
                          &made, &why) == ERR_OK);
}

/* Renamed over, as tools and Kubernetes do: there is never half a file. */
static void put(struct fixture *f, const char *name, const char *suffix)
{
    char command[512];

    snprintf(command, sizeof command, "cp '%s/%s.%s' '%s/next' && mv '%s/next' '%s/used.%s'",
             f->directory, name, suffix, f->directory, f->directory, f->directory, suffix);
    CHECK(system(command) == 0);
}

static void on_changed(void *user)
{
    struct fixture *f = user;

    f->changes++;
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    struct tls_error why;
    bool made;

    test_directory_make("tls-watch", f->directory);
    CHECK(certs_make_ca(f->directory, "test", &made, &why) == ERR_OK);
    make_leaf(f, "first", 0);
    make_leaf(f, "second", 2000000000000);
    put(f, "first", "crt");
    put(f, "first", "key");
    snprintf(f->ca, sizeof f->ca, "%s/ca.crt", f->directory);
    snprintf(f->cert, sizeof f->cert, "%s/used.crt", f->directory);
    snprintf(f->key, sizeof f->key, "%s/used.key", f->directory);
    CHECK(loop_new(&f->loop) == ERR_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    tls_watch_free(f->watch);
    loop_free(f->loop);
    test_directory_remove(f->directory);
    free(f);
    return 0;
}

static err start(struct fixture *f, const struct log *log, struct tls_error *ret_why)
{
    return tls_watch_new(&(struct tls_watch_options){ .loop = f->loop,
                                                      .log = log,
                                                      .what = "test",
                                                      .files = { .ca = { .path = f->ca },
                                                                 .cert = { .path = f->cert },
                                                                 .key = { .path = f->key },
                                                                 .verify_peer = true },
                                                      .client = true,
                                                      .server = true,
                                                      .changed = on_changed,
                                                      .user = f },
                         &f->watch, ret_why);
}

static bool has_changed(void *user)
{
    const struct fixture *f = user;

    return f->changes >= f->wanted;
}

static bool has_failed(void *user)
{
    return ((const struct fixture *)user)->errors > 0;
}

static void replaced_files_become_new_configurations(void **state)
{
    struct fixture *f = *state;
    struct log log = log_of(f);
    struct tls_error why;

    assert_int_equal(start(f, &log, &why), ERR_OK);
    struct tls_config *old = tls_config_hold(tls_watch_server(f->watch));
    assert_int_equal(tls_config_side(tls_watch_client(f->watch)), TLS_CLIENT);
    put(f, "second", "key");
    put(f, "second", "crt");
    f->wanted = 1;
    assert_true(loop_run_until(f->loop, has_changed, f, WAIT_MS));
    assert_ptr_not_equal(tls_watch_server(f->watch), old);
    assert_true(tls_watch_expires_s(f->watch) == 2000000000);
    assert_int_equal(tls_config_side(old), TLS_SERVER); /* Its holder still has it. */
    tls_config_free(old);
}

/* Between the two files of a rotation nothing breaks, and it is not forgotten either. */
static void a_key_without_its_certificate_waits_for_it(void **state)
{
    struct fixture *f = *state;
    struct log log = log_of(f);
    struct tls_error why;

    assert_int_equal(start(f, &log, &why), ERR_OK);
    struct tls_config *old = tls_watch_server(f->watch);
    put(f, "second", "key");
    assert_true(loop_run_until(f->loop, has_failed, f, WAIT_MS));
    assert_ptr_equal(tls_watch_server(f->watch), old);
    put(f, "second", "crt");
    f->wanted = 1;
    assert_true(loop_run_until(f->loop, has_changed, f, WAIT_MS));
    assert_true(tls_watch_expires_s(f->watch) == 2000000000);
    assert_int_equal(f->errors, 1);
}

static void what_cannot_be_read_at_first_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct log log = log_of(f);
    struct tls_error why;

    CHECK(unlink(f->key) == 0);
    assert_int_equal(start(f, &log, &why), ERR_IO);
    assert_non_null(strstr(why.text, f->key));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(replaced_files_become_new_configurations),
        TEST(a_key_without_its_certificate_waits_for_it),
        TEST(what_cannot_be_read_at_first_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
