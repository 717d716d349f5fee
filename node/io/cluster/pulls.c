#include "node/io/cluster/pulls.h"

#include <stdlib.h>
#include <time.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"

#define DEADLINE_MS 2000u
/* Calls of this module among those of the service; those of deliveries have a higher bit. */
#define CALL_BIT  (1ull << 62)
#define DRIFT_BIT (1ull << 61) /* And those of them that compare counts: one at a time. */

/* One to another node. */
struct remote {
    struct pulls *pulls;
    uint64_t token; /* 0: free. */
};

/* An answer of a shard here, kept until its worker's step has ended. */
struct local {
    uint64_t token; /* 0: free. */
    bool ok;
    struct buf body;
};

struct pulls {
    struct pulls_options options;
    struct workers *workers; /* NULL: not begun, or stopped. */
    struct shard_views *views;
    struct puller *puller;
    bool *owned;    /* By shard. */
    uint64_t moves; /* puller_moves, as far as it was told. */
    uint64_t tops;  /* shard_views_tops when the last round began. */
    bool calling;
    struct remote remotes[PULLER_WINDOW];
    struct local locals[PULLER_WINDOW];
    struct drift *drift;
    struct local compared;
    struct loop_hook hook;
    struct loop_timer timer;
};

static void call_all(struct pulls *p);

