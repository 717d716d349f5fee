#include "router/core/restore_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"

#define CLUSTER "test"
#define SHARDS  2u

struct fixture {
    struct arena arena;
    struct restore_key keys[32];
    size_t key_count;
    Holdfast__Internal__V1__GetNodeStatusResponse status[8];
    Holdfast__Internal__V1__KnownShard known[8][SHARDS];
    Holdfast__Internal__V1__KnownShard *lists[8][SHARDS];
    struct restore_answer answers[8];
    uint32_t answer_count;
    struct restore_plan plan;
    Holdfast__V1__ErrorDetail detail;
};

static void put(struct fixture *f, struct cluster_key key, struct buf *value)
{
    CHECK(f->key_count < ARRAY_SIZE(f->keys));
    f->keys[f->key_count] = (struct restore_key){
        .key = arena_copy(&f->arena, cluster_key_slice(&key)),
        .value = arena_copy(&f->arena, buf_slice(value)),
        .mod_revision = 100 + (int64_t)f->key_count,
    };
    f->key_count++;
    buf_deinit(value);
}

static void put_shard(struct fixture *f, uint32_t number, uint64_t epoch, uint64_t config)
{
    struct shard_record record = { .generation = 1,
                                   .epoch = epoch,
                                   .owner = 1,
                                   .config = config,
                                   .member_count = 3,
                                   .members = { 1, 2, 3 } };
    struct buf value = { 0 };

    shard_record_encode(&record, &value);
    put(f, cluster_key_shard(CLUSTER, number), &value);
}

static void put_node(struct fixture *f, uint64_t id, uint64_t doubts)
{
    struct node_record record = { .replica_id = id,
                                  .name = "n",
                                  .address = "a:1",
                                  .peer_address = "a:2",
                                  .version = "v",
                                  .doubts = doubts };
    struct buf value = { 0 };

    node_record_encode(&record, &value);
    put(f, cluster_key_node(CLUSTER, id), &value);
}

static struct fixture *fixture_new(void)
{
    static const struct cluster_record cluster = { .cluster_id =
                                                       "01890a5d-ac96-774b-bcce-b302099a8057",
                                                   .generation = 1,
                                                   .shard_count = SHARDS,
                                                   .replication_factor = 3,
                                                   .created_by = "test" };
    struct fixture *f = mem_zalloc(sizeof *f);
    struct buf value = { 0 };

    cluster_record_encode(&cluster, &value);
    put(f, cluster_key_cluster(CLUSTER), &value);
    return f;
}

static void fixture_free(struct fixture *f)
{
    arena_deinit(&f->arena);
    free(f);
}

/* What that replica knows of shard 0 and of shard 1; NULL: nothing. */
static void answer(struct fixture *f, uint64_t id, const Holdfast__Internal__V1__KnownShard *zero,
                   const Holdfast__Internal__V1__KnownShard *one)
{
    const Holdfast__Internal__V1__KnownShard *given[SHARDS] = { zero, one };
    uint32_t at = f->answer_count++;

    holdfast__internal__v1__get_node_status_response__init(&f->status[at]);
    f->status[at].generation = 1;
    f->status[at].known = f->lists[at];
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (given[i] == NULL)
            continue;
        f->known[at][i] = *given[i];
        f->known[at][i].shard = i;
        f->lists[at][f->status[at].n_known++] = &f->known[at][i];
    }
    f->answers[at] = (struct restore_answer){ id, &f->status[at] };
}

static Holdfast__Internal__V1__KnownShard knows(uint64_t epoch, uint64_t config, uint64_t *members,
                                                size_t count)
{
    Holdfast__Internal__V1__KnownShard known = HOLDFAST__INTERNAL__V1__KNOWN_SHARD__INIT;

    known.epoch = epoch;
    known.config = known.member_config = config;
    known.owner = members[0];
    known.members = members;
    known.n_members = count;
    return known;
}

static err make(struct fixture *f)
{
    const struct restore_input input = { .cluster = CLUSTER,
                                         .keys = f->keys,
                                         .key_count = f->key_count,
                                         .answers = f->answers,
                                         .answer_count = f->answer_count,
                                         .arena = &f->arena };

    return restore_plan_make(&input, &f->plan, &f->detail);
}

