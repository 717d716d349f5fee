/* Rows of one player are spoilt and repaired: what comes back is what was there, but for versions,
 * session and fences. */
#include "node/rpc/fixture_shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/ledger.h"
#include "node/core/goods/mailbox.h"
#include "node/core/rows/rows.h"
#include "runtime/base/hex.h"

#define ANN    "ann"
#define ENTITY SLICE_LITERAL("player:ann")

typedef Holdfast__V1__RepairPlayerRequest repair_request;
typedef Holdfast__V1__RepairPlayerResponse repair_response;

/* ---- a player with something of everything ---- */

static void reserve(struct fixture *f, const char *op_id)
{
    Holdfast__V1__ReserveCurrenciesRequest request = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    gold.currency = (char *)"gold";
    gold.amount = 5;
    request.player_id = (char *)ANN;
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    request.expires_in_ms = 600000;
    assert_non_null(fixture_mutate(f, METHOD_RESERVE_CURRENCIES, &request.base));
}

static void void_reservation(struct fixture *f, const char *op_id)
{
    Holdfast__V1__VoidReservationRequest request = HOLDFAST__V1__VOID_RESERVATION_REQUEST__INIT;

    request.player_id = (char *)ANN;
    request.op_id = fixture_op_id(f);
    request.reserve_op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "unheld");
    assert_non_null(fixture_mutate(f, METHOD_VOID_RESERVATION, &request.base));
}

static void grant_with_item(struct fixture *f, const char *op_id)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gems = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gems };
    Holdfast__V1__ItemSpec sword = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &sword };

    gems.currency = (char *)"gems";
    gems.amount = 3;
    sword.kind = (char *)"sword";
    request.player_id = (char *)ANN;
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "system:payments");
    request.currencies = amounts;
    request.n_currencies = 1;
    request.items = items;
    request.n_items = 1;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
}

static void edit_section(struct fixture *f)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &edit };

    edit.name = (char *)"progression";
    edit.schema_version = 2;
    edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_MERGE;
    edit.merge = (char *)"{\"xp\":1}";
    request.player_id = (char *)ANN;
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.edits = edits;
    request.n_edits = 1;
    assert_non_null(fixture_mutate(f, METHOD_UPDATE_PROFILE, &request.base));
}

static void populate(struct fixture *f)
{
    grant_with_item(f, "claim:first");
    grant_with_item(f, "claim:second");
    assert_non_null(fixture_grant(f, ANN, "system:payments", 100));
    reserve(f, "claim:open");
    reserve(f, "claim:closed");
    void_reservation(f, "claim:closed");
    edit_section(f);
}

/* ---- spoiling and repairing ---- */

static struct slice row_of(struct fixture *f, const struct row_key *key)
{
    struct slice value = { 0 };

    if (state_find(applier_state(f->applier), row_key_slice(key), &value) != STATE_PRESENT)
        return (struct slice){ 0 };
    return value;
}

static void put_row(struct fixture *f, const struct row_key *key, struct slice value)
{
    struct state *state = applier_state(f->applier);

    state_begin(state);
    state_put(state, row_key_slice(key), value);
    state_commit(state);
}

static void spoil(struct fixture *f, const struct row_key *key)
{
    assert_true(row_of(f, key).size > 0);
    put_row(f, key, SLICE_LITERAL("\xff\xfe"));
    if (!fixture_is_quarantined(f, ANN))
        fixture_contain(f, ANN);
}

static char *hex(struct fixture *f, const struct row_key *key)
{
    char *text = arena_alloc(&f->arena, 2 * key->size + 1);

    hex_print(key->bytes, key->size, text);
    return text;
}

static repair_response *repair_rows(struct fixture *f, size_t count, char **rows, bool rebuild)
{
    repair_request *request = fixture_repair_request(f, ANN);

    request->rows = rows;
    request->n_rows = count;
    request->rebuild = rebuild;
    return fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
}

static repair_response *repair_row(struct fixture *f, const struct row_key *key)
{
    char *row = hex(f, key);
    return repair_rows(f, 1, &row, false);
}

static repair_response *rebuild(struct fixture *f, bool with_section)
{
    repair_request *request = fixture_repair_request(f, ANN);
    Holdfast__V1__RepairSection section = HOLDFAST__V1__REPAIR_SECTION__INIT;
    Holdfast__V1__RepairSection *sections[] = { &section };

    section.name = (char *)"progression";
    section.schema_version = 2;
    request->rebuild = true;
    request->sections = sections;
    request->n_sections = with_section;
    return fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
}

