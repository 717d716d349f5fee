#include "runtime/tls/tls_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/tls/tls_private.h"
#include "runtime/tls/tls_resumption.h"

#define RECORD_HEAD_BYTES 5u /* RFC 5246 section 6.2.1. */
#define RECORD_BYTES_MAX  16384u

struct tls_session {
    mbedtls_ssl_context ssl;
    struct tls_config *config;
    struct buf in; /* Ciphertext from in_at on is not yet read. */
    size_t in_at;
    struct buf out;
    err state; /* ERR_OK, or how it ended. */
    bool established;
    bool close_said;
    bool resumed;
    struct tls_error error;
    char peer_name[TLS_ERROR_SIZE];
};

/* RFC 5246 section 7.2. */
struct alert {
    unsigned char number;
    bool refused; /* About certificates or rights. */
    const char *text;
};
static const struct alert alerts[] = {
    { MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE, true, "handshake failure (no certificate?)" },
    { MBEDTLS_SSL_ALERT_MSG_NO_CERT, true, "no certificate" },
    { MBEDTLS_SSL_ALERT_MSG_BAD_CERT, true, "bad certificate" },
    { MBEDTLS_SSL_ALERT_MSG_UNSUPPORTED_CERT, true, "unsupported certificate" },
    { MBEDTLS_SSL_ALERT_MSG_CERT_REVOKED, true, "certificate revoked" },
    { MBEDTLS_SSL_ALERT_MSG_CERT_EXPIRED, true, "certificate expired" },
    { MBEDTLS_SSL_ALERT_MSG_CERT_UNKNOWN, true, "certificate unknown" },
    { MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA, true, "unknown CA" },
    { MBEDTLS_SSL_ALERT_MSG_ACCESS_DENIED, true, "access denied" },
    { MBEDTLS_SSL_ALERT_MSG_PROTOCOL_VERSION, false, "protocol version" },
    { MBEDTLS_SSL_ALERT_MSG_NO_APPLICATION_PROTOCOL, false, "no common ALPN protocol" },
};

struct verify_flag {
    uint32_t flag;
    const char *text;
};
static const struct verify_flag verify_flags[] = {
    { MBEDTLS_X509_BADCERT_EXPIRED, "certificate expired" },
    { MBEDTLS_X509_BADCERT_FUTURE, "certificate not valid yet" },
    { MBEDTLS_X509_BADCERT_NOT_TRUSTED, "unknown CA" },
    { MBEDTLS_X509_BADCERT_CN_MISMATCH, "certificate of another name" },
    { MBEDTLS_X509_BADCERT_REVOKED, "certificate revoked" },
    { MBEDTLS_X509_BADCERT_MISSING, "no certificate" },
    { MBEDTLS_X509_BADCERT_BAD_KEY, "key of the certificate is too weak" },
};

static int bio_send(void *user, const unsigned char *data, size_t size)
{
    struct tls_session *session = user;

    size = size < INT32_MAX ? size : INT32_MAX;
    buf_append(&session->out, data, size);
    return (int)size;
}

static int bio_recv(void *user, unsigned char *ret_data, size_t size)
{
    struct tls_session *session = user;
    size_t left = session->in.size - session->in_at;

    if (left == 0)
        return MBEDTLS_ERR_SSL_WANT_READ;
    size = size < left ? size : left;
    memcpy(ret_data, session->in.data + session->in_at, size);
    session->in_at += size;
    if (session->in_at == session->in.size) {
        buf_clear(&session->in);
        session->in_at = 0;
    }
    return (int)size;
}

static err fail_by_alert(struct tls_session *session)
{
    unsigned char number = session->ssl.in_msg[1];

    for (size_t i = 0; i < ARRAY_SIZE(alerts); i++) {
        if (alerts[i].number != number)
            continue;
        tls_error_set(&session->error, "refused by the peer: %s (alert %u)", alerts[i].text,
                      number);
        return alerts[i].refused ? ERR_PERMISSION : ERR_CORRUPT;
    }
    tls_error_set(&session->error, "refused by the peer: alert %u", number);
    return ERR_CORRUPT;
}