static uint64_t members123[] = { 1, 2, 3 };
static uint64_t members124[] = { 1, 2, 4 };

static void an_etcd_as_new_as_its_nodes_has_nothing_to_accept(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard known = knows(7, 1, members123, 3);

    (void)state;
    put_shard(f, 0, 7, 1);
    put_shard(f, 1, 7, 1);
    answer(f, 1, &known, &known);
    answer(f, 2, &known, &known);
    assert_int_equal(make(f), ERR_CONFLICT);
    assert_non_null(strstr(f->detail.message, "nothing to accept"));
    fixture_free(f);
}

static void
epochs_rise_above_all_that_any_replica_knows_and_the_generation_above_theirs(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard older = knows(7, 1, members123, 3);
    Holdfast__Internal__V1__KnownShard newer = knows(900, 1, members123, 3);

    (void)state;
    put_shard(f, 0, 7, 1);
    put_shard(f, 1, 7, 1);
    answer(f, 1, &older, &older);
    answer(f, 3, &older, &newer);
    f->status[1].generation = 4;
    assert_int_equal(make(f), ERR_OK);
    assert_int_equal(f->plan.next.generation, 5);
    assert_int_equal(f->plan.next.epoch_floor, 900 + RESTORE_EPOCHS_MARGIN);
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_int_equal(f->plan.shards[i].next.epoch, 901 + RESTORE_EPOCHS_MARGIN);
        assert_int_equal(f->plan.shards[i].next.generation, 5);
        assert_int_equal(f->plan.shards[i].next.config, 1 + RESTORE_CONFIGS_MARGIN);
    }
    assert_int_equal(f->plan.shards_behind, 1);
    /* The cluster's record is the last word. */
    struct cluster_key key = cluster_key_cluster(CLUSTER);
    assert_true(slice_equal(f->plan.writes[f->plan.write_count - 1].key, cluster_key_slice(&key)));
    fixture_free(f);
}

static void members_are_those_of_the_newest_configuration_that_any_replica_knows(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard older = knows(7, 1, members123, 3);
    Holdfast__Internal__V1__KnownShard newer = knows(12, 3, members124, 3);

    (void)state;
    put_shard(f, 0, 7, 1);
    put_shard(f, 1, 7, 1);
    answer(f, 1, &older, &older);
    answer(f, 2, &older, &older);
    answer(f, 4, &newer, NULL);
    assert_int_equal(make(f), ERR_OK);
    assert_int_equal(f->plan.shards[0].next.config, 3 + RESTORE_CONFIGS_MARGIN);
    assert_memory_equal(f->plan.shards[0].next.members, members124, sizeof members124);
    assert_int_equal(f->plan.shards[0].next.owner, 1);
    assert_memory_equal(f->plan.shards[1].next.members, members123, sizeof members123);
    fixture_free(f);
}

static void a_minority_of_the_newest_configuration_is_not_enough(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard newer = knows(12, 3, members124, 3);
    Holdfast__Internal__V1__KnownShard older = knows(7, 1, members123, 3);

    (void)state;
    put_shard(f, 0, 7, 1);
    put_shard(f, 1, 7, 1);
    answer(f, 3, NULL, &older);
    answer(f, 4, &newer, NULL);
    answer(f, 2, &older, &older);
    f->known[2][0].mute = true; /* Damaged there: it may have known more. */
    assert_int_equal(make(f), ERR_UNAVAILABLE);
    assert_non_null(strstr(f->detail.message, "shard 0"));
    f->known[2][0].mute = false;
    assert_int_equal(make(f), ERR_OK);
    fixture_free(f);
}

