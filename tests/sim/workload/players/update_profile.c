/* UpdateProfile: a section is replaced. */
#include "holdfast/v1/profile.pb-c.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.n_edits = parts->edits.count;
    request.edits = parts->edits.list;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__UpdateProfileRequest *request = (const void *)c->request;
    const Holdfast__V1__UpdateProfileResponse *told = (const void *)response;

    (void)op;
    model_edit(c, request->n_edits, request->edits, told->n_sections, told->sections);
}

static bool edit_refused(const struct change *c)
{
    const Holdfast__V1__UpdateProfileRequest *request = (const void *)c->request;

    return model_edit_refused(c, request->n_edits, request->edits);
}

const struct workload_row workload_update_profile = {
    .method = METHOD_UPDATE_PROFILE,
    .shares = { [WISH_WRITE] = { .place = 2, .weight = 2 } },
    .encode = encode,
    .rule = { .edit_refused = edit_refused, .effect = effect },
};
