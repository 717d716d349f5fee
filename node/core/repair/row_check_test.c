/* Every table's rows: good ones can be read, spoilt ones cannot, and each is its player's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/player/player.h"
#include "node/core/repair/row_check.h"
#include "node/core/rows/rows.h"

#define ANN SLICE_LITERAL("player:ann")

static const uint8_t uid[ITEM_UID_BYTES] = { 1, 2, 3 };

static struct slice check_entity(struct arena *arena, const struct row_key *key, struct slice value,
                                 bool readable)
{
    struct row_check check;

    row_check(arena, row_key_slice(key), value, &check);
    assert_int_equal(check.readable, readable);
    assert_int_equal(check.why == NULL, readable);
    return check.entity;
}

/* What of the row can be read; what is cut off, or begins with another byte, cannot. */
static void check_both(const struct row_key *key, struct slice value, struct slice owner)
{
    struct arena arena = { 0 };
    struct buf spoilt = { 0 };

    assert_true(slice_equal(check_entity(&arena, key, value, true), owner));
    buf_append(&spoilt, value.data, value.size);
    spoilt.data[0] ^= 0x57;
    assert_true(slice_equal(check_entity(&arena, key, buf_slice(&spoilt), false), owner));
    buf_deinit(&spoilt);
    arena_deinit(&arena);
}

static void rows_of_bytes(void **state)
{
    struct buf row = { 0 };
    struct row_key key;
    struct player player;
    struct item_row item = { .step = 1,
                             .kind = SLICE_LITERAL("sword"),
                             .attributes = SLICE_LITERAL("{}") };
    struct history_row history = { .step = 1, .held = true, .ledger_seq = 1, .entity = ANN };

    (void)state;
    player_init(&player, ANN);
    player.version = 1;
    player_encode(&player, &row);
    row_key_player(&key, ANN);
    check_both(&key, buf_slice(&row), ANN);

    buf_clear(&row);
    item_row_encode(&item, &row);
    row_key_item(&key, ANN, uid);
    check_both(&key, buf_slice(&row), ANN);

    buf_clear(&row);
    history_row_encode(&history, &row);
    row_key_history(&key, uid, 1);
    check_both(&key, buf_slice(&row), (struct slice){ 0 });

    buf_clear(&row);
    reservation_row_encode(5, &row);
    row_key_reservation(&key, ANN, 7);
    check_both(&key, buf_slice(&row), ANN);

    buf_clear(&row);
    timer_row_encode(1, &row);
    row_key_timer(&key, 1000, ANN);
    check_both(&key, buf_slice(&row), ANN);
    row_key_reservation_timer(&key, 1000, ANN, 7);
    check_both(&key, buf_slice(&row), ANN);

    row_key_section(&key, ANN, SLICE_LITERAL("progression"));
    check_both(&key, SLICE_LITERAL("{\"xp\":1}"), ANN);
    buf_deinit(&row);
}

