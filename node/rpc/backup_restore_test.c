/* A shard's rows put into an empty shard of another cluster, by entries of its log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/backup.pb-c.h"
#include "holdfast/v1/events.pb-c.h"
#include "holdfast/v1/favorites.pb-c.h"
#include "node/core/apply/apply.h"
#include "node/core/apply/restore.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture.h"
#include "node/rpc/fixture_counter.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_metadata.h"
#include "runtime/base/row_digest.h"

#define PARTS  3u
#define DAY_MS 86400000ull

/* `old` was backed up: ann has gold, bob's server holds him. `f` is of a new cluster. */
struct world {
    struct fixture old, f;
    struct buf parts[PARTS];
    struct row_digest rows;
    char *bobs_token;
    char receipt[48];
};

static void back_up(struct world *w)
{
    fixture_checkpoint(&w->old);
    for (uint32_t i = 0; i < w->old.row_count; i++) {
        struct slice key = buf_slice(&w->old.rows[i].key);
        struct slice value = buf_slice(&w->old.rows[i].value);
        struct buf *part = &w->parts[i * PARTS / w->old.row_count];
        buf_put_bytes(part, key);
        buf_put_bytes(part, value);
        row_digest_add(&w->rows, key, value);
    }
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    fixture_init(&w->old);
    assert_non_null(fixture_grant(&w->old, "ann", "unheld", 100));
    snprintf(w->receipt, sizeof w->receipt, "%s", fixture_op_id(&w->old));
    w->bobs_token = strdup(fixture_start(&w->old, "bob", SERVER_A,
                                         HOLDFAST__V1__START_MODE__START_MODE_FAIL, w->receipt));
    assert_non_null(fixture_grant(&w->old, "bob", w->bobs_token, 7));
    back_up(w);
    fixture_init(&w->f);
    w->f.ids = w->old.ids; /* None twice. */
    w->f.generation = 2;
    w->f.epoch = w->old.epoch + 1000;
    fixture_next_epoch(&w->f);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    fixture_deinit(&w->old);
    fixture_deinit(&w->f);
    for (uint32_t i = 0; i < PARTS; i++)
        buf_deinit(&w->parts[i]);
    free(w->bobs_token);
    free(w);
    return 0;
}

static ProtobufCBinaryData bytes(struct slice slice)
{
    return (ProtobufCBinaryData){ slice.size, (uint8_t *)(uintptr_t)slice.data };
}

static const char *const own_id = "sixteen bytes of";

static const Holdfast__V1__BeginRestoreResponse *begin(struct world *w, const char *id)
{
    Holdfast__V1__BeginRestoreRequest request = HOLDFAST__V1__BEGIN_RESTORE_REQUEST__INIT;

    request.restore_id = bytes(slice_from_text(id));
    request.meta = bytes(buf_slice(&w->old.meta_row));
    return fixture_mutate(&w->f, METHOD_BEGIN_RESTORE, &request.base);
}

static const Holdfast__V1__RestoreRowsResponse *put(struct world *w, uint32_t part)
{
    Holdfast__V1__RestoreRowsRequest request = HOLDFAST__V1__RESTORE_ROWS_REQUEST__INIT;

    request.restore_id = bytes(slice_from_text(own_id));
    request.part = part;
    request.rows = bytes(buf_slice(&w->parts[part % PARTS]));
    return fixture_mutate(&w->f, METHOD_RESTORE_ROWS, &request.base);
}

static const void *finish(struct world *w, uint64_t row_count)
{
    Holdfast__V1__FinishRestoreRequest request = HOLDFAST__V1__FINISH_RESTORE_REQUEST__INIT;
    struct hash128 sum = row_digest_sum(&w->rows);

    request.restore_id = bytes(slice_from_text(own_id));
    request.meta = bytes(buf_slice(&w->old.meta_row));
    request.row_count = row_count;
    request.digest = bytes((struct slice){ sum.bytes, sizeof sum.bytes });
    return fixture_mutate(&w->f, METHOD_FINISH_RESTORE, &request.base);
}

