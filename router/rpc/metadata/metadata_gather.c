#include "router/rpc/metadata/metadata_gather.h"

#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "router/rpc/metadata/metadata_batch.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/codec/proto_codec.h"

#define BATCHES_OPEN    8u
#define BATCHES_WAITING 32u
#define LOG_EVERY_MS    10000u

/* An ask that waits for a batch. In its request's arena. */
struct metadata_wait {
    struct metadata_wait *next;        /* Of the batch. */
    struct metadata_wait *next_of_ask; /* Of the ask. */
    struct metadata_ask *ask;
    struct metadata_batch *batch; /* NULL: it is over. */
};

struct metas {
    struct router *router;
    struct metadata_memo *memo;
    struct metadata_sources *sources;
    struct metadata_batch *waiting, *open;
    uint32_t waiting_count, open_count;
    uint64_t logged_ms;
    struct metas_stats stats;
    bool stopped;
};

static uint64_t now_ms(const struct metas *metas)
{
    return loop_now_ms(metas->router->options.loop);
}

/* ---- what comes of batches ---- */
static void note_failure(struct metadata_batch *batch, const char *why)
{
    struct metas *metas = batch->metas;

    metas->stats.failures++;
    if (metas->logged_ms != 0 && now_ms(metas) - metas->logged_ms < LOG_EVERY_MS)
        return;
    metas->logged_ms = now_ms(metas);
    log_event(metas->router->options.log, LOG_WARN, "metadata.endpoint_failed",
              LOG_S("collection", batch->source->collection), LOG_S("why", why),
              LOG_S("what", "lists go out without its metadata; it is asked again"));
}

static void note_fetch(struct metadata_batch *batch, uint32_t left_out)
{
    batch->metas->stats.fetches++;
    batch->metas->stats.left_out += left_out;
}

static void learn(struct metadata_batch *batch, size_t place,
                  const Holdfast__V1__TargetMetadata *told)
{
    const struct metadata_name name = { slice_from_text(batch->source->collection),
                                        batch->targets[place] };
    struct buf packed = { 0 };

    if (told != NULL) {
        size_t size = holdfast__v1__target_metadata__get_packed_size(told);
        packed.size = holdfast__v1__target_metadata__pack(told, buf_reserve(&packed, size + 1));
    }
    metadata_memo_put(batch->metas->memo, &name, buf_slice(&packed), batch->begun_ms);
    buf_deinit(&packed);
}

/* ---- the end of an ask ---- */
static void leave_batch(struct metadata_wait *wait)
{
    struct metadata_wait **link = &wait->batch->waits;

    while (*link != wait)
        link = &(*link)->next;
    *link = wait->next;
    wait->batch = NULL;
}

static void leave(struct metadata_ask *ask)
{
    for (struct metadata_wait *wait = ask->waits; wait != NULL; wait = wait->next_of_ask) {
        if (wait->batch != NULL)
            leave_batch(wait);
    }
    ask->waits = NULL;
    ask->open = 0;
    loop_timer_stop(&ask->timer);
}

static void finish(struct metadata_ask *ask)
{
    ask->request->router->metas->stats.incomplete += ask->reason != NULL;
    ask->request->cancel = NULL;
    ask->done(ask);
}

/* What is known of a target by now: true, and *ret_age; `told` is filled in. */
static enum metadata_age look_up(struct metadata_ask *ask, size_t place)
{
    struct metas *metas = ask->request->router->metas;
    const struct metadata_name name = { ask->collection, slice_from_text(ask->targets[place]) };
    uint64_t now = now_ms(metas), age = metas->router->options.metadata_age_ms;
    const struct metadata_ages ages = {
        .young_since_ms = now > age ? now - age : 0,
        .old_since_ms = now > METADATA_OLD_MS_MAX ? now - METADATA_OLD_MS_MAX : 0,
    };
    struct codec_scope scope = { .arena = ask->request->arena };
    ProtobufCMessage *message;
    struct slice packed;

    enum metadata_age found = metadata_memo_find(metas->memo, &name, &ages, &packed);
    ask->told[place] = NULL;
    if (found == METADATA_UNKNOWN || packed.size == 0)
        return found;
    ask->bytes += packed.size;
    if (proto_decode(&holdfast__v1__target_metadata__descriptor, packed, &scope, &message) !=
        ERR_OK)
        return METADATA_UNKNOWN;
    ask->told[place] = (Holdfast__V1__TargetMetadata *)(void *)message;
    return found;
}

/* Whatever was had meanwhile is told. */
static void finish_late(struct metadata_ask *ask, const char *reason)
{
    leave(ask);
    for (size_t i = 0; i < ask->count; i++) {
        bool missing = ask->told[i] == NULL && look_up(ask, i) == METADATA_UNKNOWN;
        if (missing && ask->reason == NULL)
            ask->reason = ask->why != NULL ? ask->why : reason;
    }
    finish(ask);
}

