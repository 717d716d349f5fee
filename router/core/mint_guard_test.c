#include "router/core/mint_guard.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "idl/error_code.h"

#define DAY_MS 86400000u

#define RECORDS (MINT_KEYS_MAX + 2)

/* As etcd has it. */
struct record {
    char key[16];
    uint64_t day;
    struct mint_limits made;
};

struct fixture {
    struct arena arena;
    struct mint_guard *guard; /* Of the router that is asked. */
    struct record records[RECORDS];
    Holdfast__V1__ErrorDetail detail;
    const char *key;
    uint64_t wall_ms;
};

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof f);
    f.guard = mint_guard_new();
    f.key = "a";
    f.wall_ms = 5 * DAY_MS;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    mint_guard_check(f->guard);
    mint_guard_free(f->guard);
    arena_deinit(&f->arena);
    return 0;
}

static struct mint_limits *record_of(struct fixture *f, const struct mint_call *call)
{
    for (uint32_t i = 0; i < RECORDS; i++) {
        struct record *record = &f->records[i];

        if (record->key[0] == 0) {
            snprintf(record->key, sizeof record->key, "%s", call->key_id);
            record->day = mint_day_of(call);
        }
        if (strcmp(record->key, call->key_id) == 0 && record->day == mint_day_of(call))
            return &record->made;
    }
    fail();
    return NULL;
}

/* As a router asks. */
static err ask(struct fixture *f, const struct mint_call *call)
{
    struct mint_limits lack, share, *made;
    err e = mint_check(call, &f->detail);

    if (e == ERR_OK)
        e = mint_guard_take(f->guard, call, &lack, &f->detail);
    if (e != ERR_NEED)
        return e;
    made = record_of(f, call);
    mint_guard_give(f->guard, call, made, NULL);
    e = mint_guard_take(f->guard, call, &lack, &f->detail);
    if (e != ERR_NEED)
        return e;
    mint_reserve(call, &lack, made, &share);
    mint_guard_give(f->guard, call, made, &share);
    e = mint_guard_take(f->guard, call, &lack, &f->detail);
    assert_int_equal(e, ERR_OK);
    return e;
}

static err grant(struct fixture *f, int64_t gold, const char *grants, const char *per_day)
{
    Holdfast__V1__GrantRequest request;
    Holdfast__V1__CurrencyAmount amount, *list[] = { &amount };
    char name[] = "gold";

    holdfast__v1__grant_request__init(&request);
    holdfast__v1__currency_amount__init(&amount);
    amount.currency = name;
    amount.amount = gold;
    request.currencies = list;
    request.n_currencies = 1;
    const struct mint_call call = {
        method_find(METHOD_GRANT), &request.base, f->key, grants, per_day, f->wall_ms, &f->arena
    };
    return ask(f, &call);
}

static void a_call_makes_what_its_key_may_and_no_more(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(grant(f, INT64_MAX, "", ""), ERR_OK);
    assert_int_equal(grant(f, 100, "gold:100", ""), ERR_OK);
    assert_int_equal(grant(f, 101, "gold:100", ""), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(PERMISSION_DENIED));
    assert_string_equal(f->detail.field, "gold");
    assert_string_equal(f->detail.limit, "at most 100 a call");
    assert_string_equal(f->detail.value, "101");
    assert_int_equal(grant(f, 1, "gems:100", ""), ERR_PERMISSION);
    assert_string_equal(f->detail.limit, "none");
    assert_int_equal(grant(f, -5, "gold:100", ""), ERR_OK); /* The node refuses it. */
}

static void a_day_is_of_each_key_and_ends(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(grant(f, 60, "", "gold:100"), ERR_OK);
    assert_int_equal(grant(f, 41, "", "gold:100"), ERR_FULL);
    assert_int_equal(f->detail.code, CODE(THROTTLED));
    assert_int_equal(f->detail.retry_after_ms, DAY_MS);
    assert_int_equal(grant(f, 40, "", "gold:100"), ERR_OK); /* What was refused is not counted. */
    assert_int_equal(grant(f, 1, "", "gold:100"), ERR_FULL);
    f->key = "b";
    assert_int_equal(grant(f, 100, "", "gold:100"), ERR_OK);
    f->key = "a";
    f->wall_ms += DAY_MS - 1;
    assert_int_equal(grant(f, 1, "", "gold:100"), ERR_FULL);
    assert_int_equal(f->detail.retry_after_ms, 1);
    f->wall_ms++;
    assert_int_equal(grant(f, 100, "", "gold:100"), ERR_OK);
    assert_int_equal(grant(f, INT64_MAX, "", "gold:100"), ERR_FULL);
}

/* Grants gold, under an op_id of that attempt. */
static err grant_once(struct fixture *f, const char *op_id, uint32_t attempt, int64_t gold)
{
    Holdfast__V1__GrantRequest request;
    Holdfast__V1__CurrencyAmount amount, *list[] = { &amount };
    char name[] = "gold";

    holdfast__v1__grant_request__init(&request);
    holdfast__v1__currency_amount__init(&amount);
    amount.currency = name;
    amount.amount = gold;
    request.op_id = (char *)(uintptr_t)op_id;
    request.attempt = attempt;
    request.currencies = list;
    request.n_currencies = 1;
    const struct mint_call call = {
        method_find(METHOD_GRANT), &request.base, f->key, "", "gold:1000", f->wall_ms, &f->arena
    };
    return ask(f, &call);
}

