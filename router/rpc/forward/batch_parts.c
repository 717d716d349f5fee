/* The elements of a batch: what each is asked for by itself, and what becomes of it. */
#include "holdfast/v1/session.pb-c.h"
#include "router/core/refusal.h"
#include "router/rpc/forward/batch_parts.h"
#include "runtime/base/check.h"

/* In a thread if it is much: all of it is in the request's arena. */
static void join(const void *user, struct buf *out)
{
    const struct batch *batch = user;

    scatter_join(batch->outcomes, batch->count, out);
}

static void answer(struct batch *batch)
{
    const struct buf_source source = { join, batch,
                                       scatter_joined_size(batch->outcomes, batch->count) };

    request_reply_from(batch->request, &source);
}

void batch_fail(struct batch_part *part, const Holdfast__V1__ErrorDetail *detail)
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

#define READS_FIRST    32u    /* Asked for before it is known how large their answers are. */
#define READ_BYTES_MIN 4096u  /* What an answer counts before it is there, at least. */
#define LATE_MS        10000u /* For so long it is known how large answers to batches were. */

static bool is_late(const struct router *router)
{
    return loop_now_ms(router->options.loop) < router->batch_read_ms + LATE_MS;
}

/* How large other answers are thought to be: as the largest so far, and before there is one, as the
 * largest of any batch of late. */
static size_t expected(const struct batch *batch)
{
    const struct router *router = batch->request->router;
    size_t bytes = batch->largest;

    if (bytes == 0 && is_late(router))
        bytes = router->batch_read_bytes;
    return bytes > READ_BYTES_MIN ? bytes : READ_BYTES_MIN;
}

/* A batch of reads asks for no more at once than its answer has room for: what is asked for in vain
 * costs nodes and links as much as what is not. */
static bool may_ask(const struct batch *batch)
{
    size_t room =
        batch->bytes < SCATTER_ANSWERS_BYTES_MAX ? SCATTER_ANSWERS_BYTES_MAX - batch->bytes : 0;

    if (!batch->reads || batch->open == 0)
        return true;
    if (batch->largest == 0 && batch->open >= READS_FIRST)
        return false;
    return (batch->open + 1) * expected(batch) <= room;
}

static void note_size(const struct batch *batch, size_t bytes)
{
    struct router *router = batch->request->router;

    if (!batch->reads || bytes < LARGE_READ_BYTES ||
        (bytes < router->batch_read_bytes && is_late(router)))
        return;
    router->batch_read_bytes = bytes;
    router->batch_read_ms = loop_now_ms(router->options.loop);
}

static void overflow(struct batch_part *part)
{
    const struct request *request = part->batch->request;
    Holdfast__V1__ErrorDetail detail;

    scatter_overflow(request->method, request->arena, &detail);
    batch_fail(part, &detail);
}

void batch_keep(struct batch_part *part, struct slice body)
{
    struct batch *batch = part->batch;
    struct request *request = batch->request;
    Holdfast__V1__ErrorDetail detail;

    if (batch->largest < body.size || batch->largest == 0)
        batch->largest = body.size > 0 ? body.size : 1;
    note_size(batch, body.size);
    if (batch->bytes + body.size > SCATTER_ANSWERS_BYTES_MAX) {
        batch->full = batch->reads;
        overflow(part);
    } else if (!request_hold(request, body.size, &detail)) {
        batch_fail(part, &detail);
    } else if (answer_of(part, body, &batch->outcomes[part - batch->parts].bytes) == ERR_OK) {
        batch->bytes += body.size;
    } else {
        refusal_make(request->arena, &detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN,
                     "the node's answer cannot be read");
        batch_fail(part, &detail);
    }
}

static void part_done(struct caller_call *call, const struct caller_result *result)
{
    struct batch_part *part = CONTAINER_OF(call, struct batch_part, call);
    struct batch *batch = part->batch;

    part->open = false;
    forward_count(batch->request, call);
    if (result->detail != NULL)
        batch_fail(part, result->detail);
    else
        batch_keep(part, result->body);
    CHECK(batch->open > 0);
    batch->open--;
    batch_go_on(batch, false);
}

bool batch_prepare(struct batch_part *part)
{
    struct request *request = part->batch->request;
    const struct forward_message forward = {
        .method = method_find(request->method->element),
        .message = part->message,
    };
    Holdfast__V1__ErrorDetail detail;

    part->prepared = forward_prepare(request, &forward, &part->call, &detail) == ERR_OK;
    if (!part->prepared)
        batch_fail(part, &detail);
    return part->prepared;
}

void batch_queue(struct batch *batch, uint32_t place)
{
    CHECK(batch->queued < batch->count);
    batch->queue[batch->queued++] = place;
}

static void start_part(struct batch *batch, uint32_t place, bool at_once)
{
    struct batch_part *part = &batch->parts[place];

    if (!part->prepared && !batch_prepare(part))
        return;
    part->call.done = part_done;
    part->call.at_once = at_once;
    part->open = true;
    batch->open++;
    caller_start(batch->request->router->options.caller, &part->call);
}

void batch_go_on(struct batch *batch, bool at_once)
{
    while (batch->next < batch->queued && batch->full)
        overflow(&batch->parts[batch->queue[batch->next++]]);
    while (batch->next < batch->queued && may_ask(batch))
        start_part(batch, batch->queue[batch->next++], at_once);
    if (batch->open == 0)
        answer(batch);
}
