#include "node/rpc/fixture.h"

#include <string.h>

#include "node/core/ledger.h"
#include "runtime/base/check.h"

static Holdfast__V1__ListEntriesResponse *list(struct fixture *f, uint32_t size, const char *cursor,
                                               bool ascending)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.page_size = size;
    request.cursor = (char *)(uintptr_t)cursor;
    request.ascending = ascending;
    return fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
}

static void pages_run_both_ways_and_end(void **state)
{
    struct fixture *f = *state;

    for (int i = 1; i <= 5; i++)
        assert_non_null(fixture_grant(f, "ann", "unheld", i));
    fixture_restart(f);
    Holdfast__V1__ListEntriesResponse *page = list(f, 2, "", false);
    assert_int_equal(page->n_entries, 2);
    assert_int_equal(page->entries[0]->seq, 5);
    assert_string_equal(page->next_cursor, "3");
    assert_non_null(fixture_grant(f, "ann", "unheld", 6));
    page = list(f, 2, "3", false);
    assert_int_equal(page->entries[1]->seq, 2);
    page = list(f, 2, page->next_cursor, false);
    assert_int_equal(page->n_entries, 1);
    assert_string_equal(page->next_cursor, "");
    page = list(f, 4, "", true);
    assert_int_equal(page->entries[3]->seq, 4);
    page = list(f, 4, page->next_cursor, true);
    assert_int_equal(page->n_entries, 2);
    assert_string_equal(page->next_cursor, "");
    assert_int_equal(list(f, 4, "7", true)->n_entries, 0);
}

static void cursors_and_sizes_are_checked(void **state)
{
    struct fixture *f = *state;
    static const char *const wrong[] = { "0", "x", "-1", "01", "99999999999999999999999" };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_null(list(f, 0, wrong[i], false));
        assert_string_equal(f->error->field, "cursor");
    }
    assert_null(list(f, 201, "", false));
    assert_string_equal(f->error->field, "page_size");
}

static void put_text(struct buf *out, const char *text)
{
    buf_put_u8(out, (uint8_t)strlen(text));
    buf_append(out, text, strlen(text));
}

/* The bytes of docs/ledger.md, made from what the API tells. */
static void put_entry(struct buf *out, const Holdfast__V1__LedgerEntry *entry)
{
    buf_put_u8(out, 1);
    buf_put_u64(out, entry->seq);
    buf_put_u8(out, (uint8_t)entry->kind);
    buf_put_u64(out, (uint64_t)entry->at_ms);
    buf_put_u64(out, entry->dot->epoch);
    buf_put_u64(out, entry->dot->owner);
    buf_put_u64(out, entry->dot->counter);
    put_text(out, entry->op_id);
    put_text(out, entry->authority);
    put_text(out, entry->reason);
    buf_put_u8(out, (uint8_t)entry->n_changes);
    for (size_t i = 0; i < entry->n_changes; i++) {
        put_text(out, entry->changes[i]->currency);
        buf_put_u64(out, (uint64_t)entry->changes[i]->amount);
        buf_put_u64(out, (uint64_t)entry->changes[i]->balance_after);
    }
    buf_put_u8(out, (uint8_t)entry->n_items);
    for (size_t i = 0; i < entry->n_items; i++) {
        uint8_t uid[ITEM_UID_BYTES];
        assert_int_equal(item_uid_parse(slice_from_text(entry->items[i]->uid), uid), ERR_OK);
        buf_append(out, uid, sizeof uid);
        put_text(out, entry->items[i]->kind);
        buf_put_bytes(out, slice_from_text(entry->items[i]->attributes));
    }
}

static void anyone_can_verify_the_chain_from_the_answers_alone(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__MintRequest mint = HOLDFAST__V1__MINT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item, &item };
    uint8_t hash[LEDGER_HASH_BYTES];
    struct buf bytes = { 0 };

    item.kind = (char *)"sword";
    item.attributes = (char *)"{\"level\":3}";
    mint.player_id = (char *)"ann";
    mint.op_id = (char *)"match:m1:2";
    mint.reason = (char *)"prize";
    mint.authority = fixture_authority(f, "system:match");
    mint.items = items;
    mint.n_items = 2;
    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    assert_non_null(fixture_mutate(f, METHOD_MINT, &mint.base));
    assert_non_null(fixture_grant(f, "ann", "system:payments", 20));
    Holdfast__V1__ListEntriesResponse *page = list(f, 0, "", true);
    assert_int_equal(page->n_entries, 3);
    assert_string_equal(page->entries[1]->authority, "system:match");
    ledger_genesis(SLICE_LITERAL("player:ann"), hash);
    for (size_t i = 0; i < page->n_entries; i++) {
        buf_clear(&bytes);
        put_entry(&bytes, page->entries[i]);
        ledger_hash(hash, buf_slice(&bytes), hash);
        assert_int_equal(page->entries[i]->hash.len, LEDGER_HASH_BYTES);
        assert_memory_equal(page->entries[i]->hash.data, hash, LEDGER_HASH_BYTES);
    }
    buf_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(pages_run_both_ways_and_end),
        FIXTURE_TEST(cursors_and_sizes_are_checked),
        FIXTURE_TEST(anyone_can_verify_the_chain_from_the_answers_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
