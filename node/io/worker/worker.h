/*
 * worker: the shards of one event loop, and the carrying out of what they decide: writes to the
 * log, messages to replicas, rows from the database, answers to callers. Everything runs on the
 * loop's thread; blocking work goes to libuv's pool and the log's writer thread. DESIGN section 9.
 */
#ifndef NODE_IO_WORKER_WORKER_H
#define NODE_IO_WORKER_WORKER_H

#include "node/io/disk/space.h"
#include "node/io/view/event_news.h"
#include "node/io/view/incidents.h"
#include "node/io/view/shard_view.h"
#include "node/store/db.h"
#include "node/store/node_log.h"
#include "runtime/base/log.h"
#include "runtime/loop/loop.h"
#include "runtime/metrics/metrics.h"
#include "runtime/trace/trace_context.h"

struct worker;

struct worker_ops {
    /* To another replica; lost if it is not reachable. `message` is borrowed, and `trace`: of a
     * call among its entries, for the other's log; NULL: none. */
    void (*send)(void *user, uint64_t replica, const struct rep_message *message,
                 const uint8_t *trace);
    /* Ends a call that worker_call began. reply->held is the callee's to give back to `answers`. */
    void (*answer)(void *user, uint64_t call, const struct shard_reply *reply, struct slice body);
    /* A batch from shard `from` for another shard; answered by worker_delivered, never from inside
     * this call. The request is borrowed. */
    void (*deliver)(void *user, uint32_t from, const struct shard_delivery *delivery,
                    struct slice request);
    /* A shard's owner or state changed; its view is published. May be NULL. */
    void (*role_changed)(void *user, uint32_t shard);
    /* The database gave no answer for rows of this shard, or its log is of a later apply version:
     * it must not be served from here. */
    void (*damaged)(void *user, uint32_t shard, const char *text);
};

struct worker_options {
    struct loop *loop;
    const struct log *log;
    struct node_log *store_log;
    struct db *db;
    const char *log_path;          /* Where halt notes are (halt_note.h); NULL: nowhere. */
    struct shard_views *views;     /* Where it publishes its shards. */
    struct event_news *event_news; /* Where it tells of shards with more events; NULL: nowhere. */
    struct incidents *incidents;   /* Where it tells what is out of the ordinary; NULL: nowhere. */
    struct space *space;           /* Of the disks; NULL: there is always room. */
    const struct handler_table *handlers;
    uint64_t self; /* This replica's id. */
    uint32_t shard_count;
    uint32_t shard_first, shard_stride; /* Of all, it recovers every stride-th from the first. */
    struct shard_limits limits;
    struct budget *answers; /* See shard_image; NULL: not counted. */
    uint64_t cache_bytes;
    uint64_t resident_max_bytes; /* Of the process: above it, free heap goes back to the system. */
    uint64_t checkpoint_interval_ms;
    uint32_t tick_ms;
    uint32_t loads_max;        /* Reads of rows or log at once. */
    uint64_t slow_ms;          /* Calls and writes that take so long are logged; 0: none. */
    struct histogram *commits; /* Where commit times are counted, in us; NULL: nowhere. */
    struct worker_ops ops;
    void *user;
};

NODISCARD err worker_new(const struct worker_options *options, struct worker **ret_worker);
/* Waits for blocking work on its way. No callbacks. */
void worker_free(struct worker *worker);

/* Recovers every shard that the log or the database knows. ERR_CORRUPT: logged with the shard. */
NODISCARD err worker_recover(struct worker *worker);

/* The ownership record as read or watched. Makes the shard if this replica is a member of it. */
void worker_record(struct worker *worker, uint32_t shard, const struct rep_record *record);
/* A replica's message, encoded, with the trace that came with it or NULL. ERR_CORRUPT: malformed.
 */
NODISCARD err worker_message(struct worker *worker, uint64_t from, struct slice bytes,
                             const uint8_t *trace);

/* What a caller asks of a shard. */
struct worker_request {
    uint32_t shard;
    uint32_t method;
    uint64_t call;
    uint64_t deadline_ms; /* On the loop's clock. */
    struct slice bytes;
    uint64_t arrived_ns; /* loop_clock_ns when it came to this node; 0: it is not measured. */
    uint64_t begun_ns;   /* The same when it leaves for its shard; 0: when it gets there. */
    uint64_t number;     /* Of the call in its trace, see trace_span. */
    uint8_t trace[TRACE_ID_SIZE];
};
/* ERR_NOT_FOUND: this replica does not hold the shard; nothing was begun. Answered by ops.answer,
 * perhaps before this returns. */
NODISCARD err worker_call(struct worker *worker, const struct worker_request *request);
void worker_cancel(struct worker *worker, uint32_t shard, uint64_t call);

/* What became of a batch that a shard of this worker sent. */
struct worker_delivered {
    uint32_t shard;
    uint64_t token;
    enum reply_status status;
    struct slice body;
};
void worker_delivered(struct worker *worker, const struct worker_delivered *delivered);

/* Begins a checkpoint of every shard now, and cuts the log after it. For clean stops: returns
 * once all are written, running the loop meanwhile. */
void worker_checkpoint_all(struct worker *worker);

#endif
