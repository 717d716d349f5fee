#include "node/rpc/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "idl/field_path.h"
#include "idl/method_errors.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/entry/start.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"

#define CHECKED_ENTRIES 64u
#define FIXTURE_SHARD   7u
#define FIXTURE_OWNER   1u
#define IDS_KEPT        64u
#define LIMIT_WORDS     6u /* A shorter limit may stand in a request by chance. */
#define READ_AGAIN      3u

/* Where `key` stands or belongs in the database. */
static uint32_t row_place(const struct fixture *f, struct slice key, bool *ret_found)
{
    uint32_t low = 0;
    uint32_t high = f->row_count;

    *ret_found = false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = slice_compare(buf_slice(&f->rows[middle].key), key);
        *ret_found |= order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void row_write(struct fixture *f, struct slice key, const struct blob *value)
{
    bool found;
    uint32_t place = row_place(f, key, &found);

    if (found && value == NULL) {
        buf_deinit(&f->rows[place].key);
        buf_deinit(&f->rows[place].value);
        f->row_count--;
        memmove(&f->rows[place], &f->rows[place + 1], sizeof *f->rows * (f->row_count - place));
        return;
    }
    if (value == NULL)
        return;
    if (!found) {
        if (f->row_count == f->row_capacity) {
            f->row_capacity = f->row_capacity * 2 + 64;
            f->rows = mem_realloc(f->rows, sizeof *f->rows * f->row_capacity);
        }
        memmove(&f->rows[place + 1], &f->rows[place], sizeof *f->rows * (f->row_count - place));
        f->row_count++;
        f->rows[place] = (struct fixture_row){ 0 };
        buf_append(&f->rows[place].key, key.data, key.size);
    }
    buf_clear(&f->rows[place].value);
    buf_append(&f->rows[place].value, value->bytes, value->size);
}

static void load_key(struct fixture *f, struct slice key)
{
    struct state *state = applier_state(f->applier);
    bool found;
    uint32_t place = row_place(f, key, &found);
    struct slice value = found ? buf_slice(&f->rows[place].value) : (struct slice){ 0 };

    CHECK(state_load(state, f->need.load_generation, key, found ? &value : NULL));
}

static void load_range(struct fixture *f, const struct state_range *range)
{
    struct state *state = applier_state(f->applier);
    struct slice last = range->after;
    uint32_t count = 0;
    bool found;
    uint32_t place = row_place(f, range->after, &found);

    if (slice_compare(range->prefix, range->after) > 0)
        place = row_place(f, range->prefix, &found);
    for (; place < f->row_count && count < range->limit; place++) {
        struct slice key = buf_slice(&f->rows[place].key);
        struct slice value = buf_slice(&f->rows[place].value);
        if (slice_compare(key, range->after) <= 0)
            continue;
        if (key.size < range->prefix.size ||
            memcmp(key.data, range->prefix.data, range->prefix.size) != 0)
            break;
        CHECK(state_load(state, f->need.load_generation, key, &value));
        last = key;
        count++;
    }
    CHECK(state_load_range(state, f->need.load_generation, range, last, count < range->limit));
}

static void load_needed(struct fixture *f)
{
    struct reader keys = reader_from(buf_slice(&f->need.keys));
    struct reader ranges = reader_from(buf_slice(&f->need.ranges));

    CHECK(f->need.key_count + f->need.range_count > 0);
    f->need_rounds++;
    while (reader_left(&keys) > 0)
        load_key(f, read_bytes(&keys, STATE_KEY_BYTES_MAX));
    while (reader_left(&ranges) > 0) {
        struct state_range range;
        range.prefix = read_bytes(&ranges, STATE_KEY_BYTES_MAX);
        range.after = read_bytes(&ranges, STATE_KEY_BYTES_MAX);
        range.limit = read_u32(&ranges);
        load_range(f, &range);
    }
    need_clear(&f->need);
}

/* A caller looks for the field in what it sent: no handler names another thing. */
static void check_field(uint32_t method, const char *field)
{
    const struct method_info *told = method_find(method);

    if (told != NULL && !told->internal && field[0] != 0 && !field_path_fits(told->request, field))
        fail_msg("%s has no field \"%s\"", told->name, field);
}

/* What is wrong is told by what would be right, which is never a part of what was sent. */
static void check_limit(const struct fixture *f, const Holdfast__Internal__V1__Refusal *error)
{
    size_t size = strlen(error->limit);

    if (error->code != ERROR(INVALID_ARGUMENT))
        return;
    if (size == 0)
        fail_msg("a refusal about \"%s\" does not say what is expected: %s", error->field,
                 error->message);
    if (size >= LIMIT_WORDS && memmem(f->asked.data, f->asked.size, error->limit, size) != NULL)
        fail_msg("a refusal says as what is expected what was sent: %s", error->message);
}

/* No handler gives an error that callers are not told of. */
static void keep_error(struct fixture *f, uint32_t method, struct slice detail)
{
    f->error = (Holdfast__Internal__V1__Refusal *)arena_unpack(
        &f->arena, &holdfast__internal__v1__refusal__descriptor, detail);
    CHECK(f->error != NULL);
    if (!error_is_given(method, f->error->code, f->error->final) && method_find(method) != NULL)
        fail_msg("idl/method_errors.h has no %d, final %d, for %s: %s", (int)f->error->code,
                 (int)f->error->final, method_find(method)->name, f->error->message);
    check_field(method, f->error->field);
    check_limit(f, f->error);
}

static void keep_refusal(struct fixture *f, uint32_t method, const struct refusal *refusal)
{
    buf_clear(&f->reply);
    refusal_encode(refusal, &f->reply);
    keep_error(f, method, buf_slice(&f->reply));
}

/* NEED must leave no trace: what is needed is loaded, and the same entry is tried again. */
void fixture_apply_entry(struct fixture *f, struct entry *entry)
{
    struct state_stats before;
    struct state_stats after;
    uint32_t rounds = 0;

    for (;;) {
        struct hash128 hash = applier_outcome_hash(f->applier);
        state_stats_get(applier_state(f->applier), &before);
        err e = applier_apply(f->applier, entry, &f->need, &f->outcome);
        /* A look at every row: tests of few entries have one after each. */
        if (entry->index <= CHECKED_ENTRIES || entry->index % CHECKED_ENTRIES == 0)
            state_check(applier_state(f->applier));
        if (e == ERR_OK)
            break;
        state_stats_get(applier_state(f->applier), &after);
        assert_int_equal(e, ERR_NEED);
        assert_int_equal(applier_applied_index(f->applier), entry->index - 1);
        assert_true(hash128_equal(hash, applier_outcome_hash(f->applier)));
        assert_int_equal(before.rows, after.rows);
        assert_int_equal(before.dirty_rows, after.dirty_rows);
        /* The first look at a row gives it a place of its own. */
        if (before.unread_rows == after.unread_rows) {
            assert_int_equal(before.dirty_bytes, after.dirty_bytes);
            assert_int_equal(before.bytes, after.bytes);
        }
        assert_true(++rounds < 10);
        load_needed(f);
    }
}

static void append(struct fixture *f, enum entry_kind kind, struct slice body)
{
    struct dot dot = { f->epoch, FIXTURE_OWNER, ++f->counter };
    struct hash128 previous = { { 0 } };

    if (f->entry_count > 0)
        previous = f->entries[f->entry_count - 1]->hash;
    if (f->entry_count == f->entry_capacity) {
        f->entry_capacity = f->entry_capacity * 2 + 64;
        f->entries = mem_realloc(f->entries, sizeof(struct entry *) * f->entry_capacity);
    }
    struct entry *entry = entry_new(kind,
                                    &(struct entry_head){ .index = f->entry_count + 1u,
                                                          .dot = dot,
                                                          .owner_ms = f->now_ms,
                                                          .prev_hash = previous },
                                    body);
    f->entries[f->entry_count++] = entry;
    fixture_apply_entry(f, entry);
}

void fixture_commit(struct fixture *f, struct slice body)
{
    append(f, ENTRY_OP, body);
}

void fixture_next_epoch(struct fixture *f)
{
    const struct meta *meta = applier_meta(f->applier);
    struct start start = {
        .base_index = meta->applied_index,
        .base_hash = meta->applied_hash,
        .base = meta->vector,
        .membership = { .config = 1, .count = 3, .members = { 1, 2, 3 } },
        .generation = f->generation > 0 ? f->generation : 1,
        .apply_version = APPLY_VERSION,
    };
    struct buf body = { 0 };

    f->epoch++;
    f->counter = 0;
    start_encode(&start, &body);
    append(f, ENTRY_START, buf_slice(&body));
    buf_deinit(&body);
}

void fixture_policy(struct fixture *f, uint64_t operation_window_ms, uint64_t operations_max)
{
    Holdfast__V1__CurrencyPolicy gold = HOLDFAST__V1__CURRENCY_POLICY__INIT;
    Holdfast__V1__CurrencyPolicy gems = HOLDFAST__V1__CURRENCY_POLICY__INIT;
    Holdfast__V1__CurrencyPolicy debt = HOLDFAST__V1__CURRENCY_POLICY__INIT;
    Holdfast__V1__CurrencyPolicy *currencies[] = { &gold, &gems, &debt };
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;

    gold.name = (char *)"gold";
    gems.name = (char *)"gems";
    gems.max_balance = 1000;
    debt.name = (char *)"debt";
    debt.min_balance = -50;
    policy.version = applier_meta(f->applier)->policy.version + 1;
    policy.operation_window_ms = operation_window_ms;
    policy.operations_max = operations_max;
    policy.currencies = currencies;
    policy.n_currencies = ARRAY_SIZE(currencies);
    policy.items_max = 200;
    policy.mailbox_max = 300;
    request.policy = &policy;
    assert_non_null(fixture_mutate(f, METHOD_APPLY_POLICY, &request.base));
}

void fixture_init(struct fixture *f)
{
    fixture_init_shard(f, FIXTURE_SHARD, 0);
}

void fixture_init_shard(struct fixture *f, uint32_t shard, uint32_t shard_count)
{
    memset(f, 0, sizeof *f);
    f->shard = shard;
    f->shard_count = shard_count;
    f->now_ms = FIXTURE_START_MS;
    f->applier = applier_new(shard, node_handlers());
    applier_set_shard_count(f->applier, shard_count);
    CHECK(applier_restore(f->applier, (struct slice){ 0 }) == ERR_OK);
    fixture_next_epoch(f);
    fixture_policy(f, 0, 0);
}

void fixture_deinit(struct fixture *f)
{
    applier_free(f->applier);
    for (uint32_t i = 0; i < f->entry_count; i++)
        entry_unref(f->entries[i]);
    for (uint32_t i = 0; i < f->row_count; i++) {
        buf_deinit(&f->rows[i].key);
        buf_deinit(&f->rows[i].value);
    }
    free(f->entries);
    free(f->rows);
    buf_deinit(&f->meta_row);
    buf_deinit(&f->reply);
    arena_deinit(&f->arena);
    need_deinit(&f->need);
}

int fixture_setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);
    fixture_init(f);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    fixture_deinit(*state);
    free(*state);
    return 0;
}

