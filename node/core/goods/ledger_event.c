#include "node/core/goods/ledger_event.h"

#include "node/core/goods/ledger.h"

static void take(const Holdfast__V1__LedgerEntry *entry, Holdfast__V1__Event *event)
{
    Holdfast__V1__LedgerEvent *ledger = event->ledger;

    event->dot->owner = entry->dot->owner;
    event->op_id = entry->op_id;
    ledger->kind = entry->kind;
    ledger->changes = entry->changes;
    ledger->n_changes = entry->n_changes;
    ledger->reason = entry->reason;
    ledger->refers_to = entry->refers_to;
    ledger->items = (uint32_t)entry->n_items;
    ledger->items_taken = entry->items_taken;
}

static bool is_of(const Holdfast__V1__LedgerEntry *entry, const Holdfast__V1__Event *event)
{
    return entry->seq == event->ledger->seq && entry->dot->epoch == event->dot->epoch &&
           entry->dot->counter == event->dot->counter;
}

enum ledger_event_result ledger_event_complete(struct read_context *context,
                                               Holdfast__V1__Event *event)
{
    Holdfast__V1__LedgerEntry *entry;
    struct slice row;
    err e = ledger_row_find(context->state, slice_from_text(event->entity), event->ledger->seq,
                            context->need, &row);

    if (e != ERR_OK)
        return e == ERR_NEED ? LEDGER_EVENT_NEED : LEDGER_EVENT_OF_NONE;
    if (ledger_row_is_lost(row))
        return LEDGER_EVENT_LOST;
    if (ledger_row_decode(row, context->arena, &entry) != ERR_OK)
        return LEDGER_EVENT_UNREADABLE;
    if (!is_of(entry, event))
        return LEDGER_EVENT_OF_NONE;
    take(entry, event);
    return LEDGER_EVENT_DONE;
}
