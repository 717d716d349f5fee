#include "node/store/log_segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "node/store/log_format.h"
#include "runtime/base/check.h"

#define NAME_BYTES   32u
#define CHUNK_BYTES  (256u * 1024u)
#define MISSING_BYTE 0xa5
#define MAKING_NAME  "making.tmp"
/* Dead segments are kept a little beyond the spares, else a new one would be made in the moment
 * before an old one dies, and none ever used again. */
#define KEPT_EXTRA 3u

uint8_t *log_block_alloc(size_t size_bytes)
{
    void *memory = NULL;

    CHECK(size_bytes % BLOCK_BYTES == 0);
    CHECK(posix_memalign(&memory, BLOCK_BYTES, size_bytes) == 0);
    return memory;
}

static void segment_name(uint32_t number, char ret_name[NAME_BYTES])
{
    snprintf(ret_name, NAME_BYTES, "%010u.seg", number);
}

/* ---- lists -------------------------------------------------------------------------------- */

static void list_push(struct log_segment_list *list, struct log_segment *segment)
{
    segment->next = NULL;
    if (list->last != NULL)
        list->last->next = segment;
    else
        list->first = segment;
    list->last = segment;
    list->count++;
}

static struct log_segment *list_pop(struct log_segment_list *list)
{
    struct log_segment *segment = list->first;

    if (segment == NULL)
        return NULL;
    list->first = segment->next;
    if (list->first == NULL)
        list->last = NULL;
    list->count--;
    segment->next = NULL;
    return segment;
}

static void segment_unref(struct log_segment *segment)
{
    if (--segment->refs > 0)
        return;
    close(segment->fd);
    free(segment);
}

/* ---- files -------------------------------------------------------------------------------- */

static void log_failure(const struct log_segments *segments, const char *event, const char *name)
{
    log_event(segments->config.log, LOG_ERROR, event, LOG_S("directory", segments->directory),
              LOG_S("file", name), LOG_S("error", strerror(errno)));
}

/* O_DIRECT where the file system has it; once refused, never asked for again. */
static int open_file(struct log_segments *segments, const char *name, int flags)
{
    if (segments->direct_io) {
        int fd = openat(segments->dir_fd, name, flags | O_CLOEXEC | O_DIRECT, 0600);

        if (fd >= 0 || errno != EINVAL)
            return fd;
        segments->direct_io = false;
        log_event(segments->config.log, LOG_WARN, "log.no_direct_io",
                  LOG_S("directory", segments->directory));
    }
    return openat(segments->dir_fd, name, flags | O_CLOEXEC, 0600);
}

static struct log_segment *segment_new(uint32_t number, int fd)
{
    struct log_segment *segment = mem_alloc(sizeof *segment);

    *segment = (struct log_segment){ .number = number, .refs = 1, .fd = fd };
    return segment;
}

