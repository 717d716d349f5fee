#include "runtime/etcd/etcd_watch.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_build.h"
#include "runtime/etcd/etcd_parse.h"
#include "runtime/etcd/etcd_client.h"

enum { PAUSE_MS_MIN = 20, PAUSE_MS_MAX = 1000 };

struct etcd_watch {
    struct etcd *etcd;
    struct etcd_watch_options options;
    struct buf key;
    int64_t next_revision; /* The first one not yet delivered. */
    struct etcd_http_request request;
    struct etcd_splitter splitter;
    struct etcd_timer timer; /* To open the stream again. */
    uint64_t pause_ms;
    uint32_t endpoint;
    struct arena arena;
    bool busy;    /* In a callback: free later. */
    bool stopped; /* By the user. */
    bool ended;   /* After a reset. */
};

static void watch_open(struct etcd_watch *watch);

static void timer_due(struct etcd_timer *timer)
{
    watch_open(CONTAINER_OF(timer, struct etcd_watch, timer));
}

static void open_later(struct etcd_watch *watch)
{
    etcd_http_cancel(&watch->request);
    etcd_timer_start(&watch->etcd->timers, &watch->timer, watch->pause_ms);
    if (watch->pause_ms * 2 <= PAUSE_MS_MAX)
        watch->pause_ms *= 2;
}

static void watch_free(struct etcd_watch *watch)
{
    etcd_http_request_deinit(&watch->request);
    buf_deinit(&watch->key);
    arena_deinit(&watch->arena);
    free(watch);
}

static void take_events(struct etcd_watch *watch, const struct etcd_watch_result *result)
{
    size_t first = 0;

    /* After a reconnect some may come again. */
    while (first < result->event_count &&
           result->events[first].kv.mod_revision < watch->next_revision)
        first++;
    if (first == result->event_count)
        return;
    int64_t last = result->events[result->event_count - 1].kv.mod_revision;
    watch->next_revision = last + 1;
    watch->options.events(watch->options.context, result->events + first,
                          result->event_count - first, last);
}

static void take_result(struct etcd_watch *watch, const struct etcd_watch_result *result)
{
    etcd_observe(watch->etcd, &result->header, 0);
    if (watch->stopped)
        return;
    if (result->canceled && result->compact_revision > 0) {
        watch->ended = true;
        etcd_http_cancel(&watch->request);
        watch->options.reset(watch->options.context, result->compact_revision);
        return;
    }
    if (result->canceled) {
        open_later(watch);
        return;
    }
    if (result->created) {
        watch->pause_ms = PAUSE_MS_MIN;
        if (watch->options.established != NULL)
            watch->options.established(watch->options.context);
        return;
    }
    if (result->event_count > 0)
        take_events(watch, result);
    else if (result->header.revision >= watch->next_revision)
        watch->next_revision = result->header.revision + 1; /* A progress notification. */
}

/* Takes one object off the answer. False when there is none, or the stream is no good. */
static bool take_object(struct etcd_watch *watch)
{
    struct buf *answer = &watch->request.answer;
    struct etcd_watch_result result;
    struct slice object;
    size_t consumed;
    bool bad;

    if (!etcd_splitter_step(&watch->splitter, buf_slice(answer), &object, &consumed, &bad)) {
        if (bad)
            open_later(watch);
        return false;
    }
    arena_reset(&watch->arena);
    if (etcd_parse_watch(object, &watch->arena, &result) != ERR_OK) {
        log_event(watch->etcd->log, LOG_WARN, "etcd.watch_answer_not_understood",
                  LOG_N("size", object.size));
        etcd_rotate(watch->etcd, watch->endpoint);
        open_later(watch);
        return false;
    }
    buf_consume(answer, consumed);
    take_result(watch, &result);
    return !watch->stopped && !watch->ended && watch->request.http != NULL;
}

static void watch_data(struct etcd_http_request *request)
{
    struct etcd_watch *watch = CONTAINER_OF(request, struct etcd_watch, request);

    watch->busy = true;
    while (take_object(watch))
        continue;
    watch->busy = false;
    if (watch->stopped)
        watch_free(watch);
}

static void watch_done(struct etcd_http_request *request, const struct etcd_http_outcome *outcome)
{
    struct etcd_watch *watch = CONTAINER_OF(request, struct etcd_watch, request);

    log_event(watch->etcd->log, LOG_WARN, "etcd.watch_interrupted",
              LOG_S("endpoint", watch->etcd->endpoints[watch->endpoint]),
              LOG_S("text", outcome->text), LOG_N("status", outcome->status),
              LOG_N("next_revision", watch->next_revision));
    etcd_rotate(watch->etcd, watch->endpoint);
    open_later(watch);
}

static void watch_open(struct etcd_watch *watch)
{
    struct etcd *etcd = watch->etcd;
    char url[ETCD_URL_SIZE + ETCD_PATH_SIZE];

    watch->endpoint = etcd->endpoint;
    watch->splitter = (struct etcd_splitter){ 0 };
    buf_clear(&watch->request.body);
    etcd_build_watch(buf_slice(&watch->key), watch->options.prefix, watch->next_revision,
                     &watch->request.body);
    snprintf(url, sizeof url, "%s/v3/watch", etcd->endpoints[watch->endpoint]);
    if (etcd_http_send(etcd->http, &watch->request, url) != ERR_OK)
        open_later(watch);
}

void etcd_watch_reconnect(struct etcd_watch *watch, int64_t revision)
{
    if (watch->ended || watch->stopped)
        return;
    if (revision > watch->next_revision)
        watch->next_revision = revision;
    etcd_rotate(watch->etcd, watch->endpoint);
    watch->pause_ms = PAUSE_MS_MIN;
    open_later(watch);
}

err etcd_watch_start(struct etcd *etcd, const struct etcd_watch_options *options,
                     struct etcd_watch **ret_watch)
{
    if (options->start_revision <= 0 || options->key.size > ETCD_KEY_MAX)
        return ERR_INVALID;
    struct etcd_watch *watch = mem_zalloc(sizeof *watch);
    watch->etcd = etcd;
    watch->options = *options;
    buf_append(&watch->key, options->key.data, options->key.size);
    watch->next_revision = options->start_revision;
    watch->pause_ms = PAUSE_MS_MIN;
    watch->timer.fire = timer_due;
    watch->request.data = watch_data;
    watch->request.done = watch_done;
    watch->request.repeatable = true;
    watch->request.answer_max = ETCD_ANSWER_MAX;
    etcd->users++;
    watch_open(watch);
    *ret_watch = watch;
    return ERR_OK;
}

void etcd_watch_stop(struct etcd_watch *watch)
{
    CHECK(!watch->stopped);
    watch->stopped = true;
    etcd_http_cancel(&watch->request);
    etcd_timer_stop(&watch->etcd->timers, &watch->timer);
    watch->etcd->users--;
    if (!watch->busy)
        watch_free(watch);
}