static void restore(struct world *w)
{
    assert_non_null(begin(w, own_id));
    for (uint32_t i = 0; i < PARTS; i++)
        assert_non_null(put(w, i));
    assert_non_null(finish(w, w->rows.count));
}

static const char *stands(struct world *w)
{
    Holdfast__V1__GetBackupStateRequest request = HOLDFAST__V1__GET_BACKUP_STATE_REQUEST__INIT;
    const Holdfast__V1__GetBackupStateResponse *response =
        fixture_read(&w->f, METHOD_GET_BACKUP_STATE, &request.base);

    assert_non_null(response);
    return response->state;
}

static void refused_as(const struct world *w, Holdfast__V1__ErrorCode code)
{
    assert_non_null(w->f.error);
    assert_int_equal(w->f.error->code, code);
}

static void what_was_backed_up_is_there_again(void **state)
{
    struct world *w = *state;

    assert_string_equal(stands(w), "empty");
    restore(w);
    assert_string_equal(stands(w), "used");
    assert_int_equal(fixture_balance(&w->f, "ann", "gold"), 100);
    assert_int_equal(fixture_balance(&w->f, "bob", "gold"), 7);
    fixture_checkpoint(&w->f);
    uint32_t at = 0;
    for (uint32_t i = 0; i < w->old.row_count; i++) {
        if (w->old.rows[i].key.data[0] == TABLE_EVENT)
            continue; /* Events begin again. */
        assert_true(at < w->f.row_count);
        assert_true(slice_equal(buf_slice(&w->f.rows[at].key), buf_slice(&w->old.rows[i].key)));
        assert_true(
            slice_equal(buf_slice(&w->f.rows[at++].value), buf_slice(&w->old.rows[i].value)));
    }
    assert_int_equal(at, w->f.row_count);
    assert_int_equal(applier_meta(w->f.applier)->events.count, 0);
    fixture_restart(&w->f);
    assert_int_equal(fixture_balance(&w->f, "ann", "gold"), 100);
    assert_non_null(fixture_grant(&w->f, "ann", "unheld", 1));
    assert_int_equal(fixture_balance(&w->f, "ann", "gold"), 101);
}

/* Another backup of `old`, as it is now. */
static void back_up_again(struct world *w)
{
    for (uint32_t i = 0; i < PARTS; i++)
        buf_clear(&w->parts[i]);
    w->rows = (struct row_digest){ 0 };
    back_up(w);
    w->f.ids = w->old.ids; /* None twice. */
    w->f.now_ms = w->old.now_ms;
}

static uint32_t rows_of(const struct fixture *f, enum table table)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < f->row_count; i++)
        count += f->rows[i].key.data[0] == (uint8_t)table;
    return count;
}

/* What players added stands under the number of the counter's definition, and with the target. */
static void rows_of_counters_come_back(void **state)
{
    struct world *w = *state;

    fixture_define_plays(&w->old);
    assert_int_equal(fixture_add(&w->old, "ann", "pong", 5), 5);
    assert_int_equal(fixture_add(&w->old, "bob", "pong", 7), 7);
    assert_int_equal(fixture_add(&w->old, "ann", "chess", 2), 2);
    back_up_again(w);
    assert_int_equal(rows_of(&w->old, TABLE_ADDED), 3);
    assert_int_equal(rows_of(&w->old, TABLE_ADDER), 3);
    fixture_define_plays(&w->f);
    restore(w);
    assert_int_equal(fixture_value(&w->f, "ann", "pong"), 5);
    assert_int_equal(fixture_part(&w->f, "plays", "pong"), 12);
    fixture_check_counters(&w->f);
    assert_int_equal(rows_of(&w->f, TABLE_ADDED), 3);
    assert_int_equal(rows_of(&w->f, TABLE_ADDER), 3);
    fixture_restart(&w->f);
    assert_int_equal(fixture_add(&w->f, "ann", "pong", 1), 6);
    assert_int_equal(fixture_value(&w->f, "ann", "chess"), 2);
    assert_int_equal(fixture_part(&w->f, "plays", "pong"), 13);
    fixture_check_counters(&w->f);
}

