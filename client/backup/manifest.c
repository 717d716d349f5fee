#include "client/backup/manifest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hex.h"

#define FIRST_LINE "holdfast-backup "

void backup_why(struct backup_error *why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
}

void hash_print(struct hash128 hash, char ret_text[33])
{
    hex_print(hash.bytes, sizeof hash.bytes, ret_text);
}

void manifest_init(struct manifest *manifest, uint32_t shard_count)
{
    *manifest = (struct manifest){ .has_documents = true,
                                   .has_definitions = true,
                                   .shard_count = shard_count };
    if (shard_count > 0)
        manifest->shards = mem_zalloc(sizeof *manifest->shards * shard_count);
}

const struct manifest_rows *manifest_rows_of(const struct manifest *manifest,
                                             const struct backup_part *part)
{
    CHECK(part->shard < manifest->shard_count);
    return part->kind == BACKUP_STATE ? &manifest->shards[part->shard].state
                                      : &manifest->shards[part->shard].documents;
}

void manifest_deinit(struct manifest *manifest)
{
    buf_deinit(&manifest->policy);
    manifest_clear_definitions(manifest);
    free(manifest->uses);
    free(manifest->shards);
    *manifest = (struct manifest){ 0 };
}

err manifest_add_definition(struct manifest *manifest, struct slice json)
{
    uint32_t count = manifest->definition_count;

    if (count == MANIFEST_DEFINITIONS_MAX || json.size > MANIFEST_TEXT_MAX)
        return ERR_TOO_LARGE;
    manifest->definitions =
        mem_realloc(manifest->definitions, sizeof *manifest->definitions * (count + 1u));
    manifest->definitions[count] = (struct buf){ 0 };
    buf_append(&manifest->definitions[count], json.data, json.size);
    manifest->definition_count = count + 1;
    return ERR_OK;
}

void manifest_clear_definitions(struct manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->definition_count; i++)
        buf_deinit(&manifest->definitions[i]);
    free(manifest->definitions);
    manifest->definitions = NULL;
    manifest->definition_count = 0;
}

void manifest_add_use(struct manifest *manifest, uint64_t number, struct hash128 checksum)
{
    uint32_t count = manifest->use_count;

    CHECK(count == 0 || manifest->uses[count - 1].number < number);
    manifest->uses = mem_realloc(manifest->uses, sizeof *manifest->uses * (count + 1u));
    manifest->uses[count] = (struct manifest_use){ number, checksum };
    manifest->use_count = count + 1;
}

/* ---- encode ---- */

static void put_file(struct buf *out, const char *name, const struct manifest_file *file)
{
    char hash[33];

    hash_print(file->hash, hash);
    buf_printf(out, " %s %" PRIu64 " %s", name, file->bytes, hash);
}

static void put_rows(struct buf *out, const struct manifest_rows *rows)
{
    char digest[33];

    hash_print(row_digest_sum(&rows->rows), digest);
    buf_printf(out, " rows %" PRIu64 " bytes %" PRIu64 " digest %s", rows->rows.count,
               rows->row_bytes, digest);
    put_file(out, "pack", &rows->pack);
    put_file(out, "list", &rows->list);
    buf_printf(out, "\n");
}

static void put_shard(struct buf *out, uint32_t number, const struct manifest_shard *shard)
{
    buf_printf(out, "shard %" PRIu32 " index %" PRIu64 " epoch %" PRIu64, number, shard->index,
               shard->epoch);
    put_rows(out, &shard->state);
}

static void put_documents(struct buf *out, uint32_t number, const struct manifest_shard *shard)
{
    buf_printf(out, "documents %" PRIu32 " away %" PRIu32, number, shard->members_away);
    put_rows(out, &shard->documents);
}

static void put_definitions(struct buf *out, const struct manifest *manifest)
{
    buf_printf(out, "definitions %" PRIu32 "\n", manifest->definition_count);
    for (uint32_t i = 0; i < manifest->definition_count; i++) {
        buf_printf(out, "definition ");
        buf_append(out, manifest->definitions[i].data, manifest->definitions[i].size);
        buf_printf(out, "\n");
    }
}

static unsigned format_of(const struct manifest *manifest)
{
    if (manifest->has_definitions)
        return MANIFEST_VERSION;
    return manifest->has_documents ? 2 : 1;
}