static void load_player(struct fixture *f, struct arena *arena, struct player *ret_player)
{
    struct row_key key;

    row_key_player(&key, ENTITY);
    struct slice row = arena_copy(arena, row_of(f, &key));
    assert_int_equal(player_decode(row, ENTITY, arena, ret_player), ERR_OK);
    assert_int_equal(player_sections(ret_player, arena), ERR_OK);
}

static void same_player(const struct player *a, const struct player *b)
{
    assert_int_equal(a->created_at_ms, b->created_at_ms);
    assert_int_equal(a->ledger_seq, b->ledger_seq);
    assert_memory_equal(a->ledger_hash, b->ledger_hash, LEDGER_HASH_BYTES);
    assert_int_equal(a->item_count, b->item_count);
    assert_int_equal(a->reservation_count, b->reservation_count);
    assert_int_equal(a->balance_count, b->balance_count);
    for (uint32_t i = 0; i < a->balance_count; i++) {
        assert_true(slice_equal(a->balances[i].currency, b->balances[i].currency));
        assert_int_equal(a->balances[i].amount, b->balances[i].amount);
        assert_int_equal(a->balances[i].reserved, b->balances[i].reserved);
    }
    assert_int_equal(a->section_count, b->section_count);
    for (uint32_t i = 0; i < a->section_count; i++) {
        assert_true(slice_equal(a->sections[i].name, b->sections[i].name));
        assert_int_equal(a->sections[i].schema_version, b->sections[i].schema_version);
        assert_int_equal(a->sections[i].size_bytes, b->sections[i].size_bytes);
        assert_true(a->sections[i].version < b->sections[i].version);
    }
    assert_int_equal(a->txn.seq, b->txn.seq);
}

static void sound_again(struct fixture *f)
{
    struct fixture_unreadable rows;
    struct fixture_sums sums;

    assert_int_equal(fixture_check_player(f, ANN, &rows), 0);
    fixture_release(f, ANN);
    assert_non_null(fixture_grant(f, ANN, "system:payments", 1));
    fixture_audit(f, ANN, "gold", &sums);
    (void)fixture_pass(f, 700000);
    assert_false(fixture_is_quarantined(f, ANN));
    fixture_audit(f, ANN, "gold", &sums);
    assert_int_equal(sums.reserved, 0); /* Its timer stands. */
}

/* ---- tests ---- */

static void a_players_row_is_made_again(void **state)
{
    struct fixture *f = *state;
    struct arena arena = { 0 };
    struct player before, after;
    struct fixture_unreadable rows;
    struct row_key key;

    populate(f);
    assert_non_null(fixture_start(f, ANN, SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                  fixture_op_id(f)));
    load_player(f, &arena, &before);
    row_key_player(&key, ENTITY);
    spoil(f, &key);
    fixture_restart(f);
    assert_int_equal(fixture_check_player(f, ANN, &rows), 1);
    assert_true(rows.player);
    assert_null(fixture_grant(f, ANN, "system:payments", 1));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));

    repair_response *response = rebuild(f, true);
    assert_non_null(response);
    assert_int_equal(response->ledger_seq, before.ledger_seq);
    assert_int_equal(response->item_count, 2);
    assert_int_equal(response->n_sections, 1);
    assert_true(response->write->version > before.version);
    load_player(f, &arena, &after);
    same_player(&before, &after);
    assert_int_equal(after.session.state, SESSION_FREE);
    assert_true(after.session.fence > before.session.fence);
    /* The server that held it before is fenced for ever. */
    fixture_release(f, ANN);
    assert_null(fixture_end(f, ANN, "1-100-1"));
    fixture_contain(f, ANN);
    sound_again(f);
    arena_deinit(&arena);
}

static void a_dry_run_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct row_key key;

    populate(f);
    row_key_player(&key, ENTITY);
    spoil(f, &key);
    repair_request *request = fixture_repair_request(f, ANN);
    request->rebuild = true;
    request->dry_run = true;
    repair_response *response = fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
    assert_non_null(response);
    assert_true(response->dry_run);
    assert_int_equal(response->item_count, 2);
    assert_int_equal(row_of(f, &key).size, 2);
    assert_non_null(rebuild(f, true));
    sound_again(f);
}