/* A pull carries no cut, so what a home had logged need not be what its source has by now. */
static void totals_are_pulled_again(void **state)
{
    struct world *w = *state;

    fixture_deinit(&w->old);
    fixture_deinit(&w->f);
    fixture_init_shard(&w->old, 0, 1); /* It is the home of all targets. */
    fixture_init_shard(&w->f, 0, 1);
    w->f.generation = 2;
    w->f.epoch = w->old.epoch + 1000;
    fixture_next_epoch(&w->f);
    fixture_define_favorites(&w->old);
    assert_non_null(fixture_favorite(&w->old, "ann", "tetris"));
    fixture_take_totals(&w->old);
    back_up_again(w);
    assert_int_equal(rows_of(&w->old, TABLE_SHARE), 1);
    assert_int_equal(rows_of(&w->old, TABLE_TALLY), 1);
    assert_int_equal(rows_of(&w->old, TABLE_PULLED), 1);
    assert_true(rows_of(&w->old, TABLE_RANK) > 0);
    fixture_define_favorites(&w->f);
    restore(w);
    fixture_checkpoint(&w->f);
    assert_int_equal(rows_of(&w->f, TABLE_SHARE) + rows_of(&w->f, TABLE_TALLY), 0);
    assert_int_equal(rows_of(&w->f, TABLE_PULLED) + rows_of(&w->f, TABLE_RANK), 0);
    fixture_take_totals(&w->f);
    fixture_checkpoint(&w->f);
    assert_int_equal(rows_of(&w->f, TABLE_TALLY), 1);
    assert_int_equal(rows_of(&w->f, TABLE_RANK), rows_of(&w->old, TABLE_RANK));
}

/* By the rules before, totals come from the backup; by those of now, they are pulled again. A START
 * in mid-restore must not leave some of the one and some of the other. */
static void a_restore_ends_by_the_rules_under_which_it_began(void **state)
{
    struct world *w = *state;

    fixture_deinit(&w->old);
    fixture_deinit(&w->f);
    fixture_init_shard(&w->old, 0, 1);
    fixture_init_shard(&w->f, 0, 1);
    w->f.generation = 2;
    w->f.epoch = w->old.epoch + 1000;
    fixture_next_epoch(&w->f);
    fixture_define_favorites(&w->old);
    assert_non_null(fixture_favorite(&w->old, "ann", "tetris"));
    fixture_take_totals(&w->old);
    ((struct meta *)(uintptr_t)applier_meta(w->old.applier))->apply_version =
        RESTORE_PULLS_APPLY_VERSION - 1;
    back_up_again(w);
    fixture_define_favorites(&w->f);
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(w->f.applier);
    meta->apply_version = RESTORE_PULLS_APPLY_VERSION - 1;
    assert_non_null(begin(w, own_id));
    for (uint32_t i = 0; i < PARTS; i++) {
        assert_non_null(put(w, i));
        meta->apply_version = RESTORE_PULLS_APPLY_VERSION;
    }
    assert_non_null(finish(w, w->rows.count));
    fixture_checkpoint(&w->f);
    assert_int_equal(rows_of(&w->f, TABLE_SHARE), rows_of(&w->old, TABLE_SHARE));
    assert_int_equal(rows_of(&w->f, TABLE_TALLY), rows_of(&w->old, TABLE_TALLY));
    assert_int_equal(rows_of(&w->f, TABLE_PULLED), rows_of(&w->old, TABLE_PULLED));
    assert_int_equal(rows_of(&w->f, TABLE_RANK), rows_of(&w->old, TABLE_RANK));
    assert_true(meta->versions_above > 0);
}

