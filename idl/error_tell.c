#include "idl/error_tell.h"

#include <errno.h>
#include <stdlib.h>

#include "idl/error_code.h"
#include "idl/error_rule.h"

#define FACT(name) HOLDFAST__V1__ERROR_DETAIL__ABOUT__FACT_##name

typedef Holdfast__V1__ErrorDetail__About About;

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

static void tell_version(const char *value, struct arena *arena, About *about)
{
    uint64_t current;

    if (!number_of(value, &current))
        return;
    about->version = arena_alloc(arena, sizeof *about->version);
    holdfast__v1__error_detail__version__init(about->version);
    about->version->current = current;
    about->fact_case = FACT(VERSION);
}

static void tell_entry(const char *value, struct arena *arena, About *about)
{
    uint64_t seq;

    if (!number_of(value, &seq))
        return;
    about->entry = arena_alloc(arena, sizeof *about->entry);
    holdfast__v1__error_detail__entry__init(about->entry);
    about->entry->ledger_seq = seq;
    about->fact_case = FACT(ENTRY);
}

static void tell_item(char *uid, struct arena *arena, About *about)
{
    if (uid[0] == 0)
        return;
    about->item = arena_alloc(arena, sizeof *about->item);
    holdfast__v1__error_detail__item__init(about->item);
    about->item->item_uid = uid;
    about->fact_case = FACT(ITEM);
}

static void tell_holder(char *incarnation, struct arena *arena, About *about)
{
    if (incarnation[0] == 0)
        return;
    about->holder = arena_alloc(arena, sizeof *about->holder);
    holdfast__v1__error_detail__holder__init(about->holder);
    about->holder->incarnation = incarnation;
    about->fact_case = FACT(HOLDER);
}

static void tell_about(const Holdfast__Internal__V1__Refusal *refusal, struct arena *arena,
                       About *about)
{
    switch (refusal->code) {
    case CODE(VERSION_CONFLICT):
        tell_version(refusal->value, arena, about);
        break;
    case CODE(ALREADY_REVERSED):
    case CODE(RESERVATION_CLOSED):
        tell_entry(refusal->value, arena, about);
        break;
    case CODE(ITEM_NOT_HELD):
        tell_item(refusal->value, arena, about);
        break;
    case CODE(SESSION_LOCKED):
    case CODE(SESSION_LOST):
        tell_holder(refusal->holder, arena, about);
        break;
    case CODE(INSUFFICIENT_FUNDS):
        about->funds = refusal->funds;
        about->fact_case = refusal->funds != NULL ? FACT(FUNDS) : FACT(_NOT_SET);
        break;
    case CODE(CAPACITY_FULL):
        about->capacity = refusal->capacity;
        about->fact_case = refusal->capacity != NULL ? FACT(CAPACITY) : FACT(_NOT_SET);
        break;
    default:
        break;
    }
}

Holdfast__V1__ErrorDetail error_tell(const Holdfast__Internal__V1__Refusal *refusal,
                                     struct arena *arena)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    About *about;

    detail.code = refusal->code;
    detail.message = refusal->message;
    detail.field = refusal->field;
    detail.limit = refusal->limit;
    detail.value = refusal->value;
    detail.retry_after_ms = refusal->retry_after_ms;
    if (refusal->final)
        detail.outcome = HOLDFAST__V1__OUTCOME__OUTCOME_REFUSED;
    about = arena_alloc(arena, sizeof *about);
    holdfast__v1__error_detail__about__init(about);
    tell_about(refusal, arena, about);
    about->player_id = refusal->player_id;
    about->came_back = refusal->came_back;
    about->on_its_way = refusal->on_its_way;
    if (about->fact_case != FACT(_NOT_SET) || about->player_id[0] != 0 || about->came_back ||
        about->on_its_way)
        detail.about = about;
    return error_complete(&detail);
}
