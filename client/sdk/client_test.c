#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/sdk/client.h"
#include "runtime/base/id.h"

/* A router's stand-in that plays one scripted answer per connection; NULL closes unanswered. */
struct script {
    int listener;
    const char *answers[4];
    size_t answer_bytes; /* Of the first; 0: texts. */
    int served;
    char endpoint[64];
    pthread_t thread;
};

static void *serve(void *user)
{
    struct script *script = user;
    char request[4096];

    for (; script->served < 4 && script->answers[script->served] != NULL; script->served++) {
        int fd = accept(script->listener, NULL, NULL);
        if (fd < 0)
            break;
        const char *answer = script->answers[script->served];
        if (read(fd, request, sizeof request) > 0 && answer[0] != 0)
            (void)!write(fd, answer,
                         script->answer_bytes > 0 ? script->answer_bytes : strlen(answer));
        close(fd);
    }
    return NULL;
}

static void script_start(struct script *script)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    script->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(script->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(script->listener, 8), 0);
    getsockname(script->listener, (struct sockaddr *)&address, &size);
    snprintf(script->endpoint, sizeof script->endpoint, "http://127.0.0.1:%u",
             ntohs(address.sin_port));
    pthread_create(&script->thread, NULL, serve, script);
}

static void script_stop(struct script *script)
{
    shutdown(script->listener, SHUT_RDWR);
    close(script->listener);
    pthread_join(script->thread, NULL);
}

static enum client_result call(struct script *script, uint32_t deadline_ms, struct buf *body)
{
    struct client *client;

    script_start(script);
    assert_int_equal(client_new(&(struct client_options){ .endpoint = script->endpoint,
                                                          .deadline_ms = deadline_ms },
                                &client),
                     ERR_OK);
    enum client_result result = client_call(client, "LedgerService/Grant", "{}", body);
    script_stop(script);
    client_free(client);
    return result;
}

static void lost_answer_is_unknown_never_failed(void **state)
{
    struct script script = { .answers = { "" } };
    struct buf body = { 0 };
    (void)state;

    assert_int_equal(call(&script, 900, &body), CLIENT_UNKNOWN);
    buf_deinit(&body);
}

static void an_answer_that_is_no_http_is_unknown(void **state)
{
    static const char *const answers[] = { "garbage\r\n", "HTTP/7.3 200 OK\r\n\r\n" };
    (void)state;

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct script script = { .answers = { answers[i], answers[i], answers[i], answers[i] } };
        struct buf body = { 0 };

        assert_int_equal(call(&script, 900, &body), CLIENT_UNKNOWN);
        buf_deinit(&body);
    }
}

static void unknown_is_repeated_and_its_outcome_learnt(void **state)
{
    struct script script = { .answers = { "", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                                              "Connection: close\r\n\r\n{}" } };
    struct buf body = { 0 };
    (void)state;

    assert_int_equal(call(&script, 8000, &body), CLIENT_OK);
    assert_int_equal(script.served, 2);
    buf_deinit(&body);
}

/* An error as a router writes it, with these fields of ErrorDetail. */
#define ERROR_ANSWER(status, fields)                                                               \
    "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n"                                             \
    "{\"code\":\"x\",\"details\":[{\"type\":\"holdfast.v1.ErrorDetail\",\"value\":\"\","           \
    "\"debug\":{" fields "}}]}"
#define OK_ANSWER        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
#define CODE_FIELD(name) "\"code\":\"ERROR_CODE_" name "\""
#define PLAIN_ANSWER(status, fields)                                                               \
    "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n{\"code\":\"x\",\"error\":{" fields "}}"
#define PLAIN_DECISION(outcome, action) ",\"outcome\":\"" outcome "\",\"action\":\"" action "\""
#define DECISION(outcome, action)                                                                  \
    ",\"outcome\":\"OUTCOME_" outcome "\",\"action\":\"ACTION_" action "\""
#define LATER(ms) DECISION("NOT_APPLIED", "RETRY_SAME") ",\"retryAfterMs\":" ms

