#include "client/cli/backup/backup_take.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/backup/shard_writer.h"
#include "client/cli/console/answer.h"
#include "client/cli/backup/backup_link.h"
#include "client/cli/console/clock.h"
#include "client/cli/console/output.h"
#include "runtime/base/check.h"

#define ATTEMPTS_MAX    5u
#define DOCUMENT_BYTES  (256u * 1024u) /* A page of documents; a large one stands in it whole. */
#define CUT_AHEAD       1000u /* Audits take a cut a second: none shall come so far meanwhile. */
#define PAGE_BYTES      (512u * 1024u)
#define KEEP_EVERY_MS   20000u /* Nodes close a view that is not read. */
#define DEFINITION_PAGE 200u
#define CALLERS         16u /* Connections that arm and cut shards. */

struct take {
    const struct arguments *arguments;
    struct backup_link link;
    struct repository repository;
    struct manifest manifest; /* As it is being made. */
    struct manifest before;   /* Of the backup before; number 0: there is none. */
    uint8_t *used;            /* By number of an earlier backup: some chunk is there. */
    uint64_t chunks, chunks_written, bytes_written, row_bytes, row_count;
    uint64_t document_rows;
    uint32_t shards_apart; /* Of which not every member told what documents it has. */
    uint64_t kept_ms;
    struct backup_error why;
};

/* Takes `request`. NULL: take->why. */
/* ---- the cluster ---- */

static bool read_cluster(struct take *take)
{
    json_t *cluster =
        backup_link_ask(&take->link, &take->why, "AdminService/GetCluster", json_object());
    const char *id = json_string_value(json_object_get(cluster, "clusterId"));
    uint64_t shards = answer_number(cluster, "shardCount");

    if (cluster == NULL)
        return false;
    if (id == NULL || strlen(id) >= sizeof take->manifest.cluster_id || shards == 0 ||
        shards > MANIFEST_SHARDS_MAX) {
        backup_why(&take->why, "the cluster is not ready: it has no shards yet");
        json_decref(cluster);
        return false;
    }
    manifest_init(&take->manifest, (uint32_t)shards);
    snprintf(take->manifest.cluster_id, sizeof take->manifest.cluster_id, "%s", id);
    snprintf(take->manifest.software, sizeof take->manifest.software, "%s", HOLDFAST_VERSION);
    take->manifest.generation = answer_number(cluster, "generation");
    take->manifest.taken_at_ms = (uint64_t)time(NULL) * 1000u;
    const json_t *policy = json_object_get(cluster, "policy");
    char *text = json_dumps(policy, JSON_COMPACT | JSON_SORT_KEYS);
    buf_printf(&take->manifest.policy, "%s", text != NULL ? text : "null");
    free(text);
    json_decref(cluster);
    return true;
}

/* The greatest of all shards: what is restored has to stand above. */
static void note_state(struct manifest *manifest, const json_t *state)
{
    uint64_t generation = answer_number(state, "generation");
    uint32_t apply_version = (uint32_t)answer_number(state, "applyVersion");

    if (generation > manifest->generation)
        manifest->generation = generation;
    if (apply_version > manifest->apply_version)
        manifest->apply_version = apply_version;
}

/* Where each shard stands; the greatest cut of any. */
static bool read_states(struct take *take, uint64_t *ret_cut)
{
    struct manifest *manifest = &take->manifest;

    *ret_cut = 0;
    for (uint32_t i = 0; i < manifest->shard_count; i++) {
        json_t *state = backup_link_ask(&take->link, &take->why, "BackupService/GetBackupState",
                                        json_pack("{s:i}", "shard", i));
        const char *stands = json_string_value(json_object_get(state, "state"));
        if (state == NULL)
            return false;
        uint64_t cut = answer_number(state, "cut");
        bool restoring = stands != NULL && strcmp(stands, "restoring") == 0;
        note_state(manifest, state);
        json_decref(state);
        if (restoring) {
            backup_why(&take->why, "shard %u is being restored from a backup", i);
            return false;
        }
        *ret_cut = cut > *ret_cut ? cut : *ret_cut;
    }
    return true;
}

static json_t *cut_request(const struct take *take, uint32_t shard)
{
    return json_pack("{s:i, s:I}", "shard", shard, "cut", (json_int_t)take->manifest.cut);
}

/* ---- of every shard, on several connections ---- */

