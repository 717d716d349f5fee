#include "node/rpc/fixture_records.h"

#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

struct fixture *records_on(struct record_world *w, uint32_t shard)
{
    return &w->s.shards[shard];
}

amount_message **records_amount_of(struct record_world *w, const char *currency, int64_t amount)
{
    amount_message **list =
        arena_messages(&w->s.arena, &holdfast__v1__currency_amount__descriptor, 1);

    list[0]->currency = text_lend(currency);
    list[0]->amount = amount;
    return list;
}

/* NULL: pending or refused. */
Holdfast__V1__GrantResponse *records_grant(struct record_world *w, uint32_t shard,
                                           const char *op_id, amount_message **amounts)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec orb = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *orbs[] = { &orb };

    orb.kind = (char *)"orb";
    request.player_id = shard == 0 ? w->ann : w->bob;
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(records_on(w, shard), "system:payments");
    request.currencies = amounts;
    request.n_currencies = 1;
    request.items = orbs;
    request.n_items = shard == 0 && strcmp(op_id, "claim:first") == 0;
    return fixture_mutate(records_on(w, shard), METHOD_GRANT, &request.base);
}

int records_setup(void **state)
{
    struct record_world *w = mem_zalloc(sizeof *w);

    fixture_shards_init(&w->s);
    fixture_name_on(0, "ann", w->ann);
    fixture_name_on(1, "bob", w->bob);
    for (int i = 0; w->receipt[0] == 0; i++) {
        char receipt[32];
        snprintf(receipt, sizeof receipt, "receipt:GPA.%d", i);
        if (shard_of_entity(slice_from_text(receipt), FIXTURE_SHARDS) == 1)
            snprintf(w->receipt, sizeof w->receipt, "%s", receipt);
    }
    Holdfast__V1__GrantResponse *first =
        records_grant(w, 0, "claim:first", records_amount_of(w, "gold", 100));
    assert_non_null(first);
    snprintf(w->orb, sizeof w->orb, "%s", first->item_uids[0]);
    assert_non_null(records_grant(w, 1, "claim:first", records_amount_of(w, "gems", 100)));
    *state = w;
    return 0;
}

int records_teardown(void **state)
{
    struct record_world *w = *state;

    fixture_shards_deinit(&w->s);
    free(w);
    return 0;
}

/* ---- records of every kind ---- */

void records_pay(struct record_world *w, const char *op_id)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;

    request.player_id = w->ann;
    request.to_player_id = w->bob;
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(records_on(w, 0), "unheld");
    request.currencies = records_amount_of(w, "gold", 30);
    request.n_currencies = 1;
    assert_null(fixture_mutate(records_on(w, 0), METHOD_TRANSFER_CURRENCIES, &request.base));
}

void records_give(struct record_world *w, const char *op_id)
{
    Holdfast__V1__TransferItemsRequest request = HOLDFAST__V1__TRANSFER_ITEMS_REQUEST__INIT;
    char *uid = w->orb;

    request.player_id = w->ann;
    request.to_player_id = w->bob;
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(records_on(w, 0), "unheld");
    request.item_uids = &uid;
    request.n_item_uids = 1;
    assert_null(fixture_mutate(records_on(w, 0), METHOD_TRANSFER_ITEMS, &request.base));
}

void records_mail_send(struct record_world *w, const char *op_id, bool goods)
{
    Holdfast__V1__SendMailRequest request = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;
    char *uid = w->orb;

    request.player_id = w->ann;
    request.to_player_id = w->bob;
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(records_on(w, 0), "unheld");
    request.text = (char *)"good luck";
    request.currencies = records_amount_of(w, "gold", 20);
    request.n_currencies = goods;
    request.item_uids = &uid;
    request.n_item_uids = goods;
    request.expires_in_ms = 60000;
    assert_null(fixture_mutate(records_on(w, 0), METHOD_SEND_MAIL, &request.base));
}

void records_mail(struct record_world *w, const char *op_id)
{
    records_mail_send(w, op_id, true);
}

void records_text(struct record_world *w, const char *op_id)
{
    records_mail_send(w, op_id, false);
}

void records_post(struct record_world *w, const char *op_id)
{
    Holdfast__V1__ReserveCurrenciesRequest reserve = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__PostReservationRequest request = HOLDFAST__V1__POST_RESERVATION_REQUEST__INIT;

    reserve.player_id = request.player_id = w->ann;
    reserve.op_id = request.reserve_op_id = (char *)"claim:reserve";
    reserve.authority = request.authority = fixture_authority(records_on(w, 0), "unheld");
    reserve.currencies = records_amount_of(w, "gold", 40);
    reserve.n_currencies = 1;
    reserve.expires_in_ms = 600000;
    assert_non_null(fixture_mutate(records_on(w, 0), METHOD_RESERVE_CURRENCIES, &reserve.base));
    request.op_id = text_lend(op_id);
    request.to_player_id = w->bob;
    request.currencies = records_amount_of(w, "gold", 15); /* The rest is ann's again. */
    request.n_currencies = 1;
    assert_null(fixture_mutate(records_on(w, 0), METHOD_POST_RESERVATION, &request.base));
}

