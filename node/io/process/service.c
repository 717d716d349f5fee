#include "node/io/process/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/shard/request_shard.h"
#include "node/io/process/answer_put.h"
#include "node/io/process/asker_shares.h"
#include "node/io/process/bulk.h"
#include "node/io/process/incident_waits.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"

#define DEADLINE_MS_DEFAULT 10000u

/* A call on its way; its id is its place plus one, under a generation that makes it unique. */
struct open_call {
    struct call_reply reply;
    uint64_t id;
    uint64_t begun_ns;
    uint32_t method;
    uint32_t shard;
    uint32_t next_free;
    bool of_a_caller;
    bool waits; /* In `bulk`, not at its shard yet. */
    bool bulk;  /* Passed from there. */
    bool waited;
    struct asked asked;
};

/* Callers' calls by priority (router/core/admission.h): of all places, bulk may fill 60 %, ordinary
 * calls 85 %, urgent ones every one. What the cluster asks of itself is urgent. */
static const uint32_t share_percent[] = { 60, 85, 100 };

#define PRIORITY_URGENT 2u
#define RETRY_MS_MIN    50u
#define RETRY_MS_MAX    1000u
#define RETRY_SHARE_MS  100u
#define BULK_LOOK_MS    20u /* How often stalled bulk is looked for. */

struct service {
    struct service_options options;
    struct calls *calls;
    struct link_listener *listener;
    struct workers *workers;
    struct mergers *mergers;
    struct open_call *open;
    uint32_t first_free; /* Of places that were given back: place plus one; 0: none. */
    uint32_t open_count;
    uint32_t places_used; /* No place above has ever been taken. */
    uint64_t generation;
    struct asker_shares *askers;
    struct incident_waits *incident_waits;
    struct event_news *event_news;
    struct incident_waits *event_waits;
    struct bulk bulk;
    struct loop_hook bulk_hook;   /* Some may pass. */
    struct loop_timer bulk_timer; /* While some wait. */
    struct buf scratch;
};

/* The method, or of a batch that goes whole, that of its elements. */
static const struct method_info *carried_out(uint32_t number)
{
    const struct method_info *method = method_find(number);

    return method_goes_whole(method) ? method_find(method->element) : method;
}

/* True: it waits to leave. */
static bool answer(struct service *service, const struct call_reply *reply, uint16_t status,
                   struct slice body)
{
    enum answer_left left = answer_put(service->calls, reply, status, body);

    if (left == ANSWER_TOO_LARGE)
        log_event(service->options.log, LOG_ERROR, "answer.too_large", LOG_N("bytes", body.size));
    if (left == ANSWER_UNREAD && !reply->is_outcome)
        node_metrics_answer_unread(service->options.metrics);
    return left == ANSWER_LEFT;
}

/* NULL: all places are taken. */
static struct open_call *open_begin(struct service *service, const struct call_reply *reply,
                                    uint32_t method, uint32_t shard)
{
    bool given_back = service->first_free != 0;

    if (!given_back && service->places_used == service->options.config->calls_max)
        return NULL;
    uint32_t place = given_back ? service->first_free - 1 : service->places_used++;
    struct open_call *open = &service->open[place];
    service->open_count++;
    if (given_back)
        service->first_free = open->next_free;
    open->reply = *reply;
    open->reply.is_outcome = carried_out(method)->writes;
    open->id = ++service->generation << 20 | (place + 1);
    open->begun_ns = loop_clock_ns();
    open->method = method;
    open->shard = shard;
    return open;
}

static struct open_call *open_find(struct service *service, uint64_t id)
{
    uint32_t place = (uint32_t)(id & 0xfffff);

    if (place == 0 || place > service->places_used)
        return NULL;
    struct open_call *open = &service->open[place - 1];
    return open->id == id ? open : NULL;
}

static void open_end(struct service *service, struct open_call *open)
{
    uint32_t place = (uint32_t)(open - service->open);

    if (open->bulk) {
        bulk_answered(&service->bulk, loop_now_ms(service->options.loop));
        if (service->bulk.count > 0)
            loop_hook_arm(&service->bulk_hook);
    }
    asker_end(service->askers, &open->asked, 0, NULL); /* Unless note_answer did. */
    open->bulk = false;
    open->waits = false;
    open->waited = false;
    open->id = 0;
    service->open_count--;
    open->next_free = service->first_free;
    service->first_free = place + 1;
}

