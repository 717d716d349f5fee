#include "router/core/node_form.h"

#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "router/core/name_form.h"
#include "router/core/refusal.h"
#include "router/core/scatter.h"
#include "router/core/txn_field.h"
#include "runtime/base/check.h"

typedef Holdfast__Internal__V1__DeliverToPlayerRequest deliver_one;
typedef Holdfast__Internal__V1__DeliverToPlayersRequest deliver_all;
typedef Holdfast__Internal__V1__SwapGoodsRequest swap_goods;

/* ---- Swap ---- */

static const ProtobufCMessage *swap_form(const Holdfast__V1__SwapRequest *request,
                                         struct arena *arena)
{
    swap_goods *flat = arena_alloc(arena, sizeof *flat);

    holdfast__internal__v1__swap_goods_request__init(flat);
    flat->op_id = request->op_id;
    flat->attempt = request->attempt;
    if (request->_if_version_case == HOLDFAST__V1__SWAP_REQUEST___IF_VERSION_IF_VERSION) {
        flat->_if_version_case = HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST___IF_VERSION_IF_VERSION;
        flat->if_version = request->if_version;
    }
    flat->reason = request->reason;
    if (request->a != NULL) {
        flat->player_id = request->a->player_id;
        flat->authority = request->a->authority;
    }
    if (request->a != NULL && request->a->gives != NULL) {
        flat->n_currencies = request->a->gives->n_currencies;
        flat->currencies = request->a->gives->currencies;
        flat->n_item_uids = request->a->gives->n_item_uids;
        flat->item_uids = request->a->gives->item_uids;
    }
    if (request->b != NULL) {
        flat->other_player_id = request->b->player_id;
        flat->other_authority = request->b->authority;
    }
    if (request->b != NULL && request->b->gives != NULL) {
        flat->n_other_currencies = request->b->gives->n_currencies;
        flat->other_currencies = request->b->gives->currencies;
        flat->n_other_item_uids = request->b->gives->n_item_uids;
        flat->other_item_uids = request->b->gives->item_uids;
    }
    return &flat->base;
}

/* ---- DeliverMail ---- */

static err refuse(struct arena *arena, Holdfast__V1__ErrorDetail *detail,
                  struct refusal_field field, const char *message)
{
    refusal_make_field(arena, detail, &field, message);
    return ERR_INVALID;
}

static err deliver_check(const struct method_info *method,
                         const Holdfast__V1__DeliverMailRequest *request, struct arena *arena,
                         Holdfast__V1__ErrorDetail *ret_detail)
{
    Holdfast__V1__DeliverMailRequest shared = *request;
    size_t count = request->n_to_player_ids;

    if (count == 0 || count > method->most)
        return refuse(arena, ret_detail,
                      (struct refusal_field){ "to_player_ids",
                                              arena_printf(arena, "1 to %u", method->most),
                                              slice_from_text(arena_printf(arena, "%zu", count)) },
                      count == 0 ? "mail is for somebody" : "there are too many recipients");
    shared.n_to_player_ids = 0;
    size_t size = protobuf_c_message_get_packed_size(&shared.base);
    if (size <= SCATTER_SHARED_BYTES_MAX)
        return ERR_OK;
    return refuse(arena, ret_detail,
                  (struct refusal_field){
                      "", arena_printf(arena, "at most %u bytes", SCATTER_SHARED_BYTES_MAX),
                      slice_from_text(arena_printf(arena, "%zu bytes", size)) },
                  "the fields beside `to_player_ids` are too large together");
}

static err deliver_form(const struct method_info *method,
                        const Holdfast__V1__DeliverMailRequest *request, struct arena *arena,
                        const ProtobufCMessage **ret_message, Holdfast__V1__ErrorDetail *ret_detail)
{
    err e = deliver_check(method, request, arena, ret_detail);
    size_t count = request->n_to_player_ids;

    if (e != ERR_OK)
        return e;
    deliver_all *all = arena_alloc(arena, sizeof *all);
    deliver_one *each = arena_alloc(arena, count * sizeof *each);
    holdfast__internal__v1__deliver_to_players_request__init(all);
    all->n_requests = count;
    all->requests = arena_alloc(arena, count * sizeof *all->requests);
    for (size_t i = 0; i < count; i++) {
        holdfast__internal__v1__deliver_to_player_request__init(&each[i]);
        each[i].player_id = request->to_player_ids[i];
        each[i].op_id = request->op_id;
        each[i].attempt = request->attempt;
        each[i].authority = request->authority;
        each[i].n_currencies = request->n_currencies;
        each[i].currencies = request->currencies;
        each[i].n_items = request->n_items;
        each[i].items = request->items;
        each[i].text = request->text;
        each[i].reason = request->reason;
        all->requests[i] = &each[i];
    }
    *ret_message = &all->base;
    return ERR_OK;
}

err node_form_make(const struct method_info *method, const ProtobufCMessage *message,
                   struct arena *arena, const ProtobufCMessage **ret_message,
                   Holdfast__V1__ErrorDetail *ret_detail)
{
    err e = name_form_check_writes(method, message, arena, ret_detail);

    *ret_message = message;
    if (e != ERR_OK)
        return e;
    switch ((uint32_t)method->id) {
    case METHOD_SWAP:
        *ret_message = swap_form((const Holdfast__V1__SwapRequest *)message, arena);
        return ERR_OK;
    case METHOD_CLAIM_NAME:
    case METHOD_RELEASE_NAME:
    case METHOD_FIND_BY_NAME:
        return name_form_make(method, message, arena, ret_message, ret_detail);
    case METHOD_DELIVER_MAIL:
        return deliver_form(method, (const Holdfast__V1__DeliverMailRequest *)message, arena,
                            ret_message, ret_detail);
    default:
        return ERR_OK;
    }
}

/* ---- errors ---- */

static const struct {
    uint32_t method;
    const char *field, *told;
} names[] = {
    { METHOD_SWAP, "player_id", "a.player_id" },
    { METHOD_SWAP, "authority", "a.authority" },
    { METHOD_SWAP, "other_authority", "b.authority" },
    { METHOD_SWAP, "changes", "" }, /* What both sides give comes to. */
    { METHOD_DELIVER_MAIL, "player_id", "to_player_ids" },
};

void node_form_tell(const struct method_info *method, const ProtobufCMessage *message,
                    struct arena *arena, Holdfast__V1__ErrorDetail *detail)
{
    txn_field_tell(method, message, arena, detail);
    if (method->id == METHOD_CLAIM_NAME || method->id == METHOD_RELEASE_NAME)
        name_form_tell(method, arena, detail);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t size = strlen(names[i].field);

        if (names[i].method != (uint32_t)method->id || detail->field == NULL ||
            strcmp(detail->field, names[i].field) != 0)
            continue;
        detail->field = arena_printf(arena, "%s", names[i].told);
        if (detail->message != NULL && strncmp(detail->message, names[i].field, size) == 0)
            detail->message = arena_printf(arena, "%s%s", names[i].told, detail->message + size);
        return;
    }
}
