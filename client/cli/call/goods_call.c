#include "client/cli/call/goods_call.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/console/options.h"
#include "runtime/base/nearest.h"

static const struct column balance_columns[] = {
    { .title = "CURRENCY", .path = "currency" },
    { .title = "AMOUNT", .path = "amount", .otherwise = "0" },
    { .title = "RESERVED", .path = "reserved", .otherwise = "0" },
    { .title = NULL },
};

static const json_t *find_currency(const json_t *amounts, const char *currency)
{
    const json_t *amount;
    size_t i;

    json_array_foreach(amounts, i, amount)
    {
        const char *name = json_string_value(json_object_get(amount, "currency"));
        if (name != NULL && currency != NULL && strcmp(name, currency) == 0)
            return amount;
    }
    return NULL;
}

json_t *goods_balance_rows(const json_t *answer)
{
    const json_t *reserved = json_object_get(answer, "reserved");
    json_t *rows = json_deep_copy(json_object_get(answer, "balances"));
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const json_t *held =
            find_currency(reserved, json_string_value(json_object_get(row, "currency")));
        if (held != NULL)
            json_object_set(row, "reserved", json_object_get(held, "amount"));
    }
    return rows;
}

static void print_balances(const json_t *answer)
{
    json_t *rows = goods_balance_rows(answer);

    print_table(NULL, rows, balance_columns);
    json_decref(rows);
}

json_t *goods_request(const struct arguments *arguments, const char *player)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "playerId", player, "opId",
                     option_text(arguments, &option_op_id), "authority", "unheld", "reason",
                     option_text(arguments, &option_reason));
}

json_t *goods_amount(const char *text, size_t size)
{
    const char *equals = memchr(text, '=', size);

    if (equals == NULL || equals == text || equals + 1 == text + size)
        return NULL;
    return json_pack("{s:s%, s:s%}", "currency", text, (size_t)(equals - text), "amount",
                     equals + 1, (size_t)(text + size - equals - 1));
}

bool goods_add_amount(json_t *request, const char *text)
{
    json_t *amount = goods_amount(text, strlen(text));
    json_t *list = json_object_get(request, "currencies");

    if (amount == NULL) {
        char shown[NEAREST_SHOWN_BYTES];
        fprintf(stderr, "holdfast: an amount is CURRENCY=AMOUNT, not '%s'\n",
                nearest_show(slice_from_text(text), shown));
        return false;
    }
    if (list == NULL) {
        list = json_array();
        json_object_set_new(request, "currencies", list);
    }
    json_array_append_new(list, amount);
    return true;
}

bool goods_add_list(json_t *request, const char *list, const char *items_key,
                    const char *amounts_key)
{
    json_t *items = json_array(), *amounts = json_array();
    struct slice one;
    bool good = true;

    json_object_set_new(request, items_key, items);
    json_object_set_new(request, amounts_key, amounts);
    while (good && list_next(&list, &one)) {
        const char *text = (const char *)one.data;
        bool is_item = one.size > 0 && memchr(text, '=', one.size) == NULL;
        json_t *made = is_item ? json_stringn(text, one.size) : goods_amount(text, one.size);
        good = made != NULL && json_array_append_new(is_item ? items : amounts, made) == 0;
    }
    return good;
}

int goods_call(const struct arguments *arguments, const char *method, json_t *request)
{
    char op_id[200];
    int code;

    (void)snprintf(op_id, sizeof op_id, "%.160s",
                   json_string_value(json_object_get(request, "opId")));
    json_t *answer = call_json(arguments, method, request, &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        const char *seq = json_string_value(json_object_get(answer, "ledgerSeq"));
        const char *mail = json_string_value(json_object_get(answer, "mailId"));
        printf("operation %s, entry %s%s%s\n", op_id, seq != NULL ? seq : "0",
               mail != NULL ? ", mail " : "", mail != NULL ? mail : "");
        print_balances(answer);
    }
    json_decref(answer);
    return code;
}
