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

static void refusal_is_final(void **state)
{
    struct script script = { .answers = { "HTTP/1.1 400 Bad Request\r\nContent-Length: 27\r\n"
                                          "Connection: close\r\n\r\n"
                                          "{\"code\":\"invalid_argument\"}" } };
    struct buf body = { 0 };
    (void)state;

    assert_int_equal(call(&script, 8000, &body), CLIENT_REFUSED);
    assert_int_equal(script.served, 1);
    buf_deinit(&body);
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
    const struct client_stream wanted = { .method = "AdminService/WatchEvents",
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
                            "\0\0\0\0\7{\"a\":1}\2\0\0\0\34{\"error\":{\"code\":\"aborted\"}}",
                            &heard, &body),
                     CLIENT_REFUSED);
    assert_int_equal(heard.messages, 1);
    assert_memory_equal(body.data, "{\"code\":\"aborted\"}", 18);
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

    assert_int_equal(STREAM("HTTP/1.1 404 Not Found\r\nContent-Length: 24\r\n"
                            "Connection: close\r\n\r\n{\"code\":\"unimplemented\"}",
                            &heard, &body),
                     CLIENT_REFUSED);
    assert_int_equal(heard.messages, 0);
    assert_int_equal(body.size, 24);
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
        cmocka_unit_test(unknown_is_repeated_and_its_outcome_learnt),
        cmocka_unit_test(refusal_is_final),
        cmocka_unit_test(nobody_listening_is_unreachable),
        cmocka_unit_test(a_stream_tells_its_messages_and_how_it_ended),
        cmocka_unit_test(a_stream_that_breaks_off_is_no_end),
        cmocka_unit_test(who_has_heard_enough_ends_a_stream),
        cmocka_unit_test(a_refused_stream_has_the_error),
        cmocka_unit_test(op_ids_are_version_7_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
