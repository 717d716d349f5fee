#include "runtime/rpc/rpc_work.h"

#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"
#include "runtime/loop/work.h"

/* Of one caller. What comes beyond is made at once, on the loop: that is the brake of a caller who
 * asks for more than the threads can make, and would fill the budget of all. */
#define WAITING_BYTES_MAX 8388608u

struct rpc_work {
    struct rpc_call *call;
    void (*done)(struct rpc_call *call, const struct rpc_worked *worked);
    struct rpc_work *next;   /* Of those that wait. */
    struct rpc_tools *tools; /* While it is worked on. */
    struct rpc_payload payload;
    const ProtobufCMessageDescriptor *type;
    struct buf_source source; /* `put` NULL: `response` is there. */
    struct buf response;
    size_t size;      /* Of the response, before it is packed. */
    uint64_t counted; /* Of the budget. */
    struct arena arena;
    struct rpc_worked worked;
    struct buf body;
};

static void decode(struct rpc_work *work)
{
    struct codec_scope scope = { .arena = &work->arena,
                                 .size_bytes_max = RPC_REPLY_MEMORY_MAX,
                                 .memory_bytes_max = RPC_REPLY_MEMORY_MAX };
    ProtobufCMessage *message = NULL;

    work->worked.e = proto_decode(work->type, buf_slice(&work->response), &scope, &message);
    work->worked.message = message;
}

/* In a thread: of the call it knows no more than what is in `work`. */
static void run(void *user)
{
    struct rpc_work *work = user;

    rpc_payload_start(&work->payload, &work->body);
    if (work->payload.form == RPC_FORM_PROTO && work->source.put != NULL) {
        work->source.put(work->source.user, &work->body);
    } else if (work->payload.form == RPC_FORM_PROTO) {
        buf_append(&work->body, work->response.data, work->response.size);
    } else {
        if (work->source.put != NULL)
            work->source.put(work->source.user, &work->response);
        decode(work);
        if (work->worked.e != ERR_OK)
            return;
        rpc_payload_put(&work->payload, work->tools, work->worked.message, &work->body);
    }
    work->worked.packed = rpc_payload_finish(&work->payload, work->tools, &work->body);
    buf_deinit(&work->response); /* To give back megabytes takes a while, too. */
}

static void begin(struct rpc_server *server);

static void finish(struct rpc_work *work)
{
    struct rpc_server *server = work->call->server;
    struct budget *answers = server->http.config.answers;

    work->worked.body = &work->body;
    work->done(work->call, &work->worked);
    if (answers != NULL)
        budget_give(answers, work->counted);
    buf_deinit(&work->response);
    buf_deinit(&work->body);
    arena_deinit(&work->arena);
    free(work);
}

static void on_done(void *user)
{
    struct rpc_work *work = user;
    struct rpc_server *server = work->call->server;
    struct rpc_workshop *shop = &server->workshop;
    struct rpc_tools *tools = work->tools;

    CHECK(shop->busy > 0);
    shop->tools[--shop->busy] = tools;
    finish(work);
    begin(server);
    if (shop->busy == 0 && shop->idle != NULL) {
        void (*idle)(void *) = shop->idle;
        shop->idle = NULL;
        idle(shop->idle_user);
    }
}

/* The caller reads nothing any more. */
static void skip(struct rpc_work *work)
{
    work->worked.e = ERR_OK;
    rpc_payload_start(&work->payload, &work->body);
    finish(work);
}

static struct rpc_tools *tools_take(struct rpc_workshop *shop)
{
    struct rpc_tools *tools = shop->tools[shop->busy];

    shop->tools[shop->busy++] = NULL;
    if (tools != NULL)
        return tools;
    tools = mem_zalloc(sizeof *tools);
    rpc_tools_init(tools);
    return tools;
}

static void unlink_work(struct rpc_workshop *shop, struct rpc_work *before, struct rpc_work *work)
{
    if (before != NULL)
        before->next = work->next;
    else
        shop->first = work->next;
    if (shop->last == work)
        shop->last = before;
    work->next = NULL;
}

