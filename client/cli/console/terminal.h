/*
 * terminal: the screen and the keys of a view that redraws itself, by ANSI sequences. Signals come
 * as keys do, so nothing runs in a handler, and the code that leaves the loop restores the screen:
 * terminal_close does, and puts the terminal back as it was.
 */
#ifndef CLIENT_CLI_CONSOLE_TERMINAL_H
#define CLIENT_CLI_CONSOLE_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

struct terminal;

enum terminal_event {
    TERMINAL_NONE,   /* The time is over. */
    TERMINAL_KEY,    /* *ret_key */
    TERMINAL_RESIZE, /* The window is another size, or the process was in the background. */
    TERMINAL_END     /* Asked to end by a signal, or the input has ended. */
};

/* Takes over the screen and the keys if that is wanted, and standard input and output are a
 * terminal that knows ANSI (TERM is set, and not "dumb"). Else *ret_terminal only waits, and pages
 * are printed one after another. ERR_IO: the kernel refused. */
NODISCARD err terminal_open(bool wants_screen, struct terminal **ret_terminal);
/* NULL is allowed. */
void terminal_close(struct terminal *terminal);
/* Whether it has the screen. */
bool terminal_has_screen(const struct terminal *terminal);
/* Of the window; 80 by 24 if it is not known. */
void terminal_size(const struct terminal *terminal, uint32_t *ret_width, uint32_t *ret_height);
/* Draws lines that end with "\n" in place of what was there. Without a screen: prints them and an
 * empty line. False: the output is gone. */
bool terminal_draw(struct terminal *terminal, struct slice lines);
/* Waits for so long at most. The signal that asked for the end is in *ret_key, 0: none. */
enum terminal_event terminal_wait(struct terminal *terminal, uint32_t wait_ms, int *ret_key);

#endif
