/*
 * session_token: what a game server shows to write a player that it holds (DESIGN sections 5 and
 * 11). Nodes know a token as `<incarnation>-<fence>`, two numbers that many may read. Routers give
 * it to its owner with a MAC, which only they can make, and take it from callers with that alone:
 *
 *   <generation>-<revision>-<fence>-<mac>      1-77-3-Zk0Xo1Gm0c9u3RcYlFJ3Ug
 *   mac = the first 16 bytes of HMAC-SHA-256(secret, cluster, player, incarnation, fence), in the
 *         alphabet of base64 for URLs, 22 characters
 *
 * The secret is 32 random bytes in the cluster's etcd. A rotation first tells the next one to all
 * routers and then signs with it; the one before stays good until the rotation after. Pure:
 * randomness comes from the caller.
 */
#ifndef RUNTIME_CLUSTER_SESSION_TOKEN_H
#define RUNTIME_CLUSTER_SESSION_TOKEN_H

#include "runtime/cluster/cluster_record.h"
#include "runtime/crypto/hmac.h"

enum {
    SESSION_TOKEN_SECRET_BYTES = 32,
    SESSION_TOKEN_MAC_CHARS = 22,
    SESSION_TOKEN_TEXT_SIZE = INCARNATION_TEXT_SIZE + 1 + 20 + 1 + SESSION_TOKEN_MAC_CHARS
};

/* ---- the secrets ---- */

/* One that is all zero bytes is absent. */
struct token_secret_record {
    uint8_t current[SESSION_TOKEN_SECRET_BYTES];  /* Signs, and is accepted. */
    uint8_t previous[SESSION_TOKEN_SECRET_BYTES]; /* Accepted; of before the last rotation. */
    uint8_t next[SESSION_TOKEN_SECRET_BYTES];     /* Accepted; a rotation is under way. */
    uint64_t rotated_at_ms;                       /* Unix time; 0: never. */
};

/* encode and decode: as those of cluster_record.h. No error repeats anything of a secret. */
void token_secret_record_encode(const struct token_secret_record *record, struct buf *out);
NODISCARD err token_secret_record_decode(struct slice json, struct token_secret_record *ret_record,
                                         struct record_error *ret_why);

/* The secrets of one cluster, made ready for use. Zeros: none is known yet. */
struct session_secrets {
    char cluster[CLUSTER_NAME_MAX + 1];
    uint32_t count;          /* 0: none is known yet. */
    struct hmac_key keys[3]; /* The first one signs. */
};

/* `cluster` is a valid name (CHECK), and record->current is present (CHECK). */
void session_secrets_init(struct session_secrets *secrets, const char *cluster,
                          const struct token_secret_record *record);

/* ---- tokens ---- */

struct session_token {
    struct incarnation incarnation;
    uint64_t fence;
    struct slice plain; /* The form that nodes know; points into the text. */
    struct slice mac;   /* SESSION_TOKEN_MAC_CHARS characters, or empty: it came without one. */
};

/* ERR_INVALID: the text is no token, neither with nor without a MAC; *ret_token is untouched. */
NODISCARD err session_token_parse(struct slice text, struct session_token *ret_token);
/* The token with its MAC. secrets->count > 0 (CHECK). */
void session_token_print(const struct session_secrets *secrets, struct slice player,
                         const struct session_token *token, char ret_text[SESSION_TOKEN_TEXT_SIZE]);
/* Whether the MAC is one that a router of this cluster made for that player's session. Takes as
 * long whichever secret made it, and wherever it is wrong. secrets->count > 0 (CHECK). */
bool session_token_is_genuine(const struct session_secrets *secrets, struct slice player,
                              const struct session_token *token);

#endif
