/*
 * ledger_chain: a ledger's chain of hashes recomputed from what LedgerService.ListEntries told, by
 * the rules of docs/ledger.md alone, so that it shares no code with the servers. Pure.
 */
#ifndef CLIENT_CLI_CALL_LEDGER_CHAIN_H
#define CLIENT_CLI_CALL_LEDGER_CHAIN_H

#include <jansson.h>

#include "runtime/base/buf.h"

#define CHAIN_HASH_BYTES  32u
#define CHAIN_LINE_MAX    (1024u * 1024u)
#define CHAIN_PLAYER_SIZE 104u

/* One file of lines, as `holdfast ledger export` writes them: a player's entries in order, then
 * its head. Holds one player's place at a time, however long the file. */
struct chain_check {
    /* Called for each fault, with a sentence. */
    void (*fault)(void *user, const char *text);
    void *user;
    uint64_t lines, players, entries, faults;
    /* The player that is being read; `player` empty: none. */
    char player[CHAIN_PLAYER_SIZE];
    uint64_t seq;                   /* Of its last entry. */
    uint8_t hash[CHAIN_HASH_BYTES]; /* As that entry says. */
    bool hash_known;                /* False after a gap. */
};

/* One line without its end. */
void chain_check_line(struct chain_check *check, struct slice line);
/* The file is over: a player without a head is a fault, and so is an empty file. */
void chain_check_end(struct chain_check *check);

/* The hash of `entry` (LedgerEntry as JSON) after `previous`. ERR_INVALID: a field is missing or
 * malformed; *ret_why says which. */
NODISCARD err chain_hash(const uint8_t previous[CHAIN_HASH_BYTES], const json_t *entry,
                         uint8_t ret_hash[CHAIN_HASH_BYTES], const char **ret_why);
/* What stands before a player's first entry. */
void chain_genesis(const char *player, uint8_t ret_hash[CHAIN_HASH_BYTES]);

#endif
