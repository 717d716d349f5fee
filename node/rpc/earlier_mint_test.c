/* Mint and Consume of earlier versions: their entries are applied as they ever were, and no request
 * of them is carried out. */
#include "node/rpc/fixture.h"

#include <string.h>

#include "holdfast/internal/v1/earlier.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"

typedef Holdfast__Internal__V1__MintRequest mint_request;
typedef Holdfast__Internal__V1__MintResponse mint_response;
typedef Holdfast__Internal__V1__ConsumeRequest consume_request;
typedef Holdfast__Internal__V1__ConsumeResponse consume_response;

#define KIND(name) HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name

/* As an owner of an earlier version logged it; returns the answer that is stored. */
static const void *commit(struct fixture *f, uint32_t method, const char *op_id,
                          const ProtobufCMessage *request)
{
    struct op op = {
        .method = method,
        .entity = SLICE_LITERAL("player:ann"),
        .authority = { .kind = AUTHORITY_UNHELD },
        .request = arena_pack(&f->arena, request),
    };
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(f->applier);
    struct buf body = { 0 };
    const char *why;

    meta->apply_version = 3;
    assert_int_equal(op_id_parse(slice_from_text(op_id), &op.id, &why), ERR_OK);
    op_encode(&op, &body);
    fixture_commit(f, buf_slice(&body));
    buf_deinit(&body);
    meta->apply_version = APPLY_VERSION;
    assert_int_equal(f->outcome.kind, OUTCOME_COMMITTED);
    const ProtobufCMessage *answer =
        arena_unpack(&f->arena, method_find(method)->response, f->outcome.body);
    assert_non_null(answer);
    return answer;
}

static char *mint(struct fixture *f, const char *op_id)
{
    mint_request request = HOLDFAST__INTERNAL__V1__MINT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item, &item };

    item.kind = (char *)"orb";
    item.attributes = (char *)"{\"level\":2}";
    request.player_id = (char *)"ann";
    request.op_id = text_lend(op_id);
    request.items = items;
    request.n_items = 2;
    request.reason = (char *)"prize";
    const mint_response *minted = commit(f, METHOD_MINT, op_id, &request.base);
    assert_int_equal(minted->n_items, 2);
    assert_string_equal(minted->items[0]->attributes, "{\"level\":2}");
    assert_int_equal(minted->items[0]->step, 1);
    return minted->items[0]->uid;
}

static const consume_response *consume(struct fixture *f, char *uid, int64_t gold)
{
    consume_request request = HOLDFAST__INTERNAL__V1__CONSUME_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = (char *)"gold";
    amount.amount = gold;
    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:eat";
    request.item_uids = &uid;
    request.n_item_uids = 1;
    request.currencies = amounts;
    request.n_currencies = 1;
    return commit(f, METHOD_CONSUME, "claim:eat", &request.base);
}

static Holdfast__V1__ReverseEntryResponse *reverse(struct fixture *f, const char *target)
{
    Holdfast__V1__ReverseEntryRequest request = HOLDFAST__V1__REVERSE_ENTRY_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.target_op_id = text_lend(target);
    request.reason = (char *)"support";
    return fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base);
}

static const Holdfast__V1__LedgerEntry *entry_at(struct fixture *f, size_t place)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.ascending = true;
    Holdfast__V1__ListEntriesResponse *page = fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
    assert_true(place < page->n_entries);
    return page->entries[place];
}

