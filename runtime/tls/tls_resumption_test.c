/* Clients that come back: by a ticket and by a session's id, and what it saves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/tls/certs.h"
#include "runtime/tls/tls_resumption.h"
#include "runtime/tls/tls_session.h"

#define ROUNDS 20u

struct client {
    mbedtls_ssl_context ssl;
    mbedtls_ssl_config conf;
    struct tls_session *server;
    struct buf to_client;
};

static char directory[TEST_DIRECTORY_BYTES];

static struct tls_config *server_config(bool resumption)
{
    char cert[TEST_DIRECTORY_BYTES + 8], key[TEST_DIRECTORY_BYTES + 8];
    struct tls_options options = {
        .side = TLS_SERVER, .cert.path = cert, .key.path = key, .resumption = resumption
    };
    struct tls_config *config;
    struct tls_error error;

    (void)snprintf(cert, sizeof cert, "%s/a.crt", directory);
    (void)snprintf(key, sizeof key, "%s/a.key", directory);
    assert_int_equal(tls_config_new(&options, &config, &error), ERR_OK);
    return config;
}

static int to_server(void *user, const unsigned char *bytes, size_t size)
{
    struct client *client = user;

    assert_int_equal(tls_session_feed(client->server, (struct slice){ bytes, size }), ERR_OK);
    return (int)size;
}

static int from_server(void *user, unsigned char *ret_bytes, size_t size)
{
    struct client *client = user;

    if (client->to_client.size == 0)
        return MBEDTLS_ERR_SSL_WANT_READ;
    size = size < client->to_client.size ? size : client->to_client.size;
    memcpy(ret_bytes, client->to_client.data, size);
    buf_consume(&client->to_client, size);
    return (int)size;
}

static uint64_t now_us(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* A whole handshake; true: it was a short one. `session` goes in and, if asked, out. */
static bool shake(struct tls_config *config, bool tickets, mbedtls_ssl_session *session,
                  uint64_t *ret_server_us)
{
    struct client client = { .to_client = { 0 } };
    uint8_t bytes[64];
    size_t size;
    int code;

    mbedtls_ssl_init(&client.ssl);
    mbedtls_ssl_config_init(&client.conf);
    assert_int_equal(mbedtls_ssl_config_defaults(&client.conf, MBEDTLS_SSL_IS_CLIENT,
                                                 MBEDTLS_SSL_TRANSPORT_STREAM,
                                                 MBEDTLS_SSL_PRESET_DEFAULT),
                     0);
    mbedtls_ssl_conf_rng(&client.conf, tls_random, NULL);
    mbedtls_ssl_conf_authmode(&client.conf, MBEDTLS_SSL_VERIFY_NONE);
    mbedtls_ssl_conf_session_tickets(&client.conf, tickets);
    assert_int_equal(mbedtls_ssl_setup(&client.ssl, &client.conf), 0);
    if (session->ciphersuite != 0) /* It was got from an earlier one. */
        assert_int_equal(mbedtls_ssl_set_session(&client.ssl, session), 0);
    mbedtls_ssl_set_bio(&client.ssl, &client, to_server, from_server, NULL);
    assert_int_equal(tls_session_new(config, &client.server), ERR_OK);
    *ret_server_us = 0;
    for (int turn = 0; turn < 20; turn++) {
        code = mbedtls_ssl_handshake(&client.ssl);
        uint64_t begun_us = now_us();
        assert_int_equal(tls_session_read(client.server, bytes, sizeof bytes, &size), ERR_NEED);
        *ret_server_us += now_us() - begun_us;
        struct buf *out = tls_session_output(client.server);
        buf_append(&client.to_client, out->data, out->size);
        buf_clear(out);
        if (code == 0 && tls_session_is_established(client.server))
            break;
    }
    assert_int_equal(code, 0);
    mbedtls_ssl_session_free(session);
    mbedtls_ssl_session_init(session);
    assert_int_equal(mbedtls_ssl_get_session(&client.ssl, session), 0);
    bool resumed = tls_session_is_resumed(client.server);
    tls_session_free(client.server);
    buf_deinit(&client.to_client);
    mbedtls_ssl_free(&client.ssl);
    mbedtls_ssl_config_free(&client.conf);
    return resumed;
}

