#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/tls/certs.h"
#include "runtime/tls/tls_private.h"
#include "runtime/tls/tls_session.h"

/* Two clusters' CAs and their leaves, made once. */
struct place {
    char directory[2][TEST_DIRECTORY_BYTES];
};

struct pair {
    struct tls_session *client;
    struct tls_session *server;
    err client_end; /* What the last read said. */
    err server_end;
    struct buf at_client; /* Plaintext that arrived. */
    struct buf at_server;
};

static const char *const leaves[] = { "a", "b", "old" };

static void path_of(char ret_path[96], const char *directory, const char *stem, const char *suffix)
{
    snprintf(ret_path, 96, "%s/%s.%s", directory, stem, suffix);
}

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct tls_error error;
    bool made;
    for (int i = 0; i < 2; i++) {
        test_directory_make("tls", p->directory[i]);
        assert_int_equal(certs_make_ca(p->directory[i], "test", &made, &error), ERR_OK);
        for (int k = 0; k < 3; k++) {
            struct certs_leaf leaf = { .name = leaves[k] };
            if (k == 2) {
                leaf.not_before_ms = 946684800000;
                leaf.not_after_ms = 978307200000;
            }
            assert_int_equal(certs_make_leaf(p->directory[i], &leaf, &made, &error), ERR_OK);
        }
    }
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    for (int i = 0; i < 2; i++)
        test_directory_remove(p->directory[i]);
    free(p);
    return 0;
}

/* `leaf` NULL: no certificate. */
static struct tls_config *config_of(struct place *p, enum tls_side side, int cluster,
                                    const char *leaf)
{
    char ca[96], crt[96], key[96];
    struct tls_error error;
    struct tls_config *config = NULL;
    path_of(ca, p->directory[cluster], "ca", "crt");
    struct tls_options options = { .side = side, .ca = { .path = ca }, .verify_peer = true };
    if (leaf != NULL) {
        path_of(crt, p->directory[cluster], leaf, "crt");
        path_of(key, p->directory[cluster], leaf, "key");
        options.cert.path = crt;
        options.key.path = key;
    }
    if (tls_config_new(&options, &config, &error) != ERR_OK)
        fail_msg("%s", error.text);
    return config;
}

static void pair_init(struct pair *pair, struct tls_config *client, struct tls_config *server)
{
    *pair = (struct pair){ 0 };
    assert_int_equal(tls_session_new(client, &pair->client), ERR_OK);
    assert_int_equal(tls_session_new(server, &pair->server), ERR_OK);
    tls_config_free(client);
    tls_config_free(server);
}

static void pair_deinit(struct pair *pair)
{
    tls_session_free(pair->client);
    tls_session_free(pair->server);
    buf_deinit(&pair->at_client);
    buf_deinit(&pair->at_server);
}

/* Carries what one side has to the other, at most `chunk` bytes at a time. */
static bool carry(struct tls_session *from, struct tls_session *to, size_t chunk)
{
    struct buf *out = tls_session_output(from);
    if (out->size == 0)
        return false;
    size_t size = out->size < chunk ? out->size : chunk;
    assert_int_equal(tls_session_feed(to, (struct slice){ out->data, size }), ERR_OK);
    buf_consume(out, size);
    return true;
}

static err read_all(struct tls_session *session, struct buf *into)
{
    for (;;) {
        size_t size = 0;
        err e = tls_session_read(session, buf_reserve(into, 1000), 1000, &size);
        if (e != ERR_OK)
            return e;
        into->size += size;
    }
}

static void settle(struct pair *pair, size_t chunk)
{
    bool moved = true;
    for (int rounds = 0; moved && rounds < 1000000; rounds++) {
        moved = carry(pair->client, pair->server, chunk);
        pair->server_end = read_all(pair->server, &pair->at_server);
        moved |= carry(pair->server, pair->client, chunk);
        pair->client_end = read_all(pair->client, &pair->at_client);
    }
}

