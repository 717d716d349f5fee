#include <stdio.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/channel/channel_out.h"
#include "node/core/goods/ledger.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

typedef Holdfast__Internal__V1__DeliverRequest deliver_request;

#define HERE   1u
#define SHARDS 2u

/* One credit of mail from shard 0 for a player of this shard; a test changes one thing of it. */
struct sent {
    struct fixture f;
    deliver_request request;
    Holdfast__Internal__V1__ChannelCredit credit, *credits[CHANNEL_BATCH_MAX + 1];
    Holdfast__V1__Mail mail;
    Holdfast__V1__CurrencyAmount amount, *amounts[LEDGER_CHANGES_MAX + 1];
    Holdfast__V1__Item item, *items[LEDGER_ITEMS_MAX + 1];
    uint64_t cancels[CHANNEL_BATCH_MAX + 1];
    uint8_t hash[sizeof(struct hash128)];
    char here[16], elsewhere[16];
};

static void name_on(uint32_t shard, char ret_name[16])
{
    char entity[32];
    uint32_t i = 0;

    do {
        snprintf(ret_name, 16, "bob%u", i++);
        snprintf(entity, sizeof entity, "player:%s", ret_name);
    } while (shard_of_entity(slice_from_text(entity), SHARDS) != shard);
}

static int setup(void **state)
{
    static struct sent s;

    s = (struct sent){ .request = HOLDFAST__INTERNAL__V1__DELIVER_REQUEST__INIT,
                       .credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT,
                       .mail = HOLDFAST__V1__MAIL__INIT,
                       .amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT,
                       .item = HOLDFAST__V1__ITEM__INIT };
    fixture_init_shard(&s.f, HERE, SHARDS);
    name_on(HERE, s.here);
    name_on(0, s.elsewhere);
    s.amount.currency = text_lend("gold");
    s.amount.amount = 5;
    s.item.uid = text_lend("00112233445566778899aabbccddeeff");
    for (size_t i = 0; i < ARRAY_SIZE(s.amounts); i++)
        s.amounts[i] = &s.amount;
    for (size_t i = 0; i < ARRAY_SIZE(s.items); i++)
        s.items[i] = &s.item;
    for (size_t i = 0; i < ARRAY_SIZE(s.credits); i++)
        s.credits[i] = &s.credit;
    s.mail.currencies = s.amounts;
    s.mail.n_currencies = 1;
    s.mail.items = s.items;
    s.credit.seq = 1;
    s.credit.mail = &s.mail;
    s.credit.op_id = text_lend("claim:a");
    s.credit.to_player_id = s.here;
    s.credit.payload_hash = (ProtobufCBinaryData){ sizeof s.hash, s.hash };
    s.request.shard = HERE;
    s.request.credits = s.credits;
    s.request.n_credits = 1;
    s.request.cancels = s.cancels;
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    fixture_deinit(&((struct sent *)*state)->f);
    return 0;
}

static bool prepare(struct sent *s)
{
    struct buf body = { 0 };
    bool prepared = fixture_prepare(&s->f, METHOD_CHANNEL_DELIVER, &s->request.base, &body);

    buf_deinit(&body);
    return prepared;
}

static void assert_refused(struct sent *s, const char *field)
{
    assert_false(prepare(s));
    assert_non_null(s->f.error);
    assert_string_equal(s->f.error->field, field);
}

static void a_source_is_another_shard(void **state)
{
    struct sent *s = *state;

    assert_true(prepare(s));
    s->request.source = HERE;
    assert_refused(s, "source");
    s->request.source = UINT16_MAX;
    assert_true(prepare(s));
    s->request.source = UINT16_MAX + 1;
    assert_refused(s, "source");
}

static void a_batch_has_a_limit(void **state)
{
    struct sent *s = *state;

    s->request.n_credits = CHANNEL_BATCH_MAX;
    s->request.n_cancels = CHANNEL_BATCH_MAX;
    assert_true(prepare(s));
    s->request.n_credits++;
    assert_refused(s, "credits");
    s->request.n_credits--;
    s->request.n_cancels++;
    assert_refused(s, "credits");
}

