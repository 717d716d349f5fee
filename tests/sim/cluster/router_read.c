/* Routers read several players as of one moment: router/core's rounds, as
 * router/rpc/players/transaction_read_players.c drives them. */
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/model/goods.h"

#define TRADING_DEADLINE_MS 1500u

typedef Holdfast__Internal__V1__ReadSettledRequest settled_request;

static void let_go(struct sim *sim, uint32_t router, const struct sim_reading *reading);

void router_read_stop(struct sim *sim, uint32_t router, uint32_t place)
{
    struct sim_reading *reading = &sim->routers[router].readings[place];

    for (uint32_t i = 0; i < reading->core.count; i++) {
        if (reading->calls[i] != NULL)
            router_call_cancel(sim, reading->calls[i]);
        reading->calls[i] = NULL;
    }
    let_go(sim, router, reading);
    reading->used = false;
}

static void end(struct sim *sim, uint32_t router, struct sim_reading *reading,
                Holdfast__V1__ErrorCode code)
{
    const struct sim_call told = { .router = router,
                                   .op = reading->op,
                                   .op_call = reading->op_call };

    router_read_stop(sim, router, (uint32_t)(reading - sim->routers[router].readings));
    router_answer(sim, &told, code, (struct slice){ 0 });
}

/* What a round asks of the owner of one player. */
static struct slice encode(const struct sim_reading *reading, uint32_t place, struct arena *arena)
{
    const struct txn_read_ask ask = txn_read_ask(&reading->core);
    settled_request *request = (settled_request *)arena_message(
        arena, &holdfast__internal__v1__read_settled_request__descriptor);

    request->player_id = arena_printf(arena, "p%u", reading->players[place]);
    request->reader = reading->number;
    request->wait = ask.wait;
    request->hold = ask.hold;
    request->urgent = ask.urgent;
    request->release = ask.release;
    request->n_pass = ask.pass_count;
    request->pass =
        arena_messages(arena, &holdfast__internal__v1__txn_ref__descriptor, ask.pass_count);
    for (uint32_t i = 0; i < ask.pass_count; i++) {
        request->pass[i]->home = ask.pass[i].home;
        request->pass[i]->destination = ask.pass[i].destination;
        request->pass[i]->seq = ask.pass[i].seq;
    }
    return arena_pack(arena, &request->base);
}

static struct sim_call wanted_of(const struct sim *sim, uint32_t router,
                                 const struct sim_reading *reading, uint32_t part)
{
    return (struct sim_call){
        .router = router,
        .method = METHOD_READ_SETTLED,
        .op = reading->op,
        .op_call = reading->op_call,
        .reading = (uint32_t)(reading - sim->routers[router].readings) + 1,
        .part = part,
    };
}

/* A part may fail, and with it the whole, before the others have begun. */
static void start_round(struct sim *sim, uint32_t router, struct sim_reading *reading)
{
    struct arena arena = { 0 };

    for (uint32_t i = 0; i < reading->core.count && reading->used; i++) {
        struct sim_call wanted = wanted_of(sim, router, reading, i);
        struct sim_call *call =
            router_call(sim, &wanted, encode(reading, i, &arena), reading->deadline_ms);
        if (call == NULL)
            end(sim, router, reading, CODE(UNAVAILABLE));
        else if (reading->used)
            reading->calls[i] = call;
    }
    arena_deinit(&arena);
}

/* No caller waits for what comes of it. */
static void let_go(struct sim *sim, uint32_t router, const struct sim_reading *reading)
{
    struct arena arena = { 0 };

    for (uint32_t i = 0; i < reading->core.count && reading->core.release; i++) {
        settled_request request = HOLDFAST__INTERNAL__V1__READ_SETTLED_REQUEST__INIT;
        struct sim_call wanted = wanted_of(sim, router, reading, i);
        request.player_id = arena_printf(&arena, "p%u", reading->players[i]);
        request.reader = reading->number;
        request.release = true;
        wanted.reading = 0;
        struct sim_call *call =
            router_call(sim, &wanted, arena_pack(&arena, &request.base), reading->deadline_ms);
        if (call != NULL && call->used)
            router_call_drop(call);
    }
    arena_deinit(&arena);
}

static struct txn_read_answer answer_of(struct slice body)
{
    Holdfast__Internal__V1__ReadSettledResponse *response =
        holdfast__internal__v1__read_settled_response__unpack(NULL, body.size, body.data);

    CHECK(response != NULL && (response->profile == NULL) == (response->holder != NULL));
    struct txn_read_answer told = { .settled = response->profile != NULL,
                                    .held = response->held,
                                    .may_hold = response->may_hold };
    if (told.settled)
        told.version = response->profile->version;
    else
        told.holder = (struct txn_read_ref){ response->holder->home, response->holder->destination,
                                             response->holder->seq };
    holdfast__internal__v1__read_settled_response__free_unpacked(response, NULL);
    return told;
}

