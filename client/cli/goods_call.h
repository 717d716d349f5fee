/* goods_call: calls that change what a player owns, made by people: while nobody holds the player,
 * once under --op-id, however often they are repeated. */
#ifndef CLIENT_CLI_GOODS_CALL_H
#define CLIENT_CLI_GOODS_CALL_H

#include "client/cli/output.h"

/* playerId, opId (--op-id, or a fresh one), authority unheld, reason. The caller's to decref. */
json_t *goods_request(const struct arguments *arguments, const char *player);
/* "gold=5" as the element of `currencies`. False: written to standard error. */
bool goods_add_amount(json_t *request, const char *text);
/* Takes over `request`. Prints the operation's id, the entry and the balances; returns the exit
 * code. With an unknown outcome the id is printed too: repeat the call under it. */
int goods_call(const struct arguments *arguments, const char *method, json_t *request);

#endif
