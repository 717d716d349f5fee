/*
 * link: one connection between two processes that carries frames (DESIGN section 9), whichever
 * transport is below: nng streams (router <-> node unless configured otherwise, coordinator, CLI,
 * native clients) or libuv TCP (node <-> node). Handles dialling with
 * backoff, TLS, HELLO, pings, coalesced writes, pacing and limits. It never repeats, reorders or
 * interprets a frame; calls are call.h.
 *
 * Everything runs on the thread of the hub's loop, callbacks too. No callback is ever run from
 * inside link_send. One process forks, if at all, before its first hub exists (nng).
 *
 * Who is who (DESIGN section 11): with TLS the role and the name in HELLO must be those of the
 * peer's certificate (runtime/identity), on both sides; a dialled link also says whom it expects.
 * What the peer may then send is the hub's `admits`. Without TLS, which is for tests, HELLO is
 * believed.
 *
 * Node pairs: the replica with the higher id dials, the other listens; so there is one link a pair.
 */
#ifndef RUNTIME_LINK_LINK_H
#define RUNTIME_LINK_LINK_H

#include "runtime/base/budget.h"
#include "runtime/base/log.h"
#include "runtime/base/turnstile.h"
#include "runtime/link/frame.h"
#include "runtime/loop/loop.h"
#include "runtime/metrics/metrics.h"
#include "runtime/tls/tls_config.h"

#define LINK_OUT_BYTES_MAX            16777216u /* Default bound of a link's lane. */
#define LINK_COUNT_MAX                1024u /* Default bound of links and listeners of one hub. */
#define LINK_PING_PERIOD_MS           500u
#define LINK_SILENT_CLOSE_MS          5000u /* Nothing heard for so long: closed with an error. */
#define LINK_CONNECT_MS_MAX           5000u /* TCP, TLS and HELLO together. */
#define LINK_FIRST_MS_MAX             2000u /* An accepted one says nothing for so long: closed. */
#define LINK_UNPROVEN_MAX             128u  /* Defaults of the limits on strangers. */
#define LINK_UNPROVEN_ADDRESS_MAX     32u
#define LINK_HANDSHAKES_PER_S         1000u
#define LINK_HANDSHAKES_ADDRESS_PER_S 200u
#define LINK_HANDSHAKE_PERCENT        30u
#define LINK_BACKOFF_MS_MIN           5u
#define LINK_BACKOFF_MS_MAX           1000u
#define LINK_PACE_REQUESTS            16u   /* Paced links: so many requests leave at once. */
#define LINK_PACE_HOLD_MS_MAX         1u    /* And none is held longer than this. */
#define LINK_STEADY_MS                1000u /* Ready for less: the next dial waits longer still. */
#define LINK_ADDRESS_SIZE             272u

struct link;
struct link_hub;
struct link_listener;

/* A connection that may be gone: unique in its hub, never reused. Zeroed: none. */
struct link_ref {
    uint64_t generation;
    uint32_t slot;
};

/* Below both is TCP with the same bytes, so the sides of a link may differ. */
enum link_transport {
    LINK_NNG, /* nng tcp stream. */
    LINK_PEER /* libuv TCP. */
};

/* "nng" or "peer"; false: neither. */
bool link_transport_find(const char *name, enum link_transport *ret_transport);

enum link_close_reason {
    LINK_CLOSED_LOCAL,   /* link_close here. */
    LINK_CLOSED_BY_PEER, /* An orderly end: the process on the other side stopped or closed. */
    LINK_CLOSED_ERROR,   /* Reset, TLS, silence, a bad or oversized frame. */
    LINK_CLOSED_REFUSED  /* HELLO was refused; see enum link_refusal. */
};

/* Why a HELLO, or a frame after it, is refused: the label of holdfast_link_refused_total, the field
 * in the log, and what it means. */
/* clang-format off */
/*    enumerator    label           field               meaning */
#define LINK_REFUSAL_TABLE(X) \
    X(PROTOCOL,     "protocol",     "protocol_version", "another version of the protocol") \
    X(CLUSTER_ID,   "cluster_id",   "cluster_id",       "a process of another cluster") \
    X(UNNAMED,      "unnamed",      "certificate",      "the certificate names no identity") \
    X(IDENTITY,     "identity",     "certificate",      "the identity in the certificate is malformed") \
    X(CLUSTER,      "cluster",      "cluster",          "the certificate is of another cluster") \
    X(ROLE,         "role",         "role",             "the certificate is of another role") \
    X(NAME,         "name",         "name",             "the certificate is of another name") \
    X(PLACE,        "place",        "role",             "such a process does not connect here") \
    X(EXPECTED,     "expected",     "replica_id",       "not the process that was dialled") \
    X(UNREGISTERED, "unregistered", "replica_id",       "no such replica is registered in etcd yet") \
    X(REPLICA,      "replica",      "replica_id",       "that replica is registered under another name") \
    X(SIDE,         "side",         "replica_id",       "the replica with the greater id dials") \
    X(SECOND,       "second",       "replica_id",       "an older link of that replica is alive") \
    X(SCOPES,       "scopes",       "scopes",           "a scope in the certificate does not exist") \
    X(METHOD,       "method",       "method",           "a process of that role may not send this")
