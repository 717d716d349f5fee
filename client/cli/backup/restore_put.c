#include "client/cli/backup/restore_put.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/backup/shard_reader.h"
#include "client/backup/shard_writer.h"
#include "client/cli/console/answer.h"
#include "client/cli/backup/backup_link.h"
#include "client/cli/backup/restore_definitions.h"
#include "client/cli/backup/restore_documents.h"
#include "client/cli/console/clock.h"
#include "client/cli/console/output.h"
#include "runtime/base/check.h"

#define PART_BYTES     (256u * 1024u)
#define PART_BYTES_MAX 1000000u
/* What the old cluster gave out after the backup stays below, however long it went on. */
#define EPOCH_MARGIN   1000000u
#define RAISE_MS_MAX   120000u
#define RAISE_PAUSE_MS 100u

struct restore {
    struct backup_link link;
    const struct repository *repository;
    const struct manifest *manifest;
    struct backup_error why;
    uint64_t row_bytes;
    uint32_t empty, whole; /* Shards, as they were found. */
    /* By shard. */
    bool *is_empty;  /* It was found so: no attempt has begun. */
    bool *finished;  /* An earlier attempt has finished it, documents included. */
    uint64_t *parts; /* Of its rows, put by earlier attempts. */
};

/* Takes `request`. NULL: restore->why. */
static struct slice restore_id(const struct restore *restore)
{
    return (struct slice){ restore->manifest->checksum.bytes,
                           sizeof restore->manifest->checksum.bytes };
}

static json_t *shard_request(const struct restore *restore, uint32_t shard)
{
    return json_pack("{s:i, s:o}", "shard", shard, "restoreId", backup_text(restore_id(restore)));
}

/* ---- is it a new cluster? ---- */

/* An interrupted restore goes on, even if game servers came meanwhile. */
static bool check_servers(struct restore *restore)
{
    json_t *servers = NULL;

    if (restore->empty < restore->manifest->shard_count)
        return true;
    servers =
        backup_link_ask(&restore->link, &restore->why, "AdminService/ListServers", json_object());
    size_t count = json_array_size(json_object_get(servers, "servers"));
    if (servers == NULL)
        return false;
    json_decref(servers);
    if (count > 0)
        backup_why(&restore->why,
                   "%zu game servers are registered: only a new cluster can be restored", count);
    return count == 0;
}

static bool check_state(struct restore *restore, uint32_t shard, const json_t *state)
{
    const char *stands = json_string_value(json_object_get(state, "state"));
    struct buf id = { 0 };

    bool good = stands != NULL && backup_bytes(state, "restoreId", &id);
    bool own = slice_equal(buf_slice(&id), restore_id(restore));
    buf_deinit(&id);
    restore->is_empty[shard] = good && strcmp(stands, "empty") == 0;
    restore->empty += restore->is_empty[shard];
    restore->whole += good && own && strcmp(stands, "used") == 0;
    if (good && (own || strcmp(stands, "empty") == 0)) {
        if (answer_number(state, "applyVersion") >= restore->manifest->apply_version)
            return true;
        backup_why(&restore->why,
                   "the backup is of apply version %" PRIu32 ", the cluster's is lower",
                   restore->manifest->apply_version);
        return false;
    }
    backup_why(&restore->why, "shard %u is %s: only a new, empty cluster can be restored", shard,
               stands != NULL && strcmp(stands, "restoring") == 0
                   ? "being restored from another backup"
                   : "in use");
    return false;
}

static bool check_states(struct restore *restore)
{
    for (uint32_t i = 0; i < restore->manifest->shard_count; i++) {
        json_t *state =
            backup_link_ask(&restore->link, &restore->why, "BackupService/GetBackupState",
                            json_pack("{s:i}", "shard", i));
        bool good = state != NULL && check_state(restore, i, state);
        json_decref(state);
        if (!good)
            return false;
    }
    if (restore->whole < restore->manifest->shard_count)
        return true;
    backup_why(&restore->why, "this backup was restored here before: the cluster is in use");
    return false;
}

