#include "node/core/transaction/txn_row.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/goods_sound.h"
#include "node/core/goods/ledger.h"
#include "node/core/profile/section_edit.h"
#include "node/core/rows/rows.h"

bool txn_uids_are_sound(size_t count, char *const *uids)
{
    uint8_t uid[ITEM_UID_BYTES];

    for (size_t i = 0; i < count; i++) {
        if (item_uid_parse(slice_from_text(uids[i]), uid) != ERR_OK)
            return false;
    }
    return count <= LEDGER_ITEMS_MAX;
}

bool txn_goods_are_sound(const Holdfast__Internal__V1__TxnPart *part)
{
    for (size_t i = 0; i < part->n_mint && i < LEDGER_ITEMS_MAX; i++) {
        if (!goods_kind_is_sound(part->mint[i]->kind, part->mint[i]->attributes))
            return false;
    }
    for (size_t i = 0; i < part->n_edits && i < SECTION_EDITS_MAX; i++) {
        if (strlen(part->edits[i]->name) > SECTION_NAME_BYTES_MAX)
            return false;
    }
    for (size_t i = 0; i < part->n_others && i < COUNTERPARTS_MAX; i++) {
        if (player_id_check(slice_from_text(part->others[i])) != ERR_OK)
            return false;
    }
    return part->n_others <= COUNTERPARTS_MAX && part->n_mint <= LEDGER_ITEMS_MAX &&
           part->n_edits <= SECTION_EDITS_MAX &&
           player_id_check(slice_from_text(part->player_id)) == ERR_OK &&
           goods_amounts_are_sound(part->n_take, part->take) &&
           goods_amounts_are_sound(part->n_give, part->give);
}

static bool taken_is_sound(const Holdfast__Internal__V1__TxnTaken *taken)
{
    return player_id_check(slice_from_text(taken->player_id)) == ERR_OK &&
           goods_items_are_sound(taken->n_items, taken->items) &&
           txn_uids_are_sound(taken->n_mint_uids, taken->mint_uids);
}

/* What FINISH relies on. */
static bool intent_is_sound(const Holdfast__Internal__V1__TxnIntent *intent)
{
    const Holdfast__Internal__V1__TxnPart *part = intent->part;
    const Holdfast__Internal__V1__TxnTaken *taken = intent->taken;

    return intent->txn != NULL && part != NULL && taken != NULL && taken_is_sound(taken) &&
           txn_goods_are_sound(part) && part->n_mint == taken->n_mint_uids &&
           part->n_mint + part->n_receive_uids <= LEDGER_ITEMS_MAX &&
           goods_text_is_sound(intent->op_id) && goods_text_is_sound(intent->reason) &&
           goods_text_is_sound(intent->authority);
}

bool txn_vote_is_sound(const Holdfast__Internal__V1__TxnVote *vote)
{
    if (vote == NULL || vote->n_taken == 0 || vote->n_taken > TXN_PLAYERS_MAX ||
        protobuf_c_message_get_packed_size(&vote->base) > TXN_VOTE_BYTES_MAX)
        return false;
    for (size_t i = 0; i < vote->n_taken; i++) {
        if (!taken_is_sound(vote->taken[i]))
            return false;
    }
    return true;
}

static bool txn_row_is_sound(const Holdfast__Internal__V1__TxnRow *row)
{
    struct op_id id;
    const char *why;

    if (row->n_parts > TXN_PLAYERS_MAX || row->n_members > TXN_PLAYERS_MAX ||
        player_id_check(slice_from_text(row->player_id)) != ERR_OK ||
        op_id_parse(slice_from_text(row->op_id), &id, &why) != ERR_OK)
        return false;
    for (size_t i = 0; i < row->n_parts; i++) {
        if (player_id_check(slice_from_text(row->parts[i]->player_id)) != ERR_OK)
            return false;
    }
    for (size_t i = 0; i < row->n_members; i++) {
        const Holdfast__Internal__V1__TxnMember *member = row->members[i];
        if (member->state == HOLDFAST__INTERNAL__V1__TXN_STATE__TXN_STATE_PREPARED &&
            !txn_vote_is_sound(member->vote))
            return false;
    }
    return true;
}