static uint16_t wire_status_of(enum reply_status status)
{
    switch (status) {
    case REPLY_OK:
        return WIRE_OK;
    case REPLY_REFUSED:
        return WIRE_REFUSED;
    case REPLY_NOT_OWNER:
        return WIRE_NOT_OWNER;
    case REPLY_UNKNOWN:
        return WIRE_UNKNOWN;
    }
    CHECK(false);
    return WIRE_UNKNOWN;
}

/* Its asker holds the answer until it has left. */
static void note_answer(struct service *service, struct open_call *open, size_t size)
{
    const struct link *link = link_find(service->options.hub, open->reply.link);

    if (link == NULL)
        return;
    const struct link_mark mark = link_mark_of(link, size);
    asker_end(service->askers, &open->asked, size, &mark);
}

/* What the strict class says of a shard's members, with what the mergeable class has to say. */
static struct slice with_documents(struct service *service, uint32_t shard, struct slice body)
{
    uint32_t lacking = service->mergers != NULL ? mergers_lacking(service->mergers, shard) : 0;

    if (lacking == 0)
        return body;
    Holdfast__Internal__V1__MemberStateResponse *told =
        holdfast__internal__v1__member_state_response__unpack(NULL, body.size, body.data);
    if (told == NULL)
        return body;
    told->documents_lacking = lacking;
    size_t size = holdfast__internal__v1__member_state_response__get_packed_size(told);

    buf_clear(&service->scratch);
    (void)holdfast__internal__v1__member_state_response__pack(told,
                                                              buf_reserve(&service->scratch, size));
    service->scratch.size += size;
    holdfast__internal__v1__member_state_response__free_unpacked(told, NULL);
    return buf_slice(&service->scratch);
}

void service_answer(void *user, uint64_t call, const struct shard_reply *reply, struct slice body)
{
    struct service *service = user;
    struct open_call *open = open_find(service, call);
    uint8_t hint_bytes[WIRE_HINT_SIZE];

    /* Cancelled while the answer came from another thread. */
    if (open == NULL)
        return;
    if (reply->status == REPLY_NOT_OWNER) {
        buf_clear(&service->scratch);
        wire_hint_encode(&(struct wire_hint){ reply->owner, reply->epoch }, &service->scratch);
        memcpy(hint_bytes, service->scratch.data, sizeof hint_bytes);
        body = (struct slice){ hint_bytes, sizeof hint_bytes };
    }
    if (reply->status == REPLY_OK && open->method == METHOD_MEMBER_STATE)
        body = with_documents(service, open->shard, body);
    uint64_t took_us = (loop_clock_ns() - open->begun_ns) / 1000;
    node_metrics_call(service->options.metrics, open->method, reply->status, took_us);
    open->reply.took_us = took_us < UINT32_MAX ? (uint32_t)took_us : UINT32_MAX;
    bool sent = answer(service, &open->reply, wire_status_of(reply->status), body);
    if (sent && reply->status == REPLY_OK)
        note_answer(service, open, body.size);
    open_end(service, open);
}

/* Answered by the mergeable class. */
static bool is_of_documents(uint32_t number)
{
    const struct method_info *method = carried_out(number);

    return method->route == METHOD_MEMBER_READ || method->route == METHOD_MEMBER_WRITE ||
           number == METHOD_READ_DOCUMENTS || number == METHOD_RESTORE_DOCUMENTS;
}

/* Or what the cluster asks of itself: methods that only its processes know, for no asker. So are
 * heartbeats, which are urgent: they do not stand behind what else their key asks for. */
static bool is_of_a_caller(const struct frame *frame)
{
    const struct method_info *method = method_find(frame->method);

    return !method->internal || method->route == METHOD_MUTATION || method->route == METHOD_READ ||
           (frame->asker != 0 && frame->priority < PRIORITY_URGENT);
}

/* How many of all places calls like that may fill. */
static uint32_t places_of(const struct service *service, const struct frame *frame)
{
    uint32_t priority = frame->priority < PRIORITY_URGENT ? frame->priority : PRIORITY_URGENT;

    if (!is_of_a_caller(frame))
        priority = PRIORITY_URGENT;
    return (uint32_t)((uint64_t)service->options.config->calls_max * share_percent[priority] / 100);
}

static void refuse_call(struct service *service, const struct call_reply *reply, uint16_t status,
                        const struct refusal *refusal)
{
    buf_clear(&service->scratch);
    if (refusal != NULL)
        refusal_encode(refusal, &service->scratch);
    answer(service, reply, status, buf_slice(&service->scratch));
}

