#include "router/rpc/events/consumer_watch.h"

#include <stdlib.h>

#include "holdfast/v1/events.pb-c.h"
#include "router/rpc/call/caller.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

#define LOOK_MS   30000u /* From one look at all shards to the next. */
#define PACE_MS   20u /* From one shard to the next: a look costs little, however many there are. */
#define ASK_MS    2000u
#define PAGE_SIZE 100u /* More than a shard may have. */

typedef Holdfast__V1__ListConsumersResponse list_response;

struct consumer_watch {
    const struct router *router;
    struct loop_timer timer;
    struct caller_call call;
    bool open;
    uint32_t shard; /* Whose turn it is. */
    bool missed;    /* In this look a shard did not answer. */
    uint64_t began_ms;
    uint8_t body[32];
    struct consumer_lag now, told; /* Of this look so far, and of those before. */
    struct arena arena;            /* For one answer. */
};

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Since when it may have something to read: it has told no more than that. 0: it cannot be read. */
static int64_t stands_at_ms(const Holdfast__V1__EventConsumer *consumer)
{
    if (consumer->caught_up_ms > 0)
        return consumer->caught_up_ms;
    return consumer->committed_at_ms > 0 ? consumer->committed_at_ms : consumer->created_at_ms;
}

static void add(struct consumer_watch *watch, const list_response *said)
{
    struct consumer_lag *now = &watch->now;
    int64_t wall_ms = (int64_t)loop_wall_ms();

    if (said->kept_ms > 0 && (now->kept_ms == 0 || said->kept_ms < now->kept_ms))
        now->kept_ms = said->kept_ms;
    for (size_t i = 0; i < said->n_consumers; i++) {
        int64_t at_ms = stands_at_ms(said->consumers[i]);
        now->consumers++;
        if (at_ms > 0 && at_ms < wall_ms)
            now->lag_ms = max_u64(now->lag_ms, (uint64_t)(wall_ms - at_ms));
    }
}

/* What a shard did not tell is as it was. */
static void look_end(struct consumer_watch *watch)
{
    struct consumer_lag *told = &watch->told;
    uint64_t took_ms = loop_now_ms(watch->router->options.loop) - watch->began_ms;

    if (watch->missed) {
        watch->now.consumers = (uint32_t)max_u64(watch->now.consumers, told->consumers);
        watch->now.lag_ms = max_u64(watch->now.lag_ms, told->lag_ms);
    }
    *told = watch->now;
    watch->now = (struct consumer_lag){ 0 };
    watch->shard = 0;
    watch->missed = false;
    loop_timer_start(&watch->timer, took_ms < LOOK_MS ? LOOK_MS - took_ms : 0);
}

static void answered(struct caller_call *call, const struct caller_result *result)
{
    struct consumer_watch *watch = call->user;
    struct codec_scope scope = { .arena = &watch->arena };
    ProtobufCMessage *message = NULL;

    watch->open = false;
    if (result->detail == NULL && proto_decode(&holdfast__v1__list_consumers_response__descriptor,
                                               result->body, &scope, &message) == ERR_OK)
        add(watch, (const list_response *)(const void *)message);
    else
        watch->missed = true;
    arena_reset(&watch->arena);
    watch->shard++;
    loop_timer_start(&watch->timer, PACE_MS);
}

static void ask(struct consumer_watch *watch)
{
    const struct router *router = watch->router;
    Holdfast__V1__ListConsumersRequest request = HOLDFAST__V1__LIST_CONSUMERS_REQUEST__INIT;

    request.shard = watch->shard;
    request.page_size = PAGE_SIZE;
    size_t size = holdfast__v1__list_consumers_request__get_packed_size(&request);
    CHECK(size <= sizeof watch->body);
    (void)holdfast__v1__list_consumers_request__pack(&request, watch->body);
    watch->open = true;
    watch->call = (struct caller_call){
        .method = METHOD_LIST_CONSUMERS,
        .priority = METHOD_PRIORITY_BULK,
        .shard = watch->shard,
        .deadline_ms = loop_now_ms(router->options.loop) + ASK_MS,
        .started_ns = loop_clock_ns(),
        .body = { watch->body, size },
        .done = answered,
        .user = watch,
    };
    caller_start(router->options.caller, &watch->call);
}

static void on_timer(void *user)
{
    struct consumer_watch *watch = user;
    uint32_t shards = shard_map_shard_count(watch->router->options.map);

    if (watch->shard == 0)
        watch->began_ms = loop_now_ms(watch->router->options.loop);
    if (watch->shard < shards)
        ask(watch);
    else
        look_end(watch);
}

struct consumer_watch *consumer_watch_new(const struct router *router)
{
    struct consumer_watch *watch = mem_zalloc(sizeof *watch);

    watch->router = router;
    loop_timer_init(&watch->timer, router->options.loop, on_timer, watch);
    return watch;
}

void consumer_watch_start(struct consumer_watch *watch)
{
    loop_timer_start(&watch->timer, PACE_MS);
}

void consumer_watch_free(struct consumer_watch *watch)
{
    if (watch == NULL)
        return;
    if (watch->open)
        caller_cancel(&watch->call);
    loop_timer_stop(&watch->timer);
    arena_deinit(&watch->arena);
    free(watch);
}

struct consumer_lag consumer_watch_lag(const struct consumer_watch *watch)
{
    return watch->told;
}

double consumer_lag_ratio(const struct consumer_lag *lag)
{
    return lag->kept_ms > 0 ? (double)lag->lag_ms / (double)lag->kept_ms : 0;
}