static void mutual_handshake_carries_data_both_ways(void **state)
{
    struct pair pair;
    static uint8_t big[100000];
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (uint8_t)(i * 7);
    for (size_t chunk = 1; chunk < 100000; chunk = chunk * 300 + 1) {
        pair_init(&pair, config_of(*state, TLS_CLIENT, 0, "a"),
                  config_of(*state, TLS_SERVER, 0, "b"));
        assert_int_equal(tls_session_write(pair.client, SLICE_LITERAL("early")), ERR_NEED);
        settle(&pair, chunk);
        assert_true(tls_session_is_established(pair.client));
        assert_true(tls_session_is_established(pair.server));
        assert_non_null(strstr(tls_session_peer_name(pair.server), "CN=a"));
        assert_non_null(strstr(tls_session_peer_name(pair.client), "CN=b"));
        assert_non_null(strstr(tls_session_cipher(pair.client),
                               tls_has_fast_aes() ? "AES-128-CCM" : "CHACHA20"));
        struct slice bytes = { big, sizeof big };
        assert_int_equal(tls_session_write(pair.client, bytes), ERR_OK);
        assert_int_equal(tls_session_write(pair.server, SLICE_LITERAL("short")), ERR_OK);
        settle(&pair, chunk);
        assert_true(slice_equal(buf_slice(&pair.at_server), bytes));
        assert_true(slice_equal(buf_slice(&pair.at_client), SLICE_LITERAL("short")));
        pair_deinit(&pair);
    }
}

/* A client of mbedtls alone, which does what no session of ours does. */
struct bare {
    mbedtls_ssl_context ssl;
    struct tls_session *server;
};

static int bare_send(void *user, const unsigned char *data, size_t size)
{
    struct bare *bare = user;

    return tls_session_feed(bare->server, (struct slice){ data, size }) == ERR_OK ? (int)size : -1;
}

static int bare_receive(void *user, unsigned char *ret_data, size_t size)
{
    struct bare *bare = user;
    struct buf *out = tls_session_output(bare->server);

    if (out->size == 0)
        return MBEDTLS_ERR_SSL_WANT_READ;
    size = size < out->size ? size : out->size;
    memcpy(ret_data, out->data, size);
    buf_consume(out, size);
    return (int)size;
}

static void a_session_ends_when_its_peer_asks_to_renegotiate(void **state)
{
    struct tls_config *client = config_of(*state, TLS_CLIENT, 0, "a");
    struct tls_config *config = config_of(*state, TLS_SERVER, 0, "b");
    struct bare bare;
    uint8_t bytes[64];
    size_t size;

    assert_int_equal(tls_session_new(config, &bare.server), ERR_OK);
    mbedtls_ssl_init(&bare.ssl);
    mbedtls_ssl_conf_renegotiation(&client->conf, MBEDTLS_SSL_RENEGOTIATION_ENABLED);
    assert_int_equal(mbedtls_ssl_setup(&bare.ssl, &client->conf), 0);
    mbedtls_ssl_set_bio(&bare.ssl, &bare, bare_send, bare_receive, NULL);
    while (mbedtls_ssl_handshake(&bare.ssl) != 0)
        assert_int_equal(tls_session_read(bare.server, bytes, sizeof bytes, &size), ERR_NEED);
    assert_int_equal(mbedtls_ssl_renegotiate(&bare.ssl), MBEDTLS_ERR_SSL_WANT_READ);
    assert_int_equal(tls_session_read(bare.server, bytes, sizeof bytes, &size), ERR_CORRUPT);
    assert_string_equal(tls_session_error(bare.server), "the peer asked to renegotiate");
    assert_false(tls_session_is_established(bare.server));
    mbedtls_ssl_free(&bare.ssl);
    tls_session_free(bare.server);
    tls_config_free(client);
    tls_config_free(config);
}

/* As those of an earlier version, of a processor without AES, or of the public port. */
static void a_peer_that_does_not_know_ccm_gets_chacha20(void **state)
{
    struct pair pair;
    struct tls_config *client = config_of(*state, TLS_CLIENT, 0, "a");

    mbedtls_ssl_conf_ciphersuites(
        &client->conf, (const int[]){ MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                                      MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, 0 });
    pair_init(&pair, client, config_of(*state, TLS_SERVER, 0, "b"));
    settle(&pair, 4096);
    assert_non_null(strstr(tls_session_cipher(pair.server), "CHACHA20"));
    pair_deinit(&pair);
}

static void close_notify_is_an_orderly_end(void **state)
{
    struct pair pair;
    pair_init(&pair, config_of(*state, TLS_CLIENT, 0, "a"), config_of(*state, TLS_SERVER, 0, "b"));
    settle(&pair, 4096);
    tls_session_close(pair.client);
    settle(&pair, 4096);
    assert_int_equal(pair.server_end, ERR_CLOSED);
    assert_int_equal(tls_session_write(pair.client, SLICE_LITERAL("late")), ERR_CLOSED);
    pair_deinit(&pair);
}

static void certificate_of_another_ca_is_refused_by_name(void **state)
{
    struct pair pair;
    pair_init(&pair, config_of(*state, TLS_CLIENT, 0, "a"), config_of(*state, TLS_SERVER, 1, "b"));
    settle(&pair, 4096);
    assert_int_equal(pair.client_end, ERR_PERMISSION);
    assert_non_null(strstr(tls_session_error(pair.client), "unknown CA"));
    assert_int_equal(pair.server_end, ERR_PERMISSION);
    assert_non_null(strstr(tls_session_error(pair.server), "unknown CA"));
    pair_deinit(&pair);
}

