/* A channel's row that cannot be read is made again from the other shard's knowledge: what was on
 * its way arrives, once. */
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture_shards.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/apply/apply.h"
#include "node/core/repair/row_repair.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__ChannelEnd channel_end;
typedef Holdfast__V1__GetChannelResponse channel_response;

/* Ann on shard 0 pays bob on shard 1. */
struct world {
    struct fixture_shards shards;
    char ann[16], bob[16];
};

static struct fixture *on(struct world *w, uint32_t shard)
{
    return &w->shards.shards[shard];
}

static int setup(void **state)
{
    struct world *w = mem_zalloc(sizeof *w);

    fixture_shards_init(&w->shards);
    fixture_name_on(0, "ann", w->ann);
    fixture_name_on(1, "bob", w->bob);
    assert_non_null(fixture_grant(on(w, 0), w->ann, "unheld", 100));
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    fixture_shards_deinit(&w->shards);
    free(w);
    return 0;
}

static void try_to_pay(struct world *w, int64_t gold)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = (char *)"gold";
    amount.amount = gold;
    request.player_id = w->ann;
    request.to_player_id = w->bob;
    request.op_id = fixture_op_id(on(w, 0));
    request.authority = fixture_authority(on(w, 0), "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_null(fixture_mutate(on(w, 0), METHOD_TRANSFER_CURRENCIES, &request.base));
}

static void pay(struct world *w, int64_t gold)
{
    try_to_pay(w, gold);
    assert_int_equal(on(w, 0)->outcome.kind, OUTCOME_PENDING);
}

static int64_t gold_of_ann(struct world *w)
{
    return fixture_balance(on(w, 0), w->ann, "gold");
}

/* What came to bob, in mails of one payment each. */
static size_t arrived(struct world *w, int64_t *ret_gold)
{
    Holdfast__V1__ListMailRequest request = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;

    request.player_id = w->bob;
    Holdfast__V1__ListMailResponse *list = fixture_read(on(w, 1), METHOD_LIST_MAIL, &request.base);
    assert_non_null(list);
    *ret_gold = 0;
    for (size_t i = 0; i < list->n_mails; i++)
        *ret_gold += list->mails[i]->currencies[0]->amount;
    return list->n_mails;
}

static channel_response *channel(struct world *w, uint32_t shard, uint32_t other)
{
    Holdfast__V1__GetChannelRequest request = HOLDFAST__V1__GET_CHANNEL_REQUEST__INIT;

    request.shard = shard;
    request.other_shard = other;
    return fixture_read(on(w, shard), METHOD_GET_CHANNEL, &request.base);
}

static void spoil(struct world *w, uint32_t shard, bool outgoing, uint32_t other)
{
    struct state *state = applier_state(on(w, shard)->applier);
    struct row_key key;

    row_key_channel(&key, outgoing, other);
    state_begin(state);
    state_put(state, row_key_slice(&key), SLICE_LITERAL("\xff\xfe"));
    state_commit(state);
}

static Holdfast__V1__RepairRowResponse *repair(struct world *w, uint32_t shard, const char *key,
                                               channel_end *end)
{
    Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;

    request.shard = shard;
    request.key = text_lend(key);
    request.reason = (char *)"ticket 118";
    request.other_end = end;
    return fixture_mutate(on(w, shard), METHOD_REPAIR_ROW, &request.base);
}

/* One payment of each kind: settled; decided, and that is lost; open; 1, 2, 4 and 8 gold. */
static deliver_request *pay_in_all_states(struct world *w)
{
    pay(w, 1);
    deliver_request *first = fixture_batch(&w->shards, 0, 1);
    fixture_settle(&w->shards, 0, 1, fixture_deliver(&w->shards, 1, first));
    pay(w, 2);
    (void)fixture_deliver(&w->shards, 1, fixture_batch(&w->shards, 0, 1));
    pay(w, 4);
    pay(w, 8);
    return first;
}

static void all_arrived_once(struct world *w)
{
    int64_t gold;

    fixture_carry_all(&w->shards);
    assert_int_equal(arrived(w, &gold), 4);
    assert_int_equal(gold, 15);
    assert_int_equal(gold_of_ann(w), 85);
    pay(w, 16);
    fixture_carry_all(&w->shards);
    assert_int_equal(arrived(w, &gold), 5);
    assert_int_equal(gold, 31);
    assert_int_equal(gold_of_ann(w), 69);
}

static void the_senders_row_is_made_again(void **state)
{
    struct world *w = *state;

    (void)pay_in_all_states(w);
    spoil(w, 0, true, 1);
    assert_true(channel(w, 0, 1)->outgoing->unreadable);
    try_to_pay(w, 16);
    assert_int_equal(on(w, 0)->error->code, ERROR(QUARANTINED));
    channel_end *other = channel(w, 1, 0)->incoming;
    assert_int_equal(other->last_seq, 2);
    assert_int_equal(other->watermark, 1);
    Holdfast__V1__RepairRowResponse *response = repair(w, 0, "636f0001", other);
    assert_non_null(response);
    assert_int_equal(response->channel->last_seq, 4);
    assert_int_equal(response->row->outcome,
                     HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_MADE_AGAIN);
    assert_string_equal(response->row->bytes, "fffe");
    assert_int_equal(on(w, 0)->outcome.channel.cancelled_seq, 2); /* Sent again from there. */
    all_arrived_once(w);
}

