#include <stdio.h>
#include <string.h>

#include "holdfast/v1/transaction.pb-c.h"
#include "router/core/refusal.h"
#include "router/core/txn_read.h"
#include "router/rpc/forward.h"
#include "router/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

#define RETRY_AFTER_MS 20u

/* Reads every player while no transaction holds it, as often as router/core/txn_read.h says. */
struct reading {
    struct request *request;
    struct reading_part *parts;
    struct txn_read core;
};

struct reading_part {
    struct caller_call call;
    struct reading *reading;
    Holdfast__V1__GetProfileRequest message;
    Holdfast__V1__Profile *profile; /* Of the last round. */
    bool open;
};

static void cancel_open(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->core.count; i++) {
        if (reading->parts[i].open)
            caller_cancel(&reading->parts[i].call);
        reading->parts[i].open = false;
    }
}

static void fail(struct reading *reading, const Holdfast__V1__ErrorDetail *detail)
{
    cancel_open(reading);
    request_fail(reading->request, detail);
}

static void answer(struct reading *reading)
{
    Holdfast__V1__TransactionServiceReadResponse response =
        HOLDFAST__V1__TRANSACTION_SERVICE_READ_RESPONSE__INIT;
    Holdfast__V1__Profile *profiles[TXN_READ_PLAYERS_MAX];

    for (uint32_t i = 0; i < reading->core.count; i++)
        profiles[i] = reading->parts[i].profile;
    response.n_profiles = reading->core.count;
    response.profiles = profiles;
    request_reply(reading->request, &response.base);
}

static void refuse_busy(struct reading *reading)
{
    Holdfast__V1__ErrorDetail detail;

    refusal_make(
        reading->request->arena, &detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_TXN_CONFLICT,
        "the players changed while they were read, %u times in a row", TXN_READ_ROUNDS_MAX);
    detail.retry_after_ms = RETRY_AFTER_MS;
    request_fail(reading->request, &detail);
}

static void start_round(struct reading *reading);

static void profile_read(struct reading *reading, const struct reading_part *part)
{
    uint32_t place = (uint32_t)(part - reading->parts);

    switch (txn_read_take(&reading->core, place, part->profile->version)) {
    case TXN_READ_WAIT:
        break;
    case TXN_READ_AGAIN:
        start_round(reading);
        break;
    case TXN_READ_ANSWER:
        answer(reading);
        break;
    case TXN_READ_BUSY:
        refuse_busy(reading);
        break;
    }
}

static void part_done(struct caller_call *call, const struct caller_result *result)
{
    struct reading_part *part = CONTAINER_OF(call, struct reading_part, call);
    struct reading *reading = part->reading;
    struct codec_scope scope = { .arena = reading->request->arena };
    ProtobufCMessage *message;

    part->open = false;
    forward_count(reading->request, call);
    if (result->detail != NULL) {
        fail(reading, result->detail);
        return;
    }
    /* The node's bytes are borrowed; what is decoded points into them. */
    struct slice body = arena_copy(reading->request->arena, result->body);
    if (proto_decode(&holdfast__v1__get_profile_response__descriptor, body, &scope, &message) !=
            ERR_OK ||
        ((Holdfast__V1__GetProfileResponse *)(void *)message)->profile == NULL) {
        cancel_open(reading);
        request_fail_text(reading->request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL,
                          "a node's answer cannot be read");
        return;
    }
    part->profile = ((Holdfast__V1__GetProfileResponse *)(void *)message)->profile;
    profile_read(reading, part);
}

static bool start_part(struct reading *reading, struct reading_part *part)
{
    const struct forward_message forward = {
        .method = method_find(reading->request->method->element),
        .message = &part->message.base,
    };
    Holdfast__V1__ErrorDetail detail;

    part->call = (struct caller_call){ .done = part_done };
    if (forward_prepare(reading->request, &forward, &part->call, &detail) != ERR_OK) {
        fail(reading, &detail);
        return false;
    }
    part->call.done = part_done;
    part->open = true;
    caller_start(reading->request->router->options.caller, &part->call);
    return true;
}

static void start_round(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->core.count; i++) {
        if (!start_part(reading, &reading->parts[i]))
            return;
    }
}

static void reading_cancel(struct request *request)
{
    cancel_open(request->state);
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CANCELED,
                      "the caller has gone");
}

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

void transaction_read_handle(struct request *request)
{
    const Holdfast__V1__TransactionServiceReadRequest *message =
        (const Holdfast__V1__TransactionServiceReadRequest *)(const void *)request->message;
    struct reading *reading = arena_zalloc(request->arena, sizeof *reading);

    if (!check_count(request, message->n_player_ids))
        return;
    reading->request = request;
    txn_read_init(&reading->core, (uint32_t)message->n_player_ids);
    reading->parts = arena_zalloc(request->arena, reading->core.count * sizeof *reading->parts);
    for (uint32_t i = 0; i < reading->core.count; i++) {
        struct reading_part *part = &reading->parts[i];
        part->reading = reading;
        holdfast__v1__get_profile_request__init(&part->message);
        part->message.player_id = message->player_ids[i];
        part->message.n_sections = message->n_sections;
        part->message.sections = message->sections;
        part->message.settled = true;
    }
    request->state = reading;
    request->cancel = reading_cancel;
    start_round(reading);
}
