#include "node/core/player/totals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/goods/row_totals.h"
#include "node/core/player/player.h"

static const struct slice none = { 0 };

static void uid_of(uint8_t number, uint8_t ret_uid[ITEM_UID_BYTES])
{
    item_uid_make(3, 1, number, 0, ret_uid);
}

static void hold(struct totals *totals, uint8_t number, bool there)
{
    uint8_t uid[ITEM_UID_BYTES];
    struct row_key key;
    struct slice row = SLICE_LITERAL("a row");
    struct arena arena = { 0 };

    uid_of(number, uid);
    row_key_item(&key, SLICE_LITERAL("player:ann"), uid);
    assert_true(row_totals_add(totals, &arena, row_key_slice(&key), there ? none : row,
                               there ? row : none));
    arena_deinit(&arena);
}

static void mail(struct totals *totals, uint8_t number, int64_t gold, bool there)
{
    Holdfast__V1__Mail message = HOLDFAST__V1__MAIL__INIT;
    Holdfast__V1__Item item = HOLDFAST__V1__ITEM__INIT;
    Holdfast__V1__Item *items[] = { &item };
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };
    char text[ITEM_UID_TEXT_SIZE];
    uint8_t uid[ITEM_UID_BYTES];
    uint8_t bytes[256];
    struct arena arena = { 0 };
    struct row_key key;

    uid_of(number, uid);
    item_uid_print(uid, text);
    item.uid = text;
    amount.currency = (char *)"gold";
    amount.amount = gold;
    message.items = items;
    message.n_items = 1;
    message.currencies = amounts;
    message.n_currencies = 1;
    struct slice row = { bytes, protobuf_c_message_pack(&message.base, bytes) };
    row_key_mail(&key, SLICE_LITERAL("player:bob"), uid);
    assert_true(row_totals_add(totals, &arena, row_key_slice(&key), there ? none : row,
                               there ? row : none));
    arena_deinit(&arena);
}

static bool all_zero(const struct totals *totals)
{
    for (uint32_t i = 0; i < totals->currency_count; i++) {
        if (totals->currencies[i].net != 0)
            return false;
    }
    for (uint32_t i = 0; totals->buckets != NULL && i < TOTALS_BUCKETS; i++) {
        if (totals->buckets->each[i].count != 0 || totals->buckets->each[i].hashes != 0)
            return false;
    }
    return totals->count == 0 && totals->hashes == 0;
}

static void what_moves_is_counted_once_wherever_it_is(void **state)
{
    struct totals totals = { 0 };
    (void)state;

    hold(&totals, 1, true);
    assert_int_equal(totals.count, 1);
    mail(&totals, 1, 30, true);
    hold(&totals, 1, false);
    assert_int_equal(totals.count, 1);
    assert_int_equal(totals.currencies[0].net, 30);
    mail(&totals, 1, 30, false);
    assert_true(all_zero(&totals));
    totals_deinit(&totals);
}

/* One lost and another doubled: the count alone would not tell. */
static void an_item_does_not_stand_in_for_another(void **state)
{
    struct totals totals = { 0 };
    (void)state;

    hold(&totals, 1, true);
    hold(&totals, 2, true);
    hold(&totals, 2, true);
    hold(&totals, 1, false);
    hold(&totals, 1, false);
    hold(&totals, 2, false);
    assert_int_equal(totals.count, 0);
    assert_false(all_zero(&totals));
    totals_deinit(&totals);
}

