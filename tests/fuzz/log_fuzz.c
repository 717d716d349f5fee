/*
 * log_fuzz: segment files of a node's log. The scan at start must say of any bytes whatever where
 * the log ends and what is damaged, and give only entries whose hashes are right. The first byte
 * says which checksums are made right before the scan, so that the fuzzer gets behind them:
 * 1 those of sectors, 2 those of records too, 4 the second half is a segment of its own.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/store/node_log_private.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "tests/fuzz/fuzz.h"

#define SEGMENT_BYTES 32768u
#define SHARDS        4u
#define REPLICA       7001u
#define MULTIPLIER    0x9e3779b97f4a7c15ull /* As in log_format.c; seed_check notices a change. */

enum mend { MEND_SECTORS = 1, MEND_RECORDS = 2, TWO_SEGMENTS = 4 };

struct target {
    char directory[64];
    int dir_fd;
};

static void on_event(void *sink, enum log_level level, const char *event,
                     const struct log_field *fields)
{
    (void)sink;
    (void)level;
    CHECK(event != NULL && fields != NULL);
}

static void remove_directory(void)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/dev/shm/holdfast-fuzz-%d", (int)getpid());
    DIR *directory = opendir(path);
    if (directory == NULL)
        return;
    for (struct dirent *item = readdir(directory); item != NULL; item = readdir(directory))
        (void)unlinkat(dirfd(directory), item->d_name, 0);
    closedir(directory);
    (void)rmdir(path);
}

/* In memory; made once, removed when the process ends in order. */
static struct target target_open(void)
{
    struct target target;

    (void)snprintf(target.directory, sizeof target.directory, "/dev/shm/holdfast-fuzz-%d",
                   (int)getpid());
    if (mkdir(target.directory, 0700) == 0)
        CHECK(atexit(remove_directory) == 0);
    target.dir_fd = open(target.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(target.dir_fd >= 0);
    return target;
}

static void put_segment(const struct target *target, unsigned number, const uint8_t *bytes)
{
    char name[32];

    (void)snprintf(name, sizeof name, "%010u.seg", number);
    int fd = openat(target->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, bytes, SEGMENT_BYTES) == SEGMENT_BYTES && close(fd) == 0);
}

/* ---- checksums ---- */

static void mend_sector(uint8_t *sector)
{
    uint64_t hash = hash_u64((struct slice){ sector, SECTOR_BYTES - 4 });

    if (sector[0] != 0 || memcmp(sector, sector + 1, SECTOR_BYTES - 1) != 0)
        store_u32(sector + SECTOR_BYTES - 4, (uint32_t)(((hash ^ REPLICA) * MULTIPLIER) >> 32));
}

static void stream_put(uint8_t *bytes, uint32_t offset, const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[stream_to_byte(offset + (uint32_t)i)] = from[i];
}

/* The records of the batch that begins here, as far as they stay inside `left`. */
static void mend_records(uint8_t *batch, uint32_t left)
{
    struct batch_header header;
    uint8_t head[RECORD_HEADER_BYTES];
    uint32_t limit = left / SECTOR_BYTES * SECTOR_STREAM_BYTES;

    if (batch_header_decode(batch, &header) != ERR_OK)
        return;
    uint32_t at = BATCH_HEADER_BYTES + 2 * header.record_count;
    for (uint32_t i = 0; i < header.record_count && at + RECORD_HEADER_BYTES <= limit; i++) {
        uint32_t size;
        stream_copy(batch, stream_to_byte(at), head, sizeof head);
        if (record_payload_size(head, &size) != ERR_OK || size > limit - at - RECORD_HEADER_BYTES)
            return;
        uint8_t *payload = mem_alloc(size + 1);
        if (size > 0)
            stream_copy(batch, stream_to_byte(at + RECORD_HEADER_BYTES), payload, size);
        uint64_t a = hash_u64((struct slice){ head + 4, RECORD_HEADER_BYTES - 4 });
        uint64_t b = hash_u64((struct slice){ payload, size });
        store_u32(head, (uint32_t)(((a * MULTIPLIER) ^ b) >> 32));
        stream_put(batch, at, head, 4);
        free(payload);
        at += RECORD_HEADER_BYTES + size;
    }
}

static void mend(uint8_t *bytes, unsigned how)
{
    for (uint32_t at = 0; (how & MEND_RECORDS) != 0 && at < SEGMENT_BYTES; at += BLOCK_BYTES)
        mend_records(bytes + at, SEGMENT_BYTES - at);
    for (uint32_t at = 0; (how & MEND_SECTORS) != 0 && at < SEGMENT_BYTES; at += SECTOR_BYTES)
        mend_sector(bytes + at);
}

/* ---- the scan ---- */

static uint64_t check_shard(struct node_log *log, uint32_t shard)
{
    char text[NODE_LOG_TEXT_BYTES] = "";
    struct node_log_shard known;
    struct rep_image image = { 0 };

    node_log_shard_get(log, shard, &known);
    bool damaged = node_log_damage(log, shard, text);
    CHECK(damaged == known.damaged && damaged == (text[0] != 0));
    err e = node_log_recover_shard(log, shard, 0, &image);
    CHECK(e == ERR_OK || e == ERR_CORRUPT);
    for (uint32_t i = 0; i < image.entry_count; i++)
        CHECK(image.entries[i] != NULL && image.entries[i]->index > 0);
    uint32_t count = image.entry_count;
    node_log_image_deinit(&image);
    if (e == ERR_CORRUPT)
        CHECK(node_log_damage(log, shard, text));
    return count;
}

