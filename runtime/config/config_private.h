/* config_private: what the sources share. For this folder only. */
#ifndef RUNTIME_CONFIG_CONFIG_PRIVATE_H
#define RUNTIME_CONFIG_CONFIG_PRIVATE_H

#include "runtime/config/config.h"
#include "runtime/config/config_value.h"

const struct config_option *config_option_find(const struct config_program *program,
                                               const char *name);
/* The option that was probably meant by a name that there is not. NULL: none is near. */
const struct config_option *config_option_nearest(const struct config_program *program,
                                                  struct slice name);
/* The first 64 bytes of it for an error: what is not printable ASCII becomes '?'. */
#define CONFIG_NAME_SHOWN_BYTES 65u
void config_name_show(struct slice name, char ret_text[CONFIG_NAME_SHOWN_BYTES]);
/* The YAML file at `path`. */
NODISCARD err config_file_load(const struct config_program *program, const char *path, void *config,
                               struct config_error *ret_why);
/* YAML text; `path` only names it. */
NODISCARD err config_yaml_load(const struct config_program *program, const char *path,
                               struct slice yaml, void *config, struct config_error *ret_why);

#endif