static uint64_t put_title(struct fixture *f, const char *title, uint64_t version)
{
    Holdfast__V1__PutTargetMetadataRequest request =
        HOLDFAST__V1__PUT_TARGET_METADATA_REQUEST__INIT;

    request.target_id = text_lend("tetris");
    request.op_id = fixture_op_id(f);
    request.title = text_lend(title);
    request._if_version_case = HOLDFAST__V1__PUT_TARGET_METADATA_REQUEST___IF_VERSION_IF_VERSION;
    request.if_version = version;
    const Holdfast__V1__PutTargetMetadataResponse *response =
        fixture_mutate(f, METHOD_PUT_TARGET_METADATA, &request.base);
    return response != NULL ? response->metadata->version : 0;
}

static void take_title_away(struct fixture *f)
{
    Holdfast__V1__DeleteTargetMetadataRequest request =
        HOLDFAST__V1__DELETE_TARGET_METADATA_REQUEST__INIT;

    request.target_id = text_lend("tetris");
    assert_non_null(fixture_mutate(f, METHOD_DELETE_TARGET_METADATA, &request.base));
}

static uint64_t consume(struct fixture *f, const char *op_id)
{
    Holdfast__V1__CreateConsumerRequest request = HOLDFAST__V1__CREATE_CONSUMER_REQUEST__INIT;

    request.consumer = text_lend("search");
    request.op_id = text_lend(op_id);
    const Holdfast__V1__CreateConsumerResponse *response =
        fixture_mutate(f, METHOD_CREATE_CONSUMER, &request.base);
    return response != NULL ? response->consumer->version : 0;
}

static uint64_t commit_consumer(struct fixture *f, uint64_t version)
{
    Holdfast__V1__CommitConsumerRequest request = HOLDFAST__V1__COMMIT_CONSUMER_REQUEST__INIT;

    request.consumer = text_lend("search");
    request.op_id = fixture_op_id(f);
    request.version = version;
    request.rewind = true; /* From the oldest event on: no cursor. */
    const Holdfast__V1__CommitConsumerResponse *response =
        fixture_mutate(f, METHOD_COMMIT_CONSUMER, &request.base);
    return response != NULL ? response->consumer->version : 0;
}

static void forget_consumer(struct fixture *f)
{
    Holdfast__V1__DeleteConsumerRequest request = HOLDFAST__V1__DELETE_CONSUMER_REQUEST__INIT;

    request.consumer = text_lend("search");
    assert_non_null(fixture_mutate(f, METHOD_DELETE_CONSUMER, &request.base));
}

/* A worker that slept through the restore names a version that no other commit had: the new shard's
 * log is the shorter one, and a consumer that is made again there was never seen by it. */
static void versions_of_consumers_go_on_rising(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 0; i < 300; i++)
        assert_non_null(fixture_grant(&w->old, "ann", "unheld", 1));
    uint64_t made = consume(&w->old, "key:1");
    uint64_t version = commit_consumer(&w->old, made);
    assert_true(version > 300);
    back_up_again(w);
    restore(w);
    assert_int_equal(commit_consumer(&w->f, made), 0);
    refused_as(w, ERROR(VERSION_CONFLICT));
    uint64_t next = commit_consumer(&w->f, version);
    assert_true(next > version);
    assert_int_equal(commit_consumer(&w->f, version), 0);
    forget_consumer(&w->f);
    uint64_t again = consume(&w->f, "key:2");
    assert_true(again > next);
    fixture_restart(&w->f);
    forget_consumer(&w->f);
    assert_true(consume(&w->f, "key:3") > again);
}

/* The new shard's log is the shorter one. */
static void metadata_comes_back_and_its_versions_go_on_rising(void **state)
{
    struct world *w = *state;

    fixture_define_favorites(&w->old);
    for (uint32_t i = 0; i < 300; i++)
        assert_true(fixture_balance(&w->old, "ann", "gold") > 0 &&
                    fixture_grant(&w->old, "ann", "unheld", 1) != NULL);
    uint64_t version = put_title(&w->old, "Tetris", 0);
    assert_true(version > 300);
    back_up_again(w);
    fixture_define_favorites(&w->f);
    restore(w);
    fixture_checkpoint(&w->f);
    assert_int_equal(rows_of(&w->f, TABLE_METADATA), 1);
    assert_int_equal(put_title(&w->f, "Columns", version - 1), 0);
    assert_int_equal(w->f.error->code, ERROR(VERSION_CONFLICT));
    uint64_t next = put_title(&w->f, "Columns", version);
    assert_true(next > version);
    fixture_restart(&w->f);
    next = put_title(&w->f, "Columns II", next);
    assert_true(next > version);
    take_title_away(&w->f);
    assert_true(put_title(&w->f, "Columns", 0) > next);
}

