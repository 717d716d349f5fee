/*
 * children: the processes that `holdfast dev` starts, watches, and stops in good order. They die
 * with their parent (PDEATHSIG), also when it is killed.
 */
#ifndef CLIENT_CLI_CHILDREN_H
#define CLIENT_CLI_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/err.h"

#define CHILDREN_MAX        24u
#define CHILD_ARGUMENTS_MAX 48u
#define CHILD_TEXT_BYTES    1200u

struct child {
    char name[32];
    char program[CHILD_TEXT_BYTES];
    char log_file[CHILD_TEXT_BYTES];
    char arguments[CHILD_ARGUMENTS_MAX][CHILD_TEXT_BYTES]; /* Without argv[0]. */
    uint32_t argument_count;
    uint16_t metrics_port;
    pid_t pid;              /* 0: not running. */
    uint64_t started_at_ms; /* Monotonic. */
    uint64_t restart_at_ms; /* The same; 0: not due. */
    uint32_t starts;
};

/* printf-style; CHECKs the bounds. */
void child_argument(struct child *child, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends its output to log_file. ERR_IO: fork failed. */
NODISCARD err child_start(struct child *child);
/* True when it has exited since; reaps it. *ret_status as waitpid gives it. */
bool child_reap(struct child *child, int *ret_status);
/* SIGTERM, then SIGKILL after `patience_ms`; reaps it. */
void child_stop(struct child *child, uint64_t patience_ms);
/* GET http://127.0.0.1:<metrics_port><path> answers 200. */
bool child_answers(const struct child *child, const char *path);
uint64_t monotonic_ms(void);
void sleep_ms(uint32_t ms);

#endif
