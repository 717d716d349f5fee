#include "node/core/apply/apply.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/apply_internal.h"
#include "node/core/apply/outcome_share.h"
#include "node/core/apply/restore.h"
#include "node/core/channel/channel_row.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/event.h"
#include "node/core/handler/operation_floor.h"
#include "node/core/handler/player_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/receipt/receipt.h"
#include "node/core/rows/rows.h"
#include "node/core/session/authority.h"
#include "node/core/session/timers.h"
#include "node/core/transaction/txn_part.h"
#include "runtime/base/check.h"

/* Before it a shard with consumers or metadata alone was taken for empty. */
#define USE_APPLY_VERSION 10u

struct applier *applier_new(uint32_t shard, const struct handler_table *handlers)
{
    struct applier *applier = mem_zalloc(sizeof *applier);

    CHECK(shard <= UINT16_MAX);
    applier->shard = shard;
    applier->version_max = APPLY_VERSION;
    applier->handlers = handlers;
    applier->state = state_new(shard);
    meta_init(&applier->meta);
    applier->auditor.meta = &applier->meta;
    state_observe(applier->state, (struct state_observer){ applier_row_changed, applier });
    return applier;
}

void applier_free(struct applier *applier)
{
    if (applier == NULL)
        return;
    state_free(applier->state);
    meta_deinit(&applier->meta);
    arena_deinit(&applier->arena);
    arena_deinit(&applier->scratch);
    arena_deinit(&applier->auditor.arena);
    buf_deinit(&applier->row);
    recent_changes_deinit(&applier->recent);
    free(applier);
}

void applier_set_shard_count(struct applier *applier, uint32_t shard_count)
{
    applier->shard_count = shard_count;
}

void applier_set_replica(struct applier *applier, uint64_t replica)
{
    applier->replica = replica;
}

void applier_set_erasure_rows(struct applier *applier, uint32_t rows_max)
{
    applier->erasure_rows = rows_max;
}

void applier_set_version_max(struct applier *applier, uint32_t version_max)
{
    applier->version_max = version_max;
}

void applier_set_log(struct applier *applier, uint32_t version, uint64_t epoch)
{
    applier->log_version = version;
    applier->log_epoch = epoch;
}

void applier_set_members(struct applier *applier, const struct member_state *members)
{
    applier->members = *members;
}

void applier_set_arenas(struct applier *applier, struct arena_pool *arenas)
{
    applier->arena.pool = arenas;
    applier->scratch.pool = arenas;
    applier->auditor.arena.pool = arenas;
}

void applier_rest(struct applier *applier)
{
    arena_reset(&applier->arena);
    arena_reset(&applier->scratch);
}

const struct damage *applier_take_damage(struct applier *applier)
{
    if (!applier->damage.found)
        return NULL;
    applier->damage.found = false;
    return &applier->damage;
}

struct state *applier_state(struct applier *applier)
{
    return applier->state;
}

const struct meta *applier_meta(const struct applier *applier)
{
    return &applier->meta;
}

uint64_t applier_applied_index(const struct applier *applier)
{
    return applier->meta.applied_index;
}

struct hash128 applier_outcome_hash(const struct applier *applier)
{
    return applier->meta.outcome_hash;
}

void applier_meta_encode(const struct applier *applier, struct buf *out)
{
    meta_encode(&applier->meta, out);
}

err applier_restore(struct applier *applier, struct slice meta_row)
{
    if (meta_row.size > 0) {
        err e = meta_decode(meta_row, &applier->meta);
        if (e != ERR_OK)
            return e;
    }
    recent_changes_forget(
        &applier->recent,
        (struct source_dot){ applier->meta.applied_dot.epoch, applier->meta.applied_dot.counter });
    state_set_operations_known_ms(applier->state, applier->meta.operation_ms_max);
    applier->prune_next_ms = applier->meta.owner_ms + PRUNE_EVERY_MS;
    applier->sweep_next_ms = applier->meta.owner_ms + SWEEP_EVERY_MS;
    return ERR_OK;
}

