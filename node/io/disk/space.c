#include "node/io/disk/space.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <uv.h>

#include "runtime/base/check.h"

#define FREE_MS_MAX 60000u

struct space {
    struct space_options options;
    char *paths[2];
    struct loop_timer timer;
    uv_work_t work;
    bool looking;
    /* Of the look on its way: the pool's. */
    uint64_t found_bytes;
    uint32_t found_path;
    bool found_room;
    bool rests;
    uint64_t log_room_ms; /* When the log last had room. */
    atomic_int disk;      /* Of the disks alone. */
    atomic_int state;
    _Atomic(uint64_t) free_bytes;
    pthread_mutex_t lock; /* Of `why`. */
    char why[SHARD_FULL_BYTES];
};

enum space_state space_next(enum space_state now, uint64_t free_bytes, uint64_t free_min)
{
    uint64_t more = free_min / 4;

    if (free_bytes < free_min + (now == SPACE_FULL ? more : 0))
        return SPACE_FULL;
    return free_bytes < 2 * free_min + (now != SPACE_OK ? more : 0) ? SPACE_LOW : SPACE_OK;
}

static void on_work(uv_work_t *work)
{
    struct space *space = CONTAINER_OF(work, struct space, work);
    bool rests = atomic_load(&space->disk) != SPACE_OK;

    if (rests != space->rests)
        space->options.database_rests(space->options.user, rests);
    space->rests = rests;
    space->found_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < ARRAY_SIZE(space->paths); i++) {
        struct statvfs stat;

        /* A file system that cannot say has other troubles, and its writes will tell. */
        if (statvfs(space->paths[i], &stat) != 0)
            continue;
        uint64_t bytes = (uint64_t)stat.f_bavail * stat.f_frsize;
        if (bytes >= space->found_bytes)
            continue;
        space->found_bytes = bytes;
        space->found_path = i;
    }
    space->found_room = space->options.log_has_room(space->options.user);
}

static void say_why(struct space *space, enum space_state disk)
{
    uint64_t mib = 1024 * 1024;

    pthread_mutex_lock(&space->lock);
    if (disk == SPACE_FULL)
        snprintf(space->why, sizeof space->why,
                 "the disk of %.80s is full (%llu MiB free, --disk-free-min is %llu MiB)",
                 space->paths[space->found_path], (unsigned long long)(space->found_bytes / mib),
                 (unsigned long long)(space->options.free_min / mib));
    else
        snprintf(space->why, sizeof space->why, "the log in %.80s has reached --log-size-max",
                 space->paths[0]);
    pthread_mutex_unlock(&space->lock);
}

static void tell(const struct space *space, enum space_state before)
{
    static const char *const names[] = { "ok", "low", "full" };
    enum space_state state = space_state(space);

    if (state == before)
        return;
    log_event(space->options.log, state == SPACE_FULL ? LOG_ERROR : LOG_WARN, "node.disk_space",
              LOG_S("state", names[state]), LOG_S("before", names[before]),
              LOG_S("path", space->paths[space->found_path]),
              LOG_N("free_bytes", space->found_bytes), LOG_N("free_min", space->options.free_min),
              LOG_N("log_has_room", space->found_room));
}

static void on_done(uv_work_t *work, int status)
{
    struct space *space = CONTAINER_OF(work, struct space, work);
    enum space_state before = space_state(space);
    uint64_t now_ms = loop_now_ms(space->options.loop);

    CHECK(status == 0);
    space->looking = false;
    if (space->found_room)
        space->log_room_ms = now_ms;
    enum space_state disk = space_next((enum space_state)atomic_load(&space->disk),
                                       space->found_bytes, space->options.free_min);
    bool log_full = now_ms - space->log_room_ms >= SPACE_LOG_MS_MAX;

    say_why(space, disk);
    atomic_store(&space->free_bytes, space->found_bytes);
    atomic_store(&space->disk, (int)disk);
    atomic_store(&space->state, (int)(log_full ? SPACE_FULL : disk));
    tell(space, before);
}

static void on_timer(void *user)
{
    struct space *space = user;

    if (space->looking)
        return;
    space->looking = true;
    CHECK(uv_queue_work(loop_uv(space->options.loop), &space->work, on_work, on_done) == 0);
}

struct space *space_new(const struct space_options *options)
{
    struct space *space = mem_zalloc(sizeof *space);

    space->options = *options;
    space->paths[0] = strdup(options->log_path);
    space->paths[1] = strdup(options->db_path);
    CHECK(space->paths[0] != NULL && space->paths[1] != NULL);
    space->log_room_ms = loop_now_ms(options->loop);
    atomic_init(&space->disk, SPACE_OK);
    atomic_init(&space->state, SPACE_OK);
    atomic_init(&space->free_bytes, UINT64_MAX);
    CHECK(pthread_mutex_init(&space->lock, NULL) == 0);
    loop_timer_init(&space->timer, options->loop, on_timer, space);
    loop_timer_start_repeating(&space->timer, SPACE_PERIOD_MS);
    return space;
}

static bool look_is_over(void *user)
{
    const struct space *space = user;

    return !space->looking;
}

void space_free(struct space *space)
{
    if (space == NULL)
        return;
    loop_timer_stop(&space->timer);
    CHECK(loop_run_until(space->options.loop, look_is_over, space, FREE_MS_MAX));
    pthread_mutex_destroy(&space->lock);
    free(space->paths[0]);
    free(space->paths[1]);
    free(space);
}

enum space_state space_state(const struct space *space)
{
    return space == NULL ? SPACE_OK : (enum space_state)atomic_load(&space->state);
}

bool space_disk_full(const struct space *space)
{
    return space != NULL && atomic_load(&space->disk) == SPACE_FULL;
}

void space_why(struct space *space, char ret_text[SHARD_FULL_BYTES])
{
    pthread_mutex_lock(&space->lock);
    memcpy(ret_text, space->why, sizeof space->why);
    pthread_mutex_unlock(&space->lock);
}

uint64_t space_free_bytes(const struct space *space)
{
    return space == NULL ? 0 : atomic_load(&space->free_bytes);
}
