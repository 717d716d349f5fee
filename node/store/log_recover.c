/* Recovery: the entries of many shards from one reading of the log. */
#include <stdio.h>
#include <stdlib.h>

#include "node/store/node_log_private.h"
#include "runtime/base/check.h"

#define RECOVER_AT_ONCE 4096u

/* Entries wanted, of all shards, and which recovery each shard belongs to. */
struct wants {
    struct log_want *list;
    size_t count;
    size_t capacity;
    struct node_log_recovery **of_shard;
};

static void wants_add(struct wants *wants, const struct log_want *want)
{
    if (wants->count == wants->capacity) {
        wants->capacity = wants->capacity == 0 ? RECOVER_AT_ONCE : wants->capacity * 2;
        wants->list = mem_realloc(wants->list, wants->capacity * sizeof *wants->list);
    }
    wants->list[wants->count++] = *want;
}

static int by_place(const void *a, const void *b)
{
    const struct log_place *left = &((const struct log_want *)a)->place;
    const struct log_place *right = &((const struct log_want *)b)->place;

    if (left->segment != right->segment)
        return left->segment < right->segment ? -1 : 1;
    return left->offset < right->offset ? -1 : left->offset > right->offset;
}

/* Takes over what the scan kept from `from` to `last_index`, and wants the rest. Returns how many
 * there are. The shard's lock is held. */
static uint32_t collect(struct log_shard *shard, const struct node_log_recovery *recovery,
                        uint64_t last_index, struct wants *wants)
{
    uint64_t from = recovery->applied_index + 1;
    uint64_t end = shard->index.first + shard->index.count; /* A run without gaps. */
    uint32_t count = 0;

    if (log_index_find(&shard->index, from) == NULL || from > last_index)
        return 0;
    if (end > last_index + 1)
        end = last_index + 1;
    recovery->image->entries = mem_zalloc((end - from) * sizeof *recovery->image->entries);
    for (uint64_t at = from; at < end; at++, count++) {
        const struct log_place *place = log_index_find(&shard->index, at);
        struct entry *entry = log_kept_take(&shard->kept, at);

        recovery->image->entries[count] = entry;
        if (entry == NULL)
            wants_add(wants,
                      &(struct log_want){ .shard = recovery->shard, .index = at, .place = *place });
    }
    return count;
}

/* Finds everything from applied_index to the shard's last entry, for the image. */
static void want_shard(struct node_log *log, struct node_log_recovery *recovery,
                       uint64_t last_index, struct wants *wants)
{
    struct log_shard *shard = &log->shards[recovery->shard];

    recovery->image->entries = NULL;
    pthread_mutex_lock(&shard->lock);
    recovery->image->entry_count = collect(shard, recovery, last_index, wants);
    log_kept_deinit(&shard->kept);
    pthread_mutex_unlock(&shard->lock);
    uint64_t at = recovery->applied_index + 1 + recovery->image->entry_count;

    if (at > last_index)
        return;

    char text[NODE_LOG_TEXT_BYTES];
    snprintf(
        text, sizeof text,
        "%s: shard %u: entry %llu is not in the log, which ends at %llu; the database has only "
        "up to %llu",
        log->config.directory, recovery->shard, (unsigned long long)at,
        (unsigned long long)last_index, (unsigned long long)recovery->applied_index);
    log_shard_damage(log, recovery->shard, text);
    recovery->result = ERR_CORRUPT;
}

static void begin(struct node_log *log, struct node_log_recovery *recovery, struct wants *wants)
{
    struct rep_image *image = recovery->image;
    struct node_log_shard known;

    CHECK(recovery->shard < log->config.shard_count);
    CHECK(wants->of_shard[recovery->shard] == NULL);
    wants->of_shard[recovery->shard] = recovery;
    node_log_shard_get(log, recovery->shard, &known);
    recovery->result = known.damaged ? ERR_CORRUPT : ERR_OK;
    image->promise = known.promise;
    image->dropped = known.dropped;
    image->differs = known.differs;
    image->applied_index = recovery->applied_index;
    image->commit_index = known.commit_index;
    image->log_first_index = known.first_index;
    want_shard(log, recovery, known.last_index, wants);
}

