/*
 * http_drive: the public endpoint as a fuzz target drives it: one server for the whole process,
 * one connection per input over a socket pair, handlers that answer as the input says. No network
 * and no waiting: the loop turns only while there is something to do.
 */
#ifndef TESTS_FUZZ_HTTP_DRIVE_H
#define TESTS_FUZZ_HTTP_DRIVE_H

#include "runtime/rpc/rpc_server.h"

#define DRIVE_KEPT_MAX 512u

/* What the handlers do with a call; the lowest bits of an input's mode. */
enum drive_answer {
    DRIVE_REPLY,  /* At once, with an empty message.                     */
    DRIVE_FAIL,   /* At once, with an error that has every field.        */
    DRIVE_KEEP,   /* When the next call comes, or at the input's end.    */
    DRIVE_STREAM, /* Methods that may stream do, until it is not writable. */
    DRIVE_ANSWER_END
};

struct drive {
    struct loop *loop;
    struct rpc_server *server;
    enum drive_answer answer;
    struct slice reply; /* Of DRIVE_REPLY: the message's bytes, as from a node. */
    struct rpc_request *kept[DRIVE_KEPT_MAX];
    size_t kept_count;
    int fd; /* The client's end. */
    uint64_t answered_bytes;
};

/* The process's one drive, with a fresh connection. */
struct drive *drive_open(enum drive_answer answer);
/* Hands bytes to the server in one piece, and lets it work and answer. */
void drive_send(struct drive *drive, struct slice bytes);
/* Ends the connection and every call; what the server counts must be back at zero. */
void drive_close(struct drive *drive);

#endif
