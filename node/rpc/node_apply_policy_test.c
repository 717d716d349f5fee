#include "node/rpc/fixture.h"

#include <string.h>

#include "runtime/base/check.h"

struct change {
    Holdfast__Internal__V1__ApplyPolicyRequest request;
    Holdfast__V1__Policy policy;
    Holdfast__V1__CurrencyPolicy currencies[2];
    Holdfast__V1__CurrencyPolicy *list[2];
};

static void change_init(struct change *change, uint64_t version)
{
    holdfast__internal__v1__apply_policy_request__init(&change->request);
    holdfast__v1__policy__init(&change->policy);
    for (size_t i = 0; i < 2; i++) {
        holdfast__v1__currency_policy__init(&change->currencies[i]);
        change->list[i] = &change->currencies[i];
    }
    change->currencies[0].name = (char *)"silver";
    change->currencies[1].name = (char *)"bronze";
    change->policy.version = version;
    change->policy.currencies = change->list;
    change->policy.n_currencies = 2;
    change->request.policy = &change->policy;
}

static void *send(struct fixture *f, struct change *change)
{
    return fixture_mutate(f, METHOD_APPLY_POLICY, &change->request.base);
}

static void a_policy_replaces_the_one_before_and_old_versions_change_nothing(void **state)
{
    struct fixture *f = *state;
    struct change change;

    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    change_init(&change, 1);
    assert_non_null(send(f, &change));
    assert_non_null(policy_find_currency(&applier_meta(f->applier)->policy, SLICE_LITERAL("gold")));
    change_init(&change, 2);
    Holdfast__Internal__V1__ApplyPolicyResponse *response = send(f, &change);
    assert_int_equal(response->dot->counter, f->counter);
    const struct policy *policy = &applier_meta(f->applier)->policy;
    assert_string_equal(policy->currencies[0].name, "bronze");
    assert_int_equal(policy->currencies[0].max_balance, AMOUNT_MAX);
    assert_int_equal(policy->operation_window_ms, 86400000);
    assert_null(fixture_grant(f, "ann", "unheld", 5));
    assert_string_equal(f->error->limit, "a declared currency: bronze silver");
    assert_int_equal(fixture_balance(f, "ann", "gold"), 5);
}

static void check_stands(struct fixture *f, struct change *change, uint64_t generation,
                         uint64_t version)
{
    Holdfast__Internal__V1__ApplyPolicyResponse *response = send(f, change);
    const struct policy *policy = &applier_meta(f->applier)->policy;

    assert_non_null(response);
    assert_int_equal(response->generation, generation);
    assert_int_equal(response->version, version);
    assert_int_equal(policy->generation, generation);
    assert_int_equal(policy->version, version);
    meta_check(applier_meta(f->applier));
}

/* Its version begins again where the backup of etcd had it. */
static void a_policy_of_a_restored_etcd_holds_over_later_versions_of_before(void **state)
{
    struct fixture *f = *state;
    struct change change;

    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    change_init(&change, 9);
    change.request.generation = 1;
    check_stands(f, &change, 1, 9);
    change_init(&change, 3);
    change.request.generation = 2;
    change.policy.n_currencies = 1; /* Bronze was not known yet. */
    change.policy.items_max = 7;
    check_stands(f, &change, 2, 3);
    assert_int_equal(applier_meta(f->applier)->policy.items_max, 7);
    assert_null(policy_find_currency(&applier_meta(f->applier)->policy, SLICE_LITERAL("bronze")));
    change_init(&change, 10); /* Late, of the etcd that is no more. */
    change.request.generation = 1;
    check_stands(f, &change, 2, 3);
    change_init(&change, 3);
    change.request.generation = 2;
    check_stands(f, &change, 2, 3);
    assert_int_equal(applier_meta(f->applier)->policy.items_max, 7);
    fixture_restart(f);
    change_init(&change, 2); /* Of a sender that tells no generation. */
    check_stands(f, &change, 2, 3);
    change_init(&change, 4);
    check_stands(f, &change, 2, 4);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 5);
}

