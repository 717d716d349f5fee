/*
 * Lists that filter: a node looks at so many rows for one page, so its page may be short, or empty,
 * and still have a cursor. The router asks on until the page is full, the list ends, or the time is
 * over; what its caller sees with a cursor is then worth a look.
 */
#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "router/rpc/forward/forward.h"
#include "router/rpc/request/handlers.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

#define ROUNDS_MAX           256u
#define PAGE_BYTES_MAX       (1024u * 1024u)
#define MARGIN_MS            200u /* Before the deadline, for the last round. */
#define LIST_ENTRIES_DEFAULT 50u  /* As idl/ says; a page of another size is still a page. */
#define LIST_ITEMS_DEFAULT   100u

/* The page's fields of request and response; both kinds of list have them. */
struct page_view {
    uint32_t *page_size; /* Of the request. */
    char **cursor;
    size_t *count; /* Of the response. */
    void ***rows;
    char **next_cursor;
};

struct filling {
    struct request *request;
    struct caller_call *call;
    ProtobufCMessage *asked; /* A copy of the request's, for the cursor and the size of a round. */
    void **rows;
    uint32_t count;
    uint32_t wanted;
    uint32_t rounds;
    size_t bytes;
    char *cursor; /* Where `rows` end. */
};

static struct page_view view_request(ProtobufCMessage *message, uint32_t method)
{
    if (method == METHOD_LIST_ITEMS) {
        Holdfast__V1__ListItemsRequest *items = (void *)message;
        return (struct page_view){ .page_size = &items->page_size, .cursor = &items->cursor };
    }
    Holdfast__V1__ListEntriesRequest *entries = (void *)message;
    return (struct page_view){ .page_size = &entries->page_size, .cursor = &entries->cursor };
}

static struct page_view view_response(ProtobufCMessage *message, uint32_t method)
{
    if (method == METHOD_LIST_ITEMS) {
        Holdfast__V1__ListItemsResponse *items = (void *)message;
        return (struct page_view){ .count = &items->n_items,
                                   .rows = (void ***)(void *)&items->items,
                                   .next_cursor = &items->next_cursor };
    }
    Holdfast__V1__ListEntriesResponse *entries = (void *)message;
    return (struct page_view){ .count = &entries->n_entries,
                               .rows = (void ***)(void *)&entries->entries,
                               .next_cursor = &entries->next_cursor };
}

static bool filters(const struct request *request)
{
    if (request->method->id == METHOD_LIST_ITEMS)
        return ((const Holdfast__V1__ListItemsRequest *)(const void *)request->message)->kind[0] !=
               0;
    const Holdfast__V1__ListEntriesRequest *entries = (const void *)request->message;
    return entries->n_kinds > 0 || entries->currency[0] != 0 || entries->item_uid[0] != 0 ||
           entries->op_id[0] != 0;
}

static void ask(struct filling *filling);

/* `response` as it came last, with the rows of all rounds. */
static void answer(struct filling *filling, ProtobufCMessage *response)
{
    struct page_view page = view_response(response, filling->request->method->id);

    *page.rows = filling->rows;
    *page.count = filling->count;
    *page.next_cursor = filling->cursor;
    request_reply(filling->request, response);
}

/* True: another round may fill the page. */
static bool goes_on(const struct filling *filling)
{
    const struct request *request = filling->request;
    uint64_t now_ms = loop_now_ms(request->router->options.loop);

    return filling->cursor[0] != 0 && filling->count < filling->wanted &&
           filling->rounds < ROUNDS_MAX && filling->bytes < PAGE_BYTES_MAX &&
           now_ms + MARGIN_MS < request->answer_by_ms;
}

static void round_done(struct caller_call *call, const struct caller_result *result)
{
    struct filling *filling = call->user;
    struct request *request = filling->request;
    struct codec_scope scope = { .arena = request->arena };
    Holdfast__V1__ErrorDetail detail;
    ProtobufCMessage *response;

    forward_count(request, call);
    if (result->detail != NULL) {
        request_fail(request, result->detail);
        return;
    }
    if (!request_hold(request, result->body.size, &detail)) {
        request_fail(request, &detail);
        return;
    }
    if (proto_decode(request->method->response, result->body, &scope, &response) != ERR_OK) {
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL,
                          "a node's answer cannot be read");
        return;
    }
    struct page_view page = view_response(response, request->method->id);
    for (size_t i = 0; i < *page.count && filling->count < filling->wanted; i++)
        filling->rows[filling->count++] = (*page.rows)[i];
    filling->bytes += result->body.size;
    filling->rounds++;
    filling->cursor = *page.next_cursor;
    if (goes_on(filling))
        ask(filling);
    else
        answer(filling, response);
}

static void filling_cancel(struct request *request)
{
    struct filling *filling = request->state;

    forward_count(request, filling->call);
    caller_cancel(filling->call);
    request_fail_gone(request);
}

static void ask(struct filling *filling)
{
    struct request *request = filling->request;
    struct page_view asked = view_request(filling->asked, request->method->id);
    const struct forward_message message = { .method = request->method,
                                             .message = filling->asked,
                                             .again = filling->rounds > 0 };
    Holdfast__V1__ErrorDetail detail;

    *asked.page_size = filling->wanted - filling->count;
    *asked.cursor = filling->cursor;
    filling->call = arena_alloc(request->arena, sizeof *filling->call);
    if (forward_prepare(request, &message, filling->call, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    filling->call->done = round_done;
    filling->call->user = filling;
    filling->call->at_once = filling->rounds == 0;
    request->state = filling;
    request->cancel = filling_cancel;
    caller_start(request->router->options.caller, filling->call);
}

void filled_page_handle(struct request *request)
{
    uint32_t default_size =
        request->method->id == METHOD_LIST_ITEMS ? LIST_ITEMS_DEFAULT : LIST_ENTRIES_DEFAULT;
    size_t size = request->message->descriptor->sizeof_message;
    struct filling *filling = arena_zalloc(request->arena, sizeof *filling);

    filling->request = request;
    filling->asked = arena_alloc(request->arena, size);
    memcpy(filling->asked, request->message, size);
    struct page_view asked = view_request(filling->asked, request->method->id);
    filling->wanted = *asked.page_size > 0 ? *asked.page_size : default_size;
    /* The owner says what is wrong with an invalid size. */
    if (!filters(request) || filling->wanted > request->method->most) {
        forward_handle(request);
        return;
    }
    filling->cursor = *asked.cursor;
    filling->rows = arena_alloc(request->arena, filling->wanted * sizeof *filling->rows);
    ask(filling);
}
