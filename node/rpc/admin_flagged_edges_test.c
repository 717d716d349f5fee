/* Edges that rules or moderators flag, and what moderators decide about them. */
#include <stdio.h>
#include <string.h>

#include "node/core/favorite/review.h"
#include "node/core/favorite/review_room.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"

#define HOUR        3600000u
#define ACCOUNT_AGE HOLDFAST__V1__FLAG_REASON__FLAG_REASON_ACCOUNT_AGE
#define VELOCITY    HOLDFAST__V1__FLAG_REASON__FLAG_REASON_VELOCITY
#define MODERATION  HOLDFAST__V1__FLAG_REASON__FLAG_REASON_MODERATION
#define REJECTED    HOLDFAST__V1__FLAG_REASON__FLAG_REASON_REJECTED

enum {
    ACCEPT = METHOD_ACCEPT_EDGES,
    REJECT = METHOD_REJECT_EDGES,
    FLAG = METHOD_FLAG_EDGES,
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);

    *state = f;
    fixture_init_shard(f, 0, 1); /* Counts know their hours. */
    fixture_define_favorites(f);
    fixture_define_haste(f);
    return 0;
}

static int teardown(void **state)
{
    fixture_check_edges(*state);
    return fixture_teardown(state);
}

#define REVIEW_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- rules ---- */
static void rule_of_age(struct fixture *f, uint64_t age_ms)
{
    fixture_define_flag(f, &(struct fixture_flag_rule){ 20, 20, 0, 0, age_ms });
}

static void rule_of_pace(struct fixture *f, uint32_t above, uint32_t period_ms)
{
    fixture_define_flag(f, &(struct fixture_flag_rule){ 21, 21, above, period_ms, 0 });
}

/* ---- what is told ---- */
static const Holdfast__V1__ListFlaggedEdgesResponse *
list(struct fixture *f, const Holdfast__V1__ListFlaggedEdgesRequest *filter)
{
    Holdfast__V1__ListFlaggedEdgesRequest request = HOLDFAST__V1__LIST_FLAGGED_EDGES_REQUEST__INIT;

    if (filter != NULL)
        request = *filter;
    request.shard = f->shard;
    return fixture_read(f, METHOD_LIST_FLAGGED_EDGES, &request.base);
}

/* What the shard's only flagged edge is flagged for; UNSPECIFIED: none is flagged. */
static Holdfast__V1__FlagReason only_reason(struct fixture *f)
{
    const Holdfast__V1__ListFlaggedEdgesResponse *all = list(f, NULL);

    assert_non_null(all);
    assert_int_equal(all->waiting, all->n_edges);
    assert_in_range(all->n_edges, 0, 1);
    return all->n_edges > 0 ? all->edges[0]->reason
                            : HOLDFAST__V1__FLAG_REASON__FLAG_REASON_UNSPECIFIED;
}

static uint64_t waiting(struct fixture *f)
{
    return applier_meta(f->applier)->review_count;
}

static uint64_t count(struct fixture *f, const char *target)
{
    return fixture_partial(f, "", target);
}

static bool stands(struct fixture *f, const char *player, const char *target)
{
    return fixture_status(f, player, target)->favorited;
}

/* The hour in which the only edge that leads to the target is counted; 0: none is. */
static uint32_t hour_counted(struct fixture *f, const char *target)
{
    struct partial_row row;
    struct row_key key;
    struct slice value;

    row_key_partial(&key, 7, slice_from_text(target));
    if (state_find(applier_state(f->applier), row_key_slice(&key), &value) != STATE_PRESENT)
        return 0;
    assert_int_equal(partial_row_decode(value, &row), ERR_OK);
    assert_in_range(row.hours.count, 0, 1);
    return row.hours.count > 0 ? (uint32_t)row.hours.list[0].hour : 0;
}

