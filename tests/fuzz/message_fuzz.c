/*
 * message_fuzz: what replicas of a shard send each other. A message that decodes must encode to
 * the same bytes. The first byte 0: the rest is the message as it is; else it is put together
 * from a prefix of that length and entries whose hashes are right, made from what follows.
 */
#include <stdlib.h>
#include <string.h>

#include "node/core/replication/rep_message.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz.h"

#define ENTRIES_MAX 8u

static void check_message(struct slice bytes)
{
    struct rep_message message;
    struct buf again = { 0 };
    uint32_t shard = 0;
    err peeked = rep_message_peek_shard(bytes, &shard);

    if (rep_message_decode(bytes, &message) != ERR_OK)
        return;
    CHECK(peeked == ERR_OK && shard == message.shard);
    for (uint32_t i = 0; i < message.entry_count; i++)
        CHECK(message.entries[i] != NULL && message.entries[i]->index > 0);
    rep_message_encode(&message, &again);
    /* An empty vector is left out by the encoder. */
    if (message.vector.count > 0 || again.size == bytes.size)
        CHECK(slice_equal(buf_slice(&again), bytes));
    buf_deinit(&again);
    rep_message_deinit(&message);
}

static void with_entries(struct slice head, struct reader *rest)
{
    struct buf bytes = { 0 };
    uint32_t count = read_u8(rest) % (ENTRIES_MAX + 1);

    buf_append(&bytes, head.data, head.size);
    struct entry_place place = { 0 };
    buf_put_compact(&bytes, count);
    for (uint32_t i = 0; i < count; i++) {
        enum entry_kind kind = (enum entry_kind)(read_u8(rest) % ENTRY_CUT + 1);
        struct dot dot = { read_u8(rest) + 1u, read_u8(rest), read_u8(rest) + 1u };
        struct slice body = read_raw(rest, read_u8(rest));
        struct entry *entry = entry_new(
            kind, &(struct entry_head){ .index = i + 1, .dot = dot, .owner_ms = read_u16(rest) },
            body);
        if (i == 0)
            buf_put_compact(&bytes, dot.counter);
        entry_encode_after(entry, &place, &bytes);
        place = entry_place(entry);
        entry_unref(entry);
    }
    check_message(buf_slice(&bytes));
    buf_deinit(&bytes);
}

void fuzz_one(struct slice input)
{
    struct reader reader = reader_from(input);
    uint8_t size = read_u8(&reader);

    if (size == 0) {
        check_message(read_raw(&reader, reader_left(&reader)));
        return;
    }
    struct slice head = read_raw(&reader, size);
    with_entries(head, &reader);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    static const char *const names[] = { "append",   "append-ack", "seal",
                                         "seal-ack", "fetch",      "fetch-ack" };
    struct entry *entry =
        entry_new(ENTRY_OP,
                  &(struct entry_head){
                      .index = 5, .dot = { 2, 1, 2 }, .owner_ms = 1000, .prev_hash = { { 1 } } },
                  SLICE_LITERAL("body"));

    for (unsigned type = REP_MSG_APPEND; type <= REP_MSG_FETCH_ACK; type++) {
        struct rep_message message = { .type = (enum rep_message_type)type,
                                       .shard = 3,
                                       .generation = 1,
                                       .config = 1,
                                       .epoch = 2,
                                       .owner = 1,
                                       .votes = true,
                                       .prev_index = 4,
                                       .commit_index = 4,
                                       .round = 9,
                                       .last_dot = { 2, 1, 2 },
                                       .apply_version = 1 };
        struct buf bytes = { 0 };
        if (type == REP_MSG_APPEND || type == REP_MSG_FETCH_ACK) {
            message.entries = &entry;
            message.entry_count = 1;
        } else {
            message.vector = (struct vector){ .count = 1, .items = { { 2, 1, 4 } } };
        }
        rep_message_encode(&message, &bytes);
        fuzz_seed_add_kind(seeds, names[type - 1], 0, buf_slice(&bytes));
        buf_deinit(&bytes);
    }
    /* The part before the entries, then a count and two entries. */
    struct rep_message message = { .type = REP_MSG_APPEND, .shard = 3, .epoch = 2, .owner = 1 };
    struct buf bytes = { 0 };
    rep_message_encode(&message, &bytes);
    bytes.size -= 1;
    uint8_t size = (uint8_t)bytes.size;
    buf_append(&bytes,
               "\x02"
               "\x01\x01\x01\x01\x03"
               "abc"
               "\x10\x00"
               "\x03\x01\x01\x02\x00"
               "\x11\x00",
               17);
    fuzz_seed_add_kind(seeds, "made", size, buf_slice(&bytes));
    buf_deinit(&bytes);
    entry_unref(entry);
}
