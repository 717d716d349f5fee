/* What the game says of targets: written, read, removed, and who may overtake whom. */
#include <stdio.h>
#include <string.h>

#include "node/core/favorite/metadata.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_metadata.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__PutTargetMetadataRequest put_request;
typedef Holdfast__V1__PutTargetMetadataResponse put_response;

static char *lent(const char *text)
{
    return (char *)(uintptr_t)text;
}

static put_request request_of(const char *target, const char *op_id)
{
    put_request request = HOLDFAST__V1__PUT_TARGET_METADATA_REQUEST__INIT;

    request.target_id = lent(target);
    request.op_id = lent(op_id);
    request.title = lent("Tetris");
    request.thumbnail_url = lent("https://images.example/t.png");
    request.attributes = lent("{ \"year\": 1984, \"genre\": \"puzzle\" }");
    return request;
}

static const put_response *put(struct fixture *f, const put_request *request)
{
    return fixture_mutate(f, METHOD_PUT_TARGET_METADATA, &request->base);
}

static const put_response *put_at(struct fixture *f, const char *target, const char *op_id,
                                  uint64_t version)
{
    put_request request = request_of(target, op_id);

    request._if_version_case = HOLDFAST__V1__PUT_TARGET_METADATA_REQUEST___IF_VERSION_IF_VERSION;
    request.if_version = version;
    return put(f, &request);
}

static const Holdfast__V1__BatchGetTargetMetadataResponse *ask(struct fixture *f, const char *a,
                                                               const char *b)
{
    Holdfast__V1__BatchGetTargetMetadataRequest request =
        HOLDFAST__V1__BATCH_GET_TARGET_METADATA_REQUEST__INIT;
    char *names[] = { lent(a), lent(b) };

    request.target_ids = names;
    request.n_target_ids = 2;
    return fixture_read(f, METHOD_BATCH_GET_TARGET_METADATA, &request.base);
}

/* NULL: it has none. */
static const Holdfast__V1__TargetMetadata *get(struct fixture *f, const char *target)
{
    const Holdfast__V1__BatchGetTargetMetadataResponse *response = ask(f, "chess", target);

    return response != NULL && response->n_metadata > 0 ? response->metadata[0] : NULL;
}

static int removed(struct fixture *f, const char *target, const uint64_t *version)
{
    Holdfast__V1__DeleteTargetMetadataRequest request =
        HOLDFAST__V1__DELETE_TARGET_METADATA_REQUEST__INIT;

    request.target_id = lent(target);
    if (version != NULL) {
        request._if_version_case =
            HOLDFAST__V1__DELETE_TARGET_METADATA_REQUEST___IF_VERSION_IF_VERSION;
        request.if_version = *version;
    }
    const Holdfast__V1__DeleteTargetMetadataResponse *response =
        fixture_mutate(f, METHOD_DELETE_TARGET_METADATA, &request.base);
    return response == NULL ? -1 : response->deleted;
}

static void metadata_is_as_it_was_written(void **state)
{
    struct fixture *f = *state;
    const put_request request = request_of("tetris", "key:1");

    fixture_define_favorites(f);
    f->caller = "key:catalog";
    const put_response *written = put(f, &request);
    assert_non_null(written);
    assert_false(written->duplicate);
    uint64_t version = written->metadata->version;
    assert_true(version > 0);
    fixture_restart(f);
    const Holdfast__V1__TargetMetadata *told = get(f, "tetris");
    assert_non_null(told);
    assert_string_equal(told->target_id, "tetris");
    assert_string_equal(told->title, "Tetris");
    assert_string_equal(told->thumbnail_url, "https://images.example/t.png");
    assert_string_equal(told->attributes, "{\"genre\":\"puzzle\",\"year\":1984}");
    assert_string_equal(told->changed_by, "key:catalog");
    assert_int_equal(told->version, version);
    assert_int_equal(told->changed_at_ms, f->now_ms);
    assert_null(get(f, "pong"));
    assert_null(f->error);
}

