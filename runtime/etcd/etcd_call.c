#include "runtime/etcd/etcd_call.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_parse.h"

enum { PAUSE_MS_MIN = 20, PAUSE_MS_MAX = 1000 };

static void call_answered(struct etcd_http_request *request,
                          const struct etcd_http_outcome *outcome);
static void call_timer(struct etcd_timer *timer);

struct etcd_call *etcd_call_new(struct etcd *etcd, enum etcd_call_kind kind, const char *path,
                                uint64_t timeout_ms)
{
    struct etcd_call *call = mem_zalloc(sizeof *call);

    call->etcd = etcd;
    call->kind = kind;
    call->path = path;
    call->deadline_ms = etcd_now_ms() + (timeout_ms > 0 ? timeout_ms : etcd->timeout_ms);
    call->pause_ms = PAUSE_MS_MIN;
    call->timer.fire = call_timer;
    call->request.done = call_answered;
    call->request.answer_max = ETCD_ANSWER_MAX;
    return call;
}

static void call_free(struct etcd_call *call)
{
    etcd_timer_stop(&call->etcd->timers, &call->timer);
    etcd_http_request_deinit(&call->request);
    arena_deinit(&call->arena);
    free(call);
}

/* ---- The two lists ---- */

static void list_unlink(struct etcd_call *call)
{
    struct etcd *etcd = call->etcd;
    bool queued = call->state == ETCD_CALL_QUEUED;

    if (call->previous != NULL)
        call->previous->next = call->next;
    else if (queued)
        etcd->queue_first = call->next;
    else
        etcd->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    else if (queued)
        etcd->queue_last = call->previous;
    call->next = call->previous = NULL;
    if (queued)
        etcd->queued--;
    if (call->state == ETCD_CALL_ACTIVE)
        etcd->active--;
    call->state = ETCD_CALL_ANSWERED;
}

static void list_queue(struct etcd_call *call)
{
    struct etcd *etcd = call->etcd;

    call->state = ETCD_CALL_QUEUED;
    call->previous = etcd->queue_last;
    if (etcd->queue_last != NULL)
        etcd->queue_last->next = call;
    else
        etcd->queue_first = call;
    etcd->queue_last = call;
    etcd->queued++;
}

static void list_take(struct etcd_call *call, enum etcd_call_state state)
{
    struct etcd *etcd = call->etcd;

    call->state = state;
    call->next = etcd->calls;
    if (call->next != NULL)
        call->next->previous = call;
    etcd->calls = call;
    if (state == ETCD_CALL_ACTIVE)
        etcd->active++;
}

/* ---- Sending ---- */

/* Delivered from the timer, never from inside the caller's own call. */
static void fail_later(struct etcd_call *call, err e)
{
    list_take(call, ETCD_CALL_PAUSED);
    call->failed = e;
    etcd_timer_start(&call->etcd->timers, &call->timer, 0);
}

static err gave_up_err(const struct etcd_call *call)
{
    return call->may_have_reached ? ERR_TIMEOUT : ERR_UNAVAILABLE;
}

/* Takes a call that is in no list. */
static void call_send(struct etcd_call *call)
{
    struct etcd *etcd = call->etcd;
    char url[ETCD_URL_SIZE + ETCD_PATH_SIZE];
    uint64_t now_ms = etcd_now_ms();
    uint64_t timeout_ms = etcd->timeout_ms;

    if (call->deadline_ms != 0 && now_ms >= call->deadline_ms) {
        fail_later(call, gave_up_err(call));
        return;
    }
    if (call->deadline_ms != 0 &&
        (!call->until_definite || call->deadline_ms - now_ms < timeout_ms))
        timeout_ms = call->deadline_ms - now_ms;
    /* Leaves time to ask the other endpoints when this one hangs. */
    if (call->reads_only && !call->pinned && call->endpoints_tried < etcd->endpoint_count)
        timeout_ms = timeout_ms / (etcd->endpoint_count - call->endpoints_tried) + 1;
    if (!call->pinned)
        call->endpoint = etcd->endpoint;
    call->endpoints_tried++;
    call->revision_at_send = etcd->revision;
    call->request.timeout_ms = timeout_ms;
    call->request.repeatable = call->reads_only;
    snprintf(url, sizeof url, "%s%s", etcd->endpoints[call->endpoint], call->path);
    err e = etcd_http_send(etcd->http, &call->request, url);
    if (e != ERR_OK) {
        fail_later(call, e);
        return;
    }
    list_take(call, ETCD_CALL_ACTIVE);
    /* curl 7.88's own timer sleeps on for ever where this is its connect timeout, too. */
    etcd_timer_start(&etcd->timers, &call->timer, timeout_ms);
}

