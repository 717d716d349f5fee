#include "node/io/disk/scrub.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "node/io/disk/scrub_pace.h"
#include "runtime/base/check.h"
#include "runtime/loop/mailbox.h"

/* Not the lowest of all: for moments it holds locks that a shard's thread may wait for. */
#define NICE       10
#define TEXT_BYTES (DB_TEXT_BYTES > NODE_LOG_TEXT_BYTES ? DB_TEXT_BYTES : NODE_LOG_TEXT_BYTES)

struct scrub {
    struct scrub_options options;
    pthread_t thread;
    pthread_mutex_t lock; /* Of `changed`: stop is set under it. */
    pthread_cond_t changed;
    atomic_bool stop;
    struct mailbox mailbox;
    struct mailbox_node finding; /* Sent once, when shard and text are set. */
    uint32_t shard;
    char text[TEXT_BYTES];
    _Atomic uint64_t bytes, passes, damage, last_pass_ms;
};

/* ---- the thread ---------------------------------------------------------------------------- */

/* False: it is to stop. */
static bool wait_us(struct scrub *scrub, uint64_t us)
{
    uint64_t until_ns = loop_clock_ns() + us * 1000u;
    struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000u),
                              .tv_nsec = (long)(until_ns % 1000000000u) };

    pthread_mutex_lock(&scrub->lock);
    while (!atomic_load(&scrub->stop) && loop_clock_ns() < until_ns)
        (void)pthread_cond_timedwait(&scrub->changed, &scrub->lock, &until);
    pthread_mutex_unlock(&scrub->lock);
    return !atomic_load(&scrub->stop);
}

/* Takes in a step that read `bytes` since began_ns. False: it is to stop. */
static bool pace(struct scrub *scrub, uint64_t bytes, uint64_t began_ns)
{
    uint64_t took_us = (loop_clock_ns() - began_ns) / 1000u;

    atomic_fetch_add(&scrub->bytes, bytes);
    return wait_us(scrub, scrub_pace_wait_us(bytes, took_us, scrub->options.rate_bytes_per_s));
}

static err scrub_db(struct scrub *scrub)
{
    uint32_t step_bytes = scrub_pace_step_bytes(scrub->options.rate_bytes_per_s);
    struct db_scrub pass;
    bool goes_on = true;
    err e = ERR_OK;

    db_scrub_begin(scrub->options.db, &pass, &scrub->stop);
    while (e == ERR_OK && goes_on && !pass.complete) {
        uint64_t began_ns = loop_clock_ns();
        uint64_t before = pass.row_bytes;

        e = db_scrub_step(scrub->options.db, &pass, step_bytes, &scrub->stop);
        goes_on = e == ERR_OK && pace(scrub, pass.row_bytes - before, began_ns);
    }
    db_scrub_deinit(&pass);
    if (e == ERR_CORRUPT)
        (void)db_damage(scrub->options.db, scrub->text);
    return e;
}

static err scrub_log(struct scrub *scrub)
{
    uint32_t step_bytes = scrub_pace_step_bytes(scrub->options.rate_bytes_per_s);
    struct node_log_scrub pass = { 0 };
    bool goes_on = true;
    err e = ERR_OK;

    while (e == ERR_OK && goes_on && !pass.complete) {
        uint64_t began_ns = loop_clock_ns();
        uint64_t before = pass.read_bytes;

        e = node_log_scrub_step(scrub->options.store_log, &pass, step_bytes, &scrub->shard);
        goes_on = e == ERR_OK && pace(scrub, pass.read_bytes - before, began_ns);
    }
    if (e == ERR_CORRUPT)
        (void)node_log_damage(scrub->options.store_log, scrub->shard, scrub->text);
    return e;
}

static void tell_damage(struct scrub *scrub, const char *what)
{
    atomic_fetch_add(&scrub->damage, 1);
    log_event(scrub->options.log, LOG_ERROR, "scrub.damage", LOG_S("of", what),
              LOG_N("shard", scrub->shard), LOG_S("damage", scrub->text));
    mailbox_push(&scrub->mailbox, &scrub->finding);
}

