/* RestorePlayer: an erasure is undone. */
#include "tests/sim/model/erasure.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__RestorePlayerRequest request = HOLDFAST__V1__RESTORE_PLAYER_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.authority = request_text("system:admin");
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__RestorePlayerResponse *told = (const void *)response;

    (void)op;
    erasure_undone(c, told->erasure);
}

const struct workload_row workload_restore_player = {
    .method = METHOD_RESTORE_PLAYER,
    .encode = encode,
    .rule = { .system_admitted = true, .effect = effect, .refused_now = erasure_undo_refused },
};
