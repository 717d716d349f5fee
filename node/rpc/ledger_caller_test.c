/* Whose API key acted as a system: told by ledgers, and no part of what an op_id stands for. */
#include "node/rpc/fixture_shards.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/op.h"
#include "node/core/player/meta.h"
#include "runtime/base/check.h"

static Holdfast__V1__CurrencyAmount *gold(struct arena *arena, int64_t amount)
{
    Holdfast__V1__CurrencyAmount *gold =
        (void *)arena_message(arena, &holdfast__v1__currency_amount__descriptor);

    gold->currency = text_lend("gold");
    gold->amount = amount;
    return gold;
}

static Holdfast__V1__GrantRequest *grant_of(struct fixture *f, const char *authority)
{
    Holdfast__V1__GrantRequest *request =
        (void *)arena_message(&f->arena, &holdfast__v1__grant_request__descriptor);

    request->player_id = text_lend("ann");
    request->op_id = fixture_op_id(f);
    request->authority = text_lend(authority);
    request->n_currencies = 1;
    request->currencies = arena_alloc(&f->arena, sizeof *request->currencies);
    request->currencies[0] = gold(&f->arena, 5);
    return request;
}

/* What the newest entry of a player's ledger says, and how many there are. */
static const char *told(struct fixture *f, const char *player, uint64_t *ret_entries)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = text_lend(player);
    Holdfast__V1__ListEntriesResponse *page = fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
    assert_non_null(page);
    if (ret_entries != NULL)
        *ret_entries = page->head_seq;
    return page->n_entries > 0 ? page->entries[0]->authority : "";
}

static void set_version(struct fixture *f, uint32_t version)
{
    ((struct meta *)(uintptr_t)applier_meta(f->applier))->apply_version = version;
}

static void a_grant_tells_whose_key_it_was_and_a_retry_under_another_is_the_same(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest *request = grant_of(f, "system:payments");
    struct fixture_sums sums;
    uint64_t entries;

    f->caller = "0a1b2c3d4e5f";
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request->base));
    assert_false(f->outcome.duplicate);
    assert_string_equal(told(f, "ann", NULL), "system:payments/0a1b2c3d4e5f");
    f->caller = "ffffffffffff"; /* The key was rotated meanwhile. */
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request->base));
    assert_true(f->outcome.duplicate);
    f->caller = NULL;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request->base));
    assert_true(f->outcome.duplicate);
    assert_string_equal(told(f, "ann", &entries), "system:payments/0a1b2c3d4e5f");
    assert_int_equal(entries, 1);
    fixture_restart(f);
    assert_string_equal(told(f, "ann", NULL), "system:payments/0a1b2c3d4e5f");
    fixture_audit(f, "ann", "gold", &sums); /* The chain has it. */
    assert_int_equal(sums.entries, 1);
}

static void spend_gems(struct fixture *f, int64_t amount)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { gold(&f->arena, amount) };

    amounts[0]->currency = text_lend("gems");
    request.player_id = text_lend("ann");
    request.op_id = fixture_op_id(f);
    request.authority = text_lend("unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_non_null(fixture_mutate(f, METHOD_SPEND, &request.base));
}

/* The one that was carried out, not the first that asked. */
static void an_attempt_after_a_refusal_tells_its_own_key(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest *request = grant_of(f, "system:payments");

    request->currencies[0]->currency = text_lend("gems");
    request->currencies[0]->amount = 600; /* Of at most 1000. */
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request->base));
    request->op_id = fixture_op_id(f);
    f->caller = "first";
    assert_null(fixture_mutate(f, METHOD_GRANT, &request->base));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    spend_gems(f, 600);
    f->caller = "second";
    assert_null(fixture_mutate(f, METHOD_GRANT, &request->base)); /* The same attempt. */
    request->attempt = 1;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request->base));
    f->caller = "third";
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request->base));
    assert_string_equal(told(f, "ann", NULL), "system:payments/second");
}

