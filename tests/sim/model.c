/* The rules of DESIGN sections 5 and 6, once more, as plainly as they can be said: sessions by
 * fences, operations by their ids, balances by sums. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/method.h"
#include "node/core/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/model.h"

#define CODE(name)  HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name
#define STATE(name) HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_##name

#define CLOCKS_APART_MS 5000u

#define FENCE_GENERATION_BITS 40u
#define FENCES_MAX            8192u /* Of one player in one generation. */
/* DESIGN section 6. */
#define OP_ID_AHEAD_MS (5u * 60u * 1000u)

/* ---- players ---- */
struct player_model *model_player(struct sim *sim, struct slice entity)
{
    uint32_t number = 0;
    char text[32] = { 0 };

    if (entity.size < 9 || entity.size >= sizeof text)
        return NULL;
    memcpy(text, entity.data, entity.size);
    if (sscanf(text, "player:p%u", &number) != 1 || number >= sim->player_count)
        return NULL;
    return &sim->oracle->players[number];
}

const struct moment *model_at(const struct player_model *player, uint64_t index)
{
    const struct moment *found = NULL;

    for (uint32_t i = player->history_count; i > 0 && found == NULL; i--) {
        if (player->history[i - 1].index <= index)
            found = &player->history[i - 1];
    }
    return found;
}

void model_remember(struct player_model *player, uint64_t index)
{
    if (player->history_count == player->history_capacity) {
        player->history_capacity = player->history_capacity > 0 ? player->history_capacity * 2 : 64;
        player->history =
            mem_realloc(player->history, sizeof *player->history * player->history_capacity);
    }
    player->now.index = index;
    player->history[player->history_count++] = player->now;
}

bool model_expired(const struct shard_oracle *shard, struct incarnation incarnation)
{
    if (incarnation_compare(incarnation, shard->lowest_live) < 0)
        return true;
    for (uint32_t i = 0; i < shard->expired_count; i++) {
        if (incarnation_compare(shard->expired[i], incarnation) == 0)
            return true;
    }
    return false;
}

static bool is_held(const struct change *c)
{
    return !incarnation_is_none(c->player->incarnation) &&
           !model_expired(c->shard, c->player->incarnation);
}

static void session_ends(struct player_model *player, uint64_t index)
{
    if (player->fence > 0 && player->lost_at[model_fence_place(player->fence)] == 0)
        player->lost_at[model_fence_place(player->fence)] = index;
    player->incarnation = (struct incarnation){ 0 };
    player->granted_ms = 0;
    player->claim_ms = 0;
}

/* The first one of a generation, which began when a restored etcd was accepted. */
static bool generation_begins(uint64_t before, uint64_t fence)
{
    return fence >> FENCE_GENERATION_BITS > before >> FENCE_GENERATION_BITS &&
           (fence & (((uint64_t)1 << FENCE_GENERATION_BITS) - 1)) == 1;
}

uint64_t model_fence_place(uint64_t fence)
{
    uint64_t number = fence & (((uint64_t)1 << FENCE_GENERATION_BITS) - 1);

    CHECK(number < FENCES_MAX);
    return (fence >> FENCE_GENERATION_BITS) * FENCES_MAX + number;
}

static void session_begins(struct change *c, struct slice body, struct op_model *op)
{
    struct arena *arena = &c->sim->oracle->arena;
    struct player_model *player = c->player;
    const Holdfast__V1__StartSessionResponse *response =
        (const void *)arena_unpack(arena, &holdfast__v1__start_session_response__descriptor, body);
    struct incarnation incarnation;
    uint64_t fence;

    CHECK(response != NULL);
    CHECK(token_parse(slice_from_text(response->token), &incarnation, &fence) == ERR_OK);
    if ((fence != player->fence + 1 && !generation_begins(player->fence, fence)) ||
        response->fence != fence)
        sim_fail(c->sim, c->number, "fence %" PRIu64 " is granted after %" PRIu64, fence,
                 player->fence);
    if (model_expired(c->shard, incarnation))
        sim_fail(c->sim, c->number, "a session is granted to an expired server");
    session_ends(player, c->entry->index);
    player->fence = fence;
    player->granted_ms = c->entry->owner_ms;
    player->renewals = 0;
    player->claim_ms = 0;
    player->incarnation = incarnation;
    op->fence = fence;
    if (model_fence_place(fence) >= player->lost_capacity) {
        uint64_t capacity = model_fence_place(fence) + 64;
        player->lost_at = mem_realloc(player->lost_at, sizeof(uint64_t) * capacity);
        memset(player->lost_at + player->lost_capacity, 0,
               sizeof(uint64_t) * (capacity - player->lost_capacity));
        player->lost_capacity = capacity;
    }
}