/* Sooner than callers could time out, and by priority: retry_after rises with the load. Refused,
 * not unavailable: a router shall tell its caller, not ask again by itself. */
static void refuse_throttled(struct service *service, bool of_a_caller,
                             const struct call_reply *reply)
{
    uint64_t load = (uint64_t)service->open_count * (RETRY_MS_MAX - RETRY_MS_MIN);
    const struct refusal refusal = {
        .code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED,
        .message = "the node has too many open calls; nothing was done",
        .retry_after_ms = RETRY_MS_MIN + (uint32_t)(load / service->options.config->calls_max),
    };

    refuse_call(service, reply, of_a_caller ? WIRE_REFUSED : WIRE_UNAVAILABLE, &refusal);
}

static uint64_t percent_of(uint64_t whole, uint32_t percent)
{
    return whole / 100 * percent + whole % 100 * percent / 100;
}

static struct asker_limits asker_limits_of(const struct service *service, const struct frame *frame)
{
    const struct budget *answers = service->options.answers;
    uint32_t percent = service->options.config->calls_key_share;
    struct asker_limits limits = { .places =
                                       (uint32_t)percent_of(places_of(service, frame), percent),
                                   .bytes = UINT64_MAX };

    if (answers->bytes_max > 0)
        limits.bytes = percent_of(budget_share(answers, BUDGET_READ), percent);
    return limits;
}

/* One key's calls, over all routers, are as many as it may have here. Nothing was done; another
 * node has the same limit, and callers of its own. */
static void refuse_share(struct service *service, const struct call_reply *reply, uint16_t asker,
                         enum asker_verdict verdict, const struct asker_limits *limits)
{
    char limit[24], held[24], message[160];
    bool places = verdict == ASKER_HOLDS_PLACES;
    struct refusal refusal = {
        .code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED,
        .message = message,
        .limit = limit,
        .value = held,
        .retry_after_ms = RETRY_SHARE_MS,
    };

    snprintf(limit, sizeof limit, "%" PRIu64, places ? limits->places : limits->bytes);
    snprintf(held, sizeof held, "%" PRIu64,
             places ? asker_places(service->askers, asker) : asker_bytes(service->askers, asker));
    snprintf(message, sizeof message,
             "this caller holds its share of the node's %s, %s%s; nothing was done",
             places ? "open calls" : "room for answers to reads", limit, places ? "" : " bytes");
    node_metrics_asker_throttled(service->options.metrics, places);
    refuse_call(service, reply, WIRE_REFUSED, &refusal);
}

static void refuse_method(struct service *service, const struct call_reply *reply)
{
    static const struct refusal refusal = {
        .code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNIMPLEMENTED,
        .message = "a node does not answer this method",
    };

    refuse_call(service, reply, WIRE_REFUSED, &refusal);
}

static err documents_call(struct service *service, const struct bulk_call *call,
                          struct slice request)
{
    if (service->mergers == NULL)
        return ERR_NOT_FOUND;
    return mergers_call(service->mergers, &(struct mergers_request){ .shard = call->shard,
                                                                     .method = call->method,
                                                                     .call = call->id,
                                                                     .bytes = request });
}

/* No answer of it is wanted any more. */
static void call_cancel_at(struct service *service, const struct open_call *open)
{
    if (open->waits)
        return;
    if (!is_of_documents(open->method))
        workers_cancel(service->workers, open->shard, open->id);
    else if (service->mergers != NULL)
        mergers_cancel(service->mergers, open->shard, open->id);
}

/* True: answered. */
static bool refuse_restore(struct service *service, struct open_call *open, uint32_t shard)
{
    bool restores = open->method == METHOD_BEGIN_RESTORE || open->method == METHOD_FINISH_RESTORE;
    struct call_reply reply = open->reply;
    const char *bars =
        restores && service->mergers != NULL ? mergers_bars_restore(service->mergers, shard) : NULL;

    if (bars == NULL)
        return false;
    open_end(service, open);
    refuse_call(service, &reply, WIRE_REFUSED,
                &(struct refusal){ .code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_VERSION_CONFLICT,
                                   .message = bars });
    return true;
}

