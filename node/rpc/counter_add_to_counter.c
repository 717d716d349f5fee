#include "idl/method.h"
#include "node/core/counter/counter.h"
#include "node/rpc/methods.h"

static err counter_add_to_counter_check(struct check_context *context, ProtobufCMessage *message)
{
    return counter_check(context, (const void *)message);
}

/* The row that can be named without the counter's number. */
static void counter_add_to_counter_footprint(const struct op *op, const ProtobufCMessage *message,
                                             struct need *keys)
{
    struct row_key key;

    (void)message;
    row_key_names(&key, ROW_NAMES_COUNTERS);
    need_add_key(keys, row_key_slice(&key));
    row_key_erasure(&key, op->entity);
    need_add_key(keys, row_key_slice(&key));
}

static err counter_add_to_counter_handle(struct apply_context *context,
                                         const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    return counter_add(context, (const void *)message, (void *)reply);
}

const struct handler counter_add_to_counter_handler = {
    .method = METHOD_ADD_TO_COUNTER,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .check = counter_add_to_counter_check,
    .footprint = counter_add_to_counter_footprint,
    .handle = counter_add_to_counter_handle,
};