/* ---- operations ---- */
struct op_model *model_op(struct oracle *oracle, struct slice entity, struct slice id)
{
    char key[MODEL_KEY_BYTES];
    size_t size = entity.size + 1 + id.size;
    CHECK(entity.size > 0 && id.size > 0 && size < sizeof key);
    memcpy(key, entity.data, entity.size);
    key[entity.size] = ' ';
    memcpy(key + entity.size + 1, id.data, id.size);
    key[size] = '\0';
    uint64_t slot = hash_u64((struct slice){ (const uint8_t *)key, size }) % MODEL_SLOTS;
    struct op_id parsed;
    const char *why;

    while (oracle->slots[slot] != 0) {
        struct op_model *op = &oracle->ops[oracle->slots[slot] - 1];
        if (strcmp(op->key, key) == 0)
            return op;
        slot = (slot + 1) % MODEL_SLOTS;
    }
    CHECK(oracle->op_count < MODEL_SLOTS / 2);
    struct op_model *op = &oracle->ops[oracle->op_count++];
    oracle->slots[slot] = oracle->op_count;
    *op = (struct op_model){ 0 };
    memcpy(op->key, key, size + 1);
    CHECK(op_id_parse(id, &parsed, &why) == ERR_OK);
    op->ms = parsed.typed ? UINT64_MAX : uuid_v7_ms(&parsed.uuid);
    return op;
}

void model_fail_op(const struct change *c, const struct op_model *op, const char *what)
{
    sim_fail(c->sim, c->number, "entry %" PRIu64 ": op %s %s", c->entry->index, op->key, what);
}

static void op_committed(struct change *c, struct op_model *op)
{
    if (op->packets == 0)
        model_fail_op(c, op, "is carried out, and nobody asked for it under that id");
    if (op->state == OP_COMMITTED)
        model_fail_op(c, op, "is carried out a second time");
    if (op->state == OP_ABORTED)
        model_fail_op(c, op, "is carried out after it was sealed");
    if (op->too_old)
        model_fail_op(c, op, "is carried out after it was refused as too old");
    if (op->state == OP_REFUSED && c->op.attempt <= op->attempt)
        model_fail_op(c, op, "is carried out by an attempt that was refused");
    if (op->method != 0 && !hash128_equal(op->payload, c->payload))
        model_fail_op(c, op, "is carried out with another payload");
    c->sim->oracle->pending -= op->state == OP_PENDING;
    op->state = OP_COMMITTED;
    op->index = c->entry->index;
    op->dot = c->entry->dot;
    op->version = c->outcome->version;
    op->attempt = c->op.attempt;
    c->sim->counts.waits_granted += op->waited;
}

