#include "node/core/document/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/members.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

static void sign(void *user, struct slice message, uint8_t ret_mac[MERGE_TOKEN_MAC_BYTES])
{
    struct hash128 hash = hash_u128(message);

    (void)user;
    memcpy(ret_mac, hash.bytes, MERGE_TOKEN_MAC_BYTES);
}

struct merge_replica *fixture_member(uint64_t member)
{
    const struct merge_options options = { .shard = 1,
                                           .generation = 1,
                                           .member = member,
                                           .boot = 1,
                                           .random = member * 77 + 1,
                                           .index_dots_max = 1000,
                                           .chunk_records_max = 16,
                                           .closed_max = 16,
                                           .op_window_ms = 900000,
                                           .mac = { .sign = sign } };
    const struct merge_members members = { .membership = {
                                               .config = 1, .count = 2, .members = { 1, 2 } } };
    struct merge_replica *replica = merge_new(&options);

    CHECK(merge_start(replica, &members, true) == ERR_OK);
    return replica;
}

void fixture_exchange(struct merge_replica *const replicas[2], uint64_t now_ms)
{
    for (int round = 0; round < 6; round++) {
        struct merge_replica *from = replicas[round % 2], *to = replicas[(round + 1) % 2];
        struct merge_out out = from->out;

        from->out = (struct merge_out){ 0 };
        merge_durable(from, from->log_end);
        for (uint32_t i = 0; i < out.message_count; i++)
            CHECK(merge_receive(to, now_ms, buf_slice(&out.messages[i].bytes)) == ERR_OK);
        merge_out_clear(&out);
        free(out.messages);
        free(out.done);
        buf_deinit(&out.log);
    }
}

void pair_init(struct pair *pair)
{
    *pair = (struct pair){ .now_ms = PAIR_BEGINS_MS };
    for (uint64_t i = 0; i < 2; i++)
        pair->replicas[i] = fixture_member(i + 1);
    living_hear(&pair->living, 100, PAIR_BEGINS_MS - LIVING_SETTLE_MS);
    living_put(&pair->living, (struct incarnation){ 1, 10 }, false);
    living_complete(&pair->living);
}

void pair_deinit(struct pair *pair)
{
    for (int i = 0; i < 2; i++)
        merge_free(pair->replicas[i]);
    document_rules_deinit(&pair->rules);
    living_deinit(&pair->living);
    arena_deinit(&pair->arena);
}

struct document_context pair_context(struct pair *pair, int member)
{
    return (struct document_context){ .arena = &pair->arena,
                                      .rules = &pair->rules,
                                      .replica = pair->replicas[member],
                                      .living = &pair->living,
                                      .now_ms = pair->now_ms,
                                      .full = pair->full,
                                      .bytes_full = pair->bytes_full,
                                      .erased = pair->erased,
                                      .refusal = &pair->refusal };
}

err pair_call(struct pair *pair, int member, uint32_t method, const ProtobufCMessage *request)
{
    struct document_context context = pair_context(pair, member);

    pair->begun = (struct document_begun){ 0 };
    pair->refusal = (struct refusal){ 0 };
    merge_durable(pair->replicas[member], pair->replicas[member]->log_end);
    return document_method_find(method)->begin(&context, arena_pack(&pair->arena, request),
                                               &pair->begun);
}