Holdfast__Internal__V1__TxnIntent *intent_decode(struct arena *arena, struct slice value)
{
    Holdfast__Internal__V1__TxnIntent *intent =
        (void *)arena_unpack(arena, &holdfast__internal__v1__txn_intent__descriptor, value);

    return intent != NULL && intent_is_sound(intent) ? intent : NULL;
}

Holdfast__Internal__V1__TxnRow *txn_decode(struct arena *arena, struct slice value)
{
    Holdfast__Internal__V1__TxnRow *row =
        (void *)arena_unpack(arena, &holdfast__internal__v1__txn_row__descriptor, value);

    return row != NULL && txn_row_is_sound(row) ? row : NULL;
}

enum state_found intent_find(struct state *state, struct arena *arena, struct slice entity,
                             struct need *need, Holdfast__Internal__V1__TxnIntent **ret)
{
    struct row_key key;
    struct slice value;

    row_key_intent(&key, entity);
    enum state_found found = row_find(state, &key, need, &value);
    *ret = found == STATE_PRESENT ? intent_decode(arena, value) : NULL;
    return found;
}

enum state_found txn_find(struct state *state, struct arena *arena, struct txn_ref ref,
                          struct need *need, Holdfast__Internal__V1__TxnRow **ret)
{
    struct row_key key;
    struct slice value;

    row_key_txn(&key, ref.destination, ref.seq);
    enum state_found found = row_find(state, &key, need, &value);
    *ret = found == STATE_PRESENT ? txn_decode(arena, value) : NULL;
    return found;
}

void intent_store(struct apply_context *context, struct slice entity,
                  const Holdfast__Internal__V1__TxnIntent *row)
{
    struct row_key key;

    row_key_intent(&key, entity);
    state_put_new(context->state, row_key_slice(&key), arena_pack(context->arena, &row->base));
}

void intent_delete(struct apply_context *context, struct slice entity)
{
    struct row_key key;

    row_key_intent(&key, entity);
    state_forget(context->state, row_key_slice(&key));
    context->channel->intents_ended++;
}

void txn_add(struct apply_context *context, struct txn_ref ref,
             const Holdfast__Internal__V1__TxnRow *row)
{
    struct row_key key;

    row_key_txn(&key, ref.destination, ref.seq);
    state_put_new(context->state, row_key_slice(&key), arena_pack(context->arena, &row->base));
}

void txn_store(struct apply_context *context, struct txn_ref ref,
               const Holdfast__Internal__V1__TxnRow *row)
{
    struct row_key key;

    row_key_txn(&key, ref.destination, ref.seq);
    state_put(context->state, row_key_slice(&key), arena_pack(context->arena, &row->base));
}

void txn_delete(struct apply_context *context, struct txn_ref ref)
{
    struct row_key key;

    row_key_txn(&key, ref.destination, ref.seq);
    state_forget(context->state, row_key_slice(&key));
}

struct txn_ref txn_ref_of(const Holdfast__Internal__V1__TxnRef *message)
{
    return (struct txn_ref){ message->home, message->destination, message->seq };
}

Holdfast__Internal__V1__TxnRef *txn_ref_message(struct arena *arena, struct txn_ref ref)
{
    Holdfast__Internal__V1__TxnRef *message = (Holdfast__Internal__V1__TxnRef *)arena_message(
        arena, &holdfast__internal__v1__txn_ref__descriptor);

    message->home = ref.home;
    message->destination = ref.destination;
    message->seq = ref.seq;
    return message;
}

bool txn_ref_equal(struct txn_ref a, struct txn_ref b)
{
    return a.home == b.home && a.destination == b.destination && a.seq == b.seq;
}
