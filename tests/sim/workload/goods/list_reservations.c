/* LedgerService.ListReservations: what of a player is set aside, oldest first. */
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/oracle/list.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListReservationsRequest request = HOLDFAST__V1__LIST_RESERVATIONS_REQUEST__INIT;

    (void)sim;
    request.player_id = parts->player;
    request.page_size = request_page(op, op->twist % 4, 64);
    request.cursor = request_text(op->cursor);
    request_pack(&request.base, out);
}

static void taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    Holdfast__V1__ListReservationsResponse *response =
        holdfast__v1__list_reservations_response__unpack(NULL, body.size, body.data);

    CHECK(response != NULL);
    server_ask_on(sim, op, response->next_cursor);
    holdfast__v1__list_reservations_response__free_unpacked(response, NULL);
}

static bool same(const struct told *t, const struct op_model *op,
                 const Holdfast__V1__Reservation *told)
{
    int64_t amounts[SIM_CURRENCIES] = { 0 };

    for (size_t i = 0; i < told->n_currencies; i++)
        amounts[model_currency(told->currencies[i]->currency)] += told->currencies[i]->amount;
    return memcmp(amounts, op->set_aside.amounts, sizeof amounts) == 0 &&
           told->reserve_seq == op->ledger_seq && (uint64_t)told->expires_at_ms == op->expires_ms &&
           strcmp(told->reserve_op_id, strchr(op->key, ' ') + 1) == 0 &&
           (uint64_t)told->reserved_at_ms == t->shard->entries[op->index - 1]->owner_ms;
}

static void told(const struct told *t)
{
    const Holdfast__V1__ListReservationsRequest *request = (const void *)t->request;
    const Holdfast__V1__ListReservationsResponse *response = (const void *)t->response;
    const struct op_model *ops[LIST_RESERVATIONS];
    size_t size = request->page_size > 0 ? request->page_size : LIST_RESERVATIONS;
    uint64_t index = told_index(t), from = list_from(t, request->cursor);
    size_t at = 0;
    bool more = false;

    if (index == 0 || from == LIST_UNKNOWN)
        return;
    uint32_t count = list_reservations(t, index, ops);
    for (uint32_t i = 0; i < count; i++) {
        if (ops[i]->ledger_seq <= from)
            continue;
        more |= at == size;
        if (more)
            break;
        if (at == response->n_reservations || !same(t, ops[i], response->reservations[at])) {
            told_fail(t, "a reservation is told otherwise, or not at all", at, ops[i]->ledger_seq);
            return;
        }
        at++;
    }
    if (response->n_reservations != at)
        told_fail(t, "more reservations than are open", response->n_reservations, at);
    else
        list_goes_on(t, response->next_cursor, more,
                     at > 0 ? response->reservations[at - 1]->reserve_seq : from);
}

const struct workload_row workload_list_reservations = {
    .method = METHOD_LIST_RESERVATIONS,
    .shares = { [WISH_READ] = { .place = 4, .weight = 4 } },
    .encode = encode,
    .taken = taken,
    .rule = { .told = told },
};