/* Whether the log gives the reason that a refusal gives. */
void model_check_reason(const struct change *c, const struct op_model *op, int code)
{
    const struct authority *authority = &c->op.authority;
    const struct player_model *player = c->player;

    if (code == (int)CODE(TXN_CONFLICT) && c->player->txn == 0 && !txn_is(c->op.method))
        model_fail_op(c, op, "meets a transaction, and none holds the player");
    c->sim->counts.txn_conflicts_told += code == (int)CODE(TXN_CONFLICT);
    if (txn_is(c->op.method))
        return;
    if (code == (int)CODE(SESSION_LOST) && is_held(c) && authority->fence == player->fence &&
        incarnation_compare(authority->incarnation, player->incarnation) == 0)
        model_fail_op(c, op, "is refused as of a session that is lost, and the session stands");
    if (code != (int)CODE(SESSION_LOCKED))
        return;
    if (!is_held(c) && player->claim_ms == 0)
        model_fail_op(c, op, "is refused for another's session, and nobody has one");
    if (c->op.method == METHOD_START_SESSION &&
        ((const Holdfast__V1__StartSessionRequest *)c->request)->mode ==
            HOLDFAST__V1__START_MODE__START_MODE_STEAL)
        model_fail_op(c, op, "is a steal, and is refused as if it waited");
}

static void op_refused(struct change *c, struct op_model *op)
{
    const Holdfast__V1__ErrorDetail *detail = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__v1__error_detail__descriptor, c->outcome->body);

    CHECK(detail != NULL);
    if (detail->code == CODE(OPERATION_ID_MISMATCH) && !detail->final) {
        c->sim->counts.mismatches++;
        if (op->method == 0 || hash128_equal(op->payload, c->payload))
            model_fail_op(c, op, "is refused as another request, and is the same");
        return;
    }
    if (!c->outcome->duplicate)
        model_check_reason(c, op, (int)detail->code);
    if (detail->code == CODE(SERVER_EXPIRED))
        c->sim->counts.expired_refused++;
    c->sim->counts.stale_writes_refused += c->outcome->stale_write;
    op->waited |= c->outcome->waits;
    if (!detail->final)
        return;
    c->sim->oracle->pending -= op->state == OP_PENDING;
    if (op->state == OP_COMMITTED)
        model_fail_op(c, op, "is refused after it was carried out");
    if (c->outcome->duplicate) {
        if (op->state != OP_ABORTED && (op->state != OP_REFUSED || c->op.attempt > op->attempt))
            model_fail_op(c, op, "gets a stored refusal that nobody stored");
        return;
    }
    op->state = OP_REFUSED;
    op->attempt = c->op.attempt;
    op->refused_index = c->entry->index;
    if (receipt_is_id(c->op.id.text))
        receipt_refused(c, detail);
    if (!txn_is(c->op.method))
        model_ledger_refused(c, op, detail);
}

static void op_repeated(struct change *c, const struct op_model *op)
{
    c->sim->counts.duplicates++;
    if (op->state != OP_COMMITTED || dot_compare(op->dot, c->outcome->dot) != 0 ||
        op->version != c->outcome->version)
        model_fail_op(c, op, "gets a stored outcome that is not its own");
    if (!hash128_equal(op->payload, c->payload))
        model_fail_op(c, op, "gets the outcome of another request");
}

/* A steal that was pending has been decided by this entry. */
static void op_decided(struct change *c)
{
    struct op_model *op = model_op(c->sim->oracle, c->op.entity, c->outcome->decided_op_id);

    if (c->op.method == METHOD_RESOLVE_OPERATION && c->outcome->decided_refused &&
        (op->state == OP_ABORTED || op->ms <= c->shard->floor_ms)) {
        c->player->claim_ms = 0;
        if (op->state == OP_PENDING) {
            c->sim->oracle->pending--;
            op->state = OP_ABORTED;
        }
        return; /* Sealed while it was pending. */
    }
    if (op->state != OP_PENDING) {
        model_fail_op(c, op, "is decided, but was not pending");
        return;
    }
    c->sim->oracle->pending--;
    op->index = c->entry->index;
    op->dot = c->entry->dot;
    op->version = c->outcome->decided_version;
    if (c->outcome->decided_refused) {
        op->state = OP_REFUSED;
        op->refused_index = c->entry->index;
        if (c->op.method == METHOD_SESSION_DUE)
            c->player->claim_ms = 0;
        return;
    }
    const Holdfast__V1__StartSessionResponse *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__v1__start_session_response__descriptor,
        c->outcome->decided_body);
    CHECK(response != NULL);
    if (response->stolen && is_held(c) && c->player->claim_ms > c->entry->owner_ms)
        model_fail_op(c, op, "takes the session before its holder's time");
    c->sim->counts.steals += c->op.method == METHOD_SESSION_DUE;
    op->state = OP_COMMITTED;
    session_begins(c, c->outcome->decided_body, op);
}

