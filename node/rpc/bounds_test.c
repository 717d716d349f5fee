/* Requests at the ends of what is allowed, and one beyond: the error names field, limit and value.
 */
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture_shards.h"

#define MANY 65u

struct said {
    const char *field, *limit, *value;
};

static void refused(const struct fixture *f, const void *response, const struct said *said)
{
    assert_null(response);
    assert_non_null(f->error);
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->field, said->field);
    assert_string_equal(f->error->limit, said->limit);
    assert_string_equal(f->error->value, said->value);
    assert_false(f->recorded);
}

static char *letters(struct fixture *f, size_t size)
{
    char *text = arena_alloc(&f->arena, size + 1);

    memset(text, 'x', size);
    text[size] = 0;
    return text;
}

/* ---- mail ---- */

static const void *send_mail(struct fixture_shards *s, const char *to, const char *text,
                             uint64_t expires_in_ms)
{
    Holdfast__V1__SendMailRequest request = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;
    struct fixture *f = &s->shards[0];
    char ann[16];

    fixture_name_on(0, "ann", ann);
    request.player_id = ann;
    request.to_player_id = text_lend(to);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.text = text_lend(text);
    request.expires_in_ms = expires_in_ms;
    return fixture_mutate(f, METHOD_SEND_MAIL, &request.base);
}

static void a_recipient_is_told_as_it_was_given(void **state)
{
    static struct fixture_shards shards;
    struct fixture *f = &shards.shards[0];
    const char *clean = "1 to 100 bytes of UTF-8 without control characters";
    char ann[16];

    (void)state;
    fixture_shards_init(&shards);
    fixture_name_on(0, "ann", ann);
    refused(f, send_mail(&shards, "a\nb", "hi", 0),
            &(struct said){ "to_player_id", clean, "a\\x0ab" });
    refused(f, send_mail(&shards, "", "hi", 0), &(struct said){ "to_player_id", clean, "" });
    refused(f, send_mail(&shards, letters(f, 101), "hi", 0),
            &(struct said){ "to_player_id", clean, letters(f, 64) });
    refused(f, send_mail(&shards, ann, "hi", 0),
            &(struct said){ "to_player_id", "another player than player_id", ann });
    refused(f, send_mail(&shards, "bob", letters(f, 1025), 0),
            &(struct said){ "text", "at most 1024 bytes of UTF-8 without control characters",
                            letters(f, 64) });
    refused(f, send_mail(&shards, "bob", "hi", 999),
            &(struct said){ "expires_in_ms", "1000 to 31536000000, or 0", "999" });
    refused(f, send_mail(&shards, "bob", "hi", 31536000001),
            &(struct said){ "expires_in_ms", "1000 to 31536000000, or 0", "31536000001" });
    (void)send_mail(&shards, letters(f, 100), letters(f, 1024), 1000);
    assert_null(f->error);
    (void)send_mail(&shards, "bob", "hi", 31536000000);
    assert_null(f->error);
    fixture_shards_deinit(&shards);
}

/* ---- quarantine ---- */

static const void *contain(struct fixture *f, const char *player, const char *reason)
{
    Holdfast__Internal__V1__ContainPlayerRequest request =
        HOLDFAST__INTERNAL__V1__CONTAIN_PLAYER_REQUEST__INIT;

    request.shard = f->shard;
    request.player_id = text_lend(player);
    request.reason = text_lend(reason);
    return fixture_mutate(f, METHOD_CONTAIN_PLAYER, &request.base);
}

static void a_reason_for_quarantine_has_1_to_64_bytes(void **state)
{
    const char *limit = "1 to 64 bytes of UTF-8 without control characters";
    struct fixture *f = *state;

    refused(f, contain(f, "ann", ""), &(struct said){ "reason", limit, "" });
    refused(f, contain(f, "ann", letters(f, 65)),
            &(struct said){ "reason", limit, letters(f, 64) });
    refused(f, contain(f, "ann", "a\tb"), &(struct said){ "reason", limit, "a\\x09b" });
    refused(f, contain(f, "", "why"), &(struct said){ "player_id", "a player of this shard", "" });
    assert_non_null(contain(f, "ann", letters(f, 64)));
    assert_non_null(contain(f, "bob", "w"));
    assert_true(fixture_is_quarantined(f, "ann"));
}

