#include "client/cli/ledger_change.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/goods_call.h"
#include "client/cli/verb.h"

/* The words from `first` on are amounts. False: one is not. */
static bool add_amounts(const struct arguments *arguments, uint32_t first, json_t *request)
{
    for (uint32_t i = first; i < arguments->word_count; i++) {
        if (!goods_add_amount(request, arguments->words[i]))
            return false;
    }
    return true;
}

static int reverse(const struct arguments *arguments, json_t *request)
{
    json_object_set_new(request, "targetOpId", json_string(arguments->words[3]));
    json_object_set_new(request, "targetSeq", json_string(arguments->seq));
    return goods_call(arguments, "LedgerService/Reverse", request);
}

static int reserve(const struct arguments *arguments, json_t *request)
{
    if (!add_amounts(arguments, 3, request)) {
        json_decref(request);
        return 2;
    }
    json_object_set_new(request, "expiresInMs", json_string(arguments->expires_ms));
    return goods_call(arguments, "LedgerService/Reserve", request);
}

static int post(const struct arguments *arguments, json_t *request)
{
    if (!add_amounts(arguments, 4, request)) {
        json_decref(request);
        return 2;
    }
    json_object_set_new(request, "reserveOpId", json_string(arguments->words[3]));
    json_object_set_new(request, "reserveSeq", json_string(arguments->seq));
    json_object_set_new(request, "toPlayerId", json_string(arguments->to));
    return goods_call(arguments, "LedgerService/Post", request);
}

static int give_back(const struct arguments *arguments, json_t *request)
{
    json_object_set_new(request, "reserveOpId", json_string(arguments->words[3]));
    json_object_set_new(request, "reserveSeq", json_string(arguments->seq));
    return goods_call(arguments, "LedgerService/Void", request);
}

bool ledger_change(const struct arguments *arguments, int *ret_code)
{
    const char *what = arguments->word_count > 3 ? arguments->words[1] : "";
    bool exact = arguments->word_count == 4;
    int (*run)(const struct arguments *arguments, json_t *request) = NULL;

    if (exact && strcmp(what, "reverse") == 0)
        run = reverse;
    else if (strcmp(what, "reserve") == 0)
        run = reserve;
    else if (strcmp(what, "post") == 0)
        run = post;
    else if (exact && strcmp(what, "void") == 0)
        run = give_back;
    if (run == NULL)
        return false;
    *ret_code = run(arguments, goods_request(arguments, arguments->words[2]));
    return true;
}

void ledger_change_usage(void)
{
    fprintf(stderr,
            "       holdfast ledger reverse PLAYER OP_ID --reason TEXT [--seq N]\n"
            "       holdfast ledger reserve PLAYER CURRENCY=AMOUNT.. [--expires-ms MS]\n"
            "       holdfast ledger post PLAYER OP_ID [CURRENCY=AMOUNT..] [--to PLAYER] [--seq N]\n"
            "       holdfast ledger void PLAYER OP_ID [--seq N]\n"
            "All take --op-id ID and --reason TEXT, and work only while no game server holds the "
            "player.\n");
}
