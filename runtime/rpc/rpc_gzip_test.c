/* gzip of requests and answers in every protocol over HTTP/1.1; h2_test.c has gRPC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/codec/gzip.h"
#include "runtime/codec/proto_codec.h"
#include "runtime/rpc/http_fixture.h"
#include "runtime/rpc/rpc_header.h"

#define BODY_BYTES_MAX 100000u
#define LONG_BYTES     5000u
#define SHORT_BYTES    1000u

/* How each protocol over HTTP/1.1 names things. */
struct speech {
    const char *type;
    const char *path;
    const char *encoding;
    const char *accept;
    bool json;
    bool envelopes;
};

static const struct speech speeches[] = {
    { "application/json", PATH_BALANCES, "Content-Encoding", "Accept-Encoding", true, false },
    { "application/proto", PATH_BALANCES, "Content-Encoding", "Accept-Encoding", false, false },
    { "application/connect+json", PATH_ENTRIES, "Connect-Content-Encoding",
      "Connect-Accept-Encoding", true, true },
    { "application/connect+proto", PATH_ENTRIES, "Connect-Content-Encoding",
      "Connect-Accept-Encoding", false, true },
    { "application/grpc-web", PATH_BALANCES, "Grpc-Encoding", "Grpc-Accept-Encoding", false, true },
    { "application/grpc-web+json", PATH_BALANCES, "Grpc-Encoding", "Grpc-Accept-Encoding", true,
      true },
    { "application/grpc-web", PATH_ENTRIES, "Grpc-Encoding", "Grpc-Accept-Encoding", false, true },
};

struct bench {
    struct fixture f;
    struct gzip gzip;
    struct buf body;    /* Of the request. */
    size_t player_id;   /* Bytes of what the last request named. */
    size_t answer_size; /* Of the text to answer with. */
};

static void on_request(void *user, struct rpc_request *request)
{
    struct bench *bench = user;
    Holdfast__V1__GetBalancesResponse balances = HOLDFAST__V1__GET_BALANCES_RESPONSE__INIT;
    Holdfast__V1__CurrencyAmount balance = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *list[1] = { &balance };
    Holdfast__V1__ListEntriesResponse entries = HOLDFAST__V1__LIST_ENTRIES_RESPONSE__INIT;
    char *text = arena_zalloc(request->arena, bench->answer_size + 1);

    bench->f.requests++;
    memset(text, 'a', bench->answer_size);
    if (request->method->id == METHOD_LIST_ENTRIES) {
        bench->player_id =
            strlen(((const Holdfast__V1__ListEntriesRequest *)request->message)->player_id);
        entries.next_cursor = text;
        rpc_stream_send(request, &entries.base);
        rpc_stream_send(request, &entries.base);
        rpc_stream_end(request, NULL);
        return;
    }
    bench->player_id =
        strlen(((const Holdfast__V1__GetBalancesRequest *)request->message)->player_id);
    balance.currency = text;
    balances.balances = list;
    balances.n_balances = 1;
    rpc_reply(request, &balances.base);
}

static bool is_stream(void *user, const struct method_info *method)
{
    (void)user;
    return method->id == METHOD_LIST_ENTRIES;
}

/* What is tested is packing, whatever the method. */
static uint32_t request_bytes_max(void *user, const struct method_info *method)
{
    (void)user;
    (void)method;
    return BODY_BYTES_MAX;
}

static int set_up(void **state)
{
    static struct bench bench;

    bench = (struct bench){ 0 };
    fixture_init(&bench.f);
    bench.f.config.handlers.on_request = on_request;
    bench.f.config.handlers.is_stream = is_stream;
    bench.f.config.handlers.request_bytes_max = request_bytes_max;
    bench.f.config.handlers.user = &bench;
    bench.f.config.limits.body_bytes_max = BODY_BYTES_MAX;
    fixture_start(&bench.f);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    fixture_stop(&bench->f);
    gzip_deinit(&bench->gzip);
    buf_deinit(&bench->body);
    return 0;
}

/* ---- requests ---- */

/* A message with a player_id of `size` bytes. */
static void put_message(const struct speech *speech, size_t size, struct buf *out)
{
    Holdfast__V1__GetBalancesRequest message = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;
    struct buf text = { 0 };

    for (size_t i = 0; i < size; i++)
        buf_put_u8(&text, (uint8_t)('a' + i % 7));
    buf_put_u8(&text, 0);
    message.player_id = (char *)text.data;
    if (speech->json)
        buf_printf(out, "{\"playerId\":\"%s\"}", message.player_id);
    else
        proto_encode(&message.base, out);
    buf_deinit(&text);
}