static void sessions_do_not_survive_and_fences_only_rise(void **state)
{
    struct world *w = *state;

    restore(w);
    assert_null(fixture_grant(&w->f, "bob", w->bobs_token, 1));
    refused_as(w, ERROR(SESSION_LOST));
    assert_null(fixture_start(&w->f, "bob", SERVER_B, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                              fixture_op_id(&w->f)));
    refused_as(w, ERROR(SERVER_EXPIRED));
    char *token = fixture_start(&w->f, "bob", "2-5", HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                fixture_op_id(&w->f));
    assert_non_null(token);
    assert_true(strtoull(strrchr(token, '-') + 1, NULL, 10) > 1ull << 40);
    assert_non_null(fixture_grant(&w->f, "bob", token, 1));
}

static void an_operation_of_before_is_not_carried_out_again(void **state)
{
    struct world *w = *state;

    restore(w);
    assert_null(fixture_start(&w->f, "bob", SERVER_B, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                              w->receipt));
    refused_as(w, ERROR(OPERATION_ID_MISMATCH));
    assert_int_equal(fixture_operation(&w->f, "bob", w->receipt)->state, OPERATION(COMMITTED));
}

static void nothing_else_is_carried_out_meanwhile(void **state)
{
    struct world *w = *state;
    Holdfast__Internal__V1__TakeCutRequest cut = HOLDFAST__INTERNAL__V1__TAKE_CUT_REQUEST__INIT;
    Holdfast__V1__GetBalancesRequest balances = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;
    Holdfast__V1__RepairRowRequest repair = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;

    assert_non_null(begin(w, own_id));
    for (uint32_t i = 0; i < PARTS; i++)
        assert_non_null(put(w, i));
    assert_string_equal(stands(w), "restoring");
    assert_null(fixture_grant(&w->f, "ann", "unheld", 1));
    refused_as(w, ERROR(UNAVAILABLE));
    assert_false(w->f.error->final);
    balances.player_id = (char *)"ann";
    assert_null(fixture_read(&w->f, METHOD_GET_BALANCES, &balances.base));
    refused_as(w, ERROR(UNAVAILABLE));
    cut.cut = 9;
    assert_null(fixture_mutate(&w->f, METHOD_TAKE_CUT, &cut.base));
    repair.key = (char *)"6b00"; /* Of a table whose rows may be dropped. */
    repair.reason = (char *)"it is early";
    assert_null(fixture_mutate(&w->f, METHOD_REPAIR_ROW, &repair.base));
    refused_as(w, ERROR(UNAVAILABLE));
    assert_int_equal(fixture_pass(&w->f, 100000), 0);
    assert_non_null(finish(w, w->rows.count));
    assert_int_equal(fixture_balance(&w->f, "ann", "gold"), 100);
}

static void a_restore_goes_on_where_it_was_interrupted(void **state)
{
    struct world *w = *state;

    assert_non_null(begin(w, own_id));
    assert_int_equal(put(w, 0)->parts, 1);
    assert_int_equal(put(w, 0)->parts, 1);
    assert_null(put(w, 2));
    refused_as(w, ERROR(VERSION_CONFLICT));
    fixture_restart(&w->f);
    assert_int_equal(begin(w, own_id)->parts, 1);
    assert_non_null(put(w, 1));
    assert_null(finish(w, w->rows.count));
    refused_as(w, ERROR(VERSION_CONFLICT));
    assert_non_null(put(w, 2));
    assert_non_null(finish(w, w->rows.count));
    assert_true(begin(w, own_id)->finished);
    assert_non_null(finish(w, w->rows.count));
    assert_int_equal(fixture_balance(&w->f, "ann", "gold"), 100);
}

