/* AdminService.CheckPlayer: rows of a player that cannot be read. There are none. */
#include "holdfast/v1/admin.pb-c.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__CheckPlayerRequest request = HOLDFAST__V1__CHECK_PLAYER_REQUEST__INIT;

    (void)sim;
    request.player_id = parts->player;
    request.page_size = request_page(op, op->twist % 4, 64);
    request.cursor = request_text(op->cursor);
    request_pack(&request.base, out);
}

static void taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    Holdfast__V1__CheckPlayerResponse *response =
        holdfast__v1__check_player_response__unpack(NULL, body.size, body.data);

    CHECK(response != NULL);
    server_ask_on(sim, op, response->next_cursor);
    holdfast__v1__check_player_response__free_unpacked(response, NULL);
}

static void told(const struct told *t)
{
    const Holdfast__V1__CheckPlayerResponse *response = (const void *)t->response;

    if (told_index(t) > 0 && response->n_rows > 0)
        told_fail(t, "a sound row counts as unreadable", response->n_rows, 0);
}

const struct workload_row workload_check_player = {
    .method = METHOD_CHECK_PLAYER,
    .shares = { [WISH_READ] = { .place = 7, .weight = 2 } },
    .encode = encode,
    .taken = taken,
    .rule = { .told = told },
};
