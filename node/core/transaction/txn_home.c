#include "node/core/transaction/txn_home.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/audit.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "node/core/transaction/txn_delta.h"
#include "runtime/base/check.h"

#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name
#define STATE(name)    HOLDFAST__INTERNAL__V1__TXN_STATE__TXN_STATE_##name

typedef Holdfast__Internal__V1__TxnRow txn_row;
typedef Holdfast__Internal__V1__TxnMember txn_member;
typedef Holdfast__Internal__V1__TxnPart txn_part;
typedef Holdfast__Internal__V1__TxnTaken txn_taken;
typedef Holdfast__Internal__V1__TxnGive txn_give;
typedef Holdfast__Internal__V1__TxnIntent txn_intent;
typedef Holdfast__V1__TransactionOutcome txn_outcome;

/* ---- what came of it ---- */

/* NULL: that player's shard did not prepare, or its vote was of another. */
static const txn_taken *taken_of(const txn_row *row, const char *player_id)
{
    for (size_t i = 0; i < row->n_members; i++) {
        const Holdfast__Internal__V1__TxnVote *vote = row->members[i]->vote;
        for (size_t j = 0; vote != NULL && j < vote->n_taken; j++) {
            if (strcmp(vote->taken[j]->player_id, player_id) == 0)
                return vote->taken[j];
        }
    }
    return NULL;
}

/* NULL: it was not taken from anybody. */
static Holdfast__V1__Item *item_of(const txn_row *row, const char *uid)
{
    for (size_t i = 0; i < row->n_members; i++) {
        const Holdfast__Internal__V1__TxnVote *vote = row->members[i]->vote;
        for (size_t j = 0; vote != NULL && j < vote->n_taken; j++) {
            for (size_t k = 0; k < vote->taken[j]->n_items; k++) {
                if (strcmp(vote->taken[j]->items[k]->uid, uid) == 0)
                    return vote->taken[j]->items[k];
            }
        }
    }
    return NULL;
}

static const txn_part *part_of(const txn_row *row, const char *player_id)
{
    for (size_t i = 0; i < row->n_parts; i++) {
        if (strcmp(row->parts[i]->player_id, player_id) == 0)
            return row->parts[i];
    }
    return NULL;
}

/* Every player was prepared, and every item that one is to get was taken from another; or a vote or
 * the row itself is damaged. */
static bool can_commit(const txn_row *row)
{
    for (size_t i = 0; i < row->n_parts; i++) {
        const txn_part *part = row->parts[i];
        if (taken_of(row, part->player_id) == NULL)
            return false;
        for (size_t j = 0; j < part->n_receive_uids; j++) {
            if (item_of(row, part->receive_uids[j]) == NULL)
                return false;
        }
    }
    for (size_t i = 0; i < row->n_members; i++) {
        const Holdfast__Internal__V1__TxnVote *vote = row->members[i]->vote;
        for (size_t j = 0; vote != NULL && j < vote->n_taken; j++) {
            if (part_of(row, vote->taken[j]->player_id) == NULL)
                return false;
        }
    }
    return true;
}

/* The items that come to a player from others; none if the transaction is aborted. */
static txn_give *give_of(struct arena *arena, const txn_row *row, const char *player_id,
                         bool commit)
{
    txn_give *give =
        (txn_give *)arena_message(arena, &holdfast__internal__v1__txn_give__descriptor);

    give->player_id = text_lend(player_id);
    if (!commit)
        return give;
    const txn_part *part = part_of(row, player_id);
    give->n_items = part->n_receive_uids;
    give->items = arena_alloc(arena, sizeof *give->items * (give->n_items + 1));
    for (size_t i = 0; i < give->n_items; i++)
        give->items[i] = item_of(row, part->receive_uids[i]);
    return give;
}