static void totals_read_back_as_they_were_written(void **state)
{
    struct totals totals = { 0 };
    struct totals copy = { 0 };
    struct totals read = { 0 };
    struct buf bytes = { 0 };
    struct buf again = { 0 };
    (void)state;

    for (uint8_t i = 1; i < 40; i++)
        mail(&totals, i, i, true);
    totals_copy(&copy, &totals);
    totals_encode(&copy, &bytes);
    struct reader reader = reader_from(buf_slice(&bytes));
    totals_decode(&reader, &read);
    assert_int_equal(reader_finish(&reader), ERR_OK);
    totals_encode(&read, &again);
    assert_true(slice_equal(buf_slice(&bytes), buf_slice(&again)));
    assert_int_equal(read.count, 39);
    assert_int_equal(read.hashes, totals.hashes);
    for (size_t cut = 0; cut < bytes.size; cut++) {
        struct totals part = { 0 };
        reader = reader_from((struct slice){ bytes.data, cut });
        totals_decode(&reader, &part);
        assert_int_not_equal(reader_finish(&reader), ERR_OK);
        totals_deinit(&part);
    }
    totals_deinit(&totals);
    totals_deinit(&copy);
    totals_deinit(&read);
    buf_deinit(&bytes);
    buf_deinit(&again);
}

/* What was tried and taken back differs between replicas; what it comes to does not. */
static void sums_of_zero_are_not_told_and_make_room(void **state)
{
    struct totals totals = { 0 }, plain = { 0 };
    struct buf bytes = { 0 }, empty = { 0 };
    char name[8];
    (void)state;

    for (uint32_t i = 0; i < 2 * TOTALS_CURRENCIES_MAX; i++) {
        snprintf(name, sizeof name, "c%03u", i);
        totals_add_amount(&totals, slice_from_text(name), 5, 1);
        totals_add_amount(&totals, slice_from_text(name), 5, -1);
    }
    totals_encode(&totals, &bytes);
    totals_encode(&plain, &empty);
    assert_true(slice_equal(buf_slice(&bytes), buf_slice(&empty)));
    totals_add_amount(&totals, SLICE_LITERAL("gold"), 7, 1);
    totals_add_amount(&totals, SLICE_LITERAL("gems"), 2, 1);
    totals_add_amount(&plain, SLICE_LITERAL("gems"), 2, 1);
    totals_add_amount(&plain, SLICE_LITERAL("gold"), 7, 1);
    buf_clear(&bytes);
    buf_clear(&empty);
    totals_encode(&totals, &bytes);
    totals_encode(&plain, &empty);
    assert_true(slice_equal(buf_slice(&bytes), buf_slice(&empty)));
    totals_deinit(&totals);
    totals_deinit(&plain);
    buf_deinit(&bytes);
    buf_deinit(&empty);
}

static bool change(struct totals *totals, enum table table, const ProtobufCMessage *message,
                   bool there)
{
    const uint8_t key[] = { (uint8_t)table, 'k' };
    uint8_t bytes[1024];
    struct arena arena = { 0 };

    assert_true(protobuf_c_message_get_packed_size(message) <= sizeof bytes);
    struct slice row = { bytes, protobuf_c_message_pack(message, bytes) };
    bool read = row_totals_add(totals, &arena, (struct slice){ key, sizeof key },
                               there ? none : row, there ? row : none);
    arena_deinit(&arena);
    return read;
}