void manifest_encode(struct manifest *manifest, struct buf *out)
{
    size_t begin = out->size;
    char hash[33];

    buf_printf(out, FIRST_LINE "%u\n", format_of(manifest));
    buf_printf(out, "number %" PRIu64 "\n", manifest->number);
    buf_printf(out, "taken_at_ms %" PRIu64 "\n", manifest->taken_at_ms);
    buf_printf(out, "cluster %s\n", manifest->cluster_id);
    buf_printf(out, "software %s\n", manifest->software);
    buf_printf(out, "cut %" PRIu64 "\n", manifest->cut);
    buf_printf(out, "generation %" PRIu64 "\n", manifest->generation);
    buf_printf(out, "epoch %" PRIu64 "\n", manifest->epoch);
    buf_printf(out, "apply_version %" PRIu32 "\n", manifest->apply_version);
    buf_printf(out, "policy ");
    buf_append(out, manifest->policy.data, manifest->policy.size);
    buf_printf(out, "\n");
    if (manifest->has_definitions)
        put_definitions(out, manifest);
    buf_printf(out, "uses %" PRIu32 "\n", manifest->use_count);
    for (uint32_t i = 0; i < manifest->use_count; i++) {
        hash_print(manifest->uses[i].checksum, hash);
        buf_printf(out, "use %" PRIu64 " %s\n", manifest->uses[i].number, hash);
    }
    buf_printf(out, "shards %" PRIu32 "\n", manifest->shard_count);
    for (uint32_t i = 0; i < manifest->shard_count; i++)
        put_shard(out, i, &manifest->shards[i]);
    for (uint32_t i = 0; i < manifest->shard_count && manifest->has_documents; i++)
        put_documents(out, i, &manifest->shards[i]);
    manifest->checksum = hash_u128((struct slice){ out->data + begin, out->size - begin });
    hash_print(manifest->checksum, hash);
    buf_printf(out, "end %s\n", hash);
}

/* ---- decode ---- */

struct text {
    const uint8_t *at, *end;
    bool bad;
};

/* The next word, which ends at a space or at the end of the line; what ends it is taken too. */
static struct slice word(struct text *text, char end)
{
    const uint8_t *begin = text->at;

    while (text->at < text->end && *text->at != ' ' && *text->at != '\n')
        text->at++;
    struct slice found = { begin, (size_t)(text->at - begin) };
    if (text->at == text->end || *text->at != (uint8_t)end || found.size == 0) {
        text->bad = true;
        return (struct slice){ begin, 0 };
    }
    text->at++;
    return found;
}

static void name(struct text *text, const char *wanted)
{
    text->bad |= !slice_equal(word(text, ' '), slice_from_text(wanted));
}