static txn_outcome **outcomes_of(struct arena *arena, const txn_row *row)
{
    txn_outcome **outcomes =
        arena_messages(arena, &holdfast__v1__transaction_outcome__descriptor, row->n_parts);

    for (size_t i = 0; i < row->n_parts; i++) {
        const txn_taken *taken = taken_of(row, row->parts[i]->player_id);
        txn_give *give = give_of(arena, row, row->parts[i]->player_id, true);
        outcomes[i]->player_id = row->parts[i]->player_id;
        outcomes[i]->n_balances = taken->n_balances;
        outcomes[i]->balances = taken->balances;
        outcomes[i]->n_reserved = taken->n_reserved;
        outcomes[i]->reserved = taken->reserved;
        outcomes[i]->n_items = give->n_items;
        outcomes[i]->items = give->items;
        outcomes[i]->n_item_uids = taken->n_mint_uids;
        outcomes[i]->item_uids = taken->mint_uids;
    }
    return outcomes;
}

/* ---- EXECUTE ---- */

/* A transaction while its first entry is applied. */
struct execution {
    struct apply_context *context;
    const struct txn_plan *plan;
    struct txn_terms terms;
    txn_row row;
    uint32_t shards[TXN_PLAYERS_MAX]; /* By part. */
    struct txn_player *players[TXN_PLAYERS_MAX];
    bool several_shards;
};

static txn_member *member_get(struct execution *x, uint32_t shard)
{
    for (size_t i = 0; i < x->row.n_members; i++) {
        if (x->row.members[i]->shard == shard)
            return x->row.members[i];
    }
    txn_member *member = (txn_member *)arena_message(
        x->context->arena, &holdfast__internal__v1__txn_member__descriptor);
    member->shard = shard;
    member->state = STATE(OPEN);
    x->row.members[x->row.n_members++] = member;
    return member;
}

/* What of a part is needed to tell what the whole makes (txn_delta.h). */
static void part_keep_goods(txn_part *kept, const txn_part *part)
{
    kept->n_take = part->n_take;
    kept->take = part->take;
    kept->n_give = part->n_give;
    kept->give = part->give;
    kept->n_take_uids = part->n_take_uids;
    kept->take_uids = part->take_uids;
    kept->n_take_to = part->n_take_to;
    kept->take_to = part->take_to;
}

/* Who takes part, by shard; the home shard first, since the home player is. */
static void members_find(struct execution *x)
{
    const struct txn_plan *plan = x->plan;
    struct apply_context *context = x->context;

    x->row.members = arena_alloc(context->arena, sizeof *x->row.members * (plan->part_count + 1));
    x->row.parts = arena_messages(context->arena, &holdfast__internal__v1__txn_part__descriptor,
                                  plan->part_count);
    x->row.n_parts = plan->part_count;
    for (size_t i = 0; i < plan->part_count; i++) {
        x->shards[i] =
            channel_shard_of(context->arena, plan->parts[i]->player_id, context->op->shard_count);
        (void)member_get(x, x->shards[i]);
        x->row.parts[i]->player_id = plan->parts[i]->player_id;
        x->row.parts[i]->n_receive_uids = plan->parts[i]->n_receive_uids;
        x->row.parts[i]->receive_uids = plan->parts[i]->receive_uids;
        part_keep_goods(x->row.parts[i], plan->parts[i]);
    }
    CHECK(x->shards[0] == context->shard);
    x->several_shards = x->row.n_members > 1;
}

/* The home's own players. */
static err prepare_here(struct execution *x)
{
    const struct txn_plan *plan = x->plan;
    struct arena *arena = x->context->arena;
    Holdfast__Internal__V1__TxnVote *vote = (Holdfast__Internal__V1__TxnVote *)arena_message(
        arena, &holdfast__internal__v1__txn_vote__descriptor);
    err result = ERR_OK;

    for (size_t i = 0; i < plan->part_count; i++) {
        if (x->shards[i] != x->context->shard)
            continue;
        err e =
            txn_player_load(x->context, plan->parts[i]->player_id, x->terms.op_id, &x->players[i]);
        if (e == ERR_NEED || result == ERR_OK)
            result = e;
    }
    vote->taken =
        arena_messages(arena, &holdfast__internal__v1__txn_taken__descriptor, plan->part_count);
    for (size_t i = 0; i < plan->part_count && result == ERR_OK; i++) {
        if (x->players[i] != NULL)
            result = txn_part_prepare(x->players[i], plan->parts[i], &x->terms,
                                      vote->taken[vote->n_taken++]);
    }
    x->row.members[0]->state = STATE(PREPARED);
    x->row.members[0]->vote = vote;
    return result;
}