/* ---- effects ---- */
static void check_authority(const struct change *c)
{
    const struct authority *authority = &c->op.authority;
    const struct player_model *player = c->player;

    if (authority->kind == AUTHORITY_SYSTEM && c->op.method != METHOD_GRANT &&
        c->op.method != METHOD_MINT && c->op.method != METHOD_MAILBOX_SEND &&
        c->op.method != METHOD_RETURN_EXPIRED && c->op.method != METHOD_REVERSE &&
        c->op.method != METHOD_VOID)
        sim_fail(c->sim, c->number, "entry %" PRIu64 " takes or overwrites as the system",
                 c->entry->index);
    if (authority->kind == AUTHORITY_UNHELD && is_held(c))
        sim_fail(c->sim, c->number, "entry %" PRIu64 " writes as if nobody held the player",
                 c->entry->index);
    if (authority->kind != AUTHORITY_SESSION)
        return;
    if (!is_held(c) || authority->fence != player->fence ||
        incarnation_compare(authority->incarnation, player->incarnation) != 0)
        sim_fail(c->sim, c->number,
                 "entry %" PRIu64 " writes under fence %" PRIu64 ", the fence is %" PRIu64 "%s",
                 c->entry->index, authority->fence, player->fence, is_held(c) ? "" : " and free");
}

static void change_balance(struct change *c, const Holdfast__V1__CurrencyAmount *amount, int sign)
{
    uint32_t currency = strcmp(amount->currency, "gems") == 0;
    int64_t *balance = &c->player->now.balances[currency];

    *balance += sign * amount->amount;
    c->sim->oracle->book.made[currency] += sign * amount->amount;
    if (*balance < 0)
        sim_fail(c->sim, c->number, "entry %" PRIu64 " spends what is not there", c->entry->index);
}

static void check_balance(const struct change *c, const Holdfast__V1__Balance *told)
{
    uint32_t currency = strcmp(told->currency, "gems") == 0;
    int64_t balance = c->player->now.balances[currency];

    if (told->amount != balance)
        sim_fail(c->sim, c->number,
                 "entry %" PRIu64 ": the balance is %" PRId64 ", the sum of what was done %" PRId64,
                 c->entry->index, told->amount, balance);
}

uint32_t model_section(const char *json)
{
    uint32_t number = 0;

    CHECK(sscanf(json, "{\"n\":%u}", &number) == 1);
    return number;
}

static void edit(struct change *c, size_t count, Holdfast__V1__SectionEdit *const *edits)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t section = strcmp(edits[i]->name, "quests") == 0;
        c->player->now.sections[section] = model_section(edits[i]->replace);
    }
}

/* Who holds a session keeps it until the time is over that the first claim gave it. */
static void check_grace(const struct change *c, struct incarnation asking)
{
    const struct player_model *player = c->player;

    if (is_held(c) && incarnation_compare(asking, player->incarnation) != 0 &&
        (player->claim_ms == 0 || player->claim_ms > c->entry->owner_ms))
        sim_fail(c->sim, c->number, "entry %" PRIu64 " takes a session before its holder's time",
                 c->entry->index);
}