static err fail_by_verification(struct tls_session *session)
{
    uint32_t flags = mbedtls_ssl_get_verify_result(&session->ssl);
    size_t used = 0;

    for (size_t i = 0; i < ARRAY_SIZE(verify_flags); i++) {
        if ((flags & verify_flags[i].flag) == 0 || flags == UINT32_MAX)
            continue;
        int wrote = snprintf(session->error.text + used, sizeof session->error.text - used, "%s%s",
                             used > 0 ? ", " : "peer refused: ", verify_flags[i].text);
        used += (size_t)wrote;
    }
    if (used == 0)
        tls_error_set(&session->error, "peer refused: certificate check failed (flags 0x%x)",
                      flags);
    return ERR_PERMISSION;
}

/* Turns mbedtls's answer into ours and remembers the end. */
static err conclude(struct tls_session *session, int code)
{
    struct tls_error why;

    switch (code) {
    case MBEDTLS_ERR_SSL_WANT_READ:
    case MBEDTLS_ERR_SSL_WANT_WRITE:
        return ERR_NEED;
    case 0:
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
        tls_error_set(&session->error, "closed by the peer");
        session->state = ERR_CLOSED;
        break;
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
        session->state = fail_by_alert(session);
        break;
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
        session->state = fail_by_verification(session);
        break;
    case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE:
        tls_error_set(&session->error, "peer refused: no client certificate");
        /* mbedtls says nothing to the peer in this one case. */
        (void)mbedtls_ssl_send_alert_message(&session->ssl, MBEDTLS_SSL_ALERT_LEVEL_FATAL,
                                             MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE);
        session->state = ERR_PERMISSION;
        break;
    default:
        why = tls_error_of(code);
        tls_error_set(&session->error, "TLS: %.200s", why.text);
        session->state = ERR_CORRUPT;
    }
    return session->state;
}

enum tls_start tls_start_of(struct slice bytes)
{
    if (bytes.size > 0 && bytes.data[0] != MBEDTLS_SSL_MSG_HANDSHAKE)
        return TLS_START_BAD;
    if (bytes.size > 1 && bytes.data[1] != MBEDTLS_SSL_MAJOR_VERSION_3)
        return TLS_START_BAD;
    if (bytes.size < RECORD_HEAD_BYTES)
        return TLS_START_PART;
    size_t size = (size_t)bytes.data[3] << 8 | bytes.data[4];
    if (size > RECORD_BYTES_MAX || bytes.size > RECORD_HEAD_BYTES + RECORD_BYTES_MAX)
        return TLS_START_BAD;
    return bytes.size < RECORD_HEAD_BYTES + size ? TLS_START_PART : TLS_START_WHOLE;
}

static err handshake(struct tls_session *session)
{
    uint64_t resumed = tls_resumed(session->config);
    int code = mbedtls_ssl_handshake(&session->ssl);

    session->resumed |= tls_resumed(session->config) != resumed;

    if (code != 0)
        return conclude(session, code);
    session->established = true;
    const mbedtls_x509_crt *peer = mbedtls_ssl_get_peer_cert(&session->ssl);
    if (peer != NULL &&
        mbedtls_x509_dn_gets(session->peer_name, sizeof session->peer_name, &peer->subject) < 0)
        session->peer_name[0] = 0;
    return ERR_OK;
}

err tls_session_new(struct tls_config *config, struct tls_session **ret_session)
{
    struct tls_session *session = mem_zalloc(sizeof *session);

    session->config = tls_config_hold(config);
    mbedtls_ssl_init(&session->ssl);
    int code = mbedtls_ssl_setup(&session->ssl, &config->conf);
    if (code == 0 && config->server_name != NULL)
        code = mbedtls_ssl_set_hostname(&session->ssl, config->server_name);
    if (code != 0) {
        tls_session_free(session);
        return ERR_NO_MEMORY;
    }
    mbedtls_ssl_set_bio(&session->ssl, session, bio_send, bio_recv, NULL);
    if (config->side == TLS_CLIENT) {
        err e = handshake(session);
        if (e != ERR_NEED) {
            tls_session_free(session);
            return e;
        }
    }
    *ret_session = session;
    return ERR_OK;
}

