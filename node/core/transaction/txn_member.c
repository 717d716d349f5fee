#include "node/core/transaction/txn_member.h"

#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/goods_sound.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"

#define DECISION(name)   HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name
#define PLACES_OF_RECORD 256u /* UIDs that one record may use up; TXN_ITEMS_MAX and to spare. */

typedef Holdfast__Internal__V1__ChannelCredit channel_credit;
typedef Holdfast__Internal__V1__ChannelResult channel_result;
typedef Holdfast__Internal__V1__TxnPrepare txn_prepare;
typedef Holdfast__Internal__V1__TxnPart txn_part;

static err prepare_parts(struct apply_context *context, const txn_prepare *request,
                         struct txn_terms *terms, Holdfast__Internal__V1__TxnVote *vote)
{
    for (size_t i = 0; i < request->n_parts; i++) {
        struct txn_player *player;
        err e = txn_player_load(context, request->parts[i]->player_id, terms->op_id, &player);
        if (e == ERR_OK)
            e = txn_part_prepare(player, request->parts[i], terms, vote->taken[i]);
        if (e != ERR_OK)
            return e;
        txn_player_store(player);
    }
    return ERR_OK;
}

err txn_member_prepare(struct apply_context *context, uint32_t place, const channel_credit *credit,
                       channel_result *result)
{
    const txn_prepare *request = credit->prepare;
    struct arena *arena = context->arena;
    struct txn_terms terms = {
        .ref = txn_ref_of(request->txn),
        .op_id = credit->op_id,
        .reason = request->reason,
        .uid_place = place * PLACES_OF_RECORD,
    };
    Holdfast__Internal__V1__TxnVote *vote = (Holdfast__Internal__V1__TxnVote *)arena_message(
        arena, &holdfast__internal__v1__txn_vote__descriptor);
    uint32_t mark = state_mark(context->state);

    vote->n_taken = request->n_parts;
    vote->taken =
        arena_messages(arena, &holdfast__internal__v1__txn_taken__descriptor, request->n_parts);
    err e = prepare_parts(context, request, &terms, vote);
    if (e == ERR_OK) {
        result->decision = DECISION(APPLIED);
        result->vote = vote;
        return ERR_OK;
    }
    state_rollback_to(context->state, mark);
    if (e == ERR_NEED)
        return e;
    result->decision = DECISION(REJECTED);
    result->refusal = (Holdfast__Internal__V1__Refusal *)arena_unpack(
        arena, &holdfast__internal__v1__refusal__descriptor, refusal_pack(context->refusal, arena));
    return ERR_OK;
}

/* A player whose rows cannot be read is left as it is, and so is the record: the others are
 * finished now, and found so when the record comes again. */
err txn_member_finish(struct apply_context *context, const channel_credit *credit,
                      channel_result *result)
{
    const Holdfast__Internal__V1__TxnFinish *request = credit->finish;
    struct txn_ref ref = txn_ref_of(request->txn);
    err result_e = ERR_OK;

    result->decision = DECISION(APPLIED);
    for (size_t i = 0; i < request->n_gives; i++) {
        uint32_t mark = state_mark(context->state);
        err e = txn_intent_finish(context, ref, request->commit, request->gives[i]);
        if (e == ERR_OK || e == ERR_NOT_FOUND)
            continue;
        state_rollback_to(context->state, mark);
        if (e == ERR_NEED)
            result_e = e; /* Go on, so that every missing row is noted. */
        else
            result->decision = DECISION(HELD);
    }
    return result_e;
}

void txn_member_footprint(const channel_credit *credit, struct need *keys)
{
    struct arena arena = { 0 };
    struct row_key key;

    for (size_t i = 0; credit->prepare != NULL && i < credit->prepare->n_parts; i++)
        txn_part_footprint(credit->prepare->parts[i], keys);
    for (size_t i = 0; credit->finish != NULL && i < credit->finish->n_gives; i++) {
        struct slice entity = entity_of_player(&arena, credit->finish->gives[i]->player_id);
        row_key_player(&key, entity);
        need_add_key(keys, row_key_slice(&key));
        row_key_intent(&key, entity);
        need_add_key(keys, row_key_slice(&key));
    }
    arena_deinit(&arena);
}

static bool ref_is_sound(const Holdfast__Internal__V1__TxnRef *ref, uint32_t source)
{
    return ref != NULL && ref->home == source && ref->destination <= UINT16_MAX && ref->seq > 0;
}

static bool checks_are_sound(const txn_part *part)
{
    for (size_t i = 0; i < part->n_checks; i++) {
        const Holdfast__V1__TransactionCheck *check = part->checks[i];
        char *uid = check->check_case == HOLDFAST__V1__TRANSACTION_CHECK__CHECK_ITEM_UID
                        ? check->item_uid
                        : NULL;
        if (check->check_case == HOLDFAST__V1__TRANSACTION_CHECK__CHECK__NOT_SET ||
            (uid != NULL && !txn_uids_are_sound(1, &uid)))
            return false;
    }
    return true;
}

static bool part_is_sound(const txn_part *part)
{
    struct authority authority;

    for (size_t i = 0; i < part->n_take_to && i < LEDGER_ITEMS_MAX; i++) {
        struct slice to = slice_from_text(part->take_to[i]);
        if (to.size > 0 && player_id_check(to) != ERR_OK)
            return false;
    }
    return txn_authority_load(part->authority, &authority) == ERR_OK && txn_goods_are_sound(part) &&
           part->n_mint + part->n_receive_uids <= LEDGER_ITEMS_MAX &&
           part->n_take_to == part->n_take_uids &&
           txn_uids_are_sound(part->n_take_uids, part->take_uids) && checks_are_sound(part);
}

static bool is_here(struct arena *arena, const char *player_id, uint32_t shard,
                    uint32_t shard_count)
{
    return shard_count == 0 || channel_shard_of(arena, player_id, shard_count) == shard;
}

static bool prepare_is_sound(struct arena *arena, const txn_prepare *request, uint32_t shard,
                             uint32_t shard_count)
{
    size_t items = 0;

    for (size_t i = 0; i < request->n_parts; i++) {
        if (!part_is_sound(request->parts[i]) ||
            !is_here(arena, request->parts[i]->player_id, shard, shard_count))
            return false;
        items += request->parts[i]->n_mint;
    }
    return request->n_parts > 0 && request->n_parts <= TXN_PLAYERS_MAX && items <= TXN_ITEMS_MAX &&
           goods_text_is_sound(request->reason);
}

bool txn_member_is_sound(struct arena *arena, uint32_t source, uint32_t shard, uint32_t shard_count,
                         const channel_credit *credit)
{
    const Holdfast__Internal__V1__TxnFinish *finish = credit->finish;

    if (credit->prepare != NULL)
        return ref_is_sound(credit->prepare->txn, source) &&
               prepare_is_sound(arena, credit->prepare, shard, shard_count);
    if (finish->n_gives > TXN_PLAYERS_MAX || !ref_is_sound(finish->txn, source))
        return false;
    for (size_t i = 0; i < finish->n_gives; i++) {
        const Holdfast__Internal__V1__TxnGive *give = finish->gives[i];
        if (player_id_check(slice_from_text(give->player_id)) != ERR_OK ||
            !is_here(arena, give->player_id, shard, shard_count) ||
            !goods_items_are_sound(give->n_items, give->items))
            return false;
    }
    return true;
}
