/*
 * verb: what a verb of `holdfast` says about itself. Each verb_NAME.c ends in an array verb_NAME of
 * such rows, closed by one without words. The build finds these files by their names, so a new verb
 * is one file here and one entry in docs/holdfast.1.
 */
#ifndef CLIENT_CLI_VERB_H
#define CLIENT_CLI_VERB_H

#include "client/cli/console/arguments.h"

/* In the order in which --help prints them. */
#define VERB_TOPIC_TABLE(X)                                                                        \
    X(DEV, "A cluster on this machine")                                                            \
    X(LOOK, "How a cluster is")                                                                    \
    X(PLAYER, "Players")                                                                           \
    X(GOODS, "What players own")                                                                   \
    X(MEMBERS, "Who holds which shard")                                                            \
    X(BACKUP, "Backups and recovery")                                                              \
    X(API, "Calls, operations and keys")                                                           \
    X(SHELL, "This program")

#define VERB_TOPIC_ENUM(name, title) VERB_TOPIC_##name,
enum verb_topic { VERB_TOPIC_TABLE(VERB_TOPIC_ENUM) VERB_TOPICS };
#undef VERB_TOPIC_ENUM

struct verb {
    const char *words; /* One or two: "status", "ledger list". */
    enum verb_topic topic;
    /* What follows: "PLAYER OP_ID [CURRENCY=AMOUNT..] --to PLAYER". Words up to the first "--" are
     * counted before `run`: those in brackets may be left out, those with ".." be many. */
    const char *arguments;
    const char *summary; /* One line for lists. */
    const char *details; /* What its own help says besides; NULL: nothing. */
    /* Those that it reads, then NULL. */
    const struct command_option *const *options;
    /* Returns the exit code: 0 done, 1 refused or failed, 2 used wrongly, 3 outcome unknown. */
    int (*run)(const struct arguments *arguments);
};

#define VERB_OPTIONS(...)                                                                          \
    (const struct command_option *const[])                                                         \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

#endif
