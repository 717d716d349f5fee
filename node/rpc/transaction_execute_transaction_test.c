/* Transactions on one shard, and what is refused before anything is logged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture_shards.h"

typedef Holdfast__V1__ExecuteTransactionRequest execute_request;
typedef Holdfast__V1__ExecuteTransactionResponse execute_response;
typedef Holdfast__V1__TransactionChange change_message;
typedef Holdfast__V1__CurrencyAmount amount_message;

#define CHANGE(kind)  HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_##kind
#define CHECKED(kind) HOLDFAST__V1__TRANSACTION_CHECK__CHECK_##kind

/* ann, amy and abe live on shard 0; ann has 100 gold. */
struct world {
    struct fixture_shards s;
    struct fixture *f;
    char ann[16], amy[16], abe[16];
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    fixture_shards_init(&w->s);
    w->f = &w->s.shards[0];
    fixture_name_on(0, "ann", w->ann);
    fixture_name_on(0, "amy", w->amy);
    fixture_name_on(0, "abe", w->abe);
    assert_non_null(fixture_grant(w->f, w->ann, "unheld", 100));
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    fixture_shards_deinit(&w->s);
    free(w);
    return 0;
}

static void *make(struct world *w, const ProtobufCMessageDescriptor *type)
{
    return arena_message(&w->s.arena, type);
}

static amount_message **gold(struct world *w, int64_t amount)
{
    amount_message **list =
        arena_messages(&w->s.arena, &holdfast__v1__currency_amount__descriptor, 1);

    list[0]->currency = (char *)"gold";
    list[0]->amount = amount;
    return list;
}

/* ann and amy take part; no change yet. */
static execute_request *execute_make(struct world *w, const char *op_id)
{
    execute_request *request = make(w, &holdfast__v1__execute_transaction_request__descriptor);

    request->player_id = w->ann;
    request->op_id = text_lend(op_id);
    request->authority = fixture_authority(w->f, "unheld");
    request->others = arena_alloc(&w->s.arena, sizeof *request->others * 16);
    request->changes = arena_alloc(&w->s.arena, sizeof *request->changes * 64);
    request->checks = arena_alloc(&w->s.arena, sizeof *request->checks * 64);
    request->n_others = 1;
    request->others[0] = make(w, &holdfast__v1__transaction_player__descriptor);
    request->others[0]->player_id = w->amy;
    request->others[0]->authority = fixture_authority(w->f, "unheld");
    return request;
}

static change_message *change_add(struct world *w, execute_request *request, int kind)
{
    change_message *change = make(w, &holdfast__v1__transaction_change__descriptor);

    change->change_case = (Holdfast__V1__TransactionChange__ChangeCase)kind;
    request->changes[request->n_changes++] = change;
    return change;
}

static void add_move(struct world *w, execute_request *request, int64_t amount)
{
    Holdfast__V1__TransactionMove *move = make(w, &holdfast__v1__transaction_move__descriptor);

    move->from_player_id = w->ann;
    move->to_player_id = w->amy;
    move->currencies = gold(w, amount);
    move->n_currencies = 1;
    change_add(w, request, CHANGE(MOVE))->move = move;
}

static void add_grant(struct world *w, execute_request *request, const char *kind)
{
    Holdfast__V1__TransactionGrant *grant = make(w, &holdfast__v1__transaction_grant__descriptor);
    Holdfast__V1__ItemSpec *item = make(w, &holdfast__v1__item_spec__descriptor);

    item->kind = text_lend(kind);
    grant->player_id = w->amy;
    grant->items = arena_alloc(&w->s.arena, sizeof *grant->items);
    grant->items[0] = item;
    grant->n_items = 1;
    change_add(w, request, CHANGE(GRANT))->grant = grant;
}