static void the_receivers_row_is_made_again(void **state)
{
    struct world *w = *state;
    deliver_request *late = pay_in_all_states(w);

    spoil(w, 1, false, 0);
    assert_true(channel(w, 1, 0)->incoming->unreadable);
    deliver_request *request = fixture_batch(&w->shards, 0, 1);
    assert_null(fixture_mutate(on(w, 1), METHOD_CHANNEL_DELIVER, &request->base));
    channel_end *other = channel(w, 0, 1)->outgoing;
    assert_int_equal(other->last_seq, 4);
    assert_int_equal(other->watermark, 1);
    Holdfast__V1__RepairRowResponse *response = repair(w, 1, "63690000", other);
    assert_non_null(response);
    assert_int_equal(response->channel->watermark, 1);
    /* A late copy of what was settled is decided no second time. */
    deliver_response *told = fixture_deliver(&w->shards, 1, late);
    assert_int_equal(told->results[0]->decision, DECISION(SETTLED));
    all_arrived_once(w);
}

/* As on a replica that has none of the rows in memory. */
static void rows_that_are_not_in_memory_are_asked_for(void **state)
{
    struct world *w = *state;

    (void)pay_in_all_states(w);
    spoil(w, 0, true, 1);
    channel_end end = *channel(w, 1, 0)->incoming;
    fixture_restart_all(&w->shards);
    Holdfast__V1__RepairRowResponse *response = repair(w, 0, "636f0001", &end);
    assert_non_null(response);
    assert_int_equal(response->channel->last_seq, 4);
    all_arrived_once(w);
}

/* The sender's row first, from what has rows of its own; then the receiver's from that. */
static void both_ends_are_made_again(struct world *w, bool restart)
{
    spoil(w, 0, true, 1);
    spoil(w, 1, false, 0);
    if (restart)
        fixture_restart_all(&w->shards);
    channel_end sender = *channel(w, 0, 1)->outgoing;
    assert_true(sender.unreadable);
    assert_null(repair(w, 1, "63690000", &sender)); /* Not yet. */
    assert_string_equal(on(w, 1)->error->field, "other_end");
    channel_end receiver = *channel(w, 1, 0)->incoming;
    assert_true(receiver.unreadable);
    assert_non_null(repair(w, 0, "636f0001", &receiver));
    sender = *channel(w, 0, 1)->outgoing;
    assert_false(sender.unreadable);
    assert_non_null(repair(w, 1, "63690000", &sender));
}

static void both_ends_are_made_again_from_what_has_rows(void **state)
{
    struct world *w = *state;

    (void)pay_in_all_states(w);
    both_ends_are_made_again(w, false);
    assert_int_equal(channel(w, 0, 1)->outgoing->last_seq, 4);
    assert_int_equal(channel(w, 0, 1)->outgoing->watermark, 1);
    all_arrived_once(w);
}

static void both_ends_are_made_again_from_disk(void **state)
{
    struct world *w = *state;

    (void)pay_in_all_states(w);
    both_ends_are_made_again(w, true);
    assert_int_equal(channel(w, 0, 1)->outgoing->last_seq, 4);
    all_arrived_once(w);
}

/* A decision is younger than all that is open: its number must not be used twice. */
static void a_record_that_was_settled_out_of_turn_keeps_its_number(void **state)
{
    struct world *w = *state;

    pay(w, 1);
    deliver_request *first = fixture_batch(&w->shards, 0, 1);
    pay(w, 2);
    deliver_request *second = fixture_batch(&w->shards, 0, 1);
    second->n_credits = 1;
    second->credits[0] = second->credits[1];
    fixture_settle(&w->shards, 0, 1, fixture_deliver(&w->shards, 1, second));
    both_ends_are_made_again(w, false);
    assert_int_equal(channel(w, 0, 1)->outgoing->last_seq, 2);
    assert_int_equal(channel(w, 0, 1)->outgoing->watermark, 0);
    fixture_settle(&w->shards, 0, 1, fixture_deliver(&w->shards, 1, first));
    pay(w, 12);
    pay(w, 16);
    int64_t gold;
    fixture_carry_all(&w->shards);
    assert_int_equal(arrived(w, &gold), 4);
    assert_int_equal(gold, 31);
}

