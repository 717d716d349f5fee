/*
 * log_segment: the segment files of a log and the thread that keeps spare ones ready. Every file
 * is written in full (zeros, or the dead records of an earlier use) and synced before it gets
 * its name, so that the writer only ever overwrites. A failed write or sync of records stops the
 * process (DESIGN section 4); a failure to make a spare is reported and tried again.
 *
 * Names are <number>.seg; the writer uses them in the order of their numbers. Segments die in
 * that order too: a TRUNCATE thus never goes before the entries that it removed.
 */
#ifndef NODE_STORE_LOG_SEGMENT_H
#define NODE_STORE_LOG_SEGMENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/base/log.h"

struct log_segment {
    struct log_segment *next; /* Ascending numbers. */
    uint32_t number;
    uint32_t refs;
    int fd;
};

struct log_segments_config {
    const char *directory;
    uint32_t segment_bytes;
    uint32_t spare_count;
    uint64_t bytes_max;
    bool direct_io;
    const struct log *log;
    void (*ready)(void *user); /* A spare became ready; any thread. */
    void *user;
};

struct log_segment_list {
    struct log_segment *first, *last;
    uint32_t count;
};

struct log_segments {
    struct log_segments_config config;
    char *directory;
    int dir_fd;
    bool direct_io; /* The file system accepted O_DIRECT. */
    pthread_t keeper;
    bool started;
    pthread_mutex_t lock; /* Of everything below. */
    pthread_cond_t changed;
    struct log_segment_list used; /* The last one is being written. */
    struct log_segment_list ready;
    struct log_segment_list dead; /* To be used again, or removed. */
    uint32_t being_made;
    uint32_t next_number;
    uint64_t recycled;
    bool low;   /* None ready, and none can be made. */
    bool stuck; /* The oldest dead one could not be renamed or removed. The keeper's. */
    bool stopping;
};

/* Opens what is in the directory, all of it as `used`. ERR_IO: logged. deinit in either case. */
NODISCARD err log_segments_init(struct log_segments *segments,
                                const struct log_segments_config *config);
void log_segments_deinit(struct log_segments *segments);
/* After recovery: those after `tail` become ready; a new log gets its first one. ERR_IO: logged. */
NODISCARD err log_segments_settle(struct log_segments *segments, struct log_segment *tail,
                                  struct log_segment **ret_active);
void log_segments_start(struct log_segments *segments);
void log_segments_stop(struct log_segments *segments);

/* The writer's next segment; NULL when none is ready. */
struct log_segment *log_segments_take(struct log_segments *segments);
/* The oldest used one has no live records. Never the one being written. */
void log_segments_retire_oldest(struct log_segments *segments);
bool log_segments_ready(struct log_segments *segments);
bool log_segments_low(struct log_segments *segments);

/* NULL when not in use any more. Give back with log_segment_release. */
struct log_segment *log_segments_acquire(struct log_segments *segments, uint32_t number);
/* The first one numbered `from` or above that the writer is done with; NULL: none is. *ret_number
 * is its number now: another one once it is used again. Release it, too. */
struct log_segment *log_segments_acquire_sealed(struct log_segments *segments, uint32_t from,
                                                uint32_t *ret_number);
void log_segment_release(struct log_segments *segments, struct log_segment *segment);

/* Aligned to BLOCK_BYTES all three. What the file lacks at its end is filled with a pattern that
 * no checksum matches. ERR_IO: the disk failed. */
NODISCARD err log_segment_read(const struct log_segment *segment, uint32_t offset, uint8_t *out,
                               uint32_t size);
/* Aligned. Abort the process on any error. */
void log_segment_write(const struct log_segments *segments, const struct log_segment *segment,
                       uint32_t offset, const uint8_t *bytes, uint32_t size);
void log_segment_sync(const struct log_segments *segments, const struct log_segment *segment);
/* Aligned memory for the above; free() it. */
uint8_t *log_block_alloc(size_t size_bytes);

#endif
