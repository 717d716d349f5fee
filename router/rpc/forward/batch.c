#include "router/core/scatter.h"
#include "router/rpc/forward/batch_nodes.h"
#include "router/rpc/request/handlers.h"

static void batch_cancel(struct request *request)
{
    struct batch *batch = request->state;

    batch_nodes_cancel(batch);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->parts[i].open)
            caller_cancel(&batch->parts[i].call);
    }
    request_fail_gone(request);
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
    batch->queue = arena_zalloc(request->arena, (elements.count + 1) * sizeof *batch->queue);
    batch->parts = arena_zalloc(request->arena, (elements.count + 1) * sizeof *batch->parts);
    batch->outcomes = arena_zalloc(request->arena, (elements.count + 1) * sizeof *batch->outcomes);
    request->state = batch;
    request->cancel = batch_cancel;
    batch->reads = !method_find(request->method->element)->writes;
    for (uint32_t i = 0; i < elements.count; i++) {
        batch->parts[i].batch = batch;
        batch->parts[i].message = elements.messages[i];
        if (!method_goes_whole(request->method))
            batch_queue(batch, i);
    }
    if (method_goes_whole(request->method))
        batch_nodes_ask(batch);
    batch_go_on(batch, true);
}
