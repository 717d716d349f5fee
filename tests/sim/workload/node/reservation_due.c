/* ReservationDue, which owners log: what was not closed in time is given back. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "tests/sim/servers/workload.h"

static void logged(struct change *c)
{
    const Holdfast__Internal__V1__ReservationDueRequest *request = (const void *)c->request;
    uint32_t player = model_player_number(c);

    for (uint32_t i = 0; i < c->sim->oracle->op_count; i++) {
        struct op_model *op = &c->sim->oracle->ops[i];
        if (!op->open || op->player != player || op->ledger_seq != request->ledger_seq ||
            op->expires_ms > c->entry->owner_ms)
            continue;
        op->open = false;
        c->player->now.reservations--;
        op->expired = true;
        c->player->now.version++;
        op->closed_index = c->entry->index;
        for (uint32_t j = 0; j < SIM_CURRENCIES; j++) {
            c->player->now.reserved[j] -= op->set_aside.amounts[j];
            c->player->now.balances[j] += op->set_aside.amounts[j];
        }
        c->sim->counts.reservations_expired++;
    }
}

const struct workload_row workload_reservation_due = {
    .method = METHOD_RESERVATION_DUE,
    .rule = { .logged = logged },
};