/* To its shard; refused where that cannot be. */
static void call_begin(struct service *service, struct open_call *open,
                       const struct bulk_call *call, struct slice request)
{
    struct call_reply reply = open->reply;
    bool of_a_caller = open->of_a_caller;
    struct worker_request asked = {
        .shard = call->shard,
        .method = call->method,
        .call = call->id,
        .deadline_ms = call->deadline_ms,
        .bytes = request,
        .arrived_ns = open->begun_ns,
        .begun_ns = open->waited ? 0 : open->begun_ns,
        .number = reply.request_id,
    };

    if (refuse_restore(service, open, call->shard))
        return;
    memcpy(asked.trace, reply.trace, sizeof asked.trace);
    err e = is_of_documents(call->method) ? documents_call(service, call, request)
                                          : workers_call(service->workers, &asked);
    if (e == ERR_OK)
        return;
    open_end(service, open);
    if (e == ERR_FULL)
        refuse_throttled(service, of_a_caller, &reply);
    else
        refuse_call(service, &reply, WIRE_NOT_OWNER, NULL);
}

/* Bulk waits until some that passed before it is answered. */
static void bulk_hold(struct service *service, struct open_call *open, const struct bulk_call *call,
                      struct slice request)
{
    struct call_reply reply = open->reply;

    open->waits = bulk_wait(&service->bulk, call, request);
    if (!open->waits) {
        open_end(service, open);
        refuse_throttled(service, true, &reply);
    } else if (!loop_timer_is_running(&service->bulk_timer)) {
        loop_timer_start_repeating(&service->bulk_timer, BULK_LOOK_MS);
    }
}

/* A call whose deadline passed here was never begun: its caller may repeat it. */
static void bulk_begin(struct service *service, const struct bulk_call *call, uint64_t now_ms)
{
    struct open_call *open = open_find(service, call->id);

    if (open == NULL) { /* Cancelled. */
        bulk_answered(&service->bulk, now_ms);
        return;
    }
    open->waits = false;
    open->waited = true;
    open->bulk = true;
    if (now_ms < call->deadline_ms) {
        call_begin(service, open, call, (struct slice){ call->bytes, call->size });
        return;
    }
    struct call_reply reply = open->reply;
    open_end(service, open);
    refuse_throttled(service, true, &reply);
}

static void on_bulk(void *user)
{
    struct service *service = user;
    uint64_t now_ms = loop_now_ms(service->options.loop);
    struct bulk_call *call;

    while ((call = bulk_take(&service->bulk, now_ms)) != NULL) {
        bulk_begin(service, call, now_ms);
        free(call);
    }
    if (service->bulk.count == 0)
        loop_timer_stop(&service->bulk_timer);
}

/* NULL: answered. */
static struct open_call *open_place(struct service *service, const struct frame *frame,
                                    const struct call_reply *reply, uint32_t shard)
{
    const struct asker_limits limits = asker_limits_of(service, frame);
    bool of_a_caller = is_of_a_caller(frame);
    struct asked asked = { .asker = of_a_caller ? frame->asker : 0,
                           .method = frame->method,
                           .reads = of_a_caller && !carried_out(frame->method)->writes };

    if (service->open_count >= places_of(service, frame)) {
        refuse_throttled(service, of_a_caller, reply);
        return NULL;
    }
    enum asker_verdict verdict =
        asker_begin(service->askers, &asked, &limits, loop_now_ms(service->options.loop));
    if (verdict != ASKER_ADMITTED) {
        refuse_share(service, reply, asked.asker, verdict, &limits);
        return NULL;
    }
    struct open_call *open = open_begin(service, reply, frame->method, shard);
    if (open == NULL) {
        asker_end(service->askers, &asked, 0, NULL);
        refuse_throttled(service, of_a_caller, reply);
        return NULL;
    }
    open->asked = asked;
    open->of_a_caller = of_a_caller;
    return open;
}

static void shard_call(struct service *service, const struct frame *frame,
                       const struct call_reply *reply)
{
    struct refusal refusal = { 0 };
    uint32_t shard;
    uint32_t deadline_ms = frame->deadline_ms > 0 ? frame->deadline_ms : DEADLINE_MS_DEFAULT;

    if (service->workers == NULL) {
        refuse_call(service, reply, WIRE_UNAVAILABLE, NULL);
        return;
    }
    if (request_shard(frame->method, frame->body, service->options.shard_count, &shard, &refusal) !=
        ERR_OK) {
        refuse_call(service, reply, WIRE_REFUSED, &refusal);
        return;
    }
    struct open_call *open = open_place(service, frame, reply, shard);
    if (open == NULL)
        return;
    uint64_t now_ms = loop_now_ms(service->options.loop);
    const struct bulk_call call = {
        .id = open->id,
        .method = frame->method,
        .shard = shard,
        .deadline_ms = now_ms + deadline_ms,
    };
    bool is_bulk = frame->priority == 0 && open->of_a_caller;
    open->bulk = is_bulk && bulk_pass(&service->bulk, now_ms);
    if (is_bulk && !open->bulk)
        bulk_hold(service, open, &call, frame->body);
    else
        call_begin(service, open, &call, frame->body);
}