/* clang-format on */

#define LINK_REFUSAL_ENUM(enumerator, label, field, meaning) LINK_REFUSED_##enumerator,
enum link_refusal { LINK_ADMITTED, LINK_REFUSAL_TABLE(LINK_REFUSAL_ENUM) LINK_REFUSALS };
#undef LINK_REFUSAL_ENUM
/* The label: "replica"; "admitted" for LINK_ADMITTED. */
const char *link_refusal_name(enum link_refusal refusal);

/* What is done with a certificate that names no identity. One that names a malformed or another
 * identity is refused either way. */
enum link_names {
    LINK_NAMES_REQUIRE, /* It is refused. */
    LINK_NAMES_ACCEPT   /* HELLO is believed: for the upgrade from unnamed certificates. */
};
/* "require" or "accept-unnamed"; false: neither. */
bool link_names_find(const char *name, enum link_names *ret_names);

struct link_handlers {
    /* HELLO is complete and fits the certificate; the link is not ready yet, and nothing may be
     * sent. Anything but LINK_ADMITTED ends it, and `closed` does not follow. NULL: all are
     * admitted. Other links may be closed from here. */
    enum link_refusal (*admit)(void *user, struct link *link, const struct hello *peer);
    /* HELLO was exchanged and accepted; frames may be sent from here on. */
    void (*ready)(void *user, struct link *link, const struct hello *peer);
    /* REQUEST, RESPONSE, CANCEL, MESSAGE. `frame->body` is borrowed during the call. */
    void (*frame)(void *user, struct link *link, const struct frame *frame);
    /* After ERR_FULL: less than half of the queue is left. May be NULL. */
    void (*writable)(void *user, struct link *link);
    /* Exactly once after each `ready`. A dialled link will dial again (unless LOCAL); an accepted
     * one is freed after this returns. `text` says why. */
    void (*closed)(void *user, struct link *link, enum link_close_reason reason, const char *text);
    void *user;
};

struct link_hub_options {
    struct loop *loop;
    const struct log *log; /* Must outlive the hub. */
    struct hello self;     /* protocol_version 0: LINK_PROTOCOL_VERSION. */
    const char *cluster;   /* Its name, as certificates have it. Copied; NULL: "". */
    enum link_names names;
    /* Whether a peer of that role may send such a frame to a process of role `self`; REQUEST,
     * CANCEL and MESSAGE are asked about. NULL: all are admitted. A REQUEST that is not is answered
     * FRAME_STATUS_FORBIDDEN; anything else ends the link. */
    bool (*admits)(uint8_t self, uint8_t peer, uint8_t kind, uint16_t method);
    struct metrics *metrics;       /* Of the counters of refusals; NULL: none. */
    struct tls_config *tls_client; /* Both NULL: plain TCP, for tests only. Held. */
    struct tls_config *tls_server;
    uint32_t body_size_max;   /* 0: FRAME_BODY_SIZE_MAX. */
    uint32_t out_bytes_max;   /* 0: LINK_OUT_BYTES_MAX. */
    uint32_t link_count_max;  /* 0: LINK_COUNT_MAX. */
    uint32_t ping_period_ms;  /* 0: LINK_PING_PERIOD_MS. */
    uint32_t silent_close_ms; /* 0: LINK_SILENT_CLOSE_MS. */
    /* Accepted links that have not finished HELLO, and their TLS handshakes (turnstile.h). An
     * eighth of link_count_max is kept for links that are dialled, and an eighth of the others for
     * addresses that finished a HELLO lately. 0: the default of the same name. */
    uint32_t unproven_max;
    uint32_t unproven_address_max;
    uint32_t handshakes_per_s;
    uint32_t handshakes_address_per_s;
    uint32_t handshake_percent;
    /* Counts what waits for calls on links that were accepted: answers (out_queue.h). Must outlive
     * the hub. NULL: it is not counted. */
    struct budget *answers;
};

/* The fields that come from a process's configuration (PROCESS_CONFIG). */
#define LINK_HUB_CONFIG(config)                                                                    \
    .link_count_max = (config)->links_max, .unproven_max = (config)->links_unproven_max,           \
    .unproven_address_max = (config)->links_address_max,                                           \
    .handshakes_per_s = (config)->handshake_rate,                                                  \
    .handshakes_address_per_s = (config)->handshake_address_rate,                                  \
    .handshake_percent = (config)->handshake_share

/* One per loop. ERR_INVALID: a field of the options; logged. */
NODISCARD err link_hub_new(const struct link_hub_options *options, struct link_hub **ret_hub);
/* Closes every link (their `closed` is called) and listener, and runs the loop until that is
 * done. Not from a callback of the loop. NULL is allowed. */
void link_hub_free(struct link_hub *hub);
/* New connections use these from now on; for reloaded certificates. Listeners too. */
void link_hub_set_tls(struct link_hub *hub, struct tls_config *client, struct tls_config *server);

