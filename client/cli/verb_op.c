#include <stdio.h>
#include <string.h>

#include "client/cli/output.h"
#include "client/cli/verb.h"

int verb_op(const struct arguments *arguments)
{
    int code;
    bool resolve = arguments->word_count == 4 && strcmp(arguments->words[1], "resolve") == 0;
    bool get = arguments->word_count == 4 && strcmp(arguments->words[1], "get") == 0;

    if (arguments->word_count == 2 && strcmp(arguments->words[1], "new") == 0) {
        char op_id[37];
        client_op_id(op_id);
        puts(op_id);
        return 0;
    }
    if (!resolve && !get) {
        fprintf(stderr, "usage: holdfast op new\n"
                        "       holdfast op get ENTITY OP_ID\n"
                        "       holdfast op resolve ENTITY OP_ID [--seal]\n"
                        "ENTITY has its kind before it: player:42\n");
        return 2;
    }
    json_t *request =
        json_pack("{s:s, s:s}", "entity", arguments->words[2], "opId", arguments->words[3]);
    if (resolve)
        json_object_set_new(request, "seal", json_boolean(arguments->seal));
    json_t *answer = call_json(
        arguments, resolve ? "OperationService/ResolveOperation" : "OperationService/GetOperation",
        request, &code);
    const json_t *operation = json_object_get(answer, "operation");
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        const char *state = json_string_value(json_object_get(operation, "state"));
        const char *method = json_string_value(json_object_get(operation, "method"));
        const char *bound = json_string_value(json_object_get(operation, "boundPlayerId"));
        printf("%s %s\n", state != NULL ? state + strlen("OPERATION_STATE_") : "UNSPECIFIED",
               method != NULL  ? method
               : bound != NULL ? bound
                               : "");
    }
    json_decref(answer);
    return code;
}
