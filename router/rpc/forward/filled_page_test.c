#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"

struct fixture {
    struct plain_ask ask; /* First: it is the origin of the request. */
    struct plain_router plain;
    Holdfast__V1__ListEntriesResponse *page;
};

static void reply(struct request *request, const ProtobufCMessage *response)
{
    struct fixture *f = request->origin;

    f->page = plain_message_copy(response, &f->ask.arena);
    f->ask.answers++;
}

static void reply_encoded(struct request *request, struct slice response)
{
    struct fixture *f = request->origin;

    f->page = plain_message_read(&holdfast__v1__list_entries_response__descriptor, response,
                                 &f->ask.arena);
    f->ask.answers++;
}

static const struct request_door door = { .reply = reply,
                                          .reply_encoded = reply_encoded,
                                          .fail = plain_ask_fail };

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    plain_router_init(&f->plain, 4, &(struct router_options){ .in_flight_max = 10 });
    f->plain.door = &door;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    plain_router_deinit(&f->plain);
    free(f);
    return 0;
}

static void dispatch(struct fixture *f, const Holdfast__V1__ListEntriesRequest *message)
{
    plain_router_send(&f->plain, &f->ask, METHOD_LIST_ENTRIES, &message->base, 5000);
}

/* What call `place` asked for; the answer has entries `from` on, and that cursor. */
static void node_answers(struct fixture *f, uint32_t place, uint64_t from, size_t count,
                         const char *cursor)
{
    Holdfast__V1__ListEntriesResponse page = HOLDFAST__V1__LIST_ENTRIES_RESPONSE__INIT;
    Holdfast__V1__LedgerEntry entries[4], *list[4];
    uint8_t bytes[256];

    for (size_t i = 0; i < count; i++) {
        holdfast__v1__ledger_entry__init(&entries[i]);
        entries[i].seq = from + i;
        list[i] = &entries[i];
    }
    page.entries = list;
    page.n_entries = count;
    page.next_cursor = text_lend(cursor);
    page.head_seq = 100 + place;
    size_t size = holdfast__v1__list_entries_response__pack(&page, bytes);
    fake_cluster_answer(&f->plain.fake, place, WIRE_OK, (struct slice){ bytes, size });
}

static void asked_for(struct fixture *f, uint32_t place, const char *cursor, uint32_t size)
{
    assert_int_equal(f->plain.fake.call_count, place + 1);
    Holdfast__V1__ListEntriesRequest *asked = holdfast__v1__list_entries_request__unpack(
        NULL, f->plain.fake.calls[place].body.size, f->plain.fake.calls[place].body.data);
    assert_non_null(asked);
    assert_string_equal(asked->cursor, cursor);
    assert_int_equal(asked->page_size, size);
    assert_string_equal(asked->currency, "gems");
    holdfast__v1__list_entries_request__free_unpacked(asked, NULL);
}

static Holdfast__V1__ListEntriesRequest three_of_gems(void)
{
    Holdfast__V1__ListEntriesRequest message = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    message.player_id = (char *)"ann";
    message.currency = (char *)"gems";
    message.page_size = 3;
    return message;
}

static void an_empty_page_with_a_cursor_is_filled(void **state)
{
    struct fixture *f = *state;
    const Holdfast__V1__ListEntriesRequest message = three_of_gems();

    dispatch(f, &message);
    asked_for(f, 0, "", 3);
    node_answers(f, 0, 0, 0, "500");
    asked_for(f, 1, "500", 3);
    node_answers(f, 1, 41, 2, "900");
    asked_for(f, 2, "900", 1);
    node_answers(f, 2, 43, 1, "950");
    assert_int_equal(f->ask.answers, 1);
    assert_int_equal(f->page->n_entries, 3);
    assert_int_equal(f->page->entries[0]->seq, 41);
    assert_int_equal(f->page->entries[2]->seq, 43);
    assert_string_equal(f->page->next_cursor, "950");
    assert_int_equal(f->page->head_seq, 102);
}

static void the_end_of_the_list_ends_the_page(void **state)
{
    struct fixture *f = *state;
    const Holdfast__V1__ListEntriesRequest message = three_of_gems();

    dispatch(f, &message);
    node_answers(f, 0, 7, 1, "500");
    node_answers(f, 1, 0, 0, "");
    assert_int_equal(f->ask.answers, 1);
    assert_int_equal(f->page->n_entries, 1);
    assert_string_equal(f->page->next_cursor, "");
}

static void so_many_rounds_without_a_match_end_with_the_cursor(void **state)
{
    struct fixture *f = *state;
    const Holdfast__V1__ListEntriesRequest message = three_of_gems();
    uint32_t round = 0;

    dispatch(f, &message);
    for (; f->ask.answers == 0; round++)
        node_answers(f, round, 0, 0, "500");
    assert_int_equal(round, 256);
    assert_int_equal(f->page->n_entries, 0);
    assert_string_equal(f->page->next_cursor, "500");
}

static void a_caller_that_leaves_ends_it(void **state)
{
    struct fixture *f = *state;
    const Holdfast__V1__ListEntriesRequest message = three_of_gems();

    dispatch(f, &message);
    node_answers(f, 0, 0, 0, "500");
    router_cancel(&f->plain.router, &f->ask.request);
    assert_true(f->plain.fake.calls[1].cancelled);
    assert_int_equal(f->ask.answers, 1);
    assert_int_equal(f->ask.code, CODE(CANCELED));
    assert_int_equal(router_in_flight(&f->plain.router), 0);
}

static void what_does_not_filter_is_passed_on_as_it_is(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListEntriesRequest message = three_of_gems();

    message.currency = (char *)"";
    dispatch(f, &message);
    node_answers(f, 0, 7, 1, "6");
    assert_int_equal(f->ask.answers, 1);
    assert_int_equal(f->page->n_entries, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_page_with_a_cursor_is_filled),
        TEST(the_end_of_the_list_ends_the_page),
        TEST(so_many_rounds_without_a_match_end_with_the_cursor),
        TEST(a_caller_that_leaves_ends_it),
        TEST(what_does_not_filter_is_passed_on_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