/* What comes between the message and the wire. */
enum damage { INTACT, CUT, TRAILED, TWICE, CORRUPT, NOT_GZIP, DAMAGE_COUNT };

static void damage(struct buf *packed, enum damage kind)
{
    struct buf copy = { 0 };

    buf_append(&copy, packed->data, packed->size);
    if (kind == CUT)
        packed->size -= 5;
    else if (kind == TRAILED)
        buf_append(packed, "garbage", 7);
    else if (kind == TWICE)
        buf_append(packed, copy.data, copy.size);
    else if (kind == CORRUPT)
        packed->data[packed->size - 6] ^= 1; /* Its checksum. */
    else if (kind == NOT_GZIP)
        memset(packed->data, 'x', packed->size);
    buf_deinit(&copy);
}

/* The body of a request, packed. */
static void pack(struct bench *bench, const struct speech *speech, size_t size, enum damage kind)
{
    struct buf message = { 0 };
    struct buf packed = { 0 };

    buf_clear(&bench->body);
    put_message(speech, size, &message);
    assert_true(gzip_encode(&bench->gzip, buf_slice(&message), &packed));
    damage(&packed, kind);
    if (speech->envelopes) {
        buf_put_u8(&bench->body, 1);
        buf_put_u32_be(&bench->body, (uint32_t)packed.size);
    }
    buf_append(&bench->body, packed.data, packed.size);
    buf_deinit(&message);
    buf_deinit(&packed);
}

static struct told ask(struct bench *bench, const struct speech *speech, const char *encoding,
                       const char *accept)
{
    char headers[256] = "";
    int used = 0;

    if (encoding != NULL)
        used = snprintf(headers, sizeof headers, "%s: %s\r\n", speech->encoding, encoding);
    if (accept != NULL)
        snprintf(headers + used, sizeof headers - (size_t)used, "%s: %s\r\n", speech->accept,
                 accept);
    return fixture_ask(&bench->f, &(struct asked){ NULL, speech->path, speech->type, headers,
                                                   buf_slice(&bench->body) });
}

/* `code` and its gRPC number, in the form of the protocol. */
static void assert_fails(const struct told *told, const struct speech *speech, const char *code,
                         const char *grpc)
{
    char text[64];

    if (strstr(speech->type, "grpc") != NULL)
        snprintf(text, sizeof text, "grpc-status: %s\r\n", grpc);
    else
        snprintf(text, sizeof text, "\"code\":\"%s\"", code);
    if (!told_body_has(told, text))
        fail_msg("%s: wanted %s, got %s %.*s", speech->type, text, told->head, (int)told->body.size,
                 (const char *)told->body.data);
}

static void a_packed_request_is_read(void **state)
{
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_SIZE(speeches); i++) {
        pack(bench, &speeches[i], LONG_BYTES, INTACT);
        struct told told = ask(bench, &speeches[i], "gzip", NULL);
        assert_int_equal(told.status, 200);
        assert_int_equal(bench->f.requests, i + 1);
        assert_int_equal(bench->player_id, LONG_BYTES);
        told_deinit(&told);
    }
}

/* The flag is a message's own, and what is empty was not packed. */
static void a_message_may_come_as_it_is(void **state)
{
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_SIZE(speeches); i++) {
        buf_clear(&bench->body);
        if (speeches[i].envelopes)
            buf_append(&bench->body, "\1\0\0\0\0", 5);
        struct told told = ask(bench, &speeches[i], "gzip", NULL);
        assert_int_equal(bench->f.requests, 2 * i + 1);
        assert_int_equal(bench->player_id, 0);
        told_deinit(&told);
        pack(bench, &speeches[i], LONG_BYTES, INTACT);
        buf_clear(&bench->body);
        if (speeches[i].envelopes) {
            struct buf message = { 0 };
            put_message(&speeches[i], 7, &message);
            buf_put_u8(&bench->body, 0);
            buf_put_u32_be(&bench->body, (uint32_t)message.size);
            buf_append(&bench->body, message.data, message.size);
            buf_deinit(&message);
        } else {
            put_message(&speeches[i], 7, &bench->body);
        }
        told = ask(bench, &speeches[i], speeches[i].envelopes ? "gzip" : "identity", NULL);
        assert_int_equal(bench->f.requests, 2 * i + 2);
        assert_int_equal(bench->player_id, 7);
        told_deinit(&told);
    }
}

