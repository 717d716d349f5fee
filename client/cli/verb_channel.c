/* channel: where what two shards send each other stands, and the repair of a row of it that cannot
 * be read. docs/runbooks/HoldfastRowsUnreadable.md. */
#include <stdio.h>

#include "client/cli/answer.h"
#include "client/cli/help.h"
#include "client/cli/options.h"
#include "client/cli/output.h"
#include "client/cli/verb.h"

#define SHARDS_MAX 4096u
#define KEY_BYTES  16u

/* What one of the two shards tells. NULL: exit code in *ret_code. */
static json_t *ask(const struct arguments *arguments, uint32_t shard, uint32_t other, int *ret_code)
{
    return call_json(arguments, "AdminService/GetChannel",
                     json_pack("{s:i, s:i}", "shard", (int)shard, "otherShard", (int)other),
                     ret_code);
}

static bool is_unreadable(const json_t *told, const char *direction)
{
    return json_is_true(json_object_get(json_object_get(told, direction), "unreadable"));
}

static void print_end(uint32_t shard, const char *what, const json_t *end, uint32_t other)
{
    if (json_is_true(json_object_get(end, "unreadable"))) {
        printf("shard %u cannot read its row of the channel %s shard %u\n", shard, what, other);
        return;
    }
    printf("channel %s shard %u, as shard %u knows: last record %llu, settled up to %llu\n", what,
           other, shard, (unsigned long long)answer_number(end, "lastSeq"),
           (unsigned long long)answer_number(end, "watermark"));
}

static void print_told(uint32_t shard, const json_t *told, uint32_t other)
{
    print_end(shard, "to", json_object_get(told, "outgoing"), other);
    print_end(shard, "from", json_object_get(told, "incoming"), other);
}

/* Two different ones. */
static bool read_shards(const struct arguments *arguments, uint32_t *ret_shard, uint32_t *ret_other)
{
    if (argument_number("SHARD", arguments->words[0], 0, SHARDS_MAX - 1, ret_shard) != ERR_OK ||
        argument_number("OTHER", arguments->words[1], 0, SHARDS_MAX - 1, ret_other) != ERR_OK)
        return false;
    if (*ret_shard == *ret_other)
        fprintf(stderr, "SHARD and OTHER are both %u: a shard has no channel to itself\n",
                *ret_shard);
    return *ret_shard != *ret_other;
}

static int check(const struct arguments *arguments)
{
    uint32_t shard, other;
    int code = 2;

    if (!read_shards(arguments, &shard, &other))
        return code;
    json_t *told = ask(arguments, shard, other, &code);
    json_t *peer = told != NULL ? ask(arguments, other, shard, &code) : NULL;
    if (peer != NULL && wants_json(arguments)) {
        json_t *both = json_pack("{s:O, s:O}", "shard", told, "other", peer);
        print_json(both);
        json_decref(both);
    } else if (peer != NULL) {
        print_told(shard, told, other);
        print_told(other, peer, shard);
        if (is_unreadable(told, "outgoing") || is_unreadable(told, "incoming"))
            printf("\nto repair: holdfast channel repair %u %u --reason TEXT\n", shard, other);
        if (is_unreadable(peer, "outgoing") || is_unreadable(peer, "incoming"))
            printf("\nto repair: holdfast channel repair %u %u --reason TEXT\n", other, shard);
    }
    json_decref(told);
    json_decref(peer);
    return code;
}

/* One row, from what the other shard knows of the same direction. */
static int repair_one(const struct arguments *arguments, uint32_t shard, uint32_t other,
                      bool outgoing)
{
    char key[KEY_BYTES];
    int code = 0;

    json_t *peer = ask(arguments, other, shard, &code);
    if (peer == NULL)
        return code;
    const json_t *end = json_object_get(peer, outgoing ? "incoming" : "outgoing");
    snprintf(key, sizeof key, "63%s%04x", outgoing ? "6f" : "69", other);
    json_t *answer =
        call_json(arguments, "AdminService/RepairRow",
                  json_pack("{s:i, s:s, s:s, s:O}", "shard", (int)shard, "key", key, "reason",
                            option_text(arguments, &option_reason), "otherEnd", end),
                  &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        printf("made again: ");
        print_end(shard, outgoing ? "to" : "from", json_object_get(answer, "channel"), other);
    }
    json_decref(answer);
    json_decref(peer);
    return code;
}

/* The other shard is asked after this one was: its numbers are not older than the damage. */
static int repair(const struct arguments *arguments)
{
    uint32_t shard, other;
    int code = 2;

    if (option_text(arguments, &option_reason)[0] == 0)
        return refuse_usage(arguments);
    if (!read_shards(arguments, &shard, &other))
        return code;
    json_t *told = ask(arguments, shard, other, &code);
    if (told == NULL)
        return code;
    bool outgoing = is_unreadable(told, "outgoing");
    bool incoming = is_unreadable(told, "incoming");
    json_decref(told);
    if (!outgoing && !incoming)
        printf("shard %u can read its rows of the channels to and from shard %u\n", shard, other);
    if (outgoing)
        code = repair_one(arguments, shard, other, true);
    if (incoming && code == 0)
        code = repair_one(arguments, shard, other, false);
    return code;
}

const struct verb verb_channel[] = {
    {
        .words = "channel check",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "SHARD OTHER",
        .summary = "where what two shards send each other stands",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = check,
    },
    {
        .words = "channel repair",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "SHARD OTHER --reason TEXT",
        .summary = "make rows again that SHARD cannot read, from what OTHER knows",
        .details = "See docs/runbooks/HoldfastRowsUnreadable.md.",
        .options = VERB_OPTIONS(&option_reason, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = repair,
    },
    { .words = NULL },
};