/* One operation while it is applied. */
struct step {
    struct applier *applier;
    const struct entry *entry;
    struct op op;
    const struct method_info *method;
    const struct handler *handler;
    ProtobufCMessage *request;
    ProtobufCMessage *response;
    struct player player;
    struct refusal refusal;
    struct decided decided;
    uint32_t freed;
    uint32_t events;
    bool is_new;          /* Nothing is stored under the op_id yet. */
    bool goes_on;         /* It was evaluated before, and has waited since (a steal). */
    bool bound;           /* Its receipt was bound by this very entry. */
    bool asks;            /* It waits for its receipt's shard; nothing is done yet. */
    bool unreadable;      /* The player's row cannot be read: it is never written. */
    struct damage damage; /* Found in this very entry: what was found elsewhere refuses nothing. */
    struct outcome_share share;
    struct apply_context context;
    struct outcome *outcome;
};

static void outcome_refused(struct step *step, struct slice body)
{
    step->outcome->kind = OUTCOME_REFUSED;
    step->outcome->body = body;
}

/* Answered, but not recorded: the same packet may fare otherwise later. */
static void refuse_unstored(struct step *step)
{
    step->refusal.final = false;
    step->outcome->waits = step->refusal.transient && step->op.method == METHOD_START_SESSION &&
                           step->refusal.code != CODE(TXN_CONFLICT);
    outcome_refused(step, refusal_pack(&step->refusal, &step->applier->arena));
}

static bool refuse_expired(struct step *step)
{
    (void)refuse(&step->applier->arena, &step->refusal, CODE(OPERATION_EXPIRED), "op_id",
                 "the op_id is older than the outcomes that are kept; it is not applied");
    refuse_unstored(step);
    return true;
}

/* What no retry can change, from the id alone. True: refused. */
static bool refuse_by_age(struct step *step)
{
    const struct op_id *id = &step->op.id;
    struct arena *arena = &step->applier->arena;

    if (operation_expired(&step->applier->meta, step->context.version, id, STATE_MISSING))
        return refuse_expired(step);
    if (id->typed || uuid_v7_ms(&id->uuid) <= step->entry->owner_ms + OP_ID_AHEAD_MS_MAX)
        return false;
    (void)refuse_invalid(
        arena, &step->refusal, "op_id", "a UUIDv7 at most 5 minutes ahead of now",
        arena_printf(arena, "%.*s", (int)id->text.size, (const char *)id->text.data));
    refuse_unstored(step);
    return true;
}

/* ERR_NEED: the player's row is not in memory. */
static err player_load(struct step *step)
{
    if (step->op.entity.size == 0 || step->context.player != NULL)
        return ERR_OK;
    err e = player_row_load(step->applier->state, &step->applier->arena, step->op.entity,
                            step->context.need, &step->player);
    if (e == ERR_NEED)
        return e;
    step->unreadable = e != ERR_OK;
    step->context.unreadable = step->unreadable;
    if (step->unreadable)
        damage_note(step->context.damage, step->op.entity, PLAYER_DAMAGE);
    step->context.player = &step->player;
    return ERR_OK;
}

/* A pending steal whose holder is gone meanwhile need not wait for its deadline. */
static bool pending_may_go_on(struct step *step)
{
    const struct session *session = &step->player.session;
    const struct meta *meta = &step->applier->meta;

    CHECK(session_has_claim(session));
    return !session_is_live(session, meta) && !meta_is_expired(meta, session->claim.incarnation);
}

