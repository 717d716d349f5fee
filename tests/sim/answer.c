/* Every answer of every node, held against the committed log: nothing is told that is not there,
 * and nothing that was told before may be missing (P1, P4, P5). */
#include <inttypes.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/method.h"
#include "idl/method_errors.h"
#include "node/core/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle.h"

#define CODE(name)  HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name
#define STATE(name) HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_##name

struct told {
    struct sim *sim;
    const struct node_call *call;
    struct shard_oracle *shard;
    const ProtobufCMessage *request;
    const ProtobufCMessage *response;
};

static const void *field(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *found =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);

    return found != NULL ? (const uint8_t *)message + found->offset : NULL;
}

static struct slice text_field(const ProtobufCMessage *message, const char *name)
{
    const char *const *text = field(message, name);

    return text != NULL ? slice_from_text(*text) : (struct slice){ 0 };
}

static struct dot dot_of(const Holdfast__V1__Dot *dot)
{
    CHECK(dot != NULL);
    return (struct dot){ dot->epoch, dot->owner, dot->counter };
}

/* The op that this call is about; NULL: it has no op_id. */
static struct op_model *op_of(const struct told *t)
{
    char entity[64];
    struct slice id = text_field(t->request, "op_id");
    struct slice player = text_field(t->request, "player_id");
    struct slice given = text_field(t->request, "entity");

    if (id.size == 0)
        return NULL;
    if (given.size > 0)
        return model_op(t->sim->oracle, given, id);
    CHECK(player.size + 8 < sizeof entity);
    memcpy(entity, "player:", 7);
    memcpy(entity + 7, player.data, player.size);
    return model_op(t->sim->oracle, (struct slice){ (const uint8_t *)entity, player.size + 7 }, id);
}

static struct player_model *player_of(const struct told *t)
{
    struct slice player = text_field(t->request, "player_id");

    CHECK(player.size == 2 && player.data[0] == 'p');
    return &t->sim->oracle->players[player.data[1] - '0'];
}

static void fail(const struct told *t, const char *what, uint64_t got, uint64_t wanted)
{
    sim_fail(t->sim, t->call->shard, "answer to %s: %s (%" PRIu64 ", should be %" PRIu64 ")",
             strchr(method_find(t->call->method)->name, '/') + 1, what, got, wanted);
}

/* ---- writes ---- */
static void check_profile(const struct told *t, const Holdfast__V1__Profile *profile,
                          const struct moment *moment)
{
    if (profile->version != moment->version)
        fail(t, "the profile's version", profile->version, moment->version);
    for (size_t i = 0; i < profile->n_balances; i++) {
        uint32_t currency = strcmp(profile->balances[i]->currency, "gems") == 0;
        if (profile->balances[i]->amount != moment->balances[currency])
            fail(t, "a balance", (uint64_t)profile->balances[i]->amount,
                 (uint64_t)moment->balances[currency]);
    }
    for (size_t i = 0; i < profile->n_sections; i++) {
        uint32_t section = strcmp(profile->sections[i]->name, "quests") == 0;
        uint32_t number = model_section(profile->sections[i]->json);
        if (number != moment->sections[section])
            fail(t, "a section", number, moment->sections[section]);
    }
    if (profile->item_count != moment->items)
        fail(t, "the count of items", profile->item_count, moment->items);
}

static void check_session(const struct told *t, const struct op_model *op)
{
    const Holdfast__V1__StartSessionResponse *response = (const void *)t->response;
    const struct player_model *player = player_of(t);

    if (response->fence != op->fence)
        fail(t, "the fence", response->fence, op->fence);
    if (response->profile == NULL) {
        if (player->lost_at[model_fence_place(op->fence)] == 0)
            fail(t, "no profile with a session that stands", 0, 1);
        return;
    }
    if (response->profile->version < op->version)
        fail(t, "the profile is older than the session", response->profile->version, op->version);
    for (uint32_t i = player->history_count; i > 0; i--) {
        if (player->history[i - 1].version == response->profile->version) {
            check_profile(t, response->profile, &player->history[i - 1]);
            return;
        }
    }
    fail(t, "a version that never was", response->profile->version, player->now.version);
}

