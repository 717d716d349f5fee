/* Reserve, Post, Void and what expires, on one shard. Across two: channel_test.c. */
#include "node/rpc/fixture.h"

#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "runtime/base/check.h"

#define KIND(name) HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name

/* One shard that has all players; ann has 100 gold. */
static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    fixture_init_shard(f, 0, 1);
    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    *state = f;
    return 0;
}

static Holdfast__V1__CurrencyAmount **gold_of(struct fixture *f, int64_t amount)
{
    Holdfast__V1__CurrencyAmount **amounts = arena_alloc(&f->arena, sizeof *amounts);

    amounts[0] = arena_alloc(&f->arena, sizeof *amounts[0]);
    holdfast__v1__currency_amount__init(amounts[0]);
    amounts[0]->currency = (char *)"gold";
    amounts[0]->amount = amount;
    return amounts;
}

static Holdfast__V1__ReserveCurrenciesResponse *reserve(struct fixture *f, int64_t gold,
                                                        const char *op_id)
{
    Holdfast__V1__ReserveCurrenciesRequest request = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "unheld");
    request.currencies = gold_of(f, gold);
    request.n_currencies = 1;
    request.expires_in_ms = 5000;
    request.reason = (char *)"auction";
    return fixture_mutate(f, METHOD_RESERVE_CURRENCIES, &request.base);
}

static Holdfast__V1__PostReservationResponse *post_attempt(struct fixture *f, const char *authority,
                                                           uint32_t attempt)
{
    Holdfast__V1__PostReservationRequest request = HOLDFAST__V1__POST_RESERVATION_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:sold";
    request.attempt = attempt;
    request.authority = fixture_authority(f, authority);
    request.reserve_op_id = (char *)"claim:bid";
    request.to_player_id = (char *)"bob";
    return fixture_mutate(f, METHOD_POST_RESERVATION, &request.base);
}

/* `gold` 0: all of it. */
static Holdfast__V1__PostReservationResponse *post(struct fixture *f, const char *reserve_op_id,
                                                   int64_t gold, const char *to, const char *op_id)
{
    Holdfast__V1__PostReservationRequest request = HOLDFAST__V1__POST_RESERVATION_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "unheld");
    request.reserve_op_id = text_lend(reserve_op_id);
    request.to_player_id = text_lend(to);
    request.currencies = gold_of(f, gold);
    request.n_currencies = gold > 0;
    return fixture_mutate(f, METHOD_POST_RESERVATION, &request.base);
}

static Holdfast__V1__VoidReservationResponse *
give_back(struct fixture *f, const char *reserve_op_id, const char *authority, const char *op_id)
{
    Holdfast__V1__VoidReservationRequest request = HOLDFAST__V1__VOID_RESERVATION_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, authority);
    request.reserve_op_id = text_lend(reserve_op_id);
    return fixture_mutate(f, METHOD_VOID_RESERVATION, &request.base);
}

static void check_gold(struct fixture *f, int64_t balance, int64_t reserved)
{
    Holdfast__V1__GetBalancesRequest request = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    Holdfast__V1__GetBalancesResponse *response =
        fixture_read(f, METHOD_GET_BALANCES, &request.base);
    assert_non_null(response);
    assert_int_equal(response->n_balances, 1);
    assert_int_equal(response->balances[0]->amount, balance);
    assert_int_equal(response->n_reserved, reserved > 0);
    if (reserved > 0) {
        assert_string_equal(response->reserved[0]->currency, "gold");
        assert_int_equal(response->reserved[0]->amount, reserved);
    }
}

static Holdfast__V1__LedgerEntry *newest(struct fixture *f)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.page_size = 1;
    Holdfast__V1__ListEntriesResponse *page = fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
    assert_non_null(page);
    return page->entries[0];
}

static void check_refused(struct fixture *f, const void *response, int code, const char *field)
{
    assert_null(response);
    assert_non_null(f->error);
    assert_int_equal(f->error->code, code);
    assert_string_equal(f->error->field, field);
}

