#include "router/rpc/request/request.h"

#include "idl/error_rule.h"
#include "router/core/node_form.h"
#include "router/core/refusal.h"
#include "router/core/route.h"
#include "router/rpc/request/router_state.h"
#include "runtime/cluster/wire.h"

#define ANSWERS_RETRY_MS 100u
#define CALLERS_PART     2u /* Of the room for reads, what one caller may have. */

/* Of the places that one key may hold, one player has a 128th, and all who bring tokens of players
 * have as many together as one key. No caller has this name, since theirs are odd. */
#define PLAYER_PART       128u
#define PLAYER_PLACES_MIN 8u
#define ALL_PLAYERS       2u

static bool writes(const struct request *request)
{
    const struct method_info *method = request->method;

    return method->writes || (method->element != 0 && method_find(method->element)->writes);
}

bool request_hold(struct request *request, size_t bytes, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct budget *answers = request->router->options.answers;

    if (answers == NULL)
        return true;
    if (writes(request)) {
        budget_take(answers, bytes);
    } else if (!budget_reserve(answers, BUDGET_READ, bytes)) {
        refusal_make(request->arena, ret_detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED,
                     "answers on their way fill the router's %llu bytes for them "
                     "(answers_size_max); this one has %zu; ask again, or for less",
                     (unsigned long long)budget_share(answers, BUDGET_READ), bytes);
        ret_detail->retry_after_ms = ANSWERS_RETRY_MS;
        request->lacks_room = true;
        return false;
    }
    request->held_bytes += bytes;
    return true;
}

void request_release(struct request *request)
{
    if (request->held_bytes > 0)
        budget_give(request->router->options.answers, request->held_bytes);
    request->held_bytes = 0;
}

/* Anyone may call: callers are addresses, and many may have one. */
static bool has_share(const struct request *request)
{
    return request->caller != 0 &&
           (request->player != NULL || (request->key_id != NULL && request->key_id[0] != 0));
}

const char *request_holder(const struct request *request)
{
    const char *holder = request->holder != NULL ? request->holder : request->key_id;

    return holder != NULL ? holder : "";
}

uint16_t request_asker(const struct request *request)
{
    if (!has_share(request))
        return 0;
    return request->player != NULL ? WIRE_ASKER_PLAYERS : wire_asker(request->caller);
}

bool request_expect(struct request *request, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct router *router = request->router;
    struct budget *answers = router->options.answers;

    if (answers == NULL || answers->bytes_max == 0 || writes(request) || !has_share(request))
        return true;
    uint64_t share = budget_share(answers, BUDGET_READ) / CALLERS_PART;
    struct large_read read = { .caller = request->caller, .method = request->method->id };
    if (large_reads_begin(router->large, &read, share)) {
        request->large = read;
        return true;
    }
    budget_refuse(answers);
    refusal_make(request->arena, ret_detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED,
                 "this caller has its share of answers on their way, %llu bytes "
                 "(answers_size_max); this one would have about %u; ask again, or for less",
                 (unsigned long long)share, read.expected_bytes);
    ret_detail->limit = arena_printf(request->arena, "%llu", (unsigned long long)share);
    ret_detail->retry_after_ms = ANSWERS_RETRY_MS;
    request->lacks_room = true;
    return false;
}

/* Before what it holds is given back. */
static void end_expected(struct request *request)
{
    if (request->large.caller != 0)
        large_reads_end(request->router->large, &request->large, request->held_bytes);
    request->large = (struct large_read){ 0 };
}

bool request_take_places(struct request *request, uint32_t weight, uint32_t percent,
                         uint32_t *ret_limit)
{
    struct router *router = request->router;
    uint32_t share = admission_share(&router->admission, request->priority, percent);
    uint32_t each = share;

    if (!has_share(request))
        return true;
    if (request->player != NULL)
        each = share / PLAYER_PART > PLAYER_PLACES_MIN ? share / PLAYER_PART : PLAYER_PLACES_MIN;
    *ret_limit = each;
    if (!caller_share_take(router->places, request->caller, weight, each))
        return false;
    if (request->player != NULL && !caller_share_take(router->places, ALL_PLAYERS, weight, share)) {
        caller_share_give(router->places, request->caller, weight);
        *ret_limit = share;
        return false;
    }
    request->holds_places = true;
    return true;
}

void request_give_places(struct request *request, uint32_t weight)
{
    struct router *router = request->router;

    if (!request->holds_places)
        return;
    request->holds_places = false;
    caller_share_give(router->places, request->caller, weight);
    if (request->player != NULL)
        caller_share_give(router->places, ALL_PLAYERS, weight);
}

