/* Routers: one call of a game server at a time over router/core's retry, as
 * router/rpc/call/caller.c drives it. */
#include <string.h>

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "node/core/shard/request_shard.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "tests/sim/sim.h"

#define LATE_MS_MAX                       9000u
#define CALL_NUMBER(r, place, generation) ((uint64_t)(generation) << 16 | (r) << 12 | (place))

static uint64_t number_of(const struct sim *sim, const struct sim_call *call)
{
    uint32_t place = (uint32_t)(call - sim->routers[call->router].calls);

    return CALL_NUMBER(call->router, place, call->generation);
}

static struct sim_call *find_call(struct sim *sim, uint64_t number)
{
    uint32_t router = (uint32_t)(number >> 12) & 0xf;
    struct sim_call *call = &sim->routers[router].calls[number & 0xfff];

    return call->used && call->generation == (uint32_t)(number >> 16) ? call : NULL;
}

uint32_t routers_open(const struct sim *sim)
{
    uint32_t open = 0;

    for (uint32_t r = 0; r < sim->router_count; r++) {
        for (uint32_t i = 0; i < ROUTER_CALLS_MAX; i++)
            open += sim->routers[r].calls[i].used;
        for (uint32_t i = 0; i < ROUTER_READINGS_MAX; i++)
            open += sim->routers[r].readings[i].used;
    }
    return open;
}

/* ---- the answer ---- */

void router_answer(struct sim *sim, const struct sim_call *call, Holdfast__V1__ErrorCode code,
                   struct slice body)
{
    const struct sim_op *op = &sim->ops[call->op];
    struct sim_event event = { .kind = EV_ANSWER,
                               .node = PROC_SERVER + op->server,
                               .life = op->server_life,
                               .number = call->op,
                               .from = call->op_call,
                               .bytes = sim_queue_bytes(&sim->queue) };

    buf_put_u8(&event.bytes, (uint8_t)code);
    buf_append(&event.bytes, body.data, body.size);
    if (!sim->healing && sim_chance(sim, sim->answer_lost)) {
        sim->counts.answers_lost++;
        buf_deinit(&event.bytes);
    } else {
        sim_later(sim, sim_between(sim, 0, 4), &event);
    }
}

void router_call_drop(struct sim_call *call)
{
    buf_clear(&call->body);
    call->used = false;
    call->send = 0;
}

/* What is on its way to `node` is of no use any more. */
static void tell_gone(struct sim *sim, const struct sim_call *call, uint64_t node)
{
    struct sim_event gone = {
        .kind = EV_CANCEL, .node = node, .from = call->send, .number = number_of(sim, call)
    };

    if (call->send != 0 && sim->hurry > 0)
        (void)net_send(sim, PROC_ROUTER + call->router, &gone);
}

void router_call_cancel(struct sim *sim, struct sim_call *call)
{
    tell_gone(sim, call, call->retry.target.owner);
    router_call_drop(call);
}

void router_caller_gone(struct sim *sim, const struct sim_op *op)
{
    uint32_t number = (uint32_t)(op - sim->ops);

    for (uint32_t place = 0; place < sim->router_count * ROUTER_CALLS_MAX; place++) {
        uint32_t router = place / ROUTER_CALLS_MAX;
        struct sim_call *call = &sim->routers[router].calls[place % ROUTER_CALLS_MAX];
        if (!call->used || call->op != number || call->op_call != op->call)
            continue;
        if (call->reading > 0)
            router_read_stop(sim, router, call->reading - 1);
        else
            router_call_cancel(sim, call);
        return;
    }
}

/* code 0: a response. */
static void answer(struct sim *sim, struct sim_call *call, Holdfast__V1__ErrorCode code,
                   struct slice body)
{
    sim->counts.retries += call->retry.sent > 1;
    router_call_drop(call);
    if (call->reading > 0)
        router_read_take(sim, call, code, body);
    else
        router_answer(sim, call, code, body);
}

/* ---- attempts ---- */
static void failed_later(struct sim *sim, const struct sim_call *call, uint64_t delay_ms)
{
    sim_later(sim, delay_ms,
              &(struct sim_event){ .kind = EV_CALL_FAILED,
                                   .node = PROC_ROUTER + call->router,
                                   .from = call->send,
                                   .number = number_of(sim, call) });
}

static void packet(struct sim *sim, const struct sim_call *call, bool late, struct sim_event *event)
{
    *event = (struct sim_event){ .kind = EV_CALL,
                                 .node = call->retry.target.owner,
                                 .from = call->send,
                                 .number = number_of(sim, call),
                                 .bytes = sim_queue_bytes(&sim->queue) };
    buf_put_u8(&event->bytes, late ? 0 : (uint8_t)(PROC_ROUTER + call->router));
    buf_put_u8(&event->bytes, late);
    buf_put_u64(&event->bytes, 0);
    buf_put_u32(&event->bytes, call->method);
    oracle_packet(sim, &sim->ops[call->op]);
    buf_put_u32(&event->bytes, (uint32_t)(call->retry.deadline_ms - sim->now_ms) + late * 3000u);
    buf_append(&event->bytes, call->body.data, call->body.size);
}