static bool list_incidents(void *user, struct slice request, struct buf *out)
{
    struct service *service = user;

    return service->options.incidents(service->options.user, request, out);
}

static bool list_event_news(void *user, struct slice request, struct buf *out)
{
    struct service *service = user;

    return event_news_append(service->event_news, request, out);
}

static void answer_wait(void *user, const struct call_reply *reply, bool known, struct slice body)
{
    (void)answer(user, reply, known ? WIRE_OK : WIRE_UNKNOWN, body);
}

void service_incidents_added(void *user)
{
    struct service *service = user;

    incident_waits_added(service->incident_waits);
}

/* Any thread. */
static void event_news_added(void *user)
{
    struct service *service = user;

    incident_waits_added(service->event_waits);
}

struct event_news *service_event_news(struct service *service)
{
    return service->event_news;
}

/* What the documents' shell tells of itself. */
static void tell_of_documents(struct service *service, const struct frame *frame,
                              const struct call_reply *reply)
{
    if (service->mergers == NULL) {
        refuse_call(service, reply, WIRE_UNAVAILABLE, NULL);
        return;
    }
    const struct open_call *open = open_place(service, frame, reply, 0);

    if (open == NULL)
        return;
    buf_clear(&service->scratch);
    bool told = frame->method == METHOD_GET_NODE_CLOCK
                    ? mergers_clock(service->mergers, frame->body, &service->scratch)
                    : mergers_list_online(service->mergers, frame->body, &service->scratch);
    const struct shard_reply answer = { .call = open->id,
                                        .status = told ? REPLY_OK : REPLY_UNKNOWN };

    service_answer(service, open->id, &answer, buf_slice(&service->scratch));
}

static void on_request(void *user, struct link *link, const struct frame *frame,
                       const struct call_reply *reply)
{
    struct service *service = user;
    const struct method_info *method = method_find(frame->method);

    (void)link;
    switch (method != NULL ? method->route : METHOD_OWNER) {
    case METHOD_MUTATION:
    case METHOD_READ:
    case METHOD_SHARD:
    case METHOD_GATHER:
    case METHOD_SHARD_WRITE:
    case METHOD_MEMBER_READ:
    case METHOD_MEMBER_WRITE:
    case METHOD_SHARD_VIEW:
        shard_call(service, frame, reply);
        break;
    case METHOD_NODE:
        if (frame->method == METHOD_LIST_NODE_INCIDENTS) {
            incident_waits_ask(service->incident_waits, reply, frame->body);
            break;
        }
        if (frame->method == METHOD_LIST_EVENT_NEWS) {
            incident_waits_ask(service->event_waits, reply, frame->body);
            break;
        }
        if (frame->method == METHOD_LIST_NODE_ONLINE || frame->method == METHOD_GET_NODE_CLOCK) {
            tell_of_documents(service, frame, reply);
            break;
        }
        buf_clear(&service->scratch);
        if (frame->method == METHOD_GET_NODE_LOAD)
            service->options.load(service->options.user, &service->scratch);
        else
            service->options.status(service->options.user, frame->body, &service->scratch);
        answer(service, reply, WIRE_OK, buf_slice(&service->scratch));
        break;
    case METHOD_SCATTER:
        if (method_goes_whole(method))
            shard_call(service, frame, reply);
        else
            refuse_method(service, reply);
        break;
    case METHOD_ROUTER:
    case METHOD_STREAM:
    case METHOD_OWNER:
    case METHOD_COORDINATOR:
        refuse_method(service, reply);
        break;
    }
}

/* The answer will be dropped by the link; here only a queue place may come free earlier. */
static void on_cancel(void *user, const struct call_reply *reply)
{
    struct service *service = user;

    if (incident_waits_cancel(service->incident_waits, reply) ||
        incident_waits_cancel(service->event_waits, reply))
        return;
    for (uint32_t i = 0; i < service->places_used; i++) {
        struct open_call *open = &service->open[i];
        if (open->id != 0 && open->reply.request_id == reply->request_id &&
            open->reply.link.generation == reply->link.generation) {
            call_cancel_at(service, open);
            answer(service, &open->reply, WIRE_UNKNOWN, (struct slice){ 0 });
            open_end(service, open);
            return;
        }
    }
}

