/* channel_call: asks a shard what it knows of its channels with another, and says it for people. */
#ifndef CLIENT_CLI_CALL_CHANNEL_CALL_H
#define CLIENT_CLI_CALL_CHANNEL_CALL_H

#include <jansson.h>

#include "client/cli/console/arguments.h"

/* One shard's view. */
struct channel_question {
    uint32_t shard, other;
    uint64_t record;  /* Tells of this one, too; 0: of none. */
    const char *held; /* A player of `shard`: which transaction of `other` holds it; NULL: none. */
};

/* GetChannel's answer, the caller's to decref. NULL: exit code in *ret_code. */
json_t *channel_ask(const struct arguments *arguments, const struct channel_question *question,
                    int *ret_code);
/* The first two words: two different shards. False: written to standard error. */
bool channel_read_shards(const struct arguments *arguments, struct channel_question *ret_question);
/* Of an answer: `end` is "outgoing" or "incoming". */
bool channel_is_unreadable(const json_t *told, const char *end);
void channel_print_end(const struct channel_question *of, const char *direction, const json_t *end);
/* A record, with its kind, its operation and what it carries, or what was decided on it. */
void channel_print_record(const json_t *record);

#endif
