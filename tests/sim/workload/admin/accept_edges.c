/* AdminService.AcceptEdges: an edge that waits counts from here on. */
#include "holdfast/v1/admin.pb-c.h"
#include "tests/sim/favorites/review.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__AcceptEdgesRequest request = HOLDFAST__V1__ACCEPT_EDGES_REQUEST__INIT;
    char *targets[] = { favorite_target(op) };

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.authority = request_text(op->twist % 8 > 0 ? "system:admin" : "system:payments");
    request.collection = favorite_collection(op);
    request.target_ids = targets;
    request.n_target_ids = 1;
    request.reason = request_text("looked at");
    request_pack(&request.base, out);
}

static struct review_deed deed_of(const struct change *c)
{
    const Holdfast__V1__AcceptEdgesRequest *request = (const void *)c->request;

    return (struct review_deed){
        .method = METHOD_ACCEPT_EDGES,
        .collection = request->collection,
        .count = request->n_target_ids,
        .targets = request->target_ids,
    };
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__AcceptEdgesResponse *told = (const void *)response;
    struct review_deed deed = deed_of(c);

    deed.edges = told->edges;
    deed.waiting = told->waiting;
    review_carried_out(c, op, &deed);
}

static void refused(const struct change *c, const struct op_model *op,
                    const Holdfast__Internal__V1__Refusal *detail)
{
    const struct review_deed deed = deed_of(c);

    review_refused(c, op, &deed, detail);
}

const struct workload_row workload_accept_edges = {
    .method = METHOD_ACCEPT_EDGES,
    .encode = encode,
    .rule = { .system_admitted = true, .effect = effect, .refused = refused },
};