static void without_a_name_and_under_other_authorities_nothing_is_added(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_mutate(f, METHOD_GRANT, &grant_of(f, "system:mail")->base));
    assert_string_equal(told(f, "ann", NULL), "system:mail");
    f->caller = "0a1b2c3d4e5f";
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &grant_of(f, "unheld")->base));
    assert_string_equal(told(f, "ann", NULL), "unheld");
    const char *token = fixture_start(f, "ann", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                      fixture_op_id(f));
    assert_non_null(token);
    char *authority = fixture_authority(f, token);
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &grant_of(f, authority)->base));
    assert_string_equal(told(f, "ann", NULL), "session:" SERVER_A);
    /* A router that knows no name says so. */
    f->caller = "";
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &grant_of(f, "system:match")->base));
    assert_string_equal(told(f, "ann", NULL), "system:match");
}

static void a_caller_cannot_say_whose_key_it_is(void **state)
{
    struct fixture *f = *state;

    assert_null(fixture_mutate(f, METHOD_GRANT, &grant_of(f, "system:admin/0a1b2c3d4e5f")->base));
    assert_false(f->recorded);
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->field, "authority");
    assert_string_equal(f->error->value, "system:admin/0a1b2c3d4e5f");
}

static void a_malformed_name_is_refused_before_the_log(void **state)
{
    static const uint8_t slash[] = { 0xfa, 0x7f, 3, 'a', '/', 'b' };
    struct fixture *f = *state;
    struct slice plain = arena_pack(&f->arena, &grant_of(f, "system:mail")->base);
    struct buf request = { 0 }, body = { 0 };
    struct refusal refusal;

    buf_append(&request, plain.data, plain.size);
    buf_append(&request, slash, sizeof slash);
    const struct applier_asked asked = { METHOD_GRANT, buf_slice(&request), f->now_ms, &f->arena };
    assert_int_equal(applier_prepare(f->applier, &asked, &body, &refusal), ERR_INVALID);
    assert_int_equal(refusal.code, ERROR(INVALID_ARGUMENT));
    assert_non_null(strstr(refusal.limit, "48"));
    buf_deinit(&request);
    buf_deinit(&body);
}

/* Beside a replica of an earlier version, whose ledger must be the same. */
static void an_earlier_version_writes_as_it_always_did(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest *request = grant_of(f, "system:payments");
    struct buf named = { 0 }, plain = { 0 };

    set_version(f, 4);
    f->caller = "0a1b2c3d4e5f";
    assert_true(fixture_prepare(f, METHOD_GRANT, &request->base, &named));
    f->caller = NULL;
    assert_true(fixture_prepare(f, METHOD_GRANT, &request->base, &plain));
    assert_true(slice_equal(buf_slice(&named), buf_slice(&plain)));
    fixture_commit(f, buf_slice(&named));
    assert_string_equal(told(f, "ann", NULL), "system:payments");
    set_version(f, APPLY_VERSION); /* From now on, and what was before stays as it is. */
    f->caller = "0a1b2c3d4e5f";
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request->base));
    assert_true(f->outcome.duplicate);
    assert_string_equal(told(f, "ann", NULL), "system:payments");
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &grant_of(f, "system:mail")->base));
    assert_string_equal(told(f, "ann", NULL), "system:mail/0a1b2c3d4e5f");
    buf_deinit(&named);
    buf_deinit(&plain);
}

/* ---- several players ---- */

/* ann lives on shard 0 and gives nothing; the system grants gold to bob, on another shard or not.
 */
static void execute(struct fixture_shards *s, char *ann, char *bob)
{
    Holdfast__V1__ExecuteTransactionRequest request =
        HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST__INIT;
    Holdfast__V1__TransactionPlayer other = HOLDFAST__V1__TRANSACTION_PLAYER__INIT;
    Holdfast__V1__TransactionPlayer *others[] = { &other };
    Holdfast__V1__TransactionGrant grants[2];
    Holdfast__V1__TransactionChange changes[2], *list[] = { &changes[0], &changes[1] };
    Holdfast__V1__CurrencyAmount *amounts[] = { gold(&s->arena, 7) };

    for (int i = 0; i < 2; i++) {
        holdfast__v1__transaction_grant__init(&grants[i]);
        holdfast__v1__transaction_change__init(&changes[i]);
        grants[i].player_id = i == 0 ? ann : bob;
        grants[i].n_currencies = 1;
        grants[i].currencies = amounts;
        changes[i].change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_GRANT;
        changes[i].grant = &grants[i];
    }
    request.player_id = ann;
    request.op_id = fixture_op_id(&s->shards[0]);
    request.authority = text_lend("unheld");
    other.player_id = bob;
    other.authority = text_lend("system:match");
    request.others = others;
    request.n_others = 1;
    request.changes = list;
    request.n_changes = 2;
    s->shards[0].caller = "0a1b2c3d4e5f";
    (void)fixture_mutate(&s->shards[0], METHOD_EXECUTE_TRANSACTION, &request.base);
    assert_null(s->shards[0].error);
    fixture_carry_all(s);
}

