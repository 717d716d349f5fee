/*
 * mergeable_fuzz: what a mergeable shard's replica takes from outside. The first byte picks it:
 * RECORD one record; TOKEN a caller's context; STATE a checkpoint's clock, erasures and index;
 * MESSAGES of its peers, each behind its u32 size; LOG records likewise, replayed at a start; ROWS
 * of a checkpoint likewise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/read.h"
#include "node/core/mergeable/rounds.h"
#include "node/core/mergeable/write.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "tests/fuzz/fuzz.h"

enum kind { KIND_RECORD, KIND_TOKEN, KIND_STATE, KIND_MESSAGES, KIND_LOG, KIND_ROWS, KIND_COUNT };

#define NOW_MS     1750000000000u
#define PIECES_MAX 16u

static void sign(void *user, struct slice message, uint8_t ret_mac[MERGE_TOKEN_MAC_BYTES])
{
    (void)user;
    (void)message;
    memset(ret_mac, 7, MERGE_TOKEN_MAC_BYTES); /* So that a fuzzer gets behind it. */
}

static const struct merge_members members = {
    .membership = { .config = 1, .count = 3, .members = { 1, 2, 3 } }
};

static struct merge_replica *replica_new(uint64_t member, uint64_t boot)
{
    struct merge_options options = { .shard = 1,
                                     .generation = 1,
                                     .member = member,
                                     .boot = boot,
                                     .random = member * 1000 + boot,
                                     .index_dots_max = 16,
                                     .chunk_records_max = 2,
                                     .closed_max = 2,
                                     .op_window_ms = 1000,
                                     .mac = { .sign = sign } };

    return merge_new(&options);
}

static struct merge_key *key_new(void)
{
    struct merge_key *key;

    CHECK(merge_key_new(SLICE_LITERAL("player:1"), SLICE_LITERAL("a"), &key) == ERR_OK);
    return key;
}

/* What decodes also encodes, and that decodes to the same. */
static void check_record(struct slice bytes)
{
    struct reader reader = reader_from(bytes);
    struct merge_record record, again;
    struct buf first = { 0 }, second = { 0 };

    if (merge_record_decode(&reader, &record) != ERR_OK)
        return;
    merge_record_encode(&record, &first);
    reader = reader_from(buf_slice(&first));
    CHECK(merge_record_decode(&reader, &again) == ERR_OK && reader_finish(&reader) == ERR_OK);
    merge_record_encode(&again, &second);
    CHECK(slice_equal(buf_slice(&first), buf_slice(&second)));
    CHECK(merge_record_equal(&record, &again, true));
    CHECK(!merge_record_join(&again, &record));
    struct merge_view view;

    merge_view_init(&view, &record, NOW_MS);
    CHECK(view.count <= record.count);
    merge_view_deinit(&view);
    merge_record_deinit(&record);
    merge_record_deinit(&again);
    buf_deinit(&first);
    buf_deinit(&second);
}

static void check_token(struct slice bytes)
{
    struct merge_mac mac = { .sign = sign };
    struct merge_key *key = key_new();
    struct merge_place place = { .shard = 1, .generation = 1, .key = key };
    struct merge_token token, again;
    struct buf sealed = { 0 };

    if (merge_token_open(&mac, &place, bytes, &token) == ERR_OK) {
        merge_token_seal(&mac, &place, &token, &sealed);
        CHECK(merge_token_open(&mac, &place, buf_slice(&sealed), &again) == ERR_OK);
        CHECK(again.count == token.count && again.hlc == token.hlc);
    }
    buf_deinit(&sealed);
    merge_key_unref(key);
}

/* Its rows can be written and read, and it goes on. */
static void check_replica(struct merge_replica *replica)
{
    struct buf bytes = { 0 };

    for (uint32_t i = 0; i < replica->store.count; i++) {
        buf_clear(&bytes);
        merge_record_encode(&replica->store.rows[i].record, &bytes);
        struct reader reader = reader_from(buf_slice(&bytes));
        struct merge_record record;

        CHECK(merge_record_decode(&reader, &record) == ERR_OK);
        CHECK(merge_record_equal(&record, &replica->store.rows[i].record, true));
        merge_record_deinit(&record);
    }
    for (uint64_t at_ms = NOW_MS; at_ms < NOW_MS + 6000; at_ms += 2000) {
        merge_tick(replica, at_ms);
        merge_out_clear(&replica->out);
    }
    buf_clear(&bytes);
    merge_state_encode(replica, &bytes);
    struct merge_replica *again = replica_new(1, 2);

    CHECK(merge_state_restore(again, buf_slice(&bytes)) == ERR_OK);
    merge_free(again);
    buf_deinit(&bytes);
}

static void take_messages(struct slice bytes)
{
    struct merge_replica *replica = replica_new(1, 1);
    struct reader reader = reader_from(bytes);

    CHECK(merge_start(replica, &members, true) == ERR_OK);
    merge_tick(replica, NOW_MS);
    for (uint32_t i = 0; i < PIECES_MAX && reader_left(&reader) > 0; i++) {
        struct slice message = read_bytes(&reader, UINT32_MAX);

        if (reader.bad)
            break;
        err e = merge_receive(replica, NOW_MS, message);

        CHECK(e < ERR_COUNT);
        merge_durable(replica, replica->log_end);
        merge_out_clear(&replica->out);
    }
    check_replica(replica);
    merge_free(replica);
}

