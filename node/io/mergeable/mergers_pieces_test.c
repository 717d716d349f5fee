/*
 * Documents of a MiB, whose siblings no frame holds together, at three members in one process: they
 * come to be equal, whatever is lost or dies between, and a caller sees and resolves all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/method.h"
#include "node/io/mergeable/mergers_fixture.h"
#include "runtime/base/check.h"

/* What a caller was shown, page by page. */
struct seen {
    uint32_t letters; /* A bit each: what the siblings are told apart by. */
    uint32_t siblings, pages;
    char context[800];
};

/* JSON of so many bytes, a string of one letter. */
static const char *json_of(uint32_t bytes, char letter)
{
    static char text[DOCUMENT_BYTES_MAX + 2];

    memset(text, letter, bytes);
    text[0] = text[bytes - 1] = '"';
    text[bytes] = 0;
    return text;
}

static enum reply_status put_large(struct world *w, uint32_t place, char letter)
{
    return world_put(w, place, "a", json_of(DOCUMENT_BYTES_MAX, letter));
}

static struct seen look(struct world *w, uint32_t place)
{
    Holdfast__V1__GetDocumentRequest request = HOLDFAST__V1__GET_DOCUMENT_REQUEST__INIT;
    struct seen seen = { 0 };
    uint32_t unseen = 1;

    request.entity = text_lend("player:7");
    request.collection = text_lend("rooms");
    request.key = text_lend("a");
    while (unseen > 0) {
        request.context = seen.context;
        if (world_call(w, place, METHOD_GET_DOCUMENT, &request.base) != REPLY_OK)
            return (struct seen){ 0 };
        Holdfast__V1__GetDocumentResponse *response = holdfast__v1__get_document_response__unpack(
            NULL, w->answered.body.size, w->answered.body.data);

        assert_true(w->answered.body.size < 4u * 1024 * 1024 - 4096);
        unseen = response->document != NULL ? response->document->siblings_unseen : 0;
        for (size_t i = 0; response->document != NULL && i < response->document->n_siblings; i++)
            seen.letters |= 1u << (response->document->siblings[i]->json[1] - 'a');
        seen.pages++;
        assert_in_range(snprintf(seen.context, sizeof seen.context, "%s", response->context), 1,
                        sizeof seen.context - 1);
        holdfast__v1__get_document_response__free_unpacked(response, NULL);
    }
    for (uint32_t left = seen.letters; left != 0; left &= left - 1)
        seen.siblings++;
    return seen;
}

static void all_have(struct world *w, uint32_t siblings)
{
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;

        while (look(w, i).siblings != siblings) {
            if (loop_now_ms(w->loop) > end_ms)
                fail_msg("member %u has %u siblings", i + 1, look(w, i).siblings);
            w->answered.is_there = false;
            (void)loop_run_until(w->loop, world_has_answer, w, 50);
        }
    }
}

/* Each side of a cut writes twice, without a context. */
static void write_on_both_sides(struct world *w)
{
    w->cut = 3;
    assert_int_equal(put_large(w, 0, 'a'), REPLY_OK);
    assert_int_equal(put_large(w, 0, 'b'), REPLY_OK);
    assert_int_equal(put_large(w, 2, 'c'), REPLY_OK);
    assert_int_equal(put_large(w, 2, 'd'), REPLY_OK);
    w->cut = 0;
}

static void a_document_has_a_mebibyte_and_no_byte_more(void **state)
{
    struct world *w = *state;
    assert_int_equal(put_large(w, 0, 'a'), REPLY_OK);
    assert_int_equal(world_put(w, 0, "b", json_of(DOCUMENT_BYTES_MAX + 1, 'a')), REPLY_REFUSED);
    world_refused_as(w, CODE(INVALID_ARGUMENT));
    /* A third one beside two would make more than a write may leave. */
    assert_int_equal(put_large(w, 0, 'b'), REPLY_OK);
    assert_int_equal(put_large(w, 0, 'c'), REPLY_REFUSED);
    world_refused_as(w, CODE(CAPACITY_FULL));
    all_have(w, 2);
}

