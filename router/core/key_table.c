#include "router/core/key_table.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define SLOTS      (2 * API_KEYS_MAX)
#define REMEMBERED 1024u
#define TEXT_BYTES (API_KEY_TEXT_SIZE - 1)

struct remembered {
    struct key_entry *entry; /* NULL: nothing is remembered here. */
    uint8_t text[TEXT_BYTES];
};

struct key_table {
    char cluster[CLUSTER_NAME_MAX + 1];
    uint64_t seed;
    struct key_entry *entries[API_KEYS_MAX];
    uint32_t count;
    struct key_entry *slots[SLOTS]; /* By digest; linear probing; rebuilt when a key goes. */
    struct remembered remembered[REMEMBERED];
};

struct key_table *key_table_new(const char *cluster, uint64_t seed)
{
    struct key_table *table = mem_zalloc(sizeof *table);

    CHECK(cluster_name_valid(cluster));
    memcpy(table->cluster, cluster, strlen(cluster) + 1);
    table->seed = seed;
    return table;
}

static void forget(struct key_table *table)
{
    explicit_bzero(table->remembered, sizeof table->remembered);
}

void key_table_clear(struct key_table *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        free(table->entries[i]);
    table->count = 0;
    memset(table->slots, 0, sizeof table->slots);
    forget(table);
}

void key_table_free(struct key_table *table)
{
    if (table == NULL)
        return;
    key_table_clear(table);
    free(table);
}

static struct key_entry *const *slot_of(const struct key_table *table, const uint8_t *digest)
{
    uint64_t at = load_u64(digest) % SLOTS;

    while (table->slots[at] != NULL &&
           memcmp(table->slots[at]->record.digest, digest, API_KEY_DIGEST_BYTES) != 0)
        at = (at + 1) % SLOTS;
    return &table->slots[at];
}

/* The same, to be filled. */
static struct key_entry **slot_for(struct key_table *table, const uint8_t *digest)
{
    return &table->slots[slot_of(table, digest) - table->slots];
}

err key_table_put(struct key_table *table, const struct api_key_record *record)
{
    struct key_entry **slot = slot_for(table, record->digest);

    CHECK(api_key_record_validate(record, NULL) == ERR_OK);
    if (*slot == NULL) {
        if (table->count == API_KEYS_MAX)
            return ERR_FULL;
        *slot = mem_zalloc(sizeof **slot);
        table->entries[table->count++] = *slot;
    }
    (*slot)->record = *record;
    forget(table);
    return ERR_OK;
}

/* Entries behind it that were put there for want of a place before move up. */
static void slot_clear(struct key_table *table, uint64_t hole)
{
    for (uint64_t at = (hole + 1) % SLOTS; table->slots[at] != NULL; at = (at + 1) % SLOTS) {
        uint64_t home = load_u64(table->slots[at]->record.digest) % SLOTS;

        if ((at + SLOTS - home) % SLOTS < (at + SLOTS - hole) % SLOTS)
            continue;
        table->slots[hole] = table->slots[at];
        hole = at;
    }
    table->slots[hole] = NULL;
}

void key_table_remove(struct key_table *table, struct slice id)
{
    for (uint32_t i = 0; i < table->count; i++) {
        struct key_entry *entry = table->entries[i];

        if (!slice_equal(id, slice_from_text(entry->record.id)))
            continue;
        slot_clear(table, (uint64_t)(slot_for(table, entry->record.digest) - table->slots));
        free(entry);
        table->entries[i] = table->entries[--table->count];
        break;
    }
    forget(table);
}

uint32_t key_table_count(const struct key_table *table)
{
    return table->count;
}

static size_t place_of(const struct key_table *table, struct slice text)
{
    uint8_t seeded[sizeof(uint64_t) + TEXT_BYTES];

    store_u64(seeded, table->seed);
    memcpy(seeded + sizeof(uint64_t), text.data, TEXT_BYTES);
    return hash_u64((struct slice){ seeded, sizeof seeded }) % REMEMBERED;
}

/* In the same time wherever they differ. */
static bool is_same(const uint8_t *a, const uint8_t *b)
{
    uint8_t differ = 0;

    for (size_t i = 0; i < TEXT_BYTES; i++)
        differ |= (uint8_t)(a[i] ^ b[i]);
    return differ == 0;
}

bool key_table_remembers(const struct key_table *table, struct slice text)
{
    if (text.size != TEXT_BYTES)
        return false;
    const struct remembered *one = &table->remembered[place_of(table, text)];
    return one->entry != NULL && is_same(one->text, text.data);
}

static struct key_entry *find(struct key_table *table, struct slice text)
{
    uint8_t secret[API_KEY_SECRET_BYTES];
    uint8_t digest[API_KEY_DIGEST_BYTES];
    struct key_entry *entry;

    if (text.size != TEXT_BYTES)
        return NULL;
    struct remembered *one = &table->remembered[place_of(table, text)];
    if (one->entry != NULL && is_same(one->text, text.data))
        return one->entry;
    if (!api_key_parse(text, secret))
        return NULL;
    api_key_digest(table->cluster, secret, digest);
    explicit_bzero(secret, sizeof secret);
    entry = *slot_of(table, digest);
    if (entry != NULL) {
        one->entry = entry;
        memcpy(one->text, text.data, TEXT_BYTES);
    }
    return entry;
}

enum key_found key_table_find(struct key_table *table, struct slice text, uint64_t wall_ms,
                              struct key_entry **ret_entry)
{
    struct key_entry *entry;

    if (text.size == 0)
        return KEY_MISSING;
    entry = find(table, text);
    if (entry == NULL)
        return KEY_UNKNOWN;
    if (entry->record.expires_at_ms != 0 && wall_ms >= entry->record.expires_at_ms)
        return KEY_EXPIRED;
    *ret_entry = entry;
    return KEY_FOUND;
}

static bool is_entry(const struct key_table *table, const struct key_entry *entry)
{
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->entries[i] == entry)
            return true;
    }
    return false;
}

void key_table_check(const struct key_table *table)
{
    uint32_t filled = 0;

    CHECK(table->count <= API_KEYS_MAX);
    for (uint32_t i = 0; i < table->count; i++)
        CHECK(*slot_of(table, table->entries[i]->record.digest) == table->entries[i]);
    for (uint32_t i = 0; i < SLOTS; i++)
        filled += table->slots[i] != NULL;
    CHECK(filled == table->count); /* None of a key that has gone. */
    for (uint32_t i = 0; i < REMEMBERED; i++) {
        const struct remembered *one = &table->remembered[i];

        CHECK(one->entry == NULL || is_entry(table, one->entry));
        CHECK(one->entry == NULL || place_of(table, (struct slice){ one->text, TEXT_BYTES }) == i);
    }
}