/* docs/operations.md, "The rule for every caller", row by row. */
static const struct decision {
    const char *answers[4];
    enum client_result result;
    int tries;
} decisions[] = {
    { { OK_ANSWER }, CLIENT_OK, 1 },
    { { ERROR_ANSWER("400 X",
                     CODE_FIELD("INSUFFICIENT_FUNDS") DECISION("REFUSED", "RAISE_ATTEMPT")) },
      CLIENT_REFUSED,
      1 },
    /* Final: the same attempt gets it back, however long one waits. */
    { { ERROR_ANSWER("409 X", CODE_FIELD("SESSION_LOCKED")
                                  DECISION("REFUSED", "RAISE_ATTEMPT") ",\"retryAfterMs\":9") },
      CLIENT_REFUSED,
      1 },
    { { ERROR_ANSWER("503 X", CODE_FIELD("UNAVAILABLE") LATER("10")),
        ERROR_ANSWER("504 X", CODE_FIELD("DEADLINE_EXCEEDED") LATER("10")),
        ERROR_ANSWER("409 X", CODE_FIELD("TXN_CONFLICT") LATER("10")), OK_ANSWER },
      CLIENT_OK,
      4 },
    { { PLAIN_ANSWER("409 X", "\"code\":\"session_locked\"" PLAIN_DECISION(
                                  "refused", "raise_attempt") ",\"retryAfterMs\":9") },
      CLIENT_REFUSED,
      1 },
    { { PLAIN_ANSWER("503 X", "\"code\":\"unavailable\"" PLAIN_DECISION(
                                  "not_applied", "retry_same") ",\"retryAfterMs\":10"),
        OK_ANSWER },
      CLIENT_OK,
      2 },
    { { PLAIN_ANSWER("500 X", "\"code\":\"outcome_unknown\"" PLAIN_DECISION(
                                  "unknown", "retry_same") ",\"retryAfterMs\":10"),
        PLAIN_ANSWER("409 X",
                     "\"code\":\"operation_id_mismatch\"" PLAIN_DECISION("not_applied", "never")) },
      CLIENT_REFUSED,
      2 },
    /* Longer than the deadline allows. */
    { { ERROR_ANSWER("400 X", CODE_FIELD("QUARANTINED") LATER("60000")) }, CLIENT_LATER, 1 },
    { { ERROR_ANSWER("500 X", CODE_FIELD("OUTCOME_UNKNOWN")
                                  DECISION("UNKNOWN", "RETRY_SAME") ",\"retryAfterMs\":500"),
        OK_ANSWER },
      CLIENT_OK,
      2 },
    /* A code of a later version: its action is enough. */
    { { ERROR_ANSWER("400 X", CODE_FIELD("LATER_WORD") LATER("10")), OK_ANSWER }, CLIENT_OK, 2 },
    { { ERROR_ANSWER("400 X", CODE_FIELD("LATER_WORD") DECISION("REFUSED", "NEVER")) },
      CLIENT_REFUSED,
      1 },
    { { ERROR_ANSWER("400 X", CODE_FIELD("INVALID_ARGUMENT") DECISION("NOT_APPLIED", "FIX")) },
      CLIENT_REFUSED,
      1 },
    { { ERROR_ANSWER("401 X", CODE_FIELD("UNAUTHENTICATED") DECISION("NOT_APPLIED", "FIX")) },
      CLIENT_REFUSED,
      1 },
    /* Not a router's word: some proxy's, on either side of the router. */
    { { "HTTP/1.1 503 X\r\nConnection: close\r\n\r\n<html>", OK_ANSWER }, CLIENT_OK, 2 },
    { { "HTTP/1.1 504 X\r\nConnection: close\r\n\r\n{\"code\":\"deadline_exceeded\"}", OK_ANSWER },
      CLIENT_OK,
      2 },
    /* An earlier try stays unknown, whatever is said of a later one alone ... */
    { { "", ERROR_ANSWER("401 X", CODE_FIELD("UNAUTHENTICATED") DECISION("NOT_APPLIED", "FIX")) },
      CLIENT_UNKNOWN,
      2 },
    { { "",
        ERROR_ANSWER("400 X", CODE_FIELD("OPERATION_EXPIRED") DECISION("NOT_APPLIED", "NEVER")) },
      CLIENT_UNKNOWN,
      2 },
    { { "", ERROR_ANSWER("400 X", CODE_FIELD("QUARANTINED") LATER("60000")) }, CLIENT_UNKNOWN, 2 },
    /* ... and is settled by what tells the operation's one outcome. */
    { { "", ERROR_ANSWER("400 X", CODE_FIELD("SESSION_LOST") DECISION("REFUSED", "STOP_WRITING")) },
      CLIENT_REFUSED,
      2 },
    { { "", ERROR_ANSWER("409 X",
                         CODE_FIELD("OPERATION_ID_MISMATCH") DECISION("NOT_APPLIED", "NEVER")) },
      CLIENT_REFUSED,
      2 },
};