static void add_patch(struct world *w, execute_request *request, const char *json)
{
    Holdfast__V1__TransactionPatch *patch = make(w, &holdfast__v1__transaction_patch__descriptor);

    patch->player_id = w->amy;
    patch->edit = make(w, &holdfast__v1__section_edit__descriptor);
    patch->edit->name = (char *)"quests";
    patch->edit->edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    patch->edit->replace = text_lend(json);
    change_add(w, request, CHANGE(PATCH))->patch = patch;
}

static Holdfast__V1__TransactionCheck *check_add(struct world *w, execute_request *request,
                                                 int kind)
{
    Holdfast__V1__TransactionCheck *check = make(w, &holdfast__v1__transaction_check__descriptor);

    check->player_id = w->ann;
    check->check_case = (Holdfast__V1__TransactionCheck__CheckCase)kind;
    request->checks[request->n_checks++] = check;
    return check;
}

static execute_response *execute(struct world *w, execute_request *request)
{
    return fixture_mutate(w->f, METHOD_EXECUTE_TRANSACTION, &request->base);
}

static int64_t gold_of(struct world *w, const char *player)
{
    return fixture_balance(w->f, player, "gold");
}

static void on_one_shard_all_is_done_in_one_entry(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:a");

    add_move(w, request, 30);
    add_grant(w, request, "sword");
    add_patch(w, request, "{\"n\":7}");
    uint32_t entries = w->f->entry_count;
    execute_response *response = execute(w, request);
    assert_non_null(response);
    assert_int_equal(w->f->entry_count, entries + 1);
    assert_int_equal(response->n_players, 2);
    assert_int_equal(response->players[1]->n_item_uids, 1);
    assert_int_equal(response->players[1]->balances[0]->amount, 30);
    assert_int_equal(gold_of(w, w->ann), 70);
    assert_int_equal(gold_of(w, w->amy), 30);
    Holdfast__V1__GetProfileRequest read = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;
    read.player_id = w->amy;
    read.settled = true;
    Holdfast__V1__GetProfileResponse *profile = fixture_read(w->f, METHOD_GET_PROFILE, &read.base);
    assert_non_null(profile);
    assert_int_equal(profile->profile->item_count, 1);
    assert_int_equal(profile->profile->version, 1);
    assert_true(profile->profile->created_at_ms > 0);
    assert_string_equal(profile->profile->sections[0]->json, "{\"n\":7}");
    assert_true(execute(w, request)->write->duplicate);
    assert_int_equal(gold_of(w, w->amy), 30);
}

