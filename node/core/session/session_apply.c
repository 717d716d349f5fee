#include "node/core/session/session_apply.h"

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/event.h"
#include "node/core/handler/operation_floor.h"
#include "node/core/handler/player_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define FENCE_GENERATION_SHIFT 40u

static void timer_set(struct apply_context *context, uint64_t due_ms)
{
    struct session *session = &context->player->session;
    struct row_key key;

    context->player_changed = true;
    if (session->timer_ms != 0) {
        row_key_timer(&key, session->timer_ms, context->op->entity);
        state_delete(context->state, row_key_slice(&key));
    }
    session->timer_ms = due_ms;
    if (due_ms == 0)
        return;
    row_key_timer(&key, due_ms, context->op->entity);
    buf_clear(context->scratch);
    timer_row_encode(session->fence, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

/* At most one timer per player, at the earliest time at which SessionDue has work. */
static void timer_follow(struct apply_context *context)
{
    timer_set(context, session_due_ms(&context->player->session));
}

void session_defer(struct apply_context *context, uint64_t due_ms)
{
    timer_set(context, due_ms);
}

const char *incarnation_text(struct arena *arena, struct incarnation incarnation)
{
    char *text = arena_alloc(arena, INCARNATION_TEXT_SIZE);
    incarnation_print(incarnation, text);
    return text;
}

/* A cluster that was restored does not know which fences were given out after its backup: those of
 * its own generation begin above all that an earlier one can have reached. */
static uint64_t fence_after(const struct meta *meta, uint64_t fence)
{
    uint64_t least = meta->generation > 1 ? (meta->generation - 1) << FENCE_GENERATION_SHIFT : 0;

    return (fence > least ? fence : least) + 1;
}

void session_tell(struct apply_context *context, const struct session *session, bool started)
{
    Holdfast__V1__SessionEvent event = HOLDFAST__V1__SESSION_EVENT__INIT;
    char server[INCARNATION_TEXT_SIZE];

    incarnation_print(session->incarnation, server);
    event.started = started;
    event.server = server;
    event.fence = session->fence;
    event_add(context, HOLDFAST__V1__EVENT_KIND__EVENT_KIND_SESSION, context->player->entity,
              &event.base);
}

void session_grant(struct apply_context *context, struct incarnation incarnation,
                   Holdfast__V1__StartSessionResponse *response)
{
    struct session *session = &context->player->session;

    if (session->state == SESSION_FREE)
        context->meta->session_count++;
    session->state = SESSION_GRANTED;
    session->fence = fence_after(context->meta, session->fence);
    session->incarnation = incarnation;
    session->acquired_at_ms = context->owner_ms;
    response->fence = session->fence;
    response->token = arena_alloc(context->arena, TOKEN_TEXT_SIZE);
    token_print(incarnation, session->fence, response->token);
    timer_follow(context);
    session_tell(context, session, true);
}

void session_hold(struct apply_context *context)
{
    CHECK(context->player->session.state == SESSION_GRANTED);
    context->player->session.state = SESSION_HELD;
    timer_follow(context);
}

void claim_set(struct apply_context *context, const struct claim *claim)
{
    CHECK(context->player->session.state != SESSION_FREE);
    context->player->session.claim = *claim;
    timer_follow(context);
}

void claim_clear(struct apply_context *context)
{
    context->player->session.claim = (struct claim){ 0 };
    timer_follow(context);
}

/* A row of before FLOOR_APPLY_VERSION may be gone below the floor, and the answer is EXPIRED; so
 * may one that was damaged. */
static bool outcome_stands(struct apply_context *context, const struct op_id *id)
{
    struct outcome_row row;

    if (!operation_floor_passed(context->meta, id))
        return true;
    if (context->version < FLOOR_APPLY_VERSION)
        return false;
    enum state_found found =
        outcome_row_find(context->state, context->op->entity, id, context->need, &row);
    context->missing |= found == STATE_MISSING;
    return found == STATE_PRESENT;
}

/* Stores what became of the claim's operation and tells the caller that waits for it. */
static void claim_decide(struct apply_context *context, enum outcome_state state, struct slice body)
{
    const struct claim *claim = &context->player->session.claim;
    struct op_id id;
    const char *why;
    struct outcome_row row = {
        .state = state,
        .method = METHOD_START_SESSION,
        .attempt = claim->attempt,
        .payload = claim->payload,
        .dot = context->dot,
        .version = context->player->version,
        .decided_at_ms = context->owner_ms,
        .body = body,
    };

    struct slice op_id = arena_copy(context->arena, claim->op_id);
    if (op_id_parse(op_id, &id, &why) != ERR_OK) { /* A claim that was stored so is damage. */
        damage_note(context->damage, context->op->entity, PLAYER_DAMAGE);
        claim_clear(context);
        return;
    }
    if (outcome_stands(context, &id))
        outcome_row_store(context, &id, false, &row);
    *context->decided = (struct decided){
        .op_id = op_id,
        .refused = state == OUTCOME_ROW_REFUSED,
        .body = body,
        .version = row.version,
    };
    claim_clear(context);
}

void claim_refuse(struct apply_context *context, const struct refusal *refusal)
{
    struct refusal final = *refusal;

    final.final = true;
    claim_decide(context, OUTCOME_ROW_REFUSED, refusal_pack(&final, context->arena));
}

static void claim_refuse_expired(struct apply_context *context)
{
    struct refusal refusal = { 0 };

    (void)refuse(context->arena, &refusal, CODE(SERVER_EXPIRED), "incarnation",
                 "the server's registration expired while it asked for the session");
    claim_refuse(context, &refusal);
}

bool claim_grant(struct apply_context *context)
{
    struct session *session = &context->player->session;
    struct incarnation claimant = session->claim.incarnation;
    Holdfast__V1__StartSessionResponse response = HOLDFAST__V1__START_SESSION_RESPONSE__INIT;

    CHECK(session_has_claim(session));
    if (meta_is_expired(context->meta, claimant)) {
        claim_refuse_expired(context);
        return false;
    }
    response.stolen = !context->releasing && session_is_live(session, context->meta);
    if (context->op->id.text.size == 0)
        context->player->version++;
    session_grant(context, claimant, &response);
    claim_decide(context, OUTCOME_ROW_COMMITTED, arena_pack(context->arena, &response.base));
    return true;
}

void session_release(struct apply_context *context)
{
    struct session *session = &context->player->session;

    CHECK(session->state != SESSION_FREE);
    context->releasing = true;
    if (session_has_claim(session) && claim_grant(context))
        return;
    session_tell(context, session, false);
    session->state = SESSION_FREE;
    session->incarnation = (struct incarnation){ 0 };
    session->acquired_at_ms = 0;
    damage_count_down(context->damage, &context->meta->session_count, 1);
    (*context->freed)++;
    timer_follow(context);
}

err refuse_locked(struct apply_context *context, struct incarnation owner)
{
    const struct session *session = &context->player->session;
    const char *text = incarnation_text(context->arena, owner);

    err e = refuse(context->arena, context->refusal, CODE(SESSION_LOCKED), "",
                   "server %s holds the player", text);
    uint32_t left_ms = session_claim_left_ms(session, context->owner_ms);
    context->refusal->holder = text;
    context->refusal->retry_after_ms = left_ms > 0 ? left_ms : SESSION_RETRY_MS;
    return e;
}