/* Shards first, first + CALLERS, .. are its own. */
struct caller {
    struct backup_link link;
    struct backup_error why;
    const struct take *take;
    const char *method;
    atomic_bool *failed; /* Of any. */
    uint32_t first;
    bool good;
};

static void *caller_run(void *user)
{
    struct caller *caller = user;
    uint32_t count = caller->take->manifest.shard_count;

    caller->good = true;
    for (uint32_t i = caller->first; i < count && caller->good && !atomic_load(caller->failed);
         i += CALLERS) {
        json_t *answer = backup_link_ask(&caller->link, &caller->why, caller->method,
                                         cut_request(caller->take, i));
        caller->good = answer != NULL;
        json_decref(answer);
    }
    if (!caller->good)
        atomic_store(caller->failed, true);
    return NULL;
}

/* Nodes give an armed shard up after 30 s: with thousands of shards, one after the other is too
 * slow. Several connections, since a call waits for its answer. */
static bool call_all(struct take *take, const char *method)
{
    struct caller *callers = mem_zalloc(CALLERS * sizeof *callers);
    pthread_t threads[CALLERS];
    atomic_bool failed = false;
    uint32_t opened = 0, started = 0;

    while (opened < CALLERS && backup_link_open(&callers[opened].link, take->arguments))
        opened++;
    for (; opened == CALLERS && started < CALLERS; started++) {
        struct caller *caller = &callers[started];

        caller->take = take;
        caller->method = method;
        caller->failed = &failed;
        caller->first = started;
        if (pthread_create(&threads[started], NULL, caller_run, caller) != 0)
            break;
    }
    if (started < CALLERS) {
        backup_why(&take->why, "%u connections to the router cannot be made", CALLERS);
        atomic_store(&failed, true);
    }
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
        if (!callers[i].good) {
            take->why = callers[i].why;
            take->link.may_begin_anew |= callers[i].link.may_begin_anew;
        }
    }
    for (uint32_t i = 0; i < opened; i++)
        backup_link_close(&callers[i].link);
    free(callers);
    return !atomic_load(&failed);
}

/* Views of shards that wait for their turn are kept. */
static bool keep_views(struct take *take, uint32_t from)
{
    uint64_t now_ms = monotonic_ms();

    if (now_ms - take->kept_ms < KEEP_EVERY_MS)
        return true;
    for (uint32_t i = from; i < take->manifest.shard_count; i++) {
        json_t *answer = backup_link_ask(&take->link, &take->why, "BackupService/ReadBackup",
                                         cut_request(take, i));
        if (answer == NULL)
            return false;
        json_decref(answer);
    }
    take->kept_ms = monotonic_ms();
    return true;
}

/* ---- one shard ---- */

struct page {
    struct buf meta, rows, after;
    uint64_t index;
    bool last;
};

static void page_deinit(struct page *page)
{
    buf_deinit(&page->meta);
    buf_deinit(&page->rows);
    buf_deinit(&page->after);
}

/* The rows that follow `page->after`. */
static bool read_page(struct take *take, uint32_t shard, struct page *page)
{
    json_t *request = cut_request(take, shard);

    json_object_set_new(request, "after", backup_text(buf_slice(&page->after)));
    json_object_set_new(request, "bytesMax", json_integer(PAGE_BYTES));
    json_t *answer = backup_link_ask(&take->link, &take->why, "BackupService/ReadBackup", request);
    if (answer == NULL)
        return false;
    buf_clear(&page->rows);
    bool good =
        backup_bytes(answer, "meta", &page->meta) && backup_bytes(answer, "rows", &page->rows);
    page->last = json_is_true(json_object_get(answer, "last"));
    page->index = answer_number(answer, "index");
    json_decref(answer);
    struct reader rows = reader_from(buf_slice(&page->rows));
    struct slice key = { 0 }, value;
    while (backup_row_next(&rows, &key, &value))
        ;
    if (!good || rows.bad || (key.size == 0 && !page->last)) {
        backup_why(&take->why, "shard %u: a page came malformed", shard);
        return false;
    }
    buf_clear(&page->after);
    if (key.size > 0)
        buf_append(&page->after, key.data, key.size);
    return true;
}

static bool copy_rows(struct take *take, uint32_t shard, struct shard_writer *writer,
                      struct page *page)
{
    do {
        if (!keep_views(take, shard) || !read_page(take, shard, page) ||
            shard_writer_put(writer, buf_slice(&page->rows), &take->why) != ERR_OK)
            return false;
        backup_link_pace(&take->link, page->rows.size);
    } while (!page->last);
    return true;
}

