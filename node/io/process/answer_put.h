/*
 * answer_put: an answer on its way to its caller. One that its link cannot take is replaced by a
 * short one that says why, so that no caller waits until its deadline.
 */
#ifndef NODE_IO_PROCESS_ANSWER_PUT_H
#define NODE_IO_PROCESS_ANSWER_PUT_H

#include "runtime/link/call.h"

enum answer_left {
    ANSWER_LEFT,      /* It waits to leave. */
    ANSWER_GONE,      /* Its caller has gone. */
    ANSWER_UNREAD,    /* Replaced: the link is full of answers that were not read. */
    ANSWER_TOO_LARGE, /* Replaced: no link takes so much. */
};

/* Replaced is a read's by a refusal. What a write did stands: its caller is told so, or asks again
 * and finds the stored outcome. */
enum answer_left answer_put(struct calls *calls, const struct call_reply *reply, uint16_t status,
                            struct slice body);

#endif
