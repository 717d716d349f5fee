#include "client/cli/backup/restore_documents.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/backup/shard_reader.h"
#include "client/backup/shard_writer.h"
#include "client/cli/console/answer.h"
#include "client/cli/console/clock.h"
#include "runtime/base/check.h"

#define POLICY_PREFIX   "DOCUMENT_POLICY_"
#define PART_BYTES      (256u * 1024u)
#define NAME_BYTES_MAX  64u
#define COLLECTIONS_MAX 4096u
#define WHOLE_MS_MAX    120000u
#define WHOLE_PAUSE_MS  100u
#define AWAY_MS_MAX     10000u /* A node that begins is there by then. */
#define AWAY_PAUSE_MS   500u

/* ---- collections ---- */

struct collection {
    char name[NAME_BYTES_MAX + 1];
    uint8_t policy; /* As rows number them (node/core/mergeable/record.h). */
};

struct collections {
    uint32_t count;
    struct collection list[COLLECTIONS_MAX];
};

static const char *policy_name(uint8_t policy)
{
    static const char *const names[] = { "", "last_write", "merge", "set", "vector", "counter" };

    return policy < ARRAY_SIZE(names) ? names[policy] : "";
}

/* u8 size, name, then the record: u8 format, u8 policy. */
static bool note_collection(struct collections *collections, struct slice value)
{
    struct reader reader = reader_from(value);
    struct slice name = read_raw(&reader, read_u8(&reader));

    (void)read_u8(&reader);
    uint8_t policy = read_u8(&reader);

    if (reader.bad || name.size > NAME_BYTES_MAX)
        return false;
    for (uint32_t i = 0; i < collections->count; i++) {
        if (slice_equal(slice_from_text(collections->list[i].name), name))
            return true;
    }
    if (collections->count == COLLECTIONS_MAX)
        return false;
    struct collection *collection = &collections->list[collections->count++];

    text_copy(collection->name, sizeof collection->name, name);
    collection->policy = policy;
    return true;
}

static bool note_shard(const struct restore_documents *documents, uint32_t shard,
                       struct collections *collections)
{
    struct shard_reader *reader;
    struct slice rows, key, value;
    bool good = true;

    if (shard_reader_new(documents->repository, documents->manifest,
                         &(struct backup_part){ shard, BACKUP_DOCUMENTS }, &reader,
                         documents->ret_why) != ERR_OK)
        return false;
    do {
        good = shard_reader_next(reader, &rows, documents->ret_why) == ERR_OK;
        struct reader at = reader_from(good ? rows : (struct slice){ 0 });

        while (good && backup_row_next(&at, &key, &value)) {
            good = note_collection(collections, value);
            if (!good)
                backup_why(documents->ret_why,
                           "shard %" PRIu32 " has a document that this version "
                           "cannot read",
                           shard);
        }
    } while (good && rows.size > 0);
    shard_reader_free(reader);
    return good;
}

static bool check_collection(const struct restore_documents *documents,
                             const struct collection *collection)
{
    const char *policy = policy_name(collection->policy);

    if (collection->name[0] == 0) /* Presence: every cluster has it. */
        return true;
    json_t *answer =
        backup_link_call(documents->link, "DefinitionService/GetDefinition",
                         json_pack("{s:s, s:s}", "kind", "documents", "name", collection->name));
    const json_t *definition = json_object_get(answer, "definition");
    const json_t *body = json_object_get(json_object_get(definition, "body"), "documents");
    bool is_there = body != NULL && !json_is_true(json_object_get(definition, "deleted"));
    const char *here = answer_text(body, "policy");
    bool same = is_there && strncmp(here, POLICY_PREFIX, strlen(POLICY_PREFIX)) == 0 &&
                strcasecmp(here + strlen(POLICY_PREFIX), policy) == 0;

    if (answer == NULL && !documents->link->may_begin_anew)
        backup_why(documents->ret_why, "%s", documents->link->why);
    else if (!is_there)
        backup_why(documents->ret_why,
                   "the backup has documents of the collection %s, which is not defined here: "
                   "holdfast define put documents %s '{\"policy\": \"%s\"}'",
                   collection->name, collection->name, policy);
    else if (!same)
        backup_why(documents->ret_why,
                   "the collection %s has another policy here than in the backup, where it is %s",
                   collection->name, policy);
    json_decref(answer);
    return same;
}

/* The shard has documents, or *ret_away of its members have not said. NULL: ret_why. */
static json_t *first_page(const struct restore_documents *documents, uint32_t shard,
                          uint64_t *ret_away)
{
    json_t *answer =
        backup_link_ask(documents->link, documents->ret_why, "BackupService/ReadDocuments",
                        json_pack("{s:i, s:i}", "shard", (int)shard, "bytesMax", 1));

    *ret_away = answer_number(answer, "membersAway");
    return answer;
}

bool restore_documents_check_new(const struct restore_documents *documents, uint32_t shard)
{
    uint64_t end_ms = monotonic_ms() + AWAY_MS_MAX, away;
    json_t *answer = first_page(documents, shard, &away);

    while (answer != NULL && away > 0 && monotonic_ms() < end_ms) {
        json_decref(answer);
        sleep_ms(AWAY_PAUSE_MS);
        answer = first_page(documents, shard, &away);
    }
    if (answer == NULL)
        return false;
    bool has = answer_text(answer, "rows")[0] != 0;

    json_decref(answer);
    if (has)
        backup_why(documents->ret_why,
                   "shard %" PRIu32 " has documents: only a new, empty cluster can be restored",
                   shard);
    else if (away > 0)
        backup_why(documents->ret_why,
                   "shard %" PRIu32 ": of its members %" PRIu64 " did not say that they have no "
                   "documents: bring up all nodes",
                   shard, away);
    return !has && away == 0;
}

