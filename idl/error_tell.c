#include "idl/error_tell.h"

#include <errno.h>
#include <stdlib.h>

#include "idl/error_code.h"
#include "idl/error_rule.h"

#define ABOUT(name) HOLDFAST__V1__ERROR_DETAIL__ABOUT_##name

typedef Holdfast__V1__ErrorDetail Detail;

/* False: the text is no number. */
static bool number_of(const char *text, uint64_t *ret_number)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || *end != 0)
        return false;
    *ret_number = number;
    return true;
}

static void tell_version(const char *value, struct arena *arena, Detail *detail)
{
    uint64_t current;

    if (!number_of(value, &current))
        return;
    detail->version = arena_alloc(arena, sizeof *detail->version);
    holdfast__v1__error_detail__version__init(detail->version);
    detail->version->current = current;
    detail->about_case = ABOUT(VERSION);
}

static void tell_entry(const char *value, struct arena *arena, Detail *detail)
{
    uint64_t seq;

    if (!number_of(value, &seq))
        return;
    detail->entry = arena_alloc(arena, sizeof *detail->entry);
    holdfast__v1__error_detail__entry__init(detail->entry);
    detail->entry->ledger_seq = seq;
    detail->about_case = ABOUT(ENTRY);
}

static void tell_item(char *uid, struct arena *arena, Detail *detail)
{
    if (uid[0] == 0)
        return;
    detail->item = arena_alloc(arena, sizeof *detail->item);
    holdfast__v1__error_detail__item__init(detail->item);
    detail->item->item_uid = uid;
    detail->about_case = ABOUT(ITEM);
}

static void tell_holder(char *incarnation, struct arena *arena, Detail *detail)
{
    if (incarnation[0] == 0)
        return;
    detail->holder = arena_alloc(arena, sizeof *detail->holder);
    holdfast__v1__error_detail__holder__init(detail->holder);
    detail->holder->incarnation = incarnation;
    detail->about_case = ABOUT(HOLDER);
}

static void tell_about(const Holdfast__Internal__V1__Refusal *refusal, struct arena *arena,
                       Detail *detail)
{
    switch (refusal->code) {
    case CODE(VERSION_CONFLICT):
        tell_version(refusal->value, arena, detail);
        break;
    case CODE(ALREADY_REVERSED):
    case CODE(RESERVATION_CLOSED):
        tell_entry(refusal->value, arena, detail);
        break;
    case CODE(ITEM_NOT_HELD):
        tell_item(refusal->value, arena, detail);
        break;
    case CODE(SESSION_LOCKED):
        tell_holder(refusal->holder, arena, detail);
        break;
    case CODE(INSUFFICIENT_FUNDS):
        detail->funds = refusal->funds;
        detail->about_case = refusal->funds != NULL ? ABOUT(FUNDS) : ABOUT(_NOT_SET);
        break;
    case CODE(CAPACITY_FULL):
        detail->capacity = refusal->capacity;
        detail->about_case = refusal->capacity != NULL ? ABOUT(CAPACITY) : ABOUT(_NOT_SET);
        break;
    default:
        break;
    }
}

Holdfast__V1__ErrorDetail error_tell(const Holdfast__Internal__V1__Refusal *refusal,
                                     struct arena *arena)
{
    Detail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    detail.code = refusal->code;
    detail.message = refusal->message;
    detail.field = refusal->field;
    detail.limit = refusal->limit;
    detail.value = refusal->value;
    detail.retry_after_ms = refusal->retry_after_ms;
    if (refusal->final)
        detail.outcome = HOLDFAST__V1__OUTCOME__OUTCOME_REFUSED;
    tell_about(refusal, arena, &detail);
    return error_complete(&detail);
}