/* ---- tests ---- */
static void an_edge_of_a_young_account_stands_and_does_not_count(void **state)
{
    struct fixture *f = *state;

    rule_of_age(f, HOUR);
    assert_int_equal(fixture_favorite(f, "ann", "pong")->edges, 1);
    assert_true(stands(f, "ann", "pong"));
    assert_int_equal(count(f, "pong"), 0);
    assert_int_equal(only_reason(f), ACCOUNT_AGE);
    const Holdfast__V1__FlaggedEdge *edge = list(f, NULL)->edges[0];
    assert_string_equal(edge->player_id, "ann");
    assert_string_equal(edge->target_id, "pong");
    assert_string_equal(edge->collection, "favorites");
    assert_int_equal(edge->collection_number, 7);
    assert_int_equal(edge->created_at_ms, f->now_ms);
    assert_int_equal(edge->flagged_at_ms, f->now_ms);
    f->now_ms += HOUR - 1;
    assert_non_null(fixture_favorite(f, "ann", "zork"));
    assert_int_equal(count(f, "zork"), 0);
    f->now_ms++;
    assert_non_null(fixture_favorite(f, "ann", "tetris"));
    assert_int_equal(count(f, "tetris"), 1);
    assert_int_equal(waiting(f), 2);
}

static void a_player_with_an_old_record_is_not_young(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    rule_of_age(f, HOUR);
    f->now_ms += HOUR;
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_int_equal(count(f, "pong"), 1);
    assert_non_null(fixture_favorite(f, "bob", "pong"));
    assert_int_equal(count(f, "pong"), 1);
    assert_int_equal(only_reason(f), ACCOUNT_AGE);
}

static void edges_past_the_pace_are_flagged_until_the_window_is_over(void **state)
{
    struct fixture *f = *state;

    rule_of_pace(f, 2, HOUR);
    assert_non_null(fixture_favorite(f, "ann", "a"));
    assert_non_null(fixture_favorite(f, "ann", "a")); /* Makes none. */
    assert_non_null(fixture_unfavorite(f, "ann", "b"));
    assert_non_null(fixture_favorite(f, "ann", "b"));
    assert_int_equal(waiting(f), 0);
    assert_non_null(fixture_favorite(f, "ann", "c"));
    assert_int_equal(only_reason(f), VELOCITY);
    assert_int_equal(count(f, "c"), 0);
    assert_non_null(fixture_favorite(f, "bob", "c"));
    assert_int_equal(count(f, "c"), 1);
    f->now_ms += HOUR;
    assert_non_null(fixture_favorite(f, "ann", "d"));
    assert_int_equal(count(f, "d"), 1);
    assert_int_equal(waiting(f), 1);
}

static void rules_that_flag_leave_those_that_refuse_as_they_are(void **state)
{
    struct fixture *f = *state;
    char target[16];

    rule_of_pace(f, 5, HOUR);
    fixture_define_rate(
        f, &(struct fixture_rate_rule){ 6, 30, "haste", "favorites", 1000000, 1000, true });
    for (uint32_t i = 0; i < 30; i++) {
        snprintf(target, sizeof target, "t%u", i);
        assert_non_null(fixture_favorite(f, "ann", target));
    }
    assert_int_equal(waiting(f), 25);
    assert_null(fixture_favorite(f, "ann", "t30")); /* The default, which refuses. */
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_true(f->outcome.rate_refused);
}

static void an_edge_that_is_accepted_counts_in_the_hour_in_which_it_was_made(void **state)
{
    struct fixture *f = *state;
    uint32_t made = hour_of(f->now_ms);

    rule_of_age(f, HOUR);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    f->now_ms += 3 * HOUR;
    assert_int_equal(fixture_decide(f, ACCEPT, "ann", "pong")->edges, 1);
    assert_int_equal(count(f, "pong"), 1);
    assert_int_equal(hour_counted(f, "pong"), made);
    assert_int_equal(waiting(f), 0);
    assert_int_equal(applier_meta(f->applier)->review_since_ms, 0);
    f->now_ms += HOUR;
    assert_non_null(fixture_unfavorite(f, "ann", "pong"));
    assert_int_equal(count(f, "pong"), 0);
    assert_int_equal(hour_counted(f, "pong"), 0);
}

