/*
 * incarnation: the number of one life of a game server (DESIGN section 5). `generation` is the
 * cluster's, raised when etcd was restored from a backup; `revision` is the etcd revision of a
 * write made for this registration alone. So incarnations only grow, also across a restore.
 */
#ifndef RUNTIME_CLUSTER_INCARNATION_H
#define RUNTIME_CLUSTER_INCARNATION_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define INCARNATION_TEXT_SIZE 42 /* Two u64, a dash, the NUL. */

/* Zero is no incarnation. */
struct incarnation {
    uint64_t generation;
    uint64_t revision;
};

/* Accepts only "<generation>-<revision>" in canonical decimal: no sign, no leading zero, both
 * above 0. ERR_INVALID otherwise; *ret_incarnation is then untouched. */
NODISCARD err incarnation_parse(struct slice text, struct incarnation *ret_incarnation);
void incarnation_print(struct incarnation incarnation, char ret_text[INCARNATION_TEXT_SIZE]);
/* Below, at or above zero, by generation and then revision. */
int incarnation_compare(struct incarnation a, struct incarnation b);
bool incarnation_is_none(struct incarnation incarnation);
/* Canonical decimal: no sign, no leading zero, at most UINT64_MAX. ERR_INVALID otherwise. The
 * form of every u64 in keys and records. */
NODISCARD err decimal_parse(struct slice text, uint64_t *ret_number);

#endif