static bool grants(struct fixture *f, const char *currency, int64_t least)
{
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };
    struct change change;

    change_init(&change, applier_meta(f->applier)->policy.version + 1);
    change.currencies[0].name = (char *)(uintptr_t)currency;
    change.currencies[0].min_balance = least;
    assert_non_null(send(f, &change));
    amount.currency = (char *)(uintptr_t)currency;
    amount.amount = 1;
    grant.player_id = (char *)"ann";
    grant.op_id = fixture_op_id(f);
    grant.authority = fixture_authority(f, "unheld");
    grant.currencies = amounts;
    grant.n_currencies = 1;
    return fixture_mutate(f, METHOD_GRANT, &grant.base) != NULL;
}

static void owe(struct fixture *f)
{
    Holdfast__V1__SpendRequest spend = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = (char *)"debt";
    amount.amount = 30;
    spend.player_id = (char *)"ann";
    spend.op_id = fixture_op_id(f);
    spend.authority = fixture_authority(f, "unheld");
    spend.currencies = amounts;
    spend.n_currencies = 1;
    assert_non_null(fixture_mutate(f, METHOD_SPEND, &spend.base));
    assert_int_equal(fixture_balance(f, "ann", "debt"), -30);
}

/* It was no damage when it was made. */
static void a_debt_stands_when_its_currency_was_dropped_and_comes_again(void **state)
{
    struct fixture *f = *state;

    owe(f);
    assert_true(grants(f, "silver", 0));
    assert_int_equal(applier_meta(f->applier)->policy.dropped_min, -50);
    fixture_restart(f);
    assert_true(grants(f, "debt", 0));
    assert_true(grants(f, "silver", 0));
    assert_true(grants(f, "debt", 0));
    assert_int_equal(fixture_balance(f, "ann", "debt"), -28);
    assert_int_equal(applier_meta(f->applier)->quarantine_count, 0);
    meta_check(applier_meta(f->applier));
}

/* The request was checked under the old policy and applied under the new one. */
static void a_policy_that_changes_on_the_way_is_what_counts(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    struct change change;
    struct buf body = { 0 };

    gold.currency = (char *)"gold";
    gold.amount = 1;
    grant.player_id = (char *)"ann";
    grant.op_id = fixture_op_id(f);
    grant.authority = fixture_authority(f, "unheld");
    grant.currencies = amounts;
    grant.n_currencies = 1;
    assert_true(fixture_prepare(f, METHOD_GRANT, &grant.base, &body));
    change_init(&change, 2);
    assert_non_null(send(f, &change));
    fixture_commit(f, buf_slice(&body));
    assert_int_equal(f->outcome.kind, OUTCOME_REFUSED);
    assert_int_equal(fixture_operation(f, "ann", grant.op_id)->refusal->code,
                     ERROR(INVALID_ARGUMENT));
    buf_deinit(&body);
}

static void grant_init(struct fixture *f, Holdfast__V1__GrantRequest *grant,
                       Holdfast__V1__CurrencyAmount **amounts, uint64_t made_ms)
{
    holdfast__v1__grant_request__init(grant);
    grant->player_id = (char *)"ann";
    grant->op_id = fixture_op_id_at(f, made_ms);
    grant->currencies = amounts;
    grant->n_currencies = 1;
}

/* Its caller was told that it is never applied; it has perhaps done the same under another id. */
static void a_longer_window_does_not_bring_back_what_had_expired(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest late, young;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    const uint64_t quarter_ms = 900000;

    gold.currency = (char *)"gold";
    gold.amount = 5;
    fixture_policy(f, quarter_ms, 0);
    grant_init(f, &late, amounts, f->now_ms - quarter_ms - 1);
    grant_init(f, &young, amounts, f->now_ms - quarter_ms);
    for (uint64_t window_ms = quarter_ms; window_ms <= 4 * quarter_ms; window_ms *= 2) {
        late.authority = fixture_authority(f, "unheld");
        assert_null(fixture_mutate(f, METHOD_GRANT, &late.base));
        assert_int_equal(f->error->code, ERROR(OPERATION_EXPIRED));
        fixture_policy(f, 2 * window_ms, 0);
    }
    assert_int_equal(fixture_operation(f, "ann", late.op_id)->state, OPERATION(EXPIRED));
    young.authority = fixture_authority(f, "unheld");
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &young.base));
    fixture_restart(f);
    late.authority = fixture_authority(f, "unheld");
    assert_null(fixture_mutate(f, METHOD_GRANT, &late.base));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 5);
}