static void pump(struct etcd *etcd)
{
    while (!etcd->closing && etcd->queue_first != NULL && etcd->active < ETCD_CALLS_MAX) {
        struct etcd_call *call = etcd->queue_first;
        list_unlink(call);
        call_send(call);
    }
}

err etcd_call_submit(struct etcd_call *call, struct etcd_call **ret_call)
{
    struct etcd *etcd = call->etcd;

    if (etcd->queued >= ETCD_QUEUE_MAX) {
        call_free(call);
        return ERR_FULL;
    }
    if (ret_call != NULL)
        *ret_call = call;
    list_queue(call);
    pump(etcd);
    return ERR_OK;
}

void etcd_call_cancel(struct etcd_call *call)
{
    struct etcd *etcd = call->etcd;

    if (call->state == ETCD_CALL_ANSWERED) {
        call->cancelled = true;
        return;
    }
    list_unlink(call);
    call_free(call);
    pump(etcd);
}

/* ---- Answers ---- */

static err parse_answer(struct etcd_call *call)
{
    struct slice json = buf_slice(&call->request.answer);
    struct etcd_lease_result *lease = &call->result.lease;
    err e = ERR_CORRUPT;

    switch (call->kind) {
    case ETCD_CALL_RANGE:
        return etcd_parse_range(json, &call->arena, &call->result.range);
    case ETCD_CALL_TXN:
        e = etcd_parse_txn(json, &call->arena, &call->result.txn);
        call->result.txn.attempts = call->attempts;
        return e;
    case ETCD_CALL_LEASE:
        e = etcd_parse_lease(json, lease);
        if (e == ERR_OK && call->keep_alive && lease->ttl_s <= 0)
            e = ERR_NOT_FOUND;
        return e;
    case ETCD_CALL_STATUS:
        return etcd_parse_status(json, &call->result.status);
    }
    return e;
}

static const struct etcd_header *answer_header(const struct etcd_call *call)
{
    switch (call->kind) {
    case ETCD_CALL_RANGE:
        return &call->result.range.header;
    case ETCD_CALL_TXN:
        return &call->result.txn.header;
    case ETCD_CALL_LEASE:
        return &call->result.lease.header;
    case ETCD_CALL_STATUS:
        break;
    }
    return &call->result.status.header;
}

/* No whole answer came: definite only if nothing had left. */
static err transport_err(const struct etcd_call *call, const struct etcd_http_outcome *outcome)
{
    if (!outcome->sent)
        return ERR_UNAVAILABLE;
    if (outcome->too_large && call->reads_only)
        return ERR_TOO_LARGE;
    return outcome->code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_DISCONNECTED;
}

static err outcome_err(struct etcd_call *call, const struct etcd_http_outcome *outcome,
                       struct etcd_failure *ret_failure)
{
    struct slice answer = buf_slice(&call->request.answer);

