/* doctor_checks: the checks of doctor_judge that have files of their own, and the limits of all. */
#ifndef CLIENT_CLI_DOCTOR_DOCTOR_CHECKS_H
#define CLIENT_CLI_DOCTOR_DOCTOR_CHECKS_H

#include "client/cli/doctor/doctor_facts.h"
#include "client/cli/doctor/finding.h"

#define SLOW_ANSWER_MS   1000u
#define SLOW_ETCD_MS     500u
#define CLOCK_WARN_MS    200
#define CLOCK_FAIL_MS    1000
#define CERT_WARN_DAYS   14
#define TRANSFER_WARN_MS 10000u
#define STALL_WARN_MS    10000u
#define TOTALS_WARN_MS   60000u
#define CONSUMERS_WARN   75u                 /* Percent of the time for which events are kept. */
#define ETCD_QUOTA_BYTES (UINT64_C(2) << 30) /* Its default. */
#define ETCD_FULL_SHARE  80u                 /* Percent of the quota. */

/* Versions, clocks, disks, certificates, counts and consumers of all processes. */
void doctor_judge_processes(const struct doctor_facts *facts, struct findings *findings);
/* Owners, replicas, learners and transfers. */
void doctor_judge_shards(const struct doctor_facts *facts, struct findings *findings);
void doctor_judge_etcd(const struct doctor_facts *facts, struct findings *findings);

#endif