static void note_chunks(struct take *take, const struct shard_writer *writer,
                        const struct manifest_rows *rows)
{
    const struct chunk_list *list = shard_writer_list(writer);
    uint64_t chunks, written;

    shard_writer_counts(writer, &chunks, &written);
    take->chunks += chunks;
    take->chunks_written += written;
    take->bytes_written += rows->pack.bytes + rows->list.bytes;
    take->row_bytes += rows->row_bytes;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->chunks[i].number < take->manifest.number)
            take->used[list->chunks[i].number] = 1;
    }
}

static bool write_shard(struct take *take, uint32_t shard, const struct chunk_list *before)
{
    const struct shard_writer_options options = {
        .repository = &take->repository,
        .place = { take->manifest.number, { shard, BACKUP_STATE } },
        .before = before,
    };
    struct manifest_shard *made = &take->manifest.shards[shard];
    struct shard_writer *writer;
    struct page page = { 0 };

    if (shard_writer_new(&options, &writer, &take->why) != ERR_OK)
        return false;
    bool good =
        copy_rows(take, shard, writer, &page) &&
        shard_writer_finish(writer, buf_slice(&page.meta), &made->state, &take->why) == ERR_OK;
    if (good) {
        made->index = page.index;
        note_chunks(take, writer, &made->state);
        take->row_count += made->state.rows.count;
    }
    shard_writer_free(writer);
    page_deinit(&page);
    return good;
}

static bool take_shard(struct take *take, uint32_t shard)
{
    struct chunk_list before = { 0 };

    if (take->before.number > 0 && repository_list(&take->repository, &take->before,
                                                   &(struct backup_part){ shard, BACKUP_STATE },
                                                   &before, &take->why) != ERR_OK)
        return false;
    bool good = write_shard(take, shard, take->before.number > 0 ? &before : NULL);
    chunk_list_deinit(&before);
    return good;
}

/* ---- documents of one shard ---- */

struct document_pages {
    struct buf rows, after;
    uint64_t reader; /* Of the first page; 0: none was read. */
    uint64_t rest;   /* Of the page before. */
    uint32_t away;
    bool last;
    struct shard_writer *writer; /* NULL: there are none yet. */
};

static bool read_documents(struct take *take, uint32_t shard, struct document_pages *pages)
{
    json_t *answer = backup_link_ask(&take->link, &take->why, "BackupService/ReadDocuments",
                                     json_pack("{s:i, s:o, s:o, s:o, s:i}", "shard", (int)shard,
                                               "reader", json_sprintf("%" PRIu64, pages->reader),
                                               "rest", json_sprintf("%" PRIu64, pages->rest),
                                               "after", backup_text(buf_slice(&pages->after)),
                                               "bytesMax", (int)DOCUMENT_BYTES));

    if (answer == NULL)
        return false;
    buf_clear(&pages->rows);
    bool good = backup_bytes(answer, "rows", &pages->rows);
    pages->last = json_is_true(json_object_get(answer, "last"));
    if (pages->after.size == 0)
        pages->away = (uint32_t)answer_number(answer, "membersAway");
    pages->reader = answer_number(answer, "reader");
    pages->rest = answer_number(answer, "rest");
    json_decref(answer);
    struct reader rows = reader_from(buf_slice(&pages->rows));
    struct slice key = { 0 }, value;
    while (backup_row_next(&rows, &key, &value))
        ;
    if (!good || rows.bad || (key.size == 0 && !pages->last)) {
        backup_why(&take->why, "shard %u: a page of documents came malformed", shard);
        return false;
    }
    buf_clear(&pages->after);
    buf_append(&pages->after, key.data, key.size);
    return true;
}

/* A shard without documents has no files of them. */
static bool put_documents(struct take *take, uint32_t shard, struct document_pages *pages,
                          const struct chunk_list *before)
{
    const struct shard_writer_options options = {
        .repository = &take->repository,
        .place = { take->manifest.number, { shard, BACKUP_DOCUMENTS } },
        .before = before,
    };

    if (pages->rows.size == 0)
        return true;
    if (pages->writer == NULL && shard_writer_new(&options, &pages->writer, &take->why) != ERR_OK)
        return false;
    backup_link_pace(&take->link, pages->rows.size);
    return shard_writer_put(pages->writer, buf_slice(&pages->rows), &take->why) == ERR_OK;
}

