/* What waits in a shard: for rows that are not in memory, for room, for a player's session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/counter.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/as_of.h"
#include "idl/method.h"
#include "node/core/rows/rows.h"
#include "node/core/shard/shard_internal.h"
#include "node/rpc/fixture_one_shard.h"
#include "node/rpc/fixture_stored.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/base/watched_memory.h"

#define ANSWERS_BYTES 400000u
#define SECTION_BYTES 100000u
#define ASKED_MAX     4096u
#define CODE_OF(name) HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name

struct fixture {
    struct one_shard one;
    struct budget answers;
    enum reply_status last_status;
    struct buf last_body;
    uint32_t replies;
    uint32_t incidents;
    struct incident told;    /* The last one. */
    struct stored_rows rows; /* The database. */
    bool slow;               /* Keys that are asked for wait in `asked`; ranges never come. */
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
    f->incidents += out->incident_count;
    if (out->incident_count > 0)
        f->told = out->incidents[out->incident_count - 1];
}

/* Brings `count` of the keys that were asked for, in one page. */
static void bring(struct fixture *f, uint32_t from, uint32_t count)
{
    struct shard_row rows[ASKED_MAX];

    for (uint32_t i = 0; i < count; i++)
        rows[i] = stored_rows_find(&f->rows, buf_slice(&f->asked[from + i]));
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_ROWS,
                                                  .load_generation = f->generation[from],
                                                  .rows = rows,
                                                  .row_count = count });
}

