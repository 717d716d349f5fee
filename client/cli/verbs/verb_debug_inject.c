/* holdfast debug inject: damages a record on purpose. Of test builds alone. */
#include <stdio.h>
#include <string.h>

#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"
#include "client/sdk/client.h"

/* "gold=5", "spoil=p", "spoil-key=636f0001", "spoil-key=636f0001:01ff", "differs-on=7", or an
 * item's UID. */
static void add_damage(json_t *request, const char *what)
{
    const char *equals = strchr(what, '=');

    if (equals == NULL) {
        json_object_set_new(request, "itemUid", json_string(what));
        return;
    }
    if (strncmp(what, "spoil-key=", 10) == 0) {
        size_t size = strcspn(equals + 1, ":");
        json_object_set_new(request, "spoilKey", json_stringn(equals + 1, size));
        if (equals[1 + size] == ':')
            json_object_set_new(request, "spoilValue", json_string(equals + 1 + size + 1));
        return;
    }
    if (strncmp(what, "spoil=", 6) == 0) {
        json_object_set_new(request, "spoilTable", json_string(equals + 1));
        return;
    }
    if (strncmp(what, "differs-on=", 11) == 0) {
        json_object_set_new(request, "differsOn", json_string(equals + 1));
        return;
    }
    json_object_set_new(request, "currency", json_stringn(what, (size_t)(equals - what)));
    json_object_set_new(request, "amount", json_string(equals + 1));
}

static int inject(const struct arguments *arguments)
{
    const char *op_id = option_text(arguments, &option_op_id);
    int code;

    json_t *request = json_pack("{s:s, s:s, s:s}", "playerId", arguments->words[0], "opId", op_id,
                                "authority", "system:admin");
    add_damage(request, arguments->words[1]);
    json_t *answer = call_json(arguments, "holdfast.debug.v1.DebugService/Inject", request, &code);
    if (answer != NULL)
        printf("%s is damaged by operation %s\n", arguments->words[0], op_id);
    json_decref(answer);
    return code;
}

const struct verb verb_debug_inject[] = {
    {
        .words = "debug inject",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "PLAYER UID|CURRENCY=AMOUNT|spoil=TABLE|spoil-key=KEY[:VALUE]|"
                     "differs-on=REPLICA",
        .summary = "damage a record on purpose, for tests",
        .options = VERB_OPTIONS(&option_op_id, OPTIONS_OF_CALLS),
        .run = inject,
    },
    { .words = NULL },
};