/* Nothing has a row: a number that the channel never reached goes on. */
static void both_ends_of_a_channel_at_rest_begin_far_above(void **state)
{
    struct world *w = *state;
    int64_t gold;

    pay(w, 1);
    deliver_request *late = fixture_batch(&w->shards, 0, 1);
    fixture_carry_all(&w->shards);
    (void)fixture_deliver(&w->shards, 1, fixture_batch(&w->shards, 0, 1)); /* The watermark. */
    both_ends_are_made_again(w, true);
    uint64_t last = channel(w, 0, 1)->outgoing->last_seq;
    assert_true(last >= FIXTURE_START_MS);
    assert_int_equal(channel(w, 1, 0)->incoming->watermark, last);
    assert_int_equal(fixture_deliver(&w->shards, 1, late)->results[0]->decision, DECISION(SETTLED));
    pay(w, 2);
    assert_int_equal(channel(w, 0, 1)->outgoing->last_seq, last + 1);
    fixture_carry_all(&w->shards);
    assert_int_equal(arrived(w, &gold), 2);
    assert_int_equal(gold, 3);
    assert_int_equal(gold_of_ann(w), 97);
}

static void refused(struct world *w, const char *key, channel_end *end, const char *field)
{
    assert_null(repair(w, 0, key, end));
    assert_int_equal(on(w, 0)->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(on(w, 0)->error->field, field);
}

static void what_could_double_something_is_refused(void **state)
{
    struct world *w = *state;
    channel_end end;

    (void)pay_in_all_states(w);
    end = *channel(w, 1, 0)->incoming;
    refused(w, "636f0001", &end, "key"); /* It can be read. */
    assert_true(on(w, 0)->recorded);
    spoil(w, 0, true, 1);
    refused(w, "636f0001", NULL, "other_end");
    refused(w, "636f0000", &end, "key"); /* Itself. */
    refused(w, "636f0009", &end, "key"); /* There is no such shard. */
    refused(w, "63780001", &end, "key");
    refused(w, "5200", &end, "other_end"); /* Of another table. */
    end.watermark = end.last_seq + 1;
    refused(w, "636f0001", &end, "other_end.watermark");
    end = (channel_end)HOLDFAST__V1__CHANNEL_END__INIT;
    end.unreadable = true; /* Of the receiver's row: the sender's is to be repaired first. */
    refused(w, "63690001", &end, "other_end");
    end.unreadable = false;
    end.uncounted = true; /* It may have decided more. */
    refused(w, "636f0001", &end, "other_end");
    assert_false(on(w, 0)->recorded);
    assert_null(channel(w, 0, 0));
    assert_null(channel(w, 0, FIXTURE_SHARDS)); /* There are no so many. */
}

/* As another program might have logged it: no check stood before it. */
static void commit_repair(struct world *w, channel_end *end)
{
    Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    struct op op = { .method = METHOD_REPAIR_ROW };
    struct buf body = { 0 };

    request.key = (char *)"636f0001";
    request.other_end = end;
    op.request = arena_pack(&on(w, 0)->arena, &request.base);
    op_encode(&op, &body);
    fixture_commit(on(w, 0), buf_slice(&body));
    assert_int_equal(on(w, 0)->outcome.kind, OUTCOME_REFUSED);
    buf_deinit(&body);
}

static void an_entry_of_the_log_that_makes_no_sense_is_refused(void **state)
{
    struct world *w = *state;
    channel_end end = HOLDFAST__V1__CHANNEL_END__INIT;

    (void)pay_in_all_states(w);
    spoil(w, 0, true, 1);
    commit_repair(w, NULL);
    end.watermark = 1;
    commit_repair(w, &end);
    end.watermark = end.last_seq = UINT64_MAX;
    commit_repair(w, &end);
    end.watermark = 1; /* Every replica would count for hours. */
    end.last_seq = UINT64_MAX / 8;
    commit_repair(w, &end);
    end = (channel_end)HOLDFAST__V1__CHANNEL_END__INIT;
    end.unreadable = true;
    end.highest_record = UINT64_MAX / 8;
    commit_repair(w, &end);
    end.highest_record = UINT64_MAX;
    commit_repair(w, &end);
}

static void replicas_that_do_not_know_the_repair_are_waited_for(void **state)
{
    struct world *w = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(on(w, 0)->applier);

    (void)pay_in_all_states(w);
    spoil(w, 0, true, 1);
    channel_end end = *channel(w, 1, 0)->incoming;
    meta->apply_version = 3;
    assert_null(repair(w, 0, "636f0001", &end));
    assert_int_equal(on(w, 0)->error->code, ERROR(UNIMPLEMENTED));
    assert_false(on(w, 0)->recorded);
    meta->apply_version = APPLY_VERSION;
    assert_non_null(repair(w, 0, "636f0001", &end));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_senders_row_is_made_again),
        TEST(the_receivers_row_is_made_again),
        TEST(rows_that_are_not_in_memory_are_asked_for),
        TEST(both_ends_are_made_again_from_what_has_rows),
        TEST(both_ends_are_made_again_from_disk),
        TEST(a_record_that_was_settled_out_of_turn_keeps_its_number),
        TEST(both_ends_of_a_channel_at_rest_begin_far_above),
        TEST(what_could_double_something_is_refused),
        TEST(an_entry_of_the_log_that_makes_no_sense_is_refused),
        TEST(replicas_that_do_not_know_the_repair_are_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
