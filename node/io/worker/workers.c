#include "node/io/worker/workers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/io/worker/lane.h"
#include "runtime/base/check.h"

#define SAVE_MS_MAX 60000u

/* Told by the main thread; each follows the one before. */
enum phase { PHASE_SERVE, PHASE_SAVE, PHASE_END };

/* A worker with a thread. Its own are those marked T, between pthread_create and pthread_join. */
struct member {
    struct workers *workers;
    struct worker *worker; /* T */
    struct loop *loop;     /* T */
    struct buf scratch;    /* T */
    struct lane in[LANE_USES], out[LANE_USES];
    atomic_int phase;
    pthread_t thread;
    bool started;
    bool has_lanes;
};

struct workers {
    struct workers_options options;
    struct worker *first; /* On the main loop. */
    struct member *members;
    uint32_t saving; /* Members whose checkpoints are not all written. */
    bool stopping;
};

/* False: its lane is full, and nothing was sent. */
static bool send_if_room(struct lane lanes[LANE_USES], const struct parcel *parcel)
{
    struct lane *lane = &lanes[parcel_lane(parcel->kind)];

    if (!lane_has_room(lane, parcel->bytes.size))
        return false;
    lane_send(lane, parcel);
    return true;
}

static void send_parcel(struct lane lanes[LANE_USES], const struct parcel *parcel)
{
    lane_send(&lanes[parcel_lane(parcel->kind)], parcel);
}

/* ---- on a member's thread: what its worker does, told to the main thread ---- */

static void on_send(void *user, uint64_t replica, const struct rep_message *message,
                    const uint8_t *trace)
{
    struct member *member = user;
    struct parcel parcel = { .kind = PARCEL_MESSAGE, .id = replica };

    buf_clear(&member->scratch);
    rep_message_encode(message, &member->scratch);
    if (trace != NULL)
        memcpy(parcel.trace, trace, sizeof parcel.trace);
    parcel.bytes = buf_slice(&member->scratch);
    (void)send_if_room(member->out, &parcel); /* Lost: replication repeats it. */
}

static void on_answer(void *user, uint64_t call, const struct shard_reply *reply, struct slice body)
{
    struct member *member = user;

    send_parcel(
        member->out,
        &(struct parcel){ .kind = PARCEL_ANSWER, .id = call, .reply = *reply, .bytes = body });
}

static void on_deliver(void *user, uint32_t from, const struct shard_delivery *delivery,
                       struct slice request)
{
    struct member *member = user;

    /* Lost: it is sent again. */
    (void)send_if_room(member->out, &(struct parcel){ .kind = PARCEL_DELIVER,
                                                      .shard = from,
                                                      .delivery = *delivery,
                                                      .bytes = request });
}

static void on_role_changed(void *user, uint32_t shard)
{
    struct member *member = user;

    send_parcel(member->out, &(struct parcel){ .kind = PARCEL_ROLE, .shard = shard });
}

static void on_damaged(void *user, uint32_t shard, const char *text)
{
    struct member *member = user;

    send_parcel(member->out,
                &(struct parcel){ .kind = PARCEL_DAMAGE,
                                  .shard = shard,
                                  .bytes = { (const uint8_t *)text, strlen(text) + 1 } });
}

static void take_call(struct member *member, const struct parcel *parcel)
{
    static const struct shard_reply not_held = { .status = REPLY_NOT_OWNER };
    struct worker_request request = {
        .shard = parcel->shard,
        .method = parcel->method,
        .call = parcel->id,
        .deadline_ms = parcel->deadline_ms,
        .bytes = parcel->bytes,
        .arrived_ns = parcel->arrived_ns,
        .number = parcel->number,
    };

    memcpy(request.trace, parcel->trace, sizeof request.trace);
    if (worker_call(member->worker, &request) != ERR_OK)
        on_answer(member, parcel->id, &not_held, (struct slice){ 0 });
}

/* NULL: none. */
static const uint8_t *trace_of(const struct parcel *parcel)
{
    return trace_is_set(parcel->trace) ? parcel->trace : NULL;
}

static void on_parcel_in(void *user, const struct parcel *parcel)
{
    struct member *member = user;

    if (atomic_load(&member->phase) == PHASE_END)
        return;
    switch (parcel->kind) {
    case PARCEL_CALL:
        take_call(member, parcel);
        break;
    case PARCEL_CANCEL:
        worker_cancel(member->worker, parcel->shard, parcel->id);
        break;
    case PARCEL_MESSAGE:
        if (worker_message(member->worker, parcel->id, parcel->bytes, trace_of(parcel)) != ERR_OK)
            log_event(member->workers->options.worker.log, LOG_ERROR, "peer.malformed_message",
                      LOG_N("replica", parcel->id));
        break;
    case PARCEL_RECORD:
        worker_record(member->worker, parcel->shard, &parcel->record);
        break;
    case PARCEL_DELIVERED:
        worker_delivered(member->worker, &(struct worker_delivered){ .shard = parcel->shard,
                                                                     .token = parcel->id,
                                                                     .status = parcel->reply.status,
                                                                     .body = parcel->bytes });
        break;
    case PARCEL_ANSWER:
    case PARCEL_ROLE:
    case PARCEL_DAMAGE:
    case PARCEL_DELIVER:
    case PARCEL_SAVED:
        CHECK(false);
    }
}