static void a_repetition_is_not_counted_again(void **state)
{
    struct fixture *f = *state;
    char op_id[16];

    assert_int_equal(grant_once(f, "a", 0, 700), ERR_OK);
    assert_int_equal(grant_once(f, "b", 0, 301), ERR_FULL);
    assert_int_equal(grant_once(f, "a", 0, 700), ERR_OK);
    assert_int_equal(grant_once(f, "b", 0, 301), ERR_FULL);
    assert_int_equal(grant_once(f, "b", 0, 301), ERR_FULL); /* It was not counted the first time. */
    assert_int_equal(grant_once(f, "a", 0, 701), ERR_FULL); /* Not what was counted under its id. */
    assert_int_equal(grant_once(f, "a", 1, 700), ERR_FULL);
    assert_int_equal(grant_once(f, "", 0, 100), ERR_OK);
    assert_int_equal(grant_once(f, "", 0, 100), ERR_OK);
    assert_int_equal(grant_once(f, "", 0, 101), ERR_FULL);
    f->wall_ms += DAY_MS;
    assert_int_equal(grant_once(f, "a", 0, 700), ERR_OK); /* Its outcome may be forgotten. */
    assert_int_equal(grant_once(f, "c", 0, 301), ERR_FULL);
    f->key = "b";
    for (uint32_t i = 0; i <= MINT_COUNTED_MAX; i++) {
        snprintf(op_id, sizeof op_id, "op-%u", i);
        assert_int_equal(grant_once(f, op_id, 0, 2), ERR_OK);
    }
    assert_int_equal(grant_once(f, "op-0", 0, 2), ERR_OK); /* Counted again: too long ago. */
    assert_int_equal(grant_once(f, "d", 0, 1000 - 2 * (MINT_COUNTED_MAX + 2) + 1), ERR_FULL);
    assert_int_equal(grant_once(f, "d", 0, 1000 - 2 * (MINT_COUNTED_MAX + 2)), ERR_OK);
}

/* Grants these many swords and one shield, and gold. */
static err grant_items(struct fixture *f, size_t swords, const char *grants, const char *per_day)
{
    Holdfast__V1__GrantRequest request;
    Holdfast__V1__ItemSpec sword, shield, *list[4];
    char sword_kind[] = "sword", shield_kind[] = "shield";

    holdfast__v1__grant_request__init(&request);
    holdfast__v1__item_spec__init(&sword);
    holdfast__v1__item_spec__init(&shield);
    sword.kind = sword_kind;
    shield.kind = shield_kind;
    for (size_t i = 0; i < swords; i++)
        list[i] = &sword;
    list[swords] = &shield;
    request.items = list;
    request.n_items = swords + 1;
    const struct mint_call call = {
        method_find(METHOD_GRANT), &request.base, f->key, grants, per_day, f->wall_ms, &f->arena
    };
    return ask(f, &call);
}

static void items_are_counted_by_kind_each_as_one(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(grant_items(f, 2, "item/shield:1,item/sword:2", ""), ERR_OK);
    assert_int_equal(grant_items(f, 3, "item/shield:1,item/sword:2", ""), ERR_PERMISSION);
    assert_string_equal(f->detail.field, "item/sword");
    assert_string_equal(f->detail.limit, "at most 2 a call");
    assert_string_equal(f->detail.value, "3");
    assert_int_equal(grant_items(f, 1, "item/sword:2", ""), ERR_PERMISSION);
    assert_string_equal(f->detail.field, "item/shield");
    assert_string_equal(f->detail.limit, "none");
    assert_int_equal(grant_items(f, 2, "", "item/sword:3"), ERR_OK);
    assert_int_equal(grant_items(f, 2, "", "item/sword:3"), ERR_FULL);
    assert_string_equal(f->detail.field, "item/sword");
    assert_string_equal(f->detail.limit, "3 a day");
    assert_string_equal(f->detail.value, "4");
    assert_int_equal(grant_items(f, 1, "", "item/sword:3"), ERR_OK);
}

static void more_keys_than_there_is_room_for_are_refused_until_tomorrow(void **state)
{
    struct fixture *f = *state;
    char key[16];

    f->key = key;
    for (uint32_t i = 0; i < MINT_KEYS_MAX; i++) {
        snprintf(key, sizeof key, "%u", i);
        assert_int_equal(grant(f, 1, "", "gold:1"), ERR_OK);
    }
    snprintf(key, sizeof key, "one more");
    assert_int_equal(grant(f, 1, "", "gold:1"), ERR_FULL);
    assert_int_equal(grant(f, 1, "", "gems:1"), ERR_OK);
    f->wall_ms += DAY_MS;
    assert_int_equal(grant(f, 1, "", "gold:1"), ERR_OK);
}