static bool copy_documents(struct take *take, uint32_t shard, struct document_pages *pages,
                           const struct chunk_list *before)
{
    struct manifest_shard *made = &take->manifest.shards[shard];

    while (!pages->last) {
        if (!keep_views(take, shard) || !read_documents(take, shard, pages) ||
            !put_documents(take, shard, pages, before))
            return false;
    }
    made->members_away = pages->away;
    take->shards_apart += pages->away > 0;
    if (pages->writer == NULL)
        return true;
    if (shard_writer_finish(pages->writer, (struct slice){ 0 }, &made->documents, &take->why) !=
        ERR_OK)
        return false;
    note_chunks(take, pages->writer, &made->documents);
    take->document_rows += made->documents.rows.count;
    return true;
}

/* As of a moment after the cut, each by itself. */
static bool take_documents(struct take *take, uint32_t shard)
{
    struct document_pages pages = { 0 };
    struct chunk_list before = { 0 };
    bool had = take->before.number > 0 && take->before.shards[shard].documents.rows.count > 0;
    bool good = !had || repository_list(&take->repository, &take->before,
                                        &(struct backup_part){ shard, BACKUP_DOCUMENTS }, &before,
                                        &take->why) == ERR_OK;

    good = good && copy_documents(take, shard, &pages, had ? &before : NULL);
    shard_writer_free(pages.writer);
    buf_deinit(&pages.rows);
    buf_deinit(&pages.after);
    chunk_list_deinit(&before);
    return good;
}

/* ---- one attempt ---- */

/* Epochs, generations and apply versions only rise: what stands after the cut is at least what
 * stood there. */
static bool note_ends(struct take *take)
{
    for (uint32_t i = 0; i < take->manifest.shard_count; i++) {
        json_t *state = backup_link_ask(&take->link, &take->why, "BackupService/GetBackupState",
                                        json_pack("{s:i}", "shard", i));
        if (state == NULL)
            return false;
        uint64_t epoch = answer_number(state, "epoch");
        note_state(&take->manifest, state);
        json_decref(state);
        take->manifest.shards[i].epoch = epoch;
        if (epoch > take->manifest.epoch)
            take->manifest.epoch = epoch;
    }
    return true;
}

static bool note_uses(struct take *take)
{
    for (uint64_t i = 1; i < take->manifest.number; i++) {
        struct manifest used;

        if (!take->used[i])
            continue;
        if (repository_manifest(&take->repository, i, &used, &take->why) != ERR_OK)
            return false;
        manifest_add_use(&take->manifest, i, used.checksum);
        manifest_deinit(&used);
    }
    return true;
}

/* What tells where a definition stands is of the moment, and no part of it. */
static bool note_definition(struct take *take, json_t *definition)
{
    const char *name = answer_text(definition, "name");

    json_object_del(definition, "current");
    json_object_del(definition, "inForce");
    json_object_del(definition, "shardsLeft");
    char *text = json_dumps(definition, JSON_COMPACT | JSON_SORT_KEYS);
    bool good =
        text != NULL && manifest_add_definition(&take->manifest, slice_from_text(text)) == ERR_OK;

    if (!good)
        backup_why(&take->why, "the definition %s has no room in the manifest", name);
    free(text);
    return good;
}

static bool read_definitions(struct take *take)
{
    char *cursor = strdup("");
    bool good = cursor != NULL;

    manifest_clear_definitions(&take->manifest);
    do {
        json_t *answer = backup_link_ask(
            &take->link, &take->why, "DefinitionService/ListDefinitions",
            json_pack("{s:i, s:s}", "pageSize", (int)DEFINITION_PAGE, "cursor", cursor));
        json_t *definition;
        size_t i;

        good = answer != NULL;
        json_array_foreach(json_object_get(answer, "definitions"), i, definition) good =
            good && note_definition(take, definition);
        free(cursor);
        cursor = strdup(answer_text(answer, "nextCursor"));
        json_decref(answer);
    } while (good && cursor != NULL && cursor[0] != 0);
    free(cursor);
    return good;
}

/* Definitions are read last: rows and documents may be of any that were made meanwhile. And first,
 * so that no hour is lost where no coordinator answers. */