/* A record with what its FINISH will do, and the escrow of a player. */
static void what_a_transaction_moves_is_counted_from_its_rows(void **state)
{
    Holdfast__Internal__V1__OutboxRow outbox = HOLDFAST__INTERNAL__V1__OUTBOX_ROW__INIT;
    Holdfast__Internal__V1__ChannelCredit credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT;
    Holdfast__Internal__V1__TxnDelta delta = HOLDFAST__INTERNAL__V1__TXN_DELTA__INIT;
    Holdfast__Internal__V1__TxnIntent intent = HOLDFAST__INTERNAL__V1__TXN_INTENT__INIT;
    Holdfast__Internal__V1__TxnPart part = HOLDFAST__INTERNAL__V1__TXN_PART__INIT;
    Holdfast__Internal__V1__TxnTaken taken = HOLDFAST__INTERNAL__V1__TXN_TAKEN__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };
    Holdfast__V1__Item item = HOLDFAST__V1__ITEM__INIT;
    Holdfast__V1__Item *items[] = { &item };
    struct totals totals = { 0 };
    char texts[2][ITEM_UID_TEXT_SIZE];
    char *uids[] = { texts[0], texts[1] };
    uint8_t uid[ITEM_UID_BYTES];
    (void)state;

    for (uint8_t i = 0; i < 2; i++) {
        uid_of((uint8_t)(i + 1), uid);
        item_uid_print(uid, texts[i]);
    }
    amount.currency = (char *)"gold";
    amount.amount = -7;
    item.uid = texts[0];
    delta.n_amounts = part.n_take = 1;
    delta.amounts = part.take = amounts;
    delta.n_added = delta.n_removed = 1;
    delta.added = &uids[0];
    delta.removed = &uids[1];
    taken.n_items = 1;
    taken.items = items;
    intent.part = &part;
    intent.taken = &taken;
    outbox.credit = &credit;
    outbox.delta = &delta;
    assert_true(change(&totals, TABLE_OUTBOX, &outbox.base, true));
    assert_int_equal(totals.currencies[0].net, -7);
    assert_int_equal(totals.count, 0);
    assert_false(totals_are_zero(&totals));
    assert_true(change(&totals, TABLE_INTENT, &intent.base, true));
    assert_int_equal(totals.currencies[0].net, -14);
    assert_int_equal(totals.count, 1);
    assert_true(change(&totals, TABLE_INTENT, &intent.base, false));
    assert_true(change(&totals, TABLE_NOTE, &delta.base, true));
    assert_true(all_zero(&totals));
    totals_deinit(&totals);
}

static void goods_that_cannot_be_read_are_told(void **state)
{
    Holdfast__Internal__V1__OutboxRow outbox = HOLDFAST__INTERNAL__V1__OUTBOX_ROW__INIT;
    Holdfast__Internal__V1__TxnIntent intent = HOLDFAST__INTERNAL__V1__TXN_INTENT__INIT;
    Holdfast__V1__Mail message = HOLDFAST__V1__MAIL__INIT;
    Holdfast__V1__Item item = HOLDFAST__V1__ITEM__INIT;
    Holdfast__V1__Item *items[] = { &item };
    struct totals totals = { 0 };
    (void)state;

    outbox.player_id = (char *)"ann"; /* But no credit. */
    assert_false(change(&totals, TABLE_OUTBOX, &outbox.base, true));
    intent.op_id = (char *)"claim:a"; /* But no part. */
    assert_false(change(&totals, TABLE_INTENT, &intent.base, true));
    message.n_items = 1;
    message.items = items;
    item.uid = (char *)"no uid";
    assert_false(change(&totals, TABLE_MAIL, &message.base, true));
    item.uid = (char *)"";
    assert_false(change(&totals, TABLE_MAIL, &message.base, true));
    assert_true(all_zero(&totals));
    totals_deinit(&totals);
}

static void a_row_that_cannot_be_read_is_told(void **state)
{
    struct totals totals = { 0 };
    struct arena arena = { 0 };
    struct row_key key;
    (void)state;

    row_key_player(&key, SLICE_LITERAL("player:ann"));
    assert_false(
        row_totals_add(&totals, &arena, row_key_slice(&key), none, SLICE_LITERAL("rubbish")));
    assert_true(all_zero(&totals));
    arena_deinit(&arena);
    totals_deinit(&totals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_zero_are_not_told_and_make_room),
        cmocka_unit_test(what_moves_is_counted_once_wherever_it_is),
        cmocka_unit_test(an_item_does_not_stand_in_for_another),
        cmocka_unit_test(totals_read_back_as_they_were_written),
        cmocka_unit_test(what_a_transaction_moves_is_counted_from_its_rows),
        cmocka_unit_test(goods_that_cannot_be_read_are_told),
        cmocka_unit_test(a_row_that_cannot_be_read_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
