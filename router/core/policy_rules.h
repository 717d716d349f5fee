/*
 * policy_rules: what a Policy must satisfy before it is stored (idl/holdfast/v1/admin.proto), and
 * its defaults. Pure. The shards check it again when they log it.
 */
#ifndef ROUTER_CORE_POLICY_RULES_H
#define ROUTER_CORE_POLICY_RULES_H

#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/error.pb-c.h"
#include "idl/policy_limit.h"
#include "runtime/base/arena.h"

#define POLICY_WINDOW_MS_DEFAULT  86400000ull
#define POLICY_OPERATIONS_DEFAULT 2000000ull
#define POLICY_ITEMS_DEFAULT      10000u
#define POLICY_MAILS_DEFAULT      1000u

/* A copy in `arena` with every default filled in; it borrows the names of `policy`. ERR_INVALID:
 * *ret_detail names the field, its limit and the value. policy NULL is invalid. */
NODISCARD err policy_complete(const Holdfast__V1__Policy *policy, struct arena *arena,
                              Holdfast__V1__Policy **ret_policy,
                              Holdfast__V1__ErrorDetail *ret_detail);

/* ERR_INVALID, VERSION_CONFLICT: `next` is not the version after `current` (NULL: none, so 1).
 * `about.version` tells which stands. */
NODISCARD err policy_check_successor(const Holdfast__V1__Policy *next,
                                     const Holdfast__V1__Policy *current, struct arena *arena,
                                     Holdfast__V1__ErrorDetail *ret_detail);

/* Names of currencies that a change says it leaves out. */
struct policy_drops {
    char *const *names;
    size_t count;
};

/* ERR_INVALID: `next` leaves out a currency of `current` (NULL: none) that no drop names, or a drop
 * names one that `current` lacks or `next` keeps. */
NODISCARD err policy_check_drops(const Holdfast__V1__Policy *next,
                                 const Holdfast__V1__Policy *current,
                                 const struct policy_drops *drops, struct arena *arena,
                                 Holdfast__V1__ErrorDetail *ret_detail);

bool policy_declares(const Holdfast__V1__Policy *policy, const char *currency);

#endif
