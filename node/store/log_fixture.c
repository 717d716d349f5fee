#include "node/store/log_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/check.h"

static void count_errors(void *sink, enum log_level level, const char *event,
                         const struct log_field *fields)
{
    struct fixture *fixture = sink;

    (void)event;
    (void)fields;
    if (level == LOG_ERROR)
        atomic_fetch_add(&fixture->errors_logged, 1);
    if (getenv("FIXTURE_VERBOSE") == NULL)
        return;
    fprintf(stderr, "%s", event);
    for (; fields->key != NULL; fields++)
        fprintf(stderr, " %s=%s%llu", fields->key, fields->text ? fields->text : "",
                (unsigned long long)fields->number);
    fprintf(stderr, "\n");
}

static void on_done(struct node_log_client *client, struct node_log_request *first)
{
    struct fixture *fixture = client->user;

    while (first != NULL) {
        struct node_log_request *next = first->next;

        CHECK(sem_post(&fixture->done) == 0); /* The request may be gone now. */
        first = next;
    }
}

void fixture_init(struct fixture *fixture)
{
    *fixture = (struct fixture){ .config = node_log_config_default() };
    test_directory_make("log", fixture->directory);
    CHECK(sem_init(&fixture->done, 0, 0) == 0);
    fixture->sink = (struct log){ .write = count_errors, .sink = fixture, .level_min = LOG_DEBUG };
    fixture->client = (struct node_log_client){ .done = on_done, .user = fixture };
    fixture->shards = mem_zalloc(FIXTURE_SHARDS * sizeof *fixture->shards);
    fixture->config.directory = fixture->directory;
    fixture->config.replica_id = FIXTURE_REPLICA;
    fixture->config.shard_count = FIXTURE_SHARDS;
    fixture->config.segment_bytes = 4u * 1024u * 1024u;
    fixture->config.bytes_max = 64u * 1024u * 1024u;
    fixture->config.spare_segments = 1;
    fixture->config.log = &fixture->sink;
}

void fixture_deinit(struct fixture *fixture)
{
    CHECK(fixture->log == NULL);
    test_directory_remove(fixture->directory);
    sem_destroy(&fixture->done);
    free(fixture->shards);
}

void fixture_open(struct fixture *fixture)
{
    CHECK(fixture->log == NULL);
    fixture->config.applied_indexes = fixture->opens++ % 2 == 1 ? fixture->applied : NULL;
    CHECK(node_log_open(&fixture->config, &fixture->log) == ERR_OK);
}

void fixture_close(struct fixture *fixture)
{
    node_log_close(fixture->log);
    fixture->log = NULL;
}

/* ---- writing ------------------------------------------------------------------------------ */

static void submit_and_wait(struct fixture *fixture, struct node_log_request *request)
{
    request->client = &fixture->client;
    node_log_submit_list(fixture->log, request, request);
    while (sem_wait(&fixture->done) != 0)
        ;
}

struct entry *fixture_entry(const struct fixture *fixture, uint32_t shard, uint32_t body_bytes)
{
    const struct fixture_shard *model = &fixture->shards[shard];
    uint64_t index = model->last_index + 1;
    uint8_t *body = mem_alloc(body_bytes);

    for (uint32_t i = 0; i < body_bytes; i++)
        body[i] = (uint8_t)(index * 31 + i * 7 + shard);
    struct entry *entry =
        entry_new(ENTRY_OP,
                  &(struct entry_head){ .index = index,
                                        .dot = { .epoch = 1, .owner = 1, .counter = index },
                                        .owner_ms = 1000 + index,
                                        .prev_hash = model->last_hash },
                  (struct slice){ body, body_bytes });
    free(body);
    return entry;
}

void fixture_note(struct fixture *fixture, uint32_t shard, const struct entry *entry)
{
    struct fixture_shard *model = &fixture->shards[shard];

    CHECK(entry->index == model->last_index + 1 && entry->index < FIXTURE_ENTRIES_MAX);
    model->last_index = entry->index;
    model->last_hash = entry->hash;
    model->hashes[entry->index] = entry->hash;
    model->commit_index = entry->index - 1;
}

