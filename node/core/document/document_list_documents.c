#include <string.h>

#include "idl/page_cursor.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/document/call.h"
#include "node/core/document/shown.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/read.h"
#include "runtime/base/check.h"

#define PAGE_DEFAULT   20u
#define PAGE_MAX       100u
#define PAGE_BYTES_MAX (1024u * 1024u)
#define NUMBER_BYTES   8u

/* One page while it is filled. */
struct page {
    struct document_context *context;
    const Holdfast__V1__ListDocumentsRequest *request;
    struct slice entity, prefix; /* The prefix with the collection's number. */
    uint32_t size;
    Holdfast__V1__ListDocumentsResponse response;
    uint64_t bytes;
    const char *last; /* The key of the last that was taken. */
};

static bool begins_with(struct slice text, struct slice prefix)
{
    return text.size >= prefix.size && memcmp(text.data, prefix.data, prefix.size) == 0;
}

/* NULL: nothing is there. What no answer holds is left out of it. */
static Holdfast__V1__Document *show(struct document_context *context,
                                    const struct merge_record *record)
{
    struct shown shown = { 0 };
    bool some = shown_part(record, context->now_ms, NULL, &shown);
    Holdfast__V1__Document *document =
        value_document(some ? &shown.record : record, some, context->now_ms, context->arena);

    merge_record_deinit(&shown.record);
    if (document == NULL)
        return NULL;
    document->siblings_unseen = shown.unseen;
    uint64_t bytes = strlen(document->json);

    if (bytes > SHOWN_DOCUMENT_BYTES_MAX) {
        document->json = text_lend("null");
        document->omitted_bytes = bytes;
    }
    return document;
}

/* Takes it, if there is something to be shown. False: there is, and the page is full. */
static bool take(struct page *page, const struct merge_row *row)
{
    struct document_context *context = page->context;
    struct slice name = merge_key_name(row->key);
    Holdfast__V1__Document *document = show(context, &row->record);

    if (document == NULL)
        return true;
    uint64_t bytes = protobuf_c_message_get_packed_size(&document->base);

    if (page->response.n_documents == page->size ||
        (page->bytes > 0 && page->bytes + bytes > PAGE_BYTES_MAX))
        return false;
    page->last = arena_text(context->arena,
                            (struct slice){ name.data + NUMBER_BYTES, name.size - NUMBER_BYTES });
    document->collection = page->request->collection;
    document->key = text_lend(page->last);
    page->bytes += bytes;
    page->response.documents[page->response.n_documents++] = document;
    return true;
}

static void fill(struct page *page, const struct merge_key *after)
{
    const struct merge_store *store = &page->context->replica->store;

    page->response.documents =
        arena_alloc(page->context->arena, page->size * sizeof(Holdfast__V1__Document *));
    for (uint32_t at = merge_store_after(store, after); at < store->count; at++) {
        const struct merge_row *row = &store->rows[at];

        if (!slice_equal(merge_key_entity(row->key), page->entity) ||
            !begins_with(merge_key_name(row->key), page->prefix))
            return;
        if (take(page, row))
            continue;
        page->response.next_cursor =
            page_cursor_print(&page->request->base, page->last, page->context->arena);
        return;
    }
}

/* The greatest name below all that begin with the prefix: in no key is a byte of 0xff. */
static struct slice name_below(struct arena *arena, struct slice prefix)
{
    uint8_t *name = arena_alloc(arena, MERGE_NAME_BYTES_MAX);

    memset(name, 0xff, MERGE_NAME_BYTES_MAX);
    memcpy(name, prefix.data, prefix.size);
    name[prefix.size - 1]--;
    return (struct slice){ name, MERGE_NAME_BYTES_MAX };
}

/* Behind which key the page begins. */
static err find_begin(struct page *page, const struct document_rule *rule, struct merge_key **ret)
{
    struct arena *arena = page->context->arena;
    char *place;

    if (page_cursor_parse(&page->request->base, arena, &place) != ERR_OK)
        return refuse_invalid(arena, page->context->refusal, "cursor", PAGE_CURSOR_LIMIT,
                              text_shorten(arena, slice_from_text(page->request->cursor)));
    struct slice name = page->prefix;

    if (place[0] != 0)
        name = document_row_name(arena, rule, slice_from_text(place));
    else if (name.size > NUMBER_BYTES)
        name = name_below(arena, name);
    if (merge_key_new(page->entity, name, ret) != ERR_OK)
        return refuse_invalid(arena, page->context->refusal, "cursor", PAGE_CURSOR_LIMIT, "");
    return ERR_OK;
}

static err check_page(struct page *page)
{
    struct document_context *context = page->context;
    struct slice prefix = slice_from_text(page->request->prefix);

    if (page->request->page_size > PAGE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 100, or 0 for 20",
                             page->request->page_size);
    if (prefix.size > DOCUMENT_KEY_BYTES_MAX || !text_is_clean(prefix))
        return refuse_invalid(context->arena, context->refusal, "prefix",
                              "at most 200 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, prefix));
    page->size = page->request->page_size > 0 ? page->request->page_size : PAGE_DEFAULT;
    return ERR_OK;
}

static err begin(struct document_context *context, struct slice bytes,
                 struct document_begun *ret_begun)
{
    struct page page = { .context = context,
                         .response = HOLDFAST__V1__LIST_DOCUMENTS_RESPONSE__INIT };
    const struct document_rule *rule;
    struct merge_key *begin;

    page.request =
        document_unpack(context, &holdfast__v1__list_documents_request__descriptor, bytes);
    if (page.request == NULL)
        return ERR_INVALID;
    err e = document_find_rule(context, page.request->entity, page.request->collection, &rule);

    if (e == ERR_OK)
        e = check_page(&page);
    if (e != ERR_OK)
        return e;
    if (context->replica->syncing)
        return document_refuse(context, ERR_UNAVAILABLE,
                               &(struct merge_refusal){ .field = "syncing" });
    page.entity = slice_from_text(page.request->entity);
    page.prefix = document_row_name(context->arena, rule, slice_from_text(page.request->prefix));
    e = find_begin(&page, rule, &begin);
    if (e != ERR_OK)
        return e;
    if (!context->erased)
        fill(&page, begin);
    merge_key_unref(begin);
    ret_begun->answer = arena_pack(context->arena, &page.response.base);
    return ERR_OK;
}

const struct document_method document_list_documents_method = { begin };