static void a_change_that_does_not_fit_undoes_all_before_it(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:a");
    Holdfast__V1__TransactionSpend *spend = make(w, &holdfast__v1__transaction_spend__descriptor);

    add_move(w, request, 30);
    spend->player_id = w->amy;
    spend->currencies = gold(w, 1);
    spend->n_currencies = 1;
    change_add(w, request, CHANGE(SPEND))->spend = spend;
    /* What she receives cannot be spent in the same transaction. */
    assert_null(execute(w, request));
    assert_int_equal(w->f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_true(w->f->error->final);
    assert_non_null(strstr(w->f->error->message, w->amy));
    assert_int_equal(gold_of(w, w->ann), 100);
    assert_int_equal(gold_of(w, w->amy), 0);
}

static void assert_check_refused(struct world *w, execute_request *request, int code)
{
    add_move(w, request, 1);
    assert_null(execute(w, request));
    assert_int_equal(w->f->error->code, code);
    assert_int_equal(gold_of(w, w->ann), 100);
}

static void each_check_refuses_what_does_not_hold(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:balance");

    check_add(w, request, CHECKED(BALANCE))->balance = gold(w, 101)[0];
    assert_check_refused(w, request, ERROR(INSUFFICIENT_FUNDS));
    request = execute_make(w, "claim:item");
    check_add(w, request, CHECKED(ITEM_UID))->item_uid = (char *)"00000000000000000000000000000000";
    assert_check_refused(w, request, ERROR(ITEM_NOT_HELD));
    request = execute_make(w, "claim:section");
    Holdfast__V1__SectionCheck *section = make(w, &holdfast__v1__section_check__descriptor);
    section->name = (char *)"quests";
    section->version = 1;
    check_add(w, request, CHECKED(SECTION))->section = section;
    assert_check_refused(w, request, ERROR(VERSION_CONFLICT));
    request = execute_make(w, "claim:version");
    check_add(w, request, CHECKED(PLAYER_VERSION))->player_version = 2;
    assert_check_refused(w, request, ERROR(VERSION_CONFLICT));
}

static void checks_that_hold_change_nothing(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:a");
    Holdfast__V1__SectionCheck *section = make(w, &holdfast__v1__section_check__descriptor);

    check_add(w, request, CHECKED(BALANCE))->balance = gold(w, 100)[0];
    section->name = (char *)"quests";
    check_add(w, request, CHECKED(SECTION))->section = section;
    check_add(w, request, CHECKED(PLAYER_VERSION))->player_version = 1;
    add_move(w, request, 1);
    assert_non_null(execute(w, request));
    assert_int_equal(gold_of(w, w->ann), 99);
}

static void assert_invalid(struct world *w, execute_request *request, const char *field)
{
    assert_null(execute(w, request));
    assert_false(w->f->recorded);
    assert_int_equal(w->f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(w->f->error->field, field);
    assert_int_equal(gold_of(w, w->ann), 100);
}

static void bad_players_are_refused_before_the_log(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:a");

    add_move(w, request, 1);
    request->others[0]->player_id = w->ann;
    assert_invalid(w, request, "others[0].player_id");
    request->others[0]->player_id = w->abe;
    assert_invalid(w, request, "changes[0].move.to_player_id");
    request->others[0]->player_id = w->amy;
    request->others[0]->authority = (char *)"";
    assert_invalid(w, request, "others[0].authority");
    request->others[0]->authority = fixture_authority(w->f, "unheld");
    for (size_t i = 1; i < 8; i++)
        request->others[i] = request->others[0];
    request->n_others = 8;
    assert_invalid(w, request, "others");
    char elsewhere[16];
    fixture_name_on(1, "ann", elsewhere);
    request->n_others = 1;
    request->player_id = elsewhere;
    request->changes[0]->move->from_player_id = elsewhere;
    assert_invalid(w, request, "player_id");
}

static void bad_changes_are_refused_before_the_log(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:a");

    assert_invalid(w, request, "changes");
    add_move(w, request, 1);
    request->changes[0]->move->to_player_id = w->ann;
    assert_invalid(w, request, "changes[0].move.to_player_id");
    request->changes[0]->move->to_player_id = w->amy;
    request->changes[0]->move->n_currencies = 0;
    assert_invalid(w, request, "changes[0].move");
    request->changes[0]->move->n_currencies = 1;
    request->changes[0]->change_case = CHANGE(_NOT_SET);
    assert_invalid(w, request, "changes[0]");
    request = execute_make(w, "claim:a");
    for (int i = 0; i < 33; i++)
        add_move(w, request, 1);
    assert_invalid(w, request, "changes");
}

/* A refusal names the change in the request, and in it the currency, the item or the step. */
static void what_a_change_has_wrong_is_named_where_it_stands(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:a");
    Holdfast__V1__TransactionPatch *patch = make(w, &holdfast__v1__transaction_patch__descriptor);

    add_move(w, request, 1);
    add_grant(w, request, "sword");
    request->changes[1]->grant->items[0]->attributes = (char *)"[1]";
    assert_invalid(w, request, "changes[1].grant.items[0].attributes");
    request->changes[1]->grant->n_items = 0;
    request->changes[1]->grant->currencies = gold(w, -1);
    request->changes[1]->grant->n_currencies = 1;
    assert_invalid(w, request, "changes[1].grant.currencies[\"gold\"].amount");
    assert_null(execute(w, request));
    assert_non_null(strstr(w->f->error->message, "changes[1].grant.currencies[\"gold\"].amount: "));
    request->changes[1]->grant->currencies = gold(w, 1);
    patch->player_id = w->ann;
    patch->edit = make(w, &holdfast__v1__section_edit__descriptor);
    patch->edit->name = (char *)"quests";
    patch->edit->edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_MERGE;
    patch->edit->merge = (char *)"{";
    change_add(w, request, CHANGE(PATCH))->patch = patch;
    assert_invalid(w, request, "changes[2].patch.edit.merge");
    patch->edit->merge = (char *)"{}";
    change_add(w, request, CHANGE(PATCH))->patch = patch;
    assert_invalid(w, request, "changes[3].patch.edit.name");
    request->n_changes = 3;
    check_add(w, request, CHECKED(PLAYER_VERSION))->player_version = 1;
    check_add(w, request, CHECKED(BALANCE))->balance = gold(w, 0)[0];
    assert_invalid(w, request, "checks[1].balance.amount");
}

static void an_item_is_named_once_and_items_are_at_most_64(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:a");
    Holdfast__V1__TransactionSpend *spend = make(w, &holdfast__v1__transaction_spend__descriptor);
    Holdfast__V1__TransactionConsume *consume =
        make(w, &holdfast__v1__transaction_consume__descriptor);
    char *uids[65];

    for (int i = 0; i < 65; i++)
        uids[i] = arena_printf(&w->s.arena, "%032x", i);
    spend->player_id = w->ann;
    spend->item_uids = uids;
    spend->n_item_uids = 65;
    change_add(w, request, CHANGE(SPEND))->spend = spend;
    assert_invalid(w, request, "changes[0].spend.item_uids");
    uids[1] = uids[0];
    spend->n_item_uids = 2;
    assert_invalid(w, request, "changes[0].spend.item_uids");
    uids[0] = (char *)"x";
    assert_invalid(w, request, "changes[0].spend.item_uids");
    spend->n_item_uids = 0;
    assert_invalid(w, request, "changes[0].spend");
    /* What earlier versions had in its place. */
    consume->player_id = w->ann;
    uids[0] = arena_printf(&w->s.arena, "%032x", 1);
    consume->item_uids = uids;
    consume->n_item_uids = 1;
    request = execute_make(w, "claim:b");
    change_add(w, request, CHANGE(CONSUME))->consume = consume;
    assert_invalid(w, request, "changes[0].consume");
    assert_null(execute(w, request));
    assert_string_equal(w->f->error->limit, "`spend`, which takes items, too");
}

static char *sword_of(struct world *w, const char *player)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec sword = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &sword };

    sword.kind = (char *)"sword";
    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(w->f);
    request.authority = fixture_authority(w->f, "unheld");
    request.items = items;
    request.n_items = 1;
    Holdfast__V1__GrantResponse *granted = fixture_mutate(w->f, METHOD_GRANT, &request.base);
    assert_non_null(granted);
    return granted->item_uids[0];
}