static void answer_stored(struct step *step, const struct outcome_row *row)
{
    struct outcome *outcome = step->outcome;
    struct slice body = arena_copy(&step->applier->arena, row->body);

    outcome->duplicate = true;
    outcome->version = row->version;
    outcome->dot = row->dot;
    if (row->state == OUTCOME_ROW_COMMITTED) {
        outcome->kind = OUTCOME_COMMITTED;
        outcome->body = body;
    } else if (row->state == OUTCOME_ROW_PENDING) {
        outcome->kind = OUTCOME_PENDING;
        struct channel_ref ref = { 0 }; /* Of none: it waits in vain. */
        if (row->method != METHOD_START_SESSION && channel_ref_decode(body, &ref)) {
            outcome->channel.destination = ref.shard;
            outcome->channel.opened_seq = ref.seq;
        }
    } else if (row->state == OUTCOME_ROW_REFUSED) {
        outcome_refused(step, body);
    } else {
        (void)refuse(&step->applier->arena, &step->refusal, CODE(OPERATION_ABORTED), "op_id",
                     "the operation was sealed before it was carried out; it never will be");
        step->refusal.final = true;
        outcome_refused(step, refusal_pack(&step->refusal, &step->applier->arena));
    }
}

static bool payload_differs(const struct step *step, const struct outcome_row *row)
{
    return row->method != 0 && !hash128_equal(row->payload, step->op.payload);
}

/*
 * True: refused. No outcome is kept of an id this old, and none would be kept for long: the next
 * PRUNE would forget it, and its own retry could no longer learn it.
 */
static bool refuse_new_but_old(struct step *step)
{
    const struct op_id *id = &step->op.id;
    uint64_t window_ms = step->applier->meta.policy.operation_window_ms;

    if (!operation_expired(&step->applier->meta, step->context.version, id, STATE_ABSENT) &&
        (id->typed || uuid_v7_ms(&id->uuid) + window_ms >= step->entry->owner_ms))
        return false;
    return refuse_expired(step);
}

static void refuse_unreadable_outcome(struct step *step)
{
    (void)apply_damaged(&step->context, step->op.entity, OUTCOME_DAMAGE);
    refuse_unstored(step);
}

/* *ret_done: the outcome stands already, or cannot be. */
static err deduplicate(struct step *step, bool *ret_done)
{
    struct outcome_row row;

    *ret_done = refuse_by_age(step);
    if (*ret_done)
        return ERR_OK;
    enum state_found found = outcome_row_find(step->applier->state, step->op.entity, &step->op.id,
                                              step->context.need, &row);
    err loaded = player_load(step);
    if (found == STATE_MISSING || loaded != ERR_OK)
        return ERR_NEED;
    if (found == STATE_PRESENT && row.state == OUTCOME_ROW_UNREADABLE) {
        refuse_unreadable_outcome(step);
        *ret_done = true;
        return ERR_OK;
    }
    bool over =
        found == STATE_PRESENT && outcome_row_is_over(&row, &step->op.id, step->entry->owner_ms);
    step->is_new = found == STATE_ABSENT || over;
    if (step->is_new) {
        *ret_done = refuse_new_but_old(step);
        return ERR_OK;
    }
    if (payload_differs(step, &row)) {
        (void)refuse(&step->applier->arena, &step->refusal, CODE(OPERATION_ID_MISMATCH), "op_id",
                     "the op_id was used before for another request");
        refuse_unstored(step);
        *ret_done = true;
        return ERR_OK;
    }
    if (row.state == OUTCOME_ROW_REFUSED && step->op.attempt > row.attempt) {
        /* It would be forgotten by the next PRUNE, if it was carried out now. */
        *ret_done =
            operation_floor_passed(&step->applier->meta, &step->op.id) && refuse_expired(step);
        return ERR_OK;
    }
    if (row.state == OUTCOME_ROW_PENDING && row.method == METHOD_START_SESSION &&
        session_has_claim(&step->player.session) && pending_may_go_on(step)) {
        step->goes_on = true;
        return ERR_OK;
    }
    if (!outcome_row_body_is_sound(&row, &step->applier->arena)) {
        refuse_unreadable_outcome(step);
        *ret_done = true;
        return ERR_OK;
    }
    answer_stored(step, &row);
    *ret_done = true;
    return ERR_OK;
}

