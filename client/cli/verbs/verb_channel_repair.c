/* channel repair: makes rows of a channel again that one of its shards cannot read.
 * docs/runbooks/HoldfastRowsUnreadable.md. */
#include <stdio.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/call/channel_call.h"
#include "client/cli/call/goods_call.h"
#include "client/cli/help.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

#define KEY_BYTES  32u
#define RECORD_MAX 9007199254740991ull

static const struct command_option option_record = {
    .flag = "record",
    .value = "N",
    .meaning = "repair this record, or SHARD's decision on it, and not where the channel stands",
};
static const struct command_option option_received = {
    .flag = "received",
    .meaning = "of --record N to and from OTHER: the one from there",
};
static const struct command_option option_player = {
    .flag = "player",
    .value = "PLAYER",
    .meaning = "whose operation opened the record",
};
static const struct command_option option_operation = {
    .flag = "operation",
    .value = "ID",
    .meaning = "... which one",
};
static const struct command_option option_to = {
    .flag = "to",
    .value = "PLAYER",
    .meaning = "recipient of the mail",
};
static const struct command_option option_kind = {
    .flag = "kind",
    .value = "KIND",
    .meaning = "finish or returned-mail, for which no operation waits",
};
static const struct command_option option_held = {
    .flag = "held",
    .value = "LIST",
    .meaning = "players of the receiver in the transaction, with commas",
};
static const struct command_option option_gives_back = {
    .flag = "gives-back",
    .value = "LIST",
    .meaning = "what the sender gets back if it was not applied: gold=5, with commas",
};
static const struct command_option option_give_up = {
    .flag = "give-up",
    .meaning = "no one knows what it carried, and nothing of it comes back",
};
static const struct command_option option_decision = {
    .flag = "decision",
    .value = "WORD",
    .meaning = "applied or cancelled; of --kind finish committed or aborted; where no row tells",
};
static const struct command_option option_mail = {
    .flag = "mail",
    .value = "ID",
    .meaning = "... of mail that was applied, if that is known",
};

/* ---- where a channel stands ---- */

/* One row, from what the other shard knows of the same direction. */
static int repair_end(const struct arguments *arguments, const struct channel_question *of,
                      bool outgoing)
{
    const struct channel_question there = { .shard = of->other, .other = of->shard };
    char key[KEY_BYTES];
    int code = 0;

    json_t *peer = channel_ask(arguments, &there, &code);
    if (peer == NULL)
        return code;
    const json_t *end = json_object_get(peer, outgoing ? "incoming" : "outgoing");
    snprintf(key, sizeof key, "63%s%04x", outgoing ? "6f" : "69", of->other);
    json_t *answer =
        call_json(arguments, "AdminService/RepairRow",
                  json_pack("{s:i, s:s, s:s, s:O}", "shard", (int)of->shard, "key", key, "reason",
                            option_text(arguments, &option_reason), "otherEnd", end),
                  &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        printf("made again: ");
        channel_print_end(of, outgoing ? "to" : "from", json_object_get(answer, "channel"));
    }
    json_decref(answer);
    json_decref(peer);
    return code;
}

/* The other shard is asked after this one was: its numbers are not older than the damage. */
static int repair_ends(const struct arguments *arguments, const struct channel_question *of)
{
    int code = 0;

    json_t *told = channel_ask(arguments, of, &code);
    if (told == NULL)
        return code;
    bool outgoing = channel_is_unreadable(told, "outgoing");
    bool incoming = channel_is_unreadable(told, "incoming");
    json_decref(told);
    if (!outgoing && !incoming)
        printf("shard %u can read its rows of the channels to and from shard %u\n", of->shard,
               of->other);
    if (outgoing)
        code = repair_end(arguments, of, true);
    if (incoming && code == 0)
        code = repair_end(arguments, of, false);
    return code;
}

/* ---- one record ---- */

/* A word as the name of an enum's value. False: written to standard error. */
static bool add_enum(const struct arguments *arguments, const struct command_option *option,
                     const char *const names[][2], json_t *record)
{
    const char *word = option_text(arguments, option);

    for (size_t i = 0; names[i][0] != NULL; i++) {
        if (strcmp(word, names[i][0]) == 0)
            return json_object_set_new(record, option == &option_kind ? "kind" : "decision",
                                       json_string(names[i][1])) == 0;
    }
    if (word[0] == 0)
        return true;
    fprintf(stderr, "--%s: expected %s, got \"%s\"\n", option->flag, option->value, word);
    return false;
}

