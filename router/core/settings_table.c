#include "router/core/settings_table.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

typedef Holdfast__Internal__V1__DefinitionVersion definition_version;

void settings_table_clear(struct settings_table *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        free(table->list[i].json);
    free(table->list);
    *table = (struct settings_table){ 0 };
}

void settings_table_deinit(struct settings_table *table)
{
    settings_table_clear(table);
}

static uint32_t place_of(const struct settings_table *table, uint64_t number)
{
    uint32_t low = 0, high = table->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (table->list[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct settings *settings_table_find(const struct settings_table *table, const char *name)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct settings *settings = &table->list[i];
        if (!settings->deleted && strcmp(settings->name, name) == 0)
            return settings;
    }
    return NULL;
}

struct slice settings_table_suggest(const struct settings_table *table, const char *name)
{
    struct nearest nearest;

    nearest_init(&nearest, slice_from_text(name));
    for (uint32_t i = 0; i < table->count; i++) {
        if (!table->list[i].deleted)
            nearest_offer_text(&nearest, table->list[i].name);
    }
    return nearest.name;
}

static bool is_settings(const definition_version *version)
{
    return version->body != NULL &&
           version->body->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_SETTINGS;
}

static bool is_sound(const definition_version *version)
{
    size_t name = strlen(version->name), json = strlen(version->body->settings->json);

    return version->number > 0 && version->version > 0 && name > 0 && name <= SETTINGS_NAME_MAX &&
           json > 0 && json <= SETTINGS_JSON_MAX;
}

static struct settings *insert(struct settings_table *table, uint32_t at, uint64_t number)
{
    table->list = mem_realloc(table->list, (table->count + 1) * sizeof *table->list);
    memmove(&table->list[at + 1], &table->list[at], (table->count - at) * sizeof *table->list);
    table->count++;
    table->list[at] = (struct settings){ .number = number };
    return &table->list[at];
}

static err put(struct settings_table *table, const definition_version *version,
               const struct settings **ret_changed)
{
    uint32_t at = place_of(table, version->number);
    bool known = at < table->count && table->list[at].number == version->number;
    struct settings *settings;

    if (known && table->list[at].version >= version->version)
        return ERR_OK;
    if (!known && table->count == SETTINGS_MAX)
        return ERR_FULL;
    settings = known ? &table->list[at] : insert(table, at, version->number);
    free(settings->json);
    settings->version = version->version;
    settings->made_at_ms = version->at_ms;
    settings->deleted = version->deleted;
    settings->json = NULL;
    memcpy(settings->name, version->name, strlen(version->name) + 1);
    if (!version->deleted) {
        size_t size = strlen(version->body->settings->json) + 1;
        settings->json = mem_alloc(size);
        memcpy(settings->json, version->body->settings->json, size);
    }
    *ret_changed = settings;
    return ERR_OK;
}

err settings_table_take(struct settings_table *table, struct slice bytes,
                        const struct settings **ret_changed)
{
    definition_version *version =
        holdfast__internal__v1__definition_version__unpack(NULL, bytes.size, bytes.data);
    err e = ERR_OK;

    *ret_changed = NULL;
    if (version == NULL)
        return ERR_CORRUPT;
    if (is_settings(version))
        e = is_sound(version) ? put(table, version, ret_changed) : ERR_CORRUPT;
    holdfast__internal__v1__definition_version__free_unpacked(version, NULL);
    return e;
}

bool settings_table_forget(struct settings_table *table, uint64_t number, uint64_t version)
{
    uint32_t at = place_of(table, number);

    if (at == table->count || table->list[at].number != number ||
        table->list[at].version != version)
        return false;
    free(table->list[at].json);
    table->count--;
    memmove(&table->list[at], &table->list[at + 1], (table->count - at) * sizeof *table->list);
    return true;
}