/* All on one shard: decided as soon as prepared. */
static err finish_here(struct execution *x)
{
    struct arena *arena = x->context->arena;

    for (size_t i = 0; i < x->plan->part_count; i++) {
        txn_intent intent = HOLDFAST__INTERNAL__V1__TXN_INTENT__INIT;
        txn_part *part = x->plan->parts[i];
        txn_give *give = give_of(arena, &x->row, part->player_id, true);
        intent.part = part;
        intent.taken = (txn_taken *)(uintptr_t)taken_of(&x->row, part->player_id);
        intent.reason = text_lend(x->terms.reason);
        err e = txn_part_finish(x->players[i], &intent, true, give->n_items, give->items);
        if (e != ERR_OK)
            return e;
        txn_player_store(x->players[i]);
    }
    audit_made(x->context, txn_delta_made(arena, &x->row));
    return ERR_OK;
}

static err send_prepare(struct execution *x, txn_member *member)
{
    Holdfast__Internal__V1__TxnPrepare prepare = HOLDFAST__INTERNAL__V1__TXN_PREPARE__INIT;
    struct apply_context *context = x->context;
    const struct txn_plan *plan = x->plan;

    prepare.txn = txn_ref_message(context->arena, x->terms.ref);
    prepare.player_id = x->row.player_id;
    prepare.reason = text_lend(plan->reason);
    prepare.parts = arena_alloc(context->arena, sizeof *prepare.parts * plan->part_count);
    for (size_t i = 0; i < plan->part_count; i++) {
        if (x->shards[i] == member->shard)
            prepare.parts[prepare.n_parts++] = plan->parts[i];
    }
    const struct channel_record record = {
        .to_player_id = prepare.parts[0]->player_id,
        .player_id = x->row.player_id,
        .op_id = x->row.op_id,
        .method = context->op->method,
        .attempt = context->op->attempt,
        .prepare = &prepare,
    };
    return channel_record_open(context, member->shard, &record, &member->seq);
}

static err send_prepares(struct execution *x)
{
    struct apply_context *context = x->context;
    err result = ERR_OK;

    for (size_t i = 1; i < x->row.n_members; i++) {
        err e = send_prepare(x, x->row.members[i]);
        if (e != ERR_OK && result != ERR_NEED)
            result = e;
    }
    if (result != ERR_OK)
        return result;
    for (size_t i = 0; i < x->plan->part_count; i++) {
        if (x->players[i] != NULL)
            txn_player_store(x->players[i]);
    }
    x->row.state = STATE(OPEN);
    txn_add(context, x->terms.ref, &x->row);
    context->pending = true;
    context->channel->destination = x->terms.ref.destination;
    context->channel->opened_seq = x->terms.ref.seq;
    return ERR_OK;
}

static bool changes_goods(const txn_part *part)
{
    return part->n_take + part->n_take_uids + part->n_give + part->n_mint + part->n_receive_uids >
           0;
}

/* So that the ledger of each player names the others. */
static void name_others(struct apply_context *context, const struct txn_plan *plan)
{
    if (context->version < COUNTERPART_APPLY_VERSION)
        return;
    for (size_t i = 0; i < plan->part_count; i++) {
        txn_part *part = plan->parts[i];
        part->others = arena_alloc(context->arena, sizeof *part->others * TXN_PLAYERS_MAX);
        for (size_t j = 0; j < plan->part_count; j++) {
            if (j != i && changes_goods(plan->parts[j]))
                part->others[part->n_others++] = plan->parts[j]->player_id;
        }
    }
}