static void a_spend_takes_currencies_and_items_for_good(void **state)
{
    struct world *w = *state;
    char *uid = sword_of(w, w->ann);
    execute_request *request = execute_make(w, "claim:a");
    Holdfast__V1__TransactionSpend *spend = make(w, &holdfast__v1__transaction_spend__descriptor);

    spend->player_id = w->ann;
    spend->currencies = gold(w, 40);
    spend->n_currencies = 1;
    spend->item_uids = &uid;
    spend->n_item_uids = 1;
    change_add(w, request, CHANGE(SPEND))->spend = spend;
    assert_non_null(execute(w, request));
    assert_int_equal(gold_of(w, w->ann), 60);
    assert_int_equal(fixture_items(w->f, w->ann)->total, 0);
    request = execute_make(w, "claim:b");
    change_add(w, request, CHANGE(SPEND))->spend = spend;
    assert_null(execute(w, request));
    assert_int_equal(w->f->error->code, ERROR(ITEM_NOT_HELD));
    assert_int_equal(gold_of(w, w->ann), 60);
}

/* As an owner of an earlier version logged it, without a look at what it did not know. */
static void commit_earlier(struct world *w, const execute_request *request)
{
    struct op op = { .method = METHOD_EXECUTE_TRANSACTION };
    struct buf body = { 0 };
    execute_request logged = *request;
    const char *why;

    logged.authority = (char *)"";
    op.entity = slice_from_text(arena_printf(&w->s.arena, "player:%s", w->ann));
    op.authority.kind = AUTHORITY_UNHELD;
    op.request = arena_pack(&w->s.arena, &logged.base);
    assert_int_equal(op_id_parse(slice_from_text(request->op_id), &op.id, &why), ERR_OK);
    op_encode(&op, &body);
    fixture_commit(w->f, buf_slice(&body));
    assert_int_equal(w->f->outcome.kind, OUTCOME_COMMITTED);
    buf_deinit(&body);
}

