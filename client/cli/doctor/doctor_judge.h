/*
 * doctor_judge: facts of a cluster in, findings out: each says what is so, and what to do about it.
 * Pure. The limits are the alerts' (charts/holdfast/rules) where there is one for the same thing:
 * critical is a failure here, a warning a warning.
 */
#ifndef CLIENT_CLI_DOCTOR_DOCTOR_JUDGE_H
#define CLIENT_CLI_DOCTOR_DOCTOR_JUDGE_H

#include "client/cli/doctor/doctor_facts.h"
#include "client/cli/doctor/finding.h"

/* At least one finding of every check. */
void doctor_judge(const struct doctor_facts *facts, struct findings *ret_findings);
#endif
