/* UpdateProfile: a section is replaced. */
#include "holdfast/v1/profile.pb-c.h"
#include "tests/sim/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.n_edits = 1;
    request.edits = parts->edits;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__UpdateProfileRequest *request = (const void *)c->request;

    (void)op;
    (void)response;
    model_edit(c, request->n_edits, request->edits);
}

const struct workload_row workload_update_profile = {
    .method = METHOD_UPDATE_PROFILE,
    .shares = { [WISH_WRITE] = { .place = 2, .weight = 2 } },
    .encode = encode,
    .rule = { .effect = effect },
};
