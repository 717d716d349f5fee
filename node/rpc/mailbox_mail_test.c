#include "node/rpc/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/goods/mailbox.h"
#include "runtime/base/check.h"

#define MINUTE_MS 60000u

typedef Holdfast__V1__SendMailResponse send_response;
typedef Holdfast__V1__ListMailResponse list_response;
typedef Holdfast__V1__ClaimMailResponse claim_response;

/* The whole cluster is one shard: everything is one entry. */
static int setup_one_shard(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);
    fixture_init_shard(f, 0, 1);
    *state = f;
    return 0;
}

static char *mint(struct fixture *f, const char *player)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec spec = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *specs[] = { &spec };

    spec.kind = (char *)"sword";
    spec.attributes = (char *)"{\"edge\":2}";
    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.items = specs;
    request.n_items = 1;
    Holdfast__V1__GrantResponse *response = fixture_mutate(f, METHOD_GRANT, &request.base);
    assert_non_null(response);
    return response->item_uids[0];
}

struct sending {
    const char *from, *to, *uid, *text, *authority, *op_id;
    int64_t gold;
    uint64_t expires_in_ms;
};

static send_response *send(struct fixture *f, const struct sending *s)
{
    Holdfast__V1__SendMailRequest request = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    char *uids[] = { text_lend(s->uid) };

    gold.currency = (char *)"gold";
    gold.amount = s->gold;
    request.player_id = text_lend(s->from);
    request.to_player_id = text_lend(s->to != NULL ? s->to : "");
    request.op_id = s->op_id != NULL ? text_lend(s->op_id) : fixture_op_id(f);
    request.authority = fixture_authority(f, s->authority != NULL ? s->authority : "unheld");
    request.currencies = amounts;
    request.n_currencies = s->gold != 0;
    request.item_uids = uids;
    request.n_item_uids = s->uid != NULL;
    request.text = text_lend(s->text != NULL ? s->text : "");
    request.expires_in_ms = s->expires_in_ms;
    return fixture_mutate(f, METHOD_SEND_MAIL, &request.base);
}

static list_response *list(struct fixture *f, const char *player)
{
    Holdfast__V1__ListMailRequest request = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;

    request.player_id = text_lend(player);
    return fixture_read(f, METHOD_LIST_MAIL, &request.base);
}

static claim_response *claim(struct fixture *f, const char *player, const char *mail_id)
{
    Holdfast__V1__ClaimMailRequest request = HOLDFAST__V1__CLAIM_MAIL_REQUEST__INIT;
    char *ids[] = { text_lend(mail_id) };

    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.mail_ids = ids;
    request.n_mail_ids = 1;
    return fixture_mutate(f, METHOD_CLAIM_MAIL, &request.base);
}

static uint32_t items_of(struct fixture *f, const char *player)
{
    Holdfast__V1__ListItemsRequest request = HOLDFAST__V1__LIST_ITEMS_REQUEST__INIT;

    request.player_id = text_lend(player);
    Holdfast__V1__ListItemsResponse *response = fixture_read(f, METHOD_LIST_ITEMS, &request.base);
    assert_non_null(response);
    return response->total;
}

static void what_is_sent_lies_in_the_mailbox_until_it_is_claimed(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    char *uid = mint(f, "ann");
    send_response *sent = send(
        f, &(struct sending){ .from = "ann", .to = "bob", .gold = 4, .uid = uid, .text = "hi" });
    assert_non_null(sent);
    assert_int_equal(sent->balances[0]->amount, 6);
    assert_string_equal(sent->items[0]->uid, uid);
    assert_int_equal(items_of(f, "ann"), 0);
    fixture_restart(f);
    list_response *mail = list(f, "bob");
    assert_int_equal(mail->total, 1);
    assert_string_equal(mail->mails[0]->mail_id, sent->mail_id);
    assert_string_equal(mail->mails[0]->from_player_id, "ann");
    assert_string_equal(mail->mails[0]->text, "hi");
    assert_int_equal(fixture_balance(f, "bob", "gold"), 0);
    claim_response *claimed = claim(f, "bob", sent->mail_id);
    assert_non_null(claimed);
    assert_int_equal(claimed->balances[0]->amount, 4);
    assert_string_equal(claimed->items[0]->uid, uid);
    assert_string_equal(claimed->items[0]->attributes, "{\"edge\":2}");
    assert_int_equal(items_of(f, "bob"), 1);
    assert_int_equal(list(f, "bob")->total, 0);
    assert_null(claim(f, "bob", sent->mail_id));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_int_equal(items_of(f, "bob"), 1);
}