static void what_makes_nothing_needs_no_place_among_the_keys(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetBalancesRequest request;
    char key[16];

    holdfast__v1__get_balances_request__init(&request);
    const struct mint_call read = {
        method_find(METHOD_GET_BALANCES), &request.base, key, "", "gold:1", f->wall_ms, &f->arena
    };
    f->key = key;
    for (uint32_t i = 0; i < MINT_KEYS_MAX; i++) {
        snprintf(key, sizeof key, "reader %u", i);
        assert_int_equal(ask(f, &read), ERR_OK);
    }
    for (uint32_t i = 0; i < MINT_KEYS_MAX; i++) {
        snprintf(key, sizeof key, "%u", i);
        assert_int_equal(grant(f, 1, "", "gold:1"), ERR_OK);
    }
    snprintf(key, sizeof key, "one more");
    assert_int_equal(ask(f, &read), ERR_OK);
}

/* "item/" and letters of two bytes, one of which would be cut in half. */
static void a_refusal_shows_the_beginning_of_a_long_name(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request;
    Holdfast__V1__ItemSpec item, *list[] = { &item };
    char kind[100001];

    for (size_t i = 0; i < sizeof kind - 1; i += 2)
        memcpy(kind + i, "\xc3\xa4", 2);
    kind[sizeof kind - 1] = 0;
    holdfast__v1__grant_request__init(&request);
    holdfast__v1__item_spec__init(&item);
    item.kind = kind;
    request.items = list;
    request.n_items = 1;
    const struct mint_call call = {
        method_find(METHOD_GRANT), &request.base, "a", "gold:1", "", f->wall_ms, &f->arena
    };
    assert_int_equal(ask(f, &call), ERR_PERMISSION);
    assert_int_equal(strlen(f->detail.field), MINT_NAME_BYTES - 1);
    assert_non_null(strstr(f->detail.message, ": none; this call: 1"));
}

static void routers_make_no_more_than_the_limit_together(void **state)
{
    struct fixture *f = *state;
    struct mint_guard *routers[3] = { f->guard, mint_guard_new(), mint_guard_new() };
    int64_t made = 0, refused = 0;

    for (uint32_t i = 0; i < 3000; i++) {
        f->guard = routers[i % 3];
        if (grant(f, 7, "", "gold:6400") == ERR_OK)
            made += 7;
        else if (refused++ == 0)
            assert_in_range(made, 6400 - 3 * 100, 6400); /* A 64th with each router, at most. */
        if (i % 100 == 99) { /* It ends, and what it had left is lost. */
            mint_guard_free(routers[i % 3]);
            routers[i % 3] = mint_guard_new();
        }
    }
    assert_in_range(made, 6000, 6400);
    assert_true(refused > 0);
    for (uint32_t i = 0; i < 2; i++)
        mint_guard_free(routers[i]);
    f->guard = routers[2];
}

static void a_limit_that_changes_holds_from_then_on(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(grant(f, 60, "", "gold:100"), ERR_OK);
    assert_int_equal(grant(f, 1, "", "gold:50"), ERR_FULL);
    assert_string_equal(f->detail.value, "61");
    assert_int_equal(grant(f, 1, "", "gems:50"), ERR_OK);            /* Gold has no sum. */
    assert_int_equal(grant(f, 60, "", "gems:5,gold:100"), ERR_FULL); /* Now it has one again. */
    assert_int_equal(grant(f, 40, "", "gems:5,gold:100"), ERR_OK);
}

static void what_tells_no_amount_is_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ReverseEntryRequest request;

    holdfast__v1__reverse_entry_request__init(&request);
    const struct mint_call call = {
        method_find(METHOD_REVERSE_ENTRY), &request.base, "a", "", "gold:1", f->wall_ms, &f->arena
    };
    assert_int_equal(ask(f, &call), ERR_PERMISSION);
    assert_string_equal(f->detail.field, "goods");
    assert_string_equal(f->detail.value, "holdfast.v1.LedgerService/ReverseEntry");
    const struct mint_call release = { method_find(METHOD_RELEASE_QUARANTINE),
                                       &request.base,
                                       "a",
                                       "gold:1",
                                       "",
                                       f->wall_ms,
                                       &f->arena };
    assert_int_equal(ask(f, &release), ERR_PERMISSION);
    assert_string_equal(f->detail.field, "goods");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_makes_what_its_key_may_and_no_more, setup, teardown),
        cmocka_unit_test_setup_teardown(a_day_is_of_each_key_and_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_repetition_is_not_counted_again, setup, teardown),
        cmocka_unit_test_setup_teardown(more_keys_than_there_is_room_for_are_refused_until_tomorrow,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_makes_nothing_needs_no_place_among_the_keys, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_refusal_shows_the_beginning_of_a_long_name, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(items_are_counted_by_kind_each_as_one, setup, teardown),
        cmocka_unit_test_setup_teardown(routers_make_no_more_than_the_limit_together, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_limit_that_changes_holds_from_then_on, setup, teardown),
        cmocka_unit_test_setup_teardown(what_tells_no_amount_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
