#include <stdio.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "router/core/refusal.h"
#include "router/core/scatter.h"
#include "router/core/txn_read.h"
#include "router/rpc/forward/forward.h"
#include "router/rpc/request/handlers.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/codec/proto_codec.h"

#define RETRY_AFTER_MS 20u

typedef Holdfast__Internal__V1__ReadSettledRequest settled_request;
typedef Holdfast__Internal__V1__ReadSettledResponse settled_response;
typedef Holdfast__Internal__V1__TxnRef txn_ref;

/* Reads every player while no transaction holds it, as often as router/core/txn_read.h says. */
struct reading {
    struct request *request;
    struct reading_part *parts;
    struct txn_read core;
    struct loop_timer pause;
    struct arena round; /* Requests and answers of one round: there may be many. */
    uint64_t number;    /* Names this read to the players' owners. */
    txn_ref pass[TXN_READ_PLAYERS_MAX];
    txn_ref *pass_list[TXN_READ_PLAYERS_MAX];
};

struct reading_part {
    struct caller_call call;
    struct reading *reading;
    settled_request message;
    Holdfast__V1__Profile *profile; /* Of the last round. */
    bool open;
};

/* ---- the end ---- */

/* Later rounds count for no player, nor does letting go: what was begun is carried through. */
static err prepare_call(struct reading *reading, const settled_request *request,
                        struct caller_call *call, Holdfast__V1__ErrorDetail *ret_detail)
{
    const ProtobufCMessage *message = &request->base;
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(&reading->round, size + 1);

    (void)protobuf_c_message_pack(message, bytes);
    const struct forward_message forward = {
        .method = method_find(reading->request->method->element),
        .message = message,
        .encoded = { bytes, size },
        .again = reading->core.total > 1,
    };
    *call = (struct caller_call){ 0 };
    return forward_prepare(reading->request, &forward, call, ret_detail);
}

/* No caller waits for an answer, so each call is called off at once; its link takes both along. One
 * that is lost lets writes wait until the owner's patience ends (node/core/shard/read_hold.h). */
static void let_go(struct reading *reading)
{
    Holdfast__V1__ErrorDetail detail;
    struct caller_call call;

    for (uint32_t i = 0; i < reading->core.count && reading->core.release; i++) {
        settled_request message = HOLDFAST__INTERNAL__V1__READ_SETTLED_REQUEST__INIT;
        message.player_id = reading->parts[i].message.player_id;
        message.reader = reading->number;
        message.release = true;
        if (prepare_call(reading, &message, &call, &detail) != ERR_OK)
            continue;
        caller_start(reading->request->router->options.caller, &call);
        caller_cancel(&call);
    }
}

/* Before the answer: the request's memory is gone after it. What was read last is the caller's to
 * free. */
static struct arena end(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->core.count; i++) {
        if (reading->parts[i].open)
            caller_cancel(&reading->parts[i].call);
        reading->parts[i].open = false;
    }
    loop_timer_stop(&reading->pause);
    let_go(reading);
    return reading->round;
}

static void end_all(struct reading *reading)
{
    struct arena round = end(reading);

    arena_deinit(&round);
}

static void fail(struct reading *reading, const Holdfast__V1__ErrorDetail *detail)
{
    end_all(reading);
    request_fail(reading->request, detail);
}

/* False: answered, since the players have more than an answer holds. */
static bool fits(struct reading *reading, const Holdfast__V1__ReadPlayersResponse *response)
{
    size_t size = holdfast__v1__read_players_response__get_packed_size(response);
    struct arena *arena = reading->request->arena;
    Holdfast__V1__ErrorDetail detail;

    if (size <= SCATTER_ANSWERS_BYTES_MAX)
        return true;
    const char *limit = arena_printf(arena, "an answer of at most %u bytes; include less",
                                     SCATTER_ANSWERS_BYTES_MAX);
    const char *value = arena_printf(arena, "%zu", size);
    refusal_make_field(arena, &detail,
                       &(struct refusal_field){ "include", limit, slice_from_text(value) },
                       "the players have too much for one answer");
    fail(reading, &detail);
    return false;
}

