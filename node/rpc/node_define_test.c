/* DEFINE entries, and node_get_defined, which tells how far they came. */
#include "node/core/definition/definition.h"

#include <stdio.h>
#include <string.h>

#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"

#define COUNT_MAX 4u

typedef Holdfast__Internal__V1__DefineRequest define_request;
typedef Holdfast__Internal__V1__DefineResponse define_response;

/* A span with versions of definitions in it. */
struct span {
    define_request request;
    defined given[COUNT_MAX];
    defined *list[COUNT_MAX];
    Holdfast__V1__DefinitionBody bodies[COUNT_MAX];
    Holdfast__V1__CurrencyBody currencies[COUNT_MAX];
};

static void span_init(struct span *span, uint64_t generation, uint64_t from, uint64_t to)
{
    memset(span, 0, sizeof *span);
    holdfast__internal__v1__define_request__init(&span->request);
    span->request.generation = generation;
    span->request.from_revision = from;
    span->request.to_revision = to;
    span->request.last = true;
    span->request.definitions = span->list;
}

/* A currency's version; `max` 0: it is deleted. */
static defined *add(struct span *span, uint64_t number, uint64_t revision, const char *name,
                    int64_t max)
{
    size_t place = span->request.n_definitions++;
    defined *given = &span->given[place];

    holdfast__internal__v1__defined__init(given);
    holdfast__v1__definition_body__init(&span->bodies[place]);
    holdfast__v1__currency_body__init(&span->currencies[place]);
    span->currencies[place].max_balance = max;
    span->bodies[place].kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY;
    span->bodies[place].currency = &span->currencies[place];
    given->number = number;
    given->version = revision;
    given->revision = revision;
    given->name = (char *)(uintptr_t)name;
    given->body = &span->bodies[place];
    given->deleted = max == 0;
    span->list[place] = given;
    return given;
}

static define_response *send(struct fixture *f, struct span *span)
{
    return fixture_mutate(f, METHOD_DEFINE, &span->request.base);
}

static define_response *send_one(struct fixture *f, uint64_t from, uint64_t revision, int64_t max)
{
    struct span span;

    span_init(&span, 1, from, revision);
    add(&span, 7, revision, "pearls", max);
    return send(f, &span);
}

static int64_t limit_of(struct fixture *f, const char *name)
{
    const struct currency *currency =
        policy_find_currency(&applier_meta(f->applier)->policy, slice_from_text(name));

    return currency != NULL ? currency->max_balance : -1;
}

static Holdfast__Internal__V1__GetDefinedResponse *stand(struct fixture *f)
{
    Holdfast__Internal__V1__GetDefinedRequest request =
        HOLDFAST__INTERNAL__V1__GET_DEFINED_REQUEST__INIT;

    return fixture_read(f, METHOD_GET_DEFINED, &request.base);
}

static void a_version_is_in_force_once_it_is_applied(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(stand(f)->generation, 0);
    assert_int_equal(limit_of(f, "pearls"), -1);
    define_response *response = send_one(f, 0, 10, 500);
    assert_int_equal(response->generation, 1);
    assert_int_equal(response->revision, 10);
    assert_int_equal(limit_of(f, "pearls"), 500);
    assert_int_equal(limit_of(f, "gold"), AMOUNT_MAX);
    assert_int_equal(send_one(f, 10, 12, 600)->revision, 12);
    assert_int_equal(limit_of(f, "pearls"), 600);
    fixture_restart(f);
    Holdfast__Internal__V1__GetDefinedResponse *now = stand(f);
    assert_int_equal(now->revision, 12);
    assert_int_equal(now->count, 1);
    assert_true(now->bytes > 0);
    assert_int_equal(limit_of(f, "pearls"), 600);
}

static void an_older_version_that_comes_late_changes_nothing(void **state)
{
    struct fixture *f = *state;

    assert_non_null(send_one(f, 0, 12, 600));
    define_response *response = send_one(f, 0, 10, 500);
    assert_int_equal(response->revision, 12);
    assert_int_equal(limit_of(f, "pearls"), 600);
    assert_int_equal(send_one(f, 0, 12, 700)->revision, 12); /* Nor one of the same revision. */
    assert_int_equal(limit_of(f, "pearls"), 600);
}

static void what_was_deleted_does_not_come_back(void **state)
{
    struct fixture *f = *state;

    assert_non_null(send_one(f, 0, 10, 500));
    assert_non_null(send_one(f, 10, 20, 0));
    assert_int_equal(stand(f)->count, 0);
    assert_int_equal(stand(f)->bytes, 0);
    assert_int_equal(limit_of(f, "pearls"), -1);
    assert_int_equal(send_one(f, 0, 10, 500)->revision, 20);
    assert_int_equal(limit_of(f, "pearls"), -1);
}

