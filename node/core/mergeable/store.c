#include "node/core/mergeable/store.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

static void row_deinit(struct merge_row *row)
{
    merge_key_unref(row->key);
    merge_record_deinit(&row->record);
}

void merge_store_deinit(struct merge_store *store)
{
    for (uint32_t i = 0; i < store->count; i++)
        row_deinit(&store->rows[i]);
    for (uint32_t i = 0; i < store->erasure_count; i++)
        free((void *)(uintptr_t)store->erasures[i].entity.data);
    for (uint32_t i = 0; i < store->gone_count; i++)
        merge_key_unref(store->gone[i]);
    free(store->gone);
    free(store->rows);
    free(store->erasures);
    *store = (struct merge_store){ 0 };
}

/* The place of the first row that is not before the key. */
static uint32_t place_of(const struct merge_store *store, const struct merge_key *key)
{
    uint32_t low = 0, high = store->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (merge_key_compare(store->rows[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct merge_store *store, uint32_t at, const struct merge_key *key)
{
    return at < store->count && merge_key_compare(store->rows[at].key, key) == 0;
}

struct merge_record *merge_store_find(const struct merge_store *store, const struct merge_key *key)
{
    uint32_t at = place_of(store, key);

    return is_at(store, at, key) ? &store->rows[at].record : NULL;
}

struct merge_record *merge_store_make(struct merge_store *store, struct merge_key *key)
{
    uint32_t at = place_of(store, key);

    if (is_at(store, at, key))
        return &store->rows[at].record;
    if (store->count == store->capacity) {
        store->capacity = store->capacity > 0 ? store->capacity * 2 : 16;
        store->rows = mem_realloc(store->rows, store->capacity * sizeof *store->rows);
    }
    memmove(&store->rows[at + 1], &store->rows[at], (store->count - at) * sizeof *store->rows);
    store->rows[at] = (struct merge_row){ .key = merge_key_ref(key), .changed = true };
    store->count++;
    return &store->rows[at].record;
}

void merge_store_load(struct merge_store *store, struct merge_key *key,
                      const struct merge_record *record)
{
    *merge_store_make(store, key) = *record;
    struct merge_row *row = &store->rows[place_of(store, key)];

    row->saved = true;
    row->changed = false;
}

void merge_store_must_go(struct merge_store *store, struct merge_key *key)
{
    if (store->gone_count == store->gone_capacity) {
        store->gone_capacity = store->gone_capacity * 2 + 16;
        store->gone = mem_realloc(store->gone, store->gone_capacity * sizeof(struct merge_key *));
    }
    store->gone[store->gone_count++] = merge_key_ref(key);
}

void merge_store_save(struct merge_store *store, const struct merge_saving *saving)
{
    for (uint32_t i = 0; i < store->gone_count; i++) {
        saving->gone(saving->user, store->gone[i]);
        merge_key_unref(store->gone[i]);
    }
    store->gone_count = 0;
    for (uint32_t i = 0; i < store->count; i++) {
        struct merge_row *row = &store->rows[i];

        if (!row->changed)
            continue;
        saving->row(saving->user, row);
        row->saved = true;
        row->changed = false;
    }
}

static void tell_gone(struct merge_store *store, struct merge_row *row)
{
    if (store->follower.gone != NULL)
        store->follower.gone(store->follower.user, row);
    if (row->saved)
        merge_store_must_go(store, row->key);
}

void merge_store_changed(struct merge_store *store, const struct merge_key *key)
{
    uint32_t at = place_of(store, key);

    if (!is_at(store, at, key))
        return;
    store->rows[at].changed = true;
    if (store->follower.changed != NULL)
        store->follower.changed(store->follower.user, &store->rows[at]);
}

static void remove_at(struct merge_store *store, uint32_t at)
{
    tell_gone(store, &store->rows[at]);
    row_deinit(&store->rows[at]);
    store->count--;
    memmove(&store->rows[at], &store->rows[at + 1], (store->count - at) * sizeof *store->rows);
}

void merge_store_remove(struct merge_store *store, const struct merge_key *key)
{
    uint32_t at = place_of(store, key);

    if (is_at(store, at, key))
        remove_at(store, at);
}

static void remove_where(struct merge_store *store,
                         bool (*goes)(const void *user, const struct merge_row *row),
                         const void *user)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < store->count; i++) {
        struct merge_row *row = &store->rows[i];

        if (goes(user, row)) {
            tell_gone(store, row);
            row_deinit(row);
        } else {
            store->rows[kept++] = *row;
        }
    }
    store->count = kept;
}

static bool is_void(const void *user, const struct merge_row *row)
{
    (void)user;
    return merge_record_is_void(&row->record);
}

void merge_store_remove_void(struct merge_store *store)
{
    remove_where(store, is_void, NULL);
}

uint32_t merge_store_after(const struct merge_store *store, const struct merge_key *key)
{
    if (key == NULL)
        return 0;
    uint32_t at = place_of(store, key);

    return at + is_at(store, at, key);
}

/* ---- erasures ---- */

static uint32_t erasure_place(const struct merge_store *store, struct slice entity)
{
    uint32_t low = 0, high = store->erasure_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (slice_compare(store->erasures[middle].entity, entity) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct merge_erasure *erasure_find(const struct merge_store *store, struct slice entity)
{
    uint32_t at = erasure_place(store, entity);

    return at < store->erasure_count && slice_equal(store->erasures[at].entity, entity)
               ? &store->erasures[at]
               : NULL;
}

uint64_t merge_store_erasure(const struct merge_store *store, struct slice entity)
{
    const struct merge_erasure *erasure = erasure_find(store, entity);

    return erasure != NULL ? erasure->number : 0;
}

bool merge_store_can_erase(const struct merge_store *store, struct slice entity)
{
    return store->erasure_count < MERGE_ERASURES_MAX || erasure_find(store, entity) != NULL;
}

static void erasure_insert(struct merge_store *store, struct slice entity, uint64_t number)
{
    uint32_t at = erasure_place(store, entity);
    uint8_t *copy = mem_alloc(entity.size + 1);

    memcpy(copy, entity.data, entity.size);
    store->erasures =
        mem_realloc(store->erasures, (store->erasure_count + 1) * sizeof *store->erasures);
    memmove(&store->erasures[at + 1], &store->erasures[at],
            (store->erasure_count - at) * sizeof *store->erasures);
    store->erasures[at] =
        (struct merge_erasure){ .entity = { copy, entity.size }, .number = number };
    store->erasure_count++;
}

static bool is_erased(const void *user, const struct merge_row *row)
{
    const struct merge_erasure *erasure = user;

    return row->record.erasure < erasure->number &&
           slice_equal(merge_key_entity(row->key), erasure->entity);
}

err merge_store_erase(struct merge_store *store, struct slice entity, uint64_t number)
{
    struct merge_erasure *erasure = erasure_find(store, entity);

    if (number == 0 || (erasure != NULL && number <= erasure->number))
        return ERR_OK;
    if (!merge_store_can_erase(store, entity))
        return ERR_FULL;
    if (erasure != NULL)
        erasure->number = number;
    else
        erasure_insert(store, entity, number);
    remove_where(store, is_erased, &(struct merge_erasure){ .entity = entity, .number = number });
    return ERR_OK;
}

void merge_erasures_encode(const struct merge_store *store, struct buf *out)
{
    buf_put_compact(out, store->erasure_count);
    for (uint32_t i = 0; i < store->erasure_count; i++) {
        buf_put_u8(out, (uint8_t)store->erasures[i].entity.size);
        buf_append(out, store->erasures[i].entity.data, store->erasures[i].entity.size);
        buf_put_compact(out, store->erasures[i].number);
    }
}

err merge_erasures_decode(struct merge_store *store, struct reader *reader)
{
    uint64_t count = read_compact(reader);

    if (reader->bad || count > MERGE_ERASURES_MAX)
        return ERR_CORRUPT;
    for (uint64_t i = 0; i < count; i++) {
        struct slice entity = read_raw(reader, read_u8(reader));
        uint64_t number = read_compact(reader);

        if (reader->bad || entity.size == 0 || number == 0 ||
            merge_store_erase(store, entity, number) != ERR_OK)
            return ERR_CORRUPT;
    }
    return ERR_OK;
}

struct hash128 merge_store_digest(const struct merge_store *store)
{
    struct hash128 digest = { { 0 } };
    struct buf key = { 0 };

    for (uint32_t i = 0; i < store->count; i++) {
        const struct merge_row *row = &store->rows[i];
        struct hash128 record = merge_record_digest(&row->record);

        if (row->record.count == 0) /* A delete that waits for its context: absent to all. */
            continue;
        buf_clear(&key);
        merge_key_encode(row->key, &key);
        digest = hash_chain(digest, buf_slice(&key),
                            (struct slice){ record.bytes, sizeof record.bytes });
    }
    buf_deinit(&key);
    return digest;
}
