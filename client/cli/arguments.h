/* arguments: the command line of `holdfast`: a verb, its words, and options from one table. */
#ifndef CLIENT_CLI_ARGUMENTS_H
#define CLIENT_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

#define WORDS_MAX 8u

/* clang-format off */
/*    name           flag            value       default         of which verbs ("": all), meaning */
#define ARGUMENT_TABLE(X) \
    X(endpoint,      "endpoint",     "URL",      "http://127.0.0.1:7400", "", "router to call; doctor, debug zip: several, with commas; also HOLDFAST_ENDPOINT") \
    X(key,           "key",          "KEY",      "",             "", "API key; also HOLDFAST_KEY") \
    X(output,        "output",       "FORMAT",   "table",        "", "table or json (short: -o)") \
    X(deadline_ms,   "deadline-ms",  "MS",       "10000",        "", "of a call, retries included") \
    X(nodes,         "nodes",        "N",        "3",            "dev", "storage nodes, 1 to 9") \
    X(data,          "data",         "DIR",      "holdfast-data", "dev", "where everything is kept") \
    X(port,          "port",         "PORT",     "7400",         "dev", "public port; 0: any free one") \
    X(currencies,    "currencies",   "LIST",     "gold,gems",    "dev", "currencies of a new cluster") \
    X(restart_ms,    "restart-ms",   "MS",       "0",            "dev", "pause before a process that died is started again") \
    X(dir,           "dir",          "DIR",      "certs",        "certs", "where they are made") \
    X(names,         "names",        "LIST",     "node,router,coordinator,client", "certs", "one certificate each") \
    X(cluster,       "cluster",      "NAME",     "dev",          "dev, certs, key", "name of the cluster; also HOLDFAST_CLUSTER") \
    X(page_size,     "page-size",    "N",        "50",           "ledger, mailbox list, item trace", "rows a page") \
    X(cursor,        "cursor",       "CURSOR",   "",             "ledger, mailbox list, item trace", "from the page before") \
    X(op_id,         "op-id",        "ID",       "",             "item, ledger", "of the change; else a fresh one") \
    X(reason,        "reason",       "TEXT",     "",             "item, ledger, quarantine", "why; it is logged") \
    X(seq,           "seq",          "N",        "0",            "ledger", "the entry, if its outcome is kept no more") \
    X(expires_ms,    "expires-ms",   "MS",       "60000",        "ledger reserve", "until it comes back") \
    X(to,            "to",           "PLAYER",   "",             "ledger post, shard move", "who gets it, else it is spent; the node") \
    X(made,          "made",         "LIST",     "",             "quarantine release", "surplus to be regarded as made: UID,gold=5") \
    X(rows,          "rows",         "LIST",     "",             "quarantine repair", "keys of rows that cannot be read, with commas") \
    X(sections,      "sections",     "LIST",     "",             "quarantine repair", "which the player had: NAME:SCHEMA, with commas") \
    X(balances,      "balances",     "LIST",     "",             "quarantine repair", "that the ledger does not tell: gold=5, with commas") \
    X(player,        "player",       "PLAYER",   "",             "ledger export", "whose ledger") \
    X(ca_file,       "ca",           "FILE",     "",             "", "of the router's certificate, for https; also HOLDFAST_CA") \
    X(access,        "access",       "WHO",      "open",         "dev", "open (anybody may call) or keys (see holdfast key)") \
    X(scopes,        "scopes",       "LIST",     "",             "key issue", "what for: game, payments, mail, match, moderation, admin, read") \
    X(expires_days,  "expires-days", "N",        "0",            "key issue", "until then; 0: for ever") \
    X(rate,          "rate",         "N",        "0",            "key issue", "requests a second at each router; 0: its default") \
    X(from,          "from",         "FILE",     "",             "key issue, shard move", "a key made elsewhere, hf_..., or - for standard input; the node") \
    X(etcd,          "etcd",         "URLS",     "http://127.0.0.1:2379", "key", "the cluster's etcd; also HOLDFAST_ETCD") \
    X(etcd_ca,       "etcd-ca",      "FILE",     "",             "key", "CA of etcd's certificates; also HOLDFAST_ETCD_CA") \
    X(etcd_cert,     "etcd-cert",    "FILE",     "",             "key", "client certificate for etcd; also HOLDFAST_ETCD_CERT") \
    X(etcd_key,      "etcd-key",     "FILE",     "",             "key", "of etcd-cert; also HOLDFAST_ETCD_KEY") \
    X(interval,      "interval",     "S",        "1",            "top", "seconds from one page to the next") \
    X(throttle,      "throttle",     "MIB",      "16",           "backup, restore", "at most so much a second") \
    X(number,        "number",       "N",        "0",            "restore", "which backup of the directory; 0: the newest") \
    X(metrics,       "metrics",      "URLS",     "",             "debug zip", "of processes, http://host:7409, with commas between") \
    X(log,           "log",          "FILES",    "",             "debug zip", "logs of processes, of which the end is taken")
/*    name     flag       of which verbs, meaning */
#define FLAG_TABLE(X) \
    X(seal,    "seal",    "op resolve", "what has not been carried out never will be") \
    X(all,     "all",     "ledger export", "of all players") \
    X(follow,  "follow",  "events, reconcile", "go on with what happens") \
    X(once,    "once",    "top", "one page, of what happens within one interval") \
    X(yes,     "yes",     "admin", "do not ask") \
    X(force,   "force",   "admin", "although no node says that etcd is older than it knows") \
    X(rebuild, "rebuild", "quarantine repair", "make the player's own row again from its other rows") \
    X(dry_run, "dry-run", "rebalance, admin, quarantine repair", "tell what would be done, and do nothing") \
    X(shards,  "shards",  "status", "every shard, not only those with something wrong") \
    X(json,    "json",    "", "as --output json") \
    X(redact,  "redact",  "debug zip", "replace ids of players and operations by hashes")
/* clang-format on */

#define ARGUMENT_FIELD(name, flag, value, initial, verbs, meaning) const char *name;
#define FLAG_FIELD(name, flag, verbs, meaning)                     bool name;
struct arguments {
    ARGUMENT_TABLE(ARGUMENT_FIELD)
    FLAG_TABLE(FLAG_FIELD)
    bool help, version;
    const char *words[WORDS_MAX]; /* The verb and what follows it. */
    uint32_t word_count;
};
#undef ARGUMENT_FIELD
#undef FLAG_FIELD

/* A row of either table. */
struct command_option {
    const char *flag;    /* Without the dashes. */
    const char *value;   /* What its value is; NULL: it takes none. */
    const char *initial; /* NULL where it takes none. */
    const char *verbs;   /* "item, ledger reserve": whose it is; empty: of all. */
    const char *meaning;
    size_t offset; /* In struct arguments. */
};

/* Texts are borrowed from argv and the environment. ERR_INVALID: ret_why says what is wrong. */
NODISCARD err arguments_parse(int argc, char *const *argv, struct arguments *ret_arguments,
                              char ret_why[256]);
/* A whole number within bounds. ERR_INVALID: written to standard error with flag and bounds. */
NODISCARD err argument_number(const char *flag, const char *text, uint32_t min, uint32_t max,
                              uint32_t *ret_number);
/* All options, those with a value first; *ret_count of them. */
const struct command_option *command_option_all(size_t *ret_count);
/* The options with meanings and defaults, on standard output. */
void arguments_print_options(void);

#endif
