#include "node/rpc/fixture.h"

#include <stdio.h>
#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "runtime/base/check.h"

static Holdfast__V1__ListPlayersResponse *list(struct fixture *f, uint32_t size, const char *cursor)
{
    Holdfast__V1__ListPlayersRequest request = HOLDFAST__V1__LIST_PLAYERS_REQUEST__INIT;

    request.shard = f->shard;
    request.page_size = size;
    request.cursor = text_lend(cursor);
    return fixture_read(f, METHOD_LIST_PLAYERS, &request.base);
}

static void grant(struct fixture *f, int from, int to)
{
    char player[16];

    for (int i = from; i < to; i++) {
        (void)snprintf(player, sizeof player, "p%03d", i);
        assert_non_null(fixture_grant(f, player, "unheld", 1));
    }
}

/* Walks all pages; checks that names rise and returns how many there were. */
static uint32_t walk(struct fixture *f, uint32_t size)
{
    char last[16] = "";
    char cursor[16] = "";
    uint32_t count = 0;

    for (;;) {
        Holdfast__V1__ListPlayersResponse *page = list(f, size, cursor);
        assert_non_null(page);
        for (size_t i = 0; i < page->n_players; i++, count++) {
            assert_true(strcmp(page->players[i]->player_id, last) > 0);
            assert_int_equal(page->players[i]->ledger_seq, 1);
            (void)snprintf(last, sizeof last, "%s", page->players[i]->player_id);
        }
        if (page->next_cursor[0] == 0)
            return count;
        (void)snprintf(cursor, sizeof cursor, "%s", page->next_cursor);
    }
}

static void every_player_is_listed_once_wherever_its_row_is(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(walk(f, 10), 0);
    grant(f, 0, 20);
    assert_int_equal(walk(f, 7), 20);
    fixture_restart(f);
    grant(f, 20, 37);
    for (uint32_t size = 1; size < 40; size += 3) {
        fixture_evict(f, 0);
        assert_int_equal(walk(f, size), 37);
    }
    fixture_restart(f);
    fixture_evict(f, 0);
    assert_int_equal(walk(f, 5), 37);
}

static void mail_to(struct fixture *f, const char *player)
{
    Holdfast__V1__SendMailRequest request = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;

    request.player_id = (char *)"p001";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.to_player_id = text_lend(player);
    request.text = (char *)"hi";
    request.expires_in_ms = 1000;
    assert_non_null(fixture_mutate(f, METHOD_SEND_MAIL, &request.base));
}

/* "p001:1 q:2", each with its mail. */
static const char *listed(struct fixture *f, uint32_t size)
{
    static char text[256];
    char cursor[16] = "";

    text[0] = 0;
    for (;;) {
        Holdfast__V1__ListPlayersResponse *page = list(f, size, cursor);
        assert_non_null(page);
        for (size_t i = 0; i < page->n_players; i++) {
            size_t used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, " %s:%u", page->players[i]->player_id,
                           page->players[i]->mail_count);
        }
        if (page->next_cursor[0] == 0)
            return text;
        (void)snprintf(cursor, sizeof cursor, "%s", page->next_cursor);
    }
}

/* Their mail may expire unseen, and has to be found. */
static void who_only_was_sent_mail_is_listed(void **state)
{
    struct fixture *f = *state;

    fixture_deinit(f);
    fixture_init_shard(f, 0, 1);
    grant(f, 1, 4);
    mail_to(f, "a");
    mail_to(f, "p002");
    mail_to(f, "p0022");
    mail_to(f, "z");
    mail_to(f, "z");
    (void)fixture_pass(f, 20000);
    for (uint32_t size = 1; size < 8; size++)
        assert_string_equal(listed(f, size), " a:1 p001:0 p002:1 p0022:1 p003:0 z:2");
    fixture_restart(f);
    fixture_evict(f, 0);
    for (uint32_t size = 1; size < 8; size++)
        assert_string_equal(listed(f, size), " a:1 p001:0 p002:1 p0022:1 p003:0 z:2");
    assert_int_equal(list(f, 1, "")->players[0]->version, 0);
}

static void sizes_and_cursors_are_checked(void **state)
{
    struct fixture *f = *state;

    assert_null(list(f, 1001, ""));
    assert_string_equal(f->error->field, "page_size");
    assert_null(list(f, 0, "\n"));
    assert_string_equal(f->error->field, "cursor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_player_is_listed_once_wherever_its_row_is),
        FIXTURE_TEST(who_only_was_sent_mail_is_listed),
        FIXTURE_TEST(sizes_and_cursors_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
