/* Favorite: an edge from a player to a target comes to be, or stands already. */
#include "idl/error_code.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/favorites/share.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__FavoriteRequest request = HOLDFAST__V1__FAVORITE_REQUEST__INIT;

    (void)sim;
    request.player_id = parts->player;
    request.op_id = request_text(op->id);
    request.attempt = op->attempt;
    request._if_version_case = op->has_if_version ? REQUEST_IF_VERSION : 0;
    request.if_version = op->if_version;
    request.collection = favorite_collection(op);
    request.target_id = favorite_target(op);
    request._ver_case = favorite_ver(op) > 0 ? 12 : 0;
    request.ver = favorite_ver(op);
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__FavoriteRequest *request = (const void *)c->request;
    const Holdfast__V1__FavoriteResponse *told = (const void *)response;
    const struct favorite_deed deed = {
        .collection = request->collection,
        .target = request->target_id,
        .favorite = true,
        .has_ver = request->_ver_case != 0,
        .ver = request->ver,
        .status = told->status,
        .applied = told->applied != 0,
        .edges = told->edges,
    };

    share_used(c, op);
    favorite_carried_out(c, &deed);
}

static void refused(const struct change *c, const struct op_model *op,
                    const Holdfast__Internal__V1__Refusal *detail)
{
    const Holdfast__V1__FavoriteRequest *request = (const void *)c->request;

    share_used(c, op);
    favorite_refused(c, op, request->collection, detail);
}

static void refused_now(const struct change *c, const struct op_model *op, int code)
{
    const Holdfast__V1__FavoriteRequest *request = (const void *)c->request;
    const struct favorite_deed deed = {
        .collection = request->collection,
        .target = request->target_id,
        .favorite = true,
        .has_ver = request->_ver_case != 0,
        .ver = request->ver,
    };

    if (code == (int)CODE(THROTTLED) && !share_refused(c, op))
        favorite_throttled(c, op, &deed);
}

const struct workload_row workload_favorite = {
    .method = METHOD_FAVORITE,
    .encode = encode,
    .rule = { .effect = effect, .refused = refused, .refused_now = refused_now },
};