/* A copy that was stuck somewhere comes out long after, wherever the shard is then. */
static void packet_late(struct sim *sim, const struct sim_call *call)
{
    struct sim_event event;

    packet(sim, call, true, &event);
    event.node = PROC_NODE + sim_between(sim, 0, sim->node_count - 1);
    sim->ops[call->op].packet_late = true;
    sim->counts.packets_late++;
    sim_later(sim, sim_between(sim, 100, LATE_MS_MAX), &event);
}

static err send_call(struct sim *sim, struct sim_call *call)
{
    uint32_t proc = PROC_ROUTER + call->router;
    uint64_t owner = call->retry.target.owner;
    struct sim_event event;

    CHECK(owner >= 1 && owner <= sim->node_count);
    /* The link is known to be closed, mostly. */
    if (!sim->nodes[owner - 1].up && sim_chance(sim, 700))
        return ERR_UNAVAILABLE;
    if (sim->cut[proc][owner] && sim_chance(sim, 300))
        return ERR_UNAVAILABLE;
    call->send = ++sim->sends;
    if (!sim->healing && sim_chance(sim, call->retry.mutation ? sim->late : 6 * sim->late))
        packet_late(sim, call);
    packet(sim, call, false, &event);
    if (!net_send(sim, proc, &event))
        failed_later(sim, call, sim_between(sim, 20, 600));
    else
        failed_later(sim, call, call->retry.deadline_ms - sim->now_ms);
    return ERR_OK;
}

static void fill(struct sim *sim, const struct sim_call *call, struct retry_event *event)
{
    event->now_ms = sim->now_ms;
    event->route = sim->routers[call->router].map[call->shard];
    event->random = (uint32_t)sim_random_next(&sim->random);
}

/* Carries out what the core says. `body` is passed on if it says so. */
static void drive(struct sim *sim, struct sim_call *call, struct retry_event *event,
                  struct slice body)
{
    uint64_t asked = call->retry.target.owner;

    fill(sim, call, event);
    struct retry_action action = retry_step(&call->retry, event);
    if (action.cancel)
        tell_gone(sim, call, asked);
    while (action.type == RETRY_ACTION_SEND) {
        struct retry_event not_sent = { .type = RETRY_EVENT_NOT_SENT };
        not_sent.failure = send_call(sim, call);
        if (not_sent.failure == ERR_OK)
            return;
        call->send = 0;
        fill(sim, call, &not_sent);
        action = retry_step(&call->retry, &not_sent);
    }
    switch (action.type) {
    case RETRY_ACTION_WAIT:
        call->send = 0;
        sim_later(sim, action.due_ms - sim->now_ms,
                  &(struct sim_event){ .kind = EV_WAKE,
                                       .node = PROC_ROUTER + call->router,
                                       .from = call->retry.waits,
                                       .number = number_of(sim, call) });
        break;
    case RETRY_ACTION_PASS_ON:
        answer(sim, call, event->status == WIRE_OK ? 0 : event->refusal_code, body);
        break;
    case RETRY_ACTION_GIVE_UP:
        if (action.code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN)
            sim->counts.unknown_told++;
        answer(sim, call, action.code, (struct slice){ 0 });
        break;
    case RETRY_ACTION_SEND:
    case RETRY_ACTION_NONE:
        break;
    }
}

/* ---- events ---- */
static struct sim_call *free_call(struct sim *sim, uint32_t router)
{
    struct sim_router *r = &sim->routers[router];

    while (r->free_from < ROUTER_CALLS_MAX && r->calls[r->free_from].used)
        r->free_from++;
    if (r->free_from == ROUTER_CALLS_MAX) {
        r->free_from = 0;
        return NULL;
    }
    struct sim_call *call = &r->calls[r->free_from];
    r->free_from = r->free_from + 1 < ROUTER_CALLS_MAX ? r->free_from + 1 : 0;
    return call->used ? NULL : call;
}

struct sim_call *router_call(struct sim *sim, const struct sim_call *wanted, struct slice body,
                             uint64_t deadline_ms)
{
    struct sim_call *call = free_call(sim, wanted->router);
    struct refusal refusal = { 0 };

    if (call == NULL)
        return NULL;
    call->used = true;
    call->generation++;
    call->router = wanted->router;
    call->method = wanted->method;
    call->op = wanted->op;
    call->op_call = wanted->op_call;
    call->reading = wanted->reading;
    call->part = wanted->part;
    call->send = 0;
    buf_append(&call->body, body.data, body.size);
    CHECK(request_shard(call->method, buf_slice(&call->body), sim->shard_count, &call->shard,
                        &refusal) == ERR_OK);
    const struct method_info *method = method_find(wanted->method);
    retry_init(&call->retry, method->writes, deadline_ms);
    call->retry.once = (method->traits & METHOD_SENT_ONCE) != 0;
    drive(sim, call, &(struct retry_event){ .type = RETRY_EVENT_START }, (struct slice){ 0 });
    return call;
}

