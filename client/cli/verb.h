/* verb: the verbs of the `holdfast` command, one file each. */
#ifndef CLIENT_CLI_VERB_H
#define CLIENT_CLI_VERB_H

#include "client/cli/arguments.h"

/* Each returns the exit code: 0 done, 1 refused or failed, 2 used wrongly, 3 outcome unknown. */
int verb_dev(const struct arguments *arguments);
int verb_certs(const struct arguments *arguments);
int verb_status(const struct arguments *arguments);
int verb_player(const struct arguments *arguments);
int verb_ledger(const struct arguments *arguments);
int verb_item(const struct arguments *arguments);
int verb_mailbox(const struct arguments *arguments);
int verb_transfers(const struct arguments *arguments);
int verb_events(const struct arguments *arguments);
int verb_reconcile(const struct arguments *arguments);
int verb_swap(const struct arguments *arguments);
int verb_quarantine(const struct arguments *arguments);
/* Of verb_quarantine. */
int quarantine_check(const struct arguments *arguments, const char *player);
int quarantine_repair(const struct arguments *arguments, const char *player);
int verb_backup(const struct arguments *arguments);
int verb_restore(const struct arguments *arguments);
int verb_orphans(const struct arguments *arguments);
int verb_debug(const struct arguments *arguments);
int debug_inject(const struct arguments *arguments); /* With HOLDFAST_DEBUG_INJECT alone. */
int verb_node(const struct arguments *arguments);
int verb_shard(const struct arguments *arguments);
int verb_admin(const struct arguments *arguments);
int verb_rebalance(const struct arguments *arguments);
int verb_op(const struct arguments *arguments);
int verb_key(const struct arguments *arguments);
int verb_top(const struct arguments *arguments);
int verb_doctor(const struct arguments *arguments);
int verb_completion(const struct arguments *arguments);
int verb_call(const struct arguments *arguments);

#endif