static void what_is_reserved_cannot_be_spent_and_is_posted_once(void **state)
{
    struct fixture *f = *state;
    struct fixture_sums sums;

    Holdfast__V1__ReserveCurrenciesResponse *held = reserve(f, 70, "claim:bid");
    assert_non_null(held);
    assert_int_equal(held->balances[0]->amount, 30);
    assert_int_equal(held->n_reserved, 1);
    assert_int_equal(held->reserved[0]->amount, 70);
    assert_int_equal(held->expires_at_ms, (int64_t)f->now_ms + 5000);
    check_gold(f, 30, 70);
    check_refused(f, reserve(f, 31, "claim:too-much"), ERROR(INSUFFICIENT_FUNDS),
                  "currencies[\"gold\"].amount");
    fixture_restart(f);
    Holdfast__V1__PostReservationResponse *posted = post(f, "claim:bid", 0, "", "claim:won");
    assert_non_null(posted);
    assert_int_equal(posted->reserve_seq, 2);
    check_gold(f, 30, 0);
    assert_int_equal(newest(f)->kind, KIND(POST));
    assert_int_equal(newest(f)->refers_to, 2);
    assert_non_null(post(f, "claim:bid", 0, "", "claim:won"));
    assert_true(f->outcome.duplicate);
    check_refused(f, post(f, "claim:bid", 0, "", "claim:won-again"), ERROR(RESERVATION_CLOSED),
                  "reserve_op_id");
    assert_string_equal(f->error->value, "3");
    check_refused(f, give_back(f, "claim:bid", "unheld", "claim:undo"), ERROR(RESERVATION_CLOSED),
                  "reserve_op_id");
    check_gold(f, 30, 0);
    fixture_audit(f, "ann", "gold", &sums);
    assert_int_equal(sums.available + sums.reserved, 30);
}

static void what_is_not_posted_of_it_is_back(void **state)
{
    struct fixture *f = *state;
    struct fixture_sums sums;

    assert_non_null(reserve(f, 70, "claim:bid"));
    check_refused(f, post(f, "claim:bid", 71, "", "claim:more"), ERROR(INSUFFICIENT_FUNDS),
                  "currencies[\"gold\"].amount");
    assert_string_equal(f->error->limit, "70");
    check_gold(f, 30, 70);
    assert_non_null(post(f, "claim:bid", 20, "", "claim:some"));
    check_gold(f, 80, 0);
    assert_int_equal(newest(f)->changes[0]->amount, 50);
    assert_int_equal(newest(f)->changes[0]->reserved, -70);
    fixture_audit(f, "ann", "gold", &sums);
}

static void a_post_may_go_to_another_players_mailbox(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListMailRequest list = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;
    struct fixture_sums sums;

    assert_non_null(reserve(f, 70, "claim:bid"));
    check_refused(f, post(f, "claim:bid", 0, "ann", "claim:self"), ERROR(INVALID_ARGUMENT),
                  "to_player_id");
    Holdfast__V1__PostReservationResponse *posted = post(f, "claim:bid", 60, "bob", "claim:sold");
    assert_non_null(posted);
    assert_int_equal(strlen(posted->mail_id), 32);
    check_gold(f, 40, 0);
    assert_int_equal(newest(f)->kind, KIND(TRANSFER));
    assert_int_equal(newest(f)->refers_to, 2);
    list.player_id = (char *)"bob";
    Holdfast__V1__ListMailResponse *mail = fixture_read(f, METHOD_LIST_MAIL, &list.base);
    assert_int_equal(mail->total, 1);
    assert_int_equal(mail->mails[0]->currencies[0]->amount, 60);
    fixture_audit(f, "ann", "gold", &sums);
}

/* The player gave it up before; the session that holds the player meanwhile has no say in it. */
static void the_system_posts_while_a_server_holds_the_player(void **state)
{
    struct fixture *f = *state;
    struct fixture_sums sums;

    assert_non_null(reserve(f, 70, "claim:bid"));
    assert_non_null(fixture_start(f, "ann", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                  fixture_op_id(f)));
    check_refused(f, post_attempt(f, "unheld", 0), ERROR(SESSION_LOCKED), "");
    assert_non_null(post_attempt(f, "system:match", 1));
    check_gold(f, 30, 0);
    assert_string_equal(newest(f)->authority, "system:match");
    fixture_audit(f, "ann", "gold", &sums);
}

static void in_a_shard_of_before_the_system_posts_nothing(void **state)
{
    struct fixture *f = *state;

    assert_non_null(reserve(f, 70, "claim:bid"));
    ((struct meta *)(uintptr_t)applier_meta(f->applier))->apply_version = 9;
    check_refused(f, post_attempt(f, "system:match", 0), ERROR(PERMISSION_DENIED), "authority");
    check_gold(f, 30, 70);
}

