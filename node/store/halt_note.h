/*
 * halt_note: what a node remembers of an entry that ended the process while it was applied: a file
 * `halted-<shard>` beside the log's segments. The next life of the same program leaves that shard
 * where it is instead of ending in the same place; another program tries again.
 */
#ifndef NODE_STORE_HALT_NOTE_H
#define NODE_STORE_HALT_NOTE_H

#include <stdint.h>

#include "runtime/base/err.h"

#define HALT_PROGRAM_SIZE 64u
#define HALT_REASON_SIZE  200u

struct halt_note {
    uint64_t index;                  /* Of the entry. */
    char program[HALT_PROGRAM_SIZE]; /* Which file the program was: its size and time. */
    char reason[HALT_REASON_SIZE];   /* The check that failed. */
};

/* Which file this process runs, as a note tells it. */
void halt_note_program(char ret_program[HALT_PROGRAM_SIZE]);

/* Writes and syncs a shard's note of this program. For a process that is about to end: what fails
 * is left alone. Nothing is allocated. */
void halt_note_write(const char *directory, uint32_t shard, uint64_t index, const char *reason);

/* ERR_NOT_FOUND: there is none. ERR_CORRUPT: it cannot be read. */
NODISCARD err halt_note_read(const char *directory, uint32_t shard, struct halt_note *ret_note);

void halt_note_remove(const char *directory, uint32_t shard);

#endif