char *fixture_op_id_at(struct fixture *f, uint64_t unix_ms)
{
    static char texts[IDS_KEPT][UUID_TEXT_SIZE];
    char *text = texts[f->ids % IDS_KEPT];
    uint8_t random[10] = { 0 };

    store_u64(random + 2, ++f->ids << 8); /* Its first byte holds the variant. */
    struct uuid uuid = uuid_v7_make(unix_ms, random);
    uuid_print(&uuid, text);
    return text;
}

char *fixture_op_id(struct fixture *f)
{
    return fixture_op_id_at(f, f->now_ms);
}

static struct slice pack(struct fixture *f, const ProtobufCMessage *request)
{
    return arena_pack(&f->arena, request);
}

/* As a router sends it. */
static struct slice send(struct fixture *f, const ProtobufCMessage *request)
{
    struct slice plain = pack(f, request);

    if (f->caller == NULL)
        return plain;
    uint8_t *data = arena_alloc(&f->arena, plain.size + CALLER_NAME_ENCODED_SIZE);
    memcpy(data, plain.data, plain.size);
    size_t size = caller_name_put(slice_from_text(f->caller), data + plain.size);
    return (struct slice){ data, plain.size + size };
}

bool fixture_prepare(struct fixture *f, uint32_t method, const ProtobufCMessage *request,
                     struct buf *ret_body)
{
    struct refusal refusal = { 0 };