static void every_player_of_a_transaction_whom_a_system_acts_for_has_the_name(void **state)
{
    for (uint32_t shard = 0; shard < 2; shard++) {
        struct fixture_shards s;
        char ann[16], bob[16];

        fixture_shards_init(&s);
        fixture_name_on(0, "ann", ann);
        fixture_name_on(shard, "bob", bob);
        execute(&s, ann, bob);
        assert_string_equal(told(&s.shards[shard], bob, NULL), "system:match/0a1b2c3d4e5f");
        assert_string_equal(told(&s.shards[0], ann, NULL), "unheld");
        fixture_shards_deinit(&s);
    }
    (void)state;
}

/* The other shard may have a replica of an earlier version still. */
static void a_shard_of_an_earlier_version_tells_no_name_of_another_shards_caller(void **state)
{
    struct fixture_shards s;
    char ann[16], bob[16];
    (void)state;

    fixture_shards_init(&s);
    fixture_name_on(0, "ann", ann);
    fixture_name_on(1, "bob", bob);
    set_version(&s.shards[1], 4);
    execute(&s, ann, bob);
    assert_string_equal(told(&s.shards[1], bob, NULL), "system:match");
    fixture_shards_deinit(&s);
}

/* A receipt of another shard: the operation waits, and is carried out as it was asked for. */
static void what_waits_for_its_receipt_tells_who_asked_first(void **state)
{
    struct fixture_shards s;
    char ann[16];
    Holdfast__V1__GrantRequest *request;
    uint64_t entries = 0;
    (void)state;

    fixture_shards_init(&s);
    fixture_name_on(0, "ann", ann);
    struct fixture *f = &s.shards[0];
    request = grant_of(f, "system:payments");
    request->player_id = ann;
    for (int i = 0; i < 64 && f->outcome.kind != OUTCOME_PENDING; i++) {
        request->op_id = arena_printf(&s.arena, "receipt:%d", i);
        f->caller = "first";
        request->authority = text_lend("system:payments");
        (void)fixture_mutate(f, METHOD_GRANT, &request->base);
    }
    assert_int_equal(f->outcome.kind, OUTCOME_PENDING);
    f->caller = "second";
    assert_null(fixture_mutate(f, METHOD_GRANT, &request->base));
    assert_int_equal(f->outcome.kind, OUTCOME_PENDING);
    (void)told(f, ann, &entries);
    fixture_carry_all(&s);
    uint64_t after;
    assert_string_equal(told(f, ann, &after), "system:payments/first");
    assert_int_equal(after, entries + 1);
    fixture_shards_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_grant_tells_whose_key_it_was_and_a_retry_under_another_is_the_same),
        FIXTURE_TEST(an_attempt_after_a_refusal_tells_its_own_key),
        FIXTURE_TEST(without_a_name_and_under_other_authorities_nothing_is_added),
        FIXTURE_TEST(a_caller_cannot_say_whose_key_it_is),
        FIXTURE_TEST(a_malformed_name_is_refused_before_the_log),
        FIXTURE_TEST(an_earlier_version_writes_as_it_always_did),
        cmocka_unit_test(every_player_of_a_transaction_whom_a_system_acts_for_has_the_name),
        cmocka_unit_test(a_shard_of_an_earlier_version_tells_no_name_of_another_shards_caller),
        cmocka_unit_test(what_waits_for_its_receipt_tells_who_asked_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