static Holdfast__V1__LedgerEntry *newest_entry(struct fixture *f, const char *player)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = text_lend(player);
    Holdfast__V1__ListEntriesResponse *told = fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
    assert_non_null(told);
    assert_true(told->n_entries > 0);
    return told->entries[0];
}

/* An investigator goes from ledger to ledger by what entries say. */
static void sender_and_recipient_name_each_other_and_one_operation(void **state)
{
    struct fixture *f = *state;
    struct fixture_sums sums;
    char *uid = mint(f, "ann");

    send_response *sent =
        send(f, &(struct sending){ .from = "ann", .to = "bob", .uid = uid, .op_id = "claim:gift" });
    assert_non_null(sent);
    Holdfast__V1__LedgerEntry *left = newest_entry(f, "ann");
    assert_int_equal(left->n_counterparts, 1);
    assert_string_equal(left->counterparts[0], "bob");
    assert_string_equal(left->op_id, "claim:gift");
    assert_string_equal(left->mail_op_id, "");
    assert_true(left->items_taken);
    assert_non_null(claim(f, "bob", sent->mail_id));
    Holdfast__V1__LedgerEntry *came = newest_entry(f, "bob");
    assert_int_equal(came->n_counterparts, 1);
    assert_string_equal(came->counterparts[0], "ann");
    assert_string_equal(came->mail_op_id, "claim:gift");
    assert_false(came->items_taken);
    fixture_restart(f);
    fixture_audit(f, "ann", "gold", &sums);
    fixture_audit(f, "bob", "gold", &sums);
}

static void an_item_moves_with_what_is_written_on_it_and_only_once(void **state)
{
    struct fixture *f = *state;
    char *uid = mint(f, "ann");

    assert_non_null(send(f, &(struct sending){ .from = "ann", .to = "bob", .uid = uid }));
    assert_null(send(f, &(struct sending){ .from = "ann", .to = "cid", .uid = uid }));
    assert_int_equal(f->error->code, ERROR(ITEM_NOT_HELD));
    assert_string_equal(f->error->field, "item_uids[0]");
    assert_null(send(f, &(struct sending){ .from = "bob", .to = "cid", .uid = uid }));
    assert_int_equal(f->error->code, ERROR(ITEM_NOT_HELD));
}

static void bad_sendings_move_nothing(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    assert_null(send(f, &(struct sending){ .from = "ann", .to = "ann", .gold = 1 }));
    assert_string_equal(f->error->field, "to_player_id");
    assert_null(send(f, &(struct sending){ .from = "ann", .to = "", .gold = 1 }));
    assert_string_equal(f->error->field, "to_player_id");
    assert_null(send(f, &(struct sending){ .from = "ann", .to = "bob" }));
    assert_string_equal(f->error->field, "text");
    assert_null(send(f, &(struct sending){ .from = "ann", .to = "bob", .gold = -1 }));
    assert_string_equal(f->error->field, "currencies[\"gold\"].amount");
    assert_null(send(f, &(struct sending){ .from = "ann", .to = "bob", .gold = 11 }));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_null(send(f, &(struct sending){ .from = "ann", .to = "bob", .uid = "nonsense" }));
    assert_string_equal(f->error->field, "item_uids[0]");
    assert_null(
        send(f, &(struct sending){ .from = "ann", .to = "bob", .gold = 1, .expires_in_ms = 5 }));
    assert_string_equal(f->error->field, "expires_in_ms");
    assert_null(send(
        f, &(struct sending){ .from = "ann", .to = "bob", .gold = 1, .authority = "system:mail" }));
    assert_string_equal(f->error->field, "authority");
    assert_non_null(strstr(f->error->limit, "MailboxService.DeliverMail"));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 10);
    assert_int_equal(list(f, "bob")->total, 0);
}

static void a_retry_moves_nothing_more(void **state)
{
    struct fixture *f = *state;
    struct sending s = { .from = "ann", .to = "bob", .gold = 4, .op_id = "claim:1" };

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    send_response *first = send(f, &s);
    assert_non_null(first);
    send_response *again = send(f, &s);
    assert_non_null(again);
    assert_true(again->write->duplicate);
    assert_string_equal(again->mail_id, first->mail_id);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 6);
    assert_int_equal(list(f, "bob")->total, 1);
}

struct delivering {
    const char *to, *text, *authority, *op_id;
    int64_t gold;
    size_t hats;
};

