#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/codec/text_rule.h"
#include "node/core/player/player.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define ENTITY SLICE_LITERAL("player:42")

static void fill(struct player *player, struct arena *arena)
{
    player_init(player, ENTITY);
    player->version = 9;
    player->session.state = SESSION_HELD;
    player->session.fence = 4;
    player->session.incarnation = (struct incarnation){ 1, 7 };
    player->session.claim.incarnation = (struct incarnation){ 1, 8 };
    player->session.claim.op_id = SLICE_LITERAL("claim:x");
    player->session.claim.deadline_ms = 5000;
    player->ledger_seq = 2;
    player->ledger_hash[31] = 0xee;
    player->item_count = 3;
    player_get_balance(player, arena, SLICE_LITERAL("gold"))->amount = -7;
    player_get_balance(player, arena, SLICE_LITERAL("gems"))->amount = 1;
    CHECK(player_sections(player, arena) == ERR_OK);
    player_add_section(player, SLICE_LITERAL("quests"))->version = 2;
    player_add_section(player, SLICE_LITERAL("mmr"))->size_bytes = 10;
    player_add_section(player, SLICE_LITERAL("pets"))->size_bytes = 5;
}

static void a_player_reads_back_and_keeps_sections_it_did_not_decode(void **state)
{
    struct arena arena = { 0 };
    struct player player;
    struct player read;
    struct buf bytes = { 0 };
    struct buf again = { 0 };
    (void)state;

    fill(&player, &arena);
    player_encode(&player, &bytes);
    assert_int_equal(player_decode(buf_slice(&bytes), ENTITY, &arena, &read), ERR_OK);
    player_encode(&read, &again);
    assert_true(slice_equal(buf_slice(&bytes), buf_slice(&again)));
    assert_true(slice_equal(player_id(&read), SLICE_LITERAL("42")));
    assert_true(slice_equal(read.session.claim.op_id, SLICE_LITERAL("claim:x")));
    assert_true(slice_equal(read.balances[0].currency, SLICE_LITERAL("gems")));
    assert_int_equal(player_find_balance(&read, SLICE_LITERAL("gold"))->amount, -7);
    CHECK(player_sections(&read, &arena) == ERR_OK);
    assert_int_equal(read.section_count, 3);
    assert_true(slice_equal(read.sections[0].name, SLICE_LITERAL("mmr")));
    assert_int_equal(player_sections_bytes(&read), 15);
    player_remove_section(&read, player_find_section(&read, SLICE_LITERAL("mmr")));
    assert_null(player_find_section(&read, SLICE_LITERAL("mmr")));
    assert_int_equal(player_find_section(&read, SLICE_LITERAL("quests"))->version, 2);
    buf_deinit(&bytes);
    buf_deinit(&again);
    arena_deinit(&arena);
}

static void item_uids_differ_by_entry_and_place_and_read_back(void **state)
{
    uint8_t a[ITEM_UID_BYTES];
    uint8_t b[ITEM_UID_BYTES];
    char text[ITEM_UID_TEXT_SIZE];
    (void)state;

    item_uid_make(1, 2, 3, 4, a);
    item_uid_print(a, text);
    assert_string_equal(text, "00010000000000020000000000030004");
    assert_int_equal(item_uid_parse(slice_from_text(text), b), ERR_OK);
    assert_memory_equal(a, b, ITEM_UID_BYTES);
    item_uid_make(1, 2, 4, 0, b);
    assert_true(memcmp(a, b, ITEM_UID_BYTES) < 0);
    assert_int_equal(item_uid_parse(SLICE_LITERAL("0001000000000002000000000003000"), b),
                     ERR_INVALID);
    assert_int_equal(item_uid_parse(SLICE_LITERAL("0001000000000002000000000003000G"), b),
                     ERR_INVALID);
}

static void keys_of_one_entity_never_mix_with_anothers(void **state)
{
    struct row_key prefix;
    struct row_key other;
    uint8_t uid[ITEM_UID_BYTES] = { 0 };
    (void)state;

    row_key_item_prefix(&prefix, SLICE_LITERAL("player:4"));
    row_key_item(&other, SLICE_LITERAL("player:42"), uid);
    assert_int_not_equal(memcmp(prefix.bytes, other.bytes, prefix.size), 0);
}

static void player_ids_are_clean_utf8_of_at_most_100_bytes(void **state)
{
    const char *bad[] = {
        "",         "a\tb",    "a\x7f", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xc2\x85", "\xe2\x82"
    };
    const char *good[] = { "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "a b:c/d" };
    char longest[102];
    const char *why;
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(player_id_check(slice_from_text(bad[i])), ERR_INVALID);
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_int_equal(player_id_check(slice_from_text(good[i])), ERR_OK);
    assert_int_equal(player_id_check(SLICE_LITERAL("a\0b")), ERR_INVALID);
    memset(longest, 'x', sizeof longest);
    assert_int_equal(player_id_check((struct slice){ (uint8_t *)longest, 100 }), ERR_OK);
    assert_int_equal(player_id_check((struct slice){ (uint8_t *)longest, 101 }), ERR_INVALID);
    assert_int_equal(entity_parse(SLICE_LITERAL("player:ann"), &why), ERR_OK);
    assert_int_equal(entity_parse(SLICE_LITERAL("room:ann"), &why), ERR_INVALID);
    assert_int_equal(entity_parse(SLICE_LITERAL("player:"), &why), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_player_reads_back_and_keeps_sections_it_did_not_decode),
        cmocka_unit_test(item_uids_differ_by_entry_and_place_and_read_back),
        cmocka_unit_test(keys_of_one_entity_never_mix_with_anothers),
        cmocka_unit_test(player_ids_are_clean_utf8_of_at_most_100_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