static void player_store(struct step *step)
{
    struct buf *row = step->context.scratch;
    struct row_key key;

    buf_clear(row);
    player_encode(&step->player, row);
    row_key_player(&key, step->op.entity);
    state_put(step->applier->state, row_key_slice(&key), buf_slice(row));
}

/* Of the START in force. */
static uint32_t version_in_force(const struct applier *applier)
{
    uint32_t version = applier->meta.apply_version;

    return version < applier->version_max ? version : applier->version_max;
}

static uint64_t decided_at_ms(const struct step *step)
{
    uint64_t at_ms = step->entry->owner_ms;

#ifdef HOLDFAST_DEBUG_INJECT
    at_ms += version_in_force(step->applier) >= APPLY_VERSION_TEST;
#endif
    return at_ms;
}

static void outcome_store(struct step *step, enum outcome_state state, struct slice body)
{
    struct outcome_row row = {
        .state = state,
        .method = step->op.method,
        .attempt = step->op.attempt,
        .payload = step->op.payload,
        .dot = step->entry->dot,
        .version = step->outcome->version,
        .decided_at_ms = decided_at_ms(step),
        .body = body,
    };

    if (step->op.id.text.size == 0)
        return;
    outcome_share_take(&step->context, &step->share);
    outcome_row_store(&step->context, &step->op.id, step->is_new, &row);
}

static void step_refused(struct step *step)
{
    struct outcome *outcome = step->outcome;

    outcome->stale_write = step->refusal.code == CODE(SESSION_LOST);
    outcome->rate_refused = step->refusal.by_rate;
    if (step->refusal.transient || step->op.id.text.size == 0) {
        refuse_unstored(step);
        return;
    }
    step->refusal.final = true;
    outcome_refused(step, refusal_pack(&step->refusal, &step->applier->arena));
    state_begin(step->applier->state);
    if (step->bound)
        receipt_keep(&step->context);
    outcome_store(step, OUTCOME_ROW_REFUSED, outcome->body);
    state_commit(step->applier->state);
}

/* Which record of the outbox a PENDING transfer waits for; nothing for a steal. */
static struct slice pending_ref(struct step *step)
{
    const struct channel_effect *channel = &step->outcome->channel;

    if (channel->opened_seq == 0)
        return (struct slice){ 0 };
    return channel_ref_encode(&step->applier->arena,
                              (struct channel_ref){ channel->destination, channel->opened_seq });
}

static void step_committed(struct step *step)
{
    struct outcome *outcome = step->outcome;
    bool identified = step->op.id.text.size > 0;
    bool pending = step->context.pending;

    if (pending && (outcome->channel.opened_seq == 0 || step->asks))
        step->player.version--; /* Nothing changes before it is decided. */
    outcome->version = step->context.player != NULL ? step->player.version : 0;
    if (identified && outcome->version > 0 && step->player.created_at_ms == 0)
        step->player.created_at_ms = step->entry->owner_ms;
    if (step->context.player != NULL && (identified || step->context.player_changed) &&
        !step->context.unreadable && !(step->asks && outcome->version == 0))
        player_store(step);
    if (pending) {
        outcome->kind = OUTCOME_PENDING;
        outcome_store(step, OUTCOME_ROW_PENDING, pending_ref(step));
    } else if (step->method->route != METHOD_OWNER) {
        outcome->kind = OUTCOME_COMMITTED;
        outcome->body = arena_pack(&step->applier->arena, step->response);
        outcome_store(step, OUTCOME_ROW_COMMITTED, outcome->body);
    }
    outcome->session_freed = step->freed > 0;
    outcome->decided_op_id = step->decided.op_id;
    outcome->decided_refused = step->decided.refused;
    outcome->decided_body = step->decided.body;
    outcome->decided_version = step->decided.version;
}

/* A transaction across shards holds the player: no other write changes what it was promised. */
static err check_free(struct step *step)
{
    if ((step->method->traits & METHOD_PASSES_INTENTS) != 0)
        return ERR_OK; /* Of what it was promised there may be nothing left. */
    if (step->player.txn.seq == 0 || step->op.id.text.size == 0)
        return ERR_OK;
    return txn_refuse_held(&step->applier->arena, &step->refusal,
                           arena_text(&step->applier->arena, player_id(&step->player)),
                           step->op.id.text);
}