static void a_span_behind_a_gap_is_told_where_the_shard_stands(void **state)
{
    struct fixture *f = *state;

    assert_non_null(send_one(f, 0, 10, 500));
    define_response *response = send_one(f, 15, 20, 600);
    assert_int_equal(response->revision, 10);
    assert_int_equal(limit_of(f, "pearls"), 500);
}

static void a_span_that_begins_earlier_brings_only_what_is_newer(void **state)
{
    struct fixture *f = *state;
    struct span span;

    assert_non_null(send_one(f, 0, 10, 500));
    assert_non_null(send_one(f, 10, 20, 0));
    span_init(&span, 1, 5, 30);
    add(&span, 7, 10, "pearls", 500);
    add(&span, 8, 30, "shells", 40);
    assert_int_equal(send(f, &span)->revision, 30);
    assert_int_equal(limit_of(f, "pearls"), -1);
    assert_int_equal(limit_of(f, "shells"), 40);
}

/* Etcd was restored from a backup: what it does not have is gone, what it has holds again. */
static void a_new_generation_replaces_all_of_the_one_before(void **state)
{
    struct fixture *f = *state;
    struct span span;

    span_init(&span, 1, 0, 90);
    add(&span, 7, 80, "pearls", 500);
    add(&span, 8, 90, "shells", 40);
    assert_non_null(send(f, &span));
    span_init(&span, 2, 50, 60);
    assert_int_equal(send(f, &span)->generation, 1); /* It does not begin at 0. */
    span_init(&span, 2, 0, 30);
    span.request.last = false;
    add(&span, 7, 30, "pearls", 300);
    assert_int_equal(send(f, &span)->generation, 2);
    assert_int_equal(limit_of(f, "pearls"), 300);
    assert_int_equal(limit_of(f, "shells"), 40); /* It may still come. */
    span_init(&span, 2, 0, 20);                  /* Sent before that one, when there was no more. */
    assert_int_equal(send(f, &span)->revision, 30);
    assert_int_equal(limit_of(f, "shells"), 40);
    span_init(&span, 2, 30, 30);
    assert_int_equal(send(f, &span)->revision, 30);
    assert_int_equal(limit_of(f, "shells"), -1);
    assert_int_equal(stand(f)->count, 1);
    span_init(&span, 1, 0, 99); /* Late, of the etcd that is no more. */
    add(&span, 8, 99, "shells", 50);
    assert_int_equal(send(f, &span)->generation, 2);
    assert_int_equal(limit_of(f, "shells"), -1);
}

/* The name was made again after the restore, under another number, and came with the span that lets
 * the shard sweep what was there before. */
static void a_currency_made_again_under_its_name_survives_the_sweep(void **state)
{
    struct fixture *f = *state;
    struct span span;

    span_init(&span, 1, 0, 90);
    add(&span, 7, 90, "pearls", 500);
    assert_non_null(send(f, &span));
    span_init(&span, 2, 0, 30);
    add(&span, 9, 30, "pearls", 300);
    assert_int_equal(send(f, &span)->generation, 2);
    assert_int_equal(limit_of(f, "pearls"), 300);
    assert_int_equal(stand(f)->count, 1);
    fixture_policy(f, 0, 0);
    assert_int_equal(limit_of(f, "pearls"), 300);
}

/* It is not the definitions' to take away what the policy declares. */
static void the_policy_s_own_currency_holds_again_when_its_definition_is_swept(void **state)
{
    struct fixture *f = *state;
    struct span span;

    for (uint64_t generation = 1; generation < 7; generation += 2) {
        span_init(&span, generation, 0, 90);
        add(&span, 7, 80, "gold", 70);
        add(&span, 8, 90, "pearls", 40);
        assert_non_null(send(f, &span));
        assert_int_equal(limit_of(f, "gold"), 70);
        if (generation > 1)
            fixture_policy(f, 0, 0); /* Noted when the policy comes, too. */
        if (generation > 3)
            fixture_restart(f);
        assert_int_equal(limit_of(f, "gold"), 70);
        span_init(&span, generation + 1, 0, 30);
        assert_int_equal(send(f, &span)->generation, generation + 1);
        assert_int_equal(limit_of(f, "gold"), AMOUNT_MAX);
        assert_int_equal(limit_of(f, "pearls"), -1);
    }
    span_init(&span, 7, 0, 90);
    add(&span, 7, 90, "gold", 70);
    assert_non_null(send(f, &span));
    span_init(&span, 7, 90, 95);
    add(&span, 7, 95, "gold", 0);
    assert_non_null(send(f, &span));
    assert_int_equal(limit_of(f, "gold"), AMOUNT_MAX);
}

