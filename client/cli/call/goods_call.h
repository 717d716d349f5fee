/* goods_call: calls that change what a player owns, made by people: while no server holds the
 * player, once under --op-id, however often they are repeated. */
#ifndef CLIENT_CLI_CALL_GOODS_CALL_H
#define CLIENT_CLI_CALL_GOODS_CALL_H

#include "client/cli/console/output.h"

#define GOODS_DETAILS                                                                              \
    "It works only while no game server holds the player, and is done once under one op_id,\n"     \
    "however often it is repeated."

/* playerId, opId (--op-id, or a fresh one), authority unheld, reason. The caller's to decref. */
json_t *goods_request(const struct arguments *arguments, const char *player);
/* "gold=5" as {currency, amount}, the caller's to decref. NULL: it is not of this form. */
json_t *goods_amount(const char *text, size_t size);
/* The same as an element of `currencies`. False: written to standard error. */
bool goods_add_amount(json_t *request, const char *text);
/* "UID,gold=5" as two arrays of the request. False: an element is of neither form. */
bool goods_add_list(json_t *request, const char *list, const char *items_key,
                    const char *amounts_key);
/* The balances of an answer as rows, each with what is reserved of it; the caller's to decref. */
json_t *goods_balance_rows(const json_t *answer);
/* Takes over `request`. Prints the operation's id, the entry and the balances; returns the exit
 * code. With an unknown outcome the id is printed too: repeat the call under it. */
int goods_call(const struct arguments *arguments, const char *method, json_t *request);

#endif