static void bring_range(struct fixture *f, const struct state_range *range, uint64_t generation)
{
    struct shard_row rows[ASKED_MAX];
    uint32_t count = stored_rows_range(&f->rows, range, rows, ASKED_MAX);

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
    struct shard_image image = { .number = 3,
                                 .rep = { .votes = true, .log_first_index = 1 },
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
    assert_int_equal(shard_new(7, &limits, node_handlers(), &image, &f->one.shard), ERR_OK);
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
    stored_rows_deinit(&f->rows);
    for (uint32_t i = 0; i < ASKED_MAX; i++)
        buf_deinit(&f->asked[i]);
    free(f);
    return 0;
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
    stored_rows_lose(&f->rows, row_key_slice(&key));
}

/* The fence rose: a caller that is told "nothing was done" would believe the earlier server in. */
static void a_session_is_granted_though_its_profile_cannot_be_read(void **state)
{
    struct fixture *f = *state;

    save_section(f, "42", 100);
    stored_rows_checkpoint(&f->rows, f->one.shard);
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
    stored_rows_checkpoint(&f->rows, f->one.shard);
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

static void read_balances(struct fixture *f, const char *player, Holdfast__V1__ReadOptions *read)
{
    Holdfast__V1__GetBalancesRequest request = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.read = read;
    one_shard_call(&f->one, METHOD_GET_BALANCES, &request.base);
}

static uint64_t read_runs(const struct fixture *f)
{
    struct shard_stats stats;

    shard_stats_get(f->one.shard, &stats);
    return stats.read_runs;
}

#define READS 300u

/* Each looks when it comes, and once its row is here. */
static void a_page_of_rows_wakes_the_reads_that_wait_for_it(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ReadOptions options = HOLDFAST__V1__READ_OPTIONS__INIT;

    options.stale = true;
    f->slow = true;
    for (uint32_t i = 0; i < READS; i++) {
        char player[16];
        (void)snprintf(player, sizeof player, "cold-%u", i);
        read_balances(f, player, &options);
    }
    assert_int_equal(f->asked_count, READS);
    uint32_t replies = f->replies;
    for (uint32_t i = 0; i < READS; i++) {
        bring(f, i, 1);
        assert_int_equal(f->replies, replies + i + 1);
        assert_int_equal(f->last_status, REPLY_OK);
    }
    assert_int_equal(read_runs(f), 2 * READS);
}

static Holdfast__Internal__V1__Refusal *refused(const struct fixture *f)
{
    assert_int_equal(f->last_status, REPLY_REFUSED);
    Holdfast__Internal__V1__Refusal *why =
        holdfast__internal__v1__refusal__unpack(NULL, f->last_body.size, f->last_body.data);
    assert_non_null(why);
    return why;
}

static void read_at_least(struct fixture *f, uint64_t epoch, uint64_t counter)
{
    Holdfast__V1__ReadOptions options = HOLDFAST__V1__READ_OPTIONS__INIT;
    const struct as_of as_of = { .shard = 3, .epoch = epoch, .owner = 7, .counter = counter };
    char text[AS_OF_TEXT_SIZE];

    as_of_print(&as_of, text);
    options.at_least = text;
    read_balances(f, "42", &options);
}

/* The owner knows every version of its epoch: no later one is on its way. */
static void a_version_that_no_one_was_told_is_refused_by_its_owner(void **state)
{
    struct fixture *f = *state;
    uint32_t replies = f->replies;

    read_at_least(f, 1, 2);
    assert_int_equal(f->replies, replies + 1);
    assert_int_equal(f->last_status, REPLY_OK);
    read_at_least(f, 1, 3);
    assert_int_equal(f->replies, replies + 2);
    Holdfast__Internal__V1__Refusal *why = refused(f);
    assert_int_equal(why->code, CODE_OF(INVALID_ARGUMENT));
    assert_string_equal(why->field, "read.at_least");
    assert_non_null(strstr(why->message, "2"));
    assert_non_null(strstr(why->message, "3"));
    holdfast__internal__v1__refusal__free_unpacked(why, NULL);
}

/* One of a later epoch may be told elsewhere: it waits, but not without bound. */
static void reads_of_versions_that_are_not_here_yet_are_bounded(void **state)
{
    struct fixture *f = *state;
    uint32_t replies = f->replies;

    f->one.shard->limits.reads_ahead_max = 3;
    for (uint64_t counter = 4; counter > 1; counter--)
        read_at_least(f, 2, counter);
    assert_int_equal(f->replies, replies);
    read_at_least(f, 2, 5);
    assert_int_equal(f->replies, replies + 1);
    Holdfast__Internal__V1__Refusal *why = refused(f);
    assert_int_equal(why->code, CODE_OF(THROTTLED));
    assert_true(why->retry_after_ms > 0);
    holdfast__internal__v1__refusal__free_unpacked(why, NULL);
    f->one.now_ms += 10000;
    tick(f);
    assert_int_equal(f->replies, replies + 4);
    assert_int_equal(f->last_status, REPLY_UNKNOWN);
}

#define WAITERS 16u /* waiters_per_player_max, by default. */

static void waiters_of_one_player_are_bounded(void **state)
{
    struct fixture *f = *state;

    start_session(f, "42", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    uint32_t replies = f->replies;
    for (uint32_t i = 0; i < WAITERS; i++)
        start_session(f, "42", HOLDFAST__V1__START_MODE__START_MODE_WAIT);
    assert_int_equal(f->replies, replies);
    start_session(f, "42", HOLDFAST__V1__START_MODE__START_MODE_WAIT);
    assert_int_equal(f->replies, replies + 1);
    Holdfast__Internal__V1__Refusal *why = refused(f);
    assert_int_equal(why->code, CODE_OF(SESSION_LOCKED));
    holdfast__internal__v1__refusal__free_unpacked(why, NULL);
    start_session(f, "43", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    start_session(f, "43", HOLDFAST__V1__START_MODE__START_MODE_WAIT);
    assert_int_equal(f->replies, replies + 2); /* Another player has places of its own. */
}

/* What calls leave for the next ones to use. */
static size_t pool_bytes(const struct fixture *f)
{
    size_t bytes = 0;

    for (const struct call *call = f->one.shard->free_calls; call != NULL; call = call->next) {
        memory_hand_out(call, sizeof *call);
        bytes += sizeof *call + call->request.capacity + call->answer.capacity;
    }
    return bytes;
}

static void a_crowd_of_joins_leaves_little_memory_behind(void **state)
{
    struct fixture *f = *state;
    char player[16];

    for (uint32_t i = 0; i < READS; i++) {
        (void)snprintf(player, sizeof player, "join-%u", i);
        save_section(f, player, 40000);
    }
    stored_rows_checkpoint(&f->rows, f->one.shard);
    f->slow = true;
    for (uint32_t i = 0; i < READS; i++) {
        (void)snprintf(player, sizeof player, "join-%u", i);
        start_session(f, player, HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    }
    uint32_t replies = f->replies;
    for (uint32_t i = 0; i < f->asked_count; i++)
        bring(f, i, 1);
    while (f->one.shard->call_count > 0) /* The room for answers holds some at a time. */
        tick(f);
    assert_true(f->replies >= replies + READS);
    assert_true(pool_bytes(f) < 1024 * 1024);
}

#define QUARANTINE_PLACES 1024u

static void contain(struct fixture *f, char *player)
{
    Holdfast__Internal__V1__ContainPlayerRequest request =
        HOLDFAST__INTERNAL__V1__CONTAIN_PLAYER_REQUEST__INIT;
    struct buf body = { 0 };

    request.shard = 3;
    request.player_id = player;
    request.reason = (char *)"test";
    owner_op_encode(METHOD_CONTAIN_PLAYER, (struct slice){ 0 }, &request.base, &body);
    one_shard_propose(&f->one, buf_slice(&body));
    buf_deinit(&body);
}

static void get_profile(struct fixture *f, const char *player)
{
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;

    request.player_id = text_lend(player);
    one_shard_call(&f->one, METHOD_GET_PROFILE, &request.base);
    assert_int_equal(f->last_status, REPLY_REFUSED);
}

/* The log is not to grow by what nothing comes of. */
static void a_damaged_player_that_cannot_be_contained_is_told_of_and_logged_no_more(void **state)
{
    struct fixture *f = *state;
    char player[16];

    save_section(f, "42", 100);
    stored_rows_checkpoint(&f->rows, f->one.shard);
    lose_section(f, "player:42");
    for (uint32_t i = 0; i < QUARANTINE_PLACES; i++) {
        (void)snprintf(player, sizeof player, "held-%u", i);
        contain(f, player);
    }
    assert_int_equal(shard_meta(f->one.shard)->quarantine_count, QUARANTINE_PLACES);
    uint64_t entries = shard_applied_index(f->one.shard);
    uint32_t told = f->incidents;
    for (int i = 0; i < 3; i++)
        get_profile(f, "42");
    assert_int_equal(shard_applied_index(f->one.shard), entries);
    assert_int_equal(f->incidents, told + 1);
    assert_string_equal(f->told.player, "42");
}

/* ---- what an earlier owner logged ---- */

static void define_counter(struct fixture *f, const char *name)
{
    Holdfast__Internal__V1__DefineRequest request = HOLDFAST__INTERNAL__V1__DEFINE_REQUEST__INIT;
    Holdfast__Internal__V1__Defined given = HOLDFAST__INTERNAL__V1__DEFINED__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__CounterBody rule = HOLDFAST__V1__COUNTER_BODY__INIT;
    Holdfast__Internal__V1__Defined *list[] = { &given };

    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
    body.counter = &rule;
    given.number = given.version = given.revision = 20;
    given.name = text_lend(name);
    given.body = &body;
    request.generation = 1;
    request.to_revision = given.revision;
    request.last = true;
    request.n_definitions = 1;
    request.definitions = list;
    one_shard_call(&f->one, METHOD_DEFINE, &request.base);
}

static void add_to_counter(struct fixture *f, const char *name)
{
    Holdfast__V1__AddToCounterRequest request = HOLDFAST__V1__ADD_TO_COUNTER_REQUEST__INIT;
    char id[UUID_TEXT_SIZE];

    one_shard_op_id(&f->one, id);
    request.player_id = (char *)"42";
    request.op_id = id;
    request.authority = (char *)"system:match";
    request.counter = text_lend(name);
    request.target_id = (char *)"level";
    request.amount = 1;
    one_shard_call(&f->one, METHOD_ADD_TO_COUNTER, &request.base);
}

/* An owner's rows are behind what earlier owners logged. It refuses no name that they may define.
 */
static void a_new_owner_refuses_no_name_before_it_applied_what_was_logged(void **state)
{
    struct fixture *f = *state;
    struct rep_record record = {
        .generation = 1, .epoch = 2, .owner = 7, .membership = { .config = 1, .count = 1 }
    };

    add_to_counter(f, "kills");
    assert_int_equal(f->last_status, REPLY_REFUSED);
    f->slow = true;
    define_counter(f, "kills");
    record.membership.members[0] = 7;
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_RECORD, .record = &record });
    assert_true(shard_serves(f->one.shard));
    uint32_t replies = f->replies;

    add_to_counter(f, "kills");
    assert_int_equal(f->replies, replies);
    f->slow = false;
    uint32_t count = f->asked_count;

    assert_true(count > 0);
    f->asked_count = 0;
    bring(f, 0, count);
    tick(f);
    assert_int_equal(f->replies, replies + 1);
    assert_int_equal(f->last_status, REPLY_OK);
}

#define DAY_MS 86400000u

/* A session that is never used frees itself, whatever the clock said before it began. */
static void timers_go_on_at_once_when_the_clock_is_set_back(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;
    char id[UUID_TEXT_SIZE];

    f->one.wall_ms += DAY_MS;
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_TICK });
    f->one.wall_ms -= DAY_MS;
    one_shard_op_id(&f->one, id);
    request.player_id = (char *)"42";
    request.op_id = id;
    request.incarnation = (char *)"1-7";
    one_shard_call(&f->one, METHOD_START_SESSION, &request.base);
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_TICK });
    assert_int_equal(f->last_status, REPLY_OK);
    uint64_t proposed = f->one.shard->stats.proposed;
    f->one.now_ms += 20000;
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_TICK });
    assert_int_equal(f->one.shard->stats.proposed, proposed + 1);
}

int main(void)
{
#define WAIT_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        WAIT_TEST(timers_go_on_at_once_when_the_clock_is_set_back),
        WAIT_TEST(a_session_is_granted_though_its_profile_cannot_be_read),
        WAIT_TEST(a_session_behind_one_without_room_sees_that_its_rows_came),
        WAIT_TEST(a_page_of_rows_wakes_the_reads_that_wait_for_it),
        WAIT_TEST(a_version_that_no_one_was_told_is_refused_by_its_owner),
        WAIT_TEST(reads_of_versions_that_are_not_here_yet_are_bounded),
        WAIT_TEST(waiters_of_one_player_are_bounded),
        WAIT_TEST(a_crowd_of_joins_leaves_little_memory_behind),
        WAIT_TEST(a_damaged_player_that_cannot_be_contained_is_told_of_and_logged_no_more),
        WAIT_TEST(a_new_owner_refuses_no_name_before_it_applied_what_was_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