static void start_session(struct change *c, struct op_model *op)
{
    const Holdfast__V1__StartSessionRequest *request = (const void *)c->request;
    struct incarnation asking;

    CHECK(incarnation_parse(slice_from_text(request->incarnation), &asking) == ERR_OK);
    if (is_held(c) && incarnation_compare(asking, c->player->incarnation) != 0 &&
        request->mode != HOLDFAST__V1__START_MODE__START_MODE_STEAL)
        sim_fail(c->sim, c->number, "entry %" PRIu64 " grants a session that another holds",
                 c->entry->index);
    if (request->mode == HOLDFAST__V1__START_MODE__START_MODE_STEAL)
        check_grace(c, asking);
    /* A holder that begins anew has no more time than it had. */
    bool again = is_held(c) && incarnation_compare(asking, c->player->incarnation) == 0;
    uint64_t claim_ms = again && c->was != OP_PENDING ? c->player->claim_ms : 0;
    session_begins(c, c->outcome->body, op);
    c->player->claim_ms = claim_ms;
}

static int64_t owned(const struct player_model *player, uint32_t currency)
{
    return player->now.balances[currency] + player->now.reserved[currency];
}

static void take_effect(struct change *c, struct op_model *op)
{
    struct arena *arena = &c->sim->oracle->arena;
    const ProtobufCMessage *response =
        arena_unpack(arena, method_find(c->op.method)->response, c->outcome->body);

    int64_t before[SIM_CURRENCIES];

    CHECK(response != NULL);
    if (txn_is(c->op.method)) {
        txn_done(c, op);
        return;
    }
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        before[i] = owned(c->player, i);
    switch (c->op.method) {
    case METHOD_GRANT:
        change_balance(c, ((const Holdfast__V1__GrantRequest *)c->request)->currencies[0], 1);
        check_balance(c, ((const Holdfast__V1__GrantResponse *)response)->balances[0]);
        break;
    case METHOD_SPEND:
        change_balance(c, ((const Holdfast__V1__SpendRequest *)c->request)->currencies[0], -1);
        check_balance(c, ((const Holdfast__V1__SpendResponse *)response)->balances[0]);
        break;
    case METHOD_MINT:
        c->player->now.items++;
        goods_effect(c, response);
        op->item = c->sim->oracle->book.item_count;
        break;
    case METHOD_LEDGER_TRANSFER:
    case METHOD_INVENTORY_TRANSFER:
    case METHOD_MAILBOX_SEND:
    case METHOD_MAILBOX_CLAIM:
    case METHOD_RETURN_EXPIRED:
        goods_effect(c, response);
        break;
    case METHOD_POST:
        if (((const Holdfast__V1__PostRequest *)c->request)->to_player_id[0] != 0)
            goods_effect(c, response);
        else
            model_ledger(c, op, response);
        break;
    case METHOD_CONSUME:
    case METHOD_REVERSE:
    case METHOD_RESERVE:
    case METHOD_VOID:
        model_ledger(c, op, response);
        break;
    case METHOD_UPDATE_PROFILE:
        edit(c, ((const Holdfast__V1__UpdateProfileRequest *)c->request)->n_edits,
             ((const Holdfast__V1__UpdateProfileRequest *)c->request)->edits);
        break;
    case METHOD_END_SESSION:
        edit(c, ((const Holdfast__V1__EndSessionRequest *)c->request)->n_edits,
             ((const Holdfast__V1__EndSessionRequest *)c->request)->edits);
        session_ends(c->player, c->entry->index);
        break;
    case METHOD_START_SESSION:
        start_session(c, op);
        break;
    default:
        CHECK(false); /* a mutation that the model knows */
    }
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        op->net[i] = owned(c->player, i) - before[i];
    op->by_system = c->op.authority.kind == AUTHORITY_SYSTEM;
}

static void claimed(struct change *c, struct op_model *op)
{
    const Holdfast__V1__StartSessionRequest *request = (const void *)c->request;

    c->sim->oracle->pending += op->state != OP_PENDING;
    op->state = OP_PENDING;
    op->attempt = c->op.attempt;
    if (c->player->claim_ms != 0 && c->player->claim_ms <= c->entry->owner_ms)
        model_fail_op(c, op, "waits longer than the first claim gave the holder");
    if (c->player->claim_ms == 0)
        c->player->claim_ms = c->entry->owner_ms + request->grace_ms;
}

