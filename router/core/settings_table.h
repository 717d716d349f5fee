/*
 * settings_table: what definitions of the kind `settings` say, as a router knows them from etcd
 * (docs/settings.md). Versions may come in any order and more than once: of each definition the
 * latest stands. Pure.
 */
#ifndef ROUTER_CORE_SETTINGS_TABLE_H
#define ROUTER_CORE_SETTINGS_TABLE_H

#include "runtime/base/buf.h"
#include "runtime/base/err.h"

#define SETTINGS_NAME_MAX 64u
#define SETTINGS_JSON_MAX 4000u /* As a definition's body. */
#define SETTINGS_MAX      4096u /* As definitions, deleted ones counted. */

struct settings {
    uint64_t number, version;
    int64_t made_at_ms;
    bool deleted;
    char name[SETTINGS_NAME_MAX + 1];
    char *json; /* NULL: it was deleted. */
};

/* A zeroed one is valid and empty. */
struct settings_table {
    bool complete; /* All that etcd has was told: a name that is not here is not defined. */
    uint32_t count;
    struct settings *list; /* By number. */
};

void settings_table_deinit(struct settings_table *table);
/* A version as etcd has it (internal.v1.DefinitionVersion). *ret_changed: what it is of;
 * NULL: it is of another kind, or no news. ERR_CORRUPT: it cannot be read. ERR_FULL: SETTINGS_MAX.
 */
NODISCARD err settings_table_take(struct settings_table *table, struct slice version,
                                  const struct settings **ret_changed);
/* etcd has that version no more. True: it was the latest, and its settings are gone. */
bool settings_table_forget(struct settings_table *table, uint64_t number, uint64_t version);
/* Nothing is known any more, nor complete: etcd tells all of them again. */
void settings_table_clear(struct settings_table *table);
/* NULL: there are none of that name. Valid until the table changes. */
const struct settings *settings_table_find(const struct settings_table *table, const char *name);
/* The name that was probably meant; empty: none is near. Valid as above. */
struct slice settings_table_suggest(const struct settings_table *table, const char *name);

#endif