static Holdfast__V1__MailDelivery *deliver(struct fixture *f, const struct delivering *d)
{
    Holdfast__Internal__V1__DeliverToPlayerRequest request =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYER_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    Holdfast__V1__ItemSpec hat = HOLDFAST__V1__ITEM_SPEC__INIT, *items[] = { &hat, &hat };

    gold.currency = (char *)"gold";
    gold.amount = d->gold;
    hat.kind = (char *)"hat";
    request.player_id = text_lend(d->to);
    request.op_id = d->op_id != NULL ? text_lend(d->op_id) : fixture_op_id(f);
    request.authority = fixture_authority(f, d->authority != NULL ? d->authority : "system:mail");
    request.currencies = amounts;
    request.n_currencies = d->gold != 0;
    request.items = items;
    request.n_items = d->hats;
    request.text = text_lend(d->text != NULL ? d->text : "");
    return fixture_mutate(f, METHOD_DELIVER_TO_PLAYER, &request.base);
}

static void what_is_delivered_is_new_and_disturbs_no_session(void **state)
{
    struct fixture *f = *state;
    char *token = fixture_start(f, "ann", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                fixture_op_id(f));

    Holdfast__V1__MailDelivery *made =
        deliver(f, &(struct delivering){ .to = "ann", .gold = 7, .hats = 2, .text = "gl" });
    assert_non_null(made);
    assert_int_equal(made->ledger_seq, 1);
    assert_int_equal(made->n_items, 2);
    assert_string_equal(made->items[0]->kind, "hat");
    char *uid = strdup(made->items[1]->uid), *mail_id = strdup(made->mail_id);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 0);
    assert_null(claim(f, "ann", mail_id)); /* Held: not without the session. */
    assert_int_equal(f->error->code, ERROR(SESSION_LOCKED));
    assert_non_null(fixture_grant(f, "ann", token, 1));
    assert_non_null(fixture_end(f, "ann", token));
    list_response *mail = list(f, "ann");
    assert_int_equal(mail->total, 1);
    assert_string_equal(mail->mails[0]->mail_id, mail_id);
    assert_string_equal(mail->mails[0]->from_player_id, "");
    assert_string_equal(mail->mails[0]->text, "gl");
    assert_int_equal(mail->mails[0]->expires_at_ms, 0);
    claim_response *claimed = claim(f, "ann", mail_id);
    assert_non_null(claimed);
    assert_int_equal(claimed->balances[0]->amount, 8);
    assert_string_equal(claimed->items[1]->uid, uid);
    free(uid);
    free(mail_id);
}

static void assert_not_reversible(struct fixture *f, const char *player, const char *op_id,
                                  const char *kind)
{
    Holdfast__V1__ReverseEntryRequest request = HOLDFAST__V1__REVERSE_ENTRY_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.target_op_id = text_lend(op_id);
    request.reason = (char *)"mistake";
    assert_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
    assert_int_equal(f->error->code, ERROR(NOT_REVERSIBLE));
    assert_string_equal(f->error->value, kind);
}

static void what_mail_wrote_is_refused_as_not_reversible(void **state)
{
    struct fixture *f = *state;
    struct sending s = { .from = "ann", .to = "bob", .gold = 4, .op_id = "claim:send" };
    struct delivering d = { .to = "bob", .gold = 4, .op_id = "claim:deliver" };

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    send_response *sent = send(f, &s);
    assert_non_null(sent);
    assert_non_null(deliver(f, &d));
    claim_response *claimed = claim(f, "bob", sent->mail_id);
    assert_non_null(claimed);
    assert_not_reversible(f, "ann", "claim:send", "TRANSFER");
    assert_not_reversible(f, "bob", "claim:deliver", "MAIL");
}

static void a_delivery_is_made_once_for_each_player(void **state)
{
    struct delivering d = { .to = "ann", .gold = 3, .hats = 1, .op_id = "season:3" };
    struct fixture *f = *state;

    Holdfast__V1__MailDelivery *first = deliver(f, &d);
    assert_non_null(first);
    char *mail_id = strdup(first->mail_id);
    Holdfast__V1__MailDelivery *again = deliver(f, &d);
    assert_non_null(again);
    assert_true(again->write->duplicate);
    assert_string_equal(again->mail_id, mail_id);
    d.gold = 4;
    assert_null(deliver(f, &d));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    d.to = "bob"; /* Another entity: another operation. */
    assert_non_null(deliver(f, &d));
    assert_int_equal(list(f, "ann")->total, 1);
    assert_int_equal(list(f, "bob")->total, 1);
    assert_string_equal(fixture_operation(f, "ann", "season:3")->method,
                        "holdfast.v1.MailboxService/DeliverMail");
    free(mail_id);
}