static void what_a_write_leaves_out_is_gone(void **state)
{
    struct fixture *f = *state;
    put_request bare = HOLDFAST__V1__PUT_TARGET_METADATA_REQUEST__INIT;
    const put_request request = request_of("tetris", "key:1");

    fixture_define_favorites(f);
    assert_non_null(put(f, &request));
    bare.target_id = lent("tetris");
    bare.op_id = lent("key:2");
    assert_non_null(put(f, &bare));
    const Holdfast__V1__TargetMetadata *told = get(f, "tetris");
    assert_string_equal(told->title, "");
    assert_string_equal(told->thumbnail_url, "");
    assert_string_equal(told->attributes, "{}");
}

static void a_repetition_changes_nothing(void **state)
{
    struct fixture *f = *state;
    put_request request = request_of("tetris", "key:1");

    fixture_define_favorites(f);
    uint64_t version = put(f, &request)->metadata->version;
    const put_response *again = put(f, &request);
    assert_true(again->duplicate);
    assert_int_equal(again->metadata->version, version);
    request.title = lent("Columns");
    assert_null(put(f, &request));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_string_equal(get(f, "tetris")->title, "Tetris");
}

static void a_writer_that_missed_a_change_is_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t stale = 77;

    fixture_define_favorites(f);
    assert_null(put_at(f, "tetris", "key:0", stale));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    uint64_t first = put_at(f, "tetris", "key:1", 0)->metadata->version;
    assert_null(put_at(f, "tetris", "key:2", 0));
    assert_string_equal(f->error->field, "if_version");
    uint64_t second = put_at(f, "tetris", "key:3", first)->metadata->version;
    assert_true(second > first);
    assert_null(put_at(f, "tetris", "key:4", first));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_int_equal(removed(f, "tetris", &first), -1);
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_int_equal(get(f, "tetris")->version, second);
    assert_int_equal(removed(f, "tetris", &second), 1);
}

static void what_is_removed_is_gone_and_its_version_never_comes_again(void **state)
{
    struct fixture *f = *state;

    fixture_define_favorites(f);
    uint64_t first = put_at(f, "tetris", "key:1", 0)->metadata->version;
    assert_int_equal(removed(f, "tetris", NULL), 1);
    assert_int_equal(removed(f, "tetris", NULL), 0);
    fixture_restart(f);
    assert_null(get(f, "tetris"));
    assert_null(put_at(f, "tetris", "key:2", first));
    assert_true(put_at(f, "tetris", "key:1", 0)->metadata->version > first);
}

static void bad_requests_are_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    char title[LIMIT_METADATA_TITLE_BYTES + 2] = { 0 };
    char target[TARGET_ID_MAX + 2] = { 0 };
    static const char *const urls[] = {
        "http://images.example/t.png", "https://",     "https:///t.png",
        "javascript:alert(1)",         "https://a b/", "https://a/\"onload"
    };
    const put_request good = request_of("tetris", "key:1");
    put_request request = good;

    fixture_define_favorites(f);
    memset(title, 'x', LIMIT_METADATA_TITLE_BYTES + 1);
    request.title = title;
    assert_null(put(f, &request));
    assert_string_equal(f->error->field, "title");
    title[LIMIT_METADATA_TITLE_BYTES] = '\0';
    assert_non_null(put(f, &request));
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        request = good;
        request.thumbnail_url = lent(urls[i]);
        assert_null(put(f, &request));
        assert_false(f->recorded);
        assert_string_equal(f->error->field, "thumbnail_url");
    }
    request = good;
    request.attributes = lent("[1]");
    assert_null(put(f, &request));
    assert_string_equal(f->error->field, "attributes");
    memset(target, 'x', TARGET_ID_MAX + 1);
    request = good;
    request.target_id = target;
    assert_null(put(f, &request));
    assert_string_equal(f->error->field, "target_id");
    request = good;
    request.op_id = lent("no kind");
    assert_null(put(f, &request));
    assert_string_equal(f->error->field, "op_id");
    request = good;
    request.collection = lent("likes");
    assert_null(put(f, &request));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
}