/* ---- policy ---- */

static bool has_currency(const json_t *list, const char *name)
{
    const json_t *currency;
    size_t i;

    json_array_foreach(list, i, currency)
    {
        const char *each = json_string_value(json_object_get(currency, "name"));
        if (each != NULL && strcmp(each, name) == 0)
            return true;
    }
    return false;
}

/* The backup's policy, and of the cluster's currencies those that it lacks. */
static json_t *policy_wanted(const struct manifest *manifest, const json_t *current)
{
    json_t *wanted =
        json_loadb((const char *)manifest->policy.data, manifest->policy.size, 0, NULL);
    json_t *currency;
    size_t i;

    if (!json_is_object(wanted)) {
        json_decref(wanted);
        wanted = json_object();
    }
    if (json_object_get(wanted, "currencies") == NULL)
        json_object_set_new(wanted, "currencies", json_array());
    json_t *list = json_object_get(wanted, "currencies");
    json_array_foreach(json_object_get(current, "currencies"), i, currency)
    {
        const char *name = json_string_value(json_object_get(currency, "name"));
        if (name != NULL && !has_currency(list, name))
            json_array_append(list, currency);
    }
    return wanted;
}

static bool set_policy(struct restore *restore, const json_t *current)
{
    json_t *wanted = policy_wanted(restore->manifest, current);

    /* It may stand already, by an earlier attempt that ended before every shard had it. */
    json_object_set_new(wanted, "version",
                        json_sprintf("%" PRIu64, answer_number(current, "version") + 1));
    json_t *answer = backup_link_ask(&restore->link, &restore->why, "AdminService/SetPolicy",
                                     json_pack("{s:O}", "policy", wanted));
    bool good = answer != NULL;

    json_decref(wanted);
    json_decref(answer);
    return good;
}

/* ---- above all that was given out ---- */

static bool has_risen(struct restore *restore, uint32_t shard, uint64_t generation, uint64_t epoch)
{
    json_t *state = backup_link_ask(&restore->link, &restore->why, "BackupService/GetBackupState",
                                    json_pack("{s:i}", "shard", shard));
    bool risen =
        answer_number(state, "generation") >= generation && answer_number(state, "epoch") > epoch;

    json_decref(state);
    return risen;
}

static bool raise_cluster(struct restore *restore)
{
    uint64_t end_ms = monotonic_ms() + RAISE_MS_MAX;
    json_t *answer = backup_link_ask(
        &restore->link, &restore->why, "BackupService/PrepareRestore",
        json_pack("{s:I, s:I}", "generation", (json_int_t)restore->manifest->generation, "epoch",
                  (json_int_t)(restore->manifest->epoch + EPOCH_MARGIN)));

    if (answer == NULL)
        return false;
    uint64_t generation = answer_number(answer, "generation");
    uint64_t epoch = answer_number(answer, "epochFloor");
    json_decref(answer);
    for (uint32_t i = 0; i < restore->manifest->shard_count;) {
        if (has_risen(restore, i, generation, epoch)) {
            i++;
        } else if (monotonic_ms() >= end_ms) {
            backup_why(&restore->why,
                       "shard %u has no owner of the new generation: is a "
                       "coordinator elected?",
                       i);
            return false;
        } else {
            sleep_ms(RAISE_PAUSE_MS);
        }
    }
    return true;
}

/* ---- rows ---- */

struct parts {
    struct restore *restore;
    uint32_t shard;
    uint64_t number; /* Of the next part. */
    uint64_t done;   /* Parts below it were put by an earlier attempt. */
    struct buf rows;
};