/* Before the door answers: the request's memory is gone after that. */
static void finish(struct request *request, Holdfast__V1__ErrorCode code)
{
    struct router *router = request->router;
    const struct router_observer *observer = &router->options.observer;
    uint64_t latency_us = (loop_clock_ns() - request->started_ns) / 1000u;

    end_expected(request);
    request_release(request);
    request_give_places(request, request->weight);
    admission_leave(&router->admission, request->weight);
    request->weight = 0;
    request->cancel = NULL;
    if (observer->finished != NULL)
        observer->finished(observer->context, request, code, latency_us);
}

uint32_t request_time_left(const struct request *request, uint32_t most_ms)
{
    uint64_t now_ms = loop_now_ms(request->router->options.loop);
    uint64_t left_ms = request->answer_by_ms > now_ms ? request->answer_by_ms - now_ms : 1;

    return left_ms < most_ms ? (uint32_t)left_ms : most_ms;
}

void request_reply(struct request *request, const ProtobufCMessage *response)
{
    finish(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNSPECIFIED);
    request->door->reply(request, response);
}

void request_reply_encoded(struct request *request, struct slice response)
{
    finish(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNSPECIFIED);
    request->door->reply_encoded(request, response);
}

void request_reply_from(struct request *request, const struct buf_source *source)
{
    const struct request_door *door = request->door;
    struct buf response = { 0 };

    if (door->reply_from != NULL) {
        finish(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNSPECIFIED);
        door->reply_from(request, source);
        return;
    }
    source->put(source->user, &response);
    request_reply_encoded(request, buf_slice(&response));
    buf_deinit(&response);
}

bool request_is_failure(Holdfast__V1__ErrorCode code)
{
    return code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN ||
           code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE ||
           code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL ||
           code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_DEADLINE_EXCEEDED;
}

/* The node knows the holder's incarnation alone; this router, perhaps its name. The facts that
 * `detail` shares with others stay as they are. */
static void tell_holder_name(const struct request *request, Holdfast__V1__ErrorDetail *detail)
{
    struct servers *servers = request->router->options.servers;
    struct incarnation incarnation;

    if (servers == NULL || detail->about == NULL ||
        detail->about->fact_case != HOLDFAST__V1__ERROR_DETAIL__ABOUT__FACT_HOLDER ||
        incarnation_parse(slice_from_text(detail->about->holder->incarnation), &incarnation) !=
            ERR_OK)
        return;
    Holdfast__V1__ErrorDetail__About *about = arena_alloc(request->arena, sizeof *about);
    Holdfast__V1__ErrorDetail__Holder *holder = arena_alloc(request->arena, sizeof *holder);
    *about = *detail->about;
    *holder = *detail->about->holder;
    holder->name = arena_printf(request->arena, "%s", servers_name(servers, incarnation));
    about->holder = holder;
    detail->about = about;
}

Holdfast__V1__ErrorDetail request_error(const struct request *request,
                                        const ProtobufCMessage *message,
                                        const Holdfast__V1__ErrorDetail *detail)
{
    Holdfast__V1__ErrorDetail whole = error_complete(detail);

    if (request_is_failure(whole.code)) {
        whole.trace_id = arena_alloc(request->arena, TRACE_TEXT_SIZE);
        trace_print(request->trace.trace_id, whole.trace_id);
    }
    tell_holder_name(request, &whole);
    node_form_tell(request->method, message, request->arena, &whole);
    route_name(message, request->arena, &whole);
    return whole;
}

void request_fail(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    const Holdfast__V1__ErrorDetail whole = request_error(request, request->message, detail);

    finish(request, whole.code);
    request->door->fail(request, &whole);
}

bool request_stream_send(struct request *request, const ProtobufCMessage *message)
{
    return request->door->stream_send(request, message);
}

bool request_is_welcome(const struct request *request)
{
    return request->door->is_welcome == NULL || request->door->is_welcome(request);
}

void request_fail_text(struct request *request, Holdfast__V1__ErrorCode code, const char *message)
{
    Holdfast__V1__ErrorDetail detail;

    holdfast__v1__error_detail__init(&detail);
    detail.code = code;
    detail.message = text_lend(message); /* Read only. */
    request_fail(request, &detail);
}

void request_fail_gone(struct request *request)
{
    request_fail_text(request,
                      writes(request) ? HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN
                                      : HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CANCELED,
                      "the caller has gone");
}