static void tell_done(struct scrub *scrub, uint64_t bytes, uint64_t took_ms)
{
    atomic_fetch_add(&scrub->passes, 1);
    atomic_store(&scrub->last_pass_ms, loop_wall_ms());
    log_event(scrub->options.log, LOG_INFO, "scrub.done", LOG_N("bytes", bytes),
              LOG_N("ms", took_ms));
}

/* False: there will be no other. */
static bool run_pass(struct scrub *scrub)
{
    uint64_t began_ns = loop_clock_ns();
    uint64_t before = atomic_load(&scrub->bytes);
    const char *what = "database";
    err e = scrub_db(scrub);

    if (e == ERR_OK && !atomic_load(&scrub->stop)) {
        what = "log";
        e = scrub_log(scrub);
    }
    if (e == ERR_CORRUPT) {
        tell_damage(scrub, what);
        return false;
    }
    if (atomic_load(&scrub->stop))
        return false;
    uint64_t took_ms = (loop_clock_ns() - began_ns) / 1000000u;

    /* The disk refuses to read, which a start would not repair: the next pass tries again. */
    if (e != ERR_OK)
        log_event(scrub->options.log, LOG_ERROR, "scrub.failed", LOG_S("of", what),
                  LOG_S("error", err_text(e)));
    else
        tell_done(scrub, atomic_load(&scrub->bytes) - before, took_ms);
    return wait_us(scrub, scrub_pace_rest_ms(scrub->options.period_ms, took_ms) * 1000u);
}

static void *run(void *context)
{
    struct scrub *scrub = context;

    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    if (!wait_us(scrub, scrub_pace_first_ms(scrub->options.period_ms) * 1000u))
        return NULL;
    while (run_pass(scrub))
        ;
    return NULL;
}

/* ---- the loop's side ----------------------------------------------------------------------- */

static void on_finding(void *user, struct mailbox_node *node)
{
    struct scrub *scrub = user;

    (void)node;
    scrub->options.damaged(scrub->options.user, scrub->shard, scrub->text);
}

struct scrub *scrub_new(const struct scrub_options *options)
{
    struct scrub *scrub = mem_zalloc(sizeof *scrub);
    pthread_condattr_t monotonic;

    CHECK(options->period_ms > 0 && options->rate_bytes_per_s > 0);
    scrub->options = *options;
    atomic_init(&scrub->stop, false);
    CHECK(pthread_mutex_init(&scrub->lock, NULL) == 0);
    CHECK(pthread_condattr_init(&monotonic) == 0);
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&scrub->changed, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
    mailbox_init(&scrub->mailbox, options->loop, on_finding, scrub);
    CHECK(pthread_create(&scrub->thread, NULL, run, scrub) == 0);
    (void)pthread_setname_np(scrub->thread, "scrub");
    return scrub;
}

void scrub_free(struct scrub *scrub)
{
    if (scrub == NULL)
        return;
    pthread_mutex_lock(&scrub->lock);
    atomic_store(&scrub->stop, true);
    pthread_cond_signal(&scrub->changed);
    pthread_mutex_unlock(&scrub->lock);
    CHECK(pthread_join(scrub->thread, NULL) == 0);
    mailbox_deinit(&scrub->mailbox);
    pthread_cond_destroy(&scrub->changed);
    pthread_mutex_destroy(&scrub->lock);
    free(scrub);
}

void scrub_stats_get(const struct scrub *scrub, struct scrub_stats *ret_stats)
{
    *ret_stats = (struct scrub_stats){ 0 };
    if (scrub == NULL)
        return;
    ret_stats->bytes = atomic_load(&scrub->bytes);
    ret_stats->passes = atomic_load(&scrub->passes);
    ret_stats->damage = atomic_load(&scrub->damage);
    ret_stats->last_pass_ms = atomic_load(&scrub->last_pass_ms);
    ret_stats->period_ms = scrub->options.period_ms;
}
