/* What waits in a shard: for rows that are not in memory, for room, for a player's session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/method.h"
#include "node/core/rows/rows.h"
#include "node/core/shard/shard_internal.h"
#include "node/rpc/fixture_one_shard.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"

#define ANSWERS_BYTES 400000u
#define SECTION_BYTES 100000u
#define ASKED_MAX     1024u
#define ROWS_MAX      2048u
#define CODE_OF(name) HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name

struct fixture {
    struct one_shard one;
    struct budget answers;
    enum reply_status last_status;
    struct buf last_body;
    uint32_t replies;
    struct stored {
        struct buf key, value;
        bool lost;
    } rows[ROWS_MAX]; /* The database, in no order. */
    uint32_t row_count;
    bool slow; /* Keys that are asked for wait in `asked`; ranges never come. */
    struct buf asked[ASKED_MAX];
    uint64_t generation[ASKED_MAX];
    uint32_t asked_count;
};

static void take_replies(void *user, const struct shard_out *out)
{
    struct fixture *f = user;

    for (uint32_t i = 0; i < out->reply_count; i++) {
        f->last_status = out->replies[i].status;
        buf_clear(&f->last_body);
        buf_append(&f->last_body, out->bytes.data + out->replies[i].offset, out->replies[i].size);
        f->replies++;
        budget_give(&f->answers, out->replies[i].held);
    }
}

static struct stored *stored_find(struct fixture *f, struct slice key)
{
    for (uint32_t i = 0; i < f->row_count; i++) {
        if (slice_equal(buf_slice(&f->rows[i].key), key))
            return &f->rows[i];
    }
    return NULL;
}

static struct shard_row row_of(struct fixture *f, struct slice key)
{
    const struct stored *row = stored_find(f, key);

    if (row == NULL || row->lost)
        return (struct shard_row){ .key = key, .absent = true };
    return (struct shard_row){ .key = key, .value = buf_slice(&row->value) };
}

/* Brings `count` of the keys that were asked for, in one page. */
static void bring(struct fixture *f, uint32_t from, uint32_t count)
{
    struct shard_row rows[ASKED_MAX];

    for (uint32_t i = 0; i < count; i++)
        rows[i] = row_of(f, buf_slice(&f->asked[from + i]));
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_ROWS,
                                                  .load_generation = f->generation[from],
                                                  .rows = rows,
                                                  .row_count = count });
}

static int by_key(const void *a, const void *b)
{
    return slice_compare(((const struct shard_row *)a)->key, ((const struct shard_row *)b)->key);
}

/* All there is of a range: a page of it is never full here. */
static void bring_range(struct fixture *f, const struct state_range *range, uint64_t generation)
{
    struct shard_row rows[ASKED_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice key = buf_slice(&f->rows[i].key);
        if (key.size >= range->prefix.size &&
            memcmp(key.data, range->prefix.data, range->prefix.size) == 0 &&
            slice_compare(key, range->after) > 0)
            rows[count++] = row_of(f, key);
    }
    CHECK(count <= range->limit);
    qsort(rows, count, sizeof *rows, by_key);
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_ROWS,
                                                  .load_generation = generation,
                                                  .rows = rows,
                                                  .row_count = count,
                                                  .range = range,
                                                  .complete = true });
}

static void load_ranges(struct fixture *f, const struct need *need)
{
    struct reader ranges = reader_from(buf_slice(&need->ranges));

    while (reader_left(&ranges) > 0) {
        struct state_range range;
        range.prefix = read_bytes(&ranges, STATE_KEY_BYTES_MAX);
        range.after = read_bytes(&ranges, STATE_KEY_BYTES_MAX);
        range.limit = read_u32(&ranges);
        bring_range(f, &range, need->load_generation);
    }
}

static void load(void *user, const struct need *need)
{
    struct fixture *f = user;
    struct reader keys = reader_from(buf_slice(&need->keys));
    uint32_t from = f->asked_count;

    while (reader_left(&keys) > 0) {
        struct slice key = read_bytes(&keys, STATE_KEY_BYTES_MAX);
        CHECK(f->asked_count < ASKED_MAX);
        buf_clear(&f->asked[f->asked_count]);
        buf_append(&f->asked[f->asked_count], key.data, key.size);
        f->generation[f->asked_count++] = need->load_generation;
    }
    if (f->slow)
        return;
    load_ranges(f, need);
    if (f->asked_count > from)
        bring(f, from, f->asked_count - from);
    f->asked_count = from;
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    struct shard_image image = { .rep = { .votes = true, .log_first_index = 1 },
                                 .answers = &f->answers };
    struct shard_limits limits = shard_limits_default();
    struct rep_record record = {
        .generation = 1, .epoch = 1, .owner = 7, .membership = { .config = 1, .count = 1 }
    };

    f->one.taken = take_replies;
    f->one.load = load;
    f->one.user = f;
    budget_init(&f->answers, ANSWERS_BYTES);
    record.membership.members[0] = 7;
    assert_int_equal(shard_new(3, 7, &limits, node_handlers(), &image, &f->one.shard), ERR_OK);
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_RECORD, .record = &record });
    one_shard_policy(&f->one);
    assert_int_equal(f->last_status, REPLY_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    shard_free(f->one.shard);
    budget_deinit(&f->answers);
    buf_deinit(&f->last_body);
    for (uint32_t i = 0; i < ROWS_MAX; i++) {
        buf_deinit(&f->rows[i].key);
        buf_deinit(&f->rows[i].value);
    }
    for (uint32_t i = 0; i < ASKED_MAX; i++)
        buf_deinit(&f->asked[i]);
    free(f);
    return 0;
}