static void *run(void *user)
{
    struct member *member = user;

    while (atomic_load(&member->phase) == PHASE_SERVE)
        loop_run(member->loop);
    if (atomic_load(&member->phase) == PHASE_SAVE) {
        worker_checkpoint_all(member->worker);
        send_parcel(member->out, &(struct parcel){ .kind = PARCEL_SAVED });
    }
    while (atomic_load(&member->phase) != PHASE_END)
        loop_run(member->loop);
    worker_free(member->worker);
    return NULL;
}

static void tell(struct member *member, enum phase phase)
{
    atomic_store(&member->phase, (int)phase);
    loop_stop(member->loop);
}

/* ---- on the main thread ---- */

static void on_parcel_out(void *user, const struct parcel *parcel)
{
    struct member *member = user;
    struct workers *workers = member->workers;
    const struct worker_ops *ops = &workers->options.worker.ops;
    void *owner = workers->options.worker.user;

    if (parcel->kind == PARCEL_SAVED)
        workers->saving--;
    if (workers->stopping) {
        if (parcel->reply.held > 0)
            budget_give(workers->options.worker.answers, parcel->reply.held);
        return;
    }
    switch (parcel->kind) {
    case PARCEL_MESSAGE:
        workers->options.send_encoded(owner, parcel->id, parcel->bytes, trace_of(parcel));
        break;
    case PARCEL_ANSWER:
        ops->answer(owner, parcel->id, &parcel->reply, parcel->bytes);
        break;
    case PARCEL_ROLE:
        if (ops->role_changed != NULL)
            ops->role_changed(owner, parcel->shard);
        break;
    case PARCEL_DELIVER:
        ops->deliver(owner, parcel->shard, &parcel->delivery, parcel->bytes);
        break;
    case PARCEL_DAMAGE:
        ops->damaged(owner, parcel->shard, (const char *)parcel->bytes.data);
        break;
    case PARCEL_SAVED:
        break;
    case PARCEL_CALL:
    case PARCEL_CANCEL:
    case PARCEL_RECORD:
    case PARCEL_DELIVERED:
        CHECK(false);
    }
}

static struct worker_options share_of(const struct workers_options *options, uint32_t number)
{
    struct worker_options share = options->worker;

    share.shard_first = number;
    share.shard_stride = options->count;
    share.cache_bytes /= options->count;
    share.loads_max = (share.loads_max + options->count - 1) / options->count;
    return share;
}

static err member_make(struct workers *workers, uint32_t number)
{
    struct member *member = &workers->members[number];
    struct worker_options share = share_of(&workers->options, number);
    struct loop *main_loop = share.loop;
    uint64_t parcels_max = workers->options.calls_max;

    member->workers = workers;
    atomic_init(&member->phase, PHASE_SERVE);
    err e = loop_new(&member->loop);
    if (e != ERR_OK)
        return e;
    /* What is made last is emptied first: the system's. */
    for (int use = LANE_USES - 1; use >= 0; use--) {
        lane_init(&member->in[use], &(struct lane_options){ main_loop, member->loop, parcels_max,
                                                            on_parcel_in, member });
        lane_init(&member->out[use], &(struct lane_options){ member->loop, main_loop, parcels_max,
                                                             on_parcel_out, member });
    }
    member->has_lanes = true;
    share.loop = member->loop;
    share.ops = (struct worker_ops){
        .send = on_send,
        .answer = on_answer,
        .deliver = on_deliver,
        .role_changed = on_role_changed,
        .damaged = on_damaged,
    };
    share.user = member;
    return worker_new(&share, &member->worker);
}

static void member_start(struct member *member, uint32_t number)
{
    char name[20];

    CHECK(pthread_create(&member->thread, NULL, run, member) == 0);
    snprintf(name, sizeof name, "worker-%u", number % WORKERS_MAX);
    (void)pthread_setname_np(member->thread, name);
    member->started = true;
}

err workers_new(const struct workers_options *options, struct workers **ret_workers,
                bool *ret_damaged)
{
    struct workers *workers = mem_zalloc(sizeof *workers);
    struct worker_options share = share_of(options, 0);

    CHECK(options->count >= 1 && options->count <= WORKERS_MAX);
    workers->options = *options;
    workers->members = mem_zalloc(sizeof *workers->members * options->count);
    err e = worker_new(&share, &workers->first);
    for (uint32_t i = 1; e == ERR_OK && i < options->count; i++)
        e = member_make(workers, i);
    if (e != ERR_OK) {
        workers_free(workers);
        return e;
    }
    for (uint32_t i = 0; i < options->count && e != ERR_TOO_NEW; i++) {
        err found = worker_recover(i == 0 ? workers->first : workers->members[i].worker);
        e = e == ERR_OK || found == ERR_TOO_NEW ? found : e;
    }
    *ret_damaged = e != ERR_OK;
    if (e == ERR_TOO_NEW) {
        workers_free(workers);
        return e;
    }
    for (uint32_t i = 1; i < options->count; i++)
        member_start(&workers->members[i], i);
    *ret_workers = workers;
    return ERR_OK;
}

