#include <stdio.h>
#include <string.h>

#include "client/cli/output.h"
#include "client/cli/verb.h"
#include "client/sdk/client.h"

/* "gold=5", "spoil=p", or an item's UID. */
static void add_damage(json_t *request, const char *what)
{
    const char *equals = strchr(what, '=');

    if (equals == NULL) {
        json_object_set_new(request, "itemUid", json_string(what));
        return;
    }
    if (strncmp(what, "spoil=", 6) == 0) {
        json_object_set_new(request, "spoilTable", json_string(equals + 1));
        return;
    }
    json_object_set_new(request, "currency", json_stringn(what, (size_t)(equals - what)));
    json_object_set_new(request, "amount", json_string(equals + 1));
}

int debug_inject(const struct arguments *arguments)
{
    char op_id[37];
    int code;

    if (arguments->word_count != 4 || strcmp(arguments->words[1], "inject") != 0) {
        fprintf(stderr, "usage: holdfast debug inject PLAYER UID | CURRENCY=AMOUNT | spoil=TABLE\n"
                        "It damages the player's record on purpose, for tests.\n");
        return 2;
    }
    client_op_id(op_id);
    json_t *request = json_pack("{s:s, s:s, s:{s:{s:s}}}", "playerId", arguments->words[2], "opId",
                                op_id, "authority", "system", "scope", "admin");
    add_damage(request, arguments->words[3]);
    json_t *answer = call_json(arguments, "holdfast.debug.v1.DebugService/Inject", request, &code);
    if (answer != NULL)
        printf("%s is damaged by operation %s\n", arguments->words[2], op_id);
    json_decref(answer);
    return code;
}