static void outcomes(void **state)
{
    struct arena arena = { 0 };
    struct outcome_row outcome = { .state = OUTCOME_ROW_ABORTED };
    struct buf row = { 0 };
    struct row_key key;
    struct op_id id;
    const char *why;

    (void)state;
    assert_int_equal(op_id_parse(SLICE_LITERAL("claim:1"), &id, &why), ERR_OK);
    row_key_operation(&key, ANN, &id);
    outcome_row_encode(&outcome, &row);
    check_both(&key, buf_slice(&row), ANN);
    assert_int_equal(op_id_parse(SLICE_LITERAL("01975a9c-9f2e-7000-8000-000000000001"), &id, &why),
                     ERR_OK);
    row_key_operation(&key, ANN, &id);
    assert_int_equal(key.bytes[0], TABLE_OPERATION);
    check_both(&key, buf_slice(&row), ANN);
    /* Read, but its answer is not one; and it waits for no record. */
    outcome = (struct outcome_row){ .state = OUTCOME_ROW_COMMITTED,
                                    .method = METHOD_GRANT,
                                    .body = SLICE_LITERAL("\xff\xff") };
    buf_clear(&row);
    outcome_row_encode(&outcome, &row);
    (void)check_entity(&arena, &key, buf_slice(&row), false);
    /* An attempt after one that was refused: cut off anywhere, it is none. */
    outcome = (struct outcome_row){
        .state = OUTCOME_ROW_PENDING,
        .method = METHOD_START_SESSION,
        .attempt = 2,
        .refused_before = true,
        .before = { 1, { 3, 4, 5 }, 6, 7, SLICE_LITERAL("why") },
    };
    buf_clear(&row);
    outcome_row_encode(&outcome, &row);
    check_both(&key, buf_slice(&row), ANN);
    outcome = (struct outcome_row){ .state = OUTCOME_ROW_PENDING, .method = METHOD_GRANT };
    buf_clear(&row);
    outcome_row_encode(&outcome, &row);
    (void)check_entity(&arena, &key, buf_slice(&row), false);
    arena_deinit(&arena);
    buf_deinit(&row);
}

static void rows_of_the_shard(void **state)
{
    Holdfast__Internal__V1__ChannelOutRow out = HOLDFAST__INTERNAL__V1__CHANNEL_OUT_ROW__INIT;
    Holdfast__Internal__V1__ReceiptRow receipt = HOLDFAST__INTERNAL__V1__RECEIPT_ROW__INIT;
    struct arena arena = { 0 };
    struct slice none = { 0 };
    struct row_key key;

    (void)state;
    out.last_seq = 3;
    row_key_channel(&key, true, 4);
    assert_int_equal(check_entity(&arena, &key, arena_pack(&arena, &out.base), true).size, 0);
    (void)check_entity(&arena, &key, SLICE_LITERAL("\xff"), false);
    row_key_channel(&key, false, 4);
    (void)check_entity(&arena, &key, SLICE_LITERAL("\xff"), false);
    receipt.player_id = (char *)"ann";
    row_key_receipt(&key, SLICE_LITERAL("receipt:1"));
    assert_int_equal(check_entity(&arena, &key, arena_pack(&arena, &receipt.base), true).size, 0);
    (void)check_entity(&arena, &key, SLICE_LITERAL("\xff"), false);
    /* Records without what they are relied on for. */
    row_key_outbox(&key, 4, 1);
    (void)check_entity(&arena, &key, none, false);
    row_key_inbox(&key, 4, 1);
    (void)check_entity(&arena, &key, none, false);
    row_key_txn(&key, 4, 1);
    (void)check_entity(&arena, &key, none, false);
    row_key_intent(&key, ANN);
    assert_true(slice_equal(check_entity(&arena, &key, none, false), ANN));
    arena_deinit(&arena);
}

/* No table is forgotten: a key of any letter of enum table is of a known one. */
static void every_table_is_known(void **state)
{
#define LETTER(NAME, name, letter, ...) letter,
    static const char letters[] = { TABLE_ROWS(LETTER) };
    struct arena arena = { 0 };
    struct row_check check;

    (void)state;
    for (size_t i = 0; i < sizeof letters; i++) {
        for (size_t size = 1; size < 40; size++) { /* Keys that are cut off, too. */
            uint8_t key[40] = { 0 };
            key[0] = (uint8_t)letters[i];
            row_check(&arena, (struct slice){ key, size }, SLICE_LITERAL("\xff\xff\xff"), &check);
            assert_false(check.readable);
            assert_string_not_equal(check.why, "a row of no known table");
        }
    }
    row_check(&arena, SLICE_LITERAL("Q"), SLICE_LITERAL("1"), &check);
    assert_false(check.readable);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_bytes),
        cmocka_unit_test(outcomes),
        cmocka_unit_test(rows_of_the_shard),
        cmocka_unit_test(every_table_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