static bool part_put(struct parts *parts)
{
    if (parts->rows.size == 0)
        return true;
    if (parts->number < parts->done) {
        parts->number++;
        buf_clear(&parts->rows);
        return true;
    }
    json_t *request = shard_request(parts->restore, parts->shard);
    json_object_set_new(request, "part", json_integer((json_int_t)parts->number));
    json_object_set_new(request, "rows", backup_text(buf_slice(&parts->rows)));
    json_t *answer = backup_link_ask(&parts->restore->link, &parts->restore->why,
                                     "BackupService/RestoreRows", request);
    if (answer == NULL)
        return false;
    json_decref(answer);
    backup_link_pace(&parts->restore->link, parts->rows.size);
    parts->number++;
    buf_clear(&parts->rows);
    return true;
}

static bool rows_put(struct parts *parts, struct slice rows)
{
    struct reader reader = reader_from(rows);
    struct slice key, value;

    while (backup_row_next(&reader, &key, &value)) {
        size_t size = key.size + value.size + 8;
        if (size > PART_BYTES_MAX) {
            backup_why(&parts->restore->why, "shard %u: a row of %zu bytes does not fit one entry",
                       parts->shard, size);
            return false;
        }
        if (parts->rows.size > 0 && parts->rows.size + size > PART_BYTES && !part_put(parts))
            return false;
        buf_put_bytes(&parts->rows, key);
        buf_put_bytes(&parts->rows, value);
    }
    return true;
}

static bool put_all(struct parts *parts, struct shard_reader *reader)
{
    struct slice rows;

    do {
        if (shard_reader_next(reader, &rows, &parts->restore->why) != ERR_OK ||
            !rows_put(parts, rows))
            return false;
    } while (rows.size > 0);
    return part_put(parts);
}

/* A request about the shard with its own row of the backup. NULL: restore->why. */
static json_t *request_with_meta(struct restore *restore, uint32_t shard)
{
    struct chunk_list list;

    if (repository_list(restore->repository, restore->manifest,
                        &(struct backup_part){ shard, BACKUP_STATE }, &list,
                        &restore->why) != ERR_OK)
        return NULL;
    json_t *request = shard_request(restore, shard);

    json_object_set_new(request, "meta", backup_text(buf_slice(&list.meta)));
    chunk_list_deinit(&list);
    return request;
}

/* From here on the shard takes no documents but the backup's. */
static bool begin_shard(struct restore *restore, const struct restore_documents *documents,
                        uint32_t shard)
{
    if (restore->is_empty[shard] && !restore_documents_check_new(documents, shard))
        return false;
    json_t *request = request_with_meta(restore, shard);

    if (request == NULL)
        return false;
    json_t *answer =
        backup_link_ask(&restore->link, &restore->why, "BackupService/BeginRestore", request);

    restore->parts[shard] = answer_number(answer, "parts");
    restore->finished[shard] = json_is_true(json_object_get(answer, "finished"));
    json_decref(answer);
    return answer != NULL;
}

static bool fill_shard(struct restore *restore, uint32_t shard)
{
    struct parts parts = { .restore = restore, .shard = shard, .done = restore->parts[shard] };
    struct shard_reader *reader;

    restore->row_bytes += restore->manifest->shards[shard].state.row_bytes;
    if (restore->finished[shard])
        return true;
    if (shard_reader_new(restore->repository, restore->manifest,
                         &(struct backup_part){ shard, BACKUP_STATE }, &reader,
                         &restore->why) != ERR_OK)
        return false;
    bool good = put_all(&parts, reader);

    shard_reader_free(reader);
    buf_deinit(&parts.rows);
    return good;
}

/* The shard compares what it was given with what the backup says, and serves from here on. */
static bool finish_shard(struct restore *restore, uint32_t shard)
{
    const struct manifest_rows *known = &restore->manifest->shards[shard].state;
    struct hash128 digest = row_digest_sum(&known->rows);
    json_t *request = request_with_meta(restore, shard);

    if (request == NULL)
        return false;
    json_object_set_new(request, "rowCount", json_integer((json_int_t)known->rows.count));
    json_object_set_new(request, "digest",
                        backup_text((struct slice){ digest.bytes, sizeof digest.bytes }));
    json_t *answer =
        backup_link_ask(&restore->link, &restore->why, "BackupService/FinishRestore", request);
    json_decref(answer);
    return answer != NULL;
}

