#include "runtime/config/config_option.h"

#include <string.h>

#include "runtime/base/nearest.h"

const struct config_option *config_option_find(const struct config_program *program,
                                               const char *name)
{
    for (size_t i = 0; i < program->option_count; i++) {
        if (strcmp(program->options[i].name, name) == 0)
            return &program->options[i];
    }
    return NULL;
}

const struct config_option *config_option_nearest(const struct config_program *program,
                                                  struct slice name)
{
    const struct config_option *meant = NULL;
    struct nearest nearest;

    nearest_init(&nearest, name);
    for (size_t i = 0; i < program->option_count; i++) {
        nearest_offer_text(&nearest, program->options[i].name);
        if (nearest.name.data == (const uint8_t *)program->options[i].name)
            meant = &program->options[i];
    }
    return meant;
}