bool restore_documents_check(const struct restore_documents *documents)
{
    const struct manifest *manifest = documents->manifest;
    struct collections *collections = mem_zalloc(sizeof *collections);
    bool good = true;

    for (uint32_t i = 0; i < manifest->shard_count && good; i++)
        good =
            manifest->shards[i].documents.rows.count == 0 || note_shard(documents, i, collections);
    for (uint32_t i = 0; i < collections->count && good; i++)
        good = check_collection(documents, &collections->list[i]);
    free(collections);
    return good;
}

/* ---- parts ---- */

struct parts {
    const struct restore_documents *documents;
    uint32_t shard;
    uint64_t next; /* As the shard said last. */
    bool whole;
    struct buf rows;
};

/* Without rows it asks how far the shard is. */
static bool put_part(struct parts *parts)
{
    const struct restore_documents *documents = parts->documents;
    const struct hash128 *id = &documents->manifest->checksum;
    json_t *answer =
        backup_link_ask(documents->link, documents->ret_why, "BackupService/RestoreDocuments",
                        json_pack("{s:i, s:o, s:o, s:o}", "shard", (int)parts->shard, "restoreId",
                                  backup_text((struct slice){ id->bytes, sizeof id->bytes }),
                                  "first", json_sprintf("%" PRIu64, parts->next), "rows",
                                  backup_text(buf_slice(&parts->rows))));

    if (answer == NULL)
        return false;
    parts->next = answer_number(answer, "next");
    parts->whole = json_is_true(json_object_get(answer, "whole"));
    json_decref(answer);
    backup_link_pace(documents->link, parts->rows.size);
    buf_clear(&parts->rows);
    return true;
}

static bool put_rows(struct parts *parts, struct slice rows)
{
    struct reader reader = reader_from(rows);
    struct slice key, value;

    while (backup_row_next(&reader, &key, &value)) {
        if (parts->rows.size > 0 && parts->rows.size + key.size + value.size > PART_BYTES &&
            !put_part(parts))
            return false;
        buf_put_bytes(&parts->rows, key);
        buf_put_bytes(&parts->rows, value);
    }
    return true;
}

static uint32_t count_open(const struct parts *parts, uint32_t count, uint32_t *ret_first)
{
    uint32_t open = 0;

    for (uint32_t i = count; i-- > 0;) {
        if (parts[i].whole)
            continue;
        open++;
        *ret_first = i;
    }
    return open;
}

/* Members take in by themselves what one of them was given, in all shards at once. */
static bool wait_whole(struct parts *parts, uint32_t count)
{
    uint64_t end_ms = monotonic_ms() + WHOLE_MS_MAX;
    uint32_t first = 0, open = count_open(parts, count, &first), before;

    while (open > 0) {
        if (monotonic_ms() >= end_ms) {
            backup_why(parts->documents->ret_why,
                       "shard %" PRIu32 ": no majority of its members has the documents yet: are "
                       "its nodes up?",
                       first);
            return false;
        }
        sleep_ms(WHOLE_PAUSE_MS);
        for (uint32_t i = first; i < count; i++) {
            if (!parts[i].whole && !put_part(&parts[i]))
                return false;
        }
        before = open;
        open = count_open(parts, count, &first);
        if (open < before)
            end_ms = monotonic_ms() + WHOLE_MS_MAX;
    }
    return true;
}

static bool put_all(struct parts *parts, struct shard_reader *reader)
{
    struct slice rows;

    do {
        if (shard_reader_next(reader, &rows, parts->documents->ret_why) != ERR_OK ||
            !put_rows(parts, rows))
            return false;
    } while (rows.size > 0);
    return put_part(parts);
}

static bool put_shard(struct parts *parts)
{
    const struct restore_documents *documents = parts->documents;
    struct shard_reader *reader;

    parts->whole = documents->finished[parts->shard] ||
                   documents->manifest->shards[parts->shard].documents.rows.count == 0;
    if (parts->whole)
        return true;
    if (shard_reader_new(documents->repository, documents->manifest,
                         &(struct backup_part){ parts->shard, BACKUP_DOCUMENTS }, &reader,
                         documents->ret_why) != ERR_OK)
        return false;
    bool good = put_all(parts, reader);

    shard_reader_free(reader);
    buf_deinit(&parts->rows);
    return good;
}

static struct parts *parts_new(const struct restore_documents *documents)
{
    uint32_t count = documents->manifest->shard_count;
    struct parts *parts = mem_zalloc(count * sizeof *parts);

    for (uint32_t i = 0; i < count; i++)
        parts[i] = (struct parts){ .documents = documents, .shard = i };
    return parts;
}

static void parts_free(struct parts *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        buf_deinit(&parts[i].rows);
    free(parts);
}

bool restore_documents_begin(const struct restore_documents *documents)
{
    uint32_t count = documents->manifest->shard_count;
    struct parts *parts = parts_new(documents);
    bool good = true;

    for (uint32_t i = 0; i < count && good; i++)
        good = documents->finished[i] || put_part(&parts[i]);
    parts_free(parts, count);
    return good;
}

bool restore_documents_put(const struct restore_documents *documents)
{
    uint32_t count = documents->manifest->shard_count;
    struct parts *parts = parts_new(documents);
    bool good = true;

    for (uint32_t i = 0; i < count && good; i++)
        good = put_shard(&parts[i]);
    good = good && wait_whole(parts, count);
    parts_free(parts, count);
    return good;
}