static void answer(struct reading *reading)
{
    Holdfast__V1__ReadPlayersResponse response = HOLDFAST__V1__READ_PLAYERS_RESPONSE__INIT;
    Holdfast__V1__Profile *profiles[TXN_READ_PLAYERS_MAX];

    for (uint32_t i = 0; i < reading->core.count; i++)
        profiles[i] = reading->parts[i].profile;
    response.n_profiles = reading->core.count;
    response.profiles = profiles;
    if (!fits(reading, &response))
        return;
    struct arena round = end(reading);
    request_reply(reading->request, &response.base);
    arena_deinit(&round);
}

static void refuse_busy(struct reading *reading)
{
    Holdfast__V1__ErrorDetail detail;

    refusal_make(reading->request->arena, &detail,
                 HOLDFAST__V1__ERROR_CODE__ERROR_CODE_TXN_CONFLICT,
                 "until the deadline, some transaction held one of the players, or they changed; "
                 "they were read %u times",
                 reading->core.total);
    detail.retry_after_ms = RETRY_AFTER_MS;
    fail(reading, &detail);
}

/* ---- rounds ---- */

static void start_round(struct reading *reading);

static uint64_t now_ms(const struct reading *reading)
{
    return loop_now_ms(reading->request->router->options.loop);
}

static void part_told(struct reading *reading, const struct reading_part *part,
                      const struct txn_read_answer *told)
{
    uint32_t place = (uint32_t)(part - reading->parts);
    uint64_t now = now_ms(reading);

    switch (txn_read_take(&reading->core, place, told, now)) {
    case TXN_READ_WAIT:
        break;
    case TXN_READ_AGAIN:
        start_round(reading);
        break;
    case TXN_READ_PAUSE:
        loop_timer_start(&reading->pause,
                         reading->core.resume_ms > now ? reading->core.resume_ms - now : 0);
        break;
    case TXN_READ_ANSWER:
        answer(reading);
        break;
    case TXN_READ_BUSY:
        refuse_busy(reading);
        break;
    }
}

static void on_pause(void *user)
{
    start_round(user);
}

static struct txn_read_answer answer_of(const settled_response *response)
{
    struct txn_read_answer told = {
        .settled = response->profile != NULL,
        .held = response->held,
        .may_hold = response->may_hold,
    };

    if (told.settled)
        told.version = response->profile->version;
    else if (response->holder != NULL)
        told.holder = (struct txn_read_ref){ response->holder->home, response->holder->destination,
                                             response->holder->seq };
    return told;
}

static void part_done(struct caller_call *call, const struct caller_result *result)
{
    struct reading_part *part = CONTAINER_OF(call, struct reading_part, call);
    struct reading *reading = part->reading;
    struct codec_scope scope = { .arena = &reading->round };
    Holdfast__V1__ErrorDetail detail;
    ProtobufCMessage *message;

    part->open = false;
    forward_count(reading->request, call);
    if (result->detail != NULL &&
        result->detail->code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_TXN_CONFLICT) {
        part_told(reading, part, &(struct txn_read_answer){ .settled = false });
        return;
    }
    if (result->detail != NULL) {
        fail(reading, result->detail);
        return;
    }
    if (!request_hold(reading->request, result->body.size, &detail)) {
        fail(reading, &detail);
        return;
    }
    if (proto_decode(&holdfast__internal__v1__read_settled_response__descriptor, result->body,
                     &scope, &message) != ERR_OK) {
        end_all(reading);
        request_fail_text(reading->request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL,
                          "a node's answer cannot be read");
        return;
    }
    const settled_response *response = (const settled_response *)(const void *)message;
    const struct txn_read_answer told = answer_of(response);
    part->profile = response->profile;
    part_told(reading, part, &told);
}