/* The backup is older than the first record of shard 1. */
static void a_shard_without_a_record_was_placed_if_a_replica_of_it_is_damaged(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard newer = knows(12, 3, members123, 3);
    Holdfast__Internal__V1__KnownShard damaged = HOLDFAST__INTERNAL__V1__KNOWN_SHARD__INIT;

    (void)state;
    put_shard(f, 0, 7, 1);
    damaged.mute = true;
    answer(f, 1, &newer, &damaged);
    answer(f, 2, &newer, NULL);
    assert_int_equal(make(f), ERR_UNAVAILABLE);
    assert_non_null(strstr(f->detail.message, "shard 1"));
    f->status[0].n_known--;
    assert_int_equal(make(f), ERR_OK);
    assert_int_equal(f->plan.shards[1].next.epoch, 0);
    fixture_free(f);
}

/* 1 was removed while 3, which alone of the others is here, had not heard of it. */
static void a_removed_replica_tells_who_took_its_place(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard older = knows(7, 1, members123, 3);
    uint64_t members234[] = { 2, 3, 4 };
    Holdfast__Internal__V1__KnownShard removed = knows(12, 3, members234, 3);

    (void)state;
    put_shard(f, 0, 7, 1);
    put_shard(f, 1, 7, 1);
    removed.owner = 0;
    removed.mute = true;
    answer(f, 1, &removed, &older);
    answer(f, 3, &older, &older);
    assert_int_equal(make(f), ERR_UNAVAILABLE); /* One of 2, 3, 4. */
    answer(f, 4, NULL, NULL);
    assert_int_equal(make(f), ERR_OK);
    assert_memory_equal(f->plan.shards[0].next.members, members234, sizeof members234);
    assert_int_equal(f->plan.shards[0].next.owner, 3);
    fixture_free(f);
}

/* It has dropped what it held: it cannot speak for the members that it was one of. */
static void a_removed_replica_is_no_voice_of_a_majority(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard older = knows(7, 1, members123, 3);
    Holdfast__Internal__V1__KnownShard forgot = HOLDFAST__INTERNAL__V1__KNOWN_SHARD__INIT;

    (void)state;
    put_shard(f, 0, 7, 1);
    put_shard(f, 1, 7, 1);
    forgot.epoch = 12;
    forgot.config = 3;
    forgot.mute = true;
    answer(f, 1, &forgot, &older);
    answer(f, 3, &older, &older);
    assert_int_equal(make(f), ERR_UNAVAILABLE);
    fixture_free(f);
}

/* The older etcd, unnoticed until now, gave the number of an epoch once more. */
static void another_owner_under_the_same_epoch_is_something_to_accept(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard same = knows(7, 1, members123, 3);
    Holdfast__Internal__V1__KnownShard other = knows(7, 1, members123, 3);

    (void)state;
    other.owner = 2;
    put_shard(f, 0, 7, 1);
    put_shard(f, 1, 7, 1);
    answer(f, 1, &same, &same);
    answer(f, 2, &same, &other);
    assert_int_equal(make(f), ERR_OK);
    assert_int_equal(f->plan.shards_behind, 1);
    fixture_free(f);
}

static void whoever_leads_is_deposed_first_of_all(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard newer = knows(9, 1, members123, 3);
    struct cluster_key key = cluster_key_election_prefix(CLUSTER);
    struct buf value = { 0 };

    (void)state;
    size_t used = strlen(key.text);
    snprintf(key.text + used, sizeof key.text - used, "4d2");
    buf_append(&value, "a", 1);
    put_shard(f, 0, 7, 1);
    put_shard(f, 1, 7, 1);
    put(f, key, &value);
    answer(f, 1, &newer, &newer);
    answer(f, 2, &newer, &newer);
    assert_int_equal(make(f), ERR_OK);
    assert_true(slice_equal(f->plan.writes[0].key, cluster_key_slice(&key)));
    assert_int_equal(f->plan.writes[0].value.size, 0);
    assert_int_equal(f->plan.writes[0].revision, -1);
    fixture_free(f);
}

