/*
 * config_yaml: prints a configuration as a YAML file. For tests alone, which load it again and
 * compare. No program prints its configuration.
 */
#ifndef RUNTIME_CONFIG_CONFIG_YAML_H
#define RUNTIME_CONFIG_CONFIG_YAML_H

#include "runtime/config/config.h"

/* Appends every option with its value. config_yaml_load reads it back. */
void config_yaml_print(const struct config_program *program, const void *config, struct buf *out);

#endif