/* gRPC-Web: its body as a whole. */
static void a_web_body_may_be_packed_as_a_whole(void **state)
{
    struct bench *bench = *state;
    struct buf body = { 0 };

    put_message(&speeches[4], LONG_BYTES, &body);
    struct buf framed = { 0 };
    buf_put_u8(&framed, 0);
    buf_put_u32_be(&framed, (uint32_t)body.size);
    buf_append(&framed, body.data, body.size);
    assert_true(gzip_encode(&bench->gzip, buf_slice(&framed), &bench->body));
    struct asked asked = { NULL, PATH_BALANCES, "application/grpc-web",
                           "Content-Encoding: gzip\r\n", buf_slice(&bench->body) };
    struct told told = fixture_ask(&bench->f, &asked);
    assert_true(told_body_has(&told, "grpc-status: 0\r\n"));
    assert_int_equal(bench->player_id, LONG_BYTES);
    told_deinit(&told);
    /* A Connect stream has a header of its own for that. */
    asked.path = PATH_ENTRIES;
    asked.type = "application/connect+proto";
    told = fixture_ask(&bench->f, &asked);
    assert_true(told_body_has(&told, "\"code\":\"unimplemented\""));
    told_deinit(&told);
    buf_deinit(&body);
    buf_deinit(&framed);
}

/* The bound is that of plain bodies, to the byte, and nothing of what is past it is kept. */
static void a_bomb_is_too_large(void **state)
{
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_SIZE(speeches); i++) {
        struct buf plain = { 0 };
        put_message(&speeches[i], 50000, &plain);
        size_t rest = plain.size - 50000; /* Both need as many bytes for their lengths. */
        buf_deinit(&plain);
        pack(bench, &speeches[i], BODY_BYTES_MAX - rest, INTACT);
        struct told told = ask(bench, &speeches[i], "gzip", NULL);
        assert_int_equal(told.status, 200);
        assert_int_equal(bench->player_id, BODY_BYTES_MAX - rest);
        told_deinit(&told);
        for (size_t over = 1; over < 20u << 20; over = over * 100 + 1) {
            pack(bench, &speeches[i], BODY_BYTES_MAX - rest + over, INTACT);
            told = ask(bench, &speeches[i], "gzip", NULL);
            assert_fails(&told, &speeches[i], "resource_exhausted", "8");
            told_deinit(&told);
        }
        assert_int_equal(bench->f.requests, i + 1);
        assert_int_equal(rpc_server_stats(bench->f.server)->buffered_bytes, 0);
    }
}

/* What is unpacked counts against the room for bodies, too. */
static void unpacked_bodies_share_the_room_for_bodies(void **state)
{
    struct bench *bench = *state;
    struct fixture other;

    fixture_init(&other);
    other.config.limits.body_bytes_max = BODY_BYTES_MAX;
    other.config.handlers.request_bytes_max = request_bytes_max;
    other.config.limits.buffered_bytes_max = LONG_BYTES;
    fixture_start(&other);
    for (size_t i = 0; i < ARRAY_SIZE(speeches); i++) {
        for (size_t size = LONG_BYTES / 2; size < 2 * LONG_BYTES; size += LONG_BYTES) {
            pack(bench, &speeches[i], size, INTACT);
            struct asked asked = { NULL, speeches[i].path, speeches[i].type, NULL,
                                   buf_slice(&bench->body) };
            char headers[64];
            snprintf(headers, sizeof headers, "%s: gzip\r\n", speeches[i].encoding);
            asked.headers = headers;
            struct told told = fixture_ask(&other, &asked);
            if (size > LONG_BYTES)
                assert_fails(&told, &speeches[i], "resource_exhausted", "8");
            told_deinit(&told);
            assert_int_equal(rpc_server_stats(other.server)->buffered_bytes, 0);
        }
        assert_int_equal(other.requests, i + 1);
    }
    fixture_stop(&other);
}

static void what_cannot_be_unpacked_is_an_invalid_argument(void **state)
{
    static const char *const whys[DAMAGE_COUNT] = {
        [CUT] = "the gzip stream ends too soon",
        [TRAILED] = "more bytes behind the gzip stream",
        [TWICE] = "a second gzip member behind the first",
        [CORRUPT] = "not a gzip stream, or a corrupt one",
        [NOT_GZIP] = "not a gzip stream, or a corrupt one",
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_SIZE(speeches); i++) {
        for (enum damage kind = CUT; kind < DAMAGE_COUNT; kind++) {
            pack(bench, &speeches[i], LONG_BYTES, kind);
            struct told told = ask(bench, &speeches[i], "gzip", NULL);
            assert_fails(&told, &speeches[i], "invalid_argument", "3");
            assert_true(told_body_has(&told, whys[kind]));
            told_deinit(&told);
        }
        pack(bench, &speeches[i], LONG_BYTES, INTACT); /* The server is well after that. */
        struct told told = ask(bench, &speeches[i], "gzip", NULL);
        assert_int_equal(bench->f.requests, i + 1);
        told_deinit(&told);
    }
}