/* An operation under a receipt waits until that is bound. */
static err handle(struct step *step)
{
    err e = ERR_OK;

    if (receipt_concerns(step->handler, &step->op)) {
        e = receipt_enter(&step->context, step->entry->body, &step->bound);
        step->asks = step->context.pending;
    }
    if (e != ERR_OK || step->asks)
        return e;
    return step->handler->handle(&step->context, step->request, step->response);
}

/* What the owner has to do, again and again, cannot be done: it is not tried before a person has
 * released the player. */
static void stop_trying(struct step *step)
{
    if (step->method->route != METHOD_OWNER || step->op.entity.size == 0 || !step->damage.found)
        return;
    state_begin(step->applier->state);
    (void)timers_forget(&step->context, step->op.entity, NULL);
    state_commit(step->applier->state);
}

static err evaluate(struct step *step)
{
    struct applier *applier = step->applier;
    struct meta_counts counts = meta_counts_take(&applier->meta);

    err e = player_load(step);
    if (e != ERR_OK)
        return e;
    step->response = arena_message(&applier->arena, method_answer(step->method));
    state_begin(applier->state);
    if (step->op.id.text.size > 0)
        step->player.version++;
    e = outcome_share_admit(&step->context, step->is_new, &step->share);
    if (e == ERR_OK)
        e = check_free(step);
    if (e == ERR_OK && step->unreadable && step->method->route == METHOD_OWNER)
        e = apply_damaged(&step->context, step->op.entity, PLAYER_DAMAGE);
    if (e == ERR_OK && step->context.player != NULL)
        e = authority_apply(&step->context, step->handler);
    if (e == ERR_OK && step->op.id.text.size > 0 && !step->goes_on)
        e = version_check(&step->context, step->request, step->player.version - 1);
    if (e == ERR_OK)
        e = handle(step);
    if (e == ERR_OK && step->context.missing)
        e = ERR_NEED;
    if (e == ERR_OK) {
        step_committed(step);
        state_commit(applier->state);
        return ERR_OK;
    }
    CHECK(e == ERR_NEED || e == ERR_CONFLICT || e == ERR_INVALID);
    state_rollback(applier->state);
    meta_counts_put(&applier->meta, &counts);
    step->outcome->channel = (struct channel_effect){ 0 };
    if (e == ERR_NEED)
        return e;
    step_refused(step);
    stop_trying(step);
    return ERR_OK;
}

/* Decodes the request while the processor fetches the rows that are looked up next. */
static void unpack_request(struct step *step)
{
    struct row_key key;

    if (step->op.entity.size > 0) {
        row_key_player(&key, step->op.entity);
        state_prefetch(step->applier->state, row_key_slice(&key));
    }
    if (step->op.id.text.size > 0) {
        row_key_operation(&key, step->op.entity, &step->op.id);
        state_prefetch(step->applier->state, row_key_slice(&key));
    }
    step->request = arena_unpack(&step->applier->arena, step->method->request, step->op.request);
    if (step->request != NULL && step->handler->payload != NULL)
        step->op.payload = step->handler->payload(
            &step->applier->arena, &step->op,
            arena_unpack(&step->applier->arena, step->method->request, step->op.request));
}

/* Debts are declared by a currency's min_balance. */
static void look_for_debts(struct step *step)
{
    for (uint32_t i = 0; i < step->player.balance_count; i++) {
        const struct balance *balance = &step->player.balances[i];
        if (balance->amount >= 0)
            continue;
        const struct currency *currency =
            policy_find_currency(&step->applier->meta.policy, balance->currency);
        if (currency != NULL && balance->amount < currency->lowest_min)
            damage_note(step->context.damage, step->op.entity,
                        "a balance is negative that may not be");
    }
}