static const void *release(struct fixture *f, size_t items, size_t amounts)
{
    Holdfast__V1__ReleaseQuarantineRequest request = HOLDFAST__V1__RELEASE_QUARANTINE_REQUEST__INIT;
    char *uids[MANY];

    request.player_id = text_lend("ann");
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "system:admin");
    request.reason = text_lend("looked at");
    request.n_made_items = items;
    request.made_items = uids;
    for (size_t i = 0; i < items; i++)
        uids[i] = arena_printf(&f->arena, "%032x", (unsigned)i);
    request.n_made_amounts = amounts;
    request.made_amounts =
        arena_messages(&f->arena, &holdfast__v1__currency_amount__descriptor, amounts + 1);
    for (size_t i = 0; i < amounts; i++) {
        request.made_amounts[i]->currency = text_lend("gold");
        request.made_amounts[i]->amount = 1;
    }
    return fixture_mutate(f, METHOD_RELEASE_QUARANTINE, &request.base);
}

static void what_was_made_by_mistake_is_64_items_and_16_amounts_at_most(void **state)
{
    struct fixture *f = *state;

    assert_non_null(contain(f, "ann", "why"));
    refused(f, release(f, 65, 0), &(struct said){ "made_items", "at most 64", "65" });
    refused(f, release(f, 0, 17), &(struct said){ "made_amounts", "at most 16", "17" });
    assert_non_null(release(f, 64, 16));
    assert_non_null(contain(f, "ann", "why"));
    assert_non_null(release(f, 1, 1));
}

/* ---- reservations ---- */

static const void *reserve(struct fixture *f, uint64_t expires_in_ms)
{
    Holdfast__V1__ReserveCurrenciesRequest request = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    gold.currency = text_lend("gold");
    gold.amount = 1;
    request.player_id = text_lend("ann");
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    request.expires_in_ms = expires_in_ms;
    return fixture_mutate(f, METHOD_RESERVE_CURRENCIES, &request.base);
}

static void open_reservations_are_limited_and_so_is_their_time(void **state)
{
    struct fixture *f = *state;
    char most[24];

    assert_non_null(fixture_grant(f, "ann", "system:payments", 500));
    refused(f, reserve(f, 999), &(struct said){ "expires_in_ms", "1000 to 2592000000", "999" });
    refused(f, reserve(f, 2592000001),
            &(struct said){ "expires_in_ms", "1000 to 2592000000", "2592000001" });
    assert_non_null(reserve(f, 1000));
    for (uint32_t i = 1; i < RESERVATIONS_MAX; i++)
        assert_non_null(reserve(f, 2592000000));
    assert_null(reserve(f, 1000));
    (void)snprintf(most, sizeof most, "%u", RESERVATIONS_MAX);
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->limit, most);
    assert_non_null(strstr(f->error->message, most));
}

/* ---- authorities ---- */

static void an_authority_that_a_method_does_not_admit_is_named(void **state)
{
    Holdfast__V1__ReleaseQuarantineRequest request = HOLDFAST__V1__RELEASE_QUARANTINE_REQUEST__INIT;
    static const char *const given[] = { "unheld", "session:1-2-3" };
    static const char *const told[] = { "admit the authority \"unheld\"",
                                        "admit the authority \"session\"" };
    struct fixture *f = *state;

    request.player_id = text_lend("ann");
    request.reason = text_lend("why");
    for (size_t i = 0; i < 2; i++) {
        request.op_id = fixture_op_id(f);
        request.authority = text_lend(given[i]);
        assert_null(fixture_mutate(f, METHOD_RELEASE_QUARANTINE, &request.base));
        assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
        assert_string_equal(f->error->field, "authority");
        assert_non_null(strstr(f->error->message, told[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recipient_is_told_as_it_was_given),
        FIXTURE_TEST(a_reason_for_quarantine_has_1_to_64_bytes),
        FIXTURE_TEST(what_was_made_by_mistake_is_64_items_and_16_amounts_at_most),
        FIXTURE_TEST(open_reservations_are_limited_and_so_is_their_time),
        FIXTURE_TEST(an_authority_that_a_method_does_not_admit_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
