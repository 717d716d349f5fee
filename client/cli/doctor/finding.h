/* finding: what `holdfast doctor` says: how bad something is, what is so, what to do about it. */
#ifndef CLIENT_CLI_DOCTOR_FINDING_H
#define CLIENT_CLI_DOCTOR_FINDING_H

#include <stdint.h>

#define FINDINGS_MAX  512u
#define FINDING_BYTES 256u

enum finding_level { FINDING_OK, FINDING_WARN, FINDING_FAIL, FINDING_UNKNOWN };

struct finding {
    enum finding_level level;
    const char *check;   /* "clocks" */
    const char *todo;    /* A sentence; NULL: nothing. */
    const char *runbook; /* A page of docs/runbooks, without ".md"; NULL: none. */
    char what[FINDING_BYTES];
};

struct findings {
    uint32_t count;
    uint32_t left_out; /* Beyond FINDINGS_MAX. */
    uint32_t levels[4];
    struct finding items[FINDINGS_MAX];
};

/* "ok", "warn", "fail", "unknown". */
const char *finding_level_name(enum finding_level level);

/* A finding but for its text. */
struct verdict {
    enum finding_level level;
    const char *check;
    const char *todo;
    const char *runbook;
};
__attribute__((format(printf, 3, 4))) void
finding_add(struct findings *findings, struct verdict verdict, const char *format, ...);

#endif
