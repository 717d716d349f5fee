/*
 * player_keys: the keys with which players' tokens are signed, a JWK Set: from a file, which is
 * read again when it changes, or from a URL, which is asked every PLAYER_KEYS_PERIOD_MS, and sooner
 * if a token names a key that is not known. What cannot be read changes nothing: the keys known
 * stay in use. A key that a new document does not list is gone.
 */
#ifndef ROUTER_IO_PLAYER_KEYS_H
#define ROUTER_IO_PLAYER_KEYS_H

#include "runtime/base/log.h"
#include "runtime/jwt/jwk_set.h"
#include "runtime/loop/loop.h"

#define PLAYER_KEYS_PERIOD_MS 300000u
#define PLAYER_KEYS_AGAIN_MS  10000u /* Between two requests at the least. */
#define PLAYER_KEYS_FILE_MS   1000u  /* Between two looks at a file. */

struct player_keys;

struct player_keys_options {
    struct loop *loop;
    const struct log *log;
    const char
        *source;    /* A path, or what begins with http:// or https://. Must outlive it, as `ca`. */
    const char *ca; /* PEM file with the CAs for https; empty: those of the system. */
};

/* Starts. ERR_INVALID: a file that has no keys, or a URL with a password; logged with the reason.
 * ERR_IO: curl cannot be set up. A URL may be away: then no key is known for now. */
NODISCARD err player_keys_new(const struct player_keys_options *options,
                              struct player_keys **ret_keys);
/* NULL is allowed. */
void player_keys_free(struct player_keys *keys);

/* Who gets each new set, and may take it; the one that is known at once. A fn of NULL ends it. */
typedef void player_keys_fn(void *user, struct jwk_set *set);
void player_keys_watch(struct player_keys *keys, player_keys_fn *fn, void *user);
/* Whether any document was read. */
bool player_keys_known(const struct player_keys *keys);
/* A token names a key that is not known: asks now, if the last time is long enough ago. */
void player_keys_want(struct player_keys *keys);

struct player_keys_stats {
    uint64_t reads;    /* Documents that were read whole, changed or not. */
    uint64_t failures; /* Files or answers that could not be used. */
};
struct player_keys_stats player_keys_stats(const struct player_keys *keys);

#endif