static bool attempt(struct take *take)
{
    uint64_t cut;

    if (!read_cluster(take) || !read_states(take, &cut) || !read_definitions(take))
        return false;
    if (take->before.number > 0 &&
        (take->before.shard_count != take->manifest.shard_count ||
         strcmp(take->before.cluster_id, take->manifest.cluster_id) != 0)) {
        backup_why(&take->why, "%s holds backups of another cluster, %s", take->repository.path,
                   take->before.cluster_id);
        return false;
    }
    take->manifest.cut = cut + CUT_AHEAD;
    take->manifest.number = take->before.number + 1;
    if (!call_all(take, "BackupService/ArmBackup") || !call_all(take, "BackupService/CutBackup"))
        return false;
    take->kept_ms = monotonic_ms();
    if (repository_begin(&take->repository, take->manifest.number, &take->why) != ERR_OK)
        return false;
    for (uint32_t i = 0; i < take->manifest.shard_count; i++) {
        if (!take_shard(take, i) || !take_documents(take, i))
            return false;
    }
    return read_definitions(take) && note_ends(take) && note_uses(take) &&
           repository_commit(&take->repository, &take->manifest, &take->why) == ERR_OK;
}

static void clean(struct take *take)
{
    struct backup_error ignored;
    char path[BACKUP_PATH_MAX];

    repository_path(&take->repository, take->manifest.number, path);
    if (take->manifest.number > 0)
        (void)!repository_remove(&take->repository, take->manifest.number, &ignored);
    manifest_deinit(&take->manifest);
    take->chunks = take->chunks_written = take->bytes_written = 0;
    take->row_bytes = take->row_count = take->document_rows = 0;
    take->shards_apart = 0;
}

static bool run(struct take *take)
{
    uint64_t newest = repository_newest(&take->repository);

    if (newest > 0 &&
        repository_manifest(&take->repository, newest, &take->before, &take->why) != ERR_OK)
        return false;
    take->used = mem_zalloc(newest + 2);
    for (uint32_t i = 1;; i++) {
        take->link.may_begin_anew = false;
        if (attempt(take))
            return true;
        clean(take);
        if (!take->link.may_begin_anew || i == ATTEMPTS_MAX)
            return false;
        fprintf(stderr, "holdfast: begins again: %s\n", take->why.text);
    }
}

static void warn(const struct take *take)
{
    if (take->shards_apart > 0)
        fprintf(stderr,
                "holdfast: of %u shards a member did not tell what documents it has: those that it "
                "alone has are not in the backup\n",
                take->shards_apart);
}

static void report(const struct arguments *arguments, const struct take *take)
{
    const struct manifest *manifest = &take->manifest;

    if (wants_json(arguments)) {
        json_t *sum = json_pack(
            "{s:I, s:I, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i}", "number",
            (json_int_t)manifest->number, "cut", (json_int_t)manifest->cut, "shards",
            (int)manifest->shard_count, "rows", (json_int_t)take->row_count, "rowBytes",
            (json_int_t)take->row_bytes, "chunks", (json_int_t)take->chunks, "chunksWritten",
            (json_int_t)take->chunks_written, "bytesWritten", (json_int_t)take->bytes_written,
            "documentRows", (json_int_t)take->document_rows, "shardsWithMembersAway",
            (int)take->shards_apart, "definitions", (int)manifest->definition_count);
        print_json(sum);
        json_decref(sum);
        return;
    }
    printf("backup %" PRIu64 " of cluster %s at cut %" PRIu64 ": %u shards, %" PRIu64
           " rows, %" PRIu64 " rows of documents, %" PRIu32 " definitions, %" PRIu64
           " KiB; %" PRIu64 " of %" PRIu64 " chunks were new, %" PRIu64 " KiB written\n",
           manifest->number, manifest->cluster_id, manifest->cut, manifest->shard_count,
           take->row_count, take->document_rows, manifest->definition_count, take->row_bytes >> 10,
           take->chunks_written, take->chunks, take->bytes_written >> 10);
}

int backup_take(const struct arguments *arguments, const char *path)
{
    struct take take = { .arguments = arguments };
    bool good = false;

    if (!backup_link_open(&take.link, arguments))
        return 2;
    if (repository_open_to_write(path, &take.repository, &take.why) == ERR_OK) {
        good = run(&take);
        if (good) {
            warn(&take);
            report(arguments, &take);
        }
        repository_close(&take.repository);
    }
    if (!good)
        fprintf(stderr, "holdfast: no backup was made: %s\n", take.why.text);
    manifest_deinit(&take.manifest);
    manifest_deinit(&take.before);
    free(take.used);
    backup_link_close(&take.link);
    return good ? 0 : 1;
}
