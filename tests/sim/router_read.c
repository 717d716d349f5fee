/* Routers read several players as of one moment: router/core's rounds, as
 * router/rpc/transaction_read.c drives them. */
#include <string.h>

#include "holdfast/v1/transaction.pb-c.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/goods.h"

#define CODE(name) HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name

static void end(struct sim *sim, uint32_t router, struct sim_reading *reading,
                Holdfast__V1__ErrorCode code)
{
    const struct sim_call told = { .router = router,
                                   .op = reading->op,
                                   .op_call = reading->op_call };

    for (uint32_t i = 0; i < reading->core.count; i++) {
        if (reading->calls[i] != NULL)
            router_call_drop(reading->calls[i]);
        reading->calls[i] = NULL;
    }
    reading->used = false;
    router_answer(sim, &told, code, (struct slice){ 0 });
}

/* A part may fail, and with it the whole, before the others have begun. */
static void start_round(struct sim *sim, uint32_t router, struct sim_reading *reading)
{
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;
    struct sim_call wanted = {
        .router = router,
        .method = METHOD_GET_PROFILE,
        .op = reading->op,
        .op_call = reading->op_call,
        .reading = (uint32_t)(reading - sim->routers[router].readings) + 1,
    };
    uint8_t body[64];

    request.settled = true;
    for (uint32_t i = 0; i < reading->core.count && reading->used; i++) {
        char name[] = { 'p', (char)('0' + reading->players[i]), '\0' };
        request.player_id = name;
        CHECK(protobuf_c_message_get_packed_size(&request.base) <= sizeof body);
        size_t size = protobuf_c_message_pack(&request.base, body);
        wanted.part = i;
        struct sim_call *call =
            router_call(sim, &wanted, (struct slice){ body, size }, reading->deadline_ms);
        if (call == NULL)
            end(sim, router, reading, CODE(UNAVAILABLE));
        else if (reading->used)
            reading->calls[i] = call;
    }
}

static uint64_t version_of(struct slice body)
{
    Holdfast__V1__GetProfileResponse *response =
        holdfast__v1__get_profile_response__unpack(NULL, body.size, body.data);

    CHECK(response != NULL && response->profile != NULL);
    uint64_t version = response->profile->version;
    holdfast__v1__get_profile_response__free_unpacked(response, NULL);
    return version;
}

void router_read_take(struct sim *sim, const struct sim_call *call, Holdfast__V1__ErrorCode code,
                      struct slice body)
{
    struct sim_reading *reading = &sim->routers[call->router].readings[call->reading - 1];

    CHECK(reading->used);
    reading->calls[call->part] = NULL;
    if (code != 0) {
        sim->counts.txn_reads_held += code == CODE(TXN_CONFLICT);
        end(sim, call->router, reading, code);
        return;
    }
    switch (txn_read_take(&reading->core, call->part, version_of(body))) {
    case TXN_READ_WAIT:
        break;
    case TXN_READ_AGAIN:
        sim->counts.txn_reads_again += reading->core.round > 1;
        start_round(sim, call->router, reading);
        break;
    case TXN_READ_ANSWER:
        sim->counts.txn_reads++;
        read_check_told(sim, reading);
        end(sim, call->router, reading, 0);
        break;
    case TXN_READ_BUSY:
        end(sim, call->router, reading, CODE(TXN_CONFLICT));
        break;
    }
}

void router_read(struct sim *sim, uint32_t router, const struct sim_event *event)
{
    struct sim_router *r = &sim->routers[router];
    Holdfast__V1__TransactionServiceReadRequest *request =
        holdfast__v1__transaction_service_read_request__unpack(NULL, event->bytes.size,
                                                               event->bytes.data);
    uint32_t place = 0;

    CHECK(request != NULL && request->n_player_ids <= SIM_READ_PLAYERS);
    while (place < ROUTER_READINGS_MAX && r->readings[place].used)
        place++;
    if (place == ROUTER_READINGS_MAX) { /* The game server's own patience ends it. */
        holdfast__v1__transaction_service_read_request__free_unpacked(request, NULL);
        return;
    }
    struct sim_reading *reading = &r->readings[place];
    *reading = (struct sim_reading){ .used = true,
                                     .op = (uint32_t)event->number,
                                     .op_call = event->from,
                                     .deadline_ms = sim->now_ms + sim->deadline_ms };
    txn_read_init(&reading->core, (uint32_t)request->n_player_ids);
    for (uint32_t i = 0; i < reading->core.count; i++) {
        uint32_t player = (uint32_t)(request->player_ids[i][1] - '0');
        reading->players[i] = player;
        reading->must_see[i] = oracle_acknowledged(sim, sim->player_shard[player]);
    }
    holdfast__v1__transaction_service_read_request__free_unpacked(request, NULL);
    start_round(sim, router, reading);
}
