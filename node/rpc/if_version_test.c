/* `if_version` of mutations: compared with the player's version where the operation is decided. */
#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "node/rpc/fixture.h"

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name
#define SET(type, request, version)                                                                \
    ((request)->_if_version_case = HOLDFAST__V1__##type##_REQUEST___IF_VERSION_IF_VERSION,         \
     (request)->if_version = (version))

struct asked {
    const char *player, *op_id;
    uint32_t attempt;
    uint64_t if_version;
    bool any; /* It has none. */
};

static Holdfast__V1__GrantResponse *grant(struct fixture *f, const struct asked *asked)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = (char *)"gold";
    amount.amount = 5;
    request.player_id = text_lend(asked->player);
    request.op_id = text_lend(asked->op_id);
    request.attempt = asked->attempt;
    request.authority = (char *)"unheld";
    request.currencies = amounts;
    request.n_currencies = 1;
    if (!asked->any)
        SET(GRANT, &request, asked->if_version);
    return fixture_mutate(f, METHOD_GRANT, &request.base);
}

static void conflicts(struct fixture *f, const char *stands)
{
    assert_non_null(f->error);
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_string_equal(f->error->field, "if_version");
    assert_string_equal(f->error->value, stands);
    assert_true(f->error->final);
}

static void another_version_refuses_and_changes_nothing(void **state)
{
    struct fixture *f = *state;

    assert_non_null(grant(f, &(struct asked){ "ann", fixture_op_id(f), .any = true }));
    assert_non_null(grant(f, &(struct asked){ "ann", fixture_op_id(f), .if_version = 1 }));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 10);
    for (uint64_t version = 0; version < 4; version++) {
        if (version == 2)
            continue;
        assert_null(grant(f, &(struct asked){ "ann", fixture_op_id(f), .if_version = version }));
        conflicts(f, "2");
    }
    assert_int_equal(fixture_balance(f, "ann", "gold"), 10);
    assert_int_equal(
        grant(f, &(struct asked){ "ann", fixture_op_id(f), .if_version = 2 })->write->version, 3);
}

static void zero_wants_a_player_whom_nothing_was_done_to(void **state)
{
    struct fixture *f = *state;

    assert_non_null(grant(f, &(struct asked){ "bob", fixture_op_id(f), .if_version = 0 }));
    assert_null(grant(f, &(struct asked){ "bob", fixture_op_id(f), .if_version = 0 }));
    conflicts(f, "1");
}

static void a_repetition_is_a_duplicate_and_is_not_compared_again(void **state)
{
    struct fixture *f = *state;
    const char *op_id = fixture_op_id(f);

    assert_non_null(grant(f, &(struct asked){ "ann", op_id, .if_version = 0 }));
    assert_true(grant(f, &(struct asked){ "ann", op_id, .if_version = 0 })->write->duplicate);
    assert_null(grant(f, &(struct asked){ "ann", op_id, .if_version = 1 }));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_null(grant(f, &(struct asked){ "ann", op_id, .any = true }));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
}

static void a_raised_attempt_is_compared_again(void **state)
{
    struct fixture *f = *state;
    struct asked asked = { "ann", fixture_op_id(f), .if_version = 1 };

    assert_null(grant(f, &asked));
    conflicts(f, "0");
    assert_non_null(grant(f, &(struct asked){ "ann", fixture_op_id(f), .any = true }));
    assert_null(grant(f, &asked));
    conflicts(f, "0"); /* The stored refusal. */
    asked.attempt = 1;
    assert_non_null(grant(f, &asked));
}

/* The holder saves in the grace period, and so raises the version: the steal stands. */
static void a_steal_is_compared_when_it_is_asked_for(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;
    const char *op_id = fixture_op_id(f);
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));

    assert_non_null(held);
    request.player_id = (char *)"ann";
    request.op_id = text_lend(op_id);
    request.incarnation = (char *)SERVER_B;
    request.mode = MODE(STEAL);
    SET(START_SESSION, &request, 7);
    assert_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    conflicts(f, "1");
    request.attempt = 1;
    request.if_version = 1;
    assert_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    request.op_id = text_lend(fixture_op_id(f));
    assert_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    assert_int_equal(f->outcome.kind, OUTCOME_PENDING);
    assert_non_null(fixture_grant(f, "ann", held, 5));
    assert_non_null(fixture_end(f, "ann", held));
    Holdfast__V1__StartSessionResponse *stolen =
        fixture_mutate(f, METHOD_START_SESSION, &request.base);
    assert_non_null(stolen);
}

/* It was compared before it waited: the holder's last save does not turn it away. */
static void a_steal_whose_holder_is_gone_is_not_compared_again(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));

    assert_non_null(held);
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.incarnation = (char *)SERVER_B;
    request.mode = MODE(STEAL);
    SET(START_SESSION, &request, 1);
    assert_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    assert_int_equal(f->outcome.kind, OUTCOME_PENDING);
    assert_non_null(fixture_grant(f, "ann", held, 5));
    fixture_expire(f, SERVER_A, "");
    assert_non_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    assert_false(f->outcome.duplicate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(another_version_refuses_and_changes_nothing),
        FIXTURE_TEST(zero_wants_a_player_whom_nothing_was_done_to),
        FIXTURE_TEST(a_repetition_is_a_duplicate_and_is_not_compared_again),
        FIXTURE_TEST(a_raised_attempt_is_compared_again),
        FIXTURE_TEST(a_steal_is_compared_when_it_is_asked_for),
        FIXTURE_TEST(a_steal_whose_holder_is_gone_is_not_compared_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
