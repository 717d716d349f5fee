#include <stdio.h>
#include <string.h>

#include "client/cli/ledger_change.h"
#include "client/cli/ledger_export.h"
#include "client/cli/output.h"
#include "client/cli/verb.h"

static const struct column entry_columns[] = {
    { .title = "SEQ", .path = "seq" },
    { .title = "KIND", .path = "kind", .prefix = "LEDGER_KIND_" },
    { .title = "CHANGES", .path = "changes" },
    { .title = "ITEMS", .path = "items" },
    { .title = "REASON", .path = "reason" },
    { .title = "AUTHORITY", .path = "authority" },
    { .title = "OPERATION", .path = "opId" },
    { .title = NULL },
};

static int list(const struct arguments *arguments)
{
    uint32_t page_size;
    int code;

    if (argument_number("page-size", arguments->page_size, 1, 200, &page_size) != ERR_OK)
        return 2;
    json_t *answer = call_json(arguments, "LedgerService/ListEntries",
                               json_pack("{s:s, s:i, s:s}", "playerId", arguments->words[2],
                                         "pageSize", (int)page_size, "cursor", arguments->cursor),
                               &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        const char *next = json_string_value(json_object_get(answer, "nextCursor"));
        print_table(NULL, json_object_get(answer, "entries"), entry_columns);
        if (next != NULL)
            printf("more: --cursor %s\n", next);
    }
    json_decref(answer);
    return code;
}

int verb_ledger(const struct arguments *arguments)
{
    const char *what = arguments->word_count > 1 ? arguments->words[1] : "";
    int code;

    if (arguments->word_count == 3 && strcmp(what, "list") == 0)
        return list(arguments);
    if (arguments->word_count == 2 && strcmp(what, "export") == 0)
        return ledger_export(arguments);
    if (arguments->word_count == 3 && strcmp(what, "verify") == 0)
        return ledger_verify(arguments, arguments->words[2]);
    if (ledger_change(arguments, &code))
        return code;
    fprintf(stderr, "usage: holdfast ledger list PLAYER [--page-size N] [--cursor CURSOR]\n"
                    "       holdfast ledger export --player PLAYER | --all > FILE\n"
                    "       holdfast ledger verify FILE\n");
    ledger_change_usage();
    return 2;
}