static uint64_t unix_ms(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static void answered(struct pulls *p, uint64_t token, bool ok, struct slice body)
{
    puller_answered(p->puller, token, ok, ok ? body : (struct slice){ 0 });
    call_all(p);
}

static void on_called(void *user, err result, const struct frame *response)
{
    struct remote *remote = user;
    bool ok = result == ERR_OK && response->status == WIRE_OK;
    uint64_t token = remote->token;

    remote->token = 0;
    answered(remote->pulls, token, ok, ok ? response->body : (struct slice){ 0 });
}

static err start_remote(struct pulls *p, const struct pull_call *call, uint64_t replica)
{
    struct link *link = peers_link(p->options.peers, replica);
    struct remote *remote = p->remotes;
    struct call_request request = {
        .method = (uint16_t)call->method,
        .deadline_ms = DEADLINE_MS,
        .body = call->request,
        .done = on_called,
    };

    if (link == NULL)
        return ERR_UNAVAILABLE;
    while (remote->token != 0) { /* As many as the puller has out at once. */
        remote++;
        CHECK(remote < p->remotes + PULLER_WINDOW);
    }
    *remote = (struct remote){ p, call->token };
    request.user = remote;
    err e = call_start(p->options.calls, link, &request, NULL);
    if (e != ERR_OK)
        remote->token = 0;
    return e;
}

static err start_local(struct pulls *p, const struct pull_call *call)
{
    const struct worker_request request = {
        .shard = call->shard,
        .method = call->method,
        .call = CALL_BIT | call->token,
        .deadline_ms = loop_now_ms(p->options.loop) + DEADLINE_MS,
        .bytes = call->request,
    };

    return workers_call(p->workers, &request);
}

static void start(struct pulls *p, const struct pull_call *call)
{
    const struct shard_entry *entry =
        shard_map_find(registry_map(p->options.registry), call->shard);
    err e = ERR_UNAVAILABLE;

    if (entry != NULL && entry->record.owner == p->options.self)
        e = start_local(p, call);
    else if (entry != NULL && entry->record.owner != 0 &&
             (call->method == METHOD_PULL_PARTIALS || call->method == METHOD_FORGET_PARTIALS))
        e = start_remote(p, call, entry->record.owner);
    if (e != ERR_OK)
        puller_answered(p->puller, call->token, false, (struct slice){ 0 });
}

/* The next round is due when the one that has ended says so, which its begin could not. */
static void set_timer(struct pulls *p)
{
    uint64_t now = loop_now_ms(p->options.loop), next = puller_next_ms(p->puller);

    loop_timer_start(&p->timer, next > now ? next - now : 1);
}

/* To the shards' views, how far each home has come; where any has come further. */
static void tell_pulled(struct pulls *p)
{
    uint64_t moves = puller_moves(p->puller);

    if (moves == p->moves)
        return;
    p->moves = moves;
    for (uint32_t i = 0; i < shard_views_count(p->views); i++)
        shard_views_set_pulled(p->views, i, puller_pulled_ms(p->puller, i));
}

static void call_all(struct pulls *p)
{
    struct pull_call call;

    if (p->calling || p->workers == NULL)
        return;
    p->calling = true;
    while (p->workers != NULL && puller_next(p->puller, &call))
        start(p, &call);
    p->calling = false;
    if (p->workers == NULL)
        return;
    tell_pulled(p);
    if (!puller_is_busy(p->puller))
        set_timer(p);
}

/* Some of one shard's counts, by its worker. */
static void compare(struct pulls *p, uint64_t now)
{
    struct worker_request request = {
        .method = METHOD_CHECK_COUNTS,
        .call = CALL_BIT | DRIFT_BIT,
        .deadline_ms = now + DEADLINE_MS,
    };

    if (p->workers == NULL || !drift_next(p->drift, now, p->owned, &request.shard, &request.bytes))
        return;
    if (workers_call(p->workers, &request) != ERR_OK)
        drift_answered(p->drift, false, (struct slice){ 0 });
}

static void on_timer(void *user)
{
    struct pulls *p = user;
    uint64_t now = loop_now_ms(p->options.loop);

    for (uint32_t i = 0; i < shard_views_count(p->views); i++)
        p->owned[i] = shard_views_serves(p->views, i);
    if (p->tops != shard_views_tops(p->views))
        puller_watch(p->puller, now);
    p->tops = shard_views_tops(p->views);
    puller_begin(p->puller, now, unix_ms(), p->owned);
    call_all(p);
    compare(p, now);
}

static void on_hook(void *user)
{
    struct pulls *p = user;

    for (uint32_t i = 0; i < PULLER_WINDOW; i++) {
        struct local *local = &p->locals[i];
        uint64_t token = local->token;
        if (token == 0)
            continue;
        local->token = 0;
        puller_answered(p->puller, token, local->ok, buf_slice(&local->body));
        buf_deinit(&local->body); /* It may be large, and there are many. */
        local->body = (struct buf){ 0 };
    }
    if (p->compared.token != 0) {
        p->compared.token = 0;
        drift_answered(p->drift, p->compared.ok, buf_slice(&p->compared.body));
        buf_clear(&p->compared.body);
    }
    call_all(p);
}

struct pulls *pulls_new(const struct pulls_options *options)
{
    struct pulls *p = mem_zalloc(sizeof *p);

    p->options = *options;
    loop_hook_init(&p->hook, options->loop, on_hook, p);
    loop_timer_init(&p->timer, options->loop, on_timer, p);
    return p;
}

void pulls_free(struct pulls *p)
{
    if (p == NULL)
        return;
    loop_timer_stop(&p->timer);
    loop_hook_disarm(&p->hook);
    for (uint32_t i = 0; i < PULLER_WINDOW; i++)
        buf_deinit(&p->locals[i].body);
    buf_deinit(&p->compared.body);
    puller_free(p->puller);
    drift_free(p->drift);
    free(p->owned);
    free(p);
}

void pulls_set_workers(struct pulls *p, struct workers *workers, struct shard_views *views)
{
    p->workers = workers;
    p->views = views;
    if (workers == NULL) {
        loop_timer_stop(&p->timer);
        return;
    }
    CHECK(p->puller == NULL);
    p->puller = puller_new(shard_views_count(views));
    p->drift = drift_new(shard_views_count(views));
    p->owned = mem_zalloc(shard_views_count(views) * sizeof *p->owned);
    loop_timer_start(&p->timer, PULLER_EVERY_MS);
}

void pulls_stats_get(const struct pulls *p, struct pulls_stats *ret_stats)
{
    *ret_stats = (struct pulls_stats){ 0 };
    if (p->puller == NULL)
        return;
    ret_stats->puller = puller_stats(p->puller);
    ret_stats->drift = drift_stats(p->drift);
    ret_stats->behind_ms = puller_behind_ms(p->puller, unix_ms());
}

bool pulls_answer(struct pulls *p, uint64_t call, const struct shard_reply *reply,
                  struct slice body)
{
    struct local *local = p->locals;

    if ((call & CALL_BIT) == 0)
        return false;
    if ((call & DRIFT_BIT) != 0)
        local = &p->compared;
    while (local->token != 0) { /* As many as the puller has out at once. */
        local++;
        CHECK(local < p->locals + PULLER_WINDOW);
    }
    local->token = call & ~CALL_BIT;
    local->ok = reply->status == REPLY_OK;
    buf_clear(&local->body);
    if (local->ok)
        buf_append(&local->body, body.data, body.size);
    loop_hook_arm(&p->hook);
    return true;
}