err txn_execute(struct apply_context *context, const struct txn_plan *plan, size_t *ret_count,
                txn_outcome ***ret_outcomes)
{
    struct execution x = {
        .context = context,
        .plan = plan,
        .terms = { .reason = plan->reason },
        .row = HOLDFAST__INTERNAL__V1__TXN_ROW__INIT,
    };

    CHECK(plan->part_count <= TXN_PLAYERS_MAX);
    x.terms.op_id = arena_text(context->arena, context->op->id.text);
    x.row.op_id = text_lend(x.terms.op_id);
    x.row.player_id = plan->parts[0]->player_id;
    *ret_count = 0;
    members_find(&x);
    name_others(context, plan);
    if (x.several_shards) {
        x.terms.ref.home = context->shard;
        x.terms.ref.destination = x.row.members[1]->shard;
        err e = channel_next_seq(context, x.terms.ref.destination, &x.terms.ref.seq);
        if (e != ERR_OK)
            return e;
    }
    err e = prepare_here(&x);
    if (e != ERR_OK)
        return e;
    if (x.several_shards)
        return send_prepares(&x);
    e = finish_here(&x);
    *ret_count = x.row.n_parts;
    *ret_outcomes = outcomes_of(context->arena, &x.row);
    return e;
}

void txn_execute_footprint(const struct op *op, const struct txn_plan *plan, struct need *keys)
{
    struct arena arena = { 0 };
    struct row_key key;

    for (size_t i = 0; i < plan->part_count && op->shard_count > 0; i++) {
        uint32_t shard = channel_shard_of(&arena, plan->parts[i]->player_id, op->shard_count);
        if (shard == channel_shard_of(&arena, plan->parts[0]->player_id, op->shard_count)) {
            txn_part_footprint(plan->parts[i], keys);
            continue;
        }
        row_key_channel(&key, true, shard);
        need_add_key(keys, row_key_slice(&key));
    }
    arena_deinit(&arena);
}

/* ---- DECIDE ---- */

/* A transaction when its votes come in. */
struct decision {
    struct apply_context *context; /* Of the entry. */
    struct apply_context home;     /* As if the entry were its operation's own. */
    struct op op;
    struct txn_ref ref;
    txn_row *row;
    bool commit, sealed;
    bool told; /* `settled` is for the waiting caller. */
    bool owed; /* A player of this shard could not be finished yet. */
    struct settled *settled;
};

/* ERR_NEED; ERR_CORRUPT: its row cannot be read; ERR_NOT_FOUND: there is none. */
static err load(struct decision *d)
{
    enum state_found found =
        txn_find(d->context->state, d->context->arena, d->ref, d->context->need, &d->row);

    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found ==
        STATE_ABSENT) /* It stands until every member has voted; or it was repaired away. */
        return ERR_NOT_FOUND;
    if (d->row == NULL)
        return ERR_CORRUPT;
    const char *why;
    d->op.entity = entity_of_player(d->context->arena, d->row->player_id);
    (void)!op_id_parse(slice_from_text(d->row->op_id), &d->op.id, &why); /* It was checked. */
    d->home = *d->context;
    d->home.op = &d->op;
    return ERR_OK;
}

/* A member that has prepared learns the decision. */
static err send_finish(struct decision *d, const txn_member *member)
{
    Holdfast__Internal__V1__TxnFinish finish = HOLDFAST__INTERNAL__V1__TXN_FINISH__INIT;
    struct arena *arena = d->context->arena;
    uint64_t seq;

    finish.txn = txn_ref_message(arena, d->ref);
    finish.commit = d->commit;
    finish.n_gives = member->vote->n_taken;
    finish.gives = arena_alloc(arena, sizeof *finish.gives * (finish.n_gives + 1));
    for (size_t i = 0; i < finish.n_gives; i++)
        finish.gives[i] = give_of(arena, d->row, member->vote->taken[i]->player_id, d->commit);
    const struct channel_record record = {
        .to_player_id = finish.gives[0]->player_id,
        .player_id = d->row->player_id,
        .op_id = d->row->op_id,
        .method = METHOD_EXECUTE_TRANSACTION,
        .finish = &finish,
        .delta = d->commit ? txn_delta_of_finish(arena, d->row, member) : NULL,
    };
    return channel_record_open(d->context, member->shard, &record, &seq);
}

/* A player whose rows cannot be read stays as it is: the others do not wait for its repair, which
 * finds the decision in the transaction's row. ERR_NEED. */
