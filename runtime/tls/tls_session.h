/*
 * tls_session: one TLS connection over memory. It owns no socket: the caller feeds the bytes that
 * came in, reads plaintext, writes plaintext, and sends the bytes of tls_session_output. Used by
 * one thread at a time.
 *
 *   on input:  feed(bytes); loop { read() -> plaintext until ERR_NEED }; send output
 *   to send:   write(plaintext) once established; send output
 */
#ifndef RUNTIME_TLS_TLS_SESSION_H
#define RUNTIME_TLS_TLS_SESSION_H

#include "runtime/tls/tls_config.h"

#define TLS_INPUT_MAX 4194304u /* Ciphertext fed and not yet read. */

struct tls_session;

/* What came first on a connection. */
enum tls_start {
    TLS_START_PART, /* May become a handshake record: more is needed. */
    TLS_START_WHOLE,
    TLS_START_BAD /* No handshake record, or one of more than 16 KiB. */
};
/* `bytes` is all that came so far. Pure. */
enum tls_start tls_start_of(struct slice bytes);

/* Holds the config. A client's first flight is in the output at once. */
NODISCARD err tls_session_new(struct tls_config *config, struct tls_session **ret_session);
void tls_session_free(struct tls_session *session);

/* Copies ciphertext in. ERR_FULL: more than TLS_INPUT_MAX would wait; read first. */
NODISCARD err tls_session_feed(struct tls_session *session, struct slice ciphertext);
/* Goes on with the handshake, then gives up to `size` bytes of plaintext.
 *   ERR_OK          *ret_size > 0 bytes were read
 *   ERR_NEED        nothing more until more is fed (output may wait to be sent)
 *   ERR_CLOSED      the peer said close_notify: an orderly end
 *   ERR_PERMISSION  a certificate was refused, by us or by the peer; text in tls_session_error
 *   ERR_CORRUPT     anything else, such as a request to renegotiate; text in tls_session_error.
 *                   Final, as is ERR_PERMISSION; send the output (an alert) and close. */
NODISCARD err tls_session_read(struct tls_session *session, uint8_t *ret_data, size_t size,
                               size_t *ret_size);
/* Encrypts all of it into the output. ERR_NEED: not established yet; ERR_CLOSED, ERR_CORRUPT:
 * after the end. The output grows by what is written: the caller bounds it. */
NODISCARD err tls_session_write(struct tls_session *session, struct slice plaintext);
/* Ciphertext to send; take it with buf_consume, or swap the buffer for an empty one. */
struct buf *tls_session_output(struct tls_session *session);
/* Appends close_notify to the output, once. */
void tls_session_close(struct tls_session *session);

bool tls_session_is_established(const struct tls_session *session);
/* The handshake was a short one, by a ticket or from the cache of tls_options.resumption. */
bool tls_session_is_resumed(const struct tls_session *session);
/* The protocol agreed on by ALPN, or "". */
const char *tls_session_alpn(const struct tls_session *session);
/* The peer's certificate subject ("CN=node-1, O=holdfast"), or "" without one. */
const char *tls_session_peer_name(const struct tls_session *session);
/* As tls_config_own_sans, of the peer's certificate. Good until the session is read, written or
 * freed. 0 without a certificate. */
size_t tls_session_peer_sans(const struct tls_session *session, struct tls_san *ret_sans,
                             size_t max);
const char *tls_session_cipher(const struct tls_session *session);
/* Why the session failed ("certificate expired", "unknown CA"...), or "". */
const char *tls_session_error(const struct tls_session *session);

#endif