static void logs_of_earlier_versions_are_applied_as_they_were(void **state)
{
    struct world *w = *state;
    char *uid = arena_printf(&w->s.arena, "%s", sword_of(w, w->ann));
    char *twice[] = { uid, uid };
    execute_request *request = execute_make(w, "claim:a");
    Holdfast__V1__TransactionConsume *consume =
        make(w, &holdfast__v1__transaction_consume__descriptor);
    Holdfast__V1__TransactionSpend *debit = make(w, &holdfast__v1__transaction_spend__descriptor);

    /* Bytes that stood where items do now took none. */
    debit->player_id = w->ann;
    debit->currencies = gold(w, 10);
    debit->n_currencies = 1;
    debit->item_uids = twice;
    debit->n_item_uids = 2;
    change_add(w, request, CHANGE(SPEND))->spend = debit;
    commit_earlier(w, request);
    assert_int_equal(gold_of(w, w->ann), 90);
    assert_int_equal(fixture_items(w->f, w->ann)->total, 1);
    request = execute_make(w, "claim:b");
    debit->n_item_uids = 1;
    consume->player_id = w->ann;
    consume->item_uids = &uid;
    consume->n_item_uids = 1;
    change_add(w, request, CHANGE(SPEND))->spend = debit;
    change_add(w, request, CHANGE(CONSUME))->consume = consume;
    commit_earlier(w, request);
    assert_int_equal(gold_of(w, w->ann), 80);
    assert_int_equal(fixture_items(w->f, w->ann)->total, 0);
}

static void the_system_may_only_give(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:a");

    request->authority = fixture_authority(w->f, "system:match");
    request->others[0]->authority = fixture_authority(w->f, "system:match");
    add_move(w, request, 1);
    assert_null(execute(w, request));
    assert_int_equal(w->f->error->code, ERROR(PERMISSION_DENIED));
    request = execute_make(w, "claim:a");
    request->authority = fixture_authority(w->f, "system:match");
    request->others[0]->authority = fixture_authority(w->f, "system:match");
    add_grant(w, request, "sword");
    assert_non_null(execute(w, request));
}

static void a_swap_with_oneself_is_refused_and_so_is_one_of_nothing(void **state)
{
    struct world *w = *state;
    Holdfast__Internal__V1__SwapGoodsRequest request =
        HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST__INIT;

    request.player_id = w->ann;
    request.op_id = (char *)"claim:a";
    request.authority = fixture_authority(w->f, "unheld");
    request.other_player_id = w->ann;
    request.other_authority = fixture_authority(w->f, "unheld");
    request.currencies = gold(w, 1);
    request.n_currencies = 1;
    assert_null(fixture_mutate(w->f, METHOD_SWAP_GOODS, &request.base));
    assert_string_equal(w->f->error->field, "b.player_id");
    request.other_player_id = w->amy;
    request.n_currencies = 0;
    assert_null(fixture_mutate(w->f, METHOD_SWAP_GOODS, &request.base));
    assert_string_equal(w->f->error->field, "a.gives");
    request.n_currencies = 1;
    assert_non_null(fixture_mutate(w->f, METHOD_SWAP_GOODS, &request.base));
    assert_int_equal(gold_of(w, w->amy), 1);
}