static err finish_own(struct decision *d, const txn_member *member)
{
    struct arena *arena = d->context->arena;
    err result = ERR_OK;

    for (size_t i = 0; i < member->vote->n_taken; i++) {
        const txn_give *give = give_of(arena, d->row, member->vote->taken[i]->player_id, d->commit);
        uint32_t mark = state_mark(d->context->state);
        err e = txn_intent_finish(d->context, d->ref, d->commit, give);
        if (e == ERR_OK || e == ERR_NOT_FOUND)
            continue;
        state_rollback_to(d->context->state, mark);
        if (e == ERR_NEED)
            result = e;
        else
            d->owed = true;
    }
    return result;
}

static err tell_members(struct decision *d)
{
    err result = ERR_OK;

    for (size_t i = 0; i < d->row->n_members; i++) {
        const txn_member *member = d->row->members[i];
        err e = ERR_OK;
        if (member->shard == d->context->shard)
            e = finish_own(d, member);
        else if (member->state == STATE(PREPARED))
            e = send_finish(d, member);
        else if (member->state == STATE(OPEN))
            e = channel_record_cancel(d->context, member->shard, member->seq);
        if (e != ERR_OK)
            result = e;
    }
    return result;
}

static struct slice committed_body(const struct decision *d)
{
    Holdfast__V1__ExecuteTransactionResponse response =
        HOLDFAST__V1__EXECUTE_TRANSACTION_RESPONSE__INIT;

    /* A SwapResponse has the same bytes. */
    response.n_players = d->row->n_parts;
    response.players = outcomes_of(d->context->arena, d->row);
    return arena_pack(d->context->arena, &response.base);
}

static struct slice sealed_body(struct arena *arena)
{
    struct refusal refusal = { 0 };

    (void)refuse(arena, &refusal, CODE(OPERATION_ABORTED), "op_id",
                 "the operation was sealed before it was carried out; it never will be");
    refusal.final = true;
    return refusal_pack(&refusal, arena);
}

/* The operation's one outcome. A conflict is none, nor is that somebody is held back: the same
 * attempt may be carried out later. */
static err outcome_decide(struct decision *d)
{
    struct arena *arena = d->context->arena;
    Holdfast__Internal__V1__Refusal *refusal = d->row->refusal;
    struct outcome_row row;
    struct slice body;

    enum state_found found =
        outcome_row_find(d->context->state, d->op.entity, &d->op.id, d->context->need, &row);
    if (found == STATE_MISSING)
        return ERR_NEED;
    /* Not pruned while it is PENDING; so it is damaged, and the answer says that. */
    if (found == STATE_ABSENT || row.state != OUTCOME_ROW_PENDING) {
        damage_note(d->context->damage, d->op.entity, OUTCOME_DAMAGE);
        d->told = false;
        if (d->commit)
            audit_made(d->context, txn_delta_made(arena, d->row));
        return ERR_OK;
    }
    d->told = true;
    bool recorded = d->commit || d->sealed ||
                    (refusal->code != CODE(TXN_CONFLICT) && refusal->code != CODE(QUARANTINED));
    if (d->commit) {
        audit_made(d->context, txn_delta_made(arena, d->row));
        body = committed_body(d);
    } else if (d->sealed) {
        body = sealed_body(arena);
    } else {
        refusal->final = recorded;
        body = arena_pack(arena, &refusal->base);
    }
    *d->settled = (struct settled){
        .destination = d->ref.destination,
        .seq = d->ref.seq,
        .refused = !d->commit,
        .body = body,
        .dot = row.dot,
        .version = row.version,
        .method = row.method,
        .cancelled = d->sealed,
        .entity = d->op.entity,
        .op_id = d->op.id.text,
    };
    if (!recorded)
        return outcome_row_withdraw(&d->home, &d->op.id);
    row.state = d->commit   ? OUTCOME_ROW_COMMITTED
                : d->sealed ? OUTCOME_ROW_ABORTED
                            : OUTCOME_ROW_REFUSED;
    if (d->sealed)
        row.attempt = UINT32_MAX;
    row.decided_at_ms = d->context->owner_ms;
    row.body = d->sealed ? (struct slice){ 0 } : body;
    outcome_row_store(&d->home, &d->op.id, false, &row);
    return ERR_OK;
}

static err decide(struct decision *d)
{
    err told = tell_members(d);
    err stored = outcome_decide(d);

    d->row->state = d->commit ? STATE(PREPARED) : STATE(ABORTED);
    return told != ERR_OK ? told : stored;
}

