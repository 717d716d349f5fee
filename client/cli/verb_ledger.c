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

static const struct page_method list = {
    .method = "LedgerService/ListEntries",
    .key = "playerId",
    .rows = "entries",
    .page_size_max = 200,
    .columns = entry_columns,
};

static const struct column reservation_columns[] = {
    { .title = "SEQ", .path = "reserveSeq" },         { .title = "AMOUNTS", .path = "currencies" },
    { .title = "EXPIRES AT", .path = "expiresAtMs" }, { .title = "REASON", .path = "reason" },
    { .title = "OPERATION", .path = "reserveOpId" },  { .title = NULL },
};

static const struct page_method reservations = {
    .method = "LedgerService/ListReservations",
    .key = "playerId",
    .rows = "reservations",
    .page_size_max = 64,
    .columns = reservation_columns,
};

int verb_ledger(const struct arguments *arguments)
{
    const char *what = arguments->word_count > 1 ? arguments->words[1] : "";
    int code;

    if (arguments->word_count == 3 && strcmp(what, "list") == 0)
        return page_call(arguments, &list);
    if (arguments->word_count == 3 && strcmp(what, "reservations") == 0)
        return page_call(arguments, &reservations);
    if (arguments->word_count == 2 && strcmp(what, "export") == 0)
        return ledger_export(arguments);
    if (arguments->word_count == 3 && strcmp(what, "verify") == 0)
        return ledger_verify(arguments, arguments->words[2]);
    if (ledger_change(arguments, &code))
        return code;
    fprintf(stderr, "usage: holdfast ledger list PLAYER [--page-size N] [--cursor CURSOR]\n"
                    "       holdfast ledger reservations PLAYER [--page-size N] [--cursor CURSOR]\n"
                    "       holdfast ledger export --player PLAYER | --all > FILE\n"
                    "       holdfast ledger verify FILE\n");
    ledger_change_usage();
    return 2;
}