static void assert_not_reversible(struct world *w, char *player, const char *op_id,
                                  const char *kind)
{
    Holdfast__V1__ReverseEntryRequest request = HOLDFAST__V1__REVERSE_ENTRY_REQUEST__INIT;

    request.player_id = player;
    request.op_id = fixture_op_id(w->f);
    request.authority = fixture_authority(w->f, "unheld");
    request.target_op_id = text_lend(op_id);
    request.reason = (char *)"mistake";
    assert_null(fixture_mutate(w->f, METHOD_REVERSE_ENTRY, &request.base));
    assert_int_equal(w->f->error->code, ERROR(NOT_REVERSIBLE));
    assert_string_equal(w->f->error->value, kind);
    assert_non_null(strstr(w->f->error->message, "carry out the opposite one"));
}

/* The transaction's outcome is its home player's, and names no entry; the other has none. */
static void what_a_transaction_wrote_is_refused_as_not_reversible_to_each_player(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:a");

    add_move(w, request, 30);
    assert_non_null(execute(w, request));
    fixture_restart(w->f);
    assert_not_reversible(w, w->ann, "claim:a", "TXN_TAKE");
    assert_not_reversible(w, w->amy, "claim:a", "TXN_GIVE");
}

static void ledgers_tell_what_went_and_what_came(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:a");
    Holdfast__V1__ListEntriesRequest list = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request->reason = (char *)"bet";
    add_move(w, request, 30);
    assert_non_null(execute(w, request));
    list.player_id = w->amy;
    Holdfast__V1__ListEntriesResponse *ledger = fixture_read(w->f, METHOD_LIST_ENTRIES, &list.base);
    assert_int_equal(ledger->n_entries, 1);
    assert_int_equal(ledger->entries[0]->kind, HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_TXN_GIVE);
    assert_string_equal(ledger->entries[0]->op_id, "claim:a");
    assert_string_equal(ledger->entries[0]->reason, "bet");
    assert_string_equal(ledger->entries[0]->authority, "unheld");
    assert_int_equal(ledger->entries[0]->changes[0]->balance_after, 30);
    list.player_id = w->ann;
    ledger = fixture_read(w->f, METHOD_LIST_ENTRIES, &list.base);
    assert_int_equal(ledger->entries[0]->kind, HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_TXN_TAKE);
    assert_int_equal(ledger->entries[0]->changes[0]->amount, -30);
}

/* What a log of before the authority was a string has for `unheld`: a message of two bytes. */
static struct slice with_old_authority(struct world *w, struct slice packed)
{
    static const uint8_t is[] = "\x12\x06unheld", was[] = { 0x12, 0x02, 0x1a, 0x00 };
    const size_t is_size = sizeof is - 1;
    uint8_t *bytes = (uint8_t *)(uintptr_t)arena_copy(&w->s.arena, packed).data;
    uint8_t *at = memmem(bytes, packed.size, is, is_size);
    size_t player_bytes = 2 + strlen(w->amy) + is_size;

    assert_non_null(at);
    uint8_t *head = at - (player_bytes - is_size) - 2; /* Field 10, TransactionPlayer. */
    assert_int_equal(head[0], 0x52);
    assert_int_equal(head[1], player_bytes);
    head[1] = (uint8_t)(player_bytes - is_size + sizeof was);
    memcpy(at, was, sizeof was);
    size_t behind = packed.size - (size_t)(at + is_size - bytes);
    memmove(at + sizeof was, at + is_size, behind);
    return (struct slice){ bytes, packed.size - is_size + sizeof was };
}

