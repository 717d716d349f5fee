#include "coordinator/core/definitions.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/core/definition_kind.h"
#include "runtime/base/check.h"

/* Where the number is, or would be. */
static uint32_t place_of(const struct coord *coord, uint64_t number)
{
    const struct definitions *all = &coord->definitions;
    uint32_t low = 0, high = all->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (all->list[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct definition *definition_find(const struct coord *coord, uint64_t number)
{
    uint32_t place = place_of(coord, number);

    if (place == coord->definitions.count || coord->definitions.list[place]->number != number)
        return NULL;
    return coord->definitions.list[place];
}

const struct definition_version *definition_newest(const struct definition *definition)
{
    CHECK(definition->count > 0);
    return &definition->versions[definition->count - 1];
}

const struct definition_version *definition_get(const struct definition *definition,
                                                uint64_t version)
{
    for (uint32_t i = 0; i < definition->count; i++) {
        if (definition->versions[i].version == version)
            return &definition->versions[i];
    }
    return NULL;
}

struct definition *definition_named(const struct coord *coord, uint32_t kind, const char *name)
{
    for (uint32_t i = 0; i < coord->definitions.count; i++) {
        struct definition *definition = coord->definitions.list[i];

        if (definition->kind == kind && strcmp(definition->name, name) == 0 &&
            !definition_newest(definition)->deleted)
            return definition;
    }
    return NULL;
}

definition_record *definition_unpack(const struct definition_version *version)
{
    definition_record *record = holdfast__internal__v1__definition_version__unpack(
        NULL, version->packed.size, version->packed.data);

    CHECK(record != NULL); /* It was decoded when it came. */
    return record;
}

uint64_t definitions_revision(const struct coord *coord)
{
    int64_t newest = 0;

    for (uint32_t i = 0; i < coord->definitions.count; i++) {
        int64_t revision = definition_newest(coord->definitions.list[i])->revision;

        if (revision > newest)
            newest = revision;
    }
    return (uint64_t)newest;
}

static void definition_free(struct definition *definition)
{
    for (uint32_t i = 0; i < definition->count; i++)
        buf_deinit(&definition->versions[i].packed);
    free(definition->versions);
    free(definition);
}

void definitions_free(struct coord *coord)
{
    for (uint32_t i = 0; i < coord->definitions.count; i++)
        definition_free(coord->definitions.list[i]);
    free(coord->definitions.list);
    coord->definitions.list = NULL;
    coord->definitions.count = coord->definitions.capacity = 0;
}

/* NULL: there are too many. */
static struct definition *definition_add(struct coord *coord, uint64_t number)
{
    struct definitions *all = &coord->definitions;
    uint32_t place = place_of(coord, number);

    if (all->count == DEFINITIONS_MAX)
        return NULL;
    if (all->count == all->capacity) {
        all->capacity = all->capacity == 0 ? 16 : all->capacity * 2;
        all->list = mem_realloc(all->list, all->capacity * sizeof(struct definition *));
    }
    memmove(&all->list[place + 1], &all->list[place],
            (all->count - place) * sizeof(struct definition *));
    all->list[place] = mem_zalloc(sizeof *all->list[place]);
    all->list[place]->number = number;
    all->count++;
    return all->list[place];
}

static bool record_is_sound(const definition_record *record, uint64_t number, uint64_t version)
{
    size_t name = record != NULL ? strlen(record->name) : 0;

    return record != NULL && record->number == number && record->version == version && name > 0 &&
           name <= DEFINITION_NAME_MAX && record->body != NULL &&
           definition_kind_name(record->body->kind_case) != NULL;
}

uint32_t definition_bytes(const definition_record *record)
{
    if (record->deleted)
        return 0;
    return (uint32_t)(protobuf_c_message_get_packed_size(&record->body->base) +
                      strlen(record->name) + 64);
}

/* Of its newest version. */
static void take_facts(struct definition *definition, const definition_record *record)
{
    definition->kind = record->body->kind_case;
    memcpy(definition->name, record->name, strlen(record->name) + 1);
    definition->bytes = definition_bytes(record);
    definition->deleted_at_ms = record->deleted && record->at_ms > 0 ? (uint64_t)record->at_ms : 0;
}

/* An etcd that was restored may have another version of that number. */
static void version_replace(struct definition_version *version, const definition_record *record,
                            struct slice packed, int64_t revision)
{
    version->revision = revision;
    version->deleted = record->deleted;
    buf_clear(&version->packed);
    buf_append(&version->packed, packed.data, packed.size);
}

static void version_add(struct definition *definition, const definition_record *record,
                        struct slice packed, int64_t revision)
{
    uint32_t place = definition->count;

    while (place > 0 && definition->versions[place - 1].version > record->version)
        place--;
    if (place > 0 && definition->versions[place - 1].version == record->version) {
        version_replace(&definition->versions[place - 1], record, packed, revision);
        if (place == definition->count)
            take_facts(definition, record);
        return;
    }
    if (definition->count == definition->capacity) {
        definition->capacity = definition->capacity == 0 ? 4 : definition->capacity * 2;
        definition->versions =
            mem_realloc(definition->versions, definition->capacity * sizeof *definition->versions);
    }
    memmove(&definition->versions[place + 1], &definition->versions[place],
            (definition->count - place) * sizeof *definition->versions);
    definition->versions[place] = (struct definition_version){ .version = record->version,
                                                               .revision = revision,
                                                               .deleted = record->deleted };
    buf_append(&definition->versions[place].packed, packed.data, packed.size);
    definition->count++;
    if (place + 1 == definition->count)
        take_facts(definition, record);
}

bool definitions_put(struct coord *coord, uint64_t number, uint64_t version, struct slice packed,
                     int64_t revision)
{
    definition_record *record =
        holdfast__internal__v1__definition_version__unpack(NULL, packed.size, packed.data);
    struct definition *definition = definition_find(coord, number);
    bool sound = record_is_sound(record, number, version);

    if (sound && definition == NULL)
        definition = definition_add(coord, number);
    if (sound && definition != NULL)
        version_add(definition, record, packed, revision);
    if (record != NULL)
        holdfast__internal__v1__definition_version__free_unpacked(record, NULL);
    return sound && definition != NULL;
}

static void definition_remove(struct coord *coord, uint64_t number)
{
    struct definitions *all = &coord->definitions;
    uint32_t place = place_of(coord, number);

    definition_free(all->list[place]);
    all->count--;
    memmove(&all->list[place], &all->list[place + 1],
            (all->count - place) * sizeof(struct definition *));
}

/* Coordinators forget old versions, and what was deleted long ago. Else a newest one goes only
 * where etcd was restored to before it: what shards know above it makes them doubted then
 * (docs/etcd-restore.md). */
void definitions_deleted(struct coord *coord, uint64_t number, uint64_t version)
{
    struct definition *definition = definition_find(coord, number);
    uint32_t place = 0;

    coord->definitions.trimming = false;
    while (definition != NULL && place < definition->count &&
           definition->versions[place].version != version)
        place++;
    if (definition == NULL || place == definition->count)
        return;
    if (definition->count == 1) {
        definition_remove(coord, number);
        return;
    }
    buf_deinit(&definition->versions[place].packed);
    definition->count--;
    memmove(&definition->versions[place], &definition->versions[place + 1],
            (definition->count - place) * sizeof *definition->versions);
    if (place < definition->count)
        return;
    definition_record *record = definition_unpack(definition_newest(definition));
    take_facts(definition, record);
    holdfast__internal__v1__definition_version__free_unpacked(record, NULL);
}

/* ---- a change ---- */
/* Something stands there: perhaps this very write, whose first answer was lost. */
static void definition_lost(struct coord *coord, uint64_t number, uint64_t version,
                            int64_t revision)
{
    const struct definition *definition = definition_find(coord, number);

    coord->stats.writes_lost++;
    if (definition == NULL || definition_get(definition, version) == NULL)
        coord->definitions.unseen =
            (struct definition_unseen){ number, version, (uint64_t)revision };
}

void definitions_reached(struct coord *coord, int64_t revision)
{
    struct definition_unseen *unseen = &coord->definitions.unseen;
    const struct definition *definition = definition_find(coord, unseen->number);

    if (unseen->revision == 0)
        return;
    if ((uint64_t)revision > unseen->revision ||
        (definition != NULL && definition_get(definition, unseen->version) != NULL))
        *unseen = (struct definition_unseen){ 0 };
}

void definition_written(struct coord *coord, uint64_t number, uint64_t version,
                        const struct definition_write *write_done)
{
    if (write_done->written)
        (void)definitions_put(coord, number, version, write_done->packed, write_done->revision);
    else
        definition_lost(coord, number, version, write_done->revision);
    for (uint32_t i = 0; i < DEFINITION_WAITS_MAX; i++) {
        struct definition_wait *wait = &coord->definitions.waits[i];
        if (wait->state != WAIT_WRITTEN || wait->number != number || wait->version != version)
            continue;
        wait->state = write_done->written ? WAIT_SHARDS : WAIT_UNSURE;
        if (write_done->written)
            wait->until_ms = coord->now_ms + wait->wait_ms;
    }
}
