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
    uint32_t open;
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

static void part_done(struct caller_call *call, const struct caller_result *result)
{
    struct batch_part *part = CONTAINER_OF(call, struct batch_part, call);
    struct batch *batch = part->batch;
    struct scatter_outcome *outcome = &batch->outcomes[part - batch->parts];
    struct arena *arena = batch->request->arena;

    part->open = false;
    forward_count(batch->request, call);
    if (result->detail != NULL) {
        fail_part(part, result->detail);
    } else if (batch->bytes + result->body.size > SCATTER_ANSWERS_BYTES_MAX) {
        Holdfast__V1__ErrorDetail detail;

        scatter_overflow(batch->request->method, arena, &detail);
        fail_part(part, &detail);
    } else {
        batch->bytes += result->body.size;
        *outcome = (struct scatter_outcome){ false, arena_copy(arena, result->body) };
    }
    CHECK(batch->open > 0);
    if (--batch->open == 0)
        answer(batch);
}

static void start_part(struct batch *batch, uint32_t place, const ProtobufCMessage *message)
{
    struct request *request = batch->request;
    const struct forward_message forward = {
        .method = method_find(request->method->element),
        .message = message,
    };
    struct batch_part *part = &batch->parts[place];
    Holdfast__V1__ErrorDetail detail;

    part->batch = batch;
    part->message = message;
    if (forward_prepare(request, &forward, &part->call, &detail) != ERR_OK) {
        fail_part(part, &detail);
        return;
    }
    part->call.done = part_done;
    part->call.at_once = true;
    part->open = true;
    batch->open++;
    caller_start(request->router->options.caller, &part->call);
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
    batch->open = 1; /* Held until all are started. */
    for (uint32_t i = 0; i < elements.count; i++)
        start_part(batch, i, elements.messages[i]);
    if (--batch->open == 0)
        answer(batch);
}