static void a_decision_that_is_sent_again_finds_its_outcome(void **state)
{
    struct fixture *f = *state;
    char id[40];

    rule_of_age(f, HOUR);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    snprintf(id, sizeof id, "%s", fixture_op_id(f));
    const struct fixture_review accept = {
        .method = ACCEPT, .player = "ann", .target = "pong", .op_id = id
    };
    assert_non_null(fixture_review(f, &accept));
    assert_non_null(fixture_review(f, &accept));
    assert_true(f->outcome.duplicate);
    assert_int_equal(count(f, "pong"), 1);
    assert_null(fixture_decide(f, ACCEPT, "ann", "pong"));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_true(f->error->final);
    assert_string_equal(f->error->field, "target_ids[0]");
    assert_string_equal(f->error->value, "pong");
    assert_string_equal(f->error->message, "the edge is not flagged: it counts");
    assert_int_equal(count(f, "pong"), 1);
}

static void an_edge_that_is_gone_meanwhile_is_not_decided(void **state)
{
    struct fixture *f = *state;

    rule_of_age(f, HOUR);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_non_null(fixture_favorite(f, "ann", "zork"));
    assert_non_null(fixture_unfavorite(f, "ann", "pong"));
    assert_int_equal(count(f, "pong"), 0);
    assert_int_equal(waiting(f), 1);
    const struct fixture_review both = {
        .method = ACCEPT, .player = "ann", .target = "zork", .other = "pong"
    };
    assert_null(fixture_review(f, &both));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_string_equal(f->error->field, "target_ids[1]");
    assert_string_equal(f->error->message, "the player has no edge to that target");
    assert_int_equal(count(f, "zork"), 0); /* All, or none. */
    assert_int_equal(waiting(f), 1);
    assert_null(fixture_decide(f, REJECT, "ann", "pong"));
    assert_null(fixture_decide(f, FLAG, "ann", "pong"));
}

static void an_edge_that_is_rejected_is_gone_and_comes_back_flagged(void **state)
{
    struct fixture *f = *state;
    const struct fixture_edge call = { .player = "ann", .target = "pong", .ver = 5 };

    rule_of_pace(f, 1, 1000);
    assert_non_null(fixture_favorite(f, "ann", "zork"));
    assert_non_null(fixture_edge(f, &call));
    assert_int_equal(fixture_decide(f, REJECT, "ann", "pong")->edges, 1);
    assert_false(stands(f, "ann", "pong"));
    assert_int_equal(count(f, "pong"), 0);
    assert_int_equal(waiting(f), 0);
    assert_false(fixture_edge(f, &call)->applied); /* The same call changes nothing. */
    f->now_ms += HOUR;
    assert_true(fixture_favorite(f, "ann", "pong")->applied);
    assert_int_equal(only_reason(f), REJECTED);
    assert_int_equal(count(f, "pong"), 0);
    assert_non_null(fixture_unfavorite(f, "ann", "pong")); /* Does not launder it. */
    assert_int_equal(waiting(f), 0);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_int_equal(only_reason(f), REJECTED);
    assert_non_null(fixture_decide(f, ACCEPT, "ann", "pong"));
    assert_int_equal(count(f, "pong"), 1);
    assert_non_null(fixture_unfavorite(f, "ann", "pong"));
    f->now_ms += HOUR;
    assert_non_null(fixture_favorite(f, "ann", "pong")); /* Accepted: all is forgiven. */
    assert_int_equal(waiting(f), 0);
    assert_int_equal(count(f, "pong"), 1);
}