/* A transfer is decided at its destination, once and for ever: what stands in that log is told as
 * done before the source has logged it, too. */
static bool is_done(const struct told *t, const struct op_model *op)
{
    return op->state == OP_COMMITTED ||
           (op->state == OP_PENDING && goods_has_arrived(t->sim, t->call->shard, op));
}

static void check_write(const struct told *t)
{
    const Holdfast__V1__WriteInfo *const *write = field(t->response, "write");
    struct op_model *op = op_of(t);

    CHECK(write != NULL && *write != NULL && op != NULL);
    if (!is_done(t, op)) {
        fail(t, "told as done, the log says otherwise", OP_COMMITTED, op->state);
        return;
    }
    t->sim->counts.told_at_decision += op->state == OP_PENDING;
    if (op->told_ms == 0)
        op->told_ms = t->sim->now_ms;
    uint64_t index = oracle_index_of(t->shard, dot_of((*write)->dot));
    if (index != op->index)
        fail(t, "the dot", index, op->index);
    if ((*write)->version != op->version)
        fail(t, "the version", (*write)->version, op->version);
    oracle_acknowledge(t->sim, t->call->shard,
                       op->settled_index > 0 ? op->settled_index : op->index);
    if (t->call->method == METHOD_START_SESSION)
        check_session(t, op);
    t->sim->counts.late_packets_applied += t->call->late && !(*write)->duplicate;
}

/* What an operation's status may be; `floor` is that of the log as it stands now. */
static void check_status(const struct told *t, const Holdfast__V1__OperationStatus *status)
{
    uint64_t must_see = t->call->must_see;

    if (receipt_is_id(text_field(t->request, "entity"))) {
        receipt_check_told(t->sim, (const char *)text_field(t->request, "entity").data, must_see,
                           status);
        return;
    }
    struct op_model *op = op_of(t);
    uint64_t decided_index = op->settled_index > 0 ? op->settled_index : op->index;

    switch ((int)status->state) {
    case STATE(COMMITTED):
        if (!is_done(t, op) || oracle_index_of(t->shard, dot_of(status->dot)) != op->index)
            fail(t, "a status of done", STATE(COMMITTED), op->state);
        if (op->told_ms == 0)
            op->told_ms = t->sim->now_ms;
        oracle_acknowledge(t->sim, t->call->shard, decided_index);
        break;
    case STATE(ABORTED):
        if (op->state != OP_ABORTED)
            fail(t, "a status of aborted", STATE(ABORTED), op->state);
        oracle_acknowledge(t->sim, t->call->shard, op->index);
        break;
    case STATE(REFUSED):
        if (op->refused_index == 0)
            fail(t, "a status of refused", STATE(REFUSED), op->state);
        break;
    case STATE(EXPIRED):
        if (op->ms > t->shard->floor_ms)
            fail(t, "a status of expired", op->ms, t->shard->floor_ms);
        break;
    default:
        if ((op->state == OP_COMMITTED || op->state == OP_ABORTED) && decided_index <= must_see)
            fail(t, "a status of unknown for what was told before", decided_index, must_see);
        /* What callers were told never goes back, though the log says so only later. */
        if (op->told_ms != 0 && op->told_ms < t->call->came_ms && op->state == OP_PENDING)
            fail(t, "a status of pending for what was told as done", op->told_ms, t->call->came_ms);
        break;
    }
}

/* ---- reads ---- */

/* The entry up to which a read has seen; 0: already failed. */
static uint64_t read_index(const struct told *t)
{
    const Holdfast__V1__Dot *const *as_of = field(t->response, "as_of");

    CHECK(as_of != NULL && *as_of != NULL);
    uint64_t index = oracle_index_of(t->shard, dot_of(*as_of));
    t->sim->counts.reads_checked++;
    if (index == 0)
        fail(t, "the dot was never committed", (*as_of)->counter, 0);
    else if (index < t->call->must_see)
        fail(t, "the read is stale", index, t->call->must_see);
    else
        oracle_acknowledge(t->sim, t->call->shard, index);
    return index;
}

