#include "client/cli/arguments.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

static const struct option {
    const char *flag;
    const char *value;
    const char *initial;
    const char *meaning;
    size_t offset;
} options[] = {
#define ARGUMENT_ROW(name, flag, value, initial, meaning)                                          \
    { flag, value, initial, meaning, offsetof(struct arguments, name) },
    ARGUMENT_TABLE(ARGUMENT_ROW)
#undef ARGUMENT_ROW
};

static const char **field(struct arguments *arguments, const struct option *option)
{
    return (const char **)(void *)((char *)arguments + option->offset);
}

static void take_environment(const char **text, const char *name)
{
    const char *value = getenv(name);

    if (value != NULL && value[0] != 0)
        *text = value;
}

static void set_defaults(struct arguments *arguments)
{
    *arguments = (struct arguments){ 0 };
    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        *field(arguments, &options[i]) = options[i].initial;
    take_environment(&arguments->endpoint, "HOLDFAST_ENDPOINT");
    take_environment(&arguments->key, "HOLDFAST_KEY");
    take_environment(&arguments->ca_file, "HOLDFAST_CA");
    take_environment(&arguments->cluster, "HOLDFAST_CLUSTER");
    take_environment(&arguments->etcd, "HOLDFAST_ETCD");
    take_environment(&arguments->etcd_ca, "HOLDFAST_ETCD_CA");
    take_environment(&arguments->etcd_cert, "HOLDFAST_ETCD_CERT");
    take_environment(&arguments->etcd_key, "HOLDFAST_ETCD_KEY");
}

static const struct option *find(const char *flag, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        if (strlen(options[i].flag) == size && strncmp(options[i].flag, flag, size) == 0)
            return &options[i];
    }
    return NULL;
}

/* One "--flag value" or "--flag=value"; returns how many words it took, 0 on error. */
static int take_option(struct arguments *arguments, const char *flag, const char *next,
                       char ret_why[256])
{
    const char *equals = strchr(flag, '=');
    size_t size = equals != NULL ? (size_t)(equals - flag) : strlen(flag);
    const struct option *option = find(flag, size);

    if (option == NULL) {
        snprintf(ret_why, 256, "there is no option --%.*s", (int)(size < 64 ? size : 64), flag);
        return 0;
    }
    if (equals == NULL && next == NULL) {
        snprintf(ret_why, 256, "--%s wants a value: %s", option->flag, option->value);
        return 0;
    }
    *field(arguments, option) = equals != NULL ? equals + 1 : next;
    return equals != NULL ? 1 : 2;
}

err arguments_parse(int argc, char *const *argv, struct arguments *ret_arguments, char ret_why[256])
{
    struct arguments arguments;

    set_defaults(&arguments);
    for (int i = 1; i < argc;) {
        const char *word = argv[i];
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        int taken = 1;
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            arguments.help = true;
        else if (strcmp(word, "--version") == 0)
            arguments.version = true;
        else if (strcmp(word, "--seal") == 0)
            arguments.seal = true;
        else if (strcmp(word, "--follow") == 0)
            arguments.follow = true;
        else if (strcmp(word, "--dry-run") == 0)
            arguments.dry_run = true;
        else if (strcmp(word, "--all") == 0)
            arguments.all = true;
        else if (strcmp(word, "-o") == 0)
            taken = take_option(&arguments, "output", next, ret_why);
        else if (strncmp(word, "--", 2) == 0)
            taken = take_option(&arguments, word + 2, next, ret_why);
        else if (arguments.word_count == WORDS_MAX) {
            snprintf(ret_why, 256, "too many words: at most %u", WORDS_MAX);
            return ERR_INVALID;
        } else
            arguments.words[arguments.word_count++] = word;
        if (taken == 0)
            return ERR_INVALID;
        i += taken;
    }
    if (strcmp(arguments.output, "table") != 0 && strcmp(arguments.output, "json") != 0) {
        snprintf(ret_why, 256, "--output is table or json, not '%.64s'", arguments.output);
        return ERR_INVALID;
    }
    *ret_arguments = arguments;
    return ERR_OK;
}

