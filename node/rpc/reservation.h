/*
 * reservation: currencies set aside by Reserve, until Post, Void or their time closes them, once.
 * The amounts stand in the RESERVE entry; an open reservation has a row with its end and a timer;
 * the player's row has the sums. A reservation always fits back: limits do not apply to it.
 */
#ifndef NODE_RPC_RESERVATION_H
#define NODE_RPC_RESERVATION_H

#include "node/core/goods/ledger.h"
#include "node/core/handler/handler.h"
#include "node/rpc/entry_target.h"

struct reservation {
    const Holdfast__V1__LedgerEntry *entry; /* RESERVE. */
    uint64_t expires_at_ms;
};

/* The newest entry of context->player has set something aside. */
void reservation_open(struct apply_context *context, uint64_t expires_at_ms);
/* An open one. ERR_NEED; ERR_CONFLICT: NOT_FOUND, RESERVATION_CLOSED, RESERVATION_EXPIRED, or
 * QUARANTINED if its rows cannot be read, or do not fit the player's. */
NODISCARD err reservation_find(struct apply_context *context, const struct entry_target *target,
                               struct reservation *ret_reservation);
/* By its entry, when its time may have come. False: it is not open, or not due. ERR_NEED;
 * ERR_CONFLICT: QUARANTINED, as above. */
NODISCARD err reservation_find_due(struct apply_context *context, uint64_t seq,
                                   struct reservation *ret_reservation, bool *ret_due);

struct reservation_end {
    Holdfast__V1__LedgerKind kind;
    const char *reason;
    const char *to_player_id; /* To whom it goes; NULL: no player. */
    /* What leaves for good; NULL: nothing. In the order of the entry's changes. */
    const int64_t *posted;
};
/* Closes it with a ledger entry; what does not leave is in the balance again. ret_changes: room
 * for as many as the entry has. */
void reservation_close(struct apply_context *context, const struct reservation *reservation,
                       const struct reservation_end *end, struct ledger_change *ret_changes);

#endif