static void a_collection_made_again_knows_nothing_of_its_former_life(void **state)
{
    struct fixture *f = *state;
    const put_request request = request_of("tetris", "key:1");
    const struct fixture_collection likes[] = {
        { .number = 8, .revision = 11, .name = "likes", .policy = POLICY_LAST },
        { .number = 8, .revision = 12, .name = "likes", .policy = POLICY_LAST, .deleted = true },
        { .number = 9, .revision = 13, .name = "likes", .policy = POLICY_LAST },
    };
    put_request liked = request;

    fixture_define_favorites(f);
    fixture_define(f, &likes[0]);
    liked.collection = lent("likes");
    assert_non_null(put(f, &liked));
    assert_null(get(f, "tetris")); /* Another collection's. */
    fixture_define(f, &likes[1]);
    fixture_define(f, &likes[2]);
    liked.op_id = lent("key:2");
    liked._if_version_case = HOLDFAST__V1__PUT_TARGET_METADATA_REQUEST___IF_VERSION_IF_VERSION;
    assert_non_null(put(f, &liked)); /* There is none. */
}

static void another_shards_target_is_refused(void **state)
{
    struct fixture *f = *state;
    uint32_t here = 0, elsewhere = 0;
    char name[FIXTURE_TARGET_SIZE];

    fixture_deinit(f);
    fixture_init_shard(f, 2, 4);
    fixture_define_favorites(f);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "game-%d", i);
        const put_request request = request_of(name, "key:1");
        bool written = put(f, &request) != NULL;
        here += written;
        elsewhere += !written && !f->recorded;
    }
    assert_true(here > 0 && here < 30);
    assert_int_equal(here + elsewhere, 40);
    assert_null(get(f, "tetris"));
    assert_string_equal(f->error->field, "target_ids");
}

static void a_row_that_cannot_be_read_is_told(void **state)
{
    struct fixture *f = *state;
    struct state *rows = applier_state(f->applier);
    const put_request request = request_of("tetris", "key:1");
    const put_request other = request_of("pong", "key:2");
    struct row_key key;

    fixture_define_favorites(f);
    assert_non_null(put(f, &request));
    row_key_metadata(&key, 7, SLICE_LITERAL("tetris"));
    state_begin(rows);
    state_put(rows, row_key_slice(&key), SLICE_LITERAL("\x01nonsense"));
    state_commit(rows);
    assert_non_null(put(f, &other));
    const Holdfast__V1__BatchGetTargetMetadataResponse *told = ask(f, "pong", "tetris");
    assert_true(told->metadata_incomplete);
    assert_string_equal(told->metadata_reason, METADATA_DAMAGE);
    assert_int_equal(told->n_metadata, 1); /* The other is no worse for it. */
    assert_string_equal(told->metadata[0]->target_id, "pong");
    assert_int_equal(removed(f, "tetris", NULL), -1);
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
}

static void below_their_apply_version_nothing_is_kept(void **state)
{
    struct fixture *f = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(f->applier);
    const put_request request = request_of("tetris", "key:1");

    fixture_define_favorites(f);
    meta->apply_version = METADATA_APPLY_VERSION - 1;
    assert_null(put(f, &request));
    assert_false(f->recorded);
    assert_int_equal(f->error->code, ERROR(UNAVAILABLE));
    meta->apply_version = METADATA_APPLY_VERSION;
    assert_non_null(put(f, &request));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(metadata_is_as_it_was_written),
        FIXTURE_TEST(what_a_write_leaves_out_is_gone),
        FIXTURE_TEST(a_repetition_changes_nothing),
        FIXTURE_TEST(a_writer_that_missed_a_change_is_refused),
        FIXTURE_TEST(what_is_removed_is_gone_and_its_version_never_comes_again),
        FIXTURE_TEST(bad_requests_are_refused_before_the_log),
        FIXTURE_TEST(a_collection_made_again_knows_nothing_of_its_former_life),
        FIXTURE_TEST(another_shards_target_is_refused),
        FIXTURE_TEST(a_row_that_cannot_be_read_is_told),
        FIXTURE_TEST(below_their_apply_version_nothing_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