static void each_row_of_the_decision_table_is_kept(void **state)
{
    struct buf body = { 0 };
    (void)state;

    for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
        struct script script = { .served = 0 };
        memcpy(script.answers, decisions[i].answers, sizeof script.answers);
        enum client_result result = call(&script, 4000, &body);
        if (result != decisions[i].result || script.served != decisions[i].tries)
            fail_msg("row %zu: result %d, not %d, after %d tries, not %d", i, (int)result,
                     (int)decisions[i].result, script.served, decisions[i].tries);
    }
    buf_deinit(&body);
}

static enum client_result call_of(struct script *script, const char *method)
{
    struct client *client;
    struct buf body = { 0 };

    script_start(script);
    assert_int_equal(
        client_new(&(struct client_options){ .endpoint = script->endpoint, .deadline_ms = 4000 },
                   &client),
        ERR_OK);
    enum client_result result = client_call(client, method, "{}", &body);
    script_stop(script);
    client_free(client);
    buf_deinit(&body);
    return result;
}

/* A second deletion could delete what was written in between. The table that says so is the
 * routers' own; of a method that it does not know, the same may be true. */
static void what_a_router_sends_once_is_not_repeated(void **state)
{
    static const char unknown[] =
        ERROR_ANSWER("500 X", CODE_FIELD("OUTCOME_UNKNOWN") DECISION("UNKNOWN", "RETRY_SAME"));
    static const char later[] = ERROR_ANSWER("503 X", CODE_FIELD("UNAVAILABLE") LATER("10"));
    static const struct {
        const char *method;
        const char *answers[4];
        enum client_result result;
        int tries;
    } cases[] = {
        { "EventService/DeleteConsumer", { "", OK_ANSWER }, CLIENT_UNKNOWN, 1 },
        { "EventService/DeleteConsumer", { unknown, OK_ANSWER }, CLIENT_UNKNOWN, 1 },
        { "EventService/DeleteConsumer", { later, OK_ANSWER }, CLIENT_OK, 2 },
        { "EventService/DeleteConsumer", { later, "", OK_ANSWER }, CLIENT_UNKNOWN, 2 },
        { "holdfast.v1.FavoritesService/DeleteTargetMetadata",
          { "", OK_ANSWER },
          CLIENT_UNKNOWN,
          1 },
        { "LaterService/Delete", { "", OK_ANSWER }, CLIENT_UNKNOWN, 1 },
        { "holdfast.v1.EventService/CreateConsumer", { "", OK_ANSWER }, CLIENT_OK, 2 },
        { "LedgerService/GetBalances", { "", OK_ANSWER }, CLIENT_OK, 2 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script script = { .served = 0 };
        memcpy(script.answers, cases[i].answers, sizeof script.answers);
        enum client_result result = call_of(&script, cases[i].method);
        if (result != cases[i].result || script.served != cases[i].tries)
            fail_msg("row %zu: result %d, not %d, after %d tries, not %d", i, (int)result,
                     (int)cases[i].result, script.served, cases[i].tries);
    }
}

static void nobody_listening_is_unreachable(void **state)
{
    struct client *client;
    struct buf body = { 0 };
    (void)state;

    assert_int_equal(
        client_new(&(struct client_options){ .endpoint = "http://127.0.0.1:1", .deadline_ms = 500 },
                   &client),
        ERR_OK);
    assert_int_equal(client_call(client, "LedgerService/Grant", "{}", &body), CLIENT_UNREACHABLE);
    client_free(client);
    buf_deinit(&body);
}

/* Answers with a NUL in them do not fit the script's texts: sizes of messages below 256, in
 * escapes. */
#define STREAM_HEAD                                                                                \
    "HTTP/1.1 200 OK\r\nContent-Type: application/connect+json\r\nConnection: close\r\n\r\n"

struct heard {
    char text[256];
    uint32_t messages, wanted;
};

static bool on_message(void *user, struct slice json)
{
    struct heard *heard = user;
    size_t used = strlen(heard->text);

    assert_true(used + json.size + 1 < sizeof heard->text);
    memcpy(heard->text + used, json.data, json.size);
    heard->text[used + json.size] = 0;
    return ++heard->messages != heard->wanted;
}

static enum client_result stream(const char *bytes, size_t size, struct heard *heard,
                                 struct buf *body)
{
    struct script script = { .answers = { bytes }, .answer_bytes = size };
    const struct client_stream wanted = { .method = "AdminService/WatchIncidents",
                                          .json = "{}",
                                          .message = on_message,
                                          .user = heard,
                                          .silence_ms = 60000 };
    struct client *client;

    script_start(&script);
    assert_int_equal(client_new(&(struct client_options){ .endpoint = script.endpoint }, &client),
                     ERR_OK);
    enum client_result result = client_stream(client, &wanted, body);
    script_stop(&script);
    client_free(client);
    return result;
}

#define STREAM(text, heard, body) stream(text, sizeof(text) - 1, heard, body)

static void a_stream_tells_its_messages_and_how_it_ended(void **state)
{
    struct heard heard = { .text = "" };
    struct buf body = { 0 };
    (void)state;

    assert_int_equal(
        STREAM(STREAM_HEAD "\0\0\0\0\7{\"a\":1}\0\0\0\0\7{\"a\":2}\2\0\0\0\2{}", &heard, &body),
        CLIENT_OK);
    assert_string_equal(heard.text, "{\"a\":1}{\"a\":2}");
    heard = (struct heard){ .text = "" };
    assert_int_equal(STREAM(STREAM_HEAD
                            "\0\0\0\0\7{\"a\":1}\2\0\0\0\214"
                            "{\"error\":{\"code\":\"aborted\",\"details\":"
                            "[{\"type\":\"holdfast.v1.ErrorDetail\",\"debug\":{"
                            "\"code\":\"ERROR_CODE_SESSION_LOST\",\"action\":\"ACTION_FIX\"}}]}}",
                            &heard, &body),
                     CLIENT_REFUSED);
    assert_int_equal(heard.messages, 1);
    assert_memory_equal(body.data, "{\"code\":\"aborted\"", 17);
    buf_deinit(&body);
}

static void a_stream_that_breaks_off_is_no_end(void **state)
{
    struct heard heard = { .text = "" };
    struct buf body = { 0 };
    (void)state;

    assert_int_equal(STREAM(STREAM_HEAD "\0\0\0\0\7{\"a\":1}\0\0\0\0\7{\"a", &heard, &body),
                     CLIENT_UNKNOWN);
    assert_int_equal(heard.messages, 1);
    assert_true(body.size > 0);
    buf_deinit(&body);
}

static void who_has_heard_enough_ends_a_stream(void **state)
{
    struct heard heard = { .wanted = 2 };
    struct buf body = { 0 };
    (void)state;

    assert_int_equal(STREAM(STREAM_HEAD "\0\0\0\0\2{}\0\0\0\0\2{}\0\0\0\0\2{}", &heard, &body),
                     CLIENT_OK);
    assert_int_equal(heard.messages, 2);
    buf_deinit(&body);
}

static void a_refused_stream_has_the_error(void **state)
{
    struct heard heard = { .text = "" };
    struct buf body = { 0 };
    (void)state;

    assert_int_equal(STREAM(ERROR_ANSWER("404 Not Found", CODE_FIELD("UNIMPLEMENTED")
                                                              DECISION("NOT_APPLIED", "FIX")),
                            &heard, &body),
                     CLIENT_REFUSED);
    assert_int_equal(heard.messages, 0);
    assert_memory_equal(body.data, "{\"code\":\"x\",", 12);
    assert_int_equal(
        STREAM(ERROR_ANSWER("503 X", CODE_FIELD("UNAVAILABLE") LATER("9")), &heard, &body),
        CLIENT_LATER);
    buf_deinit(&body);
}

static void op_ids_are_version_7_and_differ(void **state)
{
    char a[37], b[37];
    struct uuid uuid;
    (void)state;

    client_op_id(a);
    client_op_id(b);
    assert_string_not_equal(a, b);
    assert_int_equal(uuid_parse(slice_from_text(a), &uuid), ERR_OK);
    assert_true(uuid_is_v7(&uuid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_answer_is_unknown_never_failed),
        cmocka_unit_test(an_answer_that_is_no_http_is_unknown),
        cmocka_unit_test(unknown_is_repeated_and_its_outcome_learnt),
        cmocka_unit_test(each_row_of_the_decision_table_is_kept),
        cmocka_unit_test(what_a_router_sends_once_is_not_repeated),
        cmocka_unit_test(nobody_listening_is_unreachable),
        cmocka_unit_test(a_stream_tells_its_messages_and_how_it_ended),
        cmocka_unit_test(a_stream_that_breaks_off_is_no_end),
        cmocka_unit_test(who_has_heard_enough_ends_a_stream),
        cmocka_unit_test(a_refused_stream_has_the_error),
        cmocka_unit_test(op_ids_are_version_7_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
