#include "router/rpc/call/request_spans.h"

#include <inttypes.h>
#include <stdio.h>

#define MS 1000000u

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void request_spans_get(const struct caller_call *call, uint64_t total_ns,
                       struct request_spans *ret_spans)
{
    const struct caller_trail *trail = &call->trail;
    uint64_t sent_ns = call->retry.sent > 0 ? least(trail->sent_ns, total_ns) : total_ns;
    uint64_t first_ns = call->retry.sent > 0 ? least(trail->first_ns, sent_ns) : total_ns;
    uint64_t call_ns = total_ns - sent_ns;
    uint64_t node_ns = least(trail->node_us * UINT64_C(1000), call_ns);

    *ret_spans = (struct request_spans){
        .wait_ms = first_ns / MS,
        .retry_ms = (sent_ns - first_ns) / MS,
    };
    if (trail->answered) {
        ret_spans->node_ms = node_ns / MS;
        ret_spans->link_ms = (call_ns - node_ns) / MS;
    } else {
        ret_spans->lost_ms = call_ns / MS;
    }
}

void request_route_print(const struct caller_call *call, char ret_text[REQUEST_ROUTE_SIZE])
{
    const struct caller_trail *trail = &call->trail;
    size_t size = 0;

    ret_text[0] = 0;
    for (uint32_t i = 0; i < CALLER_ATTEMPTS_TOLD && i < call->retry.sent; i++)
        size += (size_t)snprintf(ret_text + size, REQUEST_ROUTE_SIZE - size, "%s%" PRIu64 "@%u",
                                 i > 0 ? " " : "", trail->nodes[i], trail->at_ms[i]);
}
