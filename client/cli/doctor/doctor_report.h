/* doctor_report: findings for people, and for programs. */
#ifndef CLIENT_CLI_DOCTOR_DOCTOR_REPORT_H
#define CLIENT_CLI_DOCTOR_DOCTOR_REPORT_H

#include <jansson.h>

#include "client/cli/doctor/doctor_judge.h"
#include "runtime/base/buf.h"

/* A line each, with what to do below it; then the sum. Appends to `out`. */
void doctor_report_text(const struct findings *findings, struct buf *out);
/* {"checks": [{"check", "level", "what", "todo", "runbook"}], "failed": n, ...}, to decref. */
json_t *doctor_report_json(const struct findings *findings);

#endif