static void a_joint_phase_needs_both_majorities_and_goes_on(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard joint = knows(9, 2, members123, 3);
    uint64_t members145[] = { 1, 4, 5 };

    (void)state;
    joint.new_members = members145;
    joint.n_new_members = 3;
    put_shard(f, 0, 7, 1);
    put_shard(f, 1, 7, 1);
    answer(f, 2, &joint, NULL);
    answer(f, 3, &joint, NULL);
    assert_int_equal(make(f), ERR_UNAVAILABLE);
    joint.new_members = members124;
    f->known[0][0] = f->known[1][0] = joint;
    answer(f, 4, NULL, NULL);
    assert_int_equal(make(f), ERR_OK);
    assert_int_equal(f->plan.shards[0].next.phase, SHARD_JOINT);
    assert_int_equal(f->plan.shards[0].next.config, 2 + RESTORE_CONFIGS_MARGIN);
    fixture_free(f);
}

static void a_doubting_node_is_enough_and_servers_of_the_old_history_end(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard known = knows(7, 1, members123, 3);
    struct server_record server = { .name = "s", .ttl_ms = 5000, .lease_id = 77 };
    struct buf live = { 0 }, there = { 0 };

    (void)state;
    put_shard(f, 0, 7, 1);
    put_shard(f, 1, 7, 1);
    put_node(f, 1, 1);
    put_node(f, 9, 0);
    server_record_encode(&server, &live);
    server_record_encode(&server, &there);
    put(f, cluster_key_server_live(CLUSTER, (struct incarnation){ 1, 50 }), &live);
    put(f, cluster_key_server_known(CLUSTER, (struct incarnation){ 1, 50 }), &there);
    answer(f, 1, &known, &known);
    answer(f, 2, &known, &known);
    assert_int_equal(make(f), ERR_OK);
    assert_int_equal(f->plan.nodes_doubting, 1);
    assert_int_equal(f->plan.silent_count, 1);
    assert_int_equal(f->plan.silent[0], 9);
    assert_int_equal(f->plan.servers, 1);
    assert_int_equal(f->plan.writes[0].value.size, 0); /* live goes, */
    assert_int_equal(f->plan.writes[1].lease_id, 77);  /* known is to expire, */
    struct cluster_key_parts all = cluster_key_parse(CLUSTER, f->plan.writes[2].key);

    assert_int_equal(all.kind, CLUSTER_KEY_SERVER_KNOWN); /* and every other one. */
    assert_int_equal(all.incarnation.generation, 1);
    assert_true(all.incarnation.revision > (uint64_t)1 << 60);
    fixture_free(f);
}

static void made_again_after_an_interruption_it_rises_again(void **state)
{
    struct fixture *f = fixture_new();
    Holdfast__Internal__V1__KnownShard known = knows(30, 1, members123, 3);

    (void)state;
    put_shard(f, 0, 1000031, 1); /* As the first attempt left it. */
    put_shard(f, 1, 7, 1);
    answer(f, 1, &known, &known);
    answer(f, 2, &known, &known);
    assert_int_equal(make(f), ERR_OK);
    assert_true(f->plan.shards[0].next.epoch > 1000031);
    assert_int_equal(f->plan.shards[1].next.epoch, f->plan.shards[0].next.epoch);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_etcd_as_new_as_its_nodes_has_nothing_to_accept),
        cmocka_unit_test(
            epochs_rise_above_all_that_any_replica_knows_and_the_generation_above_theirs),
        cmocka_unit_test(members_are_those_of_the_newest_configuration_that_any_replica_knows),
        cmocka_unit_test(a_minority_of_the_newest_configuration_is_not_enough),
        cmocka_unit_test(a_shard_without_a_record_was_placed_if_a_replica_of_it_is_damaged),
        cmocka_unit_test(a_removed_replica_tells_who_took_its_place),
        cmocka_unit_test(a_removed_replica_is_no_voice_of_a_majority),
        cmocka_unit_test(another_owner_under_the_same_epoch_is_something_to_accept),
        cmocka_unit_test(whoever_leads_is_deposed_first_of_all),
        cmocka_unit_test(a_joint_phase_needs_both_majorities_and_goes_on),
        cmocka_unit_test(a_doubting_node_is_enough_and_servers_of_the_old_history_end),
        cmocka_unit_test(made_again_after_an_interruption_it_rises_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