    f->error = NULL;
    f->outcome = (struct outcome){ 0 };
    f->asked = send(f, request);
    const struct applier_asked asked = { method, f->asked, f->now_ms, &f->arena };
    err e = applier_prepare(f->applier, &asked, ret_body, &refusal);
    if (e == ERR_OK)
        return true;
    keep_refusal(f, method, &refusal);
    return false;
}

static void append_profile(struct fixture *f, struct slice body)
{
    struct buf profile = { 0 };
    struct slice answer = arena_copy(&f->arena, buf_slice(&f->reply));

    const struct granted granted = { body, answer };

    while (applier_profile_append(f->applier, &granted, &f->need, &profile) == ERR_NEED)
        load_needed(f);
    buf_append(&f->reply, profile.data, profile.size);
    buf_deinit(&profile);
}

void *fixture_mutate(struct fixture *f, uint32_t method, const ProtobufCMessage *request)
{
    struct buf body = { 0 };
    void *response = NULL;

    f->recorded = fixture_prepare(f, method, request, &body);
    if (f->recorded) {
        fixture_commit(f, buf_slice(&body));
        if (f->outcome.kind == OUTCOME_REFUSED)
            keep_error(f, method, f->outcome.body);
    }
    if (f->recorded && f->outcome.kind == OUTCOME_COMMITTED) {
        buf_clear(&f->reply);
        const struct answer answer = outcome_answer(f->shard, &f->outcome, 2);
        answer_encode(&answer, &f->reply);
        if (method == METHOD_START_SESSION)
            append_profile(f, buf_slice(&body));
        response =
            arena_unpack(&f->arena, method_answer(method_find(method)), buf_slice(&f->reply));
        assert_non_null(response);
    }
    buf_deinit(&body);
    return response;
}

