#include "coordinator/core/coord_out.h"

#include <stdlib.h>

#include "runtime/base/check.h"

void coord_out_clear(struct coord_out *out)
{
    out->txn_count = 0;
    out->call_count = 0;
    out->answer_count = 0;
    arena_reset(&out->arena);
}

void coord_out_deinit(struct coord_out *out)
{
    free(out->txns);
    free(out->calls);
    free(out->answers);
    arena_deinit(&out->arena);
    *out = (struct coord_out){ 0 };
}

void coord_answer_put(struct coord_out *out, uint64_t call, enum wire_status status,
                      const ProtobufCMessage *body)
{
    struct slice packed = { 0 };

    if (body != NULL) {
        size_t size = protobuf_c_message_get_packed_size(body);
        uint8_t *data = arena_alloc(&out->arena, size + 1);

        protobuf_c_message_pack(body, data);
        packed = (struct slice){ data, size };
    }
    if (out->answer_count == out->answer_capacity) {
        out->answer_capacity = out->answer_capacity == 0 ? 8 : out->answer_capacity * 2;
        out->answers = mem_realloc(out->answers, out->answer_capacity * sizeof *out->answers);
    }
    out->answers[out->answer_count++] = (struct coord_answer){ call, status, packed };
}

void coord_refusal_put(struct coord_out *out, uint64_t call,
                       const Holdfast__Internal__V1__Refusal *refusal)
{
    coord_answer_put(out, call, WIRE_REFUSED, &refusal->base);
}