/* Reads wants that stand one behind the other, and puts each entry where its image has it. */
static void read_some(struct node_log *log, const struct wants *wants, size_t from, uint32_t count)
{
    struct entry *entries[RECOVER_AT_ONCE];
    char text[NODE_LOG_TEXT_BYTES];

    bool whole = log_read_wants(log, wants->list + from, count, entries, text) == ERR_OK;

    for (uint32_t i = 0; i < count; i++) {
        const struct log_want *want = &wants->list[from + i];
        struct node_log_recovery *recovery = wants->of_shard[want->shard];

        recovery->image->entries[want->index - recovery->applied_index - 1] = entries[i];
        if (entries[i] != NULL)
            continue;
        CHECK(!whole);
        log_want_text(log, want, text);
        log_shard_damage(log, want->shard, text);
        recovery->result = ERR_CORRUPT;
    }
}

static bool follows(const struct entry *previous, const struct entry *entry)
{
    return previous == NULL ||
           (entry->index == previous->index + 1 && hash128_equal(entry->prev_hash, previous->hash));
}

/* Keeps of the image what hangs together from its beginning. */
static void keep_chain(struct node_log *log, struct node_log_recovery *recovery)
{
    struct rep_image *image = recovery->image;
    uint32_t kept = 0;

    while (kept < image->entry_count && image->entries[kept] != NULL &&
           follows(kept > 0 ? image->entries[kept - 1] : NULL, image->entries[kept]))
        kept++;
    if (kept < image->entry_count) {
        char text[NODE_LOG_TEXT_BYTES];
        snprintf(text, sizeof text, "%s: shard %u: entries above %llu do not form a chain",
                 log->config.directory, recovery->shard,
                 (unsigned long long)(recovery->applied_index + kept));
        log_shard_damage(log, recovery->shard, text);
        recovery->result = ERR_CORRUPT;
    }
    for (uint32_t i = kept; i < image->entry_count; i++) {
        if (image->entries[i] != NULL)
            entry_unref(image->entries[i]);
    }
    image->entry_count = kept;
}

static void finish(struct node_log *log, struct node_log_recovery *recovery)
{
    struct rep_image *image = recovery->image;
    struct node_log_shard known;

    keep_chain(log, recovery);
    node_log_shard_get(log, recovery->shard, &known);
    uint64_t last = recovery->applied_index + image->entry_count;

    if (image->commit_index > last)
        image->commit_index = last;
    if (image->commit_index < recovery->applied_index)
        image->commit_index = recovery->applied_index;
    if (image->log_first_index > last + 1 || known.last_index < recovery->applied_index)
        image->log_first_index = last + 1;
}

void node_log_recover(struct node_log *log, struct node_log_recovery *list, uint32_t count)
{
    struct wants wants = {
        .of_shard = mem_zalloc(log->config.shard_count * sizeof *wants.of_shard),
    };

    for (uint32_t i = 0; i < count; i++)
        begin(log, &list[i], &wants);
    if (wants.count > 0)
        qsort(wants.list, wants.count, sizeof *wants.list, by_place);
    for (size_t from = 0; from < wants.count; from += RECOVER_AT_ONCE) {
        size_t left = wants.count - from;
        read_some(log, &wants, from, left < RECOVER_AT_ONCE ? (uint32_t)left : RECOVER_AT_ONCE);
    }
    for (uint32_t i = 0; i < count; i++)
        finish(log, &list[i]);
    free(wants.list);
    free(wants.of_shard);
}

err node_log_recover_shard(struct node_log *log, uint32_t shard, uint64_t applied_index,
                           struct rep_image *image)
{
    struct node_log_recovery one = {
        .shard = shard,
        .applied_index = applied_index,
        .image = image,
    };

    node_log_recover(log, &one, 1);
    return one.result;
}

void node_log_image_deinit(struct rep_image *image)
{
    for (uint32_t i = 0; i < image->entry_count; i++)
        entry_unref(image->entries[i]);
    free(image->entries);
    image->entries = NULL;
    image->entry_count = 0;
}