/* Overloaded: the game server's own patience ends it. */
static void on_ask(struct sim *sim, uint32_t router, const struct sim_event *event)
{
    const struct sim_call wanted = { .router = router,
                                     .method = sim->ops[event->number].method,
                                     .op = (uint32_t)event->number,
                                     .op_call = event->from };

    if (wanted.method == METHOD_READ_PLAYERS)
        router_read(sim, router, event);
    else
        (void)router_call(sim, &wanted, buf_slice(&event->bytes), sim->now_ms + sim->deadline_ms);
}

static void take_reply(struct sim *sim, struct sim_call *call, const struct sim_event *event)
{
    struct reader reader = reader_from(buf_slice(&event->bytes));
    struct retry_event answered = { .type = RETRY_EVENT_ANSWERED, .status = read_u8(&reader) };

    answered.hint.owner = read_u64(&reader);
    answered.hint.epoch = read_u64(&reader);
    struct slice body = read_raw(&reader, reader_left(&reader));
    if (answered.status == WIRE_REFUSED) {
        Holdfast__Internal__V1__Refusal *detail =
            holdfast__internal__v1__refusal__unpack(NULL, body.size, body.data);
        CHECK(detail != NULL);
        answered.refusal_code = detail->code;
        answered.refusal_final = detail->final;
        holdfast__internal__v1__refusal__free_unpacked(detail, NULL);
    }
    call->send = 0;
    drive(sim, call, &answered, body);
}

void router_event(struct sim *sim, struct sim_event *event)
{
    uint32_t router = (uint32_t)event->node - PROC_ROUTER;

    if (event->kind == EV_ASK) {
        on_ask(sim, router, event);
        return;
    }
    if (event->kind == EV_READ_AGAIN) {
        router_read_resume(sim, router, event);
        return;
    }
    struct sim_call *call = find_call(sim, event->number);
    if (call == NULL)
        return;
    switch (event->kind) {
    case EV_REPLY:
        if (call->send == event->from)
            take_reply(sim, call, event);
        break;
    case EV_CALL_FAILED:
        if (call->send != event->from || call->send == 0)
            return;
        call->send = 0;
        drive(sim, call,
              &(struct retry_event){ .type = RETRY_EVENT_FAILED,
                                     .failure = sim->now_ms >= call->retry.deadline_ms
                                                    ? ERR_TIMEOUT
                                                    : ERR_DISCONNECTED },
              (struct slice){ 0 });
        break;
    case EV_WAKE:
        if (call->retry.phase == RETRY_PHASE_WAITING && call->retry.waits == event->from)
            drive(sim, call, &(struct retry_event){ .type = RETRY_EVENT_WAKE },
                  (struct slice){ 0 });
        break;
    default:
        CHECK(false); /* an event for a router */
    }
}

void router_accepted(struct sim *sim, uint32_t place)
{
    memset(sim->routers[place].map, 0, sizeof sim->routers[place].map);
}

void router_changed(struct sim *sim, uint32_t place, const struct etcd_change *change)
{
    struct cluster_key_parts parts = cluster_key_parse(SIM_CLUSTER, buf_slice(&change->key));
    struct sim_router *r = &sim->routers[place];
    struct shard_record record;

    if (parts.kind != CLUSTER_KEY_SHARD || change->create_revision == 0)
        return;
    CHECK(etcd_shard_record(sim, parts.shard, &change->value, &record) == ERR_OK);
    if (record.epoch <= r->map[parts.shard].epoch)
        return;
    r->map[parts.shard] = (struct route_target){ record.owner, record.epoch };
    for (uint32_t i = 0; i < ROUTER_CALLS_MAX; i++) {
        struct sim_call *call = &r->calls[i];
        if (call->used && call->shard == parts.shard)
            drive(sim, call, &(struct retry_event){ .type = RETRY_EVENT_ROUTE_CHANGED },
                  (struct slice){ 0 });
    }
}

void routers_node_closed(struct sim *sim, uint32_t node)
{
    for (uint32_t r = 0; r < sim->router_count; r++) {
        for (uint32_t i = 0; i < ROUTER_CALLS_MAX; i++) {
            struct sim_call *call = &sim->routers[r].calls[i];
            if (call->used && call->send != 0 && call->retry.target.owner == node)
                failed_later(sim, call, sim_between(sim, 1, 50));
        }
    }
}
