/*
 * workload: one row a method says all that the simulator knows of it: how often game servers ask
 * for it, how the request is made, what its entry does to the model, what may refuse it, and how
 * its answer is checked. One file a row: workload/<name>.c defines `workload_<name>`, and the build
 * gathers them (CMakeLists.txt). The model knows the rules in the rows, never the rows.
 */
#ifndef TESTS_SIM_SERVERS_WORKLOAD_H
#define TESTS_SIM_SERVERS_WORKLOAD_H

#include "idl/method.h"
#include "tests/sim/model/model.h"
#include "tests/sim/servers/request.h"

/* What a game server throws a die for. */
enum workload_wish {
    WISH_WRITE,   /* A simple change of a player (server_wish.c).              */
    WISH_LEDGER,  /* What refers to an item or an operation (server_wish.c).   */
    WISH_GOODS,   /* Goods that move, and mail (server_goods.c).               */
    WISH_TRADE,   /* Exchanges of several players (server_txn.c).              */
    WISH_RECEIPT, /* A payment provider's webhook (server_receipt.c).          */
    WISH_READ,    /* Reads of one player (server.c).                           */
    WISHES
};

/* Of the faces of such a die. Rows take theirs by rising place, then by number: a kept seed stays
 * the same run as long as no row of its dice changes. */
struct workload_share {
    uint32_t place, weight;
};

/* What a request could be about. */
struct workload_choice {
    enum workload_wish wish; /* For which the die was thrown. */
    uint32_t player;
    uint32_t to;      /* Somebody else. */
    uint32_t target;  /* An earlier op. */
    const char *uid;  /* An item; NULL: none. */
    const char *mail; /* NULL: none. */
};

#define WORKLOAD_ALWAYS 1000u

struct workload_row {
    uint32_t method;
    struct workload_share shares[WISHES];
    /* WISH_GOODS: of a thousand requests the game itself makes so many, not a player. */
    uint32_t system_per_thousand;
    /* WISH_RECEIPT: only the game asks, since a player's request would be another one. */
    bool receipt_by_system;
    /* Reverse is tried on it, whether or not it can be reversed. */
    bool reverse_tried;
    /* WISH_TRADE: so many other players take part at most. */
    uint32_t others_max;
    /* Asked for instead when `fill` finds nothing. */
    uint32_t instead;
    /* Draws what the request is about, before there is an op. False: there is nothing to ask for.
     * NULL: it is about nothing. */
    bool (*choose)(struct sim *sim, struct workload_choice *choice);
    /* Completes the op from that. False: it cannot be asked for. NULL: op_new() has said it all. */
    bool (*fill)(const struct sim *sim, struct sim_op *op, const struct workload_choice *choice);
    /* Appends the request: the same bytes at every call with the same attempt. NULL: game servers
     * never ask for it. */
    void (*encode)(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out);
    /* What a game server does once it is told that it is done; `op` may move. NULL: nothing. */
    void (*taken)(struct sim *sim, const struct sim_op *op, struct slice body);
    /* By the log and by answers. */
    struct model_rule rule;
};

struct workload;

/* All rows, in the order of their files; made by the build. */
extern const struct workload_row *const workload_rows[];
extern const uint32_t workload_row_count;

/* Of each method at most one row; stops the process if they do not go together. */
struct workload *workload_new(const struct workload_row *const *rows, uint32_t count);
void workload_free(struct workload *workload);
/* By method, for the oracle: METHOD_ID_MAX of them; NULL: there is no row. */
const struct model_rule *const *workload_rules(const struct workload *workload);
/* The method has a row. */
const struct workload_row *workload_get(const struct sim *sim, uint32_t method);
/* The method on a face of the die; faces repeat. */
uint32_t workload_face(const struct sim *sim, enum workload_wish wish, uint64_t face);
/* The method that stands after `part` of `whole` equal parts of the die. */
uint32_t workload_part(const struct sim *sim, enum workload_wish wish, uint64_t part,
                       uint64_t whole);
/* Throws the die. */
uint32_t workload_draw(struct sim *sim, enum workload_wish wish);

/* ---- server_patience.c ---- */
/* How long the server waits for the answer to this call of an op. */
uint64_t server_patience_ms(const struct sim *sim, const struct sim_op *op);
/* It has waited so long. True: it never asks for it again. */
bool server_walks_away(struct sim *sim, const struct sim_op *op);
/* Of a server that has a session: now and then others wait for it, and it ends. */
void server_queue_up(struct sim *sim, uint32_t server);

/* ---- server_reservation.c ---- */
/* `choose` and `fill` of what closes a reservation: seldom of another operation. */
bool server_choose_reservation(struct sim *sim, struct workload_choice *choice);
bool server_fill_reservation(const struct sim *sim, struct sim_op *op,
                             const struct workload_choice *choice);
/* What a reservation sets aside: little, so that players have it. */
int64_t server_reserved_amount(const struct sim_op *reserve);
/* Reserves something of a player whose session the server has, or closes what was reserved. */
void server_reserve(struct sim *sim, uint32_t server);
/* By the session, if the server has it; else the game voids, and a post is tried without one. */
void server_sign(const struct sim *sim, struct sim_op *op);
/* Once `reserve` is told to be done: it is to be posted or voided, some of it when its time is just
 * about over. `reserve` may move. */
void server_plan_closings(struct sim *sim, const struct sim_op *reserve, uint64_t expires_ms);

#endif
