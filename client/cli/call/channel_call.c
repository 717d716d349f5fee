#include "client/cli/call/channel_call.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/output.h"

#define SHARDS_MAX 4096u

json_t *channel_ask(const struct arguments *arguments, const struct channel_question *question,
                    int *ret_code)
{
    return call_json(arguments, "AdminService/GetChannel",
                     json_pack("{s:i, s:i, s:I, s:s}", "shard", (int)question->shard, "otherShard",
                               (int)question->other, "seq", (json_int_t)question->record,
                               "heldPlayerId", question->held != NULL ? question->held : ""),
                     ret_code);
}

bool channel_read_shards(const struct arguments *arguments, struct channel_question *ret_question)
{
    *ret_question = (struct channel_question){ 0 };
    if (argument_number("SHARD", arguments->words[0], 0, SHARDS_MAX - 1, &ret_question->shard) !=
            ERR_OK ||
        argument_number("OTHER", arguments->words[1], 0, SHARDS_MAX - 1, &ret_question->other) !=
            ERR_OK)
        return false;
    if (ret_question->shard == ret_question->other)
        fprintf(stderr, "SHARD and OTHER are both %u: a shard has no channel to itself\n",
                ret_question->shard);
    return ret_question->shard != ret_question->other;
}

bool channel_is_unreadable(const json_t *told, const char *end)
{
    return json_is_true(json_object_get(json_object_get(told, end), "unreadable"));
}

void channel_print_end(const struct channel_question *of, const char *direction, const json_t *end)
{
    if (json_is_true(json_object_get(end, "unreadable"))) {
        printf("shard %u cannot read its row of the channel %s shard %u\n", of->shard, direction,
               of->other);
        return;
    }
    printf("channel %s shard %u, as shard %u knows: last record %llu, settled up to %llu\n",
           direction, of->other, of->shard, (unsigned long long)answer_number(end, "lastSeq"),
           (unsigned long long)answer_number(end, "watermark"));
}

static void print_text(const char *what, const char *text)
{
    if (text[0] != 0)
        printf("%s%s", what, text);
}

static void print_goods(const json_t *record)
{
    const json_t *amount, *item;
    size_t i;

    json_array_foreach(json_object_get(record, "currencies"), i, amount)
        printf(", %s %llu", answer_text(amount, "currency"),
               (unsigned long long)answer_number(amount, "amount"));
    json_array_foreach(json_object_get(record, "items"), i, item)
        printf(", %s %s", answer_text(item, "kind"), answer_text(item, "uid"));
    if (answer_number(record, "ledgerSeq") > 0)
        printf(" (ledger entry %llu)", (unsigned long long)answer_number(record, "ledgerSeq"));
}

void channel_print_record(const json_t *record)
{
    const char *kind = answer_text(record, "kind");
    const char *decision = answer_text(record, "decision");

    if (kind[0] == 0 && answer_text(record, "playerId")[0] == 0) {
        printf("  no other row tells whose it is\n");
        return;
    }
    printf("  %s", kind[0] != 0 ? kind : "of a kind that no row tells");
    print_text(" of player ", answer_text(record, "playerId"));
    print_text(", operation ", answer_text(record, "opId"));
    print_text(", to player ", answer_text(record, "toPlayerId"));
    print_goods(record);
    print_text(": ", decision);
    print_text(", mail ", answer_text(record, "mailId"));
    printf("\n");
}
