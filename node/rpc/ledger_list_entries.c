#include <inttypes.h>

#include "idl/method.h"
#include "node/core/arena_proto.h"
#include "node/core/profile.h"
#include "node/core/refusal.h"
#include "node/core/text_rule.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"
#include "runtime/base/check.h"
#include "runtime/cluster/incarnation.h"

#define PAGE_SIZE_DEFAULT 50u
#define PAGE_SIZE_MAX     200u
/* Entries with many items are large: a page ends early, so that it fits a frame. */
#define PAGE_BYTES_MAX (1024u * 1024u)

/* Entries run from 1 to the head without gaps, so a page is a list of keys. */
struct page {
    bool ascending;
    uint64_t next; /* Seq of the next entry; 0 or above `head`: none. */
    uint64_t head;
    uint32_t left;
};

static err page_begin(struct read_context *context, const Holdfast__V1__ListEntriesRequest *request,
                      const struct player *player, struct page *ret_page)
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
    if (!request->ascending && seq > player->ledger_seq)
        seq = player->ledger_seq;
    *ret_page = (struct page){
        .ascending = request->ascending != 0,
        .next = seq,
        .head = player->ledger_seq,
        .left = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT,
    };
    return ERR_OK;
}

static bool page_has_next(const struct page *page)
{
    return page->next > 0 && page->next <= page->head;
}

static err entry_read(struct read_context *context, uint64_t seq,
                      Holdfast__V1__LedgerEntry **ret_entry, size_t *bytes)
{
    struct row_key key;
    struct slice row;

    row_key_ledger(&key, context->entity, seq);
    enum state_found found = state_find(context->state, row_key_slice(&key), &row);
    if (found == STATE_MISSING) {
        need_add_key(context->need, row_key_slice(&key));
        return ERR_NEED;
    }
    CHECK(found == STATE_PRESENT);
    CHECK(ledger_row_decode(row, context->arena, ret_entry) == ERR_OK);
    *bytes += row.size;
    return ERR_OK;
}

static err ledger_list_entries_read(struct read_context *context, const ProtobufCMessage *message,
                                    ProtobufCMessage *reply)
{
    Holdfast__V1__ListEntriesResponse *response = (Holdfast__V1__ListEntriesResponse *)reply;
    struct player player;
    struct page page = { 0 };
    size_t bytes = 0;
    err result = ERR_OK;

    err e = player_read(context, &player);
    if (e != ERR_OK)
        return e;
    e = page_begin(context, (const Holdfast__V1__ListEntriesRequest *)message, &player, &page);
    if (e != ERR_OK)
        return e;
    response->entries = arena_alloc(context->arena, sizeof *response->entries * page.left);
    for (; page.left > 0 && bytes < PAGE_BYTES_MAX && page_has_next(&page); page.left--) {
        e = entry_read(context, page.next, &response->entries[response->n_entries], &bytes);
        if (e != ERR_OK)
            result = e;
        else
            response->n_entries++;
        page.next = page.ascending ? page.next + 1 : page.next - 1;
    }
    if (page_has_next(&page))
        response->next_cursor = arena_printf(context->arena, "%" PRIu64, page.next);
    response->head_seq = player.ledger_seq;
    if (player.ledger_seq > 0) {
        struct slice head = arena_copy(
            context->arena, (struct slice){ player.ledger_hash, sizeof player.ledger_hash });
        response->head_hash = (ProtobufCBinaryData){ head.size, (uint8_t *)(uintptr_t)head.data };
    }
    response->as_of = dot_message(context->arena, context->as_of);
    return result;
}

const struct handler ledger_list_entries_handler = {
    .method = METHOD_LIST_ENTRIES,
    .read = ledger_list_entries_read,
};