static void readable_rows_are_refused(void **state)
{
    struct fixture *f = *state;
    struct row_key key;
    char *row;

    populate(f);
    fixture_contain(f, ANN);
    row_key_ledger(&key, ENTITY, 1);
    assert_null(repair_row(f, &key));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->limit, "rows that cannot be read");
    row_key_reservation(&key, ENTITY, 4);
    assert_null(repair_row(f, &key));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    row_key_player(&key, ENTITY); /* Never by its key. */
    assert_null(repair_row(f, &key));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    row_key_ledger(&key, SLICE_LITERAL("player:bob"), 1); /* Another's. */
    assert_null(repair_row(f, &key));
    assert_string_equal(f->error->limit, "keys of rows of this player");
    row_key_ledger(&key, ENTITY, 999);
    assert_null(repair_row(f, &key));
    assert_string_equal(f->error->limit, "keys of rows that are there");
    row = (char *)"6C";
    assert_null(repair_rows(f, 1, &row, false));
    assert_false(f->recorded);
    assert_null(repair_rows(f, 0, NULL, false));
    assert_false(f->recorded);
}

static void only_who_is_quarantined_is_repaired(void **state)
{
    struct fixture *f = *state;

    populate(f);
    assert_null(rebuild(f, true));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    fixture_contain(f, ANN);
    repair_request *request = fixture_repair_request(f, ANN);
    request->rebuild = true;
    request->authority = fixture_authority(f, "system:payments");
    assert_null(fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    request = fixture_repair_request(f, ANN);
    request->rebuild = true;
    request->reason = (char *)"";
    assert_null(fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base));
    assert_string_equal(f->error->field, "reason");
}

/* Their program skips an entry that it does not know: it would differ from here on. */
static void replicas_of_an_earlier_build_are_waited_for(void **state)
{
    struct fixture *f = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(f->applier);

    populate(f);
    fixture_contain(f, ANN);
    meta->apply_version = 1;
    assert_null(rebuild(f, true));
    assert_int_equal(f->error->code, ERROR(UNIMPLEMENTED));
    assert_false(f->recorded);
    meta->apply_version = APPLY_VERSION;
    assert_non_null(rebuild(f, true));
}

static void a_repair_is_done_once(void **state)
{
    struct fixture *f = *state;
    struct row_key key;
    char *row;

    populate(f);
    row_key_section(&key, ENTITY, SLICE_LITERAL("progression"));
    spoil(f, &key);
    repair_request *request = fixture_repair_request(f, ANN);
    row = hex(f, &key);
    request->rows = &row;
    request->n_rows = 1;
    repair_response *response = fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
    assert_non_null(response);
    assert_string_equal(response->rows[0]->bytes, "fffe");
    assert_int_equal(response->rows[0]->outcome,
                     HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_DROPPED);
    assert_int_equal(response->n_sections, 0);
    request->authority = fixture_authority(f, "system:admin");
    response = fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
    assert_non_null(response);
    assert_true(response->write->duplicate);
    sound_again(f);
}

static void an_item_is_lost_and_the_rest_is_counted(void **state)
{
    struct fixture *f = *state;
    struct row_key key;
    uint8_t uid[ITEM_UID_BYTES];

    populate(f);
    Holdfast__V1__ListItemsResponse *items = fixture_items(f, ANN);
    assert_int_equal(item_uid_parse(slice_from_text(items->items[0]->uid), uid), ERR_OK);
    row_key_item(&key, ENTITY, uid);
    spoil(f, &key);
    repair_response *response = repair_row(f, &key);
    assert_non_null(response);
    assert_int_equal(response->item_count, 1);
    assert_int_equal(fixture_items(f, ANN)->total, 1);
    assert_true(totals_are_zero(&applier_meta(f->applier)->totals)); /* It counts as used up. */
}

static void a_reservation_comes_back_at_once(void **state)
{
    struct fixture *f = *state;
    struct row_key key;

    populate(f);
    row_key_reservation(&key, ENTITY, 4);
    spoil(f, &key);
    repair_response *response = repair_row(f, &key);
    assert_non_null(response);
    assert_int_equal(response->reservation_count, 1);
    fixture_release(f, ANN);
    assert_int_equal(fixture_balance(f, ANN, "gold"), 95);
    assert_true(fixture_pass(f, 1000) > 0);
    assert_int_equal(fixture_balance(f, ANN, "gold"), 100);
    fixture_contain(f, ANN);
    sound_again(f);
}

