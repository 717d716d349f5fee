/*
 * config: a program's configuration from one X-macro table. The table gives the struct, the YAML
 * keys, the environment names, the flags, the checks and --help; nothing is written twice.
 *
 *   #define NODE_CONFIG(X)                                                                   \
 *       X(listen,   TEXT, "127.0.0.1:7000", 3, 255,   "host:port", "where routers connect")   \
 *       X(shard_ttl, DURATION, "5s", 500, 60000,      "ms",        "how long ...")            \
 *       X(etcd,     LIST, "http://127.0.0.1:2379", 1, 16, "URLs",  "etcd endpoints")
 *   CONFIG_STRUCT(node_config, NODE_CONFIG)            (header)
 *   CONFIG_OPTIONS(node_config, NODE_CONFIG)           (one .c file; gives node_config_options)
 *
 * Row: field, type, default as text, min, max, unit, doc. min and max bound the number (U32, U64,
 * milliseconds, bytes), the length of TEXT, PATH and ADDRESS in bytes, the count of LIST; BOOL
 * ignores them.
 *
 * Sources, later ones win: defaults, the YAML file of --config (flat: option_name: value),
 * environment HOLDFAST_<OPTION_NAME>, flags --option-name value or --option-name=value. Unknown
 * YAML keys and flags are errors; unknown environment names are ignored (Kubernetes sets
 * HOLDFAST_*_PORT for services named holdfast: set enableServiceLinks: false).
 *
 * Runs once at start, before threads. Reads the one file; does nothing else to the world.
 */
#ifndef RUNTIME_CONFIG_CONFIG_H
#define RUNTIME_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/config/config_table.h"

/* What the process was given. argv[0] is skipped; env ends with NULL, may be NULL. */
struct config_input {
    int argc;
    char *const *argv;
    char *const *env;
};

enum config_action { CONFIG_RUN, CONFIG_PRINT_HELP, CONFIG_PRINT_VERSION };

/*
 * Fills *ret_config, a struct declared with CONFIG_STRUCT. On ERR_OK with CONFIG_RUN the caller
 * owes config_deinit. With the other actions, and on error, nothing is allocated.
 * ERR_INVALID (bad name or value), ERR_TOO_LARGE, ERR_IO (the file): ret_why names the source
 * (default, file with line, environment, flag), the option, its limit and the value.
 */
NODISCARD err config_load(const struct config_program *program, const struct config_input *input,
                          void *ret_config, enum config_action *ret_action,
                          struct config_error *ret_why);
void config_deinit(const struct config_program *program, void *config);

/*
 * config_load for main(): takes the process's environment and prints help and version to standard
 * output, errors to standard error. Returns -1 when the program should run, else its exit code.
 */
int config_load_for_main(const struct config_program *program, int argc, char *const *argv,
                         void *ret_config);

/* Appends the text of --help. */
void config_print_help(const struct config_program *program, struct buf *out);

#endif
