#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/ledger.h"
#include "node/core/rows/rows.h"
#include "node/core/transaction/txn_row.h"
#include "node/rpc/fixture.h"
#include "node/rpc/fixture_nonsense.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

typedef Holdfast__Internal__V1__DeliverRequest deliver_request;

#define HERE   1u
#define SHARDS 2u

#define HELD    HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_HELD
#define APPLIED HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_APPLIED

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

/* It is logged without what it says, and decided by no rule. */
static void assert_held(struct sent *s)
{
    const Holdfast__Internal__V1__DeliverResponse *response =
        fixture_mutate(&s->f, METHOD_CHANNEL_DELIVER, &s->request.base);

    assert_non_null(response);
    assert_int_equal(response->results[0]->decision, HELD);
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

    s->credit.seq = 0; /* Nothing could be answered of it. */
    assert_refused(s, "credits");
    s->credit.seq = 1;
    s->credit.payload_hash.len--;
    assert_held(s);
    s->credit.payload_hash.len++;
    s->credit.receipt = &receipt;
    assert_held(s);
    s->credit.receipt = NULL;
    s->credit.mail = NULL;
    assert_held(s);
    s->credit.mail = &s->mail;
    assert_true(prepare(s));
}

static void mail_is_for_a_player_of_this_shard(void **state)
{
    struct sent *s = *state;

    s->credit.to_player_id = s->elsewhere;
    assert_held(s);
    s->credit.to_player_id = text_lend("");
    assert_held(s);
    s->credit.to_player_id = text_lend("no player");
    assert_held(s);
}

static void mail_carries_what_a_ledger_entry_can(void **state)
{
    struct sent *s = *state;

    s->mail.n_currencies = LEDGER_CHANGES_MAX;
    s->mail.n_items = LEDGER_ITEMS_MAX;
    assert_true(prepare(s));
    s->mail.n_currencies++;
    assert_held(s);
    s->mail.n_currencies--;
    s->mail.n_items++;
    assert_held(s);
    s->mail.n_items = 1;
    s->item.uid = text_lend("00112233445566778899aabbccddeef");
    assert_held(s);
}

/* Another version of this program may have sent it. */
static void one_that_is_not_sound_is_held_alone(void **state)
{
    struct sent *s = *state;
    Holdfast__Internal__V1__ChannelCredit list[3] = { s->credit, s->credit, s->credit };

    for (uint32_t i = 0; i < 3; i++) {
        list[i].seq = i + 1;
        s->credits[i] = &list[i];
    }
    list[1].to_player_id = s->elsewhere;
    s->request.n_credits = 3;
    for (uint32_t round = 0; round < 2; round++) {
        const Holdfast__Internal__V1__DeliverResponse *response =
            fixture_mutate(&s->f, METHOD_CHANNEL_DELIVER, &s->request.base);

        assert_non_null(response);
        assert_int_equal(response->n_results, 3);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(response->results[i]->seq, i + 1);
            assert_int_equal(response->results[i]->decision, i == 1 ? HELD : APPLIED);
        }
    }
    list[1].to_player_id = s->here; /* Its sender was mended. */
    const Holdfast__Internal__V1__DeliverResponse *response =
        fixture_mutate(&s->f, METHOD_CHANNEL_DELIVER, &s->request.base);

    assert_int_equal(response->results[1]->decision, APPLIED);
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
    assert_held(s);
    bind.payload.len++;
    bind.player_id = text_lend("");
    assert_held(s);
    bind.player_id = s->elsewhere;
    s->credit.op_id = text_lend("claim:a");
    assert_held(s);
    do {
        snprintf(receipt, sizeof receipt, "receipt:r%u", i++);
    } while (shard_of_entity(slice_from_text(receipt), SHARDS) == HERE);
    s->credit.op_id = receipt;
    assert_held(s);
}

/* ---- what no program wrote ---- */

static void claim(struct sent *s)
{
    Holdfast__V1__ListMailRequest list = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;
    Holdfast__V1__ClaimMailRequest claim = HOLDFAST__V1__CLAIM_MAIL_REQUEST__INIT;

    list.player_id = claim.player_id = s->here;
    const Holdfast__V1__ListMailResponse *mails = fixture_read(&s->f, METHOD_LIST_MAIL, &list.base);
    if (mails == NULL || mails->n_mails == 0)
        return;
    char *id = strdup(mails->mails[0]->mail_id);
    claim.op_id = fixture_op_id(&s->f);
    claim.authority = fixture_authority(&s->f, "unheld");
    claim.mail_ids = &id;
    claim.n_mail_ids = 1;
    (void)fixture_mutate(&s->f, METHOD_CLAIM_MAIL, &claim.base);
    free(id);
}

/* Whatever a sender, perhaps of another version, puts in a record: it is refused before the log, or
 * carried out, and so is what follows from it. `before` and `after` are sound. How many ways were
 * carried out. */