static void what_undid_an_entry_is_found_again(void **state)
{
    struct fixture *f = *state;
    struct row_key key;
    uint64_t undone_by;

    populate(f);
    row_key_reversal(&key, ENTITY, 5);
    assert_int_equal(reversal_row_decode(row_of(f, &key), &undone_by), ERR_OK);
    assert_int_equal(undone_by, 6);
    spoil(f, &key);
    repair_response *response = repair_row(f, &key);
    assert_non_null(response);
    assert_int_equal(response->rows[0]->outcome,
                     HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_MADE_AGAIN);
    undone_by = 0;
    assert_int_equal(reversal_row_decode(row_of(f, &key), &undone_by), ERR_OK);
    assert_int_equal(undone_by, 6);
    sound_again(f);
}

static void a_lost_outcome_is_never_carried_out_again(void **state)
{
    struct fixture *f = *state;
    struct row_key key;
    struct op_id id;
    const char *why;

    populate(f);
    assert_int_equal(op_id_parse(SLICE_LITERAL("claim:first"), &id, &why), ERR_OK);
    row_key_operation(&key, ENTITY, &id);
    spoil(f, &key);
    repair_response *response = repair_row(f, &key);
    assert_non_null(response);
    assert_int_equal(response->rows[0]->outcome,
                     HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_REPLACED);
    fixture_release(f, ANN);
    for (uint32_t attempt = 0; attempt < 3; attempt++) {
        Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
        Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
        Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
        gold.currency = (char *)"gold";
        gold.amount = 3;
        request.player_id = (char *)ANN;
        request.op_id = (char *)"claim:first";
        request.attempt = attempt;
        request.authority = fixture_authority(f, "system:payments");
        request.currencies = amounts;
        request.n_currencies = 1;
        assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
        assert_int_equal(f->error->code, ERROR(OPERATION_EXPIRED));
        assert_true(f->error->final);
    }
    assert_int_equal(fixture_operation(f, ANN, "claim:first")->state, OPERATION(EXPIRED));
    fixture_contain(f, ANN);
    sound_again(f);
}

static Holdfast__V1__ListEntriesResponse *entries(struct fixture *f)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = (char *)ANN;
    request.ascending = true;
    return fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
}

static void a_lost_entry_has_something_in_its_place(void **state)
{
    struct fixture *f = *state;
    struct row_key key;

    populate(f);
    row_key_ledger(&key, ENTITY, 2);
    spoil(f, &key);
    assert_non_null(repair_row(f, &key));
    Holdfast__V1__ListEntriesResponse *page = entries(f);
    assert_int_equal(page->n_entries, 6);
    assert_int_equal(page->entries[1]->kind, HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_LOST);
    assert_int_equal(page->entries[1]->seq, 2);
    assert_string_equal(page->entries[1]->reason, "spoilt");
    assert_null(applier_take_damage(f->applier)); /* The chain's break is known. */
    /* The newest one: the player's head follows, and the chain goes on from it. */
    row_key_ledger(&key, ENTITY, 6);
    spoil(f, &key);
    assert_non_null(repair_row(f, &key));
    fixture_release(f, ANN);
    assert_non_null(fixture_grant(f, ANN, "system:payments", 1));
    page = entries(f);
    assert_int_equal(page->n_entries, 7);
    assert_null(applier_take_damage(f->applier));
    assert_int_equal(fixture_balance(f, ANN, "gold"), 96);
}

/* A person says what the ledger does not tell, and nothing else. */
static void balances_that_are_lost_are_asked_for(void **state)
{
    struct fixture *f = *state;
    struct row_key entry, player;
    Holdfast__V1__CurrencyAmount gems = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount debt = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gems, &debt, &gold };
    char *row;

    populate(f);
    row_key_ledger(&entry, ENTITY, 2); /* The newest that tells of gems. */
    row_key_player(&player, ENTITY);
    spoil(f, &entry);
    spoil(f, &player);
    assert_null(rebuild(f, true)); /* An entry in the way cannot be read. */
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    assert_string_equal(f->error->value, "2");
    row = hex(f, &entry);
    assert_null(repair_rows(f, 1, &row, true));
    assert_string_equal(f->error->field, "balances");
    gems.currency = (char *)"gems";
    gems.amount = 6;
    debt.currency = (char *)"debt";
    gold.currency = (char *)"gold";
    gold.amount = 1000000;
    repair_request *misspelt = fixture_repair_request(f, ANN);
    misspelt->rows = &row;
    misspelt->n_rows = 1;
    misspelt->rebuild = true;
    misspelt->balances = amounts;
    misspelt->n_balances = 1;
    gems.currency = (char *)"gmes";
    assert_null(fixture_mutate(f, METHOD_REPAIR_PLAYER, &misspelt->base));
    assert_string_equal(f->error->field, "balances[\"gmes\"].currency");
    assert_non_null(strstr(f->error->message, "\"gmes\"; did you mean gems?"));
    gems.currency = (char *)"gems";
    for (size_t count = 3; count >= 2; count--) {
        repair_request *request = fixture_repair_request(f, ANN);
        request->rows = &row;
        row = hex(f, &entry);
        request->n_rows = 1;
        request->rebuild = true;
        request->balances = amounts;
        request->n_balances = count;
        repair_response *response = fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
        assert_int_equal(response != NULL, count == 2);
    }
    fixture_release(f, ANN);
    assert_int_equal(fixture_balance(f, ANN, "gems"), 6);
    assert_int_equal(fixture_balance(f, ANN, "gold"), 95);
}

