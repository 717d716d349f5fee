/*
 * children: the processes that `holdfast dev` starts, watches, and stops in good order. They die
 * with their parent (PDEATHSIG), also when it is killed.
 */
#ifndef CLIENT_CLI_DEV_CHILDREN_H
#define CLIENT_CLI_DEV_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/err.h"

#define CHILDREN_MAX        24u
#define CHILD_ARGUMENTS_MAX 48u
#define CHILD_TEXT_BYTES    1200u

struct child {
    char name[32];
    char program[CHILD_TEXT_BYTES]; /* A path, or a name that PATH knows. */
    char log_file[CHILD_TEXT_BYTES];
    char arguments[CHILD_ARGUMENTS_MAX][CHILD_TEXT_BYTES]; /* Without argv[0]. */
    uint32_t argument_count;
    uint16_t metrics_port;
    pid_t pid;              /* 0: not running. */
    uint64_t started_at_ms; /* Monotonic. */
    uint64_t restart_at_ms; /* The same; 0: not due. */
    uint32_t starts;
    uint32_t short_lives; /* In a row, up to now: supervisor.h. */
    uint64_t log_from;    /* Where in log_file the output of this life begins. */
};

/* printf-style; CHECKs the bounds. */
void child_argument(struct child *child, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends its output to log_file. ERR_IO: fork failed. What cannot be run exits with 126 or 127,
 * and says why in log_file. */
NODISCARD err child_start(struct child *child);
/* True when it has exited since; reaps it. *ret_status as waitpid gives it. */
bool child_reap(struct child *child, int *ret_status);
/* SIGTERM, then SIGKILL after `patience_ms`; reaps it. *ret_status as waitpid gives it. False: it
 * had to be killed. Of a child that does not run: true, with *ret_status as it was. */
bool child_stop(struct child *child, uint64_t patience_ms, int *ret_status);
/* The end of what this life of it wrote to log_file: whole lines, unless one is longer. Returns the
 * size. */
size_t child_tail(const struct child *child, char *ret_text, size_t capacity);
/* GET http://127.0.0.1:<metrics_port><path> answers 200. */
bool child_answers(const struct child *child, const char *path);
/* What its /metrics says of a series without labels; negative: nothing. */
double child_metric(const struct child *child, const char *name);

#endif