static void only_the_system_delivers_and_something(void **state)
{
    struct fixture *f = *state;

    assert_null(deliver(f, &(struct delivering){ .to = "ann", .gold = 1, .authority = "unheld" }));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    assert_null(deliver(f, &(struct delivering){ .to = "ann" }));
    assert_string_equal(f->error->field, "text");
    assert_null(deliver(f, &(struct delivering){ .to = "ann", .gold = -1 }));
    assert_string_equal(f->error->field, "currencies[\"gold\"].amount");
    assert_int_equal(list(f, "ann")->total, 0);
}

/* Which callers may no longer ask for; what stands in a log keeps its effect. */
static void an_earlier_log_has_new_goods_in_send_mail(void **state)
{
    Holdfast__V1__SendMailRequest request = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    Holdfast__V1__ItemSpec hat = HOLDFAST__V1__ITEM_SPEC__INIT, *items[] = { &hat };
    struct op op = { .method = METHOD_SEND_MAIL };
    struct fixture *f = *state;
    struct buf packed = { 0 }, body = { 0 };
    const char *why;

    gold.currency = (char *)"gold";
    gold.amount = 7;
    hat.kind = (char *)"hat";
    hat.attributes = (char *)"{}";
    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:season-2";
    request.currencies = amounts;
    request.n_currencies = 1;
    request.mint = items;
    request.n_mint = 1;
    size_t size = protobuf_c_message_get_packed_size(&request.base);
    protobuf_c_message_pack(&request.base, buf_reserve(&packed, size));
    packed.size = size;
    op.entity = SLICE_LITERAL("player:ann");
    op.authority = (struct authority){ .kind = AUTHORITY_SYSTEM, .scope = SLICE_LITERAL("mail") };
    op.request = buf_slice(&packed);
    assert_int_equal(op_id_parse(SLICE_LITERAL("claim:season-2"), &op.id, &why), ERR_OK);
    op_encode(&op, &body);
    fixture_commit(f, buf_slice(&body));
    assert_int_equal(f->outcome.kind, OUTCOME_COMMITTED);
    list_response *mail = list(f, "ann");
    assert_int_equal(mail->total, 1);
    assert_int_equal(mail->mails[0]->currencies[0]->amount, 7);
    assert_string_equal(mail->mails[0]->items[0]->kind, "hat");
    request.authority = fixture_authority(f, "unheld");
    request.to_player_id = (char *)"bob";
    assert_null(fixture_mutate(f, METHOD_SEND_MAIL, &request.base));
    assert_string_equal(f->error->field, "mint");
    buf_deinit(&packed);
    buf_deinit(&body);
}

static Holdfast__V1__ReturnExpiredMailResponse *return_expired(struct fixture *f,
                                                               const char *player)
{
    Holdfast__V1__ReturnExpiredMailRequest request =
        HOLDFAST__V1__RETURN_EXPIRED_MAIL_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "system:mail");
    return fixture_mutate(f, METHOD_RETURN_EXPIRED_MAIL, &request.base);
}

static void expired_mail_comes_back_to_its_sender_and_then_stays(void **state)
{
    struct fixture *f = *state;
    struct sending s = { .from = "ann", .to = "bob", .gold = 4, .expires_in_ms = MINUTE_MS };

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    assert_non_null(send(f, &s));
    s.expires_in_ms = 0;
    assert_non_null(send(f, &s));
    assert_int_equal(return_expired(f, "bob")->returned, 0);
    f->now_ms += MINUTE_MS;
    fixture_restart(f);
    assert_int_equal(return_expired(f, "bob")->returned, 1);
    assert_int_equal(list(f, "bob")->total, 1);
    list_response *mail = list(f, "ann");
    assert_int_equal(mail->total, 1);
    assert_true(mail->mails[0]->returned);
    assert_string_equal(mail->mails[0]->from_player_id, "bob");
    assert_int_equal(return_expired(f, "ann")->returned, 0);
    assert_non_null(claim(f, "ann", mail->mails[0]->mail_id));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 6);
}

static void a_full_mailbox_takes_no_more(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 300; i++)
        assert_non_null(send(f, &(struct sending){ .from = "ann", .to = "bob", .text = "hi" }));
    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    assert_null(send(f, &(struct sending){ .from = "ann", .to = "bob", .gold = 1 }));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->capacity->what, "mail");
    assert_int_equal(fixture_balance(f, "ann", "gold"), 10);
}

