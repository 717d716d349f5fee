#include "node/rpc/quarantined.h"

#include "node/core/codec/arena_proto.h"

Holdfast__V1__Quarantined *quarantined_message(struct arena *arena, const struct quarantined *held)
{
    Holdfast__V1__Quarantined *message =
        (Holdfast__V1__Quarantined *)arena_message(arena, &holdfast__v1__quarantined__descriptor);

    message->player_id = arena_text(arena, slice_from_text(held->player));
    message->reason = arena_text(arena, slice_from_text(held->reason));
    message->at_ms = (int64_t)held->at_ms;
    return message;
}
