/* GetProfile: the player as of some entry, no older than what was told before. */
#include "holdfast/v1/profile.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;

    (void)sim;
    request.player_id = parts->player;
    request.read = request_read(op, parts);
    request_pack(&request.base, out);
}

static void told(const struct told *t)
{
    const Holdfast__V1__GetProfileResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);

    if (index > 0)
        told_whole(t, response->profile, told_moment(t, index));
}

const struct workload_row workload_get_profile = {
    .method = METHOD_GET_PROFILE,
    .shares = { [WISH_READ] = { .place = 0, .weight = 8 } },
    .encode = encode,
    .rule = { .told = told },
};
