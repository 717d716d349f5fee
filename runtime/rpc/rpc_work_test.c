/* Large answers, which a thread beside the loop makes: the same bytes in every protocol, while
 * other calls are answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "runtime/base/budget.h"
#include "runtime/base/check.h"
#include "runtime/codec/gzip.h"
#include "runtime/codec/proto_codec.h"
#include "runtime/rpc/http_fixture.h"

#define LARGE_BYTES 700000u
#define SMALL_ID    "small"
#define BROKEN_ID   "broken"
#define MESSAGE_ID  "message"

struct bench {
    struct fixture f;
    struct budget answers;
    struct buf text; /* The currency of a large answer. */
    struct gzip gzip;
    unsigned answered;
};

/* Bytes that gzip makes shorter, and works for. */
static void put_text(struct buf *text)
{
    uint32_t state = 7;

    for (size_t i = 0; i < LARGE_BYTES; i++) {
        state = state * 1664525u + 1013904223u;
        buf_put_u8(text, (uint8_t)('a' + (state >> 24) % 23));
    }
    buf_put_u8(text, 0);
}

static void answer(struct bench *bench, struct rpc_request *request, const char *player)
{
    Holdfast__V1__GetBalancesResponse balances = HOLDFAST__V1__GET_BALANCES_RESPONSE__INIT;
    Holdfast__V1__CurrencyAmount balance = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *list[1] = { &balance };
    struct buf encoded = { 0 };
    bool small = strcmp(player, SMALL_ID) == 0, as_message = strcmp(player, MESSAGE_ID) == 0;

    balance.currency = small ? "gold" : (char *)bench->text.data;
    balances.balances = list;
    balances.n_balances = 1;
    proto_encode(&balances.base, &encoded);
    if (strcmp(player, BROKEN_ID) == 0)
        memset(encoded.data, 0xff, encoded.size);
    bench->answered++;
    if (as_message)
        rpc_reply(request, &balances.base);
    else
        rpc_reply_encoded(request, buf_slice(&encoded));
    buf_deinit(&encoded);
}

static void on_request(void *user, struct rpc_request *request)
{
    struct bench *bench = user;

    bench->f.requests++;
    answer(bench, request, ((const Holdfast__V1__GetBalancesRequest *)request->message)->player_id);
}

static void on_cancel(void *user, struct rpc_request *request)
{
    struct bench *bench = user;

    (void)request;
    bench->f.cancels++;
}

static int set_up(void **state)
{
    static struct bench bench;

    bench = (struct bench){ 0 };
    put_text(&bench.text);
    budget_init(&bench.answers, 0);
    fixture_init(&bench.f);
    bench.f.config.handlers.on_request = on_request;
    bench.f.config.handlers.on_cancel = on_cancel;
    bench.f.config.handlers.is_stream = NULL;
    bench.f.config.handlers.user = &bench;
    bench.f.config.answers = &bench.answers;
    fixture_start(&bench.f);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    fixture_stop(&bench->f);
    budget_deinit(&bench->answers); /* Checks that all was given back. */
    gzip_deinit(&bench->gzip);
    buf_deinit(&bench->text);
    return 0;
}

struct speech {
    const char *type;
    const char *accept;
    bool json, envelopes;
};

static const struct speech speeches[] = {
    { "application/json", "Accept-Encoding", true, false },
    { "application/proto", "Accept-Encoding", false, false },
    { "application/grpc-web+json", "Grpc-Accept-Encoding", true, true },
    { "application/grpc-web", "Grpc-Accept-Encoding", false, true },
};

static struct told ask(struct bench *bench, const struct speech *speech, const char *player,
                       bool packs)
{
    Holdfast__V1__GetBalancesRequest message = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;
    struct buf plain = { 0 }, body = { 0 };
    char headers[64] = "";

    message.player_id = (char *)player;
    if (speech->json)
        buf_printf(&plain, "{\"playerId\":\"%s\"}", player);
    else
        proto_encode(&message.base, &plain);
    if (speech->envelopes) {
        buf_put_u8(&body, 0);
        buf_put_u32_be(&body, (uint32_t)plain.size);
    }
    buf_append(&body, plain.data, plain.size);
    if (packs)
        snprintf(headers, sizeof headers, "%s: gzip\r\n", speech->accept);
    struct told told = fixture_ask(
        &bench->f, &(struct asked){ NULL, PATH_BALANCES, speech->type, headers, buf_slice(&body) });
    buf_deinit(&plain);
    buf_deinit(&body);
    return told;
}

/* The message of the answer, plain, without its envelope. */
static void open_answer(struct bench *bench, const struct speech *speech, const struct told *told,
                        bool packs, struct buf *out)
{
    struct slice bytes = told->body;
    const char *why = NULL;

    if (speech->envelopes) {
        assert_true(bytes.size > 5);
        assert_int_equal(bytes.data[0], packs ? 1 : 0);
        size_t size = (size_t)bytes.data[1] << 24 | (size_t)bytes.data[2] << 16 |
                      (size_t)bytes.data[3] << 8 | bytes.data[4];
        assert_true(5 + size < bytes.size); /* Trailers come behind it. */
        bytes = (struct slice){ bytes.data + 5, size };
    }
    if (packs)
        assert_int_equal(gzip_decode(&bench->gzip, bytes, 2 * LARGE_BYTES, out, &why), ERR_OK);
    else
        buf_append(out, bytes.data, bytes.size);
}