static uint32_t deliver_nonsense(struct sent *s, const ProtobufCMessage *before,
                                 const ProtobufCMessage *after)
{
    const ProtobufCMessageDescriptor *descriptor = s->request.base.descriptor;
    struct arena arena = { 0 };
    struct slice packed = arena_pack(&arena, &s->request.base);
    struct buf other = { 0 };
    uint32_t carried_out = 0, way = 0;

    for (; nonsense_message(descriptor, packed, way, &other); way++) {
        fixture_deinit(&s->f);
        fixture_init_shard(&s->f, HERE, SHARDS);
        (void)fixture_grant(&s->f, s->here, "system:payments", 1000);
        if (before != NULL)
            assert_non_null(fixture_mutate(&s->f, METHOD_CHANNEL_DELIVER, before));
        const ProtobufCMessage *spoilt = arena_unpack(&arena, descriptor, buf_slice(&other));
        if (spoilt != NULL)
            carried_out += fixture_mutate(&s->f, METHOD_CHANNEL_DELIVER, spoilt) != NULL;
        if (after != NULL)
            (void)fixture_mutate(&s->f, METHOD_CHANNEL_DELIVER, after);
        claim(s);
        fixture_restart(&s->f);
        assert_non_null(fixture_grant(&s->f, "another", "system:payments", 1));
        buf_clear(&other);
    }
    assert_true(way > 10 && carried_out < way);
    buf_deinit(&other);
    arena_deinit(&arena);
    return carried_out;
}

static void mail_of_nonsense_stops_no_shard(void **state)
{
    struct sent *s = *state;

    s->mail.n_items = 1;
    s->mail.text = text_lend("hello");
    s->item.kind = text_lend("sword");
    s->item.attributes = text_lend("{}");
    assert_true(deliver_nonsense(s, NULL, NULL) > 0);
}

/* A transaction of shard 0: takes and gives gold, makes an item and edits a section here. */
struct traded {
    Holdfast__Internal__V1__TxnRef ref;
    Holdfast__Internal__V1__StoredAuthority authority;
    Holdfast__Internal__V1__StoredUnheld unheld;
    Holdfast__V1__ItemSpec spec, *specs[1];
    Holdfast__V1__PatchStep step, *steps[1];
    Holdfast__V1__PatchList patch;
    Holdfast__V1__SectionEdit merge, change, *edits[2];
    Holdfast__V1__TransactionCheck check, *checks[1];
    Holdfast__Internal__V1__TxnPart part, *parts[1];
    Holdfast__Internal__V1__TxnPrepare prepare;
    Holdfast__Internal__V1__TxnGive give, *gives[1];
    Holdfast__Internal__V1__TxnFinish finish;
    Holdfast__Internal__V1__ChannelCredit credit, *credits[1];
    deliver_request finish_request;
    char *removed[1];
};

static void part_fill(struct sent *s, struct traded *t)
{
    Holdfast__Internal__V1__TxnPart *part = &t->part;

    t->authority.kind_case = HOLDFAST__INTERNAL__V1__STORED_AUTHORITY__KIND_UNHELD;
    t->authority.unheld = &t->unheld;
    t->spec.kind = text_lend("sword");
    t->spec.attributes = text_lend("{}");
    t->removed[0] = text_lend("/b");
    t->merge.name = t->change.name = text_lend("progression");
    t->merge.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_MERGE;
    t->merge.merge = text_lend("{\"xp\":1}");
    t->merge.remove = t->removed;
    t->merge.n_remove = 1;
    t->step.kind = HOLDFAST__V1__PATCH_KIND__PATCH_KIND_INCREMENT;
    t->step.path = text_lend("/xp");
    t->step.json = text_lend("1");
    t->patch.steps = t->steps;
    t->patch.n_steps = 1;
    t->change.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_PATCH;
    t->change.patch = &t->patch;
    t->check.check_case = HOLDFAST__V1__TRANSACTION_CHECK__CHECK_BALANCE;
    t->check.balance = &s->amount;
    part->player_id = s->here;
    part->authority = &t->authority;
    part->checks = t->checks;
    part->take = part->give = s->amounts;
    part->mint = t->specs;
    part->n_checks = part->n_take = part->n_give = part->n_mint = 1;
    part->edits = t->edits;
    part->n_edits = 2;
}

