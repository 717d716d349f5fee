/* dev_say: the lines of `holdfast dev`, each with the time (UTC) before it, as its children write
 * theirs. */
#ifndef CLIENT_CLI_DEV_DEV_SAY_H
#define CLIENT_CLI_DEV_DEV_SAY_H

#include <stdio.h>

/* printf-style, without a newline; flushed. A line longer than 1023 bytes is cut. */
void dev_say(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
