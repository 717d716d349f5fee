/* EndSession: the last edits, and no server holds the player. */
#include <string.h>

#include "holdfast/v1/session.pb-c.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__EndSessionRequest request = HOLDFAST__V1__END_SESSION_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.n_edits = op->amount % 4 < 2 ? parts->edits.count : 0;
    request.edits = parts->edits.list;
    request_pack(&request.base, out);
}

static void taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    struct held *held = &sim->servers[op->server].held[op->player];

    (void)body;
    held->held = held->held && strcmp(held->token, op->token) != 0;
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__EndSessionRequest *request = (const void *)c->request;
    const Holdfast__V1__EndSessionResponse *told = (const void *)response;

    (void)op;
    model_edit(c, request->n_edits, request->edits, told->n_sections, told->sections);
    c->player->free_ms = c->sim->now_ms;
    model_session_ends(c->player, c->entry->index);
}

static bool edit_refused(const struct change *c)
{
    const Holdfast__V1__EndSessionRequest *request = (const void *)c->request;

    return model_edit_refused(c, request->n_edits, request->edits);
}

const struct workload_row workload_end_session = {
    .method = METHOD_END_SESSION,
    .encode = encode,
    .taken = taken,
    .rule = { .edit_refused = edit_refused, .effect = effect },
};
