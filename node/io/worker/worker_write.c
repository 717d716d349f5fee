#include <stdlib.h>

#include "node/io/worker/worker_internal.h"
#include "runtime/base/check.h"

/* On the log's writer thread: hands every request back, in one push and with one wake-up. */
static void on_done(struct node_log_client *client, struct node_log_request *first)
{
    struct worker *worker = client->user;
    struct mailbox_node *oldest = &CONTAINER_OF(first, struct write_job, request)->node;
    struct mailbox_node *newest = NULL;

    while (first != NULL) {
        struct mailbox_node *node = &CONTAINER_OF(first, struct write_job, request)->node;
        node->next = newest;
        newest = node;
        first = first->next;
    }
    mailbox_push_list(&worker->persisted, newest, oldest);
}

static void job_free(struct worker *worker, struct write_job *job)
{
    for (uint32_t i = 0; i < job->request.write_count; i++) {
        if (job->writes[i].type == REP_WRITE_ENTRY)
            entry_unref(job->writes[i].entry);
    }
    job->request.write_count = 0;
    job->next_free = worker->free_writes;
    worker->free_writes = job;
    worker->writes_open--;
    worker->slots[job->request.shard].writes_open--;
}

static void on_persisted(void *user, struct mailbox_node *node)
{
    struct worker *worker = user;
    struct write_job *job = CONTAINER_OF(node, struct write_job, node);
    uint32_t shard = job->request.shard;
    worker_reset_done *reset_done = job->reset_done;
    bool reset = job->request.type == NODE_LOG_RESET;
    struct shard_event event = { .type = SHARD_PERSISTED, .ticket = job->request.ticket };

    if (!reset)
        worker_slow_end_write(worker, job);
    job_free(worker, job);
    if (reset && !worker->stopping)
        reset_done(worker, shard);
    else if (!worker->stopping)
        worker->step(worker, shard, &event);
    worker->clock_ns = 0;
}

void worker_write_init(struct worker *worker)
{
    worker->log_client = (struct node_log_client){ .done = on_done, .user = worker };
    mailbox_init(&worker->persisted, worker->options.loop, on_persisted, worker);
}

void worker_write_deinit(struct worker *worker)
{
    mailbox_drain(&worker->persisted);
    mailbox_deinit(&worker->persisted);
    while (worker->free_writes != NULL) {
        struct write_job *job = worker->free_writes;
        worker->free_writes = job->next_free;
        free(job->writes);
        free(job);
    }
}

static struct write_job *job_new(struct worker *worker, uint32_t shard)
{
    struct write_job *job = worker->free_writes;

    if (job != NULL)
        worker->free_writes = job->next_free;
    else
        job = mem_zalloc(sizeof *job);
    worker->writes_open++;
    worker->slots[shard].writes_open++;
    return job;
}

static void job_submit(struct worker *worker, struct write_job *job)
{
    job->request.next = worker->writes_newest;
    if (worker->writes_newest == NULL)
        worker->writes_oldest = &job->request;
    worker->writes_newest = &job->request;
    loop_hook_arm(&worker->round_hook);
}

void worker_write_reset(struct worker *worker, uint32_t shard, worker_reset_done *done)
{
    struct write_job *job = job_new(worker, shard);

    job->request = (struct node_log_request){
        .client = &worker->log_client,
        .type = NODE_LOG_RESET,
        .shard = shard,
    };
    job->reset_done = done;
    job_submit(worker, job);
}

void worker_write_submit(struct worker *worker, uint32_t shard, struct rep_out *out)
{
    struct write_job *job = job_new(worker, shard);

    /* The step's array goes along; the job's old one takes its place. */
    struct rep_write *writes = out->writes;
    uint32_t capacity = out->write_capacity;
    out->writes = job->writes;
    out->write_capacity = job->write_capacity;
    job->writes = writes;
    job->write_capacity = capacity;
    job->request = (struct node_log_request){
        .client = &worker->log_client,
        .type = NODE_LOG_WRITES,
        .shard = shard,
        .ticket = writes[out->write_count - 1].ticket,
        .writes = writes,
        .write_count = out->write_count,
    };
    out->write_count = 0;
    worker_slow_begin_write(worker, job);
    job_submit(worker, job);
}

void worker_write_start(struct worker *worker)
{
    if (worker->writes_newest == NULL)
        return;
    node_log_submit_list(worker->options.store_log, worker->writes_newest, worker->writes_oldest);
    worker->writes_newest = NULL;
}