static void other_encodings_are_unimplemented_and_ours_are_listed(void **state)
{
    static const char *const others[] = { "br",       "deflate",        "gzip, gzip", "zstd",
                                          "gzip;q=1", "identity, gzip", "gzipp" };
    struct bench *bench = *state;
    char line[64];

    for (size_t i = 0; i < ARRAY_SIZE(speeches); i++) {
        pack(bench, &speeches[i], LONG_BYTES, INTACT);
        for (size_t k = 0; k < ARRAY_SIZE(others); k++) {
            struct told told = ask(bench, &speeches[i], others[k], NULL);
            assert_fails(&told, &speeches[i], "unimplemented", "12");
            assert_true(told_body_has(&told, "send gzip or identity"));
            snprintf(line, sizeof line, "%s: gzip, identity\r\n", speeches[i].accept);
            for (char *at = line; *at != 0; at++)
                *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
            assert_true(told_has(&told, line));
            told_deinit(&told);
        }
        char twice[64];
        snprintf(twice, sizeof twice, "gzip\r\n%s: gzip", speeches[i].encoding);
        struct told told = ask(bench, &speeches[i], twice, NULL);
        assert_fails(&told, &speeches[i], "unimplemented", "12");
        told_deinit(&told);
    }
    assert_int_equal(bench->f.requests, 0);
}

static void health_may_be_asked_packed(void **state)
{
    static const struct speech health = { "application/json",
                                          "/grpc.health.v1.Health/Check",
                                          "Content-Encoding",
                                          "Accept-Encoding",
                                          true,
                                          false };
    struct bench *bench = *state;

    pack(bench, &health, 1000, INTACT);
    struct told told = ask(bench, &health, "gzip", "gzip");
    assert_true(told_body_has(&told, "{\"status\":\"SERVING\"}"));
    told_deinit(&told);
    pack(bench, &health, LONG_BYTES, INTACT); /* Anybody may ask: less is unpacked. */
    told = ask(bench, &health, "gzip", NULL);
    assert_fails(&told, &health, "resource_exhausted", "8");
    told_deinit(&told);
    pack(bench, &health, 1000, CUT);
    told = ask(bench, &health, "gzip", NULL);
    assert_fails(&told, &health, "invalid_argument", "3");
    told_deinit(&told);
}

/* ---- answers ---- */

static bool says_gzip(const struct told *told, const struct speech *speech)
{
    char line[64];

    snprintf(line, sizeof line, "\n%s: gzip\r", speech->encoding);
    return strcasestr(told->head, line) != NULL;
}

/* Takes the next message, unpacked, off the answer; true: it was packed. */
static bool take_message(struct bench *bench, const struct told *told, const struct speech *speech,
                         struct slice *left, struct buf *out)
{
    struct slice bytes = *left;
    bool packed = says_gzip(told, speech);
    const char *why = "";

    if (speech->envelopes) {
        assert_true(left->size >= 5);
        size_t size = (size_t)left->data[2] << 16 | (size_t)left->data[3] << 8 | left->data[4];
        assert_true(size <= left->size - 5 && left->data[0] <= 1);
        packed = left->data[0] == 1;
        bytes = (struct slice){ left->data + 5, size };
        *left = (struct slice){ left->data + 5 + size, left->size - 5 - size };
    }
    buf_clear(out);
    if (!packed)
        buf_append(out, bytes.data, bytes.size);
    else
        assert_int_equal(gzip_decode(&bench->gzip, bytes, 1u << 20, out, &why), ERR_OK);
    return packed;
}

static void assert_answer(struct bench *bench, const struct speech *speech, const struct told *told,
                          bool packed)
{
    bool streams = strcmp(speech->path, PATH_ENTRIES) == 0;
    struct slice left = told->body;
    struct buf message = { 0 };

    assert_int_equal(told->status, 200);
    for (unsigned i = 0; i < (streams ? 2 : 1); i++) {
        if (take_message(bench, told, speech, &left, &message) != packed)
            fail_msg("%s: packed should be %d: %s", speech->type, packed, told->head);
        assert_in_range(message.size, bench->answer_size, bench->answer_size + 60);
    }
    /* A stream says beforehand what its messages may be. */
    if (!streams)
        assert_int_equal(says_gzip(told, speech), packed);
    if (packed)
        assert_true(says_gzip(told, speech));
    /* The end is never packed. */
    if (speech->envelopes)
        assert_true(left.data[0] == (strstr(speech->type, "grpc") != NULL ? 0x80 : 2));
    buf_deinit(&message);
}

