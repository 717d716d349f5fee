/* What a request must be like before it may be logged, by the comments of its message said again:
 * one that is not is refused, and one that is is not refused for its form. Part of the model. */
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"
#include "tests/sim/servers/request.h"

#define AMOUNT_MOST      9007199254740991
#define KIND_BYTES       64u
#define REASON_BYTES     64u
#define SENT_MS_MOST     31536000000u
#define RESERVED_MS_MOST 2592000000u
#define EXPIRES_MS_LEAST 1000u

struct page_limit {
    uint32_t method, most;
};

static const struct page_limit page_limits[] = {
    { METHOD_LIST_ITEMS, 500 },        { METHOD_LIST_ENTRIES, 200 },  { METHOD_LIST_MAIL, 100 },
    { METHOD_LIST_RESERVATIONS, 64 },  { METHOD_LIST_PLAYERS, 1000 }, { METHOD_CHECK_PLAYER, 64 },
    { METHOD_LIST_QUARANTINED, 1024 },
};

uint32_t valid_page_most(uint32_t method)
{
    for (size_t i = 0; i < ARRAY_SIZE(page_limits); i++) {
        if (page_limits[i].method == method)
            return page_limits[i].most;
    }
    return 0;
}

static bool is_known(const char *currency)
{
    uint32_t place = 0;

    while (place < SIM_CURRENCIES && strcmp(request_currency(place), currency) != 0)
        place++;
    return place < SIM_CURRENCIES;
}

/* Of a field that a message may have. */
static const void *find(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);

    return field != NULL ? (const uint8_t *)message + field->offset : NULL;
}

/* A field of that name may be no text: the `reason` of a list is an enum. */
static const char *text_of(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    const char *const *text = find(message, name);

    return text != NULL && field->type == PROTOBUF_C_TYPE_STRING ? *text : "";
}

static bool amounts_are_valid(size_t count, Holdfast__V1__CurrencyAmount *const *amounts)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_known(amounts[i]->currency) || amounts[i]->amount < 1 ||
            amounts[i]->amount > AMOUNT_MOST)
            return false;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(amounts[i]->currency, amounts[j]->currency) == 0)
                return false;
        }
    }
    return true;
}

static bool specs_are_valid(size_t count, Holdfast__V1__ItemSpec *const *specs)
{
    for (size_t i = 0; i < count; i++) {
        if (specs[i]->kind[0] == '\0' || strlen(specs[i]->kind) > KIND_BYTES)
            return false;
    }
    return true;
}

static bool uids_are_valid(size_t count, char *const *uids)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(uids[i]) != GOODS_ID_SIZE - 1)
            return false;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(uids[i], uids[j]) == 0)
                return false;
        }
    }
    return true;
}

static bool field_is_valid(const ProtobufCFieldDescriptor *field, size_t count, const void *list)
{
    if (field->descriptor == &holdfast__v1__currency_amount__descriptor)
        return amounts_are_valid(count, list);
    if (field->descriptor == &holdfast__v1__item_spec__descriptor)
        return specs_are_valid(count, list);
    if (strstr(field->name, "item_uids") != NULL || strcmp(field->name, "mail_ids") == 0)
        return uids_are_valid(count, list);
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (!valid_message(((const ProtobufCMessage *const *)list)[i]))
            return false;
    }
    return true;
}

/* The member of a oneof that is set, or a field of its own. */
static bool single_is_valid(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const uint8_t *at = (const uint8_t *)message;
    bool is_set = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0 ||
                  *(const uint32_t *)(const void *)(at + field->quantifier_offset) == field->id;

    if (!is_set || field->type != PROTOBUF_C_TYPE_MESSAGE)
        return true;
    const ProtobufCMessage *part =
        *(const ProtobufCMessage *const *)(const void *)(at + field->offset);
    if (part == NULL)
        return true;
    if (field->descriptor == &holdfast__v1__currency_amount__descriptor)
        return amounts_are_valid(1, (Holdfast__V1__CurrencyAmount *const *)&part);
    return valid_message(part);
}

bool valid_message(const ProtobufCMessage *message)
{
    const uint8_t *at = (const uint8_t *)message;

    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        bool valid =
            field->label != PROTOBUF_C_LABEL_REPEATED
                ? single_is_valid(message, field)
                : field_is_valid(field,
                                 *(const size_t *)(const void *)(at + field->quantifier_offset),
                                 *(const void *const *)(const void *)(at + field->offset));
        if (!valid)
            return false;
    }
    return true;
}

static bool time_is_valid(uint32_t method, const ProtobufCMessage *request)
{
    const uint64_t *expires_ms = find(request, "expires_in_ms");

    if (expires_ms == NULL || (*expires_ms == 0 && method == METHOD_SEND_MAIL))
        return true;
    return *expires_ms >= EXPIRES_MS_LEAST &&
           *expires_ms <= (method == METHOD_SEND_MAIL ? SENT_MS_MOST : RESERVED_MS_MOST);
}

/* In the whole transaction. */
static bool trade_is_valid(const Holdfast__V1__ExecuteTransactionRequest *request)
{
    char *uids[16];
    size_t count = 0;

    for (size_t i = 0; i < request->n_changes; i++) {
        const Holdfast__V1__TransactionChange *change = request->changes[i];
        bool moves = change->change_case == HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_MOVE;
        bool spends = change->change_case == HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_SPEND;
        size_t n = moves ? change->move->n_item_uids : spends ? change->spend->n_item_uids : 0;
        char *const *list = moves    ? change->move->item_uids
                            : spends ? change->spend->item_uids
                                     : NULL;
        for (size_t j = 0; j < n && count < ARRAY_SIZE(uids); j++)
            uids[count++] = list[j];
    }
    return uids_are_valid(count, uids);
}

bool valid_request(uint32_t method, const ProtobufCMessage *request)
{
    const uint32_t *page = find(request, "page_size");
    const char *to = text_of(request, "to_player_id");
    const char *from = text_of(request, "player_id");

    if (page != NULL && valid_page_most(method) > 0 && *page > valid_page_most(method))
        return false;
    if (method == METHOD_EXECUTE_TRANSACTION && !trade_is_valid((const void *)request))
        return false;
    if (to[0] != '\0' && strcmp(to, from) == 0)
        return false;
    return strlen(text_of(request, "reason")) <= REASON_BYTES && time_is_valid(method, request) &&
           valid_message(request);
}