static void a_mint_in_the_log_still_mints_and_is_reversed(void **state)
{
    struct fixture *f = *state;
    struct fixture_sums sums;
    char uid[33];

    memcpy(uid, mint(f, "claim:loot"), sizeof uid);
    fixture_restart(f);
    assert_int_equal(fixture_items(f, "ann")->total, 2);
    const Holdfast__V1__LedgerEntry *entry = entry_at(f, 0);
    assert_int_equal(entry->kind, KIND(MINT));
    assert_int_equal(entry->n_items, 2);
    assert_string_equal(entry->items[0]->uid, uid);
    assert_false(entry->items_taken);
    assert_string_equal(entry->reason, "prize");
    (void)mint(f, "claim:loot");
    assert_true(f->outcome.duplicate);
    const Holdfast__Internal__V1__OperationRecord *told = fixture_operation(f, "ann", "claim:loot");
    assert_int_equal(told->state, OPERATION(COMMITTED));
    assert_string_equal(told->method, "holdfast.v1.InventoryService/Mint");
    const mint_response *result =
        (const void *)arena_unpack(&f->arena, method_find(METHOD_MINT)->response,
                                   (struct slice){ told->result.data, told->result.len });
    assert_string_equal(result->items[0]->uid, uid);
    assert_int_equal(result->write->version, 1);
    assert_non_null(reverse(f, "claim:loot"));
    assert_int_equal(fixture_items(f, "ann")->total, 0);
    assert_true(entry_at(f, 1)->items_taken);
    fixture_audit(f, "ann", "gold", &sums);
    assert_int_equal(sums.entries, 2);
}

static void a_consume_in_the_log_still_consumes_and_is_reversed(void **state)
{
    struct fixture *f = *state;
    struct fixture_sums sums;
    char uid[33];

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    memcpy(uid, mint(f, "claim:loot"), sizeof uid);
    fixture_restart(f);
    const consume_response *consumed = consume(f, uid, 4);
    assert_int_equal(consumed->ledger_seq, 3);
    assert_int_equal(consumed->n_items, 1);
    assert_string_equal(consumed->items[0]->uid, uid);
    assert_int_equal(consumed->balances[0]->amount, 6);
    assert_int_equal(fixture_items(f, "ann")->total, 1);
    const Holdfast__V1__LedgerEntry *entry = entry_at(f, 2);
    assert_int_equal(entry->kind, KIND(CONSUME));
    assert_true(entry->items_taken);
    assert_int_equal(entry->items[0]->step, 2);
    const Holdfast__Internal__V1__OperationRecord *told = fixture_operation(f, "ann", "claim:eat");
    assert_string_equal(told->method, "holdfast.v1.InventoryService/Consume");
    assert_non_null(reverse(f, "claim:eat"));
    assert_int_equal(fixture_items(f, "ann")->total, 2);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 10);
    fixture_audit(f, "ann", "gold", &sums);
    assert_int_equal(sums.consumed, -4);
    assert_int_equal(sums.items, 2);
}

static void no_request_of_them_is_carried_out(void **state)
{
    struct fixture *f = *state;
    mint_request mints = HOLDFAST__INTERNAL__V1__MINT_REQUEST__INIT;
    consume_request consumes = HOLDFAST__INTERNAL__V1__CONSUME_REQUEST__INIT;
    Holdfast__V1__ItemSpec orb = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &orb };
    char *uid = mint(f, "claim:loot");

    orb.kind = (char *)"orb";
    mints.player_id = (char *)"ann";
    mints.op_id = fixture_op_id(f);
    mints.authority = fixture_authority(f, "unheld");
    mints.items = items;
    mints.n_items = 1;
    assert_null(fixture_mutate(f, METHOD_MINT, &mints.base));
    assert_int_equal(f->error->code, ERROR(UNIMPLEMENTED));
    assert_false(f->recorded);
    consumes.player_id = (char *)"ann";
    consumes.op_id = fixture_op_id(f);
    consumes.authority = fixture_authority(f, "unheld");
    consumes.item_uids = &uid;
    consumes.n_item_uids = 1;
    assert_null(fixture_mutate(f, METHOD_CONSUME, &consumes.base));
    assert_int_equal(f->error->code, ERROR(UNIMPLEMENTED));
    assert_false(f->recorded);
    assert_int_equal(fixture_items(f, "ann")->total, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_mint_in_the_log_still_mints_and_is_reversed),
        FIXTURE_TEST(a_consume_in_the_log_still_consumes_and_is_reversed),
        FIXTURE_TEST(no_request_of_them_is_carried_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
