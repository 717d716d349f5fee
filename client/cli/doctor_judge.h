/*
 * doctor_judge: facts of a cluster in, findings out: each says what is so, and what to do about it.
 * Pure. The limits are the alerts' (charts/holdfast/rules) where there is one for the same thing:
 * critical is a failure here, a warning a warning.
 */
#ifndef CLIENT_CLI_DOCTOR_JUDGE_H
#define CLIENT_CLI_DOCTOR_JUDGE_H

#include "client/cli/doctor_facts.h"

#define FINDINGS_MAX     512u
#define FINDING_BYTES    256u
#define SLOW_ANSWER_MS   1000u
#define SLOW_ETCD_MS     500u
#define CLOCK_WARN_MS    200
#define CLOCK_FAIL_MS    1000
#define CERT_WARN_DAYS   14
#define TRANSFER_WARN_MS 10000u
#define STALL_WARN_MS    10000u
#define ETCD_QUOTA_BYTES (UINT64_C(2) << 30) /* Its default. */
#define ETCD_FULL_SHARE  80u                 /* Percent of the quota. */

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

/* At least one finding of every check. */
void doctor_judge(const struct doctor_facts *facts, struct findings *ret_findings);
/* "ok", "warn", "fail", "unknown". */
const char *finding_level_name(enum finding_level level);

/* ---- for the checks, which stand in several files ---- */

/* A finding but for its text. */
struct verdict {
    enum finding_level level;
    const char *check;
    const char *todo;
    const char *runbook;
};
__attribute__((format(printf, 3, 4))) void
finding_add(struct findings *findings, struct verdict verdict, const char *format, ...);
/* Versions, clocks, disks and certificates of all processes. */
void doctor_judge_processes(const struct doctor_facts *facts, struct findings *findings);
/* Owners, replicas, learners and transfers. */
void doctor_judge_shards(const struct doctor_facts *facts, struct findings *findings);
void doctor_judge_etcd(const struct doctor_facts *facts, struct findings *findings);

#endif
