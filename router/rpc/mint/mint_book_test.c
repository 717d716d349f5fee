/* Two routers, and what a key makes a day by both; against a real etcd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/mint/mint_book.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/etcd/etcd_process.h"

#define CLUSTER "test"
#define WAIT_MS 60000u
#define DAY_MS  86400000u
#define CALLS   64u

static struct etcd_process process;
static char directory[TEST_DIRECTORY_BYTES];
static const struct log silent = { .level_min = LOG_ERROR };

struct grant {
    struct fixture *f;
    struct mint_wait wait;
    Holdfast__V1__GrantRequest request;
    Holdfast__V1__CurrencyAmount amount, *list[1];
    err result;
    char value[32];
    uint64_t retry_after_ms;
};

struct fixture {
    struct loop *loop;
    struct etcd *etcd;
    struct mint_book *books[2];
    struct grant grants[CALLS];
    struct arena arena;
    uint32_t open;
    const char *key, *per_day;
    uint64_t wall_ms;
    bool read;
    char record[128];
    int64_t records;
};

static int start_etcd(void **state)
{
    char data[96];

    (void)state;
    test_directory_make("mint_book", directory);
    (void)snprintf(data, sizeof data, "%s/etcd", directory);
    return etcd_process_start(&(struct etcd_process_options){ .data_dir = data }, &process) ==
                   ERR_OK
               ? 0
               : -1;
}

static int stop_etcd(void **state)
{
    (void)state;
    etcd_process_stop(&process);
    test_directory_remove(directory);
    return 0;
}

static struct etcd *etcd_at(struct fixture *f, const char *endpoint)
{
    struct etcd *etcd;

    CHECK(etcd_new(&(struct etcd_options){ .loop = loop_uv(f->loop),
                                           .endpoints = &endpoint,
                                           .endpoint_count = 1,
                                           .log = &silent },
                   &etcd) == ERR_OK);
    return etcd;
}

static int setup(void **state)
{
    static uint32_t number;
    struct fixture *f = mem_zalloc(sizeof *f);

    CHECK(loop_new(&f->loop) == ERR_OK);
    f->etcd = etcd_at(f, process.endpoint);
    f->key = arena_printf(&f->arena, "key%u", number++);
    f->per_day = "gold:640";
    f->wall_ms = 20000ull * DAY_MS;
    for (uint32_t i = 0; i < 2; i++)
        f->books[i] = mint_book_new(&(struct mint_book_options){ f->etcd, CLUSTER });
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    mint_book_free(f->books[0]);
    mint_book_free(f->books[1]);
    etcd_free(f->etcd);
    loop_free(f->loop);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

static void told(struct grant *grant, err e, const Holdfast__V1__ErrorDetail *detail)
{
    grant->result = e;
    if (e == ERR_OK || e == ERR_NEED)
        return;
    (void)snprintf(grant->value, sizeof grant->value, "%s", detail->value);
    grant->retry_after_ms = detail->retry_after_ms;
}

static void done(void *user, err e, const Holdfast__V1__ErrorDetail *detail)
{
    struct grant *grant = user;

    grant->f->open--;
    told(grant, e, detail);
}

/* Begins; ERR_NEED in `result` while it waits. */
static struct grant *begin(struct fixture *f, uint32_t place, struct mint_book *book, int64_t gold)
{
    struct grant *grant = &f->grants[place];
    Holdfast__V1__ErrorDetail detail;
    char name[] = "gold";

    memset(grant, 0, sizeof *grant);
    grant->f = f;
    holdfast__v1__grant_request__init(&grant->request);
    holdfast__v1__currency_amount__init(&grant->amount);
    grant->amount.currency = arena_printf(&f->arena, "%s", name);
    grant->amount.amount = gold;
    grant->list[0] = &grant->amount;
    grant->request.currencies = grant->list;
    grant->request.n_currencies = 1;
    grant->wait.call = (struct mint_call){ method_find(METHOD_GRANT),
                                           &grant->request.base,
                                           f->key,
                                           "",
                                           f->per_day,
                                           f->wall_ms,
                                           &f->arena };
    grant->wait.done = done;
    grant->wait.user = grant;
    grant->wait.timeout_ms = 5000;
    err e = mint_book_take(book, &grant->wait, &detail);
    told(grant, e, &detail);
    f->open += e == ERR_NEED;
    return grant;
}

static bool all_done(void *user)
{
    return ((struct fixture *)user)->open == 0;
}

static err grant(struct fixture *f, uint32_t router, int64_t gold)
{
    struct grant *one = begin(f, 0, f->books[router], gold);

    assert_true(loop_run_until(f->loop, all_done, f, WAIT_MS));
    return one->result;
}

static void looked(void *context, err e, const struct etcd_range_result *result)
{
    struct fixture *f = context;

    CHECK(e == ERR_OK);
    f->records = (int64_t)result->kv_count;
    f->record[0] = 0;
    if (result->kv_count > 0)
        (void)snprintf(f->record, sizeof f->record, "%.*s", (int)result->kvs[0].value.size,
                       (const char *)result->kvs[0].value.data);
    f->read = true;
}

static bool is_read(void *user)
{
    return ((struct fixture *)user)->read;
}

