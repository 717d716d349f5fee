/* config_option: rows of a table by name. For this folder only. */
#ifndef RUNTIME_CONFIG_CONFIG_OPTION_H
#define RUNTIME_CONFIG_CONFIG_OPTION_H

#include "runtime/base/buf.h"
#include "runtime/config/config_table.h"

const struct config_option *config_option_find(const struct config_program *program,
                                               const char *name);
/* The option that was probably meant by a name that there is not. NULL: none is near. */
const struct config_option *config_option_nearest(const struct config_program *program,
                                                  struct slice name);

#endif