static err read_once(struct fixture *f, uint32_t method, struct refusal *ret_refusal)
{
    const struct applier_asked asked = { method, f->asked, f->now_ms, &f->arena };
    err e;

    do {
        buf_clear(&f->reply);
        e = applier_read(f->applier, &asked, &f->need, &f->reply, ret_refusal);
        if (e == ERR_NEED)
            load_needed(f);
    } while (e == ERR_NEED);
    if (e != ERR_OK) {
        buf_clear(&f->reply);
        refusal_encode(ret_refusal, &f->reply);
    }
    return e;
}

/* What is read does not depend on what is in memory. */
static void check_read_again(struct fixture *f, uint32_t method, err before)
{
    struct slice first = arena_copy(&f->arena, buf_slice(&f->reply));
    uint64_t rounds = f->need_rounds;
    struct refusal refusal = { 0 };

    fixture_evict(f, 0);
    err e = read_once(f, method, &refusal);
    if (e != before || !slice_equal(first, buf_slice(&f->reply)))
        fail_msg("%s: another answer from rows of the database", method_find(method)->name);
    f->need_rounds = rounds;
}

void *fixture_read(struct fixture *f, uint32_t method, const ProtobufCMessage *request)
{
    struct refusal refusal = { 0 };

    f->error = NULL;
    f->asked = pack(f, request);
    err e = read_once(f, method, &refusal);
    if (!f->reads_once && f->reads++ % READ_AGAIN == 0)
        check_read_again(f, method, e);
    if (e != ERR_OK) {
        keep_error(f, method, buf_slice(&f->reply));
        return NULL;
    }
    return arena_unpack(&f->arena, method_answer(method_find(method)), buf_slice(&f->reply));
}

uint32_t fixture_pass(struct fixture *f, uint64_t ms)
{
    struct buf body = { 0 };
    uint64_t end_ms = f->now_ms + ms;
    uint64_t next_ms;
    uint32_t count = 0;

    while (f->now_ms <= end_ms) {
        buf_clear(&body);
        if (applier_due(f->applier, f->now_ms, &body, &next_ms)) {
            fixture_commit(f, buf_slice(&body));
            count++;
            assert_true(count < 10000);
            continue;
        }
        assert_true(next_ms > f->now_ms);
        if (f->now_ms == end_ms)
            break;
        f->now_ms = next_ms < end_ms ? next_ms : end_ms;
    }
    buf_deinit(&body);
    return count;
}

void fixture_checkpoint(struct fixture *f)
{
    struct state *state = applier_state(f->applier);
    const struct state_write *writes;
    uint32_t count;

    assert_true(state_checkpoint_begin(state, &writes, &count));
    for (uint32_t i = 0; i < count; i++)
        row_write(f, writes[i].key, writes[i].value);
    buf_clear(&f->meta_row);
    applier_meta_encode(f->applier, &f->meta_row);
    state_checkpoint_end(state, true);
}

void fixture_evict(struct fixture *f, size_t bytes_max)
{
    state_evict(applier_state(f->applier), bytes_max);
}

void fixture_restart(struct fixture *f)
{
    fixture_checkpoint(f);
    fixture_reopen(f);
}

void fixture_reopen(struct fixture *f)
{
    applier_free(f->applier);
    f->applier = applier_new(f->shard, node_handlers());
    applier_set_shard_count(f->applier, f->shard_count);
    CHECK(applier_restore(f->applier, buf_slice(&f->meta_row)) == ERR_OK);
    f->need.load_generation = state_load_generation(applier_state(f->applier));
    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice key = buf_slice(&f->rows[i].key);
        struct slice value = buf_slice(&f->rows[i].value);
        if (key.data[0] == TABLE_TIMER)
            CHECK(state_load(applier_state(f->applier), f->need.load_generation, key, &value));
    }
}

struct hash128 fixture_digest(struct fixture *f)
{
    struct hash128 digest = { { 0 } };

    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++)
        digest = hash_chain(digest, buf_slice(&f->rows[i].key), buf_slice(&f->rows[i].value));
    return hash_chain(digest, buf_slice(&f->meta_row), (struct slice){ 0 });
}

struct as_of fixture_as_of(const struct fixture *f, const char *text)
{
    struct as_of as_of;

    assert_int_equal(as_of_parse(slice_from_text(text), &as_of), ERR_OK);
    assert_int_equal(as_of.shard, f->shard);
    return as_of;
}