/* What etcd has of the key, of its first day. */
static const char *record(struct fixture *f)
{
    struct cluster_key prefix = cluster_key_mints_prefix(CLUSTER, f->key);

    f->read = false;
    CHECK(etcd_range(f->etcd,
                     &(struct etcd_range){ .key = cluster_key_slice(&prefix), .prefix = true },
                     looked, &(struct etcd_wait){ 0, f, NULL }) == ERR_OK);
    assert_true(loop_run_until(f->loop, is_read, f, WAIT_MS));
    return f->record;
}

static void two_routers_have_one_sum(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(grant(f, 0, 300), ERR_OK);
    assert_int_equal(grant(f, 1, 300), ERR_OK);
    assert_string_equal(record(f), "gold:600");
    assert_int_equal(grant(f, 0, 41), ERR_FULL);
    assert_string_equal(f->grants[0].value, "641");
    assert_int_equal(f->grants[0].retry_after_ms, DAY_MS);
    assert_int_equal(grant(f, 0, 40), ERR_OK);
    assert_int_equal(grant(f, 1, 1), ERR_FULL);
    f->wall_ms += DAY_MS;
    assert_int_equal(grant(f, 1, 640), ERR_OK);
    assert_int_equal(grant(f, 0, 1), ERR_FULL);
}

static void many_calls_at_once_by_both(void **state)
{
    struct fixture *f = *state;
    uint32_t passed = 0;

    f->per_day = "gold:200";
    for (uint32_t i = 0; i < CALLS; i++)
        begin(f, i, f->books[i % 2], 7);
    assert_true(loop_run_until(f->loop, all_done, f, WAIT_MS));
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_true(f->grants[i].result == ERR_OK || f->grants[i].result == ERR_FULL);
        passed += f->grants[i].result == ERR_OK;
    }
    assert_in_range(passed, 200 / 7 - 2, 200 / 7);
}

static void a_router_that_starts_again_goes_on_with_the_sum(void **state)
{
    struct fixture *f = *state;
    int64_t made = 0;

    for (uint32_t i = 0; i < 200; i++) {
        if (grant(f, 0, 3) == ERR_OK)
            made += 3;
        else
            break;
        if (i % 20 != 19)
            continue;
        mint_book_free(f->books[0]);
        f->books[0] = mint_book_new(&(struct mint_book_options){ f->etcd, CLUSTER });
    }
    assert_in_range(made, 640 - 10 * 10, 640); /* What is left of a share is lost. */
    assert_int_equal(grant(f, 1, 640), ERR_FULL);
}

static void most_calls_ask_etcd_for_nothing(void **state)
{
    struct fixture *f = *state;

    f->per_day = "gold:64000";
    assert_int_equal(grant(f, 0, 1), ERR_OK);
    assert_string_equal(record(f), "gold:1000");
    for (uint32_t i = 0; i < 999; i++)
        assert_int_equal(begin(f, 0, f->books[0], 1)->result, ERR_OK);
    assert_int_equal(begin(f, 0, f->books[0], 1)->result, ERR_NEED);
    assert_true(loop_run_until(f->loop, all_done, f, WAIT_MS));
    assert_string_equal(record(f), "gold:2000");
}

static void old_days_are_deleted(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(grant(f, 0, 100), ERR_OK);
        (void)record(f);
        assert_in_range(f->records, 1, 2);
        f->wall_ms += DAY_MS;
    }
}

static void a_caller_that_goes_leaves_the_others(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 3; i++)
        begin(f, i, f->books[0], 100);
    mint_book_cancel(&f->grants[0].wait);
    f->open--;
    assert_true(loop_run_until(f->loop, all_done, f, WAIT_MS));
    assert_int_equal(f->grants[0].result, ERR_NEED);
    assert_int_equal(f->grants[1].result, ERR_OK);
    assert_int_equal(f->grants[2].result, ERR_OK);
    begin(f, 3, f->books[0], 300); /* And all of them, while the question is out. */
    mint_book_cancel(&f->grants[3].wait);
    f->open--;
    assert_int_equal(grant(f, 0, 400), ERR_OK);
}

static void without_etcd_no_goods_are_made(void **state)
{
    struct fixture *f = *state;
    struct etcd *nowhere = etcd_at(f, "http://127.0.0.1:1");
    struct mint_book *book = mint_book_new(&(struct mint_book_options){ nowhere, CLUSTER });

    struct grant *one = begin(f, 0, book, 1);
    one->wait.timeout_ms = 100;
    assert_true(loop_run_until(f->loop, all_done, f, WAIT_MS));
    assert_int_equal(one->result, ERR_UNAVAILABLE);
    mint_book_free(book);
    etcd_free(nowhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_routers_have_one_sum, setup, teardown),
        cmocka_unit_test_setup_teardown(many_calls_at_once_by_both, setup, teardown),
        cmocka_unit_test_setup_teardown(a_router_that_starts_again_goes_on_with_the_sum, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(most_calls_ask_etcd_for_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(old_days_are_deleted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_caller_that_goes_leaves_the_others, setup, teardown),
        cmocka_unit_test_setup_teardown(without_etcd_no_goods_are_made, setup, teardown),
    };

    return cmocka_run_group_tests(tests, start_etcd, stop_etcd);
}
