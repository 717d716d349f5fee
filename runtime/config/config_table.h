/* config_table: the rows of a program's configuration, and what is made of them (config.h says
 * how). */
#ifndef RUNTIME_CONFIG_CONFIG_TABLE_H
#define RUNTIME_CONFIG_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CONFIG_TEXT_MAX = 4096,        /* Bytes of any one value. */
    CONFIG_LIST_MAX = 64,          /* Items of any one list. */
    CONFIG_FILE_MAX = 1024 * 1024, /* Bytes of the YAML file. */
};

/* DURATION: "250ms", "5s", "2m", "1h", "1d", or a plain number of milliseconds.
 * SIZE: "64KiB", "8MiB", "2GiB", "100B", or a plain number of bytes.
 * BOOL: true or false; the bare flag --name means true, --no-name false.
 * ADDRESS: "host:port", "[v6]:port"; may be empty when min is 0. Whether the host exists is not
 * asked. LIST: a YAML sequence; elsewhere separated by commas. */
enum config_type {
    CONFIG_U32,
    CONFIG_U64,
    CONFIG_BOOL,
    CONFIG_TEXT,
    CONFIG_PATH,
    CONFIG_ADDRESS,
    CONFIG_LIST,
    CONFIG_DURATION,
    CONFIG_SIZE
};

struct config_list {
    char **items;
    uint32_t count;
};

#define CONFIG_CTYPE_U32      uint32_t
#define CONFIG_CTYPE_U64      uint64_t
#define CONFIG_CTYPE_BOOL     bool
#define CONFIG_CTYPE_TEXT     char *
#define CONFIG_CTYPE_PATH     char *
#define CONFIG_CTYPE_ADDRESS  char *
#define CONFIG_CTYPE_LIST     struct config_list
#define CONFIG_CTYPE_DURATION uint64_t /* ms */
#define CONFIG_CTYPE_SIZE     uint64_t /* bytes */

struct config_option {
    const char *name; /* As in the struct and in YAML: lower case with underscores. */
    enum config_type type;
    size_t offset;
    const char *initial; /* The default as text; must satisfy the row's own limits. */
    uint64_t min;
    uint64_t max;
    const char *unit; /* For people; may be "". */
    const char *doc;
};

#define CONFIG_FIELD(field, type, initial, min, max, unit, doc) CONFIG_CTYPE_##type field;
#define CONFIG_STRUCT(tag, TABLE)                                                                  \
    struct tag {                                                                                   \
        TABLE(CONFIG_FIELD)                                                                        \
    };
#define CONFIG_ROW(field, type, initial, min, max, unit, doc)                                      \
    { #field, CONFIG_##type, offsetof(config_row_struct, field), initial, min, max, unit, doc },
/* At most once per .c file. */
#define CONFIG_OPTIONS(tag, TABLE)                                                                 \
    typedef struct tag config_row_struct;                                                          \
    static const struct config_option tag##_options[] = { TABLE(CONFIG_ROW) };

struct config_program {
    const char *name;    /* "holdfast-node" */
    const char *version; /* "0.1.0" */
    const char *summary; /* One line for --help. */
    const struct config_option *options;
    size_t option_count;
};

struct config_error {
    char text[512];
};

#endif