/* A policy that comes before the sweep puts the bounds of both over its own. */
static void the_later_definition_of_a_name_holds_once_the_other_is_swept(void **state)
{
    struct fixture *f = *state;
    struct span span;

    span_init(&span, 1, 0, 90);
    add(&span, 5, 80, "shells", 1);
    add(&span, 7, 90, "pearls", 500);
    assert_non_null(send(f, &span));
    span_init(&span, 2, 0, 30);
    span.request.last = false;
    add(&span, 9, 20, "pearls", 300);
    add(&span, 5, 30, "shells", 0); /* The order in which the shard has them changes. */
    assert_int_equal(send(f, &span)->generation, 2);
    fixture_policy(f, 0, 0);
    span_init(&span, 2, 30, 30);
    assert_int_equal(send(f, &span)->revision, 30);
    assert_int_equal(limit_of(f, "pearls"), 300);
    assert_int_equal(limit_of(f, "shells"), -1);
}

static void a_policy_that_is_set_later_keeps_defined_currencies(void **state)
{
    struct fixture *f = *state;
    struct span span;

    span_init(&span, 1, 0, 20);
    add(&span, 7, 10, "pearls", 500);
    add(&span, 8, 20, "gold", 70);
    assert_non_null(send(f, &span));
    assert_int_equal(limit_of(f, "gold"), 70);
    fixture_policy(f, 0, 0);
    assert_int_equal(limit_of(f, "pearls"), 500);
    assert_int_equal(limit_of(f, "gold"), 70);
    assert_int_equal(limit_of(f, "gems"), 1000);
}

static void bad_spans_are_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    struct span span;

    span_init(&span, 1, 0, 20);
    add(&span, 7, 21, "pearls", 500);
    assert_null(send(f, &span));
    assert_false(f->recorded);
    assert_string_equal(f->error->field, "definitions[0].revision");
    span.given[0].revision = 20;
    span.given[0].name = (char *)"Pearls";
    assert_null(send(f, &span));
    assert_string_equal(f->error->field, "definitions[0].name");
    span.given[0].name = (char *)"pearls";
    span.given[0].body = NULL;
    assert_null(send(f, &span));
    assert_string_equal(f->error->field, "definitions[0].body");
    static const int64_t amounts[][2] = {
        { 0, 1 }, { 0, -AMOUNT_MAX - 1 }, { -1, 0 }, { AMOUNT_MAX + 1, 0 }
    };

    for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
        span_init(&span, 1, 0, 20);
        add(&span, 7, 20, "pearls", 500)->deleted = false;
        span.currencies[0].max_balance = amounts[i][0] != 0 ? amounts[i][0] : 500;
        span.currencies[0].min_balance = amounts[i][1];
        assert_null(send(f, &span));
        assert_string_equal(f->error->field, amounts[i][0] != 0
                                                 ? "definitions[0].body.currency.max_balance"
                                                 : "definitions[0].body.currency.min_balance");
    }
    span_init(&span, 0, 0, 20);
    assert_null(send(f, &span));
    assert_false(f->recorded);
    assert_int_equal(stand(f)->generation, 0);
}

/* A head that rotted is as if there were none: all is brought again, and rows decide by stamps. */
static void a_head_that_cannot_be_read_begins_again(void **state)
{
    struct fixture *f = *state;
    struct span span;

    span_init(&span, 1, 0, 20);
    add(&span, 7, 20, "pearls", 500);
    assert_non_null(send(f, &span));
    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++) {
        struct buf *key = &f->rows[i].key;
        if (key->data[0] == TABLE_DEFINITION && key->data[8] == 0)
            memset(f->rows[i].value.data, 0xff, f->rows[i].value.size);
    }
    fixture_reopen(f);
    assert_int_equal(stand(f)->generation, 0);
    assert_non_null(send_one(f, 0, 10, 400));
    assert_int_equal(limit_of(f, "pearls"), 500);
    assert_int_equal(send_one(f, 10, 30, 600)->revision, 30);
    assert_int_equal(limit_of(f, "pearls"), 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_version_is_in_force_once_it_is_applied),
        FIXTURE_TEST(an_older_version_that_comes_late_changes_nothing),
        FIXTURE_TEST(what_was_deleted_does_not_come_back),
        FIXTURE_TEST(a_span_behind_a_gap_is_told_where_the_shard_stands),
        FIXTURE_TEST(a_span_that_begins_earlier_brings_only_what_is_newer),
        FIXTURE_TEST(a_new_generation_replaces_all_of_the_one_before),
        FIXTURE_TEST(a_currency_made_again_under_its_name_survives_the_sweep),
        FIXTURE_TEST(the_policy_s_own_currency_holds_again_when_its_definition_is_swept),
        FIXTURE_TEST(the_later_definition_of_a_name_holds_once_the_other_is_swept),
        FIXTURE_TEST(a_policy_that_is_set_later_keeps_defined_currencies),
        FIXTURE_TEST(bad_spans_are_refused_before_the_log),
        FIXTURE_TEST(a_head_that_cannot_be_read_begins_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
