/* channel: where what two shards send each other stands, and which rows of it cannot be read.
 * docs/runbooks/HoldfastRowsUnreadable.md. */
#include <stdio.h>

#include "client/cli/console/answer.h"
#include "client/cli/call/channel_call.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static void print_told(const struct channel_question *of, const json_t *told)
{
    channel_print_end(of, "to", json_object_get(told, "outgoing"));
    channel_print_end(of, "from", json_object_get(told, "incoming"));
}

static void print_repair(const struct channel_question *of, const char *more)
{
    printf("to repair: holdfast channel repair %u %u --reason TEXT%s\n", of->shard, of->other,
           more);
}

/* A record of `of->shard` to `of->other`, or a decision of `of->shard` on one that came from there:
 * what it is, its sender tells. Exit code. */
static int print_unreadable(const struct arguments *arguments, const struct channel_question *of,
                            bool outgoing, uint64_t record)
{
    struct channel_question sender = { .shard = outgoing ? of->shard : of->other,
                                       .other = outgoing ? of->other : of->shard,
                                       .record = record };
    char more[64];
    int code = 0;

    json_t *told = channel_ask(arguments, &sender, &code);
    if (told == NULL)
        return code;
    printf("\nshard %u cannot read %s %llu %s shard %u\n", of->shard,
           outgoing ? "its record" : "its decision on record", (unsigned long long)record,
           outgoing ? "to" : "from", of->other);
    channel_print_record(json_object_get(told, "sent"));
    snprintf(more, sizeof more, " --record %llu", (unsigned long long)record);
    print_repair(of, more);
    json_decref(told);
    return 0;
}

static int print_records(const struct arguments *arguments, const struct channel_question *of,
                         const json_t *told, bool outgoing)
{
    const json_t *end = json_object_get(told, outgoing ? "outgoing" : "incoming");
    const json_t *list = json_object_get(end, "unreadableSeqs");
    int code = 0;

    for (size_t i = 0; i < json_array_size(list) && code == 0; i++) {
        const json_t *seq = json_array_get(list, i);
        json_t *wrapped = json_pack("{s:O}", "seq", seq);
        code = print_unreadable(arguments, of, outgoing, answer_number(wrapped, "seq"));
        json_decref(wrapped);
    }
    return code;
}

/* What is to be done at one of the two shards. */
static int print_repairs(const struct arguments *arguments, const struct channel_question *of,
                         const json_t *told)
{
    if (channel_is_unreadable(told, "outgoing") || channel_is_unreadable(told, "incoming")) {
        printf("\n");
        print_repair(of, "");
    }
    int code = print_records(arguments, of, told, true);
    return code == 0 ? print_records(arguments, of, told, false) : code;
}

static int check(const struct arguments *arguments)
{
    struct channel_question here;
    int code = 2;

    if (!channel_read_shards(arguments, &here))
        return code;
    const struct channel_question there = { .shard = here.other, .other = here.shard };
    json_t *told = channel_ask(arguments, &here, &code);
    json_t *peer = told != NULL ? channel_ask(arguments, &there, &code) : NULL;
    if (peer != NULL && wants_json(arguments)) {
        json_t *both = json_pack("{s:O, s:O}", "shard", told, "other", peer);
        print_json(both);
        json_decref(both);
    } else if (peer != NULL) {
        print_told(&here, told);
        print_told(&there, peer);
        code = print_repairs(arguments, &here, told);
        if (code == 0)
            code = print_repairs(arguments, &there, peer);
    }
    json_decref(told);
    json_decref(peer);
    return code;
}

const struct verb verb_channel[] = {
    {
        .words = "channel check",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "SHARD OTHER",
        .summary = "where what two shards send each other stands, and what of it cannot be read",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = check,
    },
    { .words = NULL },
};