static void other_rows_than_the_backups_are_not_served(void **state)
{
    struct world *w = *state;

    assert_non_null(begin(w, own_id));
    for (uint32_t i = 0; i < PARTS; i++)
        assert_non_null(put(w, i));
    assert_null(finish(w, w->rows.count + 1));
    refused_as(w, ERROR(VERSION_CONFLICT));
    w->rows.sums[0] ^= 1;
    assert_null(finish(w, w->rows.count));
    assert_string_equal(stands(w), "restoring");
}

static void a_shard_in_use_is_refused(void **state)
{
    struct world *w = *state;

    assert_non_null(fixture_grant(&w->f, "cid", "unheld", 1));
    assert_string_equal(stands(w), "used");
    assert_null(begin(w, own_id));
    refused_as(w, ERROR(VERSION_CONFLICT));
    assert_null(put(w, 0));
    assert_null(finish(w, w->rows.count));
    assert_int_equal(fixture_balance(&w->f, "ann", "gold"), 0);
}

static void assert_in_use(struct world *w)
{
    assert_string_equal(stands(w), "used");
    assert_null(begin(w, own_id));
    refused_as(w, ERROR(VERSION_CONFLICT));
}

/* Their callers were told that they were written. */
static void a_shard_with_a_consumer_alone_is_refused(void **state)
{
    struct world *w = *state;
    Holdfast__V1__CreateConsumerRequest request = HOLDFAST__V1__CREATE_CONSUMER_REQUEST__INIT;

    request.consumer = (char *)"reader";
    request.op_id = fixture_op_id(&w->f);
    assert_non_null(fixture_mutate(&w->f, METHOD_CREATE_CONSUMER, &request.base));
    assert_in_use(w);
}

static void a_shard_with_metadata_alone_is_refused(void **state)
{
    struct world *w = *state;

    fixture_define_favorites(&w->f);
    assert_string_equal(stands(w), "empty");
    fixture_metadata_all(&w->f);
    assert_in_use(w);
}

static void another_backup_and_an_id_of_another_length_are_refused(void **state)
{
    struct world *w = *state;

    assert_null(begin(w, "short"));
    refused_as(w, ERROR(INVALID_ARGUMENT));
    assert_non_null(begin(w, own_id));
    assert_null(begin(w, "other sixteen by"));
    refused_as(w, ERROR(VERSION_CONFLICT));
}

static void generation_and_epoch_must_have_risen_first(void **state)
{
    struct world *w = *state;

    w->old.generation = 2;
    fixture_next_epoch(&w->old);
    fixture_checkpoint(&w->old);
    assert_null(begin(w, own_id));
    refused_as(w, ERROR(VERSION_CONFLICT));
    w->f.generation = 3;
    fixture_next_epoch(&w->f);
    assert_non_null(begin(w, own_id));
}

static void what_cannot_be_read_is_refused_before_the_log(void **state)
{
    struct world *w = *state;
    static const uint8_t dateless[] = { 2, 0, 0, 0, TABLE_OPERATION, 1, 1, 0, 0, 0, 9 };
    static const uint8_t meta[] = { 2, 0, 0, 0, TABLE_META, 1, 1, 0, 0, 0, 9 };

    w->old.meta_row.data[0] = 99;
    assert_null(begin(w, own_id));
    refused_as(w, ERROR(SCHEMA_TOO_NEW));
    buf_clear(&w->parts[0]);
    buf_append(&w->parts[0], dateless, sizeof dateless);
    assert_null(put(w, 0));
    refused_as(w, ERROR(INVALID_ARGUMENT));
    buf_clear(&w->parts[0]);
    buf_append(&w->parts[0], meta, sizeof meta);
    assert_null(put(w, 0));
    refused_as(w, ERROR(INVALID_ARGUMENT));
    assert_false(w->f.recorded);
}

