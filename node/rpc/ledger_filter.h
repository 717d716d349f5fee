/*
 * ledger_filter: which entries of a player's ledger a page shows. Times and items are found without
 * looking at what lies between: entries are in the order of time, and an item's history names its
 * entries. The rest is looked for entry by entry, so many a page.
 */
#ifndef NODE_RPC_LEDGER_FILTER_H
#define NODE_RPC_LEDGER_FILTER_H

#include "holdfast/v1/ledger.pb-c.h"
#include "node/core/handler/handler.h"
#include "node/core/rows/rows.h"

struct ledger_filter {
    const Holdfast__V1__LedgerKind *kinds; /* The request's. */
    size_t kind_count;                     /* 0: all kinds. */
    struct slice currency, op_id;
    const char *item_uid; /* NULL: any. */
    uint64_t from_ms, to_ms;
    /* ---- found by ledger_filter_narrow ---- */
    uint64_t low, high;   /* Seqs; low above high: none. */
    const uint64_t *seqs; /* The item's, rising; NULL: all from low to high. */
    uint32_t seq_count;
};

/* ERR_INVALID: `refusal` names the field. */
NODISCARD err ledger_filter_read(struct read_context *context,
                                 const Holdfast__V1__ListEntriesRequest *request,
                                 struct ledger_filter *ret_filter);
/* Finds where to look, up to entry `head`. ERR_NEED. */
NODISCARD err ledger_filter_narrow(struct read_context *context, struct ledger_filter *filter,
                                   uint64_t head);
/* Nothing to look for: every entry from low to high matches. */
bool ledger_filter_is_open(const struct ledger_filter *filter);
/* Whether a stored row matches; *ret_entry is set if it does. One that cannot be read always does,
 * and *ret_entry is NULL. */
bool ledger_filter_matches(const struct ledger_filter *filter, struct slice row,
                           struct arena *arena, Holdfast__V1__LedgerEntry **ret_entry);

#endif