void tls_session_free(struct tls_session *session)
{
    if (session == NULL)
        return;
    mbedtls_ssl_free(&session->ssl);
    buf_deinit(&session->in);
    buf_deinit(&session->out);
    tls_config_free(session->config);
    free(session);
}

err tls_session_feed(struct tls_session *session, struct slice ciphertext)
{
    size_t left = session->in.size - session->in_at;

    if (left + ciphertext.size > TLS_INPUT_MAX)
        return ERR_FULL;
    if (session->in_at > 0) {
        buf_consume(&session->in, session->in_at);
        session->in_at = 0;
    }
    buf_append(&session->in, ciphertext.data, ciphertext.size);
    return ERR_OK;
}

err tls_session_read(struct tls_session *session, uint8_t *ret_data, size_t size, size_t *ret_size)
{
    *ret_size = 0;
    if (session->state != ERR_OK)
        return session->state;
    if (!session->established) {
        err e = handshake(session);
        if (e != ERR_OK)
            return e;
    }
    size_t said = session->out.size;
    int code = mbedtls_ssl_read(&session->ssl, ret_data, size);
    if (code <= 0 && code != MBEDTLS_ERR_SSL_WANT_READ)
        return conclude(session, code);
    /* To nothing else that goes on does mbedtls answer, and any number may be asked. */
    if (session->out.size > said) {
        tls_error_set(&session->error, "the peer asked to renegotiate");
        session->state = ERR_CORRUPT;
        return session->state;
    }
    if (code <= 0)
        return conclude(session, code);
    *ret_size = (size_t)code;
    return ERR_OK;
}

err tls_session_write(struct tls_session *session, struct slice plaintext)
{
    if (session->state != ERR_OK)
        return session->state;
    if (!session->established)
        return ERR_NEED;
    if (session->close_said)
        return ERR_CLOSED;
    for (size_t done = 0; done < plaintext.size;) {
        int code = mbedtls_ssl_write(&session->ssl, plaintext.data + done, plaintext.size - done);
        if (code <= 0) {
            err e = conclude(session, code);
            CHECK(e != ERR_NEED); /* Memory always takes all. */
            return e;
        }
        done += (size_t)code;
    }
    return ERR_OK;
}

struct buf *tls_session_output(struct tls_session *session)
{
    return &session->out;
}

void tls_session_close(struct tls_session *session)
{
    if (session->close_said || !session->established)
        return;
    session->close_said = true;
    /* Best effort: without it the peer sees a cut connection instead of an orderly end. */
    (void)mbedtls_ssl_close_notify(&session->ssl);
}

bool tls_session_is_established(const struct tls_session *session)
{
    return session->established && session->state == ERR_OK;
}

bool tls_session_is_resumed(const struct tls_session *session)
{
    return session->resumed;
}

const char *tls_session_alpn(const struct tls_session *session)
{
    const char *name = mbedtls_ssl_get_alpn_protocol(&session->ssl);

    return name != NULL ? name : "";
}

const char *tls_session_peer_name(const struct tls_session *session)
{
    return session->peer_name;
}

size_t tls_session_peer_sans(const struct tls_session *session, struct tls_san *ret_sans,
                             size_t max)
{
    return tls_sans_of(mbedtls_ssl_get_peer_cert(&session->ssl), ret_sans, max);
}

const char *tls_session_cipher(const struct tls_session *session)
{
    const char *name = mbedtls_ssl_get_ciphersuite(&session->ssl);

    return name != NULL ? name : "";
}

const char *tls_session_error(const struct tls_session *session)
{
    return session->error.text;
}