/* As in the shard that was backed up: it is noted, and the others are due. */
static void a_timer_that_cannot_be_read_comes_along(void **state)
{
    struct world *w = *state;
    struct state *rows = applier_state(w->old.applier);
    struct row_key key;

    row_key_timer(&key, w->old.now_ms, SLICE_LITERAL("player:cid"));
    state_begin(rows);
    state_put(rows, row_key_slice(&key), SLICE_LITERAL("?"));
    state_commit(rows);
    back_up_again(w);
    restore(w);
    fixture_checkpoint(&w->f);
    assert_int_equal(rows_of(&w->f, TABLE_TIMER), rows_of(&w->old, TABLE_TIMER));
    fixture_restart(&w->f);
    (void)fixture_pass(&w->f, 100000);
    const struct damage *damage = applier_take_damage(w->f.applier);
    assert_non_null(damage);
    assert_non_null(strstr(damage->reason, "timer"));
    assert_int_equal(fixture_balance(&w->f, "bob", "gold"), 7);
}

/* The window is the old cluster's, and its outcomes are in the rows: they are told. */
static void outcomes_of_a_long_window_are_told(void **state)
{
    struct world *w = *state;

    fixture_policy(&w->old, 7 * DAY_MS, 0);
    w->old.now_ms += 2 * DAY_MS;
    assert_non_null(fixture_grant(&w->old, "ann", "unheld", 1));
    back_up_again(w);
    fixture_policy(&w->f, 7 * DAY_MS, 0);
    restore(w);
    assert_int_equal(applier_meta(w->f.applier)->floor_ms, applier_meta(w->old.applier)->floor_ms);
    assert_int_equal(fixture_operation(&w->f, "bob", w->receipt)->state, OPERATION(COMMITTED));
    (void)fixture_pass(&w->f, DAY_MS);
    assert_int_equal(fixture_operation(&w->f, "bob", w->receipt)->state, OPERATION(COMMITTED));
    (void)fixture_pass(&w->f, 5 * DAY_MS);
    assert_int_equal(fixture_operation(&w->f, "bob", w->receipt)->state, OPERATION(EXPIRED));
}

/* What the old cluster told to be expired, or could have, stays so under a longer window. */
static void a_window_that_is_longer_here_begins_with_the_restore(void **state)
{
    struct world *w = *state;

    w->old.now_ms += 2 * DAY_MS;
    assert_non_null(fixture_grant(&w->old, "ann", "unheld", 1));
    back_up_again(w);
    fixture_policy(&w->f, 7 * DAY_MS, 0);
    restore(w);
    assert_int_equal(applier_meta(w->f.applier)->floor_ms, w->f.now_ms - DAY_MS - 1);
    assert_int_equal(
        fixture_operation(&w->f, "ann", fixture_op_id_at(&w->f, w->f.now_ms - DAY_MS - 1))->state,
        OPERATION(EXPIRED));
    assert_int_equal(fixture_operation(&w->f, "bob", w->receipt)->state, OPERATION(COMMITTED));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_backed_up_is_there_again),
        TEST(rows_of_counters_come_back),
        TEST(totals_are_pulled_again),
        TEST(a_restore_ends_by_the_rules_under_which_it_began),
        TEST(versions_of_consumers_go_on_rising),
        TEST(metadata_comes_back_and_its_versions_go_on_rising),
        TEST(sessions_do_not_survive_and_fences_only_rise),
        TEST(an_operation_of_before_is_not_carried_out_again),
        TEST(nothing_else_is_carried_out_meanwhile),
        TEST(a_restore_goes_on_where_it_was_interrupted),
        TEST(other_rows_than_the_backups_are_not_served),
        TEST(a_shard_in_use_is_refused),
        TEST(a_shard_with_a_consumer_alone_is_refused),
        TEST(a_shard_with_metadata_alone_is_refused),
        TEST(another_backup_and_an_id_of_another_length_are_refused),
        TEST(generation_and_epoch_must_have_risen_first),
        TEST(what_cannot_be_read_is_refused_before_the_log),
        TEST(a_timer_that_cannot_be_read_comes_along),
        TEST(outcomes_of_a_long_window_are_told),
        TEST(a_window_that_is_longer_here_begins_with_the_restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