/* True: refused, since the player is quarantined or is to be. Seals and releases go through. */
static bool refuse_held_back(struct step *step)
{
    const struct meta *meta = &step->applier->meta;
    struct arena *arena = &step->applier->arena;

    if (step->method->route != METHOD_MUTATION ||
        (step->method->traits & METHOD_PASSES_REVIEW) != 0 || step->context.player == NULL)
        return false;
    look_for_debts(step);
    const struct quarantined *held =
        meta->quarantine_count > 0 ? meta_find_quarantined(meta, player_id(&step->player)) : NULL;
    if (held == NULL && !step->context.damage->found)
        return false;
    const char *reason = held != NULL ? held->reason : step->context.damage->reason;
    (void)refuse(arena, &step->refusal, CODE(QUARANTINED), "",
                 "the player is held back for review: %s; nothing was done", reason);
    refuse_unstored(step);
    return true;
}

/* What callers are told was written, no restore may pass over. What only operators may call is not
 * theirs to lose. */
static bool brings_rows(const struct step *step)
{
    const struct method_info *method = step->method;

    if (method->route == METHOD_MUTATION || step->op.method == METHOD_CHANNEL_DELIVER)
        return true;
    return step->context.version >= USE_APPLY_VERSION && method->route == METHOD_SHARD_WRITE &&
           (method->scopes & ~(unsigned)SCOPE_ADMIN) != 0;
}

/* True: the shard waits for the rows of a backup, and the entry has no effect. */
static bool refuse_restoring(struct step *step)
{
    struct shard_use *use = &step->applier->meta.use;

    if (use->kind == USE_EMPTY && brings_rows(step))
        use->kind = USE_SERVING;
    if (use->kind != USE_RESTORING || !restore_holds_back(step->op.method, step->context.version))
        return false;
    if (step->method->route == METHOD_OWNER)
        return true;
    (void)refuse(&step->applier->arena, &step->refusal, CODE(UNAVAILABLE), "",
                 "shard %u is being restored from a backup; nothing was done",
                 step->applier->shard);
    step->refusal.retry_after_ms = RESTORING_RETRY_MS;
    refuse_unstored(step);
    return true;
}

/*
 * An entry that this program cannot make sense of has no effect, here as on every replica: it is
 * counted, operators are told, and the shard goes on. A replica that alone cannot read it differs
 * from then on in its outcome hash, and is quarantined.
 */
static void entry_unapplied(struct step *step, const char *why)
{
    struct arena *arena = &step->applier->arena;

    damage_note(&step->applier->damage, step->op.entity, why);
    (void)refuse(arena, &step->refusal, CODE(INTERNAL), "",
                 "the log's entry cannot be applied: %s; nothing was done", why);
    step->outcome->unapplied = true;
    refuse_unstored(step);
}

/* False: this program knows no such operation, and the entry was skipped. */
static bool operation_open(struct step *step)
{
    const struct applier *applier = step->applier;

    if (op_decode(step->entry->body, &step->op) != ERR_OK) {
        step->op = (struct op){ 0 };
        entry_unapplied(step, "an entry of the log is malformed");
        return false;
    }
    step->op.shard_count = applier->shard_count;
    step->method = method_find(step->op.method);
    step->handler = handler_find(applier->handlers, step->op.method);
    if (step->method == NULL || step->handler == NULL || step->handler->handle == NULL) {
        entry_unapplied(step, "an entry of the log is of an unknown method");
        return false;
    }
    return true;
}

static err apply_operation(struct applier *applier, const struct entry *entry, struct need *need,
                           struct outcome *outcome)
{
    struct step step = { .applier = applier, .entry = entry, .outcome = outcome };
    bool done = false;
    err e = ERR_OK;