static const char *fill_mailbox_of_bob(struct fixture *f)
{
    Holdfast__Internal__V1__DeliverToPlayerRequest mail =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYER_REQUEST__INIT;
    Holdfast__V1__ListMailRequest list = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;

    mail.player_id = (char *)"bob";
    mail.authority = fixture_authority(f, "system:mail");
    mail.text = (char *)"hi";
    for (uint32_t i = 0; i < 300; i++) {
        mail.op_id = fixture_op_id(f);
        assert_non_null(fixture_mutate(f, METHOD_DELIVER_TO_PLAYER, &mail.base));
    }
    list.player_id = (char *)"bob";
    Holdfast__V1__ListMailResponse *told = fixture_read(f, METHOD_LIST_MAIL, &list.base);
    return told->mails[0]->mail_id;
}

/* Nothing was posted, so nothing came back; another shard's mailbox: channel_test.c. */
static void a_post_to_a_full_mailbox_leaves_the_reservation_open(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ClaimMailRequest claim = HOLDFAST__V1__CLAIM_MAIL_REQUEST__INIT;
    char *mail_id = text_lend(fill_mailbox_of_bob(f));

    assert_non_null(reserve(f, 70, "claim:bid"));
    check_refused(f, post_attempt(f, "unheld", 0), ERROR(CAPACITY_FULL), "to_player_id");
    assert_false(f->error->came_back);
    check_gold(f, 30, 70);
    claim.player_id = (char *)"bob";
    claim.op_id = fixture_op_id(f);
    claim.authority = fixture_authority(f, "unheld");
    claim.mail_ids = &mail_id;
    claim.n_mail_ids = 1;
    assert_non_null(fixture_mutate(f, METHOD_CLAIM_MAIL, &claim.base));
    assert_non_null(post_attempt(f, "unheld", 1));
    check_gold(f, 30, 0);
    check_refused(f, post(f, "claim:bid", 0, "bob", "claim:again"), ERROR(RESERVATION_CLOSED),
                  "reserve_op_id");
    assert_false(f->error->came_back || f->error->on_its_way);
}

static void a_void_gives_back_and_the_system_may(void **state)
{
    struct fixture *f = *state;
    struct fixture_sums sums;

    assert_non_null(reserve(f, 70, "claim:bid"));
    Holdfast__V1__VoidReservationResponse *back =
        give_back(f, "claim:bid", "system:admin", "claim:undo");
    assert_non_null(back);
    assert_int_equal(back->balances[0]->amount, 100);
    check_gold(f, 100, 0);
    assert_int_equal(newest(f)->kind, KIND(VOID));
    check_refused(f, post(f, "claim:bid", 0, "", "claim:late"), ERROR(RESERVATION_CLOSED),
                  "reserve_op_id");
    assert_int_equal(fixture_pass(f, 20000), 0);
    fixture_audit(f, "ann", "gold", &sums);
}

static void a_reservation_comes_back_once_when_its_time_is_over(void **state)
{
    struct fixture *f = *state;
    struct fixture_sums sums;

    assert_non_null(reserve(f, 70, "claim:bid"));
    assert_non_null(reserve(f, 20, "claim:other"));
    assert_int_equal(fixture_pass(f, 4999), 0);
    check_gold(f, 10, 90);
    fixture_restart(f);
    assert_int_equal(fixture_pass(f, 1), 2);
    check_gold(f, 100, 0);
    assert_int_equal(newest(f)->kind, KIND(EXPIRY));
    assert_string_equal(newest(f)->op_id, "claim:other");
    assert_string_equal(newest(f)->authority, "expiry");
    assert_string_equal(newest(f)->reason, "auction");
    assert_int_equal(fixture_pass(f, 20000), 0);
    check_refused(f, post(f, "claim:bid", 0, "", "claim:late"), ERROR(RESERVATION_EXPIRED),
                  "reserve_op_id");
    check_refused(f, give_back(f, "claim:bid", "unheld", "claim:late-2"),
                  ERROR(RESERVATION_EXPIRED), "reserve_op_id");
    check_gold(f, 100, 0);
    fixture_audit(f, "ann", "gold", &sums);
    assert_int_equal(sums.entries, 5);
}

/* The time of the entry decides, not whether the owner has logged the end. */
static void a_post_after_the_end_is_refused_even_before_it_is_logged(void **state)
{
    struct fixture *f = *state;

    assert_non_null(reserve(f, 70, "claim:bid"));
    f->now_ms += 5000;
    check_refused(f, post(f, "claim:bid", 0, "", "claim:late"), ERROR(RESERVATION_EXPIRED),
                  "reserve_op_id");
    check_gold(f, 30, 70);
    assert_int_equal(fixture_pass(f, 0), 1);
    check_gold(f, 100, 0);
}

