/*
 * entry_fuzz: entries of a shard's log and what they carry: operations, STARTs, version vectors,
 * operation ids and session tokens. The first byte picks one.
 */
#include <string.h>

#include "node/core/codec/op.h"
#include "node/core/entry/entry.h"
#include "node/core/entry/start.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz.h"

enum kind {
    KIND_ENTRY_BYTES, /* As from a disk or a peer.                            */
    KIND_ENTRY,       /* kind, then the body: header and hash are made right. */
    KIND_OP,
    KIND_START,
    KIND_VECTORS, /* Two, one behind the other. */
    KIND_TEXT,    /* Ids and tokens.            */
    KIND_END
};

static void check_op(struct slice bytes)
{
    struct op op;
    struct op again;
    struct buf encoded = { 0 };

    if (op_decode(bytes, &op) != ERR_OK)
        return;
    op_encode(&op, &encoded);
    CHECK(op_decode(buf_slice(&encoded), &again) == ERR_OK);
    CHECK(again.method == op.method && again.attempt == op.attempt && again.cut_id == op.cut_id);
    CHECK(slice_equal(again.entity, op.entity) && slice_equal(again.request, op.request));
    CHECK(slice_equal(again.id.text, op.id.text) && again.id.typed == op.id.typed);
    CHECK(hash128_equal(again.payload, op.payload));
    buf_deinit(&encoded);
}

static void check_vector(struct vector v)
{
    uint64_t index = vector_index(&v);

    CHECK(vector_compare(&v, &v) == VECTOR_EQUAL && vector_common_index(&v, &v) == index);
    if (v.count == 0)
        return;
    struct vector shorter = v;
    uint64_t keep = v.folded_index + (index - v.folded_index) / 2;
    vector_truncate(&shorter, keep);
    CHECK(vector_index(&shorter) == keep);
    vector_append(&v, v.items[v.count - 1].epoch, v.items[v.count - 1].owner);
    CHECK(vector_index(&v) == index + 1);
}

static void check_start(struct slice bytes)
{
    struct start start;
    struct buf encoded = { 0 };

    if (start_decode(bytes, &start) != ERR_OK)
        return;
    start_encode(&start, &encoded);
    CHECK(slice_equal(buf_slice(&encoded), bytes));
    CHECK(membership_has(&start.membership, start.membership.members[0]));
    CHECK(membership_quorum(&start.membership, UINT32_MAX, UINT32_MAX));
    CHECK(!membership_quorum(&start.membership, 0, 0));
    buf_deinit(&encoded);
}

static void check_vectors(struct slice bytes)
{
    struct reader reader = reader_from(bytes);
    struct vector a;
    struct vector b;

    if (vector_decode(&reader, &a) != ERR_OK)
        return;
    check_vector(a);
    if (vector_decode(&reader, &b) != ERR_OK)
        return;
    enum vector_order order = vector_compare(&a, &b);
    enum vector_order mirrored = vector_compare(&b, &a);
    CHECK((order == VECTOR_BEFORE) == (mirrored == VECTOR_AFTER));
    CHECK((order == VECTOR_EQUAL) == (mirrored == VECTOR_EQUAL));
    CHECK(vector_common_index(&a, &b) == vector_common_index(&b, &a));
}

static void check_entry(struct slice bytes)
{
    struct entry *entry = NULL;

    if (entry_decode(bytes, &entry) != ERR_OK)
        return;
    CHECK(slice_equal(entry->encoded, bytes));
    if (entry->kind == ENTRY_OP)
        check_op(entry->body);
    else if (entry->kind == ENTRY_START)
        check_start(entry->body);
    entry_unref(entry);
}

static void check_body(struct slice bytes)
{
    uint8_t kind = bytes.size > 0 ? bytes.data[0] : 0;

    if (kind < ENTRY_START || kind > ENTRY_CUT || bytes.size > ENTRY_BODY_BYTES_MAX)
        return;
    struct entry *entry =
        entry_new((enum entry_kind)kind,
                  &(struct entry_head){
                      .index = 7, .dot = { 2, 1, 5 }, .owner_ms = 1000, .prev_hash = { { 9 } } },
                  (struct slice){ bytes.data + 1, bytes.size - 1 });
    check_entry(entry->encoded);
    entry_unref(entry);
}