static void ask(struct reading *reading, struct reading_part *part)
{
    const struct txn_read_ask asked = txn_read_ask(&reading->core);
    settled_request *message = &part->message;

    for (uint32_t i = 0; i < asked.pass_count; i++) {
        holdfast__internal__v1__txn_ref__init(&reading->pass[i]);
        reading->pass[i].home = asked.pass[i].home;
        reading->pass[i].destination = asked.pass[i].destination;
        reading->pass[i].seq = asked.pass[i].seq;
        reading->pass_list[i] = &reading->pass[i];
    }
    message->wait = asked.wait;
    message->reader = reading->number;
    message->hold = asked.hold;
    message->urgent = asked.urgent;
    message->release = asked.release;
    message->n_pass = asked.pass_count;
    message->pass = reading->pass_list;
}

static bool start_part(struct reading *reading, struct reading_part *part)
{
    Holdfast__V1__ErrorDetail detail;

    ask(reading, part);
    if (prepare_call(reading, &part->message, &part->call, &detail) != ERR_OK) {
        fail(reading, &detail);
        return false;
    }
    part->call.done = part_done;
    part->open = true;
    caller_start(reading->request->router->options.caller, &part->call);
    return true;
}

/* All of the round before have been answered. */
static void start_round(struct reading *reading)
{
    arena_reset(&reading->round);
    request_release(reading->request);
    for (uint32_t i = 0; i < reading->core.count; i++) {
        if (!start_part(reading, &reading->parts[i]))
            return;
    }
}

static void reading_cancel(struct request *request)
{
    end_all(request->state);
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CANCELED,
                      "the caller has gone");
}

/* ---- the beginning ---- */

static bool check_count(struct request *request, size_t count)
{
    Holdfast__V1__ErrorDetail detail;
    char text[24];

    if (count > 0 && count <= TXN_READ_PLAYERS_MAX)
        return true;
    (void)snprintf(text, sizeof text, "%zu", count);
    refusal_make_field(
        request->arena, &detail,
        &(struct refusal_field){ "player_ids", "1 to 8 players", slice_from_text(text) },
        "a transaction reads too many players, or none");
    request_fail(request, &detail);
    return false;
}

static bool check_each_once(struct request *request, size_t count, char *const *players)
{
    Holdfast__V1__ErrorDetail detail;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(players[i], players[k]) != 0)
                continue;
            refusal_make_field(
                request->arena, &detail,
                &(struct refusal_field){ arena_printf(request->arena, "player_ids[%zu]", i),
                                         "each player once", slice_from_text(players[i]) },
                "a transaction reads a player twice");
            request_fail(request, &detail);
            return false;
        }
    }
    return true;
}

/* Of no meaning beyond this moment: of two reads with one number, one's end ends what the other
 * asked for. */
static uint64_t number_make(const struct request *request)
{
    uint8_t bytes[TRACE_ID_SIZE + sizeof(uint64_t)];

    memcpy(bytes, request->trace.trace_id, TRACE_ID_SIZE);
    store_u64(bytes + TRACE_ID_SIZE, loop_clock_ns());
    return hash_u64((struct slice){ bytes, sizeof bytes }) | 1;
}

void transaction_read_players_handle(struct request *request)
{
    const Holdfast__V1__ReadPlayersRequest *message =
        (const Holdfast__V1__ReadPlayersRequest *)(const void *)request->message;
    struct reading *reading = arena_zalloc(request->arena, sizeof *reading);

    if (!check_count(request, message->n_player_ids) ||
        !check_each_once(request, message->n_player_ids, message->player_ids))
        return;
    reading->request = request;
    reading->number = number_make(request);
    loop_timer_init(&reading->pause, request->router->options.loop, on_pause, reading);
    txn_read_init(&reading->core, (uint32_t)message->n_player_ids, reading->number, now_ms(reading),
                  request->answer_by_ms);
    reading->parts = arena_zalloc(request->arena, reading->core.count * sizeof *reading->parts);
    for (uint32_t i = 0; i < reading->core.count; i++) {
        struct reading_part *part = &reading->parts[i];
        part->reading = reading;
        holdfast__internal__v1__read_settled_request__init(&part->message);
        part->message.player_id = message->player_ids[i];
        part->message.n_include = message->n_include;
        part->message.include = message->include;
    }
    request->state = reading;
    request->cancel = reading_cancel;
    start_round(reading);
}
