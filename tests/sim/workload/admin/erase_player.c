/* ErasePlayer: nothing of a player is told from here on, and its rows go. */
#include "tests/sim/model/erasure.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    static const int64_t graces_ms[] = { 0, 0, 500, 5000 };
    Holdfast__V1__ErasePlayerRequest request = HOLDFAST__V1__ERASE_PLAYER_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.authority = request_text("system:admin");
    request._grace_ms_case = 10;
    request.grace_ms = graces_ms[(uint64_t)op->amount % 4];
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__ErasePlayerRequest *request = (const void *)c->request;
    const Holdfast__V1__ErasePlayerResponse *told = (const void *)response;

    (void)op;
    erasure_begun(c, told->erasure, (uint64_t)request->grace_ms);
}

const struct workload_row workload_erase_player = {
    .method = METHOD_ERASE_PLAYER,
    .encode = encode,
    .rule = { .system_admitted = true, .effect = effect },
};
