/* AdminService.ReleaseQuarantine: a player was reviewed, and may go on. */
#include "holdfast/v1/admin.pb-c.h"
#include "idl/error_code.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ReleaseQuarantineRequest request = HOLDFAST__V1__RELEASE_QUARANTINE_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.authority = request_text(op->twist % 8 > 0 ? "system:admin" : "system:payments");
    request.reason = request_text("reviewed");
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__ReleaseQuarantineResponse *told = (const void *)response;

    if (!c->player->contained)
        model_fail_op(c, op, "releases a player who is not contained");
    if (told->was_for[0] == '\0')
        model_fail_op(c, op, "does not tell what the player was contained for");
    if (c->op.authority.scope.size != 5)
        model_fail_op(c, op, "releases under a scope that may not");
    c->player->contained = false;
    c->player->free_ms = c->sim->now_ms;
    c->player->review_index = c->entry->index;
    c->sim->counts.released++;
}

static void refused_now(const struct change *c, const struct op_model *op, int code)
{
    if (code == (int)CODE(NOT_FOUND) && c->player->contained)
        model_fail_op(c, op, "does not find who is contained");
}

const struct workload_row workload_release_quarantine = {
    .method = METHOD_RELEASE_QUARANTINE,
    .encode = encode,
    .rule = { .system_admitted = true,
              .passes_review = true,
              .effect = effect,
              .refused_now = refused_now },
};
