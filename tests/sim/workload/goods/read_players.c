/* TransactionService.ReadPlayers: several players as of one moment. The router answers it
 * (router_read.c), and model_read.c looks at what it tells. */
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ReadPlayersRequest request = HOLDFAST__V1__READ_PLAYERS_REQUEST__INIT;
    struct request_txn_parts t;
    char *names[] = { parts->player, t.names[0], t.names[1] };

    (void)sim;
    request_txn_parts_fill(op, parts, &t);
    request.player_ids = names;
    request.n_player_ids = 1 + op->other_count;
    request_pack(&request.base, out);
}

const struct workload_row workload_read_players = {
    .method = METHOD_READ_PLAYERS,
    .encode = encode,
};
