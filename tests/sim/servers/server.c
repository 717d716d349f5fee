/* Game servers: what they do, and what they make of answers. They retry, raise attempts, seal,
 * steal, and believe what they were told last. */
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/events/consumer.h"
#include "tests/sim/favorites/metadata.h"
#include "tests/sim/events/event.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/model/goods.h"
#include "tests/sim/favorites/rate.h"
#include "tests/sim/servers/request.h"
#include "tests/sim/servers/workload.h"

#define RENEW_MS   600u
#define CONTAIN_MS 2000u
#define READS      15u /* Of a hundred wishes about one player. */

/* ---- answers ---- */
static void take_ok(struct sim *sim, struct sim_op *op, struct slice body)
{
    const struct workload_row *row = workload_get(sim, op->method);

    if (op->told_never)
        sim_fail(sim, sim->player_shard[op->player % SIM_PLAYERS_MAX],
                 "op %s was answered as aborted, now as done", op->id);
    op->told_done = op->id[0] != '\0';
    if (op->id[0] != '\0' && !sim->quiet && sim_chance(sim, 30))
        op_call_later(sim, op, sim_between(sim, 1, 3000));
    if (row->taken != NULL)
        row->taken(sim, op, body);
}

/* What became of it is unknown: repeat it, seal it, or walk away. */
static void take_unknown(struct sim *sim, struct sim_op *op)
{
    uint32_t target = (uint32_t)(op - sim->ops);

    if (op->id[0] == '\0' || op->calls > 6)
        return;
    if (!op->hurried && (sim->healing || sim_chance(sim, 600))) {
        op_call_later(sim, op, sim_between(sim, 1, 300));
        return;
    }
    if (op->hurried || sim_chance(sim, 700)) {
        struct sim_op *resolve = op_new(sim, op->server, op->player, METHOD_RESOLVE_OPERATION);
        resolve->target = target;
        resolve->seal = true;
        op_call(sim, resolve);
    }
}

static void give_up(struct sim *sim, struct sim_op *op)
{
    bool away = server_walks_away(sim, op);

    op->call = 0;
    if (!away)
        take_unknown(sim, op);
}

static void take_refused(struct sim *sim, struct sim_op *op, uint32_t code)
{
    switch (code) {
    case CODE(OPERATION_ABORTED):
        if (op->told_done)
            sim_fail(sim, sim->player_shard[op->player], "op %s was done, is now aborted", op->id);
        op->told_never = true;
        sim->counts.aborted_answers++;
        return;
    case CODE(OUTCOME_UNKNOWN):
        take_unknown(sim, op);
        return;
    case CODE(TXN_CONFLICT): /* Nothing is recorded: the same attempt again. */
        if (!sim->quiet && op->calls < 8 && sim_chance(sim, 700))
            op_call_later(sim, op, sim_between(sim, 1, 200));
        return;
    case CODE(THROTTLED):
    case CODE(UNAVAILABLE):
    case CODE(DEADLINE_EXCEEDED):
        sim->counts.refused_full += code == CODE(THROTTLED);
        op->told_nothing = true;
        if (code == CODE(THROTTLED) && rate_runs(sim) && !sim->quiet && op->calls < 4 &&
            sim_chance(sim, 500)) {
            op_call_later(sim, op, sim_between(sim, 1, 5000));
            return;
        }
        if (op->calls > 1 && sim_chance(sim, 500))
            take_unknown(sim, op);
        return;
    case CODE(SESSION_LOST):
        sim->counts.refused_session_lost++;
        if (strcmp(sim->servers[op->server].held[op->player].token, op->token) == 0)
            sim->servers[op->server].held[op->player].held = false;
        break;
    case CODE(INSUFFICIENT_FUNDS):
        sim->counts.refused_funds++;
        break;
    case CODE(SESSION_LOCKED):
        sim->counts.refused_locked++;
        break;
    default:
        return;
    }
    if (!sim->quiet && op->calls < 5 && sim_chance(sim, 350)) {
        op->attempt++;
        sim->counts.attempts_raised++;
        op_call_later(sim, op, sim_between(sim, 1, 800));
    }
}

/* op->player is a shard. */
static bool op_is_of_shard(const struct sim_op *op)
{
    enum method_route route = method_find(op->method)->route;

    return route == METHOD_SHARD || route == METHOD_SHARD_WRITE || route == METHOD_GATHER;
}

static void say_answer(const struct sim *sim, const struct sim_op *op, uint32_t code)
{
    const char *method = strchr(method_find(op->method)->name, '/') + 1;
    const char *answer = "ok";

    if (!sim->verbose)
        return;
    if (code != 0)
        answer =
            protobuf_c_enum_descriptor_get_value(&holdfast__v1__error_code__descriptor, (int)code)
                ->name +
            strlen("ERROR_CODE_");
    if (op_is_of_shard(op))
        sim_say(sim, "server %u s%u %s: %s", op->server, op->player, method, answer);
    else
        sim_say(sim, "server %u s%u %s %s of p%u is told: %s", op->server,
                sim->player_shard[op->player], method, op->id, op->player, answer);
}

