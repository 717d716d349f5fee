#include "node/core/txn_row.h"

#include "node/core/arena_proto.h"
#include "node/core/rows.h"
#include "runtime/base/check.h"

static enum state_found find(struct state *state, struct arena *arena, const struct row_key *key,
                             struct need *need, const ProtobufCMessageDescriptor *type,
                             ProtobufCMessage **ret)
{
    struct slice value;
    enum state_found found = state_find(state, row_key_slice(key), &value);

    if (found == STATE_MISSING && need != NULL)
        need_add_key(need, row_key_slice(key));
    if (found == STATE_PRESENT) {
        *ret = arena_unpack(arena, type, value);
        CHECK(*ret != NULL);
    }
    return found;
}

enum state_found intent_find(struct state *state, struct arena *arena, struct slice entity,
                             struct need *need, Holdfast__Internal__V1__TxnIntent **ret)
{
    ProtobufCMessage *message = NULL;
    struct row_key key;

    row_key_intent(&key, entity);
    enum state_found found =
        find(state, arena, &key, need, &holdfast__internal__v1__txn_intent__descriptor, &message);
    *ret = (Holdfast__Internal__V1__TxnIntent *)message;
    return found;
}

enum state_found txn_find(struct state *state, struct arena *arena, struct txn_ref ref,
                          struct need *need, Holdfast__Internal__V1__TxnRow **ret)
{
    ProtobufCMessage *message = NULL;
    struct row_key key;

    row_key_txn(&key, ref.destination, ref.seq);
    enum state_found found =
        find(state, arena, &key, need, &holdfast__internal__v1__txn_row__descriptor, &message);
    *ret = (Holdfast__Internal__V1__TxnRow *)message;
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