void records_swap(struct record_world *w, const char *op_id)
{
    Holdfast__Internal__V1__SwapGoodsRequest request =
        HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST__INIT;
    char *uid = w->orb;

    request.player_id = w->ann;
    request.op_id = text_lend(op_id);
    request.authority = request.other_authority = fixture_authority(records_on(w, 0), "unheld");
    request.other_player_id = w->bob;
    request.currencies = records_amount_of(w, "gold", 30);
    request.n_currencies = 1;
    request.item_uids = &uid;
    request.n_item_uids = 1;
    request.other_currencies = records_amount_of(w, "gems", 10);
    request.n_other_currencies = 1;
    assert_null(fixture_mutate(records_on(w, 0), METHOD_SWAP_GOODS, &request.base));
}

void records_buy(struct record_world *w, const char *op_id)
{
    (void)op_id;
    assert_null(records_grant(w, 0, w->receipt, records_amount_of(w, "gold", PAID)));
}

const struct record_kind record_kinds[RECORD_KINDS] = {
    { "currencies", records_pay, RECORD_KIND(MAIL) },
    { "items", records_give, RECORD_KIND(MAIL) },
    { "mail", records_mail, RECORD_KIND(MAIL) },
    { "text", records_text, RECORD_KIND(MAIL) },
    { "reservation", records_post, RECORD_KIND(MAIL) },
    { "transaction", records_swap, RECORD_KIND(PREPARE) },
    { "receipt", records_buy, RECORD_KIND(RECEIPT) },
};

const char *records_op_of(struct record_world *w, const struct record_kind *kind)
{
    return kind->kind == RECORD_KIND(RECEIPT) ? w->receipt : OP;
}

/* ---- all that there is ---- */

void records_count_mails(struct record_world *w, uint32_t shard, char *player,
                         struct record_wealth *ret)
{
    Holdfast__V1__ListMailRequest request = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;

    request.player_id = player;
    Holdfast__V1__ListMailResponse *list =
        fixture_read(records_on(w, shard), METHOD_LIST_MAIL, &request.base);
    assert_non_null(list);
    for (size_t i = 0; i < list->n_mails; i++) {
        ret->orbs += list->mails[i]->n_items;
        for (size_t j = 0; j < list->mails[i]->n_currencies; j++)
            ret->gold += list->mails[i]->currencies[j]->amount;
    }
    ret->mails += list->n_mails;
}

struct record_wealth records_wealth_of(struct record_world *w, uint32_t shard)
{
    char *player = shard == 0 ? w->ann : w->bob;
    struct record_wealth wealth = {
        .gold = fixture_balance(records_on(w, shard), player, "gold"),
        .gems = fixture_balance(records_on(w, shard), player, "gems"),
        .orbs = fixture_items(records_on(w, shard), player)->n_items,
    };

    records_count_mails(w, shard, player, &wealth);
    return wealth;
}

void records_assert_all_is_there(struct record_world *w, int64_t paid)
{
    const struct record_wealth ann = records_wealth_of(w, 0), bob = records_wealth_of(w, 1);

    assert_int_equal(ann.gold + bob.gold, 100 + paid);
    assert_int_equal(ann.gems + bob.gems, 100);
    assert_int_equal(ann.orbs + bob.orbs, 1);
    assert_int_equal(fixture_open_records(&w->s), 0);
}

void records_assert_as_before(struct record_world *w)
{
    const struct record_wealth ann = records_wealth_of(w, 0), bob = records_wealth_of(w, 1);

    records_assert_all_is_there(w, 0);
    assert_int_equal(ann.gold, 100);
    assert_int_equal(ann.orbs, 1);
    assert_int_equal(bob.gems, 100);
    assert_int_equal(ann.mails + bob.mails, 0);
}

int records_state_of(struct record_world *w, const char *op_id)
{
    return (int)fixture_operation(records_on(w, 0), w->ann, op_id)->state;
}

/* ---- damage and repair ---- */

void records_row_key(bool sent, uint64_t seq, struct row_key *key)
{
    if (sent)
        row_key_outbox(key, 1, seq);
    else
        row_key_inbox(key, 0, seq);
}