/* Who must answer, by HELLO and by certificate. */
struct link_expect {
    uint8_t role;        /* 0: any. */
    uint64_t replica_id; /* 0: any. */
    const char *name;    /* NULL or "": any. Copied. */
};

struct link_dial_options {
    enum link_transport transport;
    const char *address; /* "host:port", "[::1]:port". */
    bool paced;          /* Hold requests back a little to send them together. Router to node. */
    /* Carries many frames a second for a long time. With LINK_NNG the loop then waits for input
     * itself, which spares three wake-ups a read and costs a search for the stream's descriptor
     * once a connection (socket_find.h). Router <-> node. */
    bool busy;
    struct link_expect expect; /* Another one is refused, and the address dialled again later. */
    struct link_handlers handlers;
};

/* A link that dials, and dials again whenever it is lost, until link_close. It is valid at once,
 * and ready later. ERR_INVALID: the address; ERR_FULL: link_count_max. */
NODISCARD err link_dial(struct link_hub *hub, const struct link_dial_options *options,
                        struct link **ret_link);
/* The link is gone when this returns, except that `closed` is called first if it was ready. What
 * was sent before is still written if the transport takes it. From any callback of it as well. */
void link_close(struct link *link);

/* link_close for every link whose handlers have this user, accepted or dialled: before the user's
 * memory goes, and the hub stays. Close its listeners first. Not from a callback of one of them. */
void link_hub_close_links(struct link_hub *hub, const void *user);

struct link_listen_options {
    enum link_transport transport;
    const char *address;           /* Port 0: any free one. */
    bool busy;                     /* Of every accepted link; see link_dial_options. */
    uint32_t roles;                /* A bit 1 << role each: who may connect here. 0: all. */
    struct link_handlers handlers; /* Of every accepted link. */
};

/* ERR_INVALID: the address; ERR_EXISTS: the port is taken; ERR_IO. Logged with the reason. */
NODISCARD err link_listen(struct link_hub *hub, const struct link_listen_options *options,
                          struct link_listener **ret_listener);
uint16_t link_listener_port(const struct link_listener *listener);
/* Accepted links stay. */
void link_listener_close(struct link_listener *listener);

/* Copies the frame into the output, which leaves at the end of this round of the loop. Messages
 * have a lane of their own, with a bound of its own: they never wait behind requests and responses.
 *   ERR_UNAVAILABLE  not ready; nothing was queued
 *   ERR_FULL         the lane is full; `writable` follows (a RESPONSE is let through up to twice
 *                    the bound, then the link is closed)
 *   ERR_TOO_LARGE    body over the limit; nothing was queued */
NODISCARD err link_send(struct link *link, const struct frame *frame);

/* False: a response's body of that size would go past the bound of its lane. */
bool link_has_room(const struct link *link, size_t body_bytes);
/* The same with half as much again, which is kept for responses that should not be refused. */
bool link_has_reserve(const struct link *link, size_t body_bytes);

bool link_is_ready(const struct link *link);
/* The connection's identity; changes with every reconnect. Zeroed while not ready. */
struct link_ref link_ref(const struct link *link);
/* NULL when that connection is gone. */
struct link *link_find(struct link_hub *hub, struct link_ref ref);
/* Milliseconds since anything was last heard, whether connected or not; from link_dial on if
 * never. A pause of this process itself does not count. */
uint64_t link_idle_ms(const struct link *link);
/* NULL while not ready. */
const struct hello *link_peer_hello(const struct link *link);
/* What the peer's certificate says it is; NULL while there is no HELLO, without TLS, and for a
 * certificate that names none (LINK_NAMES_ACCEPT). Valid during `admit` and while ready. */
const struct identity *link_identity(const struct link *link);
/* As dialled, or as accepted from. */
const char *link_address(const struct link *link);
/* Where the bytes of the last REQUEST, RESPONSE or CANCEL sent end among all such bytes of this
 * connection, and how far those have been handed to the transport. A frame whose end is above
 * `handed` by more than its size never left. */
uint64_t link_sent_position(const struct link *link);
uint64_t link_handed_position(const struct link *link);
/* Where a response that was sent ends, in the lane that it waits in. */
struct link_mark {
    struct link_ref link;
    uint64_t position;
    bool large; /* The lane of large answers (out_queue.h). */
};
/* Of the response sent last, with a body of so many bytes. */
struct link_mark link_mark_of(const struct link *link, size_t body_bytes);
/* It was handed to the transport, or its connection is gone. */
bool link_has_left(struct link_hub *hub, const struct link_mark *mark);
/* Reading stops (and so, in time, the peer) until resumed. */
void link_pause(struct link *link);
void link_resume(struct link *link);
/* The user's own pointer, NULL at first. */
void link_set_data(struct link *link, void *data);
void *link_data(const struct link *link);

struct link_stats {
    uint64_t frames_in, frames_out;
    uint64_t bytes_in, bytes_out;
    uint64_t writes;
    uint64_t connects, failures;
    uint64_t refused[LINK_REFUSALS];
};
struct link_stats link_hub_stats(const struct link_hub *hub);
/* Its accepted links and their handshakes, and what was refused. */
const struct turnstile_stats *link_hub_turnstile(const struct link_hub *hub);

#endif
