/*
 * doctor_gather: asks the routers of --endpoint what doctor_judge looks at. Bounded: each call by
 * --deadline-ms, lists by the limits of doctor_facts.h.
 */
#ifndef CLIENT_CLI_DOCTOR_DOCTOR_GATHER_H
#define CLIENT_CLI_DOCTOR_DOCTOR_GATHER_H

#include "client/cli/console/arguments.h"
#include "client/cli/doctor/doctor_facts.h"

/* Allocates the lists. ERR_INVALID: used wrongly, which was said on standard error; else ERR_OK,
 * with whatever could be found out. */
NODISCARD err doctor_gather(const struct arguments *arguments, struct doctor_facts *ret_facts);
void doctor_facts_deinit(struct doctor_facts *facts);

#endif