static void an_edge_that_is_flagged_by_hand_is_taken_from_its_hour(void **state)
{
    struct fixture *f = *state;
    uint32_t made = hour_of(f->now_ms);

    assert_non_null(fixture_favorite(f, "ann", "pong"));
    f->now_ms += 2 * HOUR;
    assert_int_equal(fixture_decide(f, FLAG, "ann", "pong")->edges, 1);
    assert_int_equal(only_reason(f), MODERATION);
    assert_int_equal(count(f, "pong"), 0);
    assert_int_equal(hour_counted(f, "pong"), 0);
    assert_int_equal(list(f, NULL)->edges[0]->created_at_ms, f->now_ms - 2 * HOUR);
    assert_int_equal(fixture_decide(f, FLAG, "ann", "pong")->edges, 0); /* It is already. */
    assert_int_equal(waiting(f), 1);
    assert_non_null(fixture_unfavorite(f, "ann", "pong"));
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_int_equal(only_reason(f), MODERATION);
    f->now_ms += HOUR;
    assert_non_null(fixture_decide(f, ACCEPT, "ann", "pong"));
    assert_int_equal(hour_counted(f, "pong"), made + 2);
}

static void all_edges_of_a_player_are_flagged_page_by_page(void **state)
{
    struct fixture *f = *state;
    struct fixture_review all = { .method = FLAG, .player = "ann", .all = true };
    char target[16], after[200];

    for (uint32_t i = 0; i < 25; i++) {
        snprintf(target, sizeof target, "t%u", i);
        assert_non_null(fixture_favorite(f, "ann", target));
        f->now_ms += i % 2;
    }
    const Holdfast__V1__FlagEdgesResponse *told = fixture_review(f, &all);
    assert_int_equal(told->edges, 16);
    assert_int_equal(told->waiting, 16);
    snprintf(after, sizeof after, "%s", told->next_after);
    assert_string_not_equal(after, "");
    all.after = after;
    told = fixture_review(f, &all);
    assert_int_equal(told->edges, 9);
    assert_string_equal(told->next_after, "");
    assert_int_equal(count(f, "t0"), 0);
    all.after = "";
    assert_int_equal(fixture_review(f, &all)->edges, 0);
    assert_int_equal(waiting(f), 25);
}

static void lists_go_on_by_page_and_filter(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListFlaggedEdgesRequest filter = HOLDFAST__V1__LIST_FLAGGED_EDGES_REQUEST__INIT;
    char target[16], cursor[2048];
    uint32_t seen = 0;

    fixture_define(f, &(struct fixture_collection){ 8, 12, "likes", POLICY_LAST, 0, false });
    rule_of_age(f, HOUR);
    for (uint32_t i = 0; i < 7; i++) {
        snprintf(target, sizeof target, "t%u", i);
        assert_non_null(fixture_favorite(f, i < 4 ? "ann" : "bob", target));
        f->now_ms++;
    }
    const struct fixture_edge liked = { .player = "bob", .target = "pong", .collection = "likes" };
    assert_non_null(fixture_edge(f, &liked));
    const struct fixture_review by_hand = {
        .method = FLAG, .player = "bob", .target = "pong", .collection = "likes"
    };
    assert_non_null(fixture_review(f, &by_hand));
    filter.page_size = 3;
    do {
        const Holdfast__V1__ListFlaggedEdgesResponse *page = list(f, &filter);
        assert_non_null(page);
        assert_int_equal(page->waiting, 8);
        seen += (uint32_t)page->n_edges;
        snprintf(cursor, sizeof cursor, "%s", page->next_cursor);
        filter.cursor = cursor;
    } while (cursor[0] != '\0');
    assert_int_equal(seen, 8);
    filter.cursor = text_lend("");
    filter.page_size = 0;
    filter.collection = text_lend("likes");
    assert_int_equal(list(f, &filter)->n_edges, 1);
    filter.collection = text_lend("");
    filter.reason = MODERATION;
    assert_int_equal(list(f, &filter)->n_edges, 1);
    filter.reason = HOLDFAST__V1__FLAG_REASON__FLAG_REASON_UNSPECIFIED;
    filter.player_id = text_lend("bob");
    assert_int_equal(list(f, &filter)->n_edges, 4);
    filter.page_size = 201;
    assert_null(list(f, &filter));
    assert_string_equal(f->error->field, "page_size");
    filter.page_size = 0;
    filter.collection = text_lend("liked");
    assert_null(list(f, &filter));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
}