static void what_no_frame_holds_comes_to_all_and_is_resolved(void **state)
{
    struct world *w = *state;
    Holdfast__V1__PutDocumentRequest request = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;

    write_on_both_sides(w);
    all_have(w, 4);
    struct seen seen = look(w, 1);

    assert_int_equal(seen.pages, 2);
    assert_int_equal(world_put(w, 1, "a", "1"), REPLY_REFUSED);
    world_refused_as(w, CODE(CAPACITY_FULL));
    request.entity = text_lend("player:7");
    request.op_id = text_lend("key:resolved");
    request.collection = text_lend("rooms");
    request.key = text_lend("a");
    request.json = text_lend(json_of(DOCUMENT_BYTES_MAX, 'e'));
    request.context = seen.context;
    assert_int_equal(world_call(w, 1, METHOD_PUT_DOCUMENT, &request.base), REPLY_OK);
    for (uint32_t i = 0; i < 3; i++)
        world_eventually(w, i, "a", 1);
    all_have(w, 0); /* One value has no siblings. */
}

static void lost_pieces_are_sent_again(void **state)
{
    struct world *w = *state;

    write_on_both_sides(w);
    w->lose_large = 3;
    all_have(w, 4);
    assert_int_equal(w->lose_large, 0);
}

static void pieces_that_come_twice_are_one(void **state)
{
    struct world *w = *state;

    w->large_twice = true;
    write_on_both_sides(w);
    all_have(w, 4);
}

static bool pieces_flow(void *user)
{
    return ((struct world *)user)->large >= 2;
}

static void a_member_dies_while_pieces_come(void **state)
{
    struct world *w = *state;

    write_on_both_sides(w);
    for (uint32_t round = 0; round < 2; round++) {
        w->large = 0;
        assert_true(loop_run_until(w->loop, pieces_flow, w, PATIENCE_MS));
        world_stop(w, round == 0 ? 2 : 0);
        world_start(w, round == 0 ? 2 : 0);
    }
    all_have(w, 4);
}

static void bytes_that_are_no_piece_are_refused(void **state)
{
    struct world *w = *state;
    static const uint8_t piece[17] = { 0xd5, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0 };
    static const uint8_t next[13] = { 0xd6, 1 };
    struct buf bytes = { 0 };

    for (size_t size = 0; size <= sizeof piece; size++) /* None has a byte of the message. */
        assert_int_equal(mergers_message(w->members[0].mergers, 2, (struct slice){ piece, size }),
                         ERR_CORRUPT);
    assert_int_equal(mergers_message(w->members[0].mergers, 2, (struct slice){ next, 12 }),
                     ERR_CORRUPT);
    assert_int_equal(mergers_message(w->members[0].mergers, 2, (struct slice){ next, 13 }), ERR_OK);
    /* A piece inside of a piece, whole. */
    buf_append(&bytes, piece, sizeof piece);
    buf_append(&bytes, piece, 9);
    bytes.data[9] = 9;
    assert_int_equal(mergers_message(w->members[0].mergers, 2, buf_slice(&bytes)), ERR_CORRUPT);
    /* More than any message has. */
    bytes.data[1] = 3;
    memset(bytes.data + 9, 0xff, 4);
    assert_int_equal(mergers_message(w->members[0].mergers, 2, buf_slice(&bytes)), ERR_OK);
    buf_deinit(&bytes);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_document_has_a_mebibyte_and_no_byte_more),
        CASE(what_no_frame_holds_comes_to_all_and_is_resolved),
        CASE(lost_pieces_are_sent_again),
        CASE(pieces_that_come_twice_are_one),
        CASE(a_member_dies_while_pieces_come),
        CASE(bytes_that_are_no_piece_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
