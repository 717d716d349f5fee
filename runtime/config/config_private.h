/* config_private: what the sources share. For this folder only. */
#ifndef RUNTIME_CONFIG_CONFIG_PRIVATE_H
#define RUNTIME_CONFIG_CONFIG_PRIVATE_H

#include "runtime/config/config.h"
#include "runtime/config/config_value.h"

const struct config_option *config_option_find(const struct config_program *program,
                                               const char *name);
/* The YAML file at `path`. */
NODISCARD err config_file_load(const struct config_program *program, const char *path, void *config,
                               struct config_error *ret_why);
/* YAML text; `path` only names it. */
NODISCARD err config_yaml_load(const struct config_program *program, const char *path,
                               struct slice yaml, void *config, struct config_error *ret_why);

#endif