static uint32_t shard_of_op(const struct sim *sim, const struct sim_op *op)
{
    return op_is_of_shard(op) ? op->player : sim->player_shard[op->player];
}

static void on_answer(struct sim *sim, const struct sim_event *event)
{
    struct sim_op *op = &sim->ops[event->number];
    struct slice body = { event->bytes.data + 1, event->bytes.size - 1 };
    uint32_t code = event->bytes.data[0];

    if (op->call != event->from)
        return;
    op->call = 0;
    sim->told_shard = shard_of_op(sim, op);
    say_answer(sim, op, code);
    if (code == 0)
        take_ok(sim, op, body);
    else
        take_refused(sim, op, code);
}

/* ---- what a server does of itself ---- */
static struct sim_op *recent_op(struct sim *sim, uint32_t server)
{
    for (uint32_t i = 0; i < 8 && sim->op_count > 0; i++) {
        uint64_t back = sim_between(sim, 1, sim->op_count < 60 ? sim->op_count : 60);
        struct sim_op *op = &sim->ops[sim->op_count - back];
        if (op->id[0] != '\0' && op->server == server)
            return op;
    }
    return NULL;
}

static void ask_about(struct sim *sim, uint32_t server)
{
    const struct sim_op *recent = recent_op(sim, server);

    if (recent == NULL)
        return;
    uint32_t target = (uint32_t)(recent - sim->ops);
    struct sim_op *op =
        op_new(sim, server, recent->player,
               sim_chance(sim, 500) ? METHOD_GET_OPERATION : METHOD_RESOLVE_OPERATION);
    op->target = target;
    op->seal = sim_chance(sim, 500);
    op_call(sim, op);
}

/* The same op_id for something else: a mistake of the caller that must be refused. */
static void misuse_id(struct sim *sim, uint32_t server)
{
    const struct sim_op *recent = recent_op(sim, server);

    if (recent == NULL || recent->method != METHOD_GRANT)
        return;
    struct sim_op copy = *recent;
    sim->ops[recent - sim->ops].shared_id = true;
    struct sim_op *op = op_new(sim, server, copy.player, METHOD_GRANT);
    if (op->twist % 2 == 0)
        op->method = METHOD_DELIVER_TO_PLAYER;
    op->shared_id = true;
    memcpy(op->id, copy.id, sizeof op->id);
    op->authority = BY_SYSTEM;
    op->amount = copy.amount + 2;
    op_call(sim, op);
}

static void start(struct sim *sim, uint32_t server, uint32_t player)
{
    struct sim_op *op = op_new(sim, server, player, METHOD_START_SESSION);

    op->mode = (uint32_t)sim_between(sim, 1, 3);
    op_call(sim, op);
}

static void write_player(struct sim *sim, uint32_t server, uint32_t player)
{
    const struct held *held = &sim->servers[server].held[player];
    struct sim_op *op = server_wish(sim, server, player);

    if (op == NULL)
        return;
    op->authority = held->held ? BY_SESSION : sim_chance(sim, 500) ? BY_SYSTEM : BY_UNHELD;
    if (sim_chance(sim, 50))
        op->authority = (enum sim_authority)sim_between(sim, BY_SYSTEM, BY_UNHELD);
    memcpy(op->token, held->token, sizeof op->token);
    bool admitted = workload_get(sim, op->method)->rule.system_admitted;
    if (op->authority == BY_SYSTEM && !admitted && !sim_chance(sim, 20))
        op->authority = BY_UNHELD; /* The system may only add; a few try more. */
    op_call(sim, op);
}

static void read_player(struct sim *sim, uint32_t server, uint32_t player)
{
    struct sim_op *op = op_new(sim, server, player,
                               workload_face(sim, WISH_READ, op_twist(sim->seed, sim->op_count)));
    const struct sim_op *target = &sim->ops[sim->op_count - 1 - op->twist / 7 % sim->op_count];

    /* What a list may be filtered by. */
    if (target->player == player && target->id[0] != '\0')
        op->target = (uint32_t)(target - sim->ops);
    if (sim->oracle->book.item_count > 0)
        memcpy(op->uid, sim->oracle->book.items[op->twist / 9 % sim->oracle->book.item_count].uid,
               sizeof op->uid);
    op_call(sim, op);
}

static void act_on_player(struct sim *sim, uint32_t server, uint32_t player)
{
    const struct held *held = &sim->servers[server].held[player];
    uint64_t dice = sim_between(sim, 0, 99);

    if (dice < READS) {
        read_player(sim, server, player);
    } else if (!held->held && dice < 55) {
        start(sim, server, player);
    } else if (held->held && dice < 25) {
        struct sim_op *op = op_new(sim, server, player, METHOD_END_SESSION);
        memcpy(op->token, held->token, sizeof op->token);
        op_call(sim, op);
    } else if (held->held && dice < 28) {
        start(sim, server, player);
    } else {
        write_player(sim, server, player);
    }
}