static void a_claim_that_does_not_fit_leaves_the_mail_where_it_is(void **state)
{
    struct fixture *f = *state;
    char *mails[3];

    for (int i = 0; i < 3; i++) {
        char *uid = mint(f, "ann");
        send_response *sent = send(f, &(struct sending){ .from = "ann", .to = "bob", .uid = uid });
        assert_non_null(sent);
        mails[i] = sent->mail_id;
    }
    for (int i = 0; i < 198; i++)
        (void)mint(f, "bob"); /* Of 200. */
    assert_non_null(claim(f, "bob", mails[0]));
    assert_non_null(claim(f, "bob", mails[2]));
    assert_null(claim(f, "bob", mails[1]));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->capacity->what, "items");
    assert_int_equal(f->error->capacity->max, 200);
    assert_int_equal(list(f, "bob")->total, 1);
    assert_int_equal(items_of(f, "bob"), 200);
}

static void mail_that_cannot_be_read_holds_its_player_back(void **state)
{
    struct fixture *f = *state;
    uint8_t id[ITEM_UID_BYTES];
    struct row_key key;

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    send_response *sent = send(f, &(struct sending){ .from = "ann", .to = "bob", .gold = 4 });
    char *mail_id = strdup(sent->mail_id);
    assert_int_equal(item_uid_parse(slice_from_text(mail_id), id), ERR_OK);
    row_key_mail(&key, SLICE_LITERAL("player:bob"), id);
    state_begin(applier_state(f->applier));
    state_put(applier_state(f->applier), row_key_slice(&key), SLICE_LITERAL("\377\377\377"));
    state_commit(applier_state(f->applier));
    assert_null(claim(f, "bob", mail_id));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    const struct damage *damage = applier_take_damage(f->applier);
    assert_non_null(damage);
    assert_string_equal(damage->player, "bob");
    list_response *mail = list(f, "bob");
    assert_int_equal(mail->n_mails, 1);
    assert_string_equal(mail->mails[0]->mail_id, mail_id);
    assert_non_null(applier_take_damage(f->applier));
    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    free(mail_id);
}

static void a_page_has_fifty_letters_unless_the_caller_says_how_many(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListMailRequest request = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;

    assert_non_null(fixture_grant(f, "ann", "unheld", 51));
    for (int i = 0; i < 51; i++)
        assert_non_null(send(f, &(struct sending){ .from = "ann", .to = "bob", .gold = 1 }));
    assert_int_equal(list(f, "bob")->n_mails, 50);
    request.player_id = text_lend("bob");
    request.page_size = 1;
    list_response *one = fixture_read(f, METHOD_LIST_MAIL, &request.base);
    assert_non_null(one);
    assert_int_equal(one->n_mails, 1);
    request.page_size = 100;
    list_response *most = fixture_read(f, METHOD_LIST_MAIL, &request.base);
    assert_non_null(most);
    assert_int_equal(most->n_mails, 51);
    request.page_size = 101;
    assert_null(fixture_read(f, METHOD_LIST_MAIL, &request.base));
    assert_string_equal(f->error->field, "page_size");
}

int main(void)
{
#define ONE_SHARD(name) cmocka_unit_test_setup_teardown(name, setup_one_shard, fixture_teardown)
    const struct CMUnitTest tests[] = {
        ONE_SHARD(what_is_sent_lies_in_the_mailbox_until_it_is_claimed),
        ONE_SHARD(sender_and_recipient_name_each_other_and_one_operation),
        ONE_SHARD(an_item_moves_with_what_is_written_on_it_and_only_once),
        ONE_SHARD(bad_sendings_move_nothing),
        ONE_SHARD(a_retry_moves_nothing_more),
        ONE_SHARD(what_is_delivered_is_new_and_disturbs_no_session),
        ONE_SHARD(what_mail_wrote_is_refused_as_not_reversible),
        ONE_SHARD(a_delivery_is_made_once_for_each_player),
        ONE_SHARD(only_the_system_delivers_and_something),
        ONE_SHARD(an_earlier_log_has_new_goods_in_send_mail),
        ONE_SHARD(expired_mail_comes_back_to_its_sender_and_then_stays),
        ONE_SHARD(a_full_mailbox_takes_no_more),
        ONE_SHARD(mail_that_cannot_be_read_holds_its_player_back),
        ONE_SHARD(a_page_has_fifty_letters_unless_the_caller_says_how_many),
        ONE_SHARD(a_claim_that_does_not_fit_leaves_the_mail_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
