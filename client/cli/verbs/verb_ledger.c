/* holdfast ledger: what reads it. verb_ledger_change.c has the verbs that write. */
#include "client/cli/verbs/ledger_export.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct column entry_columns[] = {
    { .title = "SEQ", .path = "seq" },
    { .title = "KIND", .path = "kind", .prefix = "LEDGER_KIND_" },
    { .title = "CHANGES", .path = "changes" },
    { .title = "ITEMS", .path = "items" },
    { .title = "WITH", .path = "counterparts" },
    { .title = "REASON", .path = "reason" },
    { .title = "AUTHORITY", .path = "authority" },
    { .title = "OPERATION", .path = "opId" },
    { .title = NULL },
};

static const struct page_method entries_page = {
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

static const struct page_method reservations_page = {
    .method = "LedgerService/ListReservations",
    .key = "playerId",
    .rows = "reservations",
    .page_size_max = 64,
    .columns = reservation_columns,
};

static int list(const struct arguments *arguments)
{
    return page_call(arguments, &entries_page);
}

static int reservations(const struct arguments *arguments)
{
    return page_call(arguments, &reservations_page);
}

const struct verb verb_ledger[] = {
    {
        .words = "ledger list",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "PLAYER",
        .summary = "ledger entries, newest first",
        .options = VERB_OPTIONS(OPTIONS_OF_PAGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = list,
    },
    {
        .words = "ledger export",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "--player PLAYER | --all",
        .summary = "ledgers as lines of JSON",
        .options = VERB_OPTIONS(&option_player, &option_all, OPTIONS_OF_CALLS),
        .run = ledger_export,
    },
    {
        .words = "ledger verify",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "FILE",
        .summary = "check an export's chains; needs no cluster",
        .options = VERB_OPTIONS(OPTIONS_OF_OUTPUT),
        .run = ledger_verify,
    },
    {
        .words = "ledger reservations",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "PLAYER",
        .summary = "what is set aside now",
        .options = VERB_OPTIONS(OPTIONS_OF_PAGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = reservations,
    },
    { .words = NULL },
};
