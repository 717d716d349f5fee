#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/fake_cluster.h"
#include "router/rpc/router.h"
#include "runtime/base/check.h"

struct fixture {
    struct loop *loop;
    struct fake_cluster fake;
    struct router router;
    struct request request;
    struct arena arena;
    unsigned answers;
    Holdfast__V1__ErrorCode code;
    Holdfast__V1__ListEntriesResponse *page;
};

static void reply(struct request *request, const ProtobufCMessage *response)
{
    struct fixture *f = request->origin;
    size_t size = protobuf_c_message_get_packed_size(response);
    uint8_t *bytes = mem_zalloc(size + 1);

    (void)protobuf_c_message_pack(response, bytes);
    f->page = holdfast__v1__list_entries_response__unpack(NULL, size, bytes);
    free(bytes);
    f->answers++;
}

static void reply_encoded(struct request *request, struct slice response)
{
    struct fixture *f = request->origin;

    f->page = holdfast__v1__list_entries_response__unpack(NULL, response.size, response.data);
    f->answers++;
}

static void fail_request(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct fixture *f = request->origin;

    f->code = detail->code;
    f->answers++;
}

static const struct request_door door = { .reply = reply,
                                          .reply_encoded = reply_encoded,
                                          .fail = fail_request };

static int setup(void **state)
{
    static const struct log silent = { .level_min = LOG_ERROR };
    struct fixture *f = mem_zalloc(sizeof *f);
    struct router_options options = { .cluster = "test", .log = &silent, .in_flight_max = 10 };

    CHECK(loop_new(&f->loop) == ERR_OK);
    fake_cluster_init(&f->fake, 4);
    options.loop = f->loop;
    options.map = f->fake.map;
    options.port = fake_cluster_port(&f->fake);
    options.caller = caller_new(&(struct caller_options){
        .loop = f->loop, .map = options.map, .port = options.port, .seed = 1 });
    router_init(&f->router, &options);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    holdfast__v1__list_entries_response__free_unpacked(f->page, NULL);
    caller_free(f->router.options.caller);
    router_deinit(&f->router);
    fake_cluster_deinit(&f->fake);
    arena_deinit(&f->arena);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void dispatch(struct fixture *f, const Holdfast__V1__ListEntriesRequest *message)
{
    f->request = (struct request){ .door = &door,
                                   .origin = f,
                                   .method = method_find(METHOD_LIST_ENTRIES),
                                   .message = &message->base,
                                   .arena = &f->arena,
                                   .deadline_ms = loop_now_ms(f->loop) + 5000,
                                   .scopes = SCOPES_ALL,
                                   .peer = "test" };
    router_dispatch(&f->router, &f->request);
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
    fake_cluster_answer(&f->fake, place, WIRE_OK, (struct slice){ bytes, size });
}

static void asked_for(struct fixture *f, uint32_t place, const char *cursor, uint32_t size)
{
    assert_int_equal(f->fake.call_count, place + 1);
    Holdfast__V1__ListEntriesRequest *asked = holdfast__v1__list_entries_request__unpack(
        NULL, f->fake.calls[place].body.size, f->fake.calls[place].body.data);
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
    assert_int_equal(f->answers, 1);
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
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->page->n_entries, 1);
    assert_string_equal(f->page->next_cursor, "");
}

static void so_many_rounds_without_a_match_end_with_the_cursor(void **state)
{
    struct fixture *f = *state;
    const Holdfast__V1__ListEntriesRequest message = three_of_gems();
    uint32_t round = 0;

    dispatch(f, &message);
    for (; f->answers == 0; round++)
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
    router_cancel(&f->router, &f->request);
    assert_true(f->fake.calls[1].cancelled);
    assert_int_equal(f->answers, 1);
    assert_int_equal(router_in_flight(&f->router), 0);
}

static void what_does_not_filter_is_passed_on_as_it_is(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListEntriesRequest message = three_of_gems();

    message.currency = (char *)"";
    dispatch(f, &message);
    node_answers(f, 0, 7, 1, "6");
    assert_int_equal(f->answers, 1);
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