static void check_text(struct slice text)
{
    char printed[TOKEN_TEXT_SIZE];
    char uid_text[ITEM_UID_TEXT_SIZE];
    uint8_t uid[ITEM_UID_BYTES];
    struct incarnation incarnation;
    struct op_id id;
    uint64_t fence;
    const char *why = NULL;

    if (op_id_parse(text, &id, &why) != ERR_OK)
        CHECK(why != NULL);
    if (token_parse(text, &incarnation, &fence) == ERR_OK) {
        token_print(incarnation, fence, printed);
        CHECK(slice_equal(slice_from_text(printed), text));
    }
    if (item_uid_parse(text, uid) == ERR_OK) {
        item_uid_print(uid, uid_text);
        CHECK(slice_equal(slice_from_text(uid_text), text));
    }
}

void fuzz_one(struct slice input)
{
    if (input.size == 0)
        return;
    struct slice rest = { input.data + 1, input.size - 1 };
    switch (input.data[0] % KIND_END) {
    case KIND_ENTRY_BYTES:
        check_entry(rest);
        break;
    case KIND_ENTRY:
        check_body(rest);
        break;
    case KIND_OP:
        check_op(rest);
        break;
    case KIND_START:
        check_start(rest);
        break;
    case KIND_VECTORS:
        check_vectors(rest);
        break;
    default:
        check_text(rest);
        break;
    }
}

static void seed_ops(struct fuzz_seeds *seeds)
{
    static const char *const ids[] = { "01976a1c-0000-7000-8000-000000000001", "receipt:GPA.1" };
    static const struct authority authorities[] = {
        { .kind = AUTHORITY_SESSION, .incarnation = { 1, 100 }, .fence = 3 },
        { .kind = AUTHORITY_SYSTEM, .scope = { (const uint8_t *)"payments", 8 } },
    };
    static const char *const names[] = { "op-session", "op-system" };

    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        struct op op = { .method = 20,
                         .attempt = 1,
                         .entity = SLICE_LITERAL("player:42"),
                         .authority = authorities[i],
                         .request = SLICE_LITERAL("\x0a\x02"
                                                  "42") };
        struct buf bytes = { 0 };
        const char *why;
        CHECK(op_id_parse(slice_from_text(ids[i]), &op.id, &why) == ERR_OK);
        op_encode(&op, &bytes);
        fuzz_seed_add_kind(seeds, names[i], KIND_OP, buf_slice(&bytes));
        struct entry *entry = entry_new(
            ENTRY_OP,
            &(struct entry_head){
                .index = 2, .dot = { 1, 1, 2 }, .owner_ms = 1000, .prev_hash = { { 1 } } },
            buf_slice(&bytes));
        fuzz_seed_add_kind(seeds, i == 0 ? "entry-1" : "entry-2", KIND_ENTRY_BYTES, entry->encoded);
        entry_unref(entry);
        buf_deinit(&bytes);
    }
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    struct start start = { .base_index = 8,
                           .base = { .folded_epoch = 1,
                                     .folded_index = 2,
                                     .count = 2,
                                     .items = { { 2, 1, 5 }, { 3, 2, 1 } } },
                           .membership = { .config = 2,
                                           .count = 3,
                                           .new_count = 1,
                                           .members = { 1, 2, 3 },
                                           .new_members = { 4 } },
                           .generation = 1,
                           .apply_version = 1 };
    struct buf bytes = { 0 };

    seed_ops(seeds);
    start_encode(&start, &bytes);
    fuzz_seed_add_kind(seeds, "start", KIND_START, buf_slice(&bytes));
    buf_clear(&bytes);
    buf_put_u8(&bytes, ENTRY_START);
    start_encode(&start, &bytes);
    fuzz_seed_add_kind(seeds, "start-entry", KIND_ENTRY, buf_slice(&bytes));
    buf_clear(&bytes);
    vector_encode(&start.base, &bytes);
    start.base.items[1].counter = 4;
    vector_encode(&start.base, &bytes);
    fuzz_seed_add_kind(seeds, "vectors", KIND_VECTORS, buf_slice(&bytes));
    fuzz_seed_add_kind(seeds, "token", KIND_TEXT, SLICE_LITERAL("1-100-3"));
    fuzz_seed_add_kind(seeds, "match", KIND_TEXT, SLICE_LITERAL("match:a:1"));
    fuzz_seed_add_kind(seeds, "uid", KIND_TEXT, SLICE_LITERAL("00070000000000010000000000020003"));
    fuzz_seed_add_kind(seeds, "uuid", KIND_TEXT,
                       SLICE_LITERAL("01976a1c-0000-7000-8000-00000000000A"));
    buf_deinit(&bytes);
}
