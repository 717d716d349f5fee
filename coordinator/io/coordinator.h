/*
 * coordinator: the process around coordinator/core (DESIGN sections 2, 4, 5). One loop:
 *
 *   registry (etcd) --events--> core --transactions--> registry
 *   nodes (links)   --events--> core --calls---------> nodes
 *
 * It mirrors etcd, makes the cluster's record if there is none, listens, and campaigns; two or more
 * may run, the elected one acts. Decides nothing itself.
 */
#ifndef COORDINATOR_IO_COORDINATOR_H
#define COORDINATOR_IO_COORDINATOR_H

#include "coordinator/io/coordinator_config.h"
#include "runtime/base/log.h"
#include "runtime/loop/loop.h"

struct coordinator;

struct coordinator_options {
    struct loop *loop; /* All borrowed. */
    const struct log *log;
    const struct coordinator_config *config;
    const char *version;
};

/* Works while the loop runs; stops the loop when it cannot go on (see coordinator_failed), which
 * etcd being away is not. ERR_INVALID, ERR_IO: the configuration or a port; logged. */
NODISCARD err coordinator_new(const struct coordinator_options *options,
                              struct coordinator **ret_coordinator);
/* Resigns and closes everything; runs the loop for a moment. NULL is allowed. */
void coordinator_free(struct coordinator *coordinator);
bool coordinator_failed(const struct coordinator *coordinator);

#endif
