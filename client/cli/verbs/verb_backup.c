#include <inttypes.h>
#include <stdio.h>

#include "client/backup/repository_verify.h"
#include "client/cli/backup/backup_take.h"
#include "client/cli/console/clock.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static json_t *describe(const struct manifest *manifest)
{
    uint64_t rows = 0, documents = 0, bytes = 0;
    char taken[UTC_TEXT_BYTES];

    for (uint32_t i = 0; i < manifest->shard_count; i++) {
        const struct manifest_shard *shard = &manifest->shards[i];

        rows += shard->state.rows.count;
        documents += shard->documents.rows.count;
        bytes += shard->state.pack.bytes + shard->state.list.bytes + shard->documents.pack.bytes +
                 shard->documents.list.bytes;
    }
    return json_pack(
        "{s:I, s:s, s:s, s:I, s:I, s:o, s:o, s:I, s:i}", "number", (json_int_t)manifest->number,
        "taken", utc_text(manifest->taken_at_ms, taken), "cluster", manifest->cluster_id, "cut",
        (json_int_t)manifest->cut, "rows", (json_int_t)rows, "documents",
        manifest->has_documents ? json_integer((json_int_t)documents) : json_null(), "definitions",
        manifest->has_definitions ? json_integer(manifest->definition_count) : json_null(), "bytes",
        (json_int_t)bytes, "uses", (int)manifest->use_count);
}

/* What a backup of an earlier version has not. */
static const char *lacks(const struct manifest *manifest)
{
    if (!manifest->has_documents)
        return ", without documents and definitions: an earlier version made it";
    return manifest->has_definitions ? "" : ", without definitions: an earlier version made it";
}

static const struct column list_columns[] = {
    { .title = "NUMBER", .path = "number" },
    { .title = "TAKEN", .path = "taken" },
    { .title = "CLUSTER", .path = "cluster" },
    { .title = "CUT", .path = "cut" },
    { .title = "ROWS", .path = "rows" },
    { .title = "DOCUMENTS", .path = "documents" },
    { .title = "DEFINITIONS", .path = "definitions" },
    { .title = "BYTES", .path = "bytes" },
    { .title = "USES", .path = "uses" },
    { .title = NULL },
};

static int refuse(const struct backup_error *why)
{
    fprintf(stderr, "holdfast: %s\n", why->text);
    return 1;
}

/* Told, and no failure: another process writes the newest one. */
static bool is_being_written(const struct repository *repository, uint32_t place)
{
    if (place + 1 != repository->count || repository->backups[place].complete ||
        !repository_is_written(repository))
        return false;
    fprintf(stderr, "backup %" PRIu64 " is being written\n", repository->backups[place].number);
    return true;
}

static int list(const struct arguments *arguments)
{
    const char *path = arguments->words[0];
    struct repository repository;
    struct backup_error why;
    json_t *rows = json_array();
    int code = 0;

    if (repository_open(path, &repository, &why) != ERR_OK) {
        json_decref(rows);
        return refuse(&why);
    }
    for (uint32_t i = 0; i < repository.count; i++) {
        struct manifest manifest;
        if (is_being_written(&repository, i))
            continue;
        if (repository_manifest(&repository, repository.backups[i].number, &manifest, &why) !=
            ERR_OK) {
            code = refuse(&why);
            continue;
        }
        json_array_append_new(rows, describe(&manifest));
        manifest_deinit(&manifest);
    }
    if (wants_json(arguments))
        print_json(rows);
    else
        print_table(NULL, rows, list_columns);
    json_decref(rows);
    repository_close(&repository);
    return code;
}

/* All of them, so that a damaged older one is known before it is needed. */
static int verify(const struct arguments *arguments)
{
    const char *path = arguments->words[0];
    struct repository repository;
    struct backup_error why;
    struct verify_counts counts = { 0 };
    int code = 0;

    if (repository_open(path, &repository, &why) != ERR_OK)
        return refuse(&why);
    if (repository.count == 0) {
        fprintf(stderr, "holdfast: %s holds no backup\n", path);
        code = 1;
    }
    for (uint32_t i = 0; i < repository.count; i++) {
        struct manifest manifest;
        uint64_t number = repository.backups[i].number;
        if (is_being_written(&repository, i))
            continue;
        if (repository_verify(&repository, number, &manifest, &counts, &why) != ERR_OK) {
            code = refuse(&why);
            continue;
        }
        if (!wants_json(arguments))
            printf("backup %" PRIu64 " is good: %u shards at cut %" PRIu64 "%s\n", number,
                   manifest.shard_count, manifest.cut, lacks(&manifest));
        manifest_deinit(&manifest);
    }
    if (wants_json(arguments)) {
        json_t *sum = json_pack("{s:b, s:I, s:I, s:I, s:I, s:i}", "good", code == 0, "files",
                                (json_int_t)counts.files, "bytes", (json_int_t)counts.bytes, "rows",
                                (json_int_t)counts.rows, "documents", (json_int_t)counts.documents,
                                "backups", (int)repository.count);
        print_json(sum);
        json_decref(sum);
    }
    repository_close(&repository);
    return code;
}

static int take(const struct arguments *arguments)
{
    return backup_take(arguments, arguments->words[0]);
}

const struct verb verb_backup[] = {
    {
        .words = "backup",
        .topic = VERB_TOPIC_BACKUP,
        .arguments = "DIR",
        .summary = "all players as of one moment, and documents, into a directory",
        .details = "A later backup into the same directory writes only what changed.",
        .options = VERB_OPTIONS(&option_throttle, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = take,
    },
    {
        .words = "backup verify",
        .topic = VERB_TOPIC_BACKUP,
        .arguments = "DIR",
        .summary = "check every byte of it; needs no cluster",
        .options = VERB_OPTIONS(OPTIONS_OF_OUTPUT),
        .run = verify,
    },
    {
        .words = "backup list",
        .topic = VERB_TOPIC_BACKUP,
        .arguments = "DIR",
        .summary = "which backups there are",
        .options = VERB_OPTIONS(OPTIONS_OF_OUTPUT),
        .run = list,
    },
    { .words = NULL },
};