static void take_log(struct slice bytes, bool rows)
{
    struct merge_replica *replica = replica_new(1, 2);
    struct reader reader = reader_from(bytes);
    struct merge_key *key = key_new();
    bool whole = true;

    for (uint32_t i = 0; whole && i < PIECES_MAX && reader_left(&reader) > 0; i++) {
        struct slice piece = read_bytes(&reader, UINT32_MAX);

        if (reader.bad)
            break;
        err e = rows ? merge_row_restore(replica, key, piece) : merge_replay(replica, piece);

        if (rows)
            break; /* One row a key. */
        whole = e == ERR_OK;
    }
    CHECK(merge_start(replica, &members, whole) == ERR_OK);
    check_replica(replica);
    merge_free(replica);
    merge_key_unref(key);
}

static void take_state(struct slice bytes)
{
    struct merge_replica *replica = replica_new(1, 2);

    if (merge_state_restore(replica, bytes) == ERR_OK) {
        CHECK(merge_start(replica, &members, true) == ERR_OK);
        check_replica(replica);
    }
    merge_free(replica);
}

void fuzz_one(struct slice input)
{
    if (input.size == 0)
        return;
    struct slice rest = { input.data + 1, input.size - 1 };

    switch ((enum kind)(input.data[0] % KIND_COUNT)) {
    case KIND_RECORD:
        check_record(rest);
        break;
    case KIND_TOKEN:
        check_token(rest);
        break;
    case KIND_STATE:
        take_state(rest);
        break;
    case KIND_MESSAGES:
        take_messages(rest);
        break;
    case KIND_LOG:
        take_log(rest, false);
        break;
    case KIND_ROWS:
        take_log(rest, true);
        break;
    case KIND_COUNT:
        break;
    }
}

/* ---- seeds: what a replica really writes and sends ---- */

static void write_seed(struct merge_replica *replica, enum merge_policy policy)
{
    struct merge_key *key = key_new();
    struct merge_edit edit = { .path = SLICE_LITERAL("a"),
                               .value = SLICE_LITERAL("value"),
                               .delta = 3,
                               .expires_ms = NOW_MS + 5 };
    struct merge_write write = { .key = key,
                                 .policy = policy,
                                 .durability = MERGE_MAJORITY,
                                 .edit_count = 1,
                                 .edits = &edit,
                                 .op = 5,
                                 .op_ms = NOW_MS };
    struct merge_written written;
    struct merge_refusal refusal;

    write.durability = MERGE_ONE;
    CHECK(merge_write(replica, NOW_MS, &write, &written, &refusal) == ERR_OK);
    edit.remove = true;
    edit.path = SLICE_LITERAL("b");
    write.op = 6;
    CHECK(merge_write(replica, NOW_MS + 1, &write, &written, &refusal) == ERR_OK);
    merge_key_unref(key);
}

static void seed(struct fuzz_seeds *seeds, const char *name, enum merge_policy policy,
                 enum kind kind, const struct buf *bytes)
{
    char text[40];

    (void)snprintf(text, sizeof text, "%s-%u", name, (unsigned)policy);
    fuzz_seed_add_kind(seeds, text, (uint8_t)kind, buf_slice(bytes));
}

static void seed_replica(struct fuzz_seeds *seeds, enum merge_policy policy)
{
    struct merge_replica *replica = replica_new(2, 1);
    struct buf bytes = { 0 }, log = { 0 };

    CHECK(merge_start(replica, &members, true) == ERR_OK);
    write_seed(replica, policy);
    CHECK(merge_erase(replica, SLICE_LITERAL("player:2"), 1) == ERR_OK);
    merge_tick(replica, NOW_MS);
    for (uint32_t i = 0; i < replica->out.message_count; i++)
        if (replica->out.messages[i].to == 1)
            buf_put_bytes(&bytes, buf_slice(&replica->out.messages[i].bytes));
    seed(seeds, "messages", policy, KIND_MESSAGES, &bytes);
    buf_append(&log, replica->out.log.data, replica->out.log.size);
    seed(seeds, "log", policy, KIND_LOG, &log);
    buf_clear(&bytes);
    merge_record_encode(&replica->store.rows[0].record, &bytes);
    seed(seeds, "record", policy, KIND_RECORD, &bytes);
    buf_clear(&log);
    buf_put_bytes(&log, buf_slice(&bytes));
    seed(seeds, "rows", policy, KIND_ROWS, &log);
    buf_clear(&bytes);
    merge_state_encode(replica, &bytes);
    seed(seeds, "state", policy, KIND_STATE, &bytes);
    buf_clear(&bytes);
    CHECK(merge_token_of(replica, replica->store.rows[0].key, &replica->store.rows[0].record,
                         (struct slice){ 0 }, &bytes) == ERR_OK);
    seed(seeds, "token", policy, KIND_TOKEN, &bytes);
    buf_deinit(&bytes);
    buf_deinit(&log);
    merge_free(replica);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    seed_replica(seeds, MERGE_POLICY_LWW);
    seed_replica(seeds, MERGE_POLICY_COUNTER);
}
