/*
 * log_bench DIRECTORY [SECONDS]: entries and syncs per second of the durable log, and the CPU that
 * its writer spends per entry, with 1, 16 and 128 requests in flight, each one entry of 250 bytes.
 * The budget is 2 to 2.4 us per entry (DESIGN section 12).
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "node/store/node_log_private.h"
#include "runtime/base/check.h"

#define SHARDS       64u
#define BODY_BYTES   170u /* 250 with the entry's header. */
#define INFLIGHT_MAX 128u

struct slot {
    struct node_log_request request;
    struct rep_write write;
};

struct bench {
    struct node_log *log;
    struct node_log_client client;
    sem_t wake;
    _Atomic(struct node_log_request *) done; /* Lists of them, newest first. */
    struct slot slots[INFLIGHT_MAX];
    uint64_t last_index[SHARDS];
    uint32_t next_shard;
};

static uint64_t clock_ns(clockid_t id)
{
    struct timespec now;

    CHECK(clock_gettime(id, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* On the writer's thread: one push per sync. */
static void on_done(struct node_log_client *client, struct node_log_request *first)
{
    struct bench *bench = client->user;
    struct node_log_request *last = first;

    while (last->next != NULL)
        last = last->next;
    last->next = atomic_load(&bench->done);
    while (!atomic_compare_exchange_weak(&bench->done, &last->next, first))
        ;
    CHECK(sem_post(&bench->wake) == 0);
}

static void submit(struct bench *bench, struct slot *slot)
{
    static const uint8_t body[BODY_BYTES];
    uint32_t shard = bench->next_shard++ % SHARDS;
    uint64_t index = ++bench->last_index[shard];

    entry_unref(slot->write.entry);
    slot->write = (struct rep_write){ .type = REP_WRITE_ENTRY };
    slot->write.entry = entry_new(
        ENTRY_OP, &(struct entry_head){ .index = index, .dot = { 1, 1, index }, .owner_ms = index },
        (struct slice){ body, sizeof body });
    slot->request = (struct node_log_request){
        .client = &bench->client, .shard = shard, .writes = &slot->write, .write_count = 1
    };
    node_log_submit_list(bench->log, &slot->request, &slot->request);
    if (index % 4096 == 0)
        node_log_retain(bench->log, shard, index - 1024);
}

/* Takes what is done and submits as many again while `more`; returns how many were done. */
static uint32_t turn_around(struct bench *bench, bool more)
{
    uint32_t count = 0;

    while (sem_wait(&bench->wake) != 0)
        ;
    struct node_log_request *request = atomic_exchange(&bench->done, NULL);
    while (request != NULL) {
        struct node_log_request *next = request->next;

        count++;
        if (more)
            submit(bench, CONTAINER_OF(request, struct slot, request));
        request = next;
    }
    return count;
}

static void run(struct bench *bench, uint32_t inflight, uint64_t duration_ns)
{
    struct node_log_stats before, after;
    clockid_t writer;
    uint64_t entries = 0;
    uint32_t open = inflight;

    CHECK(pthread_getcpuclockid(bench->log->thread, &writer) == 0);
    node_log_stats_get(bench->log, &before);
    uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t cpu_ns = clock_ns(writer);
    for (uint32_t i = 0; i < inflight; i++)
        submit(bench, &bench->slots[i]);
    while (clock_ns(CLOCK_MONOTONIC) - began_ns < duration_ns)
        entries += turn_around(bench, true);
    uint64_t took_ns = clock_ns(CLOCK_MONOTONIC) - began_ns;
    while (open > 0)
        open -= turn_around(bench, false);
    entries += inflight;
    cpu_ns = clock_ns(writer) - cpu_ns;
    node_log_stats_get(bench->log, &after);

    double seconds = (double)took_ns / 1e9;
    uint64_t syncs = after.syncs - before.syncs;
    printf("in flight %4u: %8.0f entries/s  %6.0f syncs/s  %6.1f entries/sync  sync %4.0f us  "
           "writer CPU %5.2f us/entry  %5.0f bytes/entry\n",
           inflight, (double)entries / seconds, (double)syncs / seconds,
           (double)entries / (double)syncs,
           (double)(after.sync_ns - before.sync_ns) / 1e3 / (double)syncs,
           (double)cpu_ns / 1e3 / (double)entries,
           (double)(after.written_bytes - before.written_bytes) / (double)entries);
}

static void wait_for_spare(struct node_log *log)
{
    struct node_log_stats stats = { 0 };

    while (stats.spare_segments < 2) {
        usleep(10000);
        node_log_stats_get(log, &stats);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct node_log_config config = node_log_config_default();

    if (argc < 2) {
        fprintf(stderr, "usage: log_bench DIRECTORY [SECONDS]\n");
        return 2;
    }
    uint64_t duration_ns = (argc > 2 ? strtoull(argv[2], NULL, 10) : 3) * 1000000000u;
    config.directory = argv[1];
    config.replica_id = 1;
    config.shard_count = SHARDS;
    CHECK(sem_init(&bench.wake, 0, 0) == 0);
    bench.client = (struct node_log_client){ .done = on_done, .user = &bench };
    if (node_log_open(&config, &bench.log) != ERR_OK) {
        fprintf(stderr, "log_bench: cannot open a log in %s\n", argv[1]);
        return 1;
    }
    wait_for_spare(bench.log);
    run(&bench, 1, duration_ns);
    run(&bench, 16, duration_ns);
    run(&bench, INFLIGHT_MAX, duration_ns);
    for (uint32_t i = 0; i < INFLIGHT_MAX; i++)
        entry_unref(bench.slots[i].write.entry);
    node_log_close(bench.log);
    return 0;
}