static const char *const kind_names[][2] = {
    { "finish", "RECORD_KIND_FINISH" },
    { "returned-mail", "RECORD_KIND_RETURNED_MAIL" },
    { NULL, NULL },
};
static const char *const decision_names[][2] = {
    { "applied", "RECORD_DECISION_APPLIED" },
    { "cancelled", "RECORD_DECISION_CANCELLED" },
    { "committed", "RECORD_DECISION_COMMITTED" },
    { "aborted", "RECORD_DECISION_ABORTED" },
    { NULL, NULL },
};

static void add_text(const struct arguments *arguments, const struct command_option *option,
                     const char *field, json_t *record)
{
    const char *text = option_text(arguments, option);

    if (text[0] != 0)
        json_object_set_new(record, field, json_string(text));
}

/* False: an element is malformed. */
static bool add_amounts(const char *list, json_t *record)
{
    json_t *amounts = json_array();
    struct slice one;
    bool good = true;

    json_object_set_new(record, "currencies", amounts);
    while (good && list_next(&list, &one)) {
        json_t *made = one.size > 0 ? goods_amount((const char *)one.data, one.size) : NULL;
        good = made != NULL && json_array_append_new(amounts, made) == 0;
    }
    return good;
}

/* What a person states of it. False: written to standard error. */
static bool add_stated(const struct arguments *arguments, json_t *record)
{
    const char *list = option_text(arguments, &option_gives_back);
    const char *held = option_text(arguments, &option_held);
    struct slice one;

    add_text(arguments, &option_player, "playerId", record);
    add_text(arguments, &option_operation, "opId", record);
    add_text(arguments, &option_to, "toPlayerId", record);
    add_text(arguments, &option_mail, "mailId", record);
    if (!add_amounts(list, record)) {
        fprintf(stderr, "--gives-back: expected gold=5, with commas, got \"%s\"\n",
                option_text(arguments, &option_gives_back));
        return false;
    }
    if (held[0] != 0)
        json_object_set_new(record, "playerIds", json_array());
    while (list_next(&held, &one))
        json_array_append_new(json_object_get(record, "playerIds"),
                              json_stringn((const char *)one.data, one.size));
    return add_enum(arguments, &option_kind, kind_names, record) &&
           add_enum(arguments, &option_decision, decision_names, record);
}

/* What a person says of how a transaction was decided must be meant of the one that holds the
 * player. */
static int add_held_operation(const char *held, const json_t *told, json_t *record)
{
    const char *held_by = answer_text(told, "heldOpId");
    const char *stated = answer_text(record, "opId");

    if (stated[0] != 0 && held_by[0] != 0 && strcmp(stated, held_by) != 0) {
        fprintf(stderr, "operation %s holds player %s, and not %s\n", held_by, held, stated);
        return 1;
    }
    if (stated[0] == 0)
        json_object_set(record, "opId", json_object_get(told, "heldOpId"));
    return 0;
}

/* Which transaction holds the first of the players at the other shard, as that one tells. */
static int add_transaction(const struct arguments *arguments, const struct channel_question *of,
                           json_t *record)
{
    const char *held = json_string_value(json_array_get(json_object_get(record, "playerIds"), 0));
    const struct channel_question there = { .shard = of->other, .other = of->shard, .held = held };
    int code = 0;

    if (strcmp(answer_text(record, "kind"), "RECORD_KIND_FINISH") != 0 || held == NULL)
        return code;
    json_t *told = channel_ask(arguments, &there, &code);
    json_t *by = json_object_get(told, "heldBy");
    if (told != NULL && by == NULL) {
        fprintf(stderr, "no transaction of shard %u holds player %s\n", of->shard, held);
        code = 1;
    } else if (told != NULL) {
        json_object_set(record, "transaction", by);
        code = add_held_operation(held, told, record);
    }
    json_decref(told);
    return code;
}

/* A decision is made again from what the sender tells; a record from what its own shard found. The
 * caller's to decref. NULL: exit code in *ret_code. */
