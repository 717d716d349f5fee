#include "holdfast/v1/session.pb-c.h"
#include "router/core/refusal.h"
#include "router/core/scatter.h"
#include "router/rpc/forward.h"
#include "router/rpc/handlers.h"
#include "runtime/base/check.h"

struct batch;

/* One element on its way. */
struct batch_part {
    struct caller_call call;
    struct batch *batch;
    const ProtobufCMessage *message;
    bool open;
};

struct batch {
    struct request *request;
    uint32_t count;
    uint32_t next; /* The first that was not asked for yet. */
    uint32_t open;
    bool reads;
    bool full;      /* Of reads: one had no room. The others are not asked for. */
    size_t largest; /* Of the answers that came; 0: none did. */
    struct batch_part *parts;
    struct scatter_outcome *outcomes;
    size_t bytes; /* Of the answers that came. */
};

static void answer(struct batch *batch)
{
    struct request *request = batch->request;
    struct buf *out = &request->router->scratch;

    buf_clear(out);
    scatter_join(batch->outcomes, batch->count, out);
    request_reply_encoded(request, buf_slice(out));
}

static void fail_part(struct batch_part *part, const Holdfast__V1__ErrorDetail *detail)
{
    const struct request *request = part->batch->request;
    const Holdfast__V1__ErrorDetail whole = request_error(request, part->message, detail);

    part->batch->outcomes[part - part->batch->parts] =
        (struct scatter_outcome){ true, refusal_bytes(request->arena, &whole) };
}

/* What the element's caller gets of a node's answer, in the arena. */
static err answer_of(const struct batch_part *part, struct slice body, struct slice *ret_answer)
{
    const struct request *request = part->batch->request;
    const Holdfast__V1__StartSessionRequest *start = (const void *)part->message;

    if (request->method->element == METHOD_START_SESSION)
        return session_guard_sign(&request->router->guard, slice_from_text(start->player_id), body,
                                  request->arena, ret_answer);
    *ret_answer = arena_copy(request->arena, body);
    return ERR_OK;
}

#define READS_FIRST    32u   /* Asked for before it is known how large their answers are. */
#define READ_BYTES_MIN 4096u /* What an answer counts before it is there, at least. */

static void ask_on(struct batch *batch);

/* A batch of reads asks for no more at once than its answer has room for, were they all as large as
 * the largest so far: what is asked for in vain costs nodes and links as much as what is not. */
static bool may_ask(const struct batch *batch)
{
    size_t room =
        batch->bytes < SCATTER_ANSWERS_BYTES_MAX ? SCATTER_ANSWERS_BYTES_MAX - batch->bytes : 0;
    size_t each = batch->largest > READ_BYTES_MIN ? batch->largest : READ_BYTES_MIN;

    if (!batch->reads || batch->open == 0)
        return true;
    if (batch->largest == 0)
        return batch->open < READS_FIRST;
    return (batch->open + 1) * each <= room;
}

static void overflow(struct batch_part *part)
{
    const struct request *request = part->batch->request;
    Holdfast__V1__ErrorDetail detail;

    scatter_overflow(request->method, request->arena, &detail);
    fail_part(part, &detail);
}

/* An element's answer, or the failure that stands in its place since it has no room. */
static void keep(struct batch_part *part, struct slice body)
{
    struct batch *batch = part->batch;
    struct request *request = batch->request;
    Holdfast__V1__ErrorDetail detail;

    if (batch->largest < body.size || batch->largest == 0)
        batch->largest = body.size > 0 ? body.size : 1;
    if (batch->bytes + body.size > SCATTER_ANSWERS_BYTES_MAX) {
        batch->full = batch->reads;
        overflow(part);
    } else if (!request_hold(request, body.size, &detail)) {
        fail_part(part, &detail);
    } else if (answer_of(part, body, &batch->outcomes[part - batch->parts].bytes) == ERR_OK) {
        batch->bytes += body.size;
    } else {
        refusal_make(request->arena, &detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN,
                     "the node's answer cannot be read");
        fail_part(part, &detail);
    }
}

static void part_done(struct caller_call *call, const struct caller_result *result)
{
    struct batch_part *part = CONTAINER_OF(call, struct batch_part, call);
    struct batch *batch = part->batch;

    part->open = false;
    forward_count(batch->request, call);
    if (result->detail != NULL)
        fail_part(part, result->detail);
    else
        keep(part, result->body);
    CHECK(batch->open > 0);
    batch->open--;
    ask_on(batch);
}

static void start_part(struct batch *batch, uint32_t place, bool at_once)
{
    const ProtobufCMessage *message = batch->parts[place].message;
    struct request *request = batch->request;
    const struct forward_message forward = {
        .method = method_find(request->method->element),
        .message = message,
    };
    struct batch_part *part = &batch->parts[place];
    Holdfast__V1__ErrorDetail detail;

    if (forward_prepare(request, &forward, &part->call, &detail) != ERR_OK) {
        fail_part(part, &detail);
        return;
    }
    part->call.done = part_done;
    part->call.at_once = at_once;
    part->open = true;
    batch->open++;
    caller_start(request->router->options.caller, &part->call);
}

static void ask(struct batch *batch, bool at_once)
{
    while (batch->next < batch->count && batch->full)
        overflow(&batch->parts[batch->next++]);
    while (batch->next < batch->count && may_ask(batch))
        start_part(batch, batch->next++, at_once);
    if (batch->open == 0)
        answer(batch);
}

static void ask_on(struct batch *batch)
{
    ask(batch, false);
}

static void batch_cancel(struct request *request)
{
    struct batch *batch = request->state;

    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->parts[i].open)
            caller_cancel(&batch->parts[i].call);
    }
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN,
                      "the caller has gone");
}

void batch_handle(struct request *request)
{
    struct batch *batch = arena_zalloc(request->arena, sizeof *batch);
    struct scatter_elements elements;
    Holdfast__V1__ErrorDetail detail;

    if (scatter_split(request->method, request->message, request->arena, &elements, &detail) !=
            ERR_OK ||
        scatter_check_distinct(request->method, &elements, request->arena, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    batch->request = request;
    batch->count = elements.count;
    batch->parts = arena_zalloc(request->arena, (elements.count + 1) * sizeof *batch->parts);
    batch->outcomes = arena_zalloc(request->arena, (elements.count + 1) * sizeof *batch->outcomes);
    request->state = batch;
    request->cancel = batch_cancel;
    batch->reads = !method_find(request->method->element)->writes;
    for (uint32_t i = 0; i < elements.count; i++) {
        batch->parts[i].batch = batch;
        batch->parts[i].message = elements.messages[i];
    }
    ask(batch, true);
}
