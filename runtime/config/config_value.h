/*
 * config_value: one option's value: read from text and checked. Pure. For this folder only.
 */
#ifndef RUNTIME_CONFIG_CONFIG_VALUE_H
#define RUNTIME_CONFIG_CONFIG_VALUE_H

#include "runtime/base/buf.h"
#include "runtime/config/config_table.h"

/* Where a value comes from, in words: "flag --listen", "file a.yaml line 3: listen". */
struct config_source {
    char text[320];
};

/* `text` into the option's field, freeing what was there. On error the field keeps its value and
 * ret_why says source, limit and value. */
NODISCARD err config_value_set(const struct config_option *option, void *config, const char *text,
                               const struct config_source *source, struct config_error *ret_why);
/* The same for a list given item by item. */
struct config_items {
    const char *const *texts;
    size_t count;
};
NODISCARD err config_value_set_list(const struct config_option *option, void *config,
                                    const struct config_items *items,
                                    const struct config_source *source,
                                    struct config_error *ret_why);
void config_value_free(const struct config_option *option, void *config);
/* "integer", "duration", ... for --help. */
const char *config_type_word(enum config_type type);
/* A limit in the option's own notation: "500ms", "64KiB", "3". */
void config_limit_print(const struct config_option *option, uint64_t limit, struct buf *out);
bool config_bool_parse(const char *text, bool *ret_value);

#endif