static json_t *record_make(const struct arguments *arguments, const struct channel_question *of,
                           bool outgoing, int *ret_code)
{
    static const char *const left_out[] = { "seq", "unreadable", "currencies", "items",
                                            "ledgerSeq" };
    const struct channel_question sender = { .shard = outgoing ? of->shard : of->other,
                                             .other = outgoing ? of->other : of->shard,
                                             .record = of->record };

    json_t *told = channel_ask(arguments, &sender, ret_code);
    if (told == NULL)
        return NULL;
    json_t *record = json_deep_copy(json_object_get(told, "sent"));
    json_decref(told);
    if (record == NULL)
        record = json_object();
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
        json_object_del(record, left_out[i]);
    if (outgoing) {
        json_object_del(record, "kind");
        json_object_del(record, "transaction");
    }
    *ret_code = add_stated(arguments, record) ? 0 : 2;
    if (*ret_code == 0 && outgoing)
        *ret_code = add_transaction(arguments, of, record);
    if (*ret_code == 0)
        return record;
    json_decref(record);
    return NULL;
}

static int repair_record(const struct arguments *arguments, const struct channel_question *of,
                         bool outgoing)
{
    char key[KEY_BYTES];
    int code = 0;

    json_t *record = record_make(arguments, of, outgoing, &code);
    if (record == NULL)
        return code;
    snprintf(key, sizeof key, "%s%04x%016llx", outgoing ? "78" : "6e", of->other,
             (unsigned long long)of->record);
    json_t *answer =
        call_json(arguments, "AdminService/RepairRow",
                  json_pack("{s:i, s:s, s:s, s:o, s:b}", "shard", (int)of->shard, "key", key,
                            "reason", option_text(arguments, &option_reason), "record", record,
                            "giveUp", (int)option_is_set(arguments, &option_give_up)),
                  &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        printf("%s: %s %llu %s shard %u\n", answer_text(json_object_get(answer, "row"), "outcome"),
               outgoing ? "record" : "decision on record", (unsigned long long)of->record,
               outgoing ? "to" : "from", of->other);
        channel_print_record(json_object_get(answer, "record"));
    }
    json_decref(answer);
    return code;
}

/* Which of the two that have this number. */
static int repair_one(const struct arguments *arguments, const struct channel_question *of)
{
    int code = 0;

    json_t *told = channel_ask(arguments, of, &code);
    if (told == NULL)
        return code;
    bool sent = channel_is_unreadable(told, "sent");
    bool received = channel_is_unreadable(told, "received");
    json_decref(told);
    if (received && (!sent || option_is_set(arguments, &option_received)))
        return repair_record(arguments, of, false);
    if (sent)
        return repair_record(arguments, of, true);
    printf("shard %u can read record %llu to shard %u, and its decision on the one from there, or "
           "has none\n",
           of->shard, (unsigned long long)of->record, of->other);
    return 0;
}

/* After a channel that neither end could read, numbers are above 32 bits. */
static bool read_record(const struct arguments *arguments, uint64_t *ret_record)
{
    const char *text = option_text(arguments, &option_record);
    uint64_t record = 0;

    for (const char *at = text; *at != 0; at++) {
        if (*at < '0' || *at > '9' || record > RECORD_MAX / 10) {
            record = 0;
            break;
        }
        record = record * 10 + (uint64_t)(*at - '0');
    }
    *ret_record = record;
    if (record > 0)
        return true;
    fprintf(stderr, "--record: expected 1 to %llu, got \"%s\"\n", (unsigned long long)RECORD_MAX,
            text);
    return false;
}

static int repair(const struct arguments *arguments)
{
    struct channel_question of;

    if (option_text(arguments, &option_reason)[0] == 0)
        return refuse_usage(arguments);
    if (!channel_read_shards(arguments, &of))
        return 2;
    if (option_text(arguments, &option_record)[0] == 0)
        return repair_ends(arguments, &of);
    return read_record(arguments, &of.record) ? repair_one(arguments, &of) : 2;
}

const struct verb verb_channel_repair[] = {
    {
        .words = "channel repair",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "SHARD OTHER --reason TEXT [--record N]",
        .summary = "make rows again that SHARD cannot read, from what OTHER knows",
        .details = "See docs/runbooks/HoldfastRowsUnreadable.md.",
        .options = VERB_OPTIONS(&option_reason, &option_record, &option_received, &option_player,
                                &option_operation, &option_to, &option_kind, &option_held,
                                &option_gives_back, &option_give_up, &option_decision, &option_mail,
                                OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = repair,
    },
    { .words = NULL },
};