static uint64_t scan(const struct target *target)
{
    const struct log sink = { .write = on_event, .level_min = LOG_DEBUG };
    struct node_log_config config = node_log_config_default();
    struct log_tail tail = { 0 };
    struct node_log *log = NULL;
    uint64_t entries = 0;

    config.directory = target->directory;
    config.replica_id = REPLICA;
    config.shard_count = SHARDS;
    config.segment_bytes = SEGMENT_BYTES;
    config.direct_io = false;
    config.log = &sink;
    if (node_log_inspect(&config, &log, &tail) != ERR_OK)
        return 0;
    CHECK(tail.offset <= SEGMENT_BYTES && tail.last_sequence <= tail.sequence_max);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        entries += check_shard(log, shard);
    node_log_close(log);
    return entries;
}

static uint64_t run(struct slice input)
{
    struct target target = target_open();
    uint8_t *bytes = mem_zalloc(2 * SEGMENT_BYTES);
    unsigned how = input.data[0];
    size_t size = input.size - 1 < 2 * SEGMENT_BYTES ? input.size - 1 : 2 * SEGMENT_BYTES;
    size_t first = (how & TWO_SEGMENTS) != 0 ? size / 2 / SECTOR_BYTES * SECTOR_BYTES : size;

    if (first > SEGMENT_BYTES)
        first = SEGMENT_BYTES;
    memcpy(bytes, input.data + 1, first);
    mend(bytes, how);
    put_segment(&target, 1, bytes);
    if ((how & TWO_SEGMENTS) != 0) {
        size_t second = size - first < SEGMENT_BYTES ? size - first : SEGMENT_BYTES;
        memcpy(bytes + SEGMENT_BYTES, input.data + 1 + first, second);
        mend(bytes + SEGMENT_BYTES, how);
        put_segment(&target, 2, bytes + SEGMENT_BYTES);
    } else {
        (void)unlinkat(target.dir_fd, "0000000002.seg", 0);
    }
    uint64_t entries = scan(&target);
    free(bytes);
    CHECK(close(target.dir_fd) == 0);
    return entries;
}

void fuzz_one(struct slice input)
{
    if (input.size > 0)
        (void)run(input);
}

/* ---- seeds ---- */

static size_t put_batch(uint8_t *out, uint64_t sequence, struct record *records, uint32_t count)
{
    struct batch_header header = { .sequence = sequence,
                                   .prev_sequence = sequence - 1,
                                   .durable_sequence = sequence - 1 };

    return batch_encode(&header, records, count, REPLICA, out);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    uint8_t *bytes = mem_zalloc(SEGMENT_BYTES);
    uint8_t promise[PROMISE_BYTES] = { 1 };
    struct entry *first = entry_new(
        ENTRY_OP, &(struct entry_head){ .index = 1, .dot = { 1, 1, 1 }, .owner_ms = 1000 },
        SLICE_LITERAL("first"));
    struct entry *second =
        entry_new(ENTRY_OP,
                  &(struct entry_head){
                      .index = 2, .dot = { 1, 1, 2 }, .owner_ms = 1001, .prev_hash = first->hash },
                  SLICE_LITERAL("second"));
    struct record records[] = {
        { .type = RECORD_PROMISE, .shard = 2, .payload = { promise, sizeof promise } },
        { .type = RECORD_ENTRY, .shard = 2, .index = 1, .payload = first->encoded },
        { .type = RECORD_ENTRY,
          .shard = 2,
          .index = 2,
          .commit_index = 1,
          .payload = second->encoded },
        { .type = RECORD_COMMIT, .shard = 2, .commit_index = 2 },
        { .type = RECORD_TRUNCATE, .shard = 2, .index = 1 },
    };

    size_t size = put_batch(bytes + 1, 1, records, 3);
    size += put_batch(bytes + 1 + size, 2, records + 3, 1);
    for (uint8_t how = 0; how < 8; how++) {
        static const char *const names[] = { "as-is", "sectors",     "records",     "both",
                                             "two",   "two-sectors", "two-records", "two-both" };
        bytes[0] = how;
        struct slice seed = { bytes, size + 1 };
        if (how < TWO_SEGMENTS)
            CHECK(run(seed) == 2); /* The checksums made here are those that the log wants. */
        fuzz_seed_add(seeds, names[how], seed);
    }
    size += put_batch(bytes + 1 + size, 3, records + 4, 1);
    bytes[0] = MEND_SECTORS | MEND_RECORDS;
    fuzz_seed_add(seeds, "truncated", (struct slice){ bytes, size + 1 });
    fuzz_seed_add(seeds, "torn", (struct slice){ bytes, size - SECTOR_BYTES * 2 });
    entry_unref(first);
    entry_unref(second);
    free(bytes);
}