/* An id so old that nothing is remembered of it, or would be for long. */
static bool is_too_old(const struct shard_oracle *shard, const struct op_model *op,
                       uint64_t owner_ms)
{
    uint64_t window_ms = applier_meta(shard->applier)->policy.operation_window_ms;

    if (op->ms <= shard->floor_ms)
        return true;
    return op->state == OP_NONE && op->ms != UINT64_MAX && op->ms + window_ms < owner_ms;
}

/* What a transaction is promised, nobody else may change. */
static void check_free(const struct change *c, const struct op_model *op)
{
    if (c->player->txn != 0)
        model_fail_op(c, op, "writes a player that a transaction holds");
}

void model_asked(struct change *c, struct op_model *op)
{
    check_free(c, op);
    op_committed(c, op);
    check_authority(c);
    if (c->op.authority.kind == AUTHORITY_SESSION)
        c->player->granted_ms = 0;
}

static void version_rises(struct change *c, const struct op_model *op)
{
    if (c->outcome->version != c->player->now.version + 1)
        model_fail_op(c, op, "does not raise the version by one");
    c->player->now.version = c->outcome->version;
}

void model_carried_out(struct change *c, struct op_model *op)
{
    model_asked(c, op);
    version_rises(c, op);
    take_effect(c, op);
}

/* A transfer to another shard: debited, and pending until it is decided there. */
static void on_its_way(struct change *c, struct op_model *op)
{
    if (c->outcome->duplicate) {
        c->sim->counts.duplicates++;
        if (op->state != OP_PENDING)
            model_fail_op(c, op, "is told as pending, and is not");
        return;
    }
    if (op->state == OP_PENDING)
        model_fail_op(c, op, "is debited a second time");
    model_asked(c, op);
    if (!receipt_is_id(c->op.id.text))
        version_rises(c, op);
    op->state = OP_PENDING;
    op->settled_index = 0;
    c->sim->oracle->pending++;
    if (receipt_is_id(c->op.id.text))
        receipt_opened(c, op);
    else if (txn_is(c->op.method))
        txn_opened(c, op);
    else
        goods_opened(c, op);
}

static void identified(struct change *c)
{
    struct op_model *op = model_op(c->sim->oracle, c->op.entity, c->op.id.text);
    const struct outcome *outcome = c->outcome;
    bool fresh = outcome->kind == OUTCOME_COMMITTED && !outcome->duplicate;

    c->was = op->state;
    if (op->ms != UINT64_MAX && op->ms > c->entry->owner_ms + OP_ID_AHEAD_MS &&
        outcome->kind != OUTCOME_REFUSED)
        model_fail_op(c, op, "has an id of the future, and is not refused");
    if (is_too_old(c->shard, op, c->entry->owner_ms)) {
        c->sim->counts.ops_expired++;
        op->too_old = true;
        if (outcome->kind != OUTCOME_REFUSED || outcome->duplicate)
            model_fail_op(c, op, "is older than what is remembered, and not refused");
        return;
    }
    if (fresh) {
        model_carried_out(c, op);
        if (receipt_is_id(c->op.id.text))
            receipt_done(c);
    } else if (outcome->kind == OUTCOME_COMMITTED) {
        op_repeated(c, op);
    } else if (outcome->kind == OUTCOME_REFUSED) {
        op_refused(c, op);
    } else if (c->op.method == METHOD_START_SESSION) {
        if (!outcome->duplicate) {
            check_free(c, op);
            claimed(c, op);
        }
    } else {
        on_its_way(c, op);
    }
    if (op->method == 0 && op->state != OP_NONE && op->state != OP_ABORTED) {
        op->method = c->op.method;
        op->payload = c->payload;
    }
}