static bool all_are(const txn_row *row, Holdfast__Internal__V1__TxnState state)
{
    for (size_t i = 0; i < row->n_members; i++) {
        if (row->members[i]->state != state)
            return false;
    }
    return true;
}

static bool any_is_open(const txn_row *row)
{
    for (size_t i = 0; i < row->n_members; i++) {
        if (row->members[i]->state == STATE(OPEN))
            return true;
    }
    return false;
}

/* Goes when no vote can come any more, and no player waits for its repair. */
static void row_keep(struct decision *d)
{
    if (any_is_open(d->row) || d->owed)
        txn_store(d->context, d->ref, d->row);
    else
        txn_delete(d->context, d->ref);
}

/* NULL: the row knows no such member. */
static txn_member *voter_of(txn_row *row, uint64_t seq, uint32_t shard)
{
    for (size_t i = 0; i < row->n_members; i++) {
        if (row->members[i]->shard == shard && row->members[i]->seq == seq)
            return row->members[i];
    }
    return NULL;
}

static void take_vote(struct decision *d, txn_member *member,
                      const Holdfast__Internal__V1__ChannelResult *result)
{
    if (result->decision == DECISION(APPLIED)) {
        member->state = STATE(PREPARED);
        member->vote = result->vote;
        return;
    }
    member->state = STATE(ABORTED);
    if (d->row->refusal == NULL)
        d->row->refusal = result->refusal;
    d->sealed = d->row->refusal == NULL; /* A repair had it cancelled before it was voted on. */
}

/* Votes and row do not fit one another: nothing is taken, and its home player is held back. */
static void refuse_decision(struct decision *d)
{
    struct refusal refusal = { 0 };
    struct arena *arena = d->context->arena;

    (void)refuse_damaged(arena, &refusal, d->context->damage, d->op.entity, TXN_DAMAGE);
    d->row->refusal = (Holdfast__Internal__V1__Refusal *)arena_unpack(
        arena, &holdfast__internal__v1__refusal__descriptor, refusal_pack(&refusal, arena));
}

/*
 * Nothing is known of the transaction but that it was not committed: that needs every vote, and
 * here is one that had not come yet. So it is aborted: this member and the home player get back
 * what was taken from them; of other players of this shard only the row knew. The outcome stays
 * PENDING until a person settles it (docs/runbooks/HoldfastRowsUnreadable.md).
 */
static err vote_on_unreadable(struct decision *d, const Holdfast__Internal__V1__OutboxRow *row,
                              const Holdfast__Internal__V1__ChannelResult *result)
{
    const char *home = row->credit->prepare->player_id;
    txn_row known = HOLDFAST__INTERNAL__V1__TXN_ROW__INIT;
    txn_member member = HOLDFAST__INTERNAL__V1__TXN_MEMBER__INIT;
    err e = ERR_OK;

    damage_note(d->context->damage, entity_of_player(d->context->arena, row->player_id),
                TXN_DAMAGE);
    known.player_id = text_lend(home);
    known.op_id = row->credit->op_id;
    d->row = &known;
    d->commit = false;
    member.shard = d->context->channel->destination;
    member.vote = result->vote;
    if (result->decision == DECISION(APPLIED))
        e = send_finish(d, &member);
    const txn_give *give = give_of(d->context->arena, &known, home, false);
    uint32_t mark = state_mark(d->context->state);
    err own = txn_intent_finish(d->context, d->ref, false, give);
    if (own != ERR_OK)
        state_rollback_to(d->context->state,
                          mark); /* It was finished before, or is damaged, too. */
    return own == ERR_NEED ? own : e;
}

