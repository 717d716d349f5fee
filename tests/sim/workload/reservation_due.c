/* ReservationDue, which owners log: what was not closed in time is given back. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "tests/sim/workload.h"

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
        op->expired = true;
        c->player->now.version++;
        c->player->now.reserved[op->set_aside.currency] -= op->set_aside.amount;
        c->player->now.balances[op->set_aside.currency] += op->set_aside.amount;
        c->sim->counts.reservations_expired++;
    }
}

const struct workload_row workload_reservation_due = {
    .method = METHOD_RESERVATION_DUE,
    .rule = { .logged = logged },
};