/* Callers over this link ask again over another: places in queues are given up. */
static void cancel_all_of(struct service *service, struct link *link)
{
    uint64_t generation = link_ref(link).generation;

    for (uint32_t i = 0; i < service->places_used; i++) {
        struct open_call *open = &service->open[i];
        if (open->id == 0 || open->reply.link.generation != generation)
            continue;
        call_cancel_at(service, open);
        answer(service, &open->reply, WIRE_UNKNOWN, (struct slice){ 0 });
        open_end(service, open);
    }
}

static void on_ready(void *user, struct link *link, const struct hello *peer)
{
    (void)user;
    (void)link;
    (void)peer;
}

static void on_frame(void *user, struct link *link, const struct frame *frame)
{
    struct service *service = user;
    (void)calls_frame(service->calls, link, frame);
}

static void on_closed(void *user, struct link *link, enum link_close_reason reason,
                      const char *text)
{
    struct service *service = user;
    (void)reason;
    (void)text;
    incident_waits_cancel_link(service->incident_waits, link_ref(link).generation);
    incident_waits_cancel_link(service->event_waits, link_ref(link).generation);
    if (service->workers != NULL)
        cancel_all_of(service, link);
    calls_closed(service->calls, link);
}

static bool has_left(void *user, const struct link_mark *mark)
{
    const struct service *service = user;

    return link_has_left(service->options.hub, mark);
}

err service_new(const struct service_options *options, struct service **ret_service)
{
    struct service *service = mem_zalloc(sizeof *service);
    struct calls_options calls = {
        .hub = options->hub,
        .loop = options->loop,
        .requests_max = options->config->calls_max,
        .request = on_request,
        .cancel = on_cancel,
        .user = service,
    };
    struct link_listen_options listen = {
        .transport = options->transport,
        .address = options->config->listen,
        .busy = true,
        .roles = 1u << ROLE_ROUTER | 1u << ROLE_COORDINATOR,
        .handlers = { .ready = on_ready, .frame = on_frame, .closed = on_closed, .user = service },
    };

    service->options = *options;
    service->incident_waits = incident_waits_new(&(struct incident_waits_options){
        .loop = options->loop, .list = list_incidents, .answer = answer_wait, .user = service });
    service->event_waits = incident_waits_new(&(struct incident_waits_options){
        .loop = options->loop, .list = list_event_news, .answer = answer_wait, .user = service });
    service->event_news = event_news_new(options->shard_count, loop_wall_ms());
    event_news_set_listener(service->event_news, event_news_added, service);
    service->askers =
        asker_shares_new(&(struct asker_shares_options){ .has_left = has_left, .user = service });
    bulk_init(&service->bulk, options->config->bulk_calls_max);
    loop_hook_init(&service->bulk_hook, options->loop, on_bulk, service);
    loop_timer_init(&service->bulk_timer, options->loop, on_bulk, service);
    service->open = mem_zalloc(sizeof *service->open * options->config->calls_max);
    err e = calls_new(&calls, &service->calls);
    if (e == ERR_OK)
        e = link_listen(options->hub, &listen, &service->listener);
    if (e != ERR_OK) {
        service_free(service);
        return e;
    }
    *ret_service = service;
    return ERR_OK;
}

void service_free(struct service *service)
{
    if (service == NULL)
        return;
    if (service->listener != NULL)
        link_listener_close(service->listener);
    link_hub_close_links(service->options.hub, service);
    calls_free(service->calls);
    incident_waits_free(service->incident_waits);
    incident_waits_free(service->event_waits);
    event_news_free(service->event_news);
    loop_timer_stop(&service->bulk_timer);
    loop_hook_disarm(&service->bulk_hook);
    bulk_deinit(&service->bulk);
    for (uint32_t i = 0; i < service->places_used; i++) {
        if (service->open[i].id != 0)
            asker_end(service->askers, &service->open[i].asked, 0, NULL);
    }
    asker_shares_free(service->askers);
    free(service->open);
    buf_deinit(&service->scratch);
    free(service);
}

uint16_t service_port(const struct service *service)
{
    return link_listener_port(service->listener);
}

void service_set_workers(struct service *service, struct workers *workers)
{
    service->workers = workers;
}

void service_set_mergers(struct service *service, struct mergers *mergers)
{
    service->mergers = mergers;
}

struct calls *service_calls(struct service *service)
{
    return service->calls;
}
