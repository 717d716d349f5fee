#include "router/io/slow_log.h"

#include "router/rpc/call/request_spans.h"
#include "runtime/base/check.h"

/* Fields of one line, in order. */
struct line {
    struct log_field fields[24];
    uint32_t count;
};

static void put(struct line *line, struct log_field field)
{
    CHECK(line->count + 1 < ARRAY_SIZE(line->fields));
    line->fields[line->count++] = field;
}

static void put_call(struct line *line, const struct caller_call *call, uint64_t took_ns)
{
    struct request_spans spans;

    request_spans_get(call, took_ns, &spans);
    put(line, (struct log_field)LOG_N("shard", call->shard));
    put(line, (struct log_field)LOG_N("wait_ms", spans.wait_ms));
    put(line, (struct log_field)LOG_N("retry_ms", spans.retry_ms));
    if (call->trail.answered) {
        put(line, (struct log_field)LOG_N("link_ms", spans.link_ms));
        put(line, (struct log_field)LOG_N("node_ms", spans.node_ms));
    } else if (call->retry.sent > 0) {
        put(line, (struct log_field)LOG_N("lost_ms", spans.lost_ms));
    }
}

/* NULL: it has no line. */
static const char *pass(struct slow_log *log, const struct request *request,
                        const struct slow_end *end, uint32_t *ret_withheld)
{
    uint64_t now_ns = request->started_ns + end->took_ns;

    if (slow_gate_pass(&log->slow, end->took_ns, now_ns, ret_withheld))
        return "request.slow";
    if (end->failed && end->took_ns < log->slow.slow_ns &&
        slow_gate_pass(&log->failed, log->failed.slow_ns, now_ns, ret_withheld))
        return "request.failed";
    return NULL;
}

void slow_log_request(struct slow_log *log, const struct request *request,
                      const struct slow_end *end)
{
    const struct caller_call *call = request->last_call;
    char trace[TRACE_TEXT_SIZE], span[SPAN_TEXT_SIZE], parent[SPAN_TEXT_SIZE];
    char node_span[SPAN_TEXT_SIZE], route[REQUEST_ROUTE_SIZE];
    struct line line = { .count = 0 };
    uint32_t withheld;

    const char *event = pass(log, request, end, &withheld);
    if (event == NULL)
        return;
    trace_print(request->trace.trace_id, trace);
    trace_span_print(trace_span(request->trace.trace_id, request->started_ns), span);
    put(&line, (struct log_field)LOG_S("method", request->method->name));
    put(&line, (struct log_field)LOG_N("ms", end->took_ns / 1000000u));
    put(&line, (struct log_field)LOG_S("code", end->code));
    put(&line, (struct log_field)LOG_N("attempts", request->attempts));
    if (request->peer != NULL)
        put(&line, (struct log_field)LOG_S("peer", request->peer));
    put(&line, (struct log_field)LOG_S("trace", trace));
    put(&line, (struct log_field)LOG_S("span", span));
    if (request->trace.span != 0) {
        trace_span_print(request->trace.span, parent);
        put(&line, (struct log_field)LOG_S("parent", parent));
    }
    if (call != NULL) {
        put_call(&line, call, end->took_ns);
        request_route_print(call, route);
        put(&line, (struct log_field)LOG_S("route", route));
    }
    if (call != NULL && call->retry.sent > 0) {
        trace_span_print(trace_span(request->trace.trace_id, call->trail.number), node_span);
        put(&line, (struct log_field)LOG_S("node_span", node_span));
    }
    if (withheld > 0)
        put(&line, (struct log_field)LOG_N("withheld", withheld));
    log_emit(log->log, LOG_WARN, event, line.fields);
}
