#include "node/core/transaction/txn_delta.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"

typedef Holdfast__Internal__V1__TxnDelta txn_delta;
typedef Holdfast__Internal__V1__TxnPart txn_part;
typedef Holdfast__Internal__V1__TxnTaken txn_taken;

static const txn_part *part_of(const Holdfast__Internal__V1__TxnRow *row, const char *player_id)
{
    for (size_t i = 0; i < row->n_parts; i++) {
        if (strcmp(row->parts[i]->player_id, player_id) == 0)
            return row->parts[i];
    }
    CHECK(false);
    return NULL;
}

static void add_amounts(struct arena *arena, txn_delta *delta, size_t count,
                        Holdfast__V1__CurrencyAmount *const *amounts, int64_t sign)
{
    for (size_t i = 0; i < count; i++) {
        Holdfast__V1__CurrencyAmount *amount = (Holdfast__V1__CurrencyAmount *)arena_message(
            arena, &holdfast__v1__currency_amount__descriptor);
        amount->currency = amounts[i]->currency;
        amount->amount = sign * amounts[i]->amount;
        delta->amounts[delta->n_amounts++] = amount;
    }
}

/* Amounts, and what is minted. */
static void add_part(struct arena *arena, txn_delta *delta, const txn_part *part,
                     const txn_taken *taken)
{
    add_amounts(arena, delta, part->n_give, part->give, 1);
    add_amounts(arena, delta, part->n_take, part->take, -1);
    for (size_t i = 0; i < taken->n_mint_uids; i++)
        delta->added[delta->n_added++] = taken->mint_uids[i];
}

/* With room for what one member adds and removes, beside what is there. */
static void make_room(struct arena *arena, txn_delta *delta,
                      const Holdfast__Internal__V1__TxnRow *row,
                      const Holdfast__Internal__V1__TxnVote *vote)
{
    size_t amounts = delta->n_amounts, added = delta->n_added, removed = delta->n_removed;
    txn_delta old = *delta;

    for (size_t i = 0; i < vote->n_taken; i++) {
        const txn_part *part = part_of(row, vote->taken[i]->player_id);
        amounts += part->n_give + part->n_take;
        added += vote->taken[i]->n_mint_uids + part->n_receive_uids;
        removed += part->n_take_uids + vote->taken[i]->n_items;
    }
    delta->amounts = arena_alloc(arena, sizeof *delta->amounts * (amounts + 1));
    delta->added = arena_alloc(arena, sizeof *delta->added * (added + 1));
    delta->removed = arena_alloc(arena, sizeof *delta->removed * (removed + 1));
    memcpy(delta->amounts, old.amounts, sizeof *delta->amounts * old.n_amounts);
    memcpy(delta->added, old.added, sizeof *delta->added * old.n_added);
    memcpy(delta->removed, old.removed, sizeof *delta->removed * old.n_removed);
}

static txn_delta *delta_new(struct arena *arena)
{
    txn_delta *delta =
        (txn_delta *)arena_message(arena, &holdfast__internal__v1__txn_delta__descriptor);

    delta->amounts = arena_alloc(arena, sizeof *delta->amounts);
    delta->added = arena_alloc(arena, sizeof *delta->added);
    delta->removed = arena_alloc(arena, sizeof *delta->removed);
    return delta;
}

txn_delta *txn_delta_of_finish(struct arena *arena, const Holdfast__Internal__V1__TxnRow *row,
                               const Holdfast__Internal__V1__TxnMember *member)
{
    txn_delta *delta = delta_new(arena);

    make_room(arena, delta, row, member->vote);
    for (size_t i = 0; i < member->vote->n_taken; i++) {
        const txn_taken *taken = member->vote->taken[i];
        const txn_part *part = part_of(row, taken->player_id);
        add_part(arena, delta, part, taken);
        for (size_t j = 0; j < part->n_receive_uids; j++)
            delta->added[delta->n_added++] = part->receive_uids[j];
        for (size_t j = 0; j < taken->n_items; j++)
            delta->removed[delta->n_removed++] = taken->items[j]->uid;
    }
    return delta;
}

txn_delta *txn_delta_made(struct arena *arena, const Holdfast__Internal__V1__TxnRow *row)
{
    txn_delta *delta = delta_new(arena);

    for (size_t i = 0; i < row->n_members; i++) {
        const Holdfast__Internal__V1__TxnVote *vote = row->members[i]->vote;
        make_room(arena, delta, row, vote);
        for (size_t j = 0; j < vote->n_taken; j++) {
            const txn_part *part = part_of(row, vote->taken[j]->player_id);
            add_part(arena, delta, part, vote->taken[j]);
            for (size_t k = 0; k < part->n_take_uids; k++) {
                if (part->take_to[k][0] == 0)
                    delta->removed[delta->n_removed++] = part->take_uids[k];
            }
        }
    }
    return delta;
}