static void next_round(struct sim *sim, uint32_t router, struct sim_reading *reading)
{
    static const enum txn_read_phase holding[] = { TXN_READ_REGISTER, TXN_READ_DRAIN,
                                                   TXN_READ_SETTLE };

    sim->counts.txn_reads_again += reading->core.total > 2;
    sim->counts.txn_reads_registered += reading->core.phase == holding[0];
    sim->counts.txn_reads_drained += reading->core.phase == holding[1];
    sim->counts.txn_reads_settled += reading->core.phase == holding[2];
    start_round(sim, router, reading);
}

/* Before its last answer is taken. */
static void say_round(const struct sim *sim, uint32_t router, const struct sim_reading *reading,
                      const struct txn_read_answer *last)
{
    static const char *const phases[] = { "looks", "registers", "drains", "settles" };
    const struct txn_read *core = &reading->core;

    sim_say(sim, "router %u read %llu %s: round %u, %s%s%s%s", router,
            (unsigned long long)reading->number, phases[core->phase], core->total,
            core->dirty || !last->settled ? "someone is held, " : "",
            core->changed ? "someone changed, " : "",
            core->refused || !last->held ? "not waited for, " : "",
            core->may_hold && last->may_hold ? "may hold" : "may not hold");
}

static void told(struct sim *sim, uint32_t router, struct sim_reading *reading, uint32_t part,
                 const struct txn_read_answer *answer)
{
    if (reading->core.open == 1)
        say_round(sim, router, reading, answer);
    switch (txn_read_take(&reading->core, part, answer, sim->now_ms)) {
    case TXN_READ_WAIT:
        break;
    case TXN_READ_AGAIN:
        next_round(sim, router, reading);
        break;
    case TXN_READ_PAUSE:
        sim->counts.txn_reads_paused++;
        sim_later(
            sim, reading->core.resume_ms - sim->now_ms,
            &(struct sim_event){ .kind = EV_READ_AGAIN,
                                 .node = PROC_ROUTER + router,
                                 .from = reading->number,
                                 .number = (uint64_t)(reading - sim->routers[router].readings) });
        break;
    case TXN_READ_ANSWER:
        sim->counts.txn_reads++;
        sim->counts.trading_reads += reading->trading;
        read_check_told(sim, reading);
        end(sim, router, reading, 0);
        break;
    case TXN_READ_BUSY:
        sim->counts.txn_reads_busy++;
        sim->counts.trading_busy += reading->trading;
        end(sim, router, reading, CODE(TXN_CONFLICT));
        break;
    }
}

void router_read_resume(struct sim *sim, uint32_t router, const struct sim_event *event)
{
    struct sim_reading *reading = &sim->routers[router].readings[event->number];

    if (reading->used && reading->number == event->from)
        next_round(sim, router, reading);
}

void router_read_take(struct sim *sim, const struct sim_call *call, Holdfast__V1__ErrorCode code,
                      struct slice body)
{
    struct sim_reading *reading = &sim->routers[call->router].readings[call->reading - 1];
    struct txn_read_answer answer = { .settled = false };

    CHECK(reading->used);
    reading->calls[call->part] = NULL;
    if (code == 0)
        answer = answer_of(body);
    if (code == 0 || code == CODE(TXN_CONFLICT))
        told(sim, call->router, reading, call->part, &answer);
    else
        end(sim, call->router, reading, code);
}

void router_read(struct sim *sim, uint32_t router, const struct sim_event *event)
{
    struct sim_router *r = &sim->routers[router];
    Holdfast__V1__ReadPlayersRequest *request =
        holdfast__v1__read_players_request__unpack(NULL, event->bytes.size, event->bytes.data);
    uint32_t place = 0;

    CHECK(request != NULL && request->n_player_ids <= SIM_READ_PLAYERS);
    while (place < ROUTER_READINGS_MAX && r->readings[place].used)
        place++;
    if (place == ROUTER_READINGS_MAX) { /* The game server's own patience ends it. */
        holdfast__v1__read_players_request__free_unpacked(request, NULL);
        return;
    }
    struct sim_reading *reading = &r->readings[place];
    *reading = (struct sim_reading){
        .used = true,
        .op = (uint32_t)event->number,
        .op_call = event->from,
        .number = ++sim->readings,
        .trading = sim->trading,
        .deadline_ms = sim->now_ms + (sim->trading ? TRADING_DEADLINE_MS : sim->deadline_ms)
    };
    txn_read_init(&reading->core, (uint32_t)request->n_player_ids, sim->readings, sim->now_ms,
                  reading->deadline_ms);
    for (uint32_t i = 0; i < reading->core.count; i++) {
        uint32_t player = (uint32_t)(request->player_ids[i][1] - '0');
        reading->players[i] = player;
        reading->must_see[i] = oracle_acknowledged(sim, sim->player_shard[player]);
    }
    holdfast__v1__read_players_request__free_unpacked(request, NULL);
    start_round(sim, router, reading);
}
