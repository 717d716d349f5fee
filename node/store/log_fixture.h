/*
 * log_fixture: a node_log in a directory of its own below /tmp, and a model of what must be in it.
 * For tests and benches only.
 */
#ifndef NODE_STORE_LOG_FIXTURE_H
#define NODE_STORE_LOG_FIXTURE_H

#include <semaphore.h>
#include <stdatomic.h>

#include "node/store/node_log_private.h"
#include "runtime/base/test_directory.h"

#define FIXTURE_SHARDS      8u
#define FIXTURE_ENTRIES_MAX 65536u
#define FIXTURE_REPLICA     7001u

struct fixture_shard {
    uint64_t last_index;
    struct hash128 last_hash;
    struct promise promise;
    uint64_t commit_index;
    struct hash128 hashes[FIXTURE_ENTRIES_MAX]; /* By index. */
};

struct fixture {
    char directory[TEST_DIRECTORY_BYTES];
    struct node_log_config config;
    struct log sink;
    _Atomic uint32_t errors_logged;
    struct node_log *log;
    struct node_log_client client;
    sem_t done;
    struct fixture_shard *shards;
    uint64_t applied[FIXTURE_SHARDS]; /* What the scan keeps entries above, at every second open. */
    uint32_t opens;
};

void fixture_init(struct fixture *fixture);
/* Removes the directory. The log must be closed. */
void fixture_deinit(struct fixture *fixture);
void fixture_open(struct fixture *fixture);
void fixture_close(struct fixture *fixture);

/* Each makes one request and waits until it is durable. */
void fixture_append(struct fixture *fixture, uint32_t shard, uint32_t count, uint32_t body_bytes);
void fixture_write(struct fixture *fixture, uint32_t shard, const struct rep_write *write);
void fixture_promise(struct fixture *fixture, uint32_t shard, uint64_t epoch);
void fixture_truncate(struct fixture *fixture, uint32_t shard, uint64_t keep_index);
void fixture_commit(struct fixture *fixture, uint32_t shard, uint64_t commit_index);
void fixture_reset(struct fixture *fixture, uint32_t shard);

/* The entry that would follow in the model; does not change the model. */
struct entry *fixture_entry(const struct fixture *fixture, uint32_t shard, uint32_t body_bytes);
/* Takes an entry into the model. */
void fixture_note(struct fixture *fixture, uint32_t shard, const struct entry *entry);

/* True when the shard is undamaged and all of (applied, last] is there and as in the model. */
bool fixture_matches(struct fixture *fixture, struct node_log *log, uint32_t shard,
                     uint64_t applied_index);
/* Asserts it. */
void fixture_expect(struct fixture *fixture, uint32_t shard, uint64_t applied_index);

/* A segment's file. */
void fixture_segment_path(const struct fixture *fixture, uint32_t number, char ret_path[128]);
void fixture_read_file(const char *path, uint8_t *out, size_t size);
void fixture_write_file(const char *path, const uint8_t *bytes, size_t size);

#endif