static void commit_logged(struct world *w, bool old)
{
    execute_request *request = execute_make(w, "claim:logged");
    struct buf body = { 0 };
    struct op op;

    add_move(w, request, 30);
    assert_true(fixture_prepare(w->f, METHOD_EXECUTE_TRANSACTION, &request->base, &body));
    assert_int_equal(op_decode(buf_slice(&body), &op), ERR_OK);
    if (old) {
        struct buf again = { 0 };
        op.request = with_old_authority(w, op.request);
        op_encode(&op, &again);
        buf_deinit(&body);
        body = again;
    }
    fixture_commit(w->f, buf_slice(&body));
    buf_deinit(&body);
    assert_int_equal(w->f->outcome.kind, OUTCOME_COMMITTED);
}

/* But the shard's own, which has the hash of the entry. */
static void assert_same_rows(struct fixture *a, struct fixture *b)
{
    struct hash128 one = applier_outcome_hash(a->applier), other = applier_outcome_hash(b->applier);

    assert_memory_equal(&one, &other, sizeof one);
    fixture_checkpoint(a);
    fixture_checkpoint(b);
    assert_int_equal(a->row_count, b->row_count);
    for (uint32_t i = 0; i < a->row_count; i++) {
        assert_true(slice_equal(buf_slice(&a->rows[i].key), buf_slice(&b->rows[i].key)));
        assert_true(slice_equal(buf_slice(&a->rows[i].value), buf_slice(&b->rows[i].value)));
    }
}

static void an_old_log_is_applied_to_the_same_rows(void **state)
{
    void *other;
    setup(&other);
    struct world *now = *state, *then = other;

    commit_logged(now, false);
    commit_logged(then, true);
    assert_int_equal(fixture_balance(then->f, then->amy, "gold"), 30);
    assert_same_rows(now->f, then->f);
    /* And a retry of today is the same operation. */
    execute_request *retry = execute_make(then, "claim:logged");
    add_move(then, retry, 30);
    assert_non_null(execute(then, retry));
    assert_true(then->f->outcome.duplicate);
    teardown(&other);
}

static void a_caller_cannot_use_the_old_form(void **state)
{
    struct world *w = *state;
    execute_request *request = execute_make(w, "claim:caller");

    add_move(w, request, 30);
    request->others[0]->authority = (char *)"\x1a";
    assert_null(execute(w, request));
    assert_int_equal(w->f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(w->f->error->field, "others[0].authority");
    assert_false(w->f->recorded);
}

int main(void)
{
#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        WORLD_TEST(on_one_shard_all_is_done_in_one_entry),
        WORLD_TEST(a_change_that_does_not_fit_undoes_all_before_it),
        WORLD_TEST(each_check_refuses_what_does_not_hold),
        WORLD_TEST(checks_that_hold_change_nothing),
        WORLD_TEST(bad_players_are_refused_before_the_log),
        WORLD_TEST(bad_changes_are_refused_before_the_log),
        WORLD_TEST(what_a_change_has_wrong_is_named_where_it_stands),
        WORLD_TEST(an_item_is_named_once_and_items_are_at_most_64),
        WORLD_TEST(a_spend_takes_currencies_and_items_for_good),
        WORLD_TEST(logs_of_earlier_versions_are_applied_as_they_were),
        WORLD_TEST(the_system_may_only_give),
        WORLD_TEST(a_swap_with_oneself_is_refused_and_so_is_one_of_nothing),
        WORLD_TEST(what_a_transaction_wrote_is_refused_as_not_reversible_to_each_player),
        WORLD_TEST(ledgers_tell_what_went_and_what_came),
        WORLD_TEST(an_old_log_is_applied_to_the_same_rows),
        WORLD_TEST(a_caller_cannot_use_the_old_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