static void client_without_certificate_is_refused(void **state)
{
    struct pair pair;
    pair_init(&pair, config_of(*state, TLS_CLIENT, 0, NULL), config_of(*state, TLS_SERVER, 0, "b"));
    settle(&pair, 4096);
    assert_int_equal(pair.server_end, ERR_PERMISSION);
    assert_non_null(strstr(tls_session_error(pair.server), "no client certificate"));
    assert_int_equal(pair.client_end, ERR_PERMISSION);
    pair_deinit(&pair);
}

static void expired_certificate_is_refused_as_expired(void **state)
{
    struct pair pair;
    pair_init(&pair, config_of(*state, TLS_CLIENT, 0, "old"),
              config_of(*state, TLS_SERVER, 0, "b"));
    settle(&pair, 4096);
    assert_int_equal(pair.server_end, ERR_PERMISSION);
    assert_non_null(strstr(tls_session_error(pair.server), "certificate expired"));
    pair_deinit(&pair);
}

static void garbage_ends_the_session_with_a_text(void **state)
{
    struct pair pair;
    pair_init(&pair, config_of(*state, TLS_CLIENT, 0, "a"), config_of(*state, TLS_SERVER, 0, "b"));
    assert_int_equal(
        tls_session_feed(pair.server, SLICE_LITERAL("GET / HTTP/1.1\r\nHost: x\r\n\r\n")), ERR_OK);
    assert_int_equal(read_all(pair.server, &pair.at_server), ERR_CORRUPT);
    assert_string_not_equal(tls_session_error(pair.server), "");
    pair_deinit(&pair);
}

static void public_server_takes_any_client_and_picks_its_alpn(void **state)
{
    struct place *p = *state;
    char ca[96], crt[96], key[96];
    struct tls_error error;
    struct tls_config *server, *client;
    struct pair pair;
    path_of(ca, p->directory[0], "ca", "crt");
    path_of(crt, p->directory[0], "b", "crt");
    path_of(key, p->directory[0], "b", "key");
    struct tls_options options = {
        .side = TLS_SERVER, .cert.path = crt, .key.path = key, .alpn = { "h2", "http/1.1" }
    };
    assert_int_equal(tls_config_new(&options, &server, &error), ERR_OK);
    struct tls_options wishes = { .side = TLS_CLIENT,
                                  .ca.path = ca,
                                  .verify_peer = true,
                                  .server_name = "localhost",
                                  .alpn = { "http/1.1", "h2" } };
    assert_int_equal(tls_config_new(&wishes, &client, &error), ERR_OK);
    pair_init(&pair, client, server);
    settle(&pair, 4096);
    assert_true(tls_session_is_established(pair.client));
    assert_string_equal(tls_session_alpn(pair.server), "h2");
    assert_string_equal(tls_session_alpn(pair.client), "h2");
    assert_string_equal(tls_session_peer_name(pair.server), "");
    pair_deinit(&pair);
}

static void server_of_another_name_is_refused(void **state)
{
    struct place *p = *state;
    char ca[96];
    struct tls_error error;
    struct tls_config *client;
    struct pair pair;
    path_of(ca, p->directory[0], "ca", "crt");
    struct tls_options wishes = {
        .side = TLS_CLIENT, .ca.path = ca, .verify_peer = true, .server_name = "elsewhere"
    };
    assert_int_equal(tls_config_new(&wishes, &client, &error), ERR_OK);
    pair_init(&pair, client, config_of(p, TLS_SERVER, 0, "b"));
    settle(&pair, 4096);
    assert_int_equal(pair.client_end, ERR_PERMISSION);
    assert_non_null(strstr(tls_session_error(pair.client), "another name"));
    pair_deinit(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutual_handshake_carries_data_both_ways),
        cmocka_unit_test(a_session_ends_when_its_peer_asks_to_renegotiate),
        cmocka_unit_test(a_peer_that_does_not_know_ccm_gets_chacha20),
        cmocka_unit_test(close_notify_is_an_orderly_end),
        cmocka_unit_test(certificate_of_another_ca_is_refused_by_name),
        cmocka_unit_test(client_without_certificate_is_refused),
        cmocka_unit_test(expired_certificate_is_refused_as_expired),
        cmocka_unit_test(garbage_ends_the_session_with_a_text),
        cmocka_unit_test(public_server_takes_any_client_and_picks_its_alpn),
        cmocka_unit_test(server_of_another_name_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
