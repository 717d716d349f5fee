/*
 * seed: what a new cluster begins with, from the configuration: its record and its first policy.
 * Pure but for what the caller passes in.
 */
#ifndef COORDINATOR_IO_SEED_H
#define COORDINATOR_IO_SEED_H

#include "coordinator/io/coordinator_config.h"
#include "runtime/base/id.h"
#include "runtime/cluster/cluster_record.h"

struct seed_error {
    char text[256];
};

struct seed {
    struct cluster_record cluster;
    struct buf policy; /* Packed holdfast.v1.Policy, version 1; empty without currencies. */
};

/* `id` becomes the cluster's. ERR_INVALID: ret_why names the option, its limit and the value. On
 * ERR_OK the caller owes seed_deinit. */
NODISCARD err seed_init(const struct coordinator_config *config, struct uuid id,
                        struct seed *ret_seed, struct seed_error *ret_why);
void seed_deinit(struct seed *seed);

#endif