static void member_end(struct member *member)
{
    if (member->started)
        CHECK(pthread_join(member->thread, NULL) == 0);
    else
        worker_free(member->worker);
    for (int use = 0; use < LANE_USES && member->has_lanes; use++) {
        lane_deinit(&member->in[use]);
        lane_deinit(&member->out[use]);
    }
    loop_free(member->loop);
    buf_deinit(&member->scratch);
}

void workers_free(struct workers *workers)
{
    if (workers == NULL)
        return;
    workers->stopping = true;
    for (uint32_t i = 1; i < workers->options.count; i++) {
        if (workers->members[i].started)
            tell(&workers->members[i], PHASE_END);
    }
    for (uint32_t i = 1; i < workers->options.count; i++)
        member_end(&workers->members[i]);
    worker_free(workers->first);
    free(workers->members);
    free(workers);
}

/* NULL: the shard is the main loop's. */
static struct member *member_of(struct workers *workers, uint32_t shard)
{
    uint32_t number = shard % workers->options.count;
    return number > 0 ? &workers->members[number] : NULL;
}

void workers_record(struct workers *workers, uint32_t shard, const struct rep_record *record)
{
    struct member *member = member_of(workers, shard);

    if (member == NULL)
        worker_record(workers->first, shard, record);
    else if (!workers->stopping)
        send_parcel(member->in,
                    &(struct parcel){ .kind = PARCEL_RECORD, .shard = shard, .record = *record });
}

static void message_to_member(struct member *member, uint64_t from, struct slice bytes,
                              const uint8_t *trace)
{
    struct parcel parcel = { .kind = PARCEL_MESSAGE, .id = from, .bytes = bytes };

    if (trace != NULL)
        memcpy(parcel.trace, trace, sizeof parcel.trace);
    (void)send_if_room(member->in, &parcel);
}

err workers_message(struct workers *workers, uint64_t from, struct slice bytes,
                    const uint8_t *trace)
{
    uint32_t shard;
    struct member *member;

    if (workers->options.count == 1)
        return worker_message(workers->first, from, bytes, trace);
    err e = rep_message_peek_shard(bytes, &shard);
    if (e != ERR_OK)
        return e;
    member = member_of(workers, shard);
    if (member == NULL)
        return worker_message(workers->first, from, bytes, trace);
    if (!workers->stopping)
        message_to_member(member, from, bytes, trace);
    return ERR_OK;
}

err workers_call(struct workers *workers, const struct worker_request *request)
{
    struct member *member = member_of(workers, request->shard);
    struct parcel parcel = {
        .kind = PARCEL_CALL,
        .shard = request->shard,
        .id = request->call,
        .method = request->method,
        .deadline_ms = request->deadline_ms,
        .bytes = request->bytes,
        .arrived_ns = request->arrived_ns,
        .number = request->number,
    };

    if (member == NULL)
        return worker_call(workers->first, request);
    if (workers->stopping)
        return ERR_NOT_FOUND;
    memcpy(parcel.trace, request->trace, sizeof parcel.trace);
    return send_if_room(member->in, &parcel) ? ERR_OK : ERR_FULL;
}

void workers_cancel(struct workers *workers, uint32_t shard, uint64_t call)
{
    if (workers == NULL)
        return;
    struct member *member = member_of(workers, shard);
    if (member == NULL)
        worker_cancel(workers->first, shard, call);
    else if (!workers->stopping)
        (void)send_if_room(member->in,
                           &(struct parcel){ .kind = PARCEL_CANCEL, .shard = shard, .id = call });
}

void workers_delivered(struct workers *workers, const struct worker_delivered *delivered)
{
    struct member *member = member_of(workers, delivered->shard);

    if (member == NULL)
        worker_delivered(workers->first, delivered);
    else if (!workers->stopping)
        (void)send_if_room(member->in, &(struct parcel){ .kind = PARCEL_DELIVERED,
                                                         .shard = delivered->shard,
                                                         .id = delivered->token,
                                                         .reply = { .status = delivered->status },
                                                         .bytes = delivered->body });
}

static bool all_saved(void *user)
{
    const struct workers *workers = user;
    return workers->saving == 0;
}

void workers_checkpoint_all(struct workers *workers)
{
    workers->saving = workers->options.count - 1;
    for (uint32_t i = 1; i < workers->options.count; i++)
        tell(&workers->members[i], PHASE_SAVE);
    worker_checkpoint_all(workers->first);
    (void)loop_run_until(workers->options.worker.loop, all_saved, workers, SAVE_MS_MAX);
}