static uint64_t number(struct text *text, char end)
{
    struct slice digits = word(text, end);
    uint64_t value = 0;

    if (digits.size > 20 || (digits.size > 1 && digits.data[0] == '0'))
        text->bad = true;
    for (size_t i = 0; i < digits.size && !text->bad; i++) {
        unsigned digit = (unsigned)digits.data[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            text->bad = true;
        else
            value = value * 10 + digit;
    }
    return value;
}

static uint32_t small_number(struct text *text, uint32_t max)
{
    uint64_t value = number(text, '\n');

    text->bad |= value > max;
    return text->bad ? 0 : (uint32_t)value;
}

static struct hash128 hash(struct text *text, char end)
{
    struct slice digits = word(text, end);
    struct hash128 value = { { 0 } };

    text->bad |= hex_parse(digits, sizeof value.bytes, value.bytes) != ERR_OK;
    return value;
}

static void short_text(struct text *text, char *to, size_t size)
{
    struct slice found = word(text, '\n');

    if (found.size >= size || memchr(found.data, 0, found.size) != NULL) {
        text->bad = true;
        return;
    }
    memcpy(to, found.data, found.size);
    to[found.size] = 0;
}

static void line(struct text *text, struct buf *to)
{
    size_t left = (size_t)(text->end - text->at);
    const uint8_t *end = left > 0 ? memchr(text->at, '\n', left) : NULL;

    if (text->bad || end == NULL || (size_t)(end - text->at) > MANIFEST_TEXT_MAX) {
        text->bad = true;
        return;
    }
    buf_append(to, text->at, (size_t)(end - text->at));
    text->at = end + 1;
}

static void read_file(struct text *text, const char *what, char end, struct manifest_file *file)
{
    name(text, what);
    file->bytes = number(text, ' ');
    file->hash = hash(text, end);
}

static void read_rows(struct text *text, struct manifest_rows *rows)
{
    name(text, "rows");
    rows->rows.count = number(text, ' ');
    name(text, "bytes");
    rows->row_bytes = number(text, ' ');
    name(text, "digest");
    struct hash128 sum = hash(text, ' ');
    rows->rows.sums[0] = load_u64(sum.bytes);
    rows->rows.sums[1] = load_u64(sum.bytes + 8);
    read_file(text, "pack", ' ', &rows->pack);
    read_file(text, "list", '\n', &rows->list);
}

static void read_shard(struct text *text, uint32_t wanted, struct manifest_shard *shard)
{
    name(text, "shard");
    text->bad |= number(text, ' ') != wanted;
    name(text, "index");
    shard->index = number(text, ' ');
    name(text, "epoch");
    shard->epoch = number(text, ' ');
    read_rows(text, &shard->state);
}

static void read_documents(struct text *text, uint32_t wanted, struct manifest_shard *shard)
{
    name(text, "documents");
    text->bad |= number(text, ' ') != wanted;
    name(text, "away");
    uint64_t away = number(text, ' ');

    text->bad |= away > UINT32_MAX;
    shard->members_away = (uint32_t)away;
    read_rows(text, &shard->documents);
}

static void read_definitions(struct text *text, struct manifest *manifest)
{
    struct buf json = { 0 };

    name(text, "definitions");
    uint32_t count = small_number(text, MANIFEST_DEFINITIONS_MAX);
    for (uint32_t i = 0; i < count && !text->bad; i++) {
        name(text, "definition");
        buf_clear(&json);
        line(text, &json);
        text->bad |= !text->bad && manifest_add_definition(manifest, buf_slice(&json)) != ERR_OK;
    }
    buf_deinit(&json);
}

static void read_uses(struct text *text, struct manifest *manifest)
{
    name(text, "uses");
    uint32_t count = small_number(text, MANIFEST_USES_MAX);
    for (uint32_t i = 0; i < count && !text->bad; i++) {
        name(text, "use");
        uint64_t used = number(text, ' ');
        struct hash128 checksum = hash(text, '\n');
        text->bad |= used >= manifest->number ||
                     (i > 0 && used <= manifest->uses[manifest->use_count - 1].number);
        if (!text->bad)
            manifest_add_use(manifest, used, checksum);
    }
}

static void read_all(struct text *text, struct manifest *manifest)
{
    name(text, "number");
    manifest->number = number(text, '\n');
    name(text, "taken_at_ms");
    manifest->taken_at_ms = number(text, '\n');
    name(text, "cluster");
    short_text(text, manifest->cluster_id, sizeof manifest->cluster_id);
    name(text, "software");
    short_text(text, manifest->software, sizeof manifest->software);
    name(text, "cut");
    manifest->cut = number(text, '\n');
    name(text, "generation");
    manifest->generation = number(text, '\n');
    name(text, "epoch");
    manifest->epoch = number(text, '\n');
    name(text, "apply_version");
    manifest->apply_version = small_number(text, UINT32_MAX);
    name(text, "policy");
    line(text, &manifest->policy);
    if (manifest->has_definitions)
        read_definitions(text, manifest);
    read_uses(text, manifest);
    name(text, "shards");
    manifest->shard_count = small_number(text, MANIFEST_SHARDS_MAX);
    if (text->bad || manifest->shard_count == 0) {
        text->bad = true;
        manifest->shard_count = 0;
        return;
    }
    manifest->shards = mem_zalloc(sizeof *manifest->shards * manifest->shard_count);
    for (uint32_t i = 0; i < manifest->shard_count && !text->bad; i++)
        read_shard(text, i, &manifest->shards[i]);
    for (uint32_t i = 0; i < manifest->shard_count && manifest->has_documents && !text->bad; i++)
        read_documents(text, i, &manifest->shards[i]);
}

static err read_version(struct text *text, struct manifest *manifest, struct backup_error *ret_why)
{
    struct slice first = SLICE_LITERAL(FIRST_LINE);

    if ((size_t)(text->end - text->at) < first.size ||
        !slice_equal((struct slice){ text->at, first.size }, first)) {
        backup_why(ret_why, "it is no manifest of a backup");
        return ERR_CORRUPT;
    }
    text->at += first.size;
    uint64_t version = number(text, '\n');
    manifest->has_documents = version >= 2;
    manifest->has_definitions = version >= 3;
    if (!text->bad && version >= 1 && version <= MANIFEST_VERSION)
        return ERR_OK;
    if (!text->bad && version > MANIFEST_VERSION) {
        backup_why(ret_why,
                   "it is of format %" PRIu64 ", made by a newer version; this one reads up to %u",
                   version, MANIFEST_VERSION);
        return ERR_INVALID;
    }
    backup_why(ret_why, "its first line is damaged");
    return ERR_CORRUPT;
}

err manifest_decode(struct slice bytes, struct manifest *ret_manifest, struct backup_error *ret_why)
{
    struct text text = { bytes.data, bytes.data + bytes.size, bytes.size > MANIFEST_BYTES_MAX };
    struct manifest manifest;
    struct buf again = { 0 };

    manifest_init(&manifest, 0);
    err e = read_version(&text, &manifest, ret_why);

    if (e != ERR_OK)
        return e;
    read_all(&text, &manifest);
    size_t covered = (size_t)(text.at - bytes.data);
    name(&text, "end");
    struct hash128 sum = hash(&text, '\n');
    if (!text.bad)
        manifest_encode(&manifest, &again);
    if (text.bad || text.at != text.end || !slice_equal(buf_slice(&again), bytes) ||
        !hash128_equal(sum, hash_u128((struct slice){ bytes.data, covered }))) {
        backup_why(ret_why, "its checksum or its form does not match");
        manifest_deinit(&manifest);
        buf_deinit(&again);
        return ERR_CORRUPT;
    }
    buf_deinit(&again);
    *ret_manifest = manifest;
    return ERR_OK;
}
