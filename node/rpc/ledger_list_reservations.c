#include <inttypes.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/rows/rows.h"
#include "node/rpc/methods.h"
#include "node/rpc/reservation.h"
#include "runtime/base/check.h"
#include "runtime/cluster/incarnation.h"

#define PAGE_SIZE_MAX RESERVATIONS_MAX
#define SEQ_BYTES     8u

struct found {
    uint64_t seq;
    uint64_t expires_at_ms;
};

struct page {
    struct damage *damage;
    struct slice entity;
    struct found found[PAGE_SIZE_MAX];
    uint32_t count, size;
    bool more;
};

static bool take_row(void *user, struct slice key, struct slice value)
{
    struct page *page = user;

    if (page->count == page->size) {
        page->more = true;
        return false;
    }
    struct reader reader =
        reader_from((struct slice){ key.data + key.size - SEQ_BYTES, SEQ_BYTES });
    struct found *found = &page->found[page->count++];
    found->seq = read_u64_be(&reader);
    found->expires_at_ms = 0;
    if (reservation_row_decode(value, &found->expires_at_ms) != ERR_OK) /* Told without its end. */
        damage_note(page->damage, page->entity, RESERVATION_DAMAGE);
    return true;
}

/* ERR_NEED. */
static err page_read(struct read_context *context,
                     const Holdfast__V1__ListReservationsRequest *request, struct page *page)
{
    struct slice cursor = slice_from_text(request->cursor);
    struct row_key after;
    uint64_t seq = 0; /* Entries count from 1. */

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 64, or 0",
                             request->page_size);
    if (cursor.size > 0 && decimal_parse(cursor, &seq) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before",
                              text_shorten(context->arena, cursor));
    page->size = request->page_size > 0 ? request->page_size : PAGE_SIZE_MAX;
    row_key_reservation(&after, context->entity, seq);
    const struct state_range range = {
        .prefix = { after.bytes, after.size - SEQ_BYTES },
        .after = row_key_slice(&after),
        .limit = page->size + 1, /* One more than it shows, to know whether there is another. */
    };
    return state_range_visit(context->state, &range, context->need, take_row, page);
}

static Holdfast__V1__CurrencyAmount **amounts_of(struct arena *arena,
                                                 const Holdfast__V1__LedgerEntry *entry)
{
    Holdfast__V1__CurrencyAmount **amounts =
        arena_alloc(arena, sizeof *amounts * (entry->n_changes + 1));

    for (size_t i = 0; i < entry->n_changes; i++) {
        amounts[i] = (Holdfast__V1__CurrencyAmount *)arena_message(
            arena, &holdfast__v1__currency_amount__descriptor);
        amounts[i]->currency = entry->changes[i]->currency;
        amounts[i]->amount = entry->changes[i]->reserved;
    }
    return amounts;
}

/* What it holds stands in its entry. ERR_NEED. */
static err show(struct read_context *context, const struct found *found,
                Holdfast__V1__ListReservationsResponse *response)
{
    Holdfast__V1__LedgerEntry *entry = NULL;
    struct slice row;

    err e = ledger_row_find(context->state, context->entity, found->seq, context->need, &row);
    if (e == ERR_NEED)
        return e;
    Holdfast__V1__Reservation *shown = (Holdfast__V1__Reservation *)arena_message(
        context->arena, &holdfast__v1__reservation__descriptor);
    response->reservations[response->n_reservations++] = shown;
    shown->reserve_seq = found->seq;
    if (e != ERR_OK || ledger_row_decode(row, context->arena, &entry) != ERR_OK) {
        damage_note(context->damage, context->entity, LEDGER_DAMAGE);
        return ERR_OK; /* Told by its number alone. */
    }
    shown->reserve_op_id = entry->op_id;
    shown->currencies = amounts_of(context->arena, entry);
    shown->n_currencies = entry->n_changes;
    shown->expires_at_ms = (int64_t)found->expires_at_ms;
    shown->reserved_at_ms = entry->at_ms;
    shown->reason = entry->reason;
    return ERR_OK;
}

static err ledger_list_reservations_read(struct read_context *context,
                                         const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    Holdfast__V1__ListReservationsResponse *response =
        (Holdfast__V1__ListReservationsResponse *)reply;
    struct page page = { .damage = context->damage, .entity = context->entity };
    struct player player;
    err result = ERR_OK;

    err e = player_row_read(context, &player);
    if (e == ERR_OK)
        e = page_read(context, (const Holdfast__V1__ListReservationsRequest *)message, &page);
    if (e != ERR_OK)
        return e;
    response->reservations =
        arena_alloc(context->arena, sizeof *response->reservations * (page.count + 1u));
    for (uint32_t i = 0; i < page.count; i++) {
        e = show(context, &page.found[i], response);
        if (e != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
    }
    if (page.more)
        response->next_cursor =
            arena_printf(context->arena, "%" PRIu64, page.found[page.count - 1].seq);
    response->as_of = as_of_text(context);
    return result;
}

const struct handler ledger_list_reservations_handler = {
    .method = METHOD_LIST_RESERVATIONS,
    .read = ledger_list_reservations_read,
};