static void a_credit_is_numbered_hashed_and_of_one_kind(void **state)
{
    struct sent *s = *state;
    Holdfast__Internal__V1__ReceiptBind receipt = HOLDFAST__INTERNAL__V1__RECEIPT_BIND__INIT;

    s->credit.seq = 0;
    assert_refused(s, "credits");
    s->credit.seq = 1;
    s->credit.payload_hash.len--;
    assert_refused(s, "credits");
    s->credit.payload_hash.len++;
    s->credit.receipt = &receipt;
    assert_refused(s, "credits");
    s->credit.receipt = NULL;
    s->credit.mail = NULL;
    assert_refused(s, "credits");
    s->credit.mail = &s->mail;
    assert_true(prepare(s));
}

static void mail_is_for_a_player_of_this_shard(void **state)
{
    struct sent *s = *state;

    s->credit.to_player_id = s->elsewhere;
    assert_refused(s, "credits");
    s->credit.to_player_id = text_lend("");
    assert_refused(s, "credits");
    s->credit.to_player_id = text_lend("no player");
    assert_refused(s, "credits");
}

static void mail_carries_what_a_ledger_entry_can(void **state)
{
    struct sent *s = *state;

    s->mail.n_currencies = LEDGER_CHANGES_MAX;
    s->mail.n_items = LEDGER_ITEMS_MAX;
    assert_true(prepare(s));
    s->mail.n_currencies++;
    assert_refused(s, "credits");
    s->mail.n_currencies--;
    s->mail.n_items++;
    assert_refused(s, "credits");
    s->mail.n_items = 1;
    s->item.uid = text_lend("00112233445566778899aabbccddeef");
    assert_refused(s, "credits");
}

/* Another version of this program may have sent it: no credit of a batch is taken unread. */
static void one_that_is_not_sound_refuses_the_batch(void **state)
{
    struct sent *s = *state;
    Holdfast__Internal__V1__ChannelCredit other = s->credit;

    other.to_player_id = s->elsewhere;
    s->request.n_credits = 3;
    s->credits[2] = &other;
    assert_refused(s, "credits");
    s->credits[2] = &s->credit;
    s->credits[0] = &other;
    assert_refused(s, "credits");
}

static void a_receipt_is_bound_in_its_own_shard_for_a_player(void **state)
{
    struct sent *s = *state;
    Holdfast__Internal__V1__ReceiptBind bind = HOLDFAST__INTERNAL__V1__RECEIPT_BIND__INIT;
    char receipt[32];
    uint32_t i = 0;

    do {
        snprintf(receipt, sizeof receipt, "receipt:r%u", i++);
    } while (shard_of_entity(slice_from_text(receipt), SHARDS) != HERE);
    bind.player_id = s->elsewhere; /* The receipt's shard binds it, whatever the player's. */
    bind.payload = s->credit.payload_hash;
    s->credit.mail = NULL;
    s->credit.receipt = &bind;
    s->credit.op_id = receipt;
    assert_true(prepare(s));
    bind.payload.len--;
    assert_refused(s, "credits");
    bind.payload.len++;
    bind.player_id = text_lend("");
    assert_refused(s, "credits");
    bind.player_id = s->elsewhere;
    s->credit.op_id = text_lend("claim:a");
    assert_refused(s, "credits");
    do {
        snprintf(receipt, sizeof receipt, "receipt:r%u", i++);
    } while (shard_of_entity(slice_from_text(receipt), SHARDS) == HERE);
    s->credit.op_id = receipt;
    assert_refused(s, "credits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_source_is_another_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_has_a_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_credit_is_numbered_hashed_and_of_one_kind, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(mail_is_for_a_player_of_this_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(mail_carries_what_a_ledger_entry_can, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_not_sound_refuses_the_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(a_receipt_is_bound_in_its_own_shard_for_a_player, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