static void store(struct fixture *f, const struct state_write *write)
{
    struct stored *row = stored_find(f, write->key);

    if (row == NULL) {
        CHECK(f->row_count < ROWS_MAX);
        row = &f->rows[f->row_count++];
        buf_append(&row->key, write->key.data, write->key.size);
    }
    CHECK(write->value != NULL);
    struct slice value = { write->value->bytes, write->value->size };
    buf_clear(&row->value);
    buf_append(&row->value, value.data, value.size);
}

/* All rows go to the database, and none stays in memory. */
static void go_cold(struct fixture *f)
{
    struct shard_checkpoint checkpoint;

    assert_true(shard_checkpoint_begin(f->one.shard, &checkpoint));
    for (uint32_t i = 0; i < checkpoint.write_count; i++)
        store(f, &checkpoint.writes[i]);
    shard_checkpoint_end(f->one.shard, true);
    buf_deinit(&checkpoint.meta_row);
    shard_evict(f->one.shard, 0);
}

static void tick(struct fixture *f)
{
    f->one.now_ms += 20;
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_TICK });
}

static void save_section(struct fixture *f, const char *player, uint32_t size)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &edit };
    char *json = mem_zalloc(size + 1);
    char id[UUID_TEXT_SIZE];

    one_shard_op_id(&f->one, id);
    memset(json, 'x', size);
    json[0] = json[size - 1] = '"';
    edit.name = (char *)"a";
    edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    edit.replace = json;
    request.player_id = text_lend(player);
    request.op_id = id;
    request.authority = (char *)"unheld";
    request.edits = edits;
    request.n_edits = 1;
    one_shard_call(&f->one, METHOD_UPDATE_PROFILE, &request.base);
    assert_int_equal(f->last_status, REPLY_OK);
    free(json);
}

static void start_session(struct fixture *f, const char *player, Holdfast__V1__StartMode mode)
{
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;
    char *include[] = { (char *)"sections" };
    char incarnation[24];
    char id[UUID_TEXT_SIZE];

    one_shard_op_id(&f->one, id);
    (void)snprintf(incarnation, sizeof incarnation, "1-%llu",
                   (unsigned long long)f->one.calls + 100);
    request.player_id = text_lend(player);
    request.op_id = id;
    request.incarnation = incarnation;
    request.mode = mode;
    request.include = include;
    request.n_include = 1;
    one_shard_call(&f->one, METHOD_START_SESSION, &request.base);
}

static Holdfast__V1__StartSessionResponse *started(struct fixture *f)
{
    assert_int_equal(f->last_status, REPLY_OK);
    Holdfast__V1__StartSessionResponse *response =
        holdfast__v1__start_session_response__unpack(NULL, f->last_body.size, f->last_body.data);
    assert_non_null(response);
    return response;
}

static void lose_section(struct fixture *f, const char *entity)
{
    struct row_key key;

    row_key_section(&key, slice_from_text(entity), SLICE_LITERAL("a"));
    struct stored *row = stored_find(f, row_key_slice(&key));
    assert_non_null(row);
    row->lost = true;
}

/* The fence rose: a caller that is told "nothing was done" would believe the earlier server in. */
static void a_session_is_granted_though_its_profile_cannot_be_read(void **state)
{
    struct fixture *f = *state;

    save_section(f, "42", 100);
    go_cold(f);
    lose_section(f, "player:42");
    start_session(f, "42", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    Holdfast__V1__StartSessionResponse *response = started(f);
    assert_int_equal(response->fence, 1);
    assert_true(strlen(response->token) > 0);
    assert_null(response->profile);
    holdfast__v1__start_session_response__free_unpacked(response, NULL);
    assert_non_null(meta_find_quarantined(shard_meta(f->one.shard), SLICE_LITERAL("42")));
}

/* Rows of both came in one page, of which the first had no room: the second looked no more. */
static void a_session_behind_one_without_room_sees_that_its_rows_came(void **state)
{
    struct fixture *f = *state;

    save_section(f, "42", SECTION_BYTES);
    save_section(f, "43", SECTION_BYTES);
    go_cold(f);
    budget_take(&f->answers, ANSWERS_BYTES);
    uint32_t replies = f->replies;
    f->slow = true;
    start_session(f, "42", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    start_session(f, "43", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    for (uint32_t from = 0; from < f->asked_count;) {
        uint32_t until = f->asked_count;
        bring(f, from, until - from);
        from = until;
    }
    assert_int_equal(f->replies, replies);
    budget_give(&f->answers, ANSWERS_BYTES);
    for (int i = 0; i < 3; i++)
        tick(f);
    assert_int_equal(f->replies, replies + 2);
    holdfast__v1__start_session_response__free_unpacked(started(f), NULL);
}

int main(void)
{
#define WAIT_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        WAIT_TEST(a_session_is_granted_though_its_profile_cannot_be_read),
        WAIT_TEST(a_session_behind_one_without_room_sees_that_its_rows_came),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