static void edges_of_a_deleted_collection_are_decided_by_its_number(void **state)
{
    struct fixture *f = *state;

    rule_of_age(f, HOUR);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    fixture_define(f, &(struct fixture_collection){ 7, 40, "favorites", POLICY_HIGHEST, 0, true });
    assert_string_equal(list(f, NULL)->edges[0]->collection, "");
    assert_null(fixture_decide(f, REJECT, "ann", "pong"));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    const struct fixture_review by_number = {
        .method = REJECT, .player = "ann", .target = "pong", .number = 7
    };
    assert_int_equal(fixture_review(f, &by_number)->edges, 1);
    assert_int_equal(waiting(f), 0);
    const struct fixture_review both = {
        .method = REJECT, .player = "ann", .target = "pong", .number = 7, .collection = "favorites"
    };
    assert_null(fixture_review(f, &both));
    assert_string_equal(f->error->field, "collection");
}

static void bad_requests_are_refused(void **state)
{
    struct fixture *f = *state;
    struct fixture_review call = { .method = ACCEPT, .player = "ann" };

    assert_null(fixture_review(f, &call));
    assert_string_equal(f->error->field, "target_ids");
    assert_string_equal(f->error->limit, "1 to 16");
    call.target = call.other = "pong";
    assert_null(fixture_review(f, &call));
    assert_string_equal(f->error->field, "target_ids[1]");
    call.other = NULL;
    call.authority = "system:payments";
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    call.method = FLAG;
    assert_null(fixture_review(f, &call));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    call.authority = "system:admin";
    call.all = true;
    assert_null(fixture_review(f, &call));
    assert_string_equal(f->error->field, "target_ids");
    call.all = false;
    call.after = "5:pong";
    assert_null(fixture_review(f, &call));
    assert_string_equal(f->error->field, "after");
    call.after = NULL;
    assert_int_equal(fixture_review(f, &call)->edges, 1);
}

static void rules_flag_no_more_of_a_player_than_the_limit(void **state)
{
    struct fixture *f = *state;
    char target[16];

    rule_of_age(f, HOUR);
    for (uint32_t i = 0; i < REVIEW_PLAYER_MAX; i++) {
        snprintf(target, sizeof target, "t%u", i);
        assert_non_null(fixture_favorite(f, "ann", target));
    }
    assert_null(fixture_favorite(f, "ann", "pong"));
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_false(f->error->final);
    assert_string_equal(f->error->limit, "1000");
    assert_string_equal(f->error->value, "1000");
    assert_non_null(fixture_favorite(f, "bob", "pong"));
    assert_non_null(fixture_decide(f, REJECT, "ann", "t0"));
    assert_non_null(fixture_favorite(f, "ann", "pong"));
}

static void no_more_wait_in_a_shard_than_the_limit(void **state)
{
    struct fixture *f = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(f->applier);

    rule_of_age(f, HOUR);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    meta->review_count += REVIEW_SHARD_MAX - 1;
    assert_null(fixture_favorite(f, "ann", "zork"));
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_int_equal(f->error->retry_after_ms, 60000);
    f->now_ms += HOUR;
    assert_non_null(fixture_favorite(f, "ann", "zork")); /* This one counts. */
    assert_null(fixture_decide(f, FLAG, "ann", "zork"));
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_false(f->error->final);
    meta->review_count -= REVIEW_SHARD_MAX - 1;
}

static void the_first_that_waits_is_known_and_another_process_knows_it(void **state)
{
    struct fixture *f = *state;
    uint64_t first = f->now_ms;

    rule_of_age(f, HOUR);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    f->now_ms += 10;
    assert_non_null(fixture_favorite(f, "ann", "zork"));
    assert_int_equal(applier_meta(f->applier)->review_since_ms, first);
    fixture_checkpoint(f);
    fixture_restart(f);
    assert_int_equal(waiting(f), 2);
    assert_int_equal(applier_meta(f->applier)->review_since_ms, first);
    assert_non_null(fixture_decide(f, ACCEPT, "ann", "pong"));
    assert_int_equal(applier_meta(f->applier)->review_since_ms, first + 10);
    assert_int_equal(count(f, "pong"), 1);
}

