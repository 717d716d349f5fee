/* AdminService.ListPlayers: who lives in a shard, a page at a time. */
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle/list.h"
#include "tests/sim/servers/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListPlayersRequest request = HOLDFAST__V1__LIST_PLAYERS_REQUEST__INIT;

    (void)sim;
    (void)parts;
    request.shard = op->player;
    request.page_size = request_page(op, 1 + op->twist % 4, 1000);
    request.cursor = request_text(op->cursor);
    request_pack(&request.base, out);
}

static void taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    Holdfast__V1__ListPlayersResponse *response =
        holdfast__v1__list_players_response__unpack(NULL, body.size, body.data);

    CHECK(response != NULL);
    server_ask_on(sim, op, response->next_cursor);
    holdfast__v1__list_players_response__free_unpacked(response, NULL);
}

static uint64_t entries_until(const struct player_model *player, uint64_t index)
{
    uint64_t count = player->entry_count;

    while (count > 0 && player->entries[count - 1].index > index)
        count--;
    return count;
}

/* Players are named in their order. */
static void told(const struct told *t)
{
    const Holdfast__V1__ListPlayersRequest *request = (const void *)t->request;
    const Holdfast__V1__ListPlayersResponse *response = (const void *)t->response;
    size_t size = request->page_size > 0 ? request->page_size : 500;
    uint64_t index = told_index(t), from = list_from(t, request->cursor);
    size_t at = 0;
    bool more = false, perhaps = false; /* Whether there is another page. */

    if (index == 0 || from == LIST_UNKNOWN)
        return;
    for (uint32_t i = (uint32_t)from; i < t->sim->player_count; i++) {
        const struct player_model *player = &t->sim->oracle->players[i];
        const struct moment *moment =
            player->shard == t->call->shard ? model_at(player, index) : NULL;
        if (moment == NULL || (moment->version == 0 && at < response->n_players &&
                               response->players[at]->player_id[1] != (char)('0' + (int)i)))
            continue; /* Asked about, perhaps, and never changed. */
        if (moment->version == 0 && at == response->n_players) {
            perhaps |= at == size;
            continue;
        }
        more |= at == size;
        if (more)
            break;
        if (at == response->n_players ||
            response->players[at]->player_id[1] != (char)('0' + (int)i) ||
            response->players[at]->version != moment->version ||
            response->players[at]->ledger_seq != entries_until(player, index)) {
            told_fail(t, "a player is told otherwise, or not at all", at, i);
            return;
        }
        at++;
    }
    if (response->n_players != at)
        told_fail(t, "more players than there are", response->n_players, at);
    else
        list_goes_on(t, response->next_cursor, more || (perhaps && response->next_cursor[0] != 0),
                     at > 0 ? (uint64_t)(response->players[at - 1]->player_id[1] - '0') + 1 : from);
}

const struct workload_row workload_list_players = {
    .method = METHOD_LIST_PLAYERS,
    .encode = encode,
    .taken = taken,
    .rule = { .told = told },
};
