/* config_file: the YAML source of a configuration. For this folder only. */
#ifndef RUNTIME_CONFIG_CONFIG_FILE_H
#define RUNTIME_CONFIG_CONFIG_FILE_H

#include "runtime/base/buf.h"
#include "runtime/config/config_table.h"

/* The YAML file at `path`. */
NODISCARD err config_file_load(const struct config_program *program, const char *path, void *config,
                               struct config_error *ret_why);
/* YAML text; `path` only names it. */
NODISCARD err config_yaml_load(const struct config_program *program, const char *path,
                               struct slice yaml, void *config, struct config_error *ret_why);

#endif