static void on_deadline(void *user)
{
    finish_late(user, "it did not come in time");
}

static void on_cancel(struct request *request)
{
    struct metadata_ask *ask = request->state;

    leave(ask);
    request_fail_text(request, CODE(CANCELED), "the caller has gone");
}

/* ---- batches ---- */
static void take_out(struct metadata_batch **list, struct metadata_batch *batch)
{
    while (*list != batch)
        list = &(*list)->next;
    *list = batch->next;
}

static void batch_free(struct metadata_batch *batch)
{
    CHECK(batch->waits == NULL);
    batch->source->users--;
    arena_deinit(&batch->arena);
    free(batch);
}

/* Its waits have one batch less to wait for. */
static void release(struct metadata_batch *batch)
{
    while (batch->waits != NULL) {
        struct metadata_ask *ask = batch->waits->ask;
        leave_batch(batch->waits);
        if (batch->reason != NULL) /* Which may be about another one's targets. */
            ask->why = arena_printf(ask->request->arena, "%s", batch->reason);
        if (batch->code != 0)
            ask->code = batch->code;
        if (--ask->open == 0)
            finish_late(ask, "more was learned than the router keeps");
    }
    batch_free(batch);
}

static void begin_next(struct metas *metas);

static void batch_end(struct metadata_batch *batch)
{
    struct metas *metas = batch->metas;

    take_out(&metas->open, batch);
    metas->open_count--;
    release(batch);
    begin_next(metas);
}

static void give_up(struct metadata_batch *batch, const char *reason)
{
    take_out(&batch->metas->waiting, batch);
    batch->metas->waiting_count--;
    if (reason != NULL)
        batch->reason = reason;
    release(batch);
}

static bool begin(struct metadata_batch *batch)
{
    batch->begun = true;
    batch->begun_ms = now_ms(batch->metas);
    return batch->source->url[0] != '\0' ? metadata_endpoint_begin(batch)
                                         : metadata_shards_begin(batch);
}

/* The first one whose source is known. */
static struct metadata_batch *find_ready(const struct metas *metas)
{
    for (struct metadata_batch *each = metas->waiting; each != NULL; each = each->next) {
        if (each->source->known)
            return each;
    }
    return NULL;
}

static void begin_next(struct metas *metas)
{
    struct metadata_batch *batch;

    while (!metas->stopped && metas->open_count < BATCHES_OPEN &&
           (batch = find_ready(metas)) != NULL) {
        if (!begin(batch)) {
            give_up(batch, NULL);
            continue;
        }
        take_out(&metas->waiting, batch);
        metas->waiting_count--;
        batch->next = metas->open;
        metas->open = batch;
        metas->open_count++;
    }
}

static struct metadata_batch *find_of(const struct metas *metas,
                                      const struct metadata_source *source)
{
    struct metadata_batch *each = metas->waiting;

    while (each != NULL && each->source != source)
        each = each->next;
    return each;
}

/* The coordinator has answered, or not. What is told of that may ask for more. */
static void on_source(void *user, struct metadata_source *source)
{
    struct metas *metas = user;
    struct metadata_batch *batch;

    while (!source->known && source->call == 0 && (batch = find_of(metas, source)) != NULL)
        give_up(batch, "no coordinator said where the collection's metadata is");
    begin_next(metas);
}

static const struct metadata_owner owner = { learn, note_failure, note_fetch, batch_end };

static struct metadata_batch *batch_new(const struct metadata_ask *ask,
                                        struct metadata_source *source)
{
    struct metas *metas = ask->request->router->metas;
    struct metadata_batch *batch = mem_zalloc(sizeof *batch), **last = &metas->waiting;

    *batch = (struct metadata_batch){
        .metas = metas,
        .owner = &owner,
        .router = metas->router,
        .source = source,
        .asker = request_asker(ask->request),
    };
    source->users++;
    while (*last != NULL) /* The first that came is the first that goes. */
        last = &(*last)->next;
    *last = batch;
    metas->waiting_count++;
    return batch;
}

/* ---- finding a batch ---- */
static bool has_target(const struct metadata_batch *batch, uint64_t hash, struct slice target)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->hashes[i] == hash && slice_equal(batch->targets[i], target))
            return true;
    }
    return false;
}

static struct metadata_batch *find_batch(struct metas *metas, const struct metadata_source *source,
                                         uint64_t hash, struct slice target)
{
    struct metadata_batch *const lists[] = { metas->open, metas->waiting };

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        for (struct metadata_batch *each = lists[i]; each != NULL; each = each->next) {
            if (each->source == source && has_target(each, hash, target))
                return each;
        }
    }
    return NULL;
}

/* One with room that has not begun; NULL: too many wait. */
static struct metadata_batch *find_room(const struct metadata_ask *ask,
                                        struct metadata_source *source)
{
    const struct metas *metas = ask->request->router->metas;