static bool check_documents_new(struct restore *restore, const struct restore_documents *documents)
{
    for (uint32_t i = 0; i < restore->manifest->shard_count; i++) {
        if (restore->is_empty[i] && !restore_documents_check_new(documents, i))
            return false;
    }
    return true;
}

/* All shards begin before the first is filled: what a caller was told of a document meanwhile would
 * go. No caller is served before every shard is whole: what is on its way between them is in their
 * rows. */
static bool fill(struct restore *restore, const struct restore_documents *documents)
{
    uint32_t count = restore->manifest->shard_count;
    bool good = true;

    for (uint32_t i = 0; i < count && good; i++)
        good = begin_shard(restore, documents, i);
    good = good && restore_documents_begin(documents);
    for (uint32_t i = 0; i < count && good; i++)
        good = fill_shard(restore, i);
    good = good && restore_documents_put(documents);
    for (uint32_t i = 0; i < count && good; i++)
        good = finish_shard(restore, i);
    return good;
}

static bool run(struct restore *restore)
{
    json_t *cluster =
        backup_link_ask(&restore->link, &restore->why, "AdminService/GetCluster", json_object());
    uint64_t shards = answer_number(cluster, "shardCount");

    if (cluster == NULL)
        return false;
    if (shards != restore->manifest->shard_count) {
        backup_why(&restore->why,
                   "the cluster has %" PRIu64 " shards, the backup %" PRIu32
                   ": begin with a new cluster of as many",
                   shards, restore->manifest->shard_count);
        json_decref(cluster);
        return false;
    }
    const struct restore_documents documents = { .link = &restore->link,
                                                 .repository = restore->repository,
                                                 .manifest = restore->manifest,
                                                 .finished = restore->finished,
                                                 .ret_why = &restore->why };
    bool good = check_states(restore) && check_servers(restore) &&
                check_documents_new(restore, &documents) &&
                restore_definitions_check(&restore->link, restore->manifest, &restore->why) &&
                restore_definitions_put(&restore->link, restore->manifest, &restore->why) &&
                restore_documents_check(&documents) &&
                set_policy(restore, json_object_get(cluster, "policy")) && raise_cluster(restore) &&
                fill(restore, &documents);
    json_decref(cluster);
    return good;
}

int restore_put(const struct arguments *arguments, const struct repository *repository,
                const struct manifest *manifest)
{
    struct restore restore = { .repository = repository, .manifest = manifest };

    if (!backup_link_open(&restore.link, arguments))
        return 2;
    restore.is_empty = mem_zalloc(manifest->shard_count * sizeof *restore.is_empty);
    restore.finished = mem_zalloc(manifest->shard_count * sizeof *restore.finished);
    restore.parts = mem_zalloc(manifest->shard_count * sizeof *restore.parts);
    bool good = run(&restore);
    if (good)
        printf("restored backup %" PRIu64 " of cluster %s: %u shards, %" PRIu64
               " KiB; game servers register again\n",
               manifest->number, manifest->cluster_id, manifest->shard_count,
               restore.row_bytes >> 10);
    if (good && !manifest->has_documents)
        printf("it has no documents: an earlier version made it\n");
    if (good && !manifest->has_definitions)
        printf("it has no definitions: an earlier version made it; make those that the old cluster "
               "had\n");
    if (!good)
        fprintf(stderr, "holdfast: not restored: %s\n", restore.why.text);
    free(restore.is_empty);
    free(restore.finished);
    free(restore.parts);
    backup_link_close(&restore.link);
    return good ? 0 : 1;
}
