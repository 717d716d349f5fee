#include "node/core/mergeable/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"

static const struct merge_members members = {
    .membership = { .config = 1, .count = PAIR, .members = { 1, 2 } }
};

static void sign(void *user, struct slice message, uint8_t ret_mac[MERGE_TOKEN_MAC_BYTES])
{
    (void)user;
    (void)message;
    memset(ret_mac, 7, MERGE_TOKEN_MAC_BYTES);
}

void pair_start(struct pair *pair, uint32_t at, bool whole)
{
    struct merge_options options = { .shard = 1,
                                     .generation = 1,
                                     .member = at + 1,
                                     .boot = ++pair->boots[at],
                                     .random = at * 1000000 + ++pair->lives,
                                     .index_dots_max = 1000,
                                     .chunk_records_max = 10,
                                     .closed_max = 8,
                                     .op_window_ms = 1000,
                                     .mac = { .sign = sign } };
    struct reader reader = reader_from(buf_slice(&pair->logs[at]));

    merge_free(pair->replicas[at]);
    pair->replicas[at] = merge_new(&options);
    while (reader_left(&reader) > 0)
        CHECK(merge_replay(pair->replicas[at], read_bytes(&reader, UINT32_MAX)) == ERR_OK);
    CHECK(merge_start(pair->replicas[at], &members, whole) == ERR_OK);
    pair_drain(pair, at);
}

static void deliver(struct pair *pair, uint32_t to, struct slice message)
{
    err e = merge_receive(pair->replicas[to], pair->now_ms, message);

    CHECK(e == ERR_OK || e == ERR_NOT_FOUND || e == ERR_STALE_EPOCH);
    pair_drain(pair, to);
}

void pair_drain(struct pair *pair, uint32_t at)
{
    struct merge_replica *replica = pair->replicas[at];
    struct merge_out out = replica->out;

    replica->out = (struct merge_out){ 0 };
    buf_append(&pair->logs[at], out.log.data, out.log.size);
    merge_durable(replica, replica->log_end);
    for (uint32_t i = 0; i < out.message_count; i++) {
        struct slice message = buf_slice(&out.messages[i].bytes);

        pair->bytes += message.size;
        if (message.size > pair->message_bytes_max)
            pair->message_bytes_max = message.size;
        if (pair->on_message != NULL)
            pair->on_message(pair, at, message);
        if (!pair->cut && !pair->mute[at] && pair->replicas[1 - at] != NULL)
            deliver(pair, 1 - at, message);
    }
    merge_out_clear(&out);
    free(out.messages);
    free(out.done);
    buf_deinit(&out.log);
    merge_out_clear(&replica->out);
}

void pair_round(struct pair *pair)
{
    pair->now_ms += MERGE_REPORT_MS;
    for (uint32_t i = 0; i < PAIR; i++) {
        merge_tick(pair->replicas[i], pair->now_ms);
        pair_drain(pair, i);
    }
}

void pair_write(struct pair *pair, uint32_t at)
{
    struct merge_edit edit = { .path = SLICE_LITERAL("a"), .value = SLICE_LITERAL("v") };
    struct merge_write write = { .key = pair->key,
                                 .policy = MERGE_POLICY_MERGE,
                                 .durability = MERGE_ONE,
                                 .edit_count = 1,
                                 .edits = &edit };
    struct merge_written written;
    struct merge_refusal refusal = { 0 };

    CHECK(merge_write(pair->replicas[at], pair->now_ms, &write, &written, &refusal) == ERR_OK);
    pair_drain(pair, at);
}

void pair_name(struct pair *pair, uint32_t number)
{
    char entity[24];

    (void)snprintf(entity, sizeof entity, "player:%u", number);
    merge_key_unref(pair->key);
    CHECK(merge_key_new(slice_from_text(entity), SLICE_LITERAL("a"), &pair->key) == ERR_OK);
}

void pair_init(struct pair *pair)
{
    *pair = (struct pair){ .now_ms = PAIR_NOW_MS };
    pair_name(pair, 1);
    pair_start(pair, 0, true);
    pair_start(pair, 1, true);
    pair_round(pair);
}

void pair_deinit(struct pair *pair)
{
    for (uint32_t i = 0; i < PAIR; i++) {
        merge_free(pair->replicas[i]);
        buf_deinit(&pair->logs[i]);
    }
    merge_key_unref(pair->key);
}