static void measure(bool tickets)
{
    struct tls_config *config = server_config(true);
    uint64_t whole_us = 0, short_us = 0, took_us;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        mbedtls_ssl_session session;
        mbedtls_ssl_session_init(&session);
        assert_false(shake(config, tickets, &session, &took_us));
        whole_us += took_us;
        assert_true(shake(config, tickets, &session, &took_us));
        short_us += took_us;
        mbedtls_ssl_session_free(&session);
    }
    print_message("a handshake takes the server %llu us, a resumed one %llu us\n",
                  (unsigned long long)(whole_us / ROUNDS), (unsigned long long)(short_us / ROUNDS));
    assert_true(short_us * 2 < whole_us);
    tls_config_free(config);
}

static void client_with_a_ticket_resumes_for_less(void **state)
{
    (void)state;
    measure(true);
}

static void client_without_tickets_resumes_by_its_sessions_id(void **state)
{
    (void)state;
    measure(false);
}

/* A ticket of other keys, as after new certificates, costs a whole handshake and no error. */
static void ticket_of_another_configuration_is_not_taken(void **state)
{
    struct tls_config *first = server_config(true), *second = server_config(true);
    struct tls_config *without = server_config(false);
    mbedtls_ssl_session session;
    uint64_t took_us;

    (void)state;
    mbedtls_ssl_session_init(&session);
    assert_false(shake(first, true, &session, &took_us));
    assert_false(shake(second, true, &session, &took_us));
    assert_true(shake(second, true, &session, &took_us));
    assert_false(shake(without, true, &session, &took_us));
    assert_false(shake(without, true, &session, &took_us));
    mbedtls_ssl_session_free(&session);
    tls_config_free(first);
    tls_config_free(second);
    tls_config_free(without);
}

static void peers_that_are_verified_do_not_resume(void **state)
{
    char cert[TEST_DIRECTORY_BYTES + 8], key[TEST_DIRECTORY_BYTES + 8];
    struct tls_options options = { .side = TLS_SERVER,
                                   .ca.path = cert,
                                   .cert.path = cert,
                                   .key.path = key,
                                   .verify_peer = true,
                                   .resumption = true };
    struct tls_config *config;
    struct tls_error error;

    (void)state;
    (void)snprintf(cert, sizeof cert, "%s/a.crt", directory);
    (void)snprintf(key, sizeof key, "%s/a.key", directory);
    assert_int_equal(tls_config_new(&options, &config, &error), ERR_INVALID);
    assert_non_null(strstr(error.text, "resumption"));
}

static void first_bytes_are_told_apart(void **state)
{
    static const uint8_t whole[] = { 22, 3, 1, 0, 2, 1, 0 };

    (void)state;
    assert_int_equal(tls_start_of((struct slice){ whole, 0 }), TLS_START_PART);
    for (size_t size = 1; size < sizeof whole; size++)
        assert_int_equal(tls_start_of((struct slice){ whole, size }), TLS_START_PART);
    assert_int_equal(tls_start_of((struct slice){ whole, sizeof whole }), TLS_START_WHOLE);
    assert_int_equal(tls_start_of(SLICE_LITERAL("\x17\x03\x03")), TLS_START_BAD);
    assert_int_equal(tls_start_of(SLICE_LITERAL("\x16\x02")), TLS_START_BAD);
    assert_int_equal(tls_start_of(SLICE_LITERAL("\x16\x03\x01\x40\x01")), TLS_START_BAD);
    assert_int_equal(tls_start_of(SLICE_LITERAL("GET /")), TLS_START_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_with_a_ticket_resumes_for_less),
        cmocka_unit_test(client_without_tickets_resumes_by_its_sessions_id),
        cmocka_unit_test(ticket_of_another_configuration_is_not_taken),
        cmocka_unit_test(peers_that_are_verified_do_not_resume),
        cmocka_unit_test(first_bytes_are_told_apart),
    };
    struct certs_leaf leaf = { .name = "a" };
    struct tls_error error;
    bool made;

    test_directory_make("resume", directory);
    CHECK(certs_make_ca(directory, "test", &made, &error) == ERR_OK);
    CHECK(certs_make_leaf(directory, &leaf, &made, &error) == ERR_OK);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_directory_remove(directory);
    return failed;
}