static void nothing_is_flagged_under_an_earlier_apply_version(void **state)
{
    struct fixture *f = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(f->applier);

    meta->apply_version = 8;
    rule_of_age(f, HOUR);
    rule_of_pace(f, 1, HOUR);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_non_null(fixture_favorite(f, "ann", "zork"));
    assert_int_equal(count(f, "zork"), 1);
    assert_null(fixture_decide(f, FLAG, "ann", "pong"));
    assert_int_equal(f->error->code, ERROR(UNAVAILABLE));
    meta->apply_version = 9; /* The rules' row of before is made again. */
    assert_non_null(fixture_favorite(f, "ann", "tetris"));
    assert_int_equal(only_reason(f), ACCOUNT_AGE);
}

static void a_row_that_cannot_be_read_is_made_again(void **state)
{
    struct fixture *f = *state;
    struct favorite_key edge = { .entity = SLICE_LITERAL("player:ann"), .collection = 7 };
    struct row_key keys[4];

    rule_of_age(f, HOUR);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    edge.target = SLICE_LITERAL("pong");
    review_key(&keys[0], &edge, f->now_ms);
    row_key_favorite(&keys[1], edge.entity, 7, edge.target);
    row_key_favorites(&keys[2], edge.entity, 7);
    for (uint32_t i = 0; i < 3; i++) {
        const uint8_t spoilt[] = { 0xff, 0xff };
        fixture_checkpoint(f);
        state_begin(applier_state(f->applier));
        state_put(applier_state(f->applier), row_key_slice(&keys[i]),
                  (struct slice){ spoilt, sizeof spoilt });
        state_commit(applier_state(f->applier));
        Holdfast__V1__RepairPlayerRequest *request = fixture_repair_request(f, "ann");
        char text[2 * sizeof keys[i].bytes + 1] = "";
        char *rows[] = { text };
        for (size_t j = 0; j < keys[i].size; j++)
            snprintf(text + 2 * j, 3, "%02x", keys[i].bytes[j]);
        request->rows = rows;
        request->n_rows = 1;
        fixture_contain(f, "ann");
        assert_non_null(fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base));
        fixture_release(f, "ann");
        fixture_check_edges(f);
    }
    assert_int_equal(only_reason(f), ACCOUNT_AGE);
    assert_non_null(fixture_decide(f, ACCEPT, "ann", "pong"));
    assert_int_equal(count(f, "pong"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REVIEW_TEST(an_edge_of_a_young_account_stands_and_does_not_count),
        REVIEW_TEST(a_player_with_an_old_record_is_not_young),
        REVIEW_TEST(edges_past_the_pace_are_flagged_until_the_window_is_over),
        REVIEW_TEST(rules_that_flag_leave_those_that_refuse_as_they_are),
        REVIEW_TEST(an_edge_that_is_accepted_counts_in_the_hour_in_which_it_was_made),
        REVIEW_TEST(a_decision_that_is_sent_again_finds_its_outcome),
        REVIEW_TEST(an_edge_that_is_gone_meanwhile_is_not_decided),
        REVIEW_TEST(an_edge_that_is_rejected_is_gone_and_comes_back_flagged),
        REVIEW_TEST(an_edge_that_is_flagged_by_hand_is_taken_from_its_hour),
        REVIEW_TEST(all_edges_of_a_player_are_flagged_page_by_page),
        REVIEW_TEST(lists_go_on_by_page_and_filter),
        REVIEW_TEST(edges_of_a_deleted_collection_are_decided_by_its_number),
        REVIEW_TEST(bad_requests_are_refused),
        REVIEW_TEST(rules_flag_no_more_of_a_player_than_the_limit),
        REVIEW_TEST(no_more_wait_in_a_shard_than_the_limit),
        REVIEW_TEST(the_first_that_waits_is_known_and_another_process_knows_it),
        REVIEW_TEST(nothing_is_flagged_under_an_earlier_apply_version),
        REVIEW_TEST(a_row_that_cannot_be_read_is_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