void fixture_append(struct fixture *fixture, uint32_t shard, uint32_t count, uint32_t body_bytes)
{
    struct rep_write *writes = mem_zalloc(count * sizeof *writes);

    for (uint32_t i = 0; i < count; i++) {
        writes[i].type = REP_WRITE_ENTRY;
        writes[i].entry = fixture_entry(fixture, shard, body_bytes);
        writes[i].commit_index = writes[i].entry->index - 1;
        fixture_note(fixture, shard, writes[i].entry);
    }
    submit_and_wait(fixture, &(struct node_log_request){ .type = NODE_LOG_WRITES,
                                                         .shard = shard,
                                                         .writes = writes,
                                                         .write_count = count });
    for (uint32_t i = 0; i < count; i++)
        entry_unref(writes[i].entry);
    free(writes);
}

void fixture_write(struct fixture *fixture, uint32_t shard, const struct rep_write *write)
{
    submit_and_wait(
        fixture, &(struct node_log_request){
                     .type = NODE_LOG_WRITES, .shard = shard, .writes = write, .write_count = 1 });
}

void fixture_promise(struct fixture *fixture, uint32_t shard, uint64_t epoch)
{
    struct promise promise = { .config = 3, .epoch = epoch, .owner = 9 };

    fixture->shards[shard].promise = promise;
    fixture_write(fixture, shard,
                  &(struct rep_write){ .type = REP_WRITE_PROMISE, .promise = promise });
}

void fixture_truncate(struct fixture *fixture, uint32_t shard, uint64_t keep_index)
{
    struct fixture_shard *model = &fixture->shards[shard];

    CHECK(keep_index <= model->last_index);
    model->last_index = keep_index;
    model->last_hash = model->hashes[keep_index];
    if (model->commit_index > keep_index)
        model->commit_index = keep_index;
    fixture_write(fixture, shard,
                  &(struct rep_write){ .type = REP_WRITE_TRUNCATE, .keep_index = keep_index });
}

void fixture_commit(struct fixture *fixture, uint32_t shard, uint64_t commit_index)
{
    fixture->shards[shard].commit_index = commit_index;
    submit_and_wait(fixture, &(struct node_log_request){ .type = NODE_LOG_COMMIT,
                                                         .shard = shard,
                                                         .commit_index = commit_index });
}

void fixture_reset(struct fixture *fixture, uint32_t shard)
{
    struct fixture_shard *model = &fixture->shards[shard];

    model->last_index = 0;
    model->last_hash = (struct hash128){ 0 };
    model->commit_index = 0;
    submit_and_wait(fixture, &(struct node_log_request){ .type = NODE_LOG_RESET, .shard = shard });
}

/* ---- checking ----------------------------------------------------------------------------- */

static bool entries_match(const struct fixture_shard *model, const struct rep_image *image)
{
    if (image->applied_index + image->entry_count != model->last_index)
        return false;
    for (uint32_t i = 0; i < image->entry_count; i++) {
        const struct entry *entry = image->entries[i];

        if (entry->index != image->applied_index + 1 + i ||
            !hash128_equal(entry->hash, model->hashes[entry->index]))
            return false;
    }
    return true;
}

bool fixture_matches(struct fixture *fixture, struct node_log *log, uint32_t shard,
                     uint64_t applied_index)
{
    const struct fixture_shard *model = &fixture->shards[shard];
    struct rep_image image = { 0 };
    err e = node_log_recover_shard(log, shard, applied_index, &image);
    uint64_t commit = model->commit_index > applied_index ? model->commit_index : applied_index;
    bool same = e == ERR_OK && entries_match(model, &image) && image.commit_index == commit &&
                image.promise.config == model->promise.config &&
                image.promise.epoch == model->promise.epoch &&
                image.promise.owner == model->promise.owner;

    node_log_image_deinit(&image);
    return same;
}

void fixture_expect(struct fixture *fixture, uint32_t shard, uint64_t applied_index)
{
    CHECK(fixture_matches(fixture, fixture->log, shard, applied_index));
}

void fixture_segment_path(const struct fixture *fixture, uint32_t number, char ret_path[128])
{
    snprintf(ret_path, 128, "%s/%010u.seg", fixture->directory, number);
}

void fixture_read_file(const char *path, uint8_t *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK(read(fd, out, size) == (ssize_t)size);
    close(fd);
}

void fixture_write_file(const char *path, const uint8_t *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}