static void limits_and_names_are_checked(void **state)
{
    struct fixture *f = *state;
    struct change change;

    change_init(&change, 0);
    assert_null(send(f, &change));
    assert_string_equal(f->error->field, "policy.version");
    change_init(&change, 2);
    change.currencies[1].name = (char *)"Gold";
    assert_null(send(f, &change));
    assert_string_equal(f->error->field, "policy.currencies[1].name");
    change_init(&change, 2);
    change.currencies[1].name = (char *)"silver";
    assert_null(send(f, &change));
    assert_string_equal(f->error->limit, "each currency once");
    change_init(&change, 2);
    change.currencies[0].min_balance = 1;
    assert_null(send(f, &change));
    assert_string_equal(f->error->field, "policy.currencies[0].min_balance");
    change_init(&change, 2);
    change.currencies[0].max_balance = AMOUNT_MAX + 1;
    assert_null(send(f, &change));
    assert_string_equal(f->error->field, "policy.currencies[0].max_balance");
    change_init(&change, 2);
    change.policy.operation_window_ms = 899999;
    assert_null(send(f, &change));
    assert_string_equal(f->error->field, "policy.operation_window_ms");
}

/* A field of the policy, at a value that is taken and at one that is not. */
struct bound {
    const char *field;
    size_t offset, size;
    uint64_t taken, refused;
};

static void change_set(struct change *change, const struct bound *bound, uint64_t value)
{
    uint32_t narrow = (uint32_t)value;
    const void *from = bound->size == sizeof narrow ? (const void *)&narrow : (const void *)&value;

    memcpy((char *)&change->policy + bound->offset, from, bound->size);
}

#define BOUND(name, taken, refused)                                                                \
    {                                                                                              \
        "policy." #name, offsetof(Holdfast__V1__Policy, name),                                     \
            sizeof((Holdfast__V1__Policy *)0)->name, taken, refused                                \
    }

static void each_limit_holds_up_to_its_bound(void **state)
{
    static const struct bound bounds[] = {
        BOUND(operation_window_ms, 900000, 899999),
        BOUND(operation_window_ms, 604800000, 604800001),
        BOUND(operations_max, 1000, 999),
        BOUND(operations_max, 100000000, 100000001),
        BOUND(items_max, 1000000, 1000001),
        BOUND(mailbox_max, 100000, 100001),
    };
    struct fixture *f = *state;
    struct change change;

    for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
        const uint64_t version = applier_meta(f->applier)->policy.version + 1;

        change_init(&change, version);
        change_set(&change, &bounds[i], bounds[i].refused);
        assert_null(send(f, &change));
        assert_string_equal(f->error->field, bounds[i].field);
        change_init(&change, version);
        change_set(&change, &bounds[i], bounds[i].taken);
        assert_non_null(send(f, &change));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_policy_replaces_the_one_before_and_old_versions_change_nothing),
        FIXTURE_TEST(a_policy_of_a_restored_etcd_holds_over_later_versions_of_before),
        FIXTURE_TEST(a_debt_stands_when_its_currency_was_dropped_and_comes_again),
        FIXTURE_TEST(a_policy_that_changes_on_the_way_is_what_counts),
        FIXTURE_TEST(a_longer_window_does_not_bring_back_what_had_expired),
        FIXTURE_TEST(limits_and_names_are_checked),
        FIXTURE_TEST(each_limit_holds_up_to_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