    snprintf(ret_failure->text, sizeof ret_failure->text, "%s", outcome->text);
    if (outcome->code != CURLE_OK)
        return transport_err(call, outcome);
    if (outcome->status == 200) {
        err e = parse_answer(call);
        if (e != ERR_CORRUPT)
            return e;
        snprintf(ret_failure->text, sizeof ret_failure->text, "answer not understood");
    }
    if (etcd_parse_failure(answer, ret_failure) == ERR_OK)
        return etcd_failure_err(ret_failure, call->reads_only);
    /* Whatever this is, it does not say that nothing was done. */
    return call->reads_only ? ERR_CORRUPT : ERR_DISCONNECTED;
}

/* Not an answer to the question, so asking again may help. */
static bool is_transient(err e)
{
    return e == ERR_UNAVAILABLE || e == ERR_TIMEOUT || e == ERR_DISCONNECTED || e == ERR_FULL ||
           e == ERR_NO_MEMORY;
}

static bool may_try_another(const struct etcd_call *call, err e)
{
    bool harmless = e == ERR_UNAVAILABLE || (call->reads_only && is_transient(e));

    return harmless && !call->pinned && call->endpoints_tried < call->etcd->endpoint_count &&
           (call->deadline_ms == 0 || etcd_now_ms() < call->deadline_ms);
}

static void deliver(struct etcd_call *call, err e)
{
    bool ok = e == ERR_OK;

    if (call->cancelled) {
        call_free(call);
        return;
    }
    switch (call->kind) {
    case ETCD_CALL_RANGE:
        call->done.range(call->context, e, ok ? &call->result.range : NULL);
        break;
    case ETCD_CALL_TXN:
        call->done.txn(call->context, e, ok ? &call->result.txn : NULL);
        break;
    case ETCD_CALL_LEASE:
        call->done.lease(call->context, e, ok ? &call->result.lease : NULL);
        break;
    case ETCD_CALL_STATUS:
        call->done.status(call->context, e, ok ? &call->result.status : NULL);
        break;
    }
    call_free(call);
}

/* Takes a call that is in no list. */
static void call_pause(struct etcd_call *call)
{
    list_take(call, ETCD_CALL_PAUSED);
    etcd_timer_start(&call->etcd->timers, &call->timer, call->pause_ms);
    if (call->pause_ms * 2 <= PAUSE_MS_MAX)
        call->pause_ms *= 2;
}

static void call_answered(struct etcd_http_request *request,
                          const struct etcd_http_outcome *outcome)
{
    struct etcd_call *call = CONTAINER_OF(request, struct etcd_call, request);
    struct etcd *etcd = call->etcd;
    struct etcd_failure failure = { 0 };

    etcd_timer_stop(&etcd->timers, &call->timer);
    list_unlink(call);
    call->attempts += outcome->sent ? 1u : 0u;
    err e = outcome_err(call, outcome, &failure);
    if (e == ERR_OK)
        etcd_observe(etcd, answer_header(call), call->linearizable ? call->revision_at_send : 0);
    if (is_transient(e)) {
        call->may_have_reached = call->may_have_reached || err_retry(e) == RETRY_UNKNOWN_OUTCOME;
        etcd_rotate(etcd, call->endpoint);
        log_event(etcd->log, LOG_WARN, "etcd.call_failed", LOG_S("path", call->path),
                  LOG_S("endpoint", etcd->endpoints[call->endpoint]), LOG_S("error", err_name(e)),
                  LOG_S("text", failure.text));
    }
    if (!call->cancelled && may_try_another(call, e))
        call_send(call);
    else if (!call->cancelled && call->until_definite && is_transient(e))
        call_pause(call);
    else
        deliver(call, e);
    pump(etcd);
}

static void call_timer(struct etcd_timer *timer)
{
    struct etcd_call *call = CONTAINER_OF(timer, struct etcd_call, timer);
    struct etcd *etcd = call->etcd;

    if (call->state == ETCD_CALL_ACTIVE) {
        etcd_http_expire(&call->request);
        return;
    }
    list_unlink(call);
    if (call->failed != ERR_OK) {
        deliver(call, call->failed);
    } else {
        call->endpoints_tried = 0;
        arena_reset(&call->arena);
        list_queue(call);
    }
    pump(etcd);
}