static void a_long_answer_is_packed_for_who_takes_it(void **state)
{
    static const struct {
        const char *accept;
        const char *encoding; /* Of the request. */
        bool packed;
    } cases[] = {
        { "gzip", NULL, true },
        { "br, gzip;q=0.5", NULL, true },
        { "identity,deflate,gzip", NULL, true },
        { "*", NULL, true },
        { "GZIP", NULL, true },
        { NULL, NULL, false },
        { "identity", NULL, false },
        { "br", NULL, false },
        { "gzip;q=0", NULL, false },
        { "gzip;q=0, *", NULL, false },
        { "*;q=0", NULL, false },
        { "identity, gzip;q=0.5", NULL, false },
        { NULL, "gzip", true }, /* Who sends it takes it. */
        { "identity", "gzip", false },
        { "br", "gzip", false },
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_SIZE(speeches); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
            bench->answer_size = LONG_BYTES;
            pack(bench, &speeches[i], LONG_BYTES, INTACT);
            if (cases[k].encoding == NULL) {
                buf_clear(&bench->body);
                if (speeches[i].envelopes)
                    buf_append(&bench->body, "\0\0\0\0\0", 5);
            }
            struct told told = ask(bench, &speeches[i], cases[k].encoding, cases[k].accept);
            assert_answer(bench, &speeches[i], &told, cases[k].packed);
            told_deinit(&told);
            bench->answer_size = SHORT_BYTES - 100;
            told = ask(bench, &speeches[i], cases[k].encoding, cases[k].accept);
            assert_answer(bench, &speeches[i], &told, false);
            told_deinit(&told);
        }
    }
}

static void errors_are_never_packed(void **state)
{
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_SIZE(speeches); i++) {
        buf_clear(&bench->body);
        for (size_t k = 0; k < 3000; k++)
            buf_put_u8(&bench->body, 0xFF);
        struct told told = ask(bench, &speeches[i], NULL, "gzip");
        assert_false(says_gzip(&told, &speeches[i]));
        assert_true(
            told_body_has(&told, speeches[i].envelopes && strstr(speeches[i].type, "grpc") != NULL
                                     ? "grpc-message: "
                                     : "\"message\":"));
        told_deinit(&told);
    }
}

static void lists_of_encodings_are_weighed(void **state)
{
    static const struct {
        const char *list;
        bool gzip;
    } cases[] = {
        { "gzip", true },
        { "x-gzip", true },
        { " deflate , gzip ; q=1.0 , br", true },
        { "gzip;q=0.001", true },
        { "gzip;q=0.000", false },
        { "gzip;q=0.", false },
        { "gzip; Q=0.5", true },
        { "gzip;q=1.5", false },
        { "gzip;q=-1", false },
        { "gzip;q=x", false },
        { "gzip;q=", false },
        { "gzip;q=0.1234", false },
        { "gzip;level=9", true },
        { "gzip;level=9;q=0", false },
        { "*;q=0.1", true },
        { "*;q=0.1, gzip;q=0", false },
        { "identity;q=0.5, gzip;q=0.5", true },
        { "identity;q=0.6, gzip;q=0.5", false },
        { "identity;q=0, *", true },
        { "identity, gzip", true },
        { "gzipped", false },
        { "gzi", false },
        { "", false },
        { ",,;;,=", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (rpc_accepts_gzip(slice_from_text(cases[i].list)) != cases[i].gzip)
            fail_msg("\"%s\" should be %d", cases[i].list, cases[i].gzip);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_packed_request_is_read),
        TEST(a_message_may_come_as_it_is),
        TEST(a_web_body_may_be_packed_as_a_whole),
        TEST(a_bomb_is_too_large),
        TEST(unpacked_bodies_share_the_room_for_bodies),
        TEST(what_cannot_be_unpacked_is_an_invalid_argument),
        TEST(other_encodings_are_unimplemented_and_ours_are_listed),
        TEST(health_may_be_asked_packed),
        TEST(a_long_answer_is_packed_for_who_takes_it),
        TEST(errors_are_never_packed),
        cmocka_unit_test(lists_of_encodings_are_weighed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