    if (!operation_open(&step))
        return ERR_OK;
    applier_note_rows_put(applier, step.op.method);
    outcome->method = step.op.method;
    outcome->entity = step.op.entity;
    step.context = (struct apply_context){
        .arena = &applier->arena,
        .scratch = &applier->row,
        .state = applier->state,
        .meta = &applier->meta,
        .need = need,
        .op = &step.op,
        .dot = entry->dot,
        .owner_ms = entry->owner_ms,
        .shard = applier->shard,
        .replica = applier->replica,
        .version = version_in_force(applier),
        .refusal = &step.refusal,
        .freed = &step.freed,
        .events = &step.events,
        .decided = &step.decided,
        .channel = &outcome->channel,
        .damage = &step.damage,
        .handlers = applier->handlers,
    };
    unpack_request(&step);
    if (step.request == NULL) {
        entry_unapplied(&step, "the request of an entry of the log is malformed");
        return ERR_OK;
    }
    if (refuse_restoring(&step))
        return ERR_OK;
    if (step.op.id.text.size > 0)
        e = deduplicate(&step, &done);
    else
        e = player_load(&step);
    if (e == ERR_OK && !done && !refuse_held_back(&step))
        e = evaluate(&step);
    if (e == ERR_OK && step.damage.found)
        applier->damage = step.damage;
    if (e == ERR_OK && !done)
        applier_note_upkeep(applier, &step.op, step.request, step.response);
    return e;
}

static void apply_start(struct applier *applier, const struct entry *entry)
{
    struct meta *meta = &applier->meta;
    struct start start;

    CHECK(start_decode(entry->body, &start) == ERR_OK);
    CHECK(start.base_index == meta->applied_index);
    meta->vector = start.base;
    meta->membership = start.membership;
    meta->generation = start.generation;
    if (meta->applied_index > 0 && meta->apply_version < EVENT_APPLY_VERSION &&
        start.apply_version >= EVENT_APPLY_VERSION)
        meta->events.unlearned = true;
    meta->apply_version = start.apply_version;
}

static void apply_cut(struct applier *applier, const struct entry *entry)
{
    struct reader reader = reader_from(entry->body);
    uint64_t cut_id = read_u64(&reader);

    if (reader_finish(&reader) == ERR_OK)
        audit_cut(&applier->meta, cut_id);
    else
        damage_note(&applier->damage, (struct slice){ 0 }, "a cut in the log is malformed");
}

static void advance(struct applier *applier, const struct entry *entry,
                    const struct outcome *outcome)
{
    struct meta *meta = &applier->meta;

    vector_append(&meta->vector, entry->dot.epoch, entry->dot.owner);
    meta->applied_index = entry->index;
    meta->applied_dot = entry->dot;
    meta->applied_hash = entry->hash;
    meta->owner_ms = entry->owner_ms;
    meta->outcome_hash = outcome_fold(meta->outcome_hash, outcome, version_in_force(applier));
    if (meta->events.count == 0)
        meta->events.oldest_ms = 0;
    else if (meta->events.oldest_ms == 0)
        meta->events.oldest_ms = entry->owner_ms;
}

err applier_apply(struct applier *applier, const struct entry *entry, struct need *need,
                  struct outcome *ret_outcome)
{
    struct outcome outcome = { .kind = OUTCOME_NONE, .dot = entry->dot };
    err e = ERR_OK;

    CHECK(entry->index == applier->meta.applied_index + 1);
    CHECK(entry->owner_ms >= applier->meta.owner_ms);
    arena_reset(&applier->arena);
    applier->applying = (struct source_dot){ entry->dot.epoch, entry->dot.counter };
    switch (entry->kind) {
    case ENTRY_START:
        apply_start(applier, entry);
        break;
    case ENTRY_OP:
        e = apply_operation(applier, entry, need, &outcome);
        break;
    case ENTRY_CHECK:
        break;
    case ENTRY_CUT:
        apply_cut(applier, entry);
        break;
    }
    if (e != ERR_OK) {
        CHECK(e == ERR_NEED);
        need->load_generation = state_load_generation(applier->state);
        return e;
    }
    advance(applier, entry, &outcome);
    *ret_outcome = outcome;
    return ERR_OK;
}
