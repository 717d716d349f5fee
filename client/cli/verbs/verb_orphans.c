/*
 * orphans: what a node's log set aside of deposed owners: entries that were never acknowledged, and
 * that only their callers propose again (DESIGN section 4, Rejoin). Reads the files
 * themselves (node/store/orphan_record.h); needs no cluster.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/console/clock.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"
#include "idl/method.h"
#include "node/core/codec/op.h"
#include "node/store/orphan_record.h"
#include "runtime/base/check.h"

#define FILE_BYTES_MAX (64u * 1024u * 1024u) /* A node's are at most 16 MiB. */
#define FILES_MAX      1024u
#define PATH_SIZE      4200u

static const struct column columns[] = {
    { .title = "TRUNCATED", .path = "truncated" }, { .title = "SHARD", .path = "shard" },
    { .title = "INDEX", .path = "index" },         { .title = "DOT", .path = "dot" },
    { .title = "METHOD", .path = "method" },       { .title = "ENTITY", .path = "entity" },
    { .title = "OP ID", .path = "opId" },          { .title = NULL },
};

static void set_text(json_t *row, const char *key, struct slice text)
{
    json_object_set_new(row, key, json_stringn((const char *)text.data, text.size));
}

static void describe_op(json_t *row, const struct entry *entry)
{
    struct op op;

    if (op_decode(entry->body, &op) != ERR_OK) {
        json_object_set_new(row, "method", json_string("unreadable"));
        return;
    }
    const struct method_info *method = method_find(op.method);
    json_object_set_new(row, "method", json_string(method != NULL ? method->name : "unknown"));
    json_object_set_new(row, "attempt", json_integer(op.attempt));
    set_text(row, "entity", op.entity);
    set_text(row, "opId", op.id.text);
}

static json_t *describe(const struct log_orphan *orphan)
{
    static const char *const kinds[] = { [ENTRY_START] = "START",
                                         [ENTRY_OP] = "operation",
                                         [ENTRY_CHECK] = "CHECK",
                                         [ENTRY_CUT] = "CUT" };
    char truncated[UTC_TEXT_BYTES], dot[72];

    json_t *row =
        json_pack("{s:s, s:I, s:I, s:I}", "truncated", utc_text(orphan->unix_ms, truncated),
                  "shard", (json_int_t)orphan->shard, "index", (json_int_t)orphan->index,
                  "keepIndex", (json_int_t)orphan->keep_index);
    if (orphan->entry == NULL) {
        json_object_set_new(row, "method", json_string("could not be read from the log"));
        return row;
    }
    snprintf(dot, sizeof dot, "%llu.%llu.%llu", (unsigned long long)orphan->entry->dot.epoch,
             (unsigned long long)orphan->entry->dot.owner,
             (unsigned long long)orphan->entry->dot.counter);
    json_object_set_new(row, "dot", json_string(dot));
    json_object_set_new(row, "ownerMs", json_integer((json_int_t)orphan->entry->owner_ms));
    if (orphan->entry->kind == ENTRY_OP)
        describe_op(row, orphan->entry);
    else
        json_object_set_new(row, "method", json_string(kinds[orphan->entry->kind]));
    return row;
}

static bool read_file(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "rb");
    uint8_t part[65536];
    size_t got;

    if (file == NULL)
        return false;
    while ((got = fread(part, 1, sizeof part, file)) > 0 && out->size < FILE_BYTES_MAX)
        buf_append(out, part, got);
    bool good = ferror(file) == 0 && out->size < FILE_BYTES_MAX;
    fclose(file);
    return good;
}

/* False: the file cannot be read, or is damaged; what stands before the damage is listed. */
static bool add_file(const char *path, json_t *rows)
{
    struct buf bytes = { 0 };
    size_t at = 0;
    err e = ERR_OK;

    if (!read_file(path, &bytes)) {
        fprintf(stderr, "holdfast: %s cannot be read, or has more than %u bytes\n", path,
                FILE_BYTES_MAX);
        buf_deinit(&bytes);
        return false;
    }
    while (at < bytes.size && e == ERR_OK) {
        struct log_orphan orphan;
        size_t size;

        e = orphan_decode((struct slice){ bytes.data + at, bytes.size - at }, &orphan, &size);
        if (e != ERR_OK)
            break;
        json_array_append_new(rows, describe(&orphan));
        if (orphan.entry != NULL)
            entry_unref((struct entry *)(uintptr_t)orphan.entry);
        at += size;
    }
    if (e == ERR_NEED)
        fprintf(stderr, "holdfast: %s ends in half a record, as a crash leaves it\n", path);
    else if (e != ERR_OK)
        fprintf(stderr, "holdfast: %s is damaged at byte %zu; what follows is not listed\n", path,
                at);
    buf_deinit(&bytes);
    return e == ERR_OK || e == ERR_NEED;
}

struct found {
    unsigned numbers[FILES_MAX];
    uint32_t count;
};

static int compare_numbers(const void *a, const void *b)
{
    const unsigned *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static bool find_files(const char *path, struct found *found)
{
    DIR *dir = opendir(path);

    if (dir == NULL)
        return false;
    for (struct dirent *item = readdir(dir); item != NULL; item = readdir(dir)) {
        unsigned number;

        if (found->count < FILES_MAX && sscanf(item->d_name, "orphans-%u.log", &number) == 1)
            found->numbers[found->count++] = number;
    }
    closedir(dir);
    qsort(found->numbers, found->count, sizeof found->numbers[0], compare_numbers);
    return true;
}

/* A file, a node's log directory, or its data directory. */
static bool add_path(const char *path, json_t *rows)
{
    char directory[PATH_SIZE], file[PATH_SIZE + 64];
    struct found found = { .count = 0 };
    struct stat stat_of;
    bool good = true;

    if (stat(path, &stat_of) == 0 && !S_ISDIR(stat_of.st_mode))
        return add_file(path, rows);
    snprintf(directory, sizeof directory, "%s/log", path);
    if (stat(directory, &stat_of) != 0)
        snprintf(directory, sizeof directory, "%s", path);
    if (!find_files(directory, &found)) {
        fprintf(stderr, "holdfast: %s cannot be read\n", path);
        return false;
    }
    for (uint32_t i = 0; i < found.count; i++) {
        snprintf(file, sizeof file, "%s/orphans-%u.log", directory, found.numbers[i]);
        good &= add_file(file, rows);
    }
    return good;
}

static int list(const struct arguments *arguments)
{
    json_t *rows = json_array();
    bool good = true;

    for (uint32_t i = 0; i < arguments->word_count; i++)
        good &= add_path(arguments->words[i], rows);
    if (wants_json(arguments))
        print_json(rows);
    else if (json_array_size(rows) == 0)
        printf("nothing was set aside\n");
    else
        print_table(NULL, rows, columns);
    json_decref(rows);
    return good ? 0 : 1;
}

const struct verb verb_orphans[] = {
    {
        .words = "orphans",
        .topic = VERB_TOPIC_BACKUP,
        .arguments = "PATH..",
        .summary = "entries of deposed owners that a node set aside",
        .details = "PATH is a node's data directory, or a file in it. It needs no cluster.",
        .options = VERB_OPTIONS(OPTIONS_OF_OUTPUT),
        .run = list,
    },
    { .words = NULL },
};
