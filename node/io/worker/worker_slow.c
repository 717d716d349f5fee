#include <string.h>

#include "idl/method.h"
#include "node/io/worker/worker_internal.h"
#include "runtime/base/check.h"

#define MS             1000000u
#define STALL_FRESH_NS (100u * UINT64_C(1000000))

uint64_t worker_clock(struct worker *worker)
{
    if (worker->clock_ns == 0)
        worker->clock_ns = loop_clock_ns();
    return worker->clock_ns;
}

static void put(struct slow_line *line, struct log_field field)
{
    CHECK(line->count + 1 < ARRAY_SIZE(line->fields));
    line->fields[line->count++] = field;
}

static void put_number(struct slow_line *line, const char *key, uint64_t number)
{
    put(line, (struct log_field){ .key = key, .number = number });
}

static void put_times(struct slow_line *line, const struct span_call *call,
                      const struct span_times *times)
{
    const struct method_info *method = method_find(call->method);
    bool reads = !method->writes;

    put_number(line, "queue_ms", times->queue_ns / MS);
    if (!times->logged) {
        put_number(line, reads ? "read_ms" : "rest_ms", times->rest_ns / MS);
        return;
    }
    put_number(line, "prepare_ms", times->prepare_ns / MS);
    put_number(line, "log_ms", times->log_ns / MS);
    put_number(line, "replicas_ms", times->replicas_ns / MS);
    put_number(line, "apply_ms", times->apply_ns / MS);
}

static const char *status_text(enum reply_status status)
{
    static const char *const texts[] = { [REPLY_OK] = "ok",
                                         [REPLY_REFUSED] = "refused",
                                         [REPLY_NOT_OWNER] = "not_owner",
                                         [REPLY_UNKNOWN] = "unknown" };

    return texts[status];
}

void worker_slow_answer(struct worker *worker, uint64_t id, enum reply_status status)
{
    const struct span_call *call = spans_find(worker->spans, id);
    char trace[TRACE_TEXT_SIZE], span[SPAN_TEXT_SIZE];
    struct slow_line line = { .count = 0 };
    struct span_times times;
    uint32_t withheld;

    if (call == NULL || call->arrived_ns == 0)
        return;
    uint64_t now_ns = worker_clock(worker);
    uint64_t took_ns = now_ns > call->arrived_ns ? now_ns - call->arrived_ns : 0;
    if (!slow_gate_pass(&worker->slow, took_ns, now_ns, &withheld))
        return;
    spans_times(worker->spans, call, now_ns, &times);
    trace_print(call->trace, trace);
    trace_span_print(trace_span(call->trace, call->number), span);
    put(&line, (struct log_field)LOG_S("method", method_find(call->method)->name));
    put_number(&line, "shard", call->shard);
    put_number(&line, "ms", took_ns / MS);
    put(&line, (struct log_field)LOG_S("status", status_text(status)));
    put(&line, (struct log_field)LOG_S("trace", trace));
    put(&line, (struct log_field)LOG_S("span", span));
    put_times(&line, call, &times);
    if (withheld > 0)
        put_number(&line, "withheld", withheld);
    log_emit(worker->options.log, LOG_WARN, "request.slow", line.fields);
}

void worker_slow_tick(struct worker *worker)
{
    uint64_t now_ns = loop_clock_ns();
    uint64_t tick_ns = worker->options.tick_ms * UINT64_C(1000000);

    if (worker->ticked_ns != 0 && now_ns - worker->ticked_ns > 3 * tick_ns) {
        worker->stalled_ns = now_ns - worker->ticked_ns - tick_ns;
        worker->stall_over_ns = now_ns;
    }
    worker->ticked_ns = now_ns;
}

/* For how long nothing ran here, shortly before: what came meanwhile lay in a socket. */
static uint64_t stalled_ns(const struct worker *worker, uint64_t now_ns)
{
    uint64_t tick_ns = worker->options.tick_ms * UINT64_C(1000000);

    if (worker->ticked_ns != 0 && now_ns - worker->ticked_ns > 3 * tick_ns)
        return now_ns - worker->ticked_ns - tick_ns;
    if (worker->stalled_ns != 0 && now_ns - worker->stall_over_ns < STALL_FRESH_NS)
        return worker->stalled_ns;
    return 0;
}

void worker_slow_begin_write(struct worker *worker, struct write_job *job)
{
    const uint8_t *trace = worker->incoming.trace;
    uint64_t first = 0, last = 0;

    job->slow = (struct slow_write){ .handed_ns = worker_clock(worker) };
    for (uint32_t i = 0; i < job->request.write_count; i++) {
        if (job->writes[i].type != REP_WRITE_ENTRY)
            continue;
        last = job->writes[i].entry->index;
        first = first == 0 ? last : first;
    }
    if (last == 0)
        return;
    job->slow.last_index = last;
    if (trace != NULL) {
        job->slow.from = worker->incoming.from;
        job->slow.stalled_ns = stalled_ns(worker, job->slow.handed_ns);
    } else {
        spans_handed(worker->spans, job->request.shard, last, job->slow.handed_ns);
        trace = spans_trace(worker->spans, job->request.shard, first, last);
    }
    if (trace != NULL)
        memcpy(job->slow.trace, trace, TRACE_ID_SIZE);
}

void worker_slow_end_write(struct worker *worker, const struct write_job *job)
{
    const struct slow_write *slow = &job->slow;
    uint64_t now_ns = worker_clock(worker);
    uint64_t log_ns = now_ns - slow->handed_ns;
    char trace[TRACE_TEXT_SIZE];
    struct slow_line line = { .count = 0 };
    uint32_t withheld;

    if (slow->last_index == 0)
        return;
    spans_persisted(worker->spans, job->request.shard, slow->last_index, now_ns);
    if (!trace_is_set(slow->trace) ||
        !slow_gate_pass(&worker->slow, slow->stalled_ns + log_ns, now_ns, &withheld))
        return;
    trace_print(slow->trace, trace);
    put_number(&line, "shard", job->request.shard);
    put_number(&line, "ms", (slow->stalled_ns + log_ns) / MS);
    put(&line, (struct log_field)LOG_S("trace", trace));
    put_number(&line, "stalled_ms", slow->stalled_ns / MS);
    put_number(&line, "log_ms", log_ns / MS);
    put_number(&line, "to_index", slow->last_index);
    if (slow->from != 0)
        put_number(&line, "from", slow->from);
    if (withheld > 0)
        put_number(&line, "withheld", withheld);
    log_emit(worker->options.log, LOG_WARN, "append.slow", line.fields);
}

void worker_slow_step(struct worker *worker, uint32_t shard, const struct shard_event *event)
{
    uint64_t commit = rep_commit_index(shard_rep(worker->slots[shard].shard));

    if (worker->out.role_changed)
        spans_forget(worker->spans, shard);
    if (event->type == SHARD_CALL && worker->out.rep.proposed_index != 0)
        spans_proposed(worker->spans, event->call, worker->out.rep.proposed_index);
    if (!spans_awaits(worker->spans, shard, commit))
        return;
    uint64_t took_ns = spans_committed(worker->spans, shard, commit, worker_clock(worker));
    if (worker->options.commits != NULL)
        histogram_observe(worker->options.commits, took_ns / 1000);
}
