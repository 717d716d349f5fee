/*
 * gatekeeper: who comes in by the public door: reads a request's API key, and keeps the limits of
 * keys and addresses, before anything else of the request is read. DESIGN section 11.
 *
 * A request without a valid key spends its address's failure allowance. Once that is spent, only a
 * valid key lets a request of that address in: what others send from there refuses no one. A guess
 * costs the router one HMAC, and so does an old key left in a fleet's configuration.
 *
 * What has the form of a token is a player's, where the router has keys for them (player_gate.h):
 * then no API key is asked for, and no scope is given. What players write is counted by their
 * addresses and devices (router/core/player_writes.h).
 */
#ifndef ROUTER_IO_GATEKEEPER_H
#define ROUTER_IO_GATEKEEPER_H

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "router/io/key_feed.h"
#include "router/io/player_gate.h"
#include "router/io/router_config.h"
#include "runtime/base/arena.h"

struct gatekeeper;

struct gatekeeper_options {
    const struct router_config *config; /* access, key_rate, address_rate, failure_rate,
                                         * player_address_writes, player_device_writes. */
    struct key_feed *keys;              /* NULL: everybody may call (access = open). */
    struct player_gate *players;        /* NULL: players' tokens are not taken. */
    const struct log *log;
};

/* The options' strings and feed must outlive it. */
struct gatekeeper *gatekeeper_new(const struct gatekeeper_options *options);
void gatekeeper_free(struct gatekeeper *gatekeeper);

#define GATEKEEPER_PLAYER "player" /* No id of a key. */

struct gatekeeper_visit {
    const struct method_info *method;
    struct slice api_key; /* Empty without one. */
    struct slice device;  /* Likewise; what the header Holdfast-Device says. */
    const char *peer;     /* "10.0.0.1:5123", "[2001:db8::1]:5123" */
    struct arena *arena;
    uint64_t now_ms;  /* Of a clock that never goes back. */
    uint64_t wall_ms; /* Unix time. */
};

/* Who came in. Good until the keys change: within one callback. */
struct gatekeeper_guest {
    uint32_t scopes;
    struct rate_bucket *bucket; /* Of the key; NULL: none. */
    uint32_t rate_per_s;
    uint32_t authority;      /* Of enum scope: see api_key_record; 0: none. */
    const char *key_id;      /* In the visit's arena, as all texts here; "": access is open;
                              * GATEKEEPER_PLAYER: a player. */
    const char *player;      /* Of a player's token; NULL: it is none. */
    const char *holder;      /* As api_key_holder tells it; NULL: as key_id. */
    const char *key_servers; /* As in api_key_record, as the next two. */
    const char *key_grants;
    const char *key_per_day;
    uint64_t key;    /* A number that stands for the key or player, not 0; 0: access is open. */
    uint64_t caller; /* The same, or one that stands for the address. */
};

/* ERR_OK: *ret_guest says who it is. ERR_PERMISSION: *ret_detail, which was initialised, says why
 * not: UNAUTHENTICATED, PERMISSION_DENIED, THROTTLED or UNAVAILABLE. */
NODISCARD err gatekeeper_ask(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                             struct gatekeeper_guest *ret_guest,
                             Holdfast__V1__ErrorDetail *ret_detail);

/* The same guest once more, when the body of his request has come too: charges no rate. His key may
 * have been revoked meanwhile: refused as in gatekeeper_ask. */
NODISCARD err gatekeeper_ask_again(struct gatekeeper *gatekeeper,
                                   const struct gatekeeper_visit *visit,
                                   struct gatekeeper_guest *ret_guest,
                                   Holdfast__V1__ErrorDetail *ret_detail);

/* Has the log tell of a request that is refused for what it brings, under the id of its key if that
 * is one that was asked for before. visit->method may be NULL. Charges nothing. */
void gatekeeper_tell(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                     Holdfast__V1__ErrorCode code);

/* Whether the key that let a caller in still opens that method: for what lasts longer than a
 * callback. Charges nothing. */
bool gatekeeper_welcomes(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit);

/* clang-format off */
#define GATEKEEPER_REASONS(X)                                                         \
    X(NO_KEY,       "no_key")       X(UNKNOWN_KEY,  "unknown_key")                    \
    X(EXPIRED_KEY,  "expired_key")  X(SCOPE,        "scope")                          \
    X(KEY_RATE,     "key_rate")     X(ADDRESS_RATE, "address_rate")                   \
    X(FAILURE_RATE, "failure_rate") X(KEYS_UNREAD,  "keys_unread")                    \
    X(PLAYER_TOKEN, "player_token") X(PLAYER_RATE,  "player_rate")                    \
    X(PLAYER_METHOD, "player_method") X(SIGNATURE_TIME, "signature_time")             \
    X(PLAYER_KEYS_UNREAD, "player_keys_unread")                                       \
    X(ADDRESS_WRITES, "address_writes") X(DEVICE_WRITES, "device_writes")
/* clang-format on */
#define GATEKEEPER_ENUM(enumerator, text) GATEKEEPER_##enumerator,
enum gatekeeper_reason { GATEKEEPER_REASONS(GATEKEEPER_ENUM) GATEKEEPER_REASON_COUNT };
#undef GATEKEEPER_ENUM

const char *gatekeeper_reason_text(enum gatekeeper_reason reason);
/* Requests refused for that reason so far. */
uint64_t gatekeeper_refused(const struct gatekeeper *gatekeeper, enum gatekeeper_reason reason);
uint32_t gatekeeper_keys(const struct gatekeeper *gatekeeper);

#endif
