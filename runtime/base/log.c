#include "runtime/base/log.h"

#include <stddef.h>

void log_emit(const struct log *log, enum log_level level, const char *event,
              const struct log_field *fields)
{
    if (log != NULL && log->write != NULL && level >= log->level_min)
        log->write(log->sink, level, event, fields);
}
