#include "client/cli/verb_table.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/verb.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"
#include "runtime/codec/utf8.h"

#define USAGE_WIDTH 35
#define SHOWN_BYTES 65u /* At most 64 bytes of what was typed. */

/* clang-format off */
static const struct verb verbs[] = {
    { "dev", "", "start a whole local cluster with a real etcd", verb_dev },
    { "certs", "", "make a development CA and certificates", verb_certs },
    { "status", "[--shards]", "the cluster at a glance: nodes, and shards with something wrong", verb_status },
    { "doctor", "", "what is wrong, and what to do; exits with 1 if a check failed, 0 with warnings", verb_doctor },
    { "top", "[--interval S] [--once]", "what nodes, methods and shards do, again and again", verb_top },
    { "player show", "PLAYER", "profile, balances, items and session", verb_player },
    { "ledger list", "PLAYER", "ledger entries, newest first", verb_ledger },
    { "ledger export", "--player PLAYER | --all", "ledgers as lines of JSON", verb_ledger },
    { "ledger verify", "FILE", "check an export's chains; needs no cluster", verb_ledger },
    { "ledger reverse", "PLAYER OP_ID --reason TEXT", "undo it, by a new entry", verb_ledger },
    { "ledger reserve", "PLAYER CURRENCY=AMOUNT..", "set aside for a time", verb_ledger },
    { "ledger reservations", "PLAYER", "what is set aside now", verb_ledger },
    { "ledger post", "PLAYER OP_ID [CURRENCY=AMOUNT..] [--to PLAYER]", "spend it", verb_ledger },
    { "ledger void", "PLAYER OP_ID", "give it back", verb_ledger },
    { "item trace", "UID", "every holder that an item ever had", verb_item },
    { "item consume", "PLAYER UID..", "take items out of the game", verb_item },
    { "mailbox list", "PLAYER", "mail that waits to be claimed", verb_mailbox },
    { "mailbox claim", "PLAYER MAIL", "take it out; only while nobody holds the player", verb_mailbox },
    { "swap", "OP_ID PLAYER GOODS PLAYER GOODS", "both give, or neither; gold=30,<item uid>", verb_swap },
    { "transfers", "", "what is on its way between shards", verb_transfers },
    { "events", "[--follow]", "what is out of the ordinary, on all nodes", verb_events },
    { "reconcile", "[--follow]", "what a crash left half done, and how it ended", verb_reconcile },
    { "quarantine list", "", "players held back, and why", verb_quarantine },
    { "quarantine show", "PLAYER", "whether and why one is", verb_quarantine },
    { "quarantine check", "PLAYER", "which of its rows cannot be read", verb_quarantine },
    { "quarantine repair", "PLAYER --reason TEXT [--rows KEYS] [--rebuild]", "those rows; see its runbook", verb_quarantine },
    { "quarantine release", "PLAYER --reason TEXT [--made GOODS]", "let it go on", verb_quarantine },
    { "backup", "DIR", "all players as of one moment, into a directory", verb_backup },
    { "backup verify", "DIR", "check every byte of it; needs no cluster", verb_backup },
    { "backup list", "DIR", "which backups there are", verb_backup },
    { "restore", "DIR", "a backup into a new, empty cluster", verb_restore },
    { "node drain|undrain|remove", "NODE", "it owns nothing; or holds nothing at all", verb_node },
    { "shard move", "SHARD --from NODE --to NODE", "another node holds it", verb_shard },
    { "rebalance", "[--dry-run]", "spread replicas evenly over nodes", verb_rebalance },
    { "admin accept-etcd-restore", "[--dry-run] [--yes] [--force]", "go on with an etcd restored from a backup", verb_admin },
    { "orphans", "PATH..", "entries of deposed owners that a node set aside", verb_orphans },
    { "op new", "", "a fresh op_id, a UUIDv7", verb_op },
    { "op get", "ENTITY OP_ID", "what became of an operation", verb_op },
    { "op resolve", "ENTITY OP_ID [--seal]", "settle it; --seal: for ever", verb_op },
    { "key issue", "NAME --scopes LIST", "an API key for the public port", verb_key },
    { "key list", "", "the keys, without their secrets", verb_key },
    { "key revoke", "ID", "no router takes it any more", verb_key },
    { "call", "SERVICE/METHOD JSON", "any method of the API", verb_call },
    { "completion bash|zsh", "", "a script that lets the shell complete verbs and options", verb_completion },
    { "debug zip", "FILE.zip", "an archive for a support case, without secrets", verb_debug },
#ifdef HOLDFAST_DEBUG_INJECT
    { "debug inject", "PLAYER UID | CURRENCY=AMOUNT", "damage a record, for tests", verb_debug },
#endif
};
/* clang-format on */

