/* clock: what time it is, and times as text. */
#ifndef CLIENT_CLI_CONSOLE_CLOCK_H
#define CLIENT_CLI_CONSOLE_CLOCK_H

#include <stdint.h>

uint64_t monotonic_ms(void);
uint64_t wall_ms(void);
/* Less if a signal comes. */
void sleep_ms(uint64_t ms);
/* "2026-11-01T12:00:00Z" of milliseconds since 1970. Returns ret_text. */
#define UTC_TEXT_BYTES 32u
const char *utc_text(uint64_t unix_ms, char ret_text[UTC_TEXT_BYTES]);

#endif
