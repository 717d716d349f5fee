#include "client/cli/dev/dev_say.h"

#include <stdarg.h>
#include <time.h>

#define LINE_BYTES 1024u

void dev_say(FILE *to, const char *format, ...)
{
    char line[LINE_BYTES], when[32] = "";
    struct timespec now;
    struct tm utc;
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &utc) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    fprintf(to, "%s.%03ldZ %s\n", when, now.tv_nsec / 1000000, line);
    fflush(to);
}