/* Callers take turns, each in the order of its calls. */
static struct rpc_work *take_next(struct rpc_workshop *shop)
{
    struct rpc_work *before = NULL, *work = shop->first;

    while (work != NULL && work->call->request.account == shop->account) {
        before = work;
        work = work->next;
    }
    if (work == NULL) {
        before = NULL;
        work = shop->first;
    }
    shop->account = work->call->request.account;
    unlink_work(shop, before, work);
    return work;
}

static void begin(struct rpc_server *server)
{
    struct rpc_workshop *shop = &server->workshop;

    while (shop->first != NULL && shop->busy < RPC_WORK_THREADS) {
        struct rpc_work *work = take_next(shop);
        if (work->call->request.cancelled) {
            skip(work);
            continue;
        }
        work->tools = tools_take(shop);
        work_start(server->http.config.loop,
                   &(struct work){ .run = run, .done = on_done, .user = work });
    }
}

static uint64_t waiting_bytes(const struct rpc_workshop *shop, uint64_t account)
{
    uint64_t bytes = 0;

    for (const struct rpc_work *work = shop->first; work != NULL; work = work->next)
        bytes += work->call->request.account == account ? work->size : 0;
    return bytes;
}

static struct rpc_work *work_new(struct rpc_call *call, bool may_pack,
                                 void (*done)(struct rpc_call *call,
                                              const struct rpc_worked *worked))
{
    struct rpc_work *work = mem_zalloc(sizeof *work);

    CHECK(call->admitted && !call->request.streams && !call->working);
    call->working = true;
    work->call = call;
    work->done = done;
    work->payload = rpc_payload_of(call, may_pack);
    work->type = call->request.method->response;
    return work;
}

static void queue(struct rpc_work *work)
{
    struct rpc_server *server = work->call->server;
    struct rpc_workshop *shop = &server->workshop;

    if (server->http.config.answers != NULL) {
        work->counted = work->size;
        budget_take(server->http.config.answers, work->counted);
    }
    if (waiting_bytes(shop, work->call->request.account) > WAITING_BYTES_MAX) {
        work->tools = &server->tools;
        run(work);
        finish(work);
        return;
    }
    if (shop->last != NULL)
        shop->last->next = work;
    else
        shop->first = work;
    shop->last = work;
    begin(server);
}

void rpc_work_start(struct rpc_call *call, struct buf *response, bool may_pack,
                    void (*done)(struct rpc_call *call, const struct rpc_worked *worked))
{
    struct rpc_work *work = work_new(call, may_pack, done);

    work->response = *response;
    *response = (struct buf){ 0 };
    work->size = work->response.size;
    queue(work);
}

void rpc_work_start_from(struct rpc_call *call, const struct buf_source *source, bool may_pack,
                         void (*done)(struct rpc_call *call, const struct rpc_worked *worked))
{
    struct rpc_work *work = work_new(call, may_pack, done);

    work->source = *source;
    work->size = source->size;
    queue(work);
}

void rpc_work_cancel(struct rpc_call *call)
{
    struct rpc_workshop *shop = &call->server->workshop;
    struct rpc_work *before = NULL, *work = shop->first;

    while (work != NULL && work->call != call) {
        before = work;
        work = work->next;
    }
    if (work == NULL) /* A thread has it. */
        return;
    unlink_work(shop, before, work);
    skip(work);
}

void rpc_work_when_idle(struct rpc_server *server, void (*idle)(void *user), void *user)
{
    struct rpc_workshop *shop = &server->workshop;

    CHECK(shop->idle == NULL);
    if (shop->busy == 0) {
        idle(user);
        return;
    }
    shop->idle = idle;
    shop->idle_user = user;
}

void rpc_work_deinit(struct rpc_server *server)
{
    struct rpc_workshop *shop = &server->workshop;

    CHECK(shop->busy == 0 && shop->first == NULL);
    for (uint32_t i = 0; i < RPC_WORK_THREADS; i++) {
        if (shop->tools[i] == NULL)
            continue;
        rpc_tools_deinit(shop->tools[i]);
        free(shop->tools[i]);
    }
}