/* ---- entries without an op_id ---- */
static void resolved(struct change *c)
{
    const Holdfast__V1__ResolveOperationRequest *request = (const void *)c->request;
    const Holdfast__V1__ResolveOperationResponse *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__v1__resolve_operation_response__descriptor,
        c->outcome->body);
    struct op_model *op = model_op(c->sim->oracle, c->op.entity, slice_from_text(request->op_id));

    CHECK(response != NULL && response->operation != NULL);
    c->sim->counts.seals += request->seal != 0;
    if (op->state == OP_PENDING && txn_is(op->method) &&
        response->operation->state == STATE(ABORTED))
        txn_sealed(c, op);
    if (op->state == OP_PENDING && op->method != METHOD_START_SESSION &&
        response->operation->state != STATE(PENDING))
        model_fail_op(c, op, "is settled by a seal at its source alone");
    switch ((int)response->operation->state) {
    case STATE(COMMITTED):
        if (op->state != OP_COMMITTED)
            model_fail_op(c, op, "is resolved as done, and is not");
        break;
    case STATE(ABORTED):
        if (op->state == OP_COMMITTED)
            model_fail_op(c, op, "is resolved as aborted, and is done");
        if (op->state == OP_PENDING) {
            c->sim->oracle->pending--;
            c->player->claim_ms = 0;
        }
        if (op->state != OP_ABORTED)
            op->index = c->entry->index;
        op->state = OP_ABORTED;
        break;
    case STATE(REFUSED):
        if (op->state != OP_REFUSED)
            model_fail_op(c, op, "is resolved as refused, and was not");
        if (request->seal)
            op->attempt = UINT32_MAX;
        break;
    case STATE(EXPIRED):
        if (op->ms > c->shard->floor_ms)
            model_fail_op(c, op, "is resolved as too old, and is not");
        break;
    default:
        if (request->seal)
            model_fail_op(c, op, "is not sealed by a seal");
        if (op->state != OP_NONE && op->state != OP_PENDING)
            model_fail_op(c, op, "is resolved as unknown, and has an outcome");
        break;
    }
}

static void sealed_on_its_way(struct change *c)
{
    const Holdfast__V1__ResolveOperationRequest *request = (const void *)c->request;

    c->sim->counts.seals++;
    goods_sealed(c, model_op(c->sim->oracle, c->op.entity, slice_from_text(request->op_id)));
}

static void expired(struct change *c)
{
    const Holdfast__Internal__V1__ExpireServerRequest *request = (const void *)c->request;
    struct shard_oracle *shard = c->shard;
    struct incarnation incarnation, lowest;

    CHECK(incarnation_parse(slice_from_text(request->incarnation), &incarnation) == ERR_OK);
    CHECK(incarnation_parse(slice_from_text(request->lowest_live), &lowest) == ERR_OK);
    c->sim->counts.expiries++;
    CHECK(shard->expired_count < MODEL_EXPIRED);
    shard->expired[shard->expired_count++] = incarnation;
    if (incarnation_compare(lowest, shard->lowest_live) > 0)
        shard->lowest_live = lowest;
    for (uint32_t i = 0; i < c->sim->player_count; i++) {
        struct player_model *player = &c->sim->oracle->players[i];
        if (player->shard == c->number && !incarnation_is_none(player->incarnation) &&
            model_expired(shard, player->incarnation) &&
            player->lost_at[model_fence_place(player->fence)] == 0)
            player->lost_at[model_fence_place(player->fence)] = c->entry->index;
    }
}

/* Only what was granted SESSION_UNUSED_MS ago, and never used, frees itself. What an owner logged
 * for a renewal stands before its later entries; what it had not on a majority when it died is
 * lost, however often it answered, and the next owner knows of no use (a write by the token is
 * refused). */
static void check_unused(const struct change *c)
{
    const struct player_model *player = c->player;

    bool renewed = player->renewals >= RENEWALS_SURE &&
                   player->renewed_epoch == c->entry->dot.epoch &&
                   player->renewed_ms + CLOCKS_APART_MS < c->entry->owner_ms;
    if (player->granted_ms == 0 || renewed)
        sim_fail(c->sim, c->number, "entry %" PRIu64 " frees a session that was used",
                 c->entry->index);
    else if (player->granted_ms + SESSION_UNUSED_MS > c->entry->owner_ms)
        sim_fail(c->sim, c->number, "entry %" PRIu64 " frees a session too early", c->entry->index);
}