static void check_read(const struct told *t)
{
    static const struct moment nothing;
    uint64_t index = read_index(t);
    const struct moment *moment = model_at(player_of(t), index);

    if (index == 0)
        return;
    if (moment == NULL)
        moment = &nothing;
    if (t->call->method == METHOD_READ_SETTLED) {
        const Holdfast__Internal__V1__ReadSettledResponse *settled = (const void *)t->response;
        if (settled->profile != NULL)
            check_profile(t, settled->profile, moment);
        return;
    }
    if (t->call->method == METHOD_GET_PROFILE) {
        check_profile(t, ((const Holdfast__V1__GetProfileResponse *)t->response)->profile, moment);
        return;
    }
    const Holdfast__V1__GetBalancesResponse *response = (const void *)t->response;
    if (response->version != moment->version)
        fail(t, "the version", response->version, moment->version);
    for (size_t i = 0; i < response->n_balances; i++) {
        uint32_t currency = strcmp(response->balances[i]->currency, "gems") == 0;
        if (response->balances[i]->amount != moment->balances[currency])
            fail(t, "a balance", (uint64_t)response->balances[i]->amount,
                 (uint64_t)moment->balances[currency]);
        if (response->balances[i]->reserved != moment->reserved[currency])
            fail(t, "what is reserved", (uint64_t)response->balances[i]->reserved,
                 (uint64_t)moment->reserved[currency]);
    }
}

static void check_mailbox(const struct told *t)
{
    const Holdfast__V1__MailboxServiceListResponse *response = (const void *)t->response;
    uint64_t index = read_index(t);
    const struct moment *moment = model_at(player_of(t), index);
    uint32_t mails = moment != NULL ? moment->mails : 0;

    if (index > 0 && (response->total != mails || response->n_mails != mails))
        fail(t, "the count of mail", response->total, mails);
}

static void check_history(const struct told *t)
{
    uint64_t index = read_index(t);

    if (index > 0)
        trace_check_told(t->sim, t->call->shard, index, t->request, t->response);
}

static void check_renewal(const struct told *t)
{
    const Holdfast__Internal__V1__RenewTokensRequest *request = (const void *)t->request;
    const Holdfast__Internal__V1__RenewTokensResponse *response = (const void *)t->response;

    for (size_t i = 0; i < request->n_tokens; i++) {
        const Holdfast__Internal__V1__RenewToken *token = request->tokens[i];
        struct player_model *player = &t->sim->oracle->players[token->position];
        bool lost = false;
        for (size_t j = 0; j < response->n_lost; j++)
            lost |= response->lost[j] == token->position;
        CHECK(token->fence <= player->fence);
        uint64_t lost_at = player->lost_at[model_fence_place(token->fence)];
        if (lost && lost_at == 0)
            fail(t, "a session that stands is told as lost", token->fence, player->fence);
        if (!lost && token->fence == player->fence && ++player->renewals == RENEWALS_SURE) {
            const struct shard_oracle *shard = &t->sim->oracle->shards[player->shard];
            player->renewed_ms = SIM_UNIX_MS + t->sim->now_ms + t->sim->clock_ms;
            player->renewed_epoch = shard->entries[shard->count - 1]->dot.epoch;
        }
        if (!lost && lost_at != 0 && lost_at <= t->call->must_see)
            fail(t, "a session that was lost is told as current", lost_at, t->call->must_see);
    }
}

