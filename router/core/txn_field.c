#include "router/core/txn_field.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/error_code.h"

typedef Holdfast__V1__ExecuteTransactionRequest execute_request;
typedef Holdfast__Internal__V1__SwapGoodsRequest swap_request;

#define CHECKS "checks["

static bool is(const char *one, const char *other)
{
    return one != NULL && strcmp(one, other) == 0;
}

/* The place in the request of the `place`th check of that player, from 0; or their count. */
static size_t check_place(const execute_request *request, const char *player, size_t place)
{
    size_t at = 0;

    for (; at < request->n_checks; at++) {
        if (is(request->checks[at]->player_id, player) && place-- == 0)
            break;
    }
    return at;
}

static char *field_of_execute(const execute_request *request, struct arena *arena,
                              const Holdfast__V1__ErrorDetail *detail)
{
    const char *player = detail->about->player_id;
    size_t size = sizeof CHECKS - 1;

    if (strncmp(detail->field, CHECKS, size) == 0) {
        size_t place = strtoull(detail->field + size, NULL, 10);
        size_t at = check_place(request, player, place);
        return at < request->n_checks ? arena_printf(arena, CHECKS "%zu]", at) : detail->field;
    }
    if (!is(detail->field, "authority") && !is(detail->field, "player_id"))
        return detail->field;
    for (size_t i = 0; i < request->n_others; i++) {
        if (is(request->others[i]->player_id, player))
            return arena_printf(arena, "others[%zu].%s", i, detail->field);
    }
    return detail->field;
}

/* What a side lacks, it gives; what it has no room for, the other gives. */
static char *field_of_swap(const swap_request *request, struct arena *arena,
                           const Holdfast__V1__ErrorDetail *detail)
{
    const Holdfast__V1__ErrorDetail__About *about = detail->about;
    bool is_b = is(request->other_player_id, about->player_id);
    const char *side = is_b ? "b" : "a";

    if (is(detail->field, "authority") || is(detail->field, "player_id"))
        return arena_printf(arena, "%s.%s", side, detail->field);
    if (about->fact_case == HOLDFAST__V1__ERROR_DETAIL__ABOUT__FACT_FUNDS)
        return arena_printf(arena, "%s.gives.currencies[\"%s\"].amount", side,
                            about->funds->currency);
    if (about->fact_case == HOLDFAST__V1__ERROR_DETAIL__ABOUT__FACT_ITEM)
        return arena_printf(arena, "%s.gives.item_uids", side);
    if (detail->code == CODE(CAPACITY_FULL))
        return arena_printf(arena, "%s.gives", is_b ? "a" : "b");
    return detail->field;
}

static void forget_player(struct arena *arena, Holdfast__V1__ErrorDetail *detail)
{
    Holdfast__V1__ErrorDetail__About *about = arena_alloc(arena, sizeof *about);

    *about = *detail->about;
    about->player_id = text_lend(protobuf_c_empty_string);
    detail->about =
        about->fact_case != HOLDFAST__V1__ERROR_DETAIL__ABOUT__FACT__NOT_SET ? about : NULL;
}

void txn_field_tell(const struct method_info *method, const ProtobufCMessage *message,
                    struct arena *arena, Holdfast__V1__ErrorDetail *detail)
{
    uint32_t id = (uint32_t)method->id;

    if (detail->about == NULL || detail->about->player_id == NULL ||
        detail->about->player_id[0] == 0)
        return;
    if (id != METHOD_EXECUTE_TRANSACTION && id != METHOD_SWAP) {
        forget_player(arena, detail);
        return;
    }
    if (message != NULL)
        detail->field = id == METHOD_SWAP
                            ? field_of_swap((const swap_request *)message, arena, detail)
                            : field_of_execute((const execute_request *)message, arena, detail);
    if (detail->action == HOLDFAST__V1__ACTION__ACTION_STOP_WRITING)
        detail->entity = arena_printf(arena, "player:%s", detail->about->player_id);
}
