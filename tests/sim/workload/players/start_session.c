/* StartSession: a game server wants to write a player, and may wait for it, or steal it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/session.pb-c.h"
#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

#define STEAL HOLDFAST__V1__START_MODE__START_MODE_STEAL

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;

    (void)sim;
    request.player_id = parts->player;
    request.op_id = request_text(op->id);
    request.attempt = op->attempt;
    request.incarnation = request_text(op->incarnation);
    request.mode = (Holdfast__V1__StartMode)op->mode;
    request.grace_ms = 300 + op->amount % 1500;
    request_pack(&request.base, out);
}

static void taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    Holdfast__V1__StartSessionResponse *response =
        holdfast__v1__start_session_response__unpack(NULL, body.size, body.data);
    struct held *held = &sim->servers[op->server].held[op->player];
    char mine[INCARNATION_TEXT_SIZE];

    CHECK(response != NULL);
    incarnation_print(sim->servers[op->server].incarnation, mine);
    if (strcmp(mine, op->incarnation) == 0 && (!held->held || held->fence < response->fence)) {
        held->held = true;
        held->fence = response->fence;
        snprintf(held->token, sizeof held->token, "%s", response->token);
    }
    holdfast__v1__start_session_response__free_unpacked(response, NULL);
}

/* Who holds a session keeps it until the time is over that the first claim gave it. */
static void check_grace(const struct change *c, struct incarnation asking)
{
    const struct player_model *player = c->player;

    if (model_is_held(c, player) && incarnation_compare(asking, player->incarnation) != 0 &&
        (player->claim_ms == 0 || player->claim_ms > c->entry->owner_ms))
        sim_fail(c->sim, c->number, "entry %" PRIu64 " takes a session before its holder's time",
                 c->entry->index);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__StartSessionRequest *request = (const void *)c->request;
    bool held = model_is_held(c, c->player);
    struct incarnation asking;

    const Holdfast__V1__StartSessionResponse *told = (const void *)response;

    CHECK(incarnation_parse(slice_from_text(request->incarnation), &asking) == ERR_OK);
    bool again = held && incarnation_compare(asking, c->player->incarnation) == 0;
    if (held && !again && request->mode != STEAL)
        sim_fail(c->sim, c->number, "entry %" PRIu64 " grants a session that another holds",
                 c->entry->index);
    if (request->mode == STEAL)
        check_grace(c, asking);
    if ((told->stolen != 0) != (held && !again))
        model_fail_op(c, op, "is told otherwise than it was whether it displaced another");
    /* A holder that begins again has no more time than it had. */
    uint64_t claim_ms = again && c->was != OP_PENDING ? c->player->claim_ms : 0;
    model_session_begins(c, c->outcome->body, op);
    c->player->claim_ms = claim_ms;
}

static void claims(struct change *c, struct op_model *op)
{
    const Holdfast__V1__StartSessionRequest *request = (const void *)c->request;

    c->sim->oracle->pending += op->state != OP_PENDING;
    op->state = OP_PENDING;
    op->attempt = c->op.attempt;
    CHECK(incarnation_parse(slice_from_text(request->incarnation), &c->player->claimant) == ERR_OK);
    if (c->player->claim_ms != 0 && c->player->claim_ms <= c->entry->owner_ms)
        model_fail_op(c, op, "waits longer than the first claim gave the holder");
    if (c->player->claim_ms == 0)
        c->player->claim_ms = c->entry->owner_ms + request->grace_ms;
}

static void refused_now(const struct change *c, const struct op_model *op, int code)
{
    const Holdfast__V1__StartSessionRequest *request = (const void *)c->request;

    if (code == (int)CODE(SESSION_LOCKED) && request->mode == STEAL)
        model_fail_op(c, op, "is a steal, and is refused as if it waited");
}

static void told(const struct told *t)
{
    const Holdfast__V1__StartSessionResponse *response = (const void *)t->response;
    const struct player_model *player = told_player(t);

    told_write(t);
    if (t->sim->failure[0] != '\0')
        return;
    const struct op_model *op = told_life(t);
    if (response->fence != op->fence)
        told_fail(t, "the fence", response->fence, op->fence);
    if (response->profile == NULL) {
        if (player->lost_at[model_fence_place(op->fence)] == 0)
            told_fail(t, "no profile with a session that stands", 0, 1);
        return;
    }
    if (response->profile->version < op->version)
        told_fail(t, "the profile is older than the session", response->profile->version,
                  op->version);
    for (uint32_t i = player->history_count; i > 0; i--) {
        if (player->history[i - 1].version == response->profile->version) {
            told_profile(t, response->profile, &player->history[i - 1]);
            return;
        }
    }
    told_fail(t, "a version that never was", response->profile->version, player->now.version);
}

const struct workload_row workload_start_session = {
    .method = METHOD_START_SESSION,
    .encode = encode,
    .taken = taken,
    .rule = { .effect = effect, .claims = claims, .refused_now = refused_now, .told = told },
};
