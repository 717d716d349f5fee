/*
 * scrub: what must not leave a cluster is taken out of texts: secrets always; players' and
 * operations' ids if asked for, which are then replaced by hashes under a salt that is thrown away,
 * so that one id has the same name in all parts, and no reader can tell whose.
 */
#ifndef CLIENT_CLI_DEBUG_SCRUB_H
#define CLIENT_CLI_DEBUG_SCRUB_H

#include <jansson.h>

#include "runtime/base/buf.h"

#define SCRUB_PLAYERS_MAX 10000u

struct scrub {
    bool redact;
    uint8_t salt[32];    /* Random, if `redact`. */
    const char *api_key; /* The caller's; empty: none. */
    json_t *players;     /* An object with the ids that occurred, as they are told. */
};

/* Replaces API keys, private keys in PEM, and passwords in URLs. */
void scrub_secrets(const struct scrub *scrub, struct buf *text);
/* Notes the players who occur as "playerId" and, with `redact`, replaces them and each "opId". */
void scrub_json(struct scrub *scrub, json_t *value);
/* Likewise in the lines of a log, `player=42` or `"player":"42"`. */
void scrub_log(struct scrub *scrub, struct buf *text);

#endif