static void a_refund_fits_whatever_came_meanwhile(void **state)
{
    struct fixture *f = *state;

    assert_non_null(reserve(f, 100, "claim:bid"));
    assert_non_null(fixture_grant(f, "ann", "unheld", AMOUNT_MAX));
    assert_int_equal(fixture_pass(f, 5000), 1);
    check_gold(f, AMOUNT_MAX + 100, 0);
}

static void no_more_is_reserved_than_fits_back(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_grant(f, "ann", "unheld", AMOUNT_MAX - 100));
    assert_non_null(reserve(f, AMOUNT_MAX, "claim:all"));
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    check_refused(f, reserve(f, 1, "claim:one"), ERROR(CAPACITY_FULL),
                  "currencies[\"gold\"].amount");
    check_gold(f, 1, AMOUNT_MAX);
}

static void open_reservations_are_counted(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < RESERVATIONS_MAX; i++)
        assert_non_null(reserve(f, 1, fixture_op_id(f)));
    check_refused(f, reserve(f, 1, "claim:one-more"), ERROR(CAPACITY_FULL), "");
    assert_string_equal(f->error->limit, "64");
    assert_int_equal(fixture_pass(f, 5000), RESERVATIONS_MAX);
    assert_non_null(reserve(f, 1, "claim:again"));
}

static Holdfast__V1__ListReservationsResponse *list(struct fixture *f, const char *player,
                                                    uint32_t page_size, const char *cursor)
{
    Holdfast__V1__ListReservationsRequest request = HOLDFAST__V1__LIST_RESERVATIONS_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.page_size = page_size;
    request.cursor = text_lend(cursor);
    return fixture_read(f, METHOD_LIST_RESERVATIONS, &request.base);
}

static void open_reservations_are_listed_and_closed_ones_are_not(void **state)
{
    struct fixture *f = *state;

    const Holdfast__V1__ReserveCurrenciesResponse *first = reserve(f, 70, "claim:bid");
    assert_non_null(first);
    assert_non_null(reserve(f, 20, "claim:other"));
    assert_non_null(reserve(f, 5, "claim:last"));
    Holdfast__V1__ListReservationsResponse *page = list(f, "ann", 2, "");
    assert_int_equal(page->n_reservations, 2);
    assert_string_equal(page->reservations[0]->reserve_op_id, "claim:bid");
    assert_int_equal(page->reservations[0]->n_currencies, 1);
    assert_string_equal(page->reservations[0]->currencies[0]->currency, "gold");
    assert_int_equal(page->reservations[0]->currencies[0]->amount, 70);
    assert_int_equal(page->reservations[0]->expires_at_ms, first->expires_at_ms);
    assert_int_equal(page->reservations[0]->reserve_seq, first->ledger_seq);
    assert_string_equal(page->reservations[0]->reason, "auction");
    assert_string_equal(page->reservations[1]->reserve_op_id, "claim:other");
    page = list(f, "ann", 2, page->next_cursor);
    assert_int_equal(page->n_reservations, 1);
    assert_string_equal(page->reservations[0]->reserve_op_id, "claim:last");
    assert_string_equal(page->next_cursor, "");
    assert_non_null(give_back(f, "claim:other", "unheld", "claim:no"));
    assert_non_null(post(f, "claim:bid", 0, "", "claim:yes"));
    page = list(f, "ann", 0, "");
    assert_int_equal(page->n_reservations, 1);
    assert_string_equal(page->reservations[0]->reserve_op_id, "claim:last");
}

static void lists_of_nothing_and_bad_pages(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(list(f, "ann", 0, "")->n_reservations, 0);
    assert_int_equal(list(f, "stranger", 0, "")->n_reservations, 0);
    for (uint32_t i = 0; i < RESERVATIONS_MAX; i++)
        assert_non_null(reserve(f, 1, fixture_op_id(f)));
    assert_int_equal(list(f, "ann", 0, "")->n_reservations, RESERVATIONS_MAX);
    assert_string_equal(list(f, "ann", 0, "")->next_cursor, "");
    check_refused(f, list(f, "ann", 65, ""), ERROR(INVALID_ARGUMENT), "page_size");
    check_refused(f, list(f, "ann", 0, "x"), ERROR(INVALID_ARGUMENT), "cursor");
}