err txn_vote(struct apply_context *context, const Holdfast__Internal__V1__OutboxRow *row,
             const Holdfast__Internal__V1__ChannelResult *result, struct settled *ret_settled,
             bool *ret_decided)
{
    const Holdfast__Internal__V1__ChannelCredit *credit = row->credit;
    struct decision d = {
        .context = context,
        .ref = txn_ref_of(credit->prepare->txn),
        .settled = ret_settled,
    };
    txn_member *member = NULL;

    *ret_decided = false;
    err e = load(&d);
    if (e == ERR_OK)
        member = voter_of(d.row, credit->seq, context->channel->destination);
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK || member == NULL || member->state != STATE(OPEN))
        return vote_on_unreadable(&d, row, result);
    take_vote(&d, member, result);
    if (d.row->state == STATE(OPEN)) {
        bool all = all_are(d.row, STATE(PREPARED));
        d.commit = all && can_commit(d.row);
        if (all && !d.commit)
            refuse_decision(&d);
        if (all || member->state == STATE(ABORTED)) {
            e = decide(&d);
            *ret_decided = d.told;
        }
    } else if (member->state == STATE(PREPARED)) {
        e = send_finish(&d, member); /* Too late: it was decided without it. */
    }
    if (e == ERR_OK)
        row_keep(&d);
    return e;
}

err txn_seal(struct apply_context *context, struct slice ref)
{
    struct channel_effect *effect = context->channel;
    struct decision d = { .context = context, .sealed = true };
    struct channel_ref record;

    if (!channel_ref_decode(ref, &record))
        return apply_damaged(context, context->op->entity, OUTCOME_DAMAGE);
    d.ref = (struct txn_ref){ context->shard, record.shard, record.seq };
    effect->settled = arena_alloc(context->arena, sizeof *effect->settled);
    d.settled = effect->settled;
    err e = load(&d);
    /* Not OPEN, its operation would not be PENDING. */
    if (e == ERR_CORRUPT || (e == ERR_OK && d.row->state != STATE(OPEN)))
        return apply_damaged(context, context->op->entity, TXN_DAMAGE);
    if (e == ERR_OK)
        e = decide(&d);
    if (e != ERR_OK)
        return e;
    row_keep(&d);
    effect->settled_count = d.told;
    effect->destination = d.ref.destination;
    effect->touched = true;
    effect->several = true;
    return ERR_OK;
}

/* ---- REPAIR ---- */

/* *ret_held: an intent of the transaction still holds a player of this shard. ERR_NEED. */
static err look_for_held(struct decision *d, bool *ret_held)
{
    struct apply_context *context = d->context;
    err result = ERR_OK;

    *ret_held = false;
    for (size_t i = 0; i < d->row->n_parts; i++) {
        struct slice entity = entity_of_player(context->arena, d->row->parts[i]->player_id);
        txn_intent *intent = NULL;
        enum state_found found =
            intent_find(context->state, context->arena, entity, context->need, &intent);
        if (found == STATE_MISSING)
            result = ERR_NEED;
        *ret_held |= found == STATE_PRESENT &&
                     (intent == NULL || txn_ref_equal(txn_ref_of(intent->txn), d->ref));
    }
    return result;
}

err txn_finish_owed(struct apply_context *context, struct txn_ref ref, bool *ret_finished)
{
    const char *player = arena_text(context->arena, player_id(context->player));
    struct decision d = { .context = context, .ref = ref };

    *ret_finished = false;
    if (ref.home != context->shard)
        return ERR_OK; /* FINISH comes again. */
    err e = load(&d);
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK || d.row->state == STATE(OPEN) || part_of(d.row, player) == NULL)
        return ERR_OK;
    d.commit = d.row->state == STATE(PREPARED);
    if (d.commit && !can_commit(d.row))
        return apply_damaged(context, context->op->entity, TXN_DAMAGE);
    e = txn_intent_finish(context, ref, d.commit, give_of(context->arena, d.row, player, d.commit));
    if (e == ERR_OK)
        e = look_for_held(&d, &d.owed);
    if (e != ERR_OK)
        return e == ERR_NOT_FOUND ? ERR_OK : e;
    *ret_finished = true;
    row_keep(&d);
    return ERR_OK;
}

err txn_give_back(struct apply_context *context, struct txn_ref ref)
{
    const char *player = arena_text(context->arena, player_id(context->player));
    const txn_row unknown = HOLDFAST__INTERNAL__V1__TXN_ROW__INIT;

    err e =
        txn_intent_finish(context, ref, false, give_of(context->arena, &unknown, player, false));
    return e == ERR_NOT_FOUND ? ERR_OK : e;
}
