/* holdfast: the command line. Each verb is a file of its own; see verb.h. */
#include <stdio.h>
#include <string.h>

#include "client/cli/verb.h"
#include "runtime/base/check.h"

static const struct {
    const char *name;
    int (*run)(const struct arguments *arguments);
} verbs[] = {
    { "dev", verb_dev },
    { "certs", verb_certs },
    { "status", verb_status },
    { "player", verb_player },
    { "ledger", verb_ledger },
    { "op", verb_op },
    { "call", verb_call },
    { "key", verb_key },
    { "mailbox", verb_mailbox },
    { "transfers", verb_transfers },
    { "events", verb_events },
    { "reconcile", verb_reconcile },
    { "item", verb_item },
    { "quarantine", verb_quarantine },
    { "swap", verb_swap },
    { "backup", verb_backup },
    { "restore", verb_restore },
    { "swap", verb_swap },
    { "node", verb_node },
    { "shard", verb_shard },
    { "rebalance", verb_rebalance },
    { "orphans", verb_orphans },
#ifdef HOLDFAST_DEBUG_INJECT
    { "debug", verb_debug },
#endif
};

int main(int argc, char **argv)
{
    struct arguments arguments;
    char why[256] = "";

    if (arguments_parse(argc, argv, &arguments, why) != ERR_OK) {
        fprintf(stderr, "holdfast: %s (try holdfast --help)\n", why);
        return 2;
    }
    if (arguments.version) {
        printf("holdfast %s\n", HOLDFAST_VERSION);
        return 0;
    }
    if (arguments.help || arguments.word_count == 0) {
        arguments_print_help();
        return arguments.help ? 0 : 2;
    }
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (strcmp(arguments.words[0], verbs[i].name) == 0)
            return verbs[i].run(&arguments);
    }
    fprintf(stderr, "holdfast: there is no verb '%.64s' (try holdfast --help)\n",
            arguments.words[0]);
    return 2;
}
