#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "node/core/goods/ledger.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"

#define KIND(name) HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name

static void put_text(struct buf *out, const char *text)
{
    buf_put_u8(out, (uint8_t)strlen(text));
    buf_append(out, text, strlen(text));
}

static void put_items(struct buf *out, const Holdfast__V1__LedgerEntry *entry, bool extended)
{
    buf_put_u8(out, (uint8_t)entry->n_items);
    for (size_t i = 0; i < entry->n_items; i++) {
        uint8_t uid[ITEM_UID_BYTES];
        assert_int_equal(item_uid_parse(slice_from_text(entry->items[i]->uid), uid), ERR_OK);
        buf_append(out, uid, sizeof uid);
        put_text(out, entry->items[i]->kind);
        buf_put_bytes(out, slice_from_text(entry->items[i]->attributes));
        if (extended) {
            buf_put_u64(out, (uint64_t)entry->items[i]->minted_at_ms);
            buf_put_u32(out, entry->items[i]->step);
        }
    }
}

static bool is_named(const Holdfast__V1__LedgerEntry *entry)
{
    return entry->n_counterparts > 0 || entry->mail_op_id[0] != 0;
}

static bool is_extended(const Holdfast__V1__LedgerEntry *entry)
{
    return is_named(entry) || entry->kind >= KIND(CONSUME) || entry->refers_to > 0 ||
           (entry->kind == KIND(SPEND) && entry->n_items > 0);
}

/* The bytes of docs/ledger.md, made from what the API tells. */
static void put_entry(struct buf *out, const Holdfast__V1__LedgerEntry *entry)
{
    bool extended = is_extended(entry);

    buf_put_u8(out, is_named(entry) ? 3 : extended ? 2 : 1);
    buf_put_u64(out, entry->seq);
    buf_put_u8(out, (uint8_t)entry->kind);
    buf_put_u64(out, (uint64_t)entry->at_ms);
    buf_put_u64(out, entry->dot->epoch);
    buf_put_u64(out, entry->dot->owner);
    buf_put_u64(out, entry->dot->counter);
    put_text(out, entry->op_id);
    put_text(out, entry->authority);
    put_text(out, entry->reason);
    if (extended) {
        buf_put_u64(out, entry->refers_to);
        buf_put_u8(out, entry->items_taken != 0);
    }
    buf_put_u8(out, (uint8_t)entry->n_changes);
    for (size_t i = 0; i < entry->n_changes; i++) {
        put_text(out, entry->changes[i]->currency);
        buf_put_u64(out, (uint64_t)entry->changes[i]->amount);
        buf_put_u64(out, (uint64_t)entry->changes[i]->balance_after);
        if (extended) {
            buf_put_u64(out, (uint64_t)entry->changes[i]->reserved);
            buf_put_u64(out, (uint64_t)entry->changes[i]->reserved_after);
        }
    }
    put_items(out, entry, extended);
    if (!is_named(entry))
        return;
    buf_put_u8(out, (uint8_t)entry->n_counterparts);
    for (size_t i = 0; i < entry->n_counterparts; i++)
        put_text(out, entry->counterparts[i]);
    put_text(out, entry->mail_op_id);
}

static int64_t *sum_of(struct fixture_sums *sums, Holdfast__V1__LedgerKind kind)
{
    switch ((int)kind) {
    case KIND(GRANT):
        return &sums->granted;
    case KIND(CONSUME):
        return &sums->consumed;
    case KIND(REVERSAL):
        return &sums->reversed;
    default:
        return &sums->spent;
    }
}

static void add_entry(struct fixture_sums *sums, const char *currency,
                      const Holdfast__V1__LedgerEntry *entry)
{
    assert_int_equal(entry->seq, ++sums->entries);
    if (entry->kind == KIND(MAIL))
        return; /* What it tells of lies in the mailbox. */
    sums->items += entry->items_taken ? -(int64_t)entry->n_items : (int64_t)entry->n_items;
    for (size_t i = 0; i < entry->n_changes; i++) {
        const Holdfast__V1__LedgerChange *change = entry->changes[i];
        if (strcmp(change->currency, currency) != 0)
            continue;
        *sum_of(sums, entry->kind) += change->amount + change->reserved;
        sums->available += change->amount;
        sums->reserved += change->reserved;
        assert_int_equal(change->balance_after, sums->available);
        if (is_extended(entry))
            assert_int_equal(change->reserved_after, sums->reserved);
    }
}

void fixture_audit(struct fixture *f, const char *player, const char *currency,
                   struct fixture_sums *ret_sums)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    uint8_t hash[LEDGER_HASH_BYTES];
    struct fixture_sums sums = { 0 };
    struct buf bytes = { 0 };
    Holdfast__V1__ListEntriesResponse *page;
    const char *entity = arena_printf(&f->arena, "player:%s", player);

    ledger_genesis(slice_from_text(entity), hash);
    request.player_id = text_lend(player);
    request.ascending = true;
    request.page_size = 7;
    do {
        page = fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
        assert_non_null(page);
        for (size_t i = 0; i < page->n_entries; i++) {
            buf_clear(&bytes);
            put_entry(&bytes, page->entries[i]);
            ledger_hash(hash, buf_slice(&bytes), hash);
            assert_int_equal(page->entries[i]->hash.len, LEDGER_HASH_BYTES);
            assert_memory_equal(page->entries[i]->hash.data, hash, LEDGER_HASH_BYTES);
            add_entry(&sums, currency, page->entries[i]);
        }
        request.cursor = page->next_cursor;
    } while (page->next_cursor[0] != 0);
    assert_int_equal(sums.available + sums.reserved,
                     sums.granted + sums.spent + sums.consumed + sums.reversed);
    assert_int_equal(sums.available, fixture_balance(f, player, currency));
    assert_int_equal(sums.items, fixture_items(f, player)->total);
    buf_deinit(&bytes);
    *ret_sums = sums;
}

Holdfast__V1__ListItemsResponse *fixture_items(struct fixture *f, const char *player)
{
    Holdfast__V1__ListItemsRequest request = HOLDFAST__V1__LIST_ITEMS_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.page_size = 500;
    Holdfast__V1__ListItemsResponse *page = fixture_read(f, METHOD_LIST_ITEMS, &request.base);
    assert_non_null(page);
    assert_int_equal(page->n_items, page->total);
    return page;
}
