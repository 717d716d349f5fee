/* holdfast ledger: what writes it: reverse, reserve, post, void. */
#include "client/cli/call/goods_call.h"
#include "client/cli/console/options.h"
#include "client/cli/verb.h"

static const struct command_option option_seq = {
    .flag = "seq",
    .value = "N",
    .initial = "0",
    .meaning = "the entry, if its outcome is kept no more",
};
static const struct command_option option_expires_ms = {
    .flag = "expires-ms",
    .value = "MS",
    .initial = "60000",
    .meaning = "until it comes back",
};
static const struct command_option option_to = {
    .flag = "to",
    .value = "PLAYER",
    .meaning = "who gets it, else it is spent",
};

/* The words from `first` on are amounts. False: one is not, which was told. */
static bool add_amounts(const struct arguments *arguments, uint32_t first, json_t *request)
{
    for (uint32_t i = first; i < arguments->word_count; i++) {
        if (!goods_add_amount(request, arguments->words[i]))
            return false;
    }
    return true;
}

/* Of the player and the operation that the first two words name. */
static json_t *about_operation(const struct arguments *arguments, const char *op_field,
                               const char *seq_field)
{
    json_t *request = goods_request(arguments, arguments->words[0]);

    json_object_set_new(request, op_field, json_string(arguments->words[1]));
    json_object_set_new(request, seq_field, json_string(option_text(arguments, &option_seq)));
    return request;
}

static int reverse(const struct arguments *arguments)
{
    return goods_call(arguments, "LedgerService/ReverseEntry",
                      about_operation(arguments, "targetOpId", "targetSeq"));
}

static int reserve(const struct arguments *arguments)
{
    json_t *request = goods_request(arguments, arguments->words[0]);

    if (!add_amounts(arguments, 1, request)) {
        json_decref(request);
        return 2;
    }
    json_object_set_new(request, "expiresInMs",
                        json_string(option_text(arguments, &option_expires_ms)));
    return goods_call(arguments, "LedgerService/ReserveCurrencies", request);
}

static int post(const struct arguments *arguments)
{
    json_t *request = about_operation(arguments, "reserveOpId", "reserveSeq");

    if (!add_amounts(arguments, 2, request)) {
        json_decref(request);
        return 2;
    }
    json_object_set_new(request, "toPlayerId", json_string(option_text(arguments, &option_to)));
    return goods_call(arguments, "LedgerService/PostReservation", request);
}

static int give_back(const struct arguments *arguments)
{
    return goods_call(arguments, "LedgerService/VoidReservation",
                      about_operation(arguments, "reserveOpId", "reserveSeq"));
}

const struct verb verb_ledger_change[] = {
    {
        .words = "ledger reverse",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "PLAYER OP_ID --reason TEXT",
        .summary = "undo an operation by a new entry",
        .details = GOODS_DETAILS,
        .options =
            VERB_OPTIONS(&option_seq, OPTIONS_OF_CHANGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = reverse,
    },
    {
        .words = "ledger reserve",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "PLAYER CURRENCY=AMOUNT..",
        .summary = "set currencies aside for a time",
        .details = GOODS_DETAILS,
        .options = VERB_OPTIONS(&option_expires_ms, OPTIONS_OF_CHANGES, OPTIONS_OF_CALLS,
                                OPTIONS_OF_OUTPUT),
        .run = reserve,
    },
    {
        .words = "ledger post",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "PLAYER OP_ID [CURRENCY=AMOUNT..] [--to PLAYER]",
        .summary = "spend what that operation reserved, or send it",
        .details = GOODS_DETAILS,
        .options = VERB_OPTIONS(&option_to, &option_seq, OPTIONS_OF_CHANGES, OPTIONS_OF_CALLS,
                                OPTIONS_OF_OUTPUT),
        .run = post,
    },
    {
        .words = "ledger void",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "PLAYER OP_ID",
        .summary = "give back what that operation reserved",
        .details = GOODS_DETAILS,
        .options =
            VERB_OPTIONS(&option_seq, OPTIONS_OF_CHANGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = give_back,
    },
    { .words = NULL },
};
