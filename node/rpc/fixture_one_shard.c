#include "node/rpc/fixture_one_shard.h"

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

/* Rows are answered from an empty database, or as the test has it. */
static void answer_need(struct one_shard *one, const struct need *need)
{
    struct reader keys = reader_from(buf_slice(&need->keys));
    struct reader ranges = reader_from(buf_slice(&need->ranges));

    if (one->load != NULL && need->key_count + need->range_count > 0) {
        one->load(one->user, need);
        return;
    }
    while (reader_left(&keys) > 0) {
        struct shard_row row = { .key = read_bytes(&keys, STATE_KEY_BYTES_MAX), .absent = true };
        one_shard_step(one, (struct shard_event){ .type = SHARD_ROWS,
                                                  .load_generation = need->load_generation,
                                                  .rows = &row,
                                                  .row_count = 1 });
    }
    while (reader_left(&ranges) > 0) {
        struct state_range range;
        range.prefix = read_bytes(&ranges, STATE_KEY_BYTES_MAX);
        range.after = read_bytes(&ranges, STATE_KEY_BYTES_MAX);
        range.limit = read_u32(&ranges);
        one_shard_step(one, (struct shard_event){ .type = SHARD_ROWS,
                                                  .load_generation = need->load_generation,
                                                  .range = &range,
                                                  .complete = true });
    }
}

void one_shard_step(struct one_shard *one, struct shard_event event)
{
    struct shard_out out = { 0 };
    uint64_t ticket = 0;

    event.now_ms = one->now_ms;
    event.unix_ms = ONE_SHARD_UNIX_MS + one->now_ms + one->wall_ms;
    shard_step(one->shard, &event, &out);
    shard_check(one->shard);
    one->taken(one->user, &out);
    for (uint32_t i = 0; i < out.rep.write_count; i++) {
        ticket = out.rep.writes[i].ticket;
        if (out.rep.writes[i].type == REP_WRITE_ENTRY)
            entry_unref(out.rep.writes[i].entry);
    }
    out.rep.write_count = 0;
    answer_need(one, &out.need);
    shard_out_clear(&out);
    shard_out_deinit(&out);
    if (ticket != 0)
        one_shard_step(one, (struct shard_event){ .type = SHARD_PERSISTED, .ticket = ticket });
    if (shard_wants_flush(one->shard))
        one_shard_step(one, (struct shard_event){ .type = SHARD_FLUSH });
}

void one_shard_propose(struct one_shard *one, struct slice body)
{
    const struct shard_event now = { .now_ms = one->now_ms,
                                     .unix_ms = ONE_SHARD_UNIX_MS + one->now_ms + one->wall_ms };
    struct shard_out out = { 0 };
    uint64_t index;

    CHECK(shard_propose(one->shard, body, &now, &index, &out) == ERR_OK);
    answer_need(one, &out.need);
    shard_out_clear(&out);
    shard_out_deinit(&out);
    one_shard_step(one, (struct shard_event){ .type = SHARD_FLUSH });
}

void one_shard_call(struct one_shard *one, uint32_t method, const ProtobufCMessage *request)
{
    struct buf bytes = { 0 };
    size_t size = protobuf_c_message_get_packed_size(request);

    protobuf_c_message_pack(request, buf_reserve(&bytes, size));
    bytes.size = size;
    one_shard_step(one, (struct shard_event){ .type = SHARD_CALL,
                                              .call = ++one->calls,
                                              .method = method,
                                              .request = buf_slice(&bytes),
                                              .deadline_ms = one->now_ms + 10000 });
    buf_deinit(&bytes);
}

void one_shard_op_id(const struct one_shard *one, char text[UUID_TEXT_SIZE])
{
    uint8_t random[10] = { 0 };

    store_u64(random + 2, one->calls + 1); /* Bits of earlier bytes give way to the version. */
    struct uuid uuid = uuid_v7_make(ONE_SHARD_UNIX_MS + one->now_ms, random);
    uuid_print(&uuid, text);
}

void one_shard_policy(struct one_shard *one)
{
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__CurrencyPolicy gold = HOLDFAST__V1__CURRENCY_POLICY__INIT;
    Holdfast__V1__CurrencyPolicy *currencies[] = { &gold };

    gold.name = "gold";
    policy.version = 1;
    policy.n_currencies = 1;
    policy.currencies = currencies;
    request.policy = &policy;
    one_shard_call(one, METHOD_APPLY_POLICY, &request.base);
}