err log_segment_read(const struct log_segment *segment, uint32_t offset, uint8_t *out,
                     uint32_t size)
{
    uint32_t got = 0;

    while (got < size) {
        ssize_t n = pread(segment->fd, out + got, size - got, (off_t)offset + got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ERR_IO;
        if (n == 0)
            break;
        got += (uint32_t)n;
    }
    memset(out + got, MISSING_BYTE, size - got);
    return ERR_OK;
}

static bool write_all(int fd, const uint8_t *bytes, uint32_t size, off_t offset)
{
    while (size > 0) {
        ssize_t n = pwrite(fd, bytes, size, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        size -= (uint32_t)n;
        offset += n;
    }
    return true;
}

void log_segment_write(const struct log_segments *segments, const struct log_segment *segment,
                       uint32_t offset, const uint8_t *bytes, uint32_t size)
{
    char name[NAME_BYTES];

    CHECK(offset % BLOCK_BYTES == 0 && size % BLOCK_BYTES == 0);
    CHECK(size <= segments->config.segment_bytes - offset);
    if (write_all(segment->fd, bytes, size, (off_t)offset))
        return;
    segment_name(segment->number, name);
    log_failure(segments, "log.write_failed", name);
    abort();
}

void log_segment_sync(const struct log_segments *segments, const struct log_segment *segment)
{
    char name[NAME_BYTES];

    if (fdatasync(segment->fd) == 0)
        return;
    /* What the disk holds is unknown now, and a second fdatasync may say 0 all the same. */
    segment_name(segment->number, name);
    log_failure(segments, "log.sync_failed", name);
    abort();
}

static bool fill_with_zeros(const struct log_segments *segments, int fd)
{
    uint8_t *zeros = log_block_alloc(CHUNK_BYTES);
    bool ok = true;

    memset(zeros, 0, CHUNK_BYTES);
    for (uint32_t at = 0; at < segments->config.segment_bytes && ok; at += CHUNK_BYTES) {
        uint32_t left = segments->config.segment_bytes - at;

        ok = write_all(fd, zeros, left < CHUNK_BYTES ? left : CHUNK_BYTES, (off_t)at);
    }
    free(zeros);
    return ok && fsync(fd) == 0;
}

/* Zeros up to the last free block would take the room of the database's next write, each time that
 * a spare is tried: another segment must fit beside it. Not known: it is tried. */
static bool has_room(const struct log_segments *segments)
{
    struct statvfs disk;

    return fstatvfs(segments->dir_fd, &disk) != 0 ||
           (uint64_t)disk.f_bavail * disk.f_frsize >= 2ull * segments->config.segment_bytes;
}

/* NULL, errno set, nothing left behind. */
static struct log_segment *segment_make(struct log_segments *segments, uint32_t number)
{
    char name[NAME_BYTES];

    if (!has_room(segments)) {
        errno = ENOSPC;
        return NULL;
    }
    int fd = open_file(segments, MAKING_NAME, O_RDWR | O_CREAT | O_TRUNC);
    if (fd < 0)
        return NULL;
    segment_name(number, name);
    if (fill_with_zeros(segments, fd) &&
        renameat(segments->dir_fd, MAKING_NAME, segments->dir_fd, name) == 0 &&
        fsync(segments->dir_fd) == 0)
        return segment_new(number, fd);

    int failure = errno;
    close(fd);
    unlinkat(segments->dir_fd, MAKING_NAME, 0);
    errno = failure;
    return NULL;
}

/* ---- opening ------------------------------------------------------------------------------ */

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Numbers of the files there, ascending. ERR_IO: errno is set. */
static err list_numbers(struct log_segments *segments, uint32_t **ret_numbers, uint32_t *ret_count)
{
    int fd = openat(segments->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    uint32_t *numbers = NULL;
    uint32_t count = 0;

    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return ERR_IO;
    }
    for (struct dirent *item = readdir(dir); item != NULL; item = readdir(dir)) {
        char name[NAME_BYTES];
        uint32_t number = (uint32_t)strtoul(item->d_name, NULL, 10);

        segment_name(number, name);
        if (number == 0 || strcmp(name, item->d_name) != 0)
            continue;
        numbers = mem_realloc(numbers, (count + 1) * sizeof *numbers);
        numbers[count++] = number;
    }
    closedir(dir);
    if (count > 0)
        qsort(numbers, count, sizeof *numbers, compare_numbers);
    *ret_numbers = numbers;
    *ret_count = count;
    return ERR_OK;
}

static err open_existing(struct log_segments *segments)
{
    uint32_t *numbers = NULL;
    uint32_t count = 0;
    err e = list_numbers(segments, &numbers, &count);

    if (e != ERR_OK)
        log_failure(segments, "log.open_failed", ".");
    for (uint32_t i = 0; i < count && e == ERR_OK; i++) {
        char name[NAME_BYTES];

        segment_name(numbers[i], name);
        int fd = open_file(segments, name, O_RDWR);
        if (fd < 0) {
            log_failure(segments, "log.open_failed", name);
            e = ERR_IO;
            break;
        }
        list_push(&segments->used, segment_new(numbers[i], fd));
        segments->next_number = numbers[i] + 1;
    }
    free(numbers);
    return e;
}

err log_segments_init(struct log_segments *segments, const struct log_segments_config *config)
{
    *segments = (struct log_segments){
        .config = *config,
        .directory = strdup(config->directory),
        .direct_io = config->direct_io,
        .next_number = 1,
    };
    CHECK(segments->directory != NULL);
    CHECK(pthread_mutex_init(&segments->lock, NULL) == 0);
    CHECK(pthread_cond_init(&segments->changed, NULL) == 0);
    segments->dir_fd = open(config->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (segments->dir_fd < 0) {
        log_failure(segments, "log.open_failed", ".");
        return ERR_IO;
    }
    unlinkat(segments->dir_fd, MAKING_NAME, 0);
    return open_existing(segments);
}

static void list_deinit(struct log_segment_list *list)
{
    for (struct log_segment *s = list_pop(list); s != NULL; s = list_pop(list)) {
        CHECK(s->refs == 1);
        segment_unref(s);
    }
}

void log_segments_deinit(struct log_segments *segments)
{
    list_deinit(&segments->used);
    list_deinit(&segments->ready);
    list_deinit(&segments->dead);
    if (segments->dir_fd >= 0)
        close(segments->dir_fd);
    pthread_cond_destroy(&segments->changed);
    pthread_mutex_destroy(&segments->lock);
    free(segments->directory);
}

err log_segments_settle(struct log_segments *segments, struct log_segment *tail,
                        struct log_segment **ret_active)
{
    struct log_segment_list all = segments->used;
    bool after = false;

    segments->used = (struct log_segment_list){ 0 };
    for (struct log_segment *s = list_pop(&all); s != NULL; s = list_pop(&all)) {
        list_push(after ? &segments->ready : &segments->used, s);
        after = after || s == tail;
    }
    if (tail == NULL) {
        CHECK(segments->used.count == 0);
        tail = segment_make(segments, segments->next_number);
        if (tail == NULL) {
            log_failure(segments, "log.segment_failed", MAKING_NAME);
            return ERR_IO;
        }
        segments->next_number++;
        list_push(&segments->used, tail);
    }
    *ret_active = tail;
    return ERR_OK;
}

/* ---- the keeper --------------------------------------------------------------------------- */

static uint64_t bytes_total(const struct log_segments *segments)
{
    uint64_t count = (uint64_t)segments->used.count + segments->ready.count + segments->dead.count +
                     segments->being_made;

    return count * segments->config.segment_bytes;
}

/* Called with the lock held; lets go of it during I/O. NULL: errno is set. */
static struct log_segment *keeper_make(struct log_segments *segments)
{
    uint32_t number = segments->next_number;

    segments->being_made = 1;
    pthread_mutex_unlock(&segments->lock);
    struct log_segment *made = segment_make(segments, number);
    int failure = errno;
    pthread_mutex_lock(&segments->lock);
    segments->being_made = 0;
    if (made != NULL)
        segments->next_number++;
    errno = failure;
    return made;
}

/* What a crash leaves of a name is unknown now, and a second fsync may say 0 all the same. */
static void sync_names(const struct log_segments *segments, const char *name)
{
    if (fsync(segments->dir_fd) == 0)
        return;
    log_failure(segments, "log.sync_failed", name);
    abort();
}

static bool file_rename_or_remove(const struct log_segments *segments, const char *from,
                                  const char *to)
{
    int failed = to != NULL ? renameat(segments->dir_fd, from, segments->dir_fd, to)
                            : unlinkat(segments->dir_fd, from, 0);

    if (failed == 0)
        sync_names(segments, from);
    return failed == 0;
}

/* The oldest dead segment gets the next number, or goes when there are enough. False: it stays, and
 * no later one passes it. A start that found records of it behind a gap would take all shards for
 * damaged. Called with the lock held; lets go of it during I/O. */
static bool keeper_recycle(struct log_segments *segments, struct log_segment **ret_made)
{
    struct log_segment *dead = segments->dead.first;
    bool keep = segments->ready.count < segments->config.spare_count + KEPT_EXTRA;
    char from[NAME_BYTES];
    char to[NAME_BYTES];

    segment_name(dead->number, from);
    segment_name(segments->next_number, to);
    pthread_mutex_unlock(&segments->lock);
    bool ok = file_rename_or_remove(segments, from, keep ? to : NULL);
    if (!ok && !segments->stuck)
        log_failure(segments, "log.recycle_failed", from);
    pthread_mutex_lock(&segments->lock);
    segments->stuck = !ok;
    if (!ok)
        return false;
    CHECK(list_pop(&segments->dead) == dead);
    if (keep) {
        dead->number = segments->next_number++;
        segments->recycled++;
        *ret_made = dead;
    } else {
        segment_unref(dead);
    }
    return true;
}

static void keeper_report_low(struct log_segments *segments, const char *why)
{
    bool low = segments->ready.count == 0;

    if (low && !segments->low)
        log_event(segments->config.log, LOG_ERROR, "log.space_low",
                  LOG_S("directory", segments->directory), LOG_S("why", why),
                  LOG_N("bytes", bytes_total(segments)),
                  LOG_N("bytes_max", segments->config.bytes_max));
    segments->low = low;
}

static void keeper_wait(struct log_segments *segments, bool again_soon)
{
    struct timespec until;

    if (!again_soon) {
        pthread_cond_wait(&segments->changed, &segments->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    pthread_cond_timedwait(&segments->changed, &segments->lock, &until);
}

/* NULL: none is needed, or none can be made; *ret_again_soon: since that failed. */
static struct log_segment *keeper_make_spare(struct log_segments *segments, bool *ret_again_soon)
{
    if (segments->ready.count >= segments->config.spare_count)
        return NULL;
    if (bytes_total(segments) + segments->config.segment_bytes > segments->config.bytes_max) {
        keeper_report_low(segments, "bytes_max");
        return NULL;
    }
    struct log_segment *made = keeper_make(segments);
    if (made == NULL) {
        keeper_report_low(segments, strerror(errno));
        *ret_again_soon = true;
    }
    return made;
}

/* One piece of work; false when there is nothing to do, *ret_again_soon: since it failed. */
static bool keeper_step(struct log_segments *segments, bool *ret_again_soon)
{
    struct log_segment *made = NULL;
    bool dead = segments->dead.count > 0;
    bool recycled = dead && keeper_recycle(segments, &made);

    *ret_again_soon = dead && !recycled;
    if (!recycled)
        made = keeper_make_spare(segments, ret_again_soon);
    if (made == NULL)
        return recycled;
    list_push(&segments->ready, made);
    segments->low = false;
    pthread_mutex_unlock(&segments->lock);
    segments->config.ready(segments->config.user);
    pthread_mutex_lock(&segments->lock);
    return true;
}

static void *keeper_run(void *context)
{
    struct log_segments *segments = context;

    pthread_mutex_lock(&segments->lock);
    while (!segments->stopping) {
        bool again_soon;

        if (!keeper_step(segments, &again_soon) && !segments->stopping)
            keeper_wait(segments, again_soon);
    }
    pthread_mutex_unlock(&segments->lock);
    return NULL;
}

void log_segments_start(struct log_segments *segments)
{
    CHECK(!segments->started);
    CHECK(pthread_create(&segments->keeper, NULL, keeper_run, segments) == 0);
    segments->started = true;
}

void log_segments_stop(struct log_segments *segments)
{
    if (!segments->started)
        return;
    pthread_mutex_lock(&segments->lock);
    segments->stopping = true;
    pthread_cond_signal(&segments->changed);
    pthread_mutex_unlock(&segments->lock);
    CHECK(pthread_join(segments->keeper, NULL) == 0);
    segments->started = false;
}

/* ---- the writer's and the readers' side --------------------------------------------------- */

struct log_segment *log_segments_take(struct log_segments *segments)
{
    pthread_mutex_lock(&segments->lock);
    struct log_segment *segment = list_pop(&segments->ready);
    if (segment != NULL)
        list_push(&segments->used, segment);
    pthread_cond_signal(&segments->changed);
    pthread_mutex_unlock(&segments->lock);
    return segment;
}

void log_segments_retire_oldest(struct log_segments *segments)
{
    pthread_mutex_lock(&segments->lock);
    CHECK(segments->used.count > 1);
    list_push(&segments->dead, list_pop(&segments->used));
    pthread_cond_signal(&segments->changed);
    pthread_mutex_unlock(&segments->lock);
}

bool log_segments_ready(struct log_segments *segments)
{
    pthread_mutex_lock(&segments->lock);
    bool ready = segments->ready.count > 0;
    pthread_mutex_unlock(&segments->lock);
    return ready;
}

bool log_segments_low(struct log_segments *segments)
{
    pthread_mutex_lock(&segments->lock);
    bool low = segments->low;
    pthread_mutex_unlock(&segments->lock);
    return low;
}

struct log_segment *log_segments_acquire(struct log_segments *segments, uint32_t number)
{
    struct log_segment *found = NULL;

    pthread_mutex_lock(&segments->lock);
    for (struct log_segment *s = segments->used.first; s != NULL; s = s->next) {
        if (s->number == number)
            found = s;
    }
    if (found != NULL)
        found->refs++;
    pthread_mutex_unlock(&segments->lock);
    return found;
}

struct log_segment *log_segments_acquire_sealed(struct log_segments *segments, uint32_t from,
                                                uint32_t *ret_number)
{
    pthread_mutex_lock(&segments->lock);
    struct log_segment *found = segments->used.first;
    while (found != NULL && found->number < from)
        found = found->next;
    if (found == segments->used.last)
        found = NULL;
    if (found != NULL) {
        found->refs++;
        *ret_number = found->number;
    }
    pthread_mutex_unlock(&segments->lock);
    return found;
}

void log_segment_release(struct log_segments *segments, struct log_segment *segment)
{
    pthread_mutex_lock(&segments->lock);
    segment_unref(segment);
    pthread_mutex_unlock(&segments->lock);
}