static void assert_large(struct bench *bench, const struct speech *speech, struct slice message)
{
    const char *text = (const char *)bench->text.data;

    if (speech->json) {
        assert_true(message.size > LARGE_BYTES);
        assert_non_null(memmem(message.data, message.size, text, LARGE_BYTES));
        return;
    }
    Holdfast__V1__GetBalancesResponse *response =
        holdfast__v1__get_balances_response__unpack(NULL, message.size, message.data);
    assert_non_null(response);
    assert_string_equal(response->balances[0]->currency, text);
    holdfast__v1__get_balances_response__free_unpacked(response, NULL);
}

static void a_large_answer_is_whole_in_every_form(void **state)
{
    static const char *const players[] = { "bytes", MESSAGE_ID };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_SIZE(speeches) * 4; i++) {
        const struct speech *speech = &speeches[i / 4];
        bool packs = i % 2 == 1;
        struct buf message = { 0 };
        struct told told = ask(bench, speech, players[i / 2 % 2], packs);
        assert_int_equal(told.status, 200);
        open_answer(bench, speech, &told, packs, &message);
        assert_large(bench, speech, buf_slice(&message));
        buf_deinit(&message);
        told_deinit(&told);
        assert_int_equal(budget_held(&bench->answers), 0);
    }
    assert_int_equal(rpc_server_stats(bench->f.server)->requests_active, 0);
}

static void bytes_that_are_no_answer_are_told_as_an_error(void **state)
{
    struct bench *bench = *state;

    for (int i = 0; i < 2; i++) {
        struct told told = ask(bench, &speeches[0], BROKEN_ID, i == 1);
        assert_int_equal(told.status, 500);
        assert_true(told_body_has(&told, "a node's answer could not be decoded"));
        told_deinit(&told);
    }
    assert_int_equal(budget_held(&bench->answers), 0);
}

static void send_packed(struct client *client, const char *player)
{
    char text[256];
    int size = snprintf(text, sizeof text, "{\"playerId\":\"%s\"}", player);

    snprintf(text, sizeof text,
             "POST " PATH_BALANCES " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
             "Accept-Encoding: gzip\r\nContent-Length: %d\r\n\r\n{\"playerId\":\"%s\"}",
             size, player);
    client_send_text(client, text);
}

static bool none_is_active(void *user)
{
    return rpc_server_stats(((struct bench *)user)->f.server)->requests_active == 0;
}

/* Ten large calls are there before a small one: it does not wait for all of them. */
static void a_small_call_overtakes_what_is_being_made(void **state)
{
    struct bench *bench = *state;
    struct client large = client_connect(&bench->f), small = client_connect(&bench->f);

    for (int i = 0; i < 10; i++)
        send_packed(&large, "large");
    send_packed(&small, SMALL_ID);
    assert_true(client_await(&bench->f, &small, "gold", 1));
    assert_true(rpc_server_stats(bench->f.server)->requests_active > 0);
    assert_true(loop_run_until(bench->f.loop, none_is_active, bench, FIXTURE_WAIT_MS));
    client_close(&large);
    client_close(&small);
}

/* The handler has answered: it hears nothing more of the call, and its place and bytes are given
 * back. */
static void a_caller_may_go_meanwhile(void **state)
{
    struct bench *bench = *state;
    struct client clients[6];

    for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
        clients[i] = client_connect(&bench->f);
        send_packed(&clients[i], "large");
    }
    assert_true(fixture_await(&bench->f, &bench->answered, ARRAY_SIZE(clients)));
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
        client_close(&clients[i]);
    assert_true(loop_run_until(bench->f.loop, none_is_active, bench, FIXTURE_WAIT_MS));
    assert_int_equal(budget_held(&bench->answers), 0);
    assert_int_equal(bench->f.cancels, 0);
}

/* tear_down stops the server while answers are made and others wait. */
static void a_server_may_stop_meanwhile(void **state)
{
    struct bench *bench = *state;
    struct client clients[6];

    for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
        clients[i] = client_connect(&bench->f);
        send_packed(&clients[i], "large");
    }
    assert_true(fixture_await(&bench->f, &bench->answered, ARRAY_SIZE(clients)));
    assert_true(rpc_server_stats(bench->f.server)->requests_active > 0);
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
        client_close(&clients[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_large_answer_is_whole_in_every_form, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_that_are_no_answer_are_told_as_an_error, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_small_call_overtakes_what_is_being_made, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_caller_may_go_meanwhile, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_may_stop_meanwhile, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("rpc_work", tests, NULL, NULL);
}