static void traded_init(struct sent *s, struct traded *t)
{
    *t = (struct traded){ .ref = HOLDFAST__INTERNAL__V1__TXN_REF__INIT,
                          .authority = HOLDFAST__INTERNAL__V1__STORED_AUTHORITY__INIT,
                          .unheld = HOLDFAST__INTERNAL__V1__STORED_UNHELD__INIT,
                          .spec = HOLDFAST__V1__ITEM_SPEC__INIT,
                          .step = HOLDFAST__V1__PATCH_STEP__INIT,
                          .patch = HOLDFAST__V1__PATCH_LIST__INIT,
                          .merge = HOLDFAST__V1__SECTION_EDIT__INIT,
                          .change = HOLDFAST__V1__SECTION_EDIT__INIT,
                          .check = HOLDFAST__V1__TRANSACTION_CHECK__INIT,
                          .part = HOLDFAST__INTERNAL__V1__TXN_PART__INIT,
                          .prepare = HOLDFAST__INTERNAL__V1__TXN_PREPARE__INIT,
                          .give = HOLDFAST__INTERNAL__V1__TXN_GIVE__INIT,
                          .finish = HOLDFAST__INTERNAL__V1__TXN_FINISH__INIT,
                          .credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT,
                          .finish_request = HOLDFAST__INTERNAL__V1__DELIVER_REQUEST__INIT };
    t->specs[0] = &t->spec;
    t->steps[0] = &t->step;
    t->edits[0] = &t->merge;
    t->edits[1] = &t->change;
    t->checks[0] = &t->check;
    t->parts[0] = &t->part;
    t->gives[0] = &t->give;
    t->credits[0] = &t->credit;
    part_fill(s, t);
    t->ref.destination = HERE;
    t->ref.seq = 1;
    t->prepare.txn = t->finish.txn = &t->ref;
    t->prepare.player_id = s->elsewhere;
    t->prepare.reason = text_lend("trade");
    t->prepare.parts = t->parts;
    t->prepare.n_parts = 1;
    t->finish.commit = true;
    t->finish.gives = t->gives;
    t->finish.n_gives = 1;
    t->give.player_id = s->here;
    t->give.items = s->items;
    s->item.kind = text_lend("orb");
    s->credit.mail = NULL;
    s->credit.prepare = &t->prepare;
    t->credit = s->credit;
    t->credit.seq = 2;
    t->credit.prepare = NULL;
    t->credit.finish = &t->finish;
    t->finish_request.shard = HERE;
    t->finish_request.credits = t->credits;
    t->finish_request.n_credits = 1;
}

static void a_prepare_of_nonsense_stops_no_shard(void **state)
{
    struct sent *s = *state;
    struct traded t;

    traded_init(s, &t);
    t.give.n_items = LEDGER_ITEMS_MAX; /* More than the part says: no room beside what it makes. */
    assert_true(deliver_nonsense(s, NULL, &t.finish_request.base) > 0);
}

static void a_finish_of_nonsense_stops_no_shard(void **state)
{
    struct sent *s = *state;
    struct traded t;

    traded_init(s, &t);
    t.give.n_items = 1;
    deliver_request prepare_request = s->request;
    Holdfast__Internal__V1__ChannelCredit prepare = s->credit, *credits[] = { &prepare };
    prepare_request.credits = credits;
    s->credit = t.credit;
    assert_true(deliver_nonsense(s, &prepare_request.base, NULL) > 0);
}

/* What comes back is logged by the home shard, and applied: it is looked at before that. */
static void a_vote_is_bounded_as_a_record_is(void **state)
{
    struct sent *s = *state;
    Holdfast__Internal__V1__TxnVote vote = HOLDFAST__INTERNAL__V1__TXN_VOTE__INIT;
    Holdfast__Internal__V1__TxnTaken taken = HOLDFAST__INTERNAL__V1__TXN_TAKEN__INIT;
    Holdfast__Internal__V1__TxnTaken *list[] = { &taken };
    char longer[ITEM_ATTRIBUTES_ROW_MAX + 2];

    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    vote.taken = list;
    assert_false(txn_vote_is_sound(&vote));
    vote.n_taken = 1;
    taken.player_id = s->here;
    taken.items = s->items;
    taken.n_items = 1;
    assert_true(txn_vote_is_sound(&vote));
    s->item.attributes = longer + 1;
    assert_true(txn_vote_is_sound(&vote));
    s->item.attributes = longer;
    assert_false(txn_vote_is_sound(&vote));
    s->item.attributes = longer + sizeof longer - 1;
    s->item.kind = longer + sizeof longer - 1 - ITEM_KIND_ROW_MAX;
    assert_true(txn_vote_is_sound(&vote));
    s->item.kind--;
    assert_false(txn_vote_is_sound(&vote));
    s->item.kind++;
    taken.player_id = longer;
    assert_false(txn_vote_is_sound(&vote));
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
        cmocka_unit_test_setup_teardown(one_that_is_not_sound_is_held_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_receipt_is_bound_in_its_own_shard_for_a_player, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(mail_of_nonsense_stops_no_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(a_prepare_of_nonsense_stops_no_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(a_finish_of_nonsense_stops_no_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(a_vote_is_bounded_as_a_record_is, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
