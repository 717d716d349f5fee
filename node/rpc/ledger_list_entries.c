#include <inttypes.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/ledger_filter.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"
#include "runtime/base/check.h"
#include "runtime/cluster/incarnation.h"

#define PAGE_SIZE_DEFAULT 50u
#define PAGE_SIZE_MAX     200u
/* Entries looked at for one page that filters; a page may be short, its cursor goes on. */
#define SCAN_MAX 500u
/* Entries with many items are large: a page ends early, so that it fits a frame. */
#define PAGE_BYTES_MAX (1024u * 1024u)

/* Entries run from 1 to the head without gaps, so a page is a list of keys. */
struct page {
    bool ascending;
    struct ledger_filter filter;
    uint64_t next;     /* Seq to look at next; 0: none. */
    uint32_t place;    /* Of it in filter.seqs. */
    uint32_t left;     /* Entries to show. */
    uint32_t scans;    /* Entries to look at. */
    size_t bytes_left; /* May be passed by the last entry. */
    struct slice last; /* The row before, as stored; empty: none. */
    uint64_t last_seq;
};

/* From `seq` on: to the next seq that the filter leaves, if any. */
static void page_seek(struct page *page, uint64_t seq)
{
    const struct ledger_filter *filter = &page->filter;
    uint32_t count = filter->seq_count;

    if (page->ascending && seq < filter->low)
        seq = filter->low;
    if (!page->ascending && seq > filter->high)
        seq = filter->high;
    if (filter->seqs != NULL && page->ascending) {
        while (page->place < count && filter->seqs[page->place] < seq)
            page->place++;
        seq = page->place < count ? filter->seqs[page->place] : 0;
    } else if (filter->seqs != NULL) {
        while (page->place < count && filter->seqs[count - 1 - page->place] > seq)
            page->place++;
        seq = page->place < count ? filter->seqs[count - 1 - page->place] : 0;
    }
    page->next = seq >= filter->low && seq <= filter->high ? seq : 0;
}

static void page_advance(struct page *page)
{
    if (!page->ascending && page->next == 1)
        page->next = 0;
    else
        page_seek(page, page->ascending ? page->next + 1 : page->next - 1);
}

static err page_begin(struct read_context *context, const Holdfast__V1__ListEntriesRequest *request,
                      const struct player *player, struct page *page)
{
    struct slice cursor = slice_from_text(request->cursor);
    uint64_t seq = request->ascending ? 1 : player->ledger_seq;

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 200, or 0",
                             request->page_size);
    if (cursor.size > 0 && (decimal_parse(cursor, &seq) != ERR_OK || seq == 0))
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before",
                              text_shorten(context->arena, cursor));
    err e = ledger_filter_read(context, request, &page->filter);
    if (e == ERR_OK)
        e = ledger_filter_narrow(context, &page->filter, player->ledger_seq);
    if (e != ERR_OK)
        return e;
    page->ascending = request->ascending != 0;
    page->left = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT;
    page->scans = ledger_filter_is_open(&page->filter) ? page->left : SCAN_MAX;
    page->bytes_left = PAGE_BYTES_MAX;
    page_seek(page, seq);
    return ERR_OK;
}

/* `row`, at page->next, must follow from the row before it, both as stored, and the newest must be
 * what the player's own row says. */
static void chain_check(struct read_context *context, struct page *page,
                        const struct player *player, struct slice row)
{
    uint8_t hash[LEDGER_HASH_BYTES];
    struct slice first = page->ascending ? page->last : row;
    struct slice second = page->ascending ? row : page->last;
    bool adjacent = page->last_seq == (page->ascending ? page->next - 1 : page->next + 1);

    if (row.size < LEDGER_HASH_BYTES)
        return;
    if (page->next == player->ledger_seq &&
        memcmp(row.data + row.size - sizeof hash, player->ledger_hash, sizeof hash) != 0)
        damage_note(context->damage, context->entity, "the ledger's head is another entry");
    if (page->last.size > 0 && adjacent && !ledger_row_is_lost(first)) {
        ledger_hash(first.data + first.size - sizeof hash,
                    (struct slice){ second.data, second.size - sizeof hash }, hash);
        if (memcmp(hash, second.data + second.size - sizeof hash, sizeof hash) != 0)
            damage_note(context->damage, context->entity, "a ledger entry does not chain");
    }
    page->last = arena_copy(context->arena, row);
    page->last_seq = page->next;
}

/* In the place of what cannot be read, so that pages go on; its player is contained. */
static Holdfast__V1__LedgerEntry *unreadable(struct read_context *context, uint64_t seq)
{
    Holdfast__V1__LedgerEntry *entry = (Holdfast__V1__LedgerEntry *)arena_message(
        context->arena, &holdfast__v1__ledger_entry__descriptor);

    damage_note(context->damage, context->entity, LEDGER_DAMAGE);
    entry->seq = seq;
    return entry;
}

/* Shows the next entry, or passes it by. ERR_NEED. */
static err page_step(struct read_context *context, struct page *page, const struct player *player,
                     Holdfast__V1__ListEntriesResponse *response)
{
    Holdfast__V1__LedgerEntry **shown = &response->entries[response->n_entries];
    struct slice row;

    err e = ledger_row_find(context->state, context->entity, page->next, context->need, &row);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_OK)
        chain_check(context, page, player, row);
    else
        row = (struct slice){ 0 };
    page->bytes_left -= row.size < page->bytes_left ? row.size : page->bytes_left;
    if (!ledger_filter_matches(&page->filter, row, context->arena, shown))
        return ERR_OK;
    if (*shown == NULL)
        *shown = unreadable(context, page->next);
    response->n_entries++;
    page->left--;
    return ERR_OK;
}

static err ledger_list_entries_read(struct read_context *context, const ProtobufCMessage *message,
                                    ProtobufCMessage *reply)
{
    Holdfast__V1__ListEntriesResponse *response = (Holdfast__V1__ListEntriesResponse *)reply;
    struct player player;
    struct page page = { 0 };
    err result = ERR_OK;

    err e = player_row_read(context, &player);
    if (e != ERR_OK)
        return e;
    e = page_begin(context, (const Holdfast__V1__ListEntriesRequest *)message, &player, &page);
    if (e != ERR_OK)
        return e;
    response->entries = arena_alloc(context->arena, sizeof *response->entries * (page.left + 1));
    while (page.next > 0 && page.left > 0 && page.scans > 0 && page.bytes_left > 0) {
        e = page_step(context, &page, &player, response);
        if (e != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
        page.scans--;
        page_advance(&page);
    }
    if (page.next > 0)
        response->next_cursor = arena_printf(context->arena, "%" PRIu64, page.next);
    response->head_seq = player.ledger_seq;
    if (player.ledger_seq > 0) {
        struct slice head = arena_copy(
            context->arena, (struct slice){ player.ledger_hash, sizeof player.ledger_hash });
        response->head_hash = (ProtobufCBinaryData){ head.size, (uint8_t *)(uintptr_t)head.data };
    }
    response->as_of = as_of_text(context);
    return result;
}

const struct handler ledger_list_entries_handler = {
    .method = METHOD_LIST_ENTRIES,
    .read = ledger_list_entries_read,
};