static void unidentified(struct change *c)
{
    switch (c->op.method) {
    case METHOD_RESOLVE_OPERATION:
        if (c->outcome->kind == OUTCOME_PENDING)
            sealed_on_its_way(c);
        else
            resolved(c);
        break;
    case METHOD_CHANNEL_DELIVER:
        if (c->outcome->kind == OUTCOME_COMMITTED)
            goods_delivered(c);
        break;
    case METHOD_CHANNEL_SETTLE:
        goods_settled(c);
        break;
    case METHOD_EXPIRE_SERVER:
        expired(c);
        break;
    case METHOD_APPLY_POLICY:
        c->sim->counts.policies++;
        break;
    case METHOD_SESSION_DUE:
        if (c->outcome->session_freed) {
            check_unused(c);
            c->sim->counts.grants_freed++;
            session_ends(c->player, c->entry->index);
        }
        break;
    case METHOD_RESERVATION_DUE:
        model_reservation_due(c);
        break;
    case METHOD_SESSION_HOLD:
        if (((const Holdfast__Internal__V1__SessionHoldRequest *)c->request)->fence ==
            c->player->fence)
            c->player->granted_ms = 0;
        break;
    default:
        break;
    }
}

static void say(const struct change *c)
{
    static const char *const kinds[] = { "done", "refused", "pending", "-" };
    const struct op *op = &c->op;

    if (!c->sim->verbose)
        return;
    sim_say(c->sim,
            "LOG      s%u %" PRIu64 " (%" PRIu64 ".%" PRIu64 ") %s %.*s %.*s attempt %u "
            "fence %" PRIu64 ": %s%s",
            c->number, c->entry->index, c->entry->dot.epoch, c->entry->dot.counter,
            strchr(method_find(op->method)->name, '/') + 1, (int)op->entity.size,
            (const char *)op->entity.data, (int)op->id.text.size, (const char *)op->id.text.data,
            op->attempt, op->authority.fence, kinds[c->outcome->kind],
            c->outcome->duplicate ? ", again" : "");
}

void model_apply(struct sim *sim, uint32_t number, const struct entry *entry,
                 const struct outcome *outcome)
{
    struct change c = { .sim = sim,
                        .shard = &sim->oracle->shards[number],
                        .number = number,
                        .entry = entry,
                        .outcome = outcome };

    arena_reset(&sim->oracle->arena);
    if (entry->kind != ENTRY_OP) {
        sim_say(sim, "LOG      s%u %" PRIu64 " (%" PRIu64 ".%" PRIu64 ") of node %" PRIu64, number,
                entry->index, entry->dot.epoch, entry->dot.counter, entry->dot.owner);
        return;
    }
    CHECK(op_decode(entry->body, &c.op) == ERR_OK);
    /* Attempt and authority stand beside the request in an entry, not in it. */
    c.payload =
        hash_chain((struct hash128){ { (uint8_t)c.op.method } }, c.op.request, (struct slice){ 0 });
    c.player = model_player(sim, c.op.entity);
    c.request = arena_unpack(&sim->oracle->arena, method_find(c.op.method)->request, c.op.request);
    CHECK(c.request != NULL);
    say(&c);
    if (sim->damaged) {
        damage_look(sim, c.op.method, outcome);
        return;
    }
    if (c.op.id.text.size > 0)
        identified(&c);
    else
        unidentified(&c);
    if (c.op.method == METHOD_SESSION_DUE && c.player->txn != 0 &&
        (outcome->session_freed || outcome->decided_op_id.size > 0))
        sim_fail(sim, number,
                 "entry %" PRIu64 ": a session passes on while a transaction holds "
                 "the player",
                 entry->index);
    if (outcome->decided_op_id.size > 0) {
        op_decided(&c);
        if (c.op.method == METHOD_SESSION_DUE && !outcome->decided_refused)
            c.player->now.version++;
    }
    if (c.player != NULL)
        model_remember(c.player, entry->index);
}