static void mail_is_counted_again(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__DeliverToPlayerRequest request =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYER_REQUEST__INIT;
    struct row_key key;
    uint32_t count = 0;
    struct need need = { 0 };

    populate(f);
    for (int i = 0; i < 3; i++) {
        request.player_id = (char *)ANN;
        request.op_id = arena_printf(&f->arena, "admin:mail%d", i);
        request.authority = fixture_authority(f, "system:mail");
        request.text = (char *)"hello";
        assert_non_null(fixture_mutate(f, METHOD_DELIVER_TO_PLAYER, &request.base));
    }
    row_key_mailbox(&key, ENTITY);
    spoil(f, &key);
    repair_response *response = repair_row(f, &key);
    assert_non_null(response);
    assert_int_equal(response->rows[0]->outcome,
                     HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_MADE_AGAIN);
    assert_int_equal(mailbox_count(applier_state(f->applier), ENTITY, &need, &count), ERR_OK);
    assert_int_equal(count, 3);
    sound_again(f);
    need_deinit(&need);
}

/* Two replicas that apply the same entries have the same rows. */
static void every_replica_repairs_alike(void **state)
{
    struct fixture *f = *state;
    struct row_key key;

    populate(f);
    fixture_checkpoint(f);
    row_key_player(&key, ENTITY);
    spoil(f, &key);
    fixture_restart(f); /* One that has to load everything... */
    fixture_evict(f, 0);
    assert_non_null(rebuild(f, true));
    struct hash128 outcomes = applier_outcome_hash(f->applier);
    assert_true(f->need_rounds > 0);
    assert_true(outcomes.bytes[0] != 0 || outcomes.bytes[1] != 0 || outcomes.bytes[2] != 0);
    sound_again(f);
}

static void a_row_of_the_shard_is_dropped(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    uint8_t uid[ITEM_UID_BYTES];
    struct row_key key;

    populate(f);
    assert_int_equal(item_uid_parse(slice_from_text(fixture_items(f, ANN)->items[0]->uid), uid),
                     ERR_OK);
    row_key_history(&key, uid, 1);
    request.reason = (char *)"spoilt";
    request.key = hex(f, &key);
    assert_null(fixture_mutate(f, METHOD_REPAIR_ROW, &request.base)); /* It can be read. */
    spoil(f, &key);
    request.key = hex(f, &key);
    Holdfast__V1__RepairRowResponse *response = fixture_mutate(f, METHOD_REPAIR_ROW, &request.base);
    assert_non_null(response);
    assert_string_equal(response->row->bytes, "fffe");
    assert_int_equal(row_of(f, &key).size, 0);
    row_key_inbox(&key, 1, 1); /* Without its decision it would be decided again. */
    request.key = hex(f, &key);
    assert_null(fixture_mutate(f, METHOD_REPAIR_ROW, &request.base));
    assert_false(f->recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_players_row_is_made_again),
        FIXTURE_TEST(a_dry_run_changes_nothing),
        FIXTURE_TEST(readable_rows_are_refused),
        FIXTURE_TEST(only_who_is_quarantined_is_repaired),
        FIXTURE_TEST(replicas_of_an_earlier_build_are_waited_for),
        FIXTURE_TEST(a_repair_is_done_once),
        FIXTURE_TEST(an_item_is_lost_and_the_rest_is_counted),
        FIXTURE_TEST(a_reservation_comes_back_at_once),
        FIXTURE_TEST(what_undid_an_entry_is_found_again),
        FIXTURE_TEST(a_lost_outcome_is_never_carried_out_again),
        FIXTURE_TEST(a_lost_entry_has_something_in_its_place),
        FIXTURE_TEST(balances_that_are_lost_are_asked_for),
        FIXTURE_TEST(mail_is_counted_again),
        FIXTURE_TEST(every_replica_repairs_alike),
        FIXTURE_TEST(a_row_of_the_shard_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