err argument_number(const char *flag, const char *text, uint32_t min, uint32_t max,
                    uint32_t *ret_number)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != 0 || number < min || number > max) {
        fprintf(stderr, "holdfast: --%s is a number from %u to %u, not '%.64s'\n", flag, min, max,
                text);
        return ERR_INVALID;
    }
    *ret_number = (uint32_t)number;
    return ERR_OK;
}

void arguments_print_help(void)
{
    printf(
        "holdfast: a player-state store for game servers\n\n"
        "  holdfast dev                        start a whole local cluster with a real etcd\n"
        "  holdfast certs                      make a development CA and certificates\n"
        "  holdfast status                     the cluster, its nodes and shards\n"
        "  holdfast player show PLAYER         profile, balances, items and session\n"
        "  holdfast ledger list PLAYER         ledger entries, newest first\n"
        "  holdfast ledger export --player PLAYER | --all   ledgers as lines of JSON\n"
        "  holdfast ledger verify FILE         check an export's chains; needs no cluster\n"
        "  holdfast ledger reverse PLAYER OP_ID --reason TEXT   undo it, by a new entry\n"
        "  holdfast ledger reserve PLAYER CURRENCY=AMOUNT..     set aside for a time\n"
        "  holdfast ledger reservations PLAYER what is set aside now\n"
        "  holdfast ledger post PLAYER OP_ID [CURRENCY=AMOUNT..] [--to PLAYER]   spend it\n"
        "  holdfast ledger void PLAYER OP_ID   give it back\n"
        "  holdfast item trace UID             every holder that an item ever had\n"
        "  holdfast item consume PLAYER UID..  take items out of the game\n"
        "  holdfast mailbox list PLAYER        mail that waits to be claimed\n"
        "  holdfast mailbox claim PLAYER MAIL  take it out; only while nobody holds the player\n"
        "  holdfast swap OP_ID PLAYER GOODS PLAYER GOODS   both give, or neither; gold=30,<item "
        "uid>\n"
        "  holdfast transfers                  what is on its way between shards\n"
        "  holdfast events [--follow]          what is out of the ordinary, on all nodes\n"
        "  holdfast reconcile [--follow]       what a crash left half done, and how it ended\n"
        "  holdfast quarantine list            players held back, and why; show PLAYER\n"
        "  holdfast quarantine release PLAYER --reason TEXT [--made GOODS]\n"
        "  holdfast backup DIR                 all players as of one moment, into a directory\n"
        "  holdfast backup verify DIR          check every byte of it; needs no cluster; list DIR\n"
        "  holdfast restore DIR                a backup into a new, empty cluster\n"
        "  holdfast node drain|undrain|remove NODE    it owns nothing; or holds nothing at all\n"
        "  holdfast shard move SHARD --from NODE --to NODE   another node holds it\n"
        "  holdfast rebalance [--dry-run]      spread replicas evenly over nodes\n"
        "  holdfast orphans PATH..             entries of deposed owners that a node set aside\n"
        "  holdfast op new                     a fresh op_id, a UUIDv7\n"
        "  holdfast op get ENTITY OP_ID        what became of an operation\n"
        "  holdfast op resolve ENTITY OP_ID [--seal]   settle it; --seal: for ever\n"
        "  holdfast key issue NAME --scopes LIST   an API key; list, revoke ID\n"
        "  holdfast call SERVICE/METHOD JSON   any method of the API\n\n"
        "Options:\n");
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        char flag[64];
        snprintf(flag, sizeof flag, "--%s %s", options[i].flag, options[i].value);
        printf("  %-24s %s%s%s%s\n", flag, options[i].meaning, options[i].initial[0] ? " [" : "",
               options[i].initial, options[i].initial[0] ? "]" : "");
    }
    printf("  %-24s %s\n  %-24s %s\n", "--help, -h", "this text", "--version", "print the version");
    printf("\nExit codes: 0 done, 1 refused or failed, 2 used wrongly, 3 outcome unknown.\n");
}