static void what_was_never_reserved_is_not_found(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__PostReservationRequest request = HOLDFAST__V1__POST_RESERVATION_REQUEST__INIT;

    check_refused(f, post(f, "claim:nothing", 0, "", "claim:a"), ERROR(NOT_FOUND), "reserve_op_id");
    assert_non_null(reserve(f, 10, "claim:bid"));
    assert_non_null(give_back(f, "claim:bid", "unheld", "claim:undo"));
    check_refused(f, post(f, "claim:undo", 0, "", "claim:b"), ERROR(NOT_FOUND), "reserve_op_id");
    check_refused(f, post(f, "no id", 0, "", "claim:c"), ERROR(INVALID_ARGUMENT), "reserve_op_id");
    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:d";
    request.authority = fixture_authority(f, "unheld");
    request.reserve_op_id = (char *)"claim:bid";
    request.reserve_seq = 1;
    check_refused(f, fixture_mutate(f, METHOD_POST_RESERVATION, &request.base), ERROR(NOT_FOUND),
                  "reserve_seq");
    request.op_id = (char *)"claim:e";
    request.reserve_seq = 99;
    check_refused(f, fixture_mutate(f, METHOD_POST_RESERVATION, &request.base), ERROR(NOT_FOUND),
                  "reserve_seq");
}

static void bad_requests_reserve_nothing(void **state)
{
    struct fixture *f = *state;
    static const uint64_t wrong_ms[] = { 0, 999, 2592000001ull, UINT64_MAX };
    static const int64_t wrong_amounts[] = { 0, -1, AMOUNT_MAX + 1, INT64_MIN };
    Holdfast__V1__ReserveCurrenciesRequest request = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:bid";
    request.authority = fixture_authority(f, "unheld");
    request.expires_in_ms = 1000;
    check_refused(f, fixture_mutate(f, METHOD_RESERVE_CURRENCIES, &request.base),
                  ERROR(INVALID_ARGUMENT), "currencies");
    request.n_currencies = 1;
    for (size_t i = 0; i < ARRAY_SIZE(wrong_amounts); i++) {
        request.authority = fixture_authority(f, "unheld");
        request.currencies = gold_of(f, wrong_amounts[i]);
        check_refused(f, fixture_mutate(f, METHOD_RESERVE_CURRENCIES, &request.base),
                      ERROR(INVALID_ARGUMENT), "currencies[\"gold\"].amount");
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong_ms); i++) {
        request.authority = fixture_authority(f, "unheld");
        request.currencies = gold_of(f, 1);
        request.expires_in_ms = wrong_ms[i];
        check_refused(f, fixture_mutate(f, METHOD_RESERVE_CURRENCIES, &request.base),
                      ERROR(INVALID_ARGUMENT), "expires_in_ms");
    }
    request.authority = fixture_authority(f, "system:payments");
    request.currencies = gold_of(f, 1);
    request.expires_in_ms = 1000;
    assert_null(fixture_mutate(f, METHOD_RESERVE_CURRENCIES, &request.base));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    check_gold(f, 100, 0);
}

static void a_post_that_spent_is_reversed_and_a_reservation_is_not(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ReverseEntryRequest request = HOLDFAST__V1__REVERSE_ENTRY_REQUEST__INIT;
    struct fixture_sums sums;

    assert_non_null(reserve(f, 70, "claim:bid"));
    assert_non_null(post(f, "claim:bid", 50, "", "claim:won"));
    check_gold(f, 50, 0);
    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:r1";
    request.authority = fixture_authority(f, "unheld");
    request.target_op_id = (char *)"claim:bid";
    request.reason = (char *)"support";
    check_refused(f, fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base), ERROR(NOT_REVERSIBLE),
                  "target_op_id");
    request.op_id = (char *)"claim:r2";
    request.authority = fixture_authority(f, "unheld");
    request.target_op_id = (char *)"claim:won";
    assert_non_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
    check_gold(f, 100, 0);
    fixture_audit(f, "ann", "gold", &sums);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_reserved_cannot_be_spent_and_is_posted_once),
        TEST(what_is_not_posted_of_it_is_back),
        TEST(a_post_may_go_to_another_players_mailbox),
        TEST(the_system_posts_while_a_server_holds_the_player),
        TEST(in_a_shard_of_before_the_system_posts_nothing),
        TEST(a_post_to_a_full_mailbox_leaves_the_reservation_open),
        TEST(a_void_gives_back_and_the_system_may),
        TEST(a_reservation_comes_back_once_when_its_time_is_over),
        TEST(a_post_after_the_end_is_refused_even_before_it_is_logged),
        TEST(a_refund_fits_whatever_came_meanwhile),
        TEST(no_more_is_reserved_than_fits_back),
        TEST(open_reservations_are_counted),
        TEST(open_reservations_are_listed_and_closed_ones_are_not),
        TEST(lists_of_nothing_and_bad_pages),
        TEST(what_was_never_reserved_is_not_found),
        TEST(bad_requests_reserve_nothing),
        TEST(a_post_that_spent_is_reversed_and_a_reservation_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