const struct verb *verb_all(size_t *ret_count)
{
    *ret_count = ARRAY_SIZE(verbs);
    return verbs;
}

const struct verb *verb_find(const char *word)
{
    size_t size = strlen(word);

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (strcspn(verbs[i].words, " ") == size && strncmp(verbs[i].words, word, size) == 0)
            return &verbs[i];
    }
    return NULL;
}

static struct slice first_word(const struct verb *verb)
{
    return (struct slice){ (const uint8_t *)verb->words, strcspn(verb->words, " ") };
}

/* Cuts the next of "drain|undrain|remove" off; empty: there are no more. */
static struct slice next_alternative(const char **words)
{
    struct slice word = { (const uint8_t *)*words, strcspn(*words, "|") };

    *words += word.size;
    *words += **words == '|';
    return word;
}

/* Offers the second words of all rows that begin with `first`. True: `given` is one of them, or
 * something else may stand there. */
static bool second_word_fits(const char *first, const char *given, struct nearest *nearest)
{
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        struct slice word = first_word(&verbs[i]);
        const char *rest = verbs[i].words + word.size;

        if (!slice_equal(word, slice_from_text(first)))
            continue;
        if (*rest == 0)
            return true;
        rest++;
        for (word = next_alternative(&rest); word.size > 0; word = next_alternative(&rest)) {
            if (slice_equal(word, slice_from_text(given)))
                return true;
            nearest_offer(nearest, word);
        }
    }
    return false;
}

static bool misspelt_second(const struct arguments *arguments, char ret_why[VERB_WHY_BYTES])
{
    const char *first = arguments->words[0];
    const char *given = arguments->word_count > 1 ? arguments->words[1] : "";
    struct nearest nearest;
    char shown[SHOWN_BYTES];

    nearest_init(&nearest, slice_from_text(given));
    if (second_word_fits(first, given, &nearest) || nearest.name.size == 0)
        return false;
    utf8_snippet(shown, sizeof shown, slice_from_text(given));
    snprintf(ret_why, VERB_WHY_BYTES, "there is no verb '%s %s'; did you mean '%s %.*s'?", first,
             shown, first, (int)nearest.name.size, (const char *)nearest.name.data);
    return true;
}

bool verb_misspelt(const struct arguments *arguments, char ret_why[VERB_WHY_BYTES])
{
    struct nearest nearest;
    char shown[SHOWN_BYTES];

    CHECK(arguments->word_count > 0);
    if (verb_find(arguments->words[0]) != NULL)
        return misspelt_second(arguments, ret_why);
    nearest_init(&nearest, slice_from_text(arguments->words[0]));
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        nearest_offer(&nearest, first_word(&verbs[i]));
    utf8_snippet(shown, sizeof shown, slice_from_text(arguments->words[0]));
    if (nearest.name.size > 0)
        snprintf(ret_why, VERB_WHY_BYTES, "there is no verb '%s'; did you mean '%.*s'?", shown,
                 (int)nearest.name.size, (const char *)nearest.name.data);
    else
        snprintf(ret_why, VERB_WHY_BYTES, "there is no verb '%s'", shown);
    return true;
}

void verb_print_help(void)
{
    printf("holdfast: a player-state store for game servers\n\n");
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        char usage[128];

        snprintf(usage, sizeof usage, "holdfast %s%s%s", verbs[i].words,
                 verbs[i].arguments[0] != 0 ? " " : "", verbs[i].arguments);
        printf("  %-*s%s%s\n", USAGE_WIDTH, usage, strlen(usage) < USAGE_WIDTH ? " " : "   ",
               verbs[i].meaning);
    }
    printf("\nOptions:\n");
    arguments_print_options();
    printf("\nExit codes: 0 done, 1 refused or failed, 2 used wrongly, 3 outcome unknown.\n");
}