void records_spoil(struct record_world *w, bool sent, uint64_t seq)
{
    struct state *state = applier_state(records_on(w, sent ? 0 : 1)->applier);
    struct row_key key;

    records_row_key(sent, seq, &key);
    state_begin(state);
    state_put(state, row_key_slice(&key), SLICE_LITERAL("\xff\xfe"));
    state_commit(state);
}

channel_response *records_channel(struct record_world *w, uint32_t shard, uint64_t seq,
                                  const char *held)
{
    Holdfast__V1__GetChannelRequest request = HOLDFAST__V1__GET_CHANNEL_REQUEST__INIT;

    request.shard = shard;
    request.other_shard = 1 - shard;
    request.seq = seq;
    request.held_player_id = text_lend(held);
    channel_response *response =
        fixture_read(records_on(w, shard), METHOD_GET_CHANNEL, &request.base);
    assert_non_null(response);
    return response;
}

record_message *records_stated(struct record_world *w, const char *op_id)
{
    record_message *record =
        (record_message *)arena_message(&w->s.arena, &holdfast__v1__channel_record__descriptor);

    record->player_id = w->ann;
    record->op_id = text_lend(op_id);
    return record;
}

record_message *records_finish_stated(struct record_world *w, const char *player,
                                      Holdfast__V1__TransactionRef *ref)
{
    record_message *record = records_stated(w, OP);

    record->kind = RECORD_KIND(FINISH);
    record->n_player_ids = 1;
    record->player_ids = arena_alloc(&w->s.arena, sizeof *record->player_ids);
    record->player_ids[0] = text_lend(player);
    record->transaction = ref != NULL ? ref : records_channel(w, 1, 0, w->bob)->held_by;
    return record;
}

void records_prune(struct record_world *w, const char *op_id)
{
    struct state *rows = applier_state(records_on(w, 0)->applier);
    struct row_key key;
    struct op_id id;
    const char *why;

    CHECK(op_id_parse(slice_from_text(op_id), &id, &why) == ERR_OK);
    row_key_operation(&key, entity_of_player(&w->s.arena, w->ann), &id);
    state_begin(rows);
    state_delete(rows, row_key_slice(&key));
    state_commit(rows);
}

/* NULL: refused. */
repair_response *records_repair(struct record_world *w, bool sent, uint64_t seq,
                                repair_request *request)
{
    struct row_key key;

    records_row_key(sent, seq, &key);
    request->shard = sent ? 0 : 1;
    request->key = bytes_hex(&w->s.arena, row_key_slice(&key), STATE_KEY_BYTES_MAX);
    request->reason = (char *)"ticket 118";
    return fixture_mutate(records_on(w, request->shard), METHOD_REPAIR_ROW, &request->base);
}

repair_response *records_repair_sent(struct record_world *w, uint64_t seq, record_message *record)
{
    repair_request request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;

    request.record = record;
    return records_repair(w, true, seq, &request);
}

/* By what the sender tells of the record, and what a person adds. */
repair_response *records_repair_decision(struct record_world *w, uint64_t seq, int decision)
{
    repair_request request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    record_message record = *records_channel(w, 0, seq, "")->sent;

    record.decision = (Holdfast__V1__RecordDecision)decision;
    request.record =
        (record_message *)arena_unpack(&w->s.arena, &holdfast__v1__channel_record__descriptor,
                                       arena_pack(&w->s.arena, &record.base));
    return records_repair(w, false, seq, &request);
}

void records_refused(struct record_world *w, uint32_t shard, const char *field)
{
    assert_int_equal(records_on(w, shard)->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(records_on(w, shard)->error->field, field);
}

deliver_response *records_deliver(struct record_world *w)
{
    w->decided = fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1));
    return w->decided;
}

void records_of_each_kind(void **state,
                          void (*test)(struct record_world *w, const struct record_kind *kind))
{
    for (size_t i = 0; i < RECORD_KINDS; i++) {
        print_message("%s\n", record_kinds[i].name);
        test(*state, &record_kinds[i]);
        (void)records_teardown(state);
        (void)records_setup(state);
    }
}

/* What the next try of a purchase comes to; others have their outcome. */
void records_try_again(struct record_world *w, const struct record_kind *kind)
{
    if (kind->kind != RECORD_KIND(RECEIPT))
        return;
    assert_int_equal(records_state_of(w, w->receipt), OPERATION(UNKNOWN));
    kind->open(w, OP);
    fixture_carry_all(&w->s);
    assert_int_equal(records_state_of(w, w->receipt), OPERATION(COMMITTED));
    assert_int_equal(records_wealth_of(w, 0).gold, 100 + PAID);
    records_assert_all_is_there(w, PAID);
}