/* As a coordinator would whose audit found something: to the owner of the shard, wherever it is. */
static void contain(struct sim *sim, uint32_t player)
{
    Holdfast__Internal__V1__ContainPlayerRequest request =
        HOLDFAST__INTERNAL__V1__CONTAIN_PLAYER_REQUEST__INIT;
    char name[16];

    request_player_name(player, name);
    request.shard = sim->player_shard[player];
    request.player_id = name;
    request.reason = text_lend("a look at it");
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_event event = { .kind = EV_CALL, .node = PROC_NODE + i };
        buf_put_u8(&event.bytes, 0); /* No one waits for the answer. */
        buf_put_u8(&event.bytes, 1);
        buf_put_u64(&event.bytes, 0);
        buf_put_u32(&event.bytes, METHOD_CONTAIN_PLAYER);
        buf_put_u32(&event.bytes, CONTAIN_MS);
        request_pack(&request.base, &event.bytes);
        sim_later(sim, 1 + i, &event);
    }
}

/* Mostly who is contained is released soon; some are released who are not. */
static void review(struct sim *sim, uint32_t server)
{
    uint32_t die = op_twist(sim->seed, ~(uint64_t)sim->op_count);
    uint32_t player = die / 256 % sim->player_count;

    if (die % sim->reviews != 0)
        return;
    if (die / 4096 % 4 > 0)
        contain(sim, player);
    for (uint32_t i = 0; i < 1 + die / 16384 % 2; i++) {
        struct sim_op *op = op_new(sim, server, player, METHOD_RELEASE_QUARANTINE);
        op->authority = BY_SYSTEM;
        op_call_later(sim, op, 200 + (die / 32768 + i * 997) % 2500);
    }
}

static void act(struct sim *sim, uint32_t server)
{
    uint64_t dice = sim_between(sim, 0, 999);

    if (!sim->servers[server].registered || sim->quiet)
        return;
    review(sim, server);
    server_queue_up(sim, server);
    if (dice < 50)
        ask_about(sim, server);
    else if (dice < 60)
        misuse_id(sim, server);
    else if (dice < 80)
        server_trace(sim, server);
    else if (dice < 130)
        server_transact(sim, server);
    else if (dice < 180)
        server_webhook(sim, server);
    else if (dice < 380)
        server_move_goods(sim, server, (uint32_t)sim_between(sim, 0, sim->player_count - 1));
    else if (dice < 500)
        server_reserve(sim, server);
    else
        act_on_player(sim, server, (uint32_t)sim_between(sim, 0, sim->player_count - 1));
}

static void on_act(struct sim *sim, uint32_t server, const struct sim_event *event)
{
    if (event->number > 0) {
        struct sim_op *op = &sim->ops[event->number - 1];
        bool planned = op->calls == 0 && op->authority != BY_SYSTEM; /* server_reservation.c. */
        if (sim->quiet && (planned || op->method == METHOD_RELEASE_QUARANTINE))
            return;
        if (planned)
            server_sign(sim, op);
        op_call(sim, op);
        return;
    }
    act(sim, server);
    favorite_act(sim, server);
    event_act(sim, server);
    consumer_act(sim, server);
    metadata_act(sim, server);
    server_later(sim, server, sim_between(sim, 1, sim->act_ms),
                 (struct sim_event){ .kind = EV_ACT });
}

static void on_renew(struct sim *sim, uint32_t place)
{
    struct sim_server *server = &sim->servers[place];

    server_renew(sim, place);
    for (uint32_t shard = 0; shard < sim->shard_count && server->registered; shard++) {
        bool any = false;
        for (uint32_t i = 0; i < sim->player_count; i++)
            any |= server->held[i].held && sim->player_shard[i] == shard;
        if (any)
            op_call(sim, op_new(sim, place, shard, METHOD_RENEW_TOKENS));
    }
    server_later(sim, place, RENEW_MS, (struct sim_event){ .kind = EV_RENEW });
}

void server_event(struct sim *sim, struct sim_event *event)
{
    uint32_t place = (uint32_t)event->node - PROC_SERVER;

    if (event->kind == EV_RESTART) {
        server_start(sim, place);
        return;
    }
    if (!sim->servers[place].up)
        return;
    switch (event->kind) {
    case EV_ANSWER:
        on_answer(sim, event);
        break;
    case EV_GIVE_UP:
        if (sim->ops[event->number].call == event->from)
            give_up(sim, &sim->ops[event->number]);
        break;
    case EV_ACT:
        on_act(sim, place, event);
        break;
    case EV_RENEW:
        on_renew(sim, place);
        break;
    default:
        CHECK(false); /* an event for a game server */
    }
}

void server_start(struct sim *sim, uint32_t place)
{
    struct sim_server *server = &sim->servers[place];

    server->up = true;
    server->registered = false;
    server->attaching = false;
    memset(server->held, 0, sizeof server->held);
    server_later(sim, place, sim_between(sim, 1, 100), (struct sim_event){ .kind = EV_RENEW });
    server_later(sim, place, sim_between(sim, 1, 200), (struct sim_event){ .kind = EV_ACT });
}
