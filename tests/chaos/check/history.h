/*
 * history: what callers of a cluster did and were told, read from a file of JSON, one object a line
 * (README.md here tells the format). A file is refused with its line and the field that is wrong;
 * nothing in it is trusted.
 */
#ifndef TESTS_CHAOS_CHECK_HISTORY_H
#define TESTS_CHAOS_CHECK_HISTORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/err.h"
#include "tests/chaos/check/edits.h"
#include "tests/chaos/check/linear.h"
#include "tests/chaos/check/names.h"

#define HISTORY_VERSION     1
#define HISTORY_LINE_MAX    65536u
#define HISTORY_CALLS_MAX   8000000u
#define HISTORY_MESSAGE_MAX 200u

/* Calls are in the order of the file. */
struct history_call {
    struct timed_deed timed; /* Times in nanoseconds. */
    uint64_t number;
    uint32_t player;
    uint32_t mail; /* Of SEND once it is answered, and of CLAIM; or NAME_NONE. */
    uint32_t line;
    uint32_t answer_line; /* 0: none. */
};

/* What a player, and its mailbox, held in the end. */
struct history_final {
    uint32_t player;
    int64_t gold, mail_gold;
    uint32_t line;
};

/* A replica in the end. */
struct history_replica {
    uint32_t shard;
    uint32_t node;
    uint32_t digest; /* A name. */
    uint32_t line;
};

struct history {
    struct history_call *calls;
    size_t call_count, call_capacity;
    struct history_final *finals;
    size_t final_count, final_capacity;
    struct history_replica *replicas;
    size_t replica_count, replica_capacity;
    uint32_t *faults; /* Their kinds, a name each. */
    size_t fault_count, fault_capacity;
    struct edits edits;
    struct names players, mails, nodes, digests, kinds;
    struct names numbers; /* Of calls, to find them again. */
};

/* What was wrong with a file. */
struct history_error {
    size_t line;
    char message[HISTORY_MESSAGE_MAX];
};

/* Reads all of `file`. ERR_IO, ERR_TOO_LARGE or ERR_INVALID, and *ret_error; then *ret_history is
 * to be deinitialised all the same. */
NODISCARD err history_read(FILE *file, struct history *ret_history,
                           struct history_error *ret_error);
void history_deinit(struct history *history);

#endif