static void check_ok(struct told *t)
{
    switch (t->call->method) {
    case METHOD_GET_PROFILE:
    case METHOD_GET_BALANCES:
    case METHOD_READ_SETTLED:
        check_read(t);
        break;
    case METHOD_MAILBOX_LIST:
        check_mailbox(t);
        break;
    case METHOD_ITEM_HISTORY:
        check_history(t);
        break;
    case METHOD_CHANNEL_DELIVER:
        goods_check_told(t->sim, t->call->shard, t->request, t->response);
        break;
    case METHOD_GET_OPERATION:
        t->sim->counts.get_operations++;
        check_status(t, ((const Holdfast__V1__GetOperationResponse *)t->response)->operation);
        break;
    case METHOD_RESOLVE_OPERATION:
        check_status(t, ((const Holdfast__V1__ResolveOperationResponse *)t->response)->operation);
        break;
    case METHOD_RENEW_TOKENS:
        check_renewal(t);
        break;
    case METHOD_TAKE_CUT:
    case METHOD_MEMBER_STATE:
        break;
    case METHOD_EXPIRE_SERVER:
    case METHOD_APPLY_POLICY: {
        const Holdfast__V1__Dot *const *dot = field(t->response, "dot");
        uint64_t index = oracle_index_of(t->shard, dot_of(*dot));
        if (index == 0)
            fail(t, "the dot was never committed", (*dot)->counter, 0);
        oracle_acknowledge(t->sim, t->call->shard, index);
        break;
    }
    default:
        check_write(t);
        break;
    }
}

/* ---- refusals ---- */
static void check_refusal(const struct told *t, const Holdfast__V1__ErrorDetail *detail)
{
    if (!error_is_given(t->call->method, detail->code, detail->final))
        fail(t, "an error that idl/method_errors.h does not have", detail->code, 0);
    const struct op_model *op = op_of(t);

    if (detail->code == CODE(OPERATION_EXPIRED) && !op->too_old)
        fail(t, "told as too old", op->ms, t->shard->floor_ms);
    if (!detail->final)
        return;
    t->sim->counts.refused_final++;
    if (detail->code == CODE(OPERATION_ABORTED)) {
        if (op->state != OP_ABORTED)
            fail(t, "told as aborted", OP_ABORTED, op->state);
        oracle_acknowledge(t->sim, t->call->shard, op->index);
        return;
    }
    if (op->refused_index == 0)
        fail(t, "a refusal that is not in the log", 0, 1);
}

void oracle_packet(struct sim *sim, const struct sim_op *op)
{
    if (op->id[0] != '\0')
        model_op(sim->oracle, slice_from_text(op->entity), slice_from_text(op->id))->packets++;
}

/* NOT_OWNER says that nothing was done: it may not be said of the only packet of an op that stands
 * in the log. */
static void check_not_owner(const struct told *t)
{
    const struct op_model *op =
        t->call->method != METHOD_RESOLVE_OPERATION && t->call->method != METHOD_GET_OPERATION
            ? op_of(t)
            : NULL;

    if (op != NULL && op->packets == 1 && (op->state == OP_PENDING || op->state == OP_COMMITTED))
        fail(t, "NOT_OWNER for what stands in the log", op->state, OP_NONE);
}

void oracle_answer(struct sim *sim, const struct node_call *call, const struct shard_reply *reply,
                   struct slice body)
{
    const struct method_info *method = method_find(call->method);
    struct arena *arena = &sim->oracle->arena;
    struct told t = { .sim = sim, .call = call, .shard = &sim->oracle->shards[call->shard] };

    if (sim->failure[0] != '\0' || sim->damaged || reply->status == REPLY_UNKNOWN ||
        (reply->status == REPLY_NOT_OWNER && method->route != METHOD_MUTATION))
        return;
    arena_reset(arena);
    t.request = arena_unpack(arena, method->request, buf_slice(&call->request));
    CHECK(t.request != NULL);
    if (reply->status == REPLY_NOT_OWNER) {
        check_not_owner(&t);
        return;
    }
    if (reply->status == REPLY_REFUSED) {
        const Holdfast__V1__ErrorDetail *detail =
            (const void *)arena_unpack(arena, &holdfast__v1__error_detail__descriptor, body);
        CHECK(detail != NULL);
        check_refusal(&t, detail);
        return;
    }
    t.response = arena_unpack(arena, method->response, body);
    if (t.response == NULL) {
        fail(&t, "an answer that cannot be read", body.size, 0);
        return;
    }
    check_ok(&t);
}