    for (struct metadata_batch *each = metas->waiting; each != NULL; each = each->next) {
        if (each->source == source && each->count < METADATA_BATCH_MAX)
            return each;
    }
    return metas->waiting_count < BATCHES_WAITING ? batch_new(ask, source) : NULL;
}

/* The batch that brings the target, made if need be; NULL: too many wait. */
static struct metadata_batch *want(const struct metadata_ask *ask, struct metadata_source *source,
                                   struct slice target)
{
    uint64_t hash = hash_u64(target);
    struct metadata_batch *batch = find_batch(ask->request->router->metas, source, hash, target);

    if (batch != NULL)
        return batch;
    batch = find_room(ask, source);
    if (batch == NULL)
        return NULL;
    const char *text =
        arena_printf(&batch->arena, "%.*s", (int)target.size, (const char *)target.data);
    batch->hashes[batch->count] = hash;
    batch->targets[batch->count++] = slice_from_text(text);
    return batch;
}

static void wait_for(struct metadata_ask *ask, struct metadata_batch *batch)
{
    for (struct metadata_wait *each = ask->waits; each != NULL; each = each->next_of_ask) {
        if (each->batch == batch)
            return;
    }
    struct metadata_wait *wait = arena_zalloc(ask->request->arena, sizeof *wait);
    *wait = (struct metadata_wait){ batch->waits, ask->waits, ask, batch };
    batch->waits = wait;
    ask->waits = wait;
    ask->open++;
}

/* ---- the public interface ---- */
static void await(struct metadata_ask *ask)
{
    struct request *request = ask->request;
    const struct router_options *options = &request->router->options;
    Holdfast__V1__ErrorDetail refusal;

    /* What is known counts while it waits for the rest; without room, it does not wait. */
    if (!request_hold(request, ask->bytes, &refusal)) {
        leave(ask);
        ask->reason = "answers on their way fill the router's room for them";
        finish(ask);
        return;
    }
    request->state = ask;
    request->cancel = on_cancel;
    loop_timer_start(&ask->timer, request_time_left(request, options->metadata_timeout_ms));
}

static void find_all(struct metadata_ask *ask, struct metadata_source *source)
{
    for (size_t i = 0; i < ask->count; i++) {
        enum metadata_age age = look_up(ask, i);
        if (age == METADATA_YOUNG)
            continue;
        struct metadata_batch *batch = want(ask, source, slice_from_text(ask->targets[i]));
        if (age == METADATA_UNKNOWN && batch == NULL)
            ask->reason = "too much metadata is being asked for";
        else if (age == METADATA_UNKNOWN)
            wait_for(ask, batch);
    }
}

void metas_ask(struct metadata_ask *ask)
{
    struct request *request = ask->request;
    struct router *router = request->router;
    struct metas *metas = router->metas;
    struct metadata_source *source =
        metas->stopped ? NULL : metadata_source_get(metas->sources, ask->collection);

    ask->told = arena_zalloc(request->arena, (ask->count + 1) * sizeof *ask->told);
    ask->reason = ask->why = NULL;
    ask->code = (Holdfast__V1__ErrorCode)0;
    ask->waits = NULL;
    ask->bytes = 0;
    ask->open = 0;
    loop_timer_init(&ask->timer, router->options.loop, on_deadline, ask);
    if (source == NULL) {
        ask->reason = metas->stopped ? "the router is stopping"
                                     : "metadata of too many collections is being asked for";
        finish(ask);
        return;
    }
    find_all(ask, source);
    if (ask->open == 0)
        finish(ask);
    else
        await(ask);
    if (!source->known && source->call == 0)
        on_source(metas, source); /* No coordinator can be asked. */
    else
        begin_next(metas);
}

struct metas *metas_new(struct router *router)
{
    struct metas *metas = mem_zalloc(sizeof *metas);

    metas->router = router;
    metas->memo = metadata_memo_new(router->options.metadata_memo_bytes);
    metas->sources = metadata_sources_new(router, on_source, metas);
    return metas;
}

void metas_stop(struct metas *metas)
{
    metas->stopped = true;
    while (metas->waiting != NULL)
        give_up(metas->waiting, "the router is stopping");
    while (metas->open != NULL) {
        struct metadata_batch *batch = metas->open;
        metadata_shards_cancel(batch);
        metadata_endpoint_cancel(batch);
        batch->reason = "the router is stopping";
        take_out(&metas->open, batch);
        release(batch);
    }
    metas->open_count = 0;
    metadata_sources_free(metas->sources);
    metas->sources = NULL;
}

void metas_free(struct metas *metas)
{
    if (metas == NULL)
        return;
    if (!metas->stopped)
        metas_stop(metas);
    metadata_memo_free(metas->memo);
    free(metas);
}

struct metas_stats metas_stats(const struct metas *metas)
{
    struct metas_stats stats = metas->stats;

    stats.memo = metadata_memo_stats(metas->memo);
    stats.resting = metas->sources != NULL ? metadata_sources_resting(metas->sources) : 0;
    return stats;
}
