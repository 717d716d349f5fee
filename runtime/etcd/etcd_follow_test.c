/* Watches, mirrors, rollbacks and elections against a real etcd. */
#include "runtime/etcd/etcd_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/etcd/etcd_election.h"
#include "runtime/etcd/etcd_mirror.h"
#include "runtime/etcd/etcd_watch.h"

/* ---- Watch and mirror ---- */

struct watch_story {
    char trace[512];
    int established;
    int64_t reset;
};

static void note_events(void *context, const struct etcd_event *events, size_t count,
                        int64_t revision)
{
    struct watch_story *story = context;

    assert_true(revision == events[count - 1].kv.mod_revision);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(story->trace);
        snprintf(story->trace + used, sizeof story->trace - used, "%s%.*s=%.*s ",
                 events[i].deleted ? "-" : "", (int)events[i].kv.key.size,
                 (const char *)events[i].kv.key.data, (int)events[i].kv.value.size,
                 events[i].kv.value.size > 0 ? (const char *)events[i].kv.value.data : "");
    }
}

static void note_established(void *context)
{
    ((struct watch_story *)context)->established++;
}

static void note_reset(void *context, int64_t compact_revision)
{
    ((struct watch_story *)context)->reset = compact_revision;
}

static void watch_resumes_after_etcd_was_killed(void **state)
{
    struct world world;
    struct watch_story story = { 0 };
    struct etcd_watch *watch;
    (void)state;

    world_init(&world);
    struct etcd_watch_options options = { .key = SLICE_LITERAL("w/"),
                                          .prefix = true,
                                          .start_revision = put(&world, "w/0", "0", 0).revision,
                                          .events = note_events,
                                          .reset = note_reset,
                                          .established = note_established,
                                          .context = &story };
    assert_int_equal(etcd_watch_start(world.etcd, &options, &watch), ERR_OK);
    put(&world, "w/1", "1", 0);
    put(&world, "other", "1", 0);
    RUN_UNTIL(&world, strcmp(story.trace, "w/0=0 w/1=1 ") == 0);
    etcd_process_kill(&server);
    assert_int_equal(etcd_process_restart(&server, 0), ERR_OK);
    put(&world, "w/2", "2", 0);
    RUN_UNTIL(&world, put(&world, "w/3", "3", 0).e == ERR_OK);
    erase(&world, "w/0");
    RUN_UNTIL(&world, strstr(story.trace, "-w/0") != NULL);
    assert_non_null(strstr(story.trace, "w/0=0 w/1=1 w/"));
    assert_non_null(strstr(story.trace, "w/3=3 -w/0= "));
    assert_int_equal(story.established, 2);
    assert_true(story.reset == 0);
    etcd_watch_stop(watch);
    world_deinit(&world);
}

static void compact(int64_t revision)
{
    char command[160];

    snprintf(command, sizeof command,
             "ETCDCTL_API=3 etcdctl --endpoints=%s compact %lld >/dev/null 2>&1", server.endpoint,
             (long long)revision);
    assert_int_equal(system(command), 0);
}

static void watch_of_compacted_revisions_is_reset(void **state)
{
    struct world world;
    struct watch_story story = { 0 };
    struct etcd_watch *watch;
    (void)state;

    world_init(&world);
    int64_t first = put(&world, "z/0", "0", 0).revision;
    put(&world, "z/1", "1", 0);
    compact(put(&world, "z/2", "2", 0).revision);
    struct etcd_watch_options options = { .key = SLICE_LITERAL("z/"),
                                          .prefix = true,
                                          .start_revision = first,
                                          .events = note_events,
                                          .reset = note_reset,
                                          .context = &story };
    assert_int_equal(etcd_watch_start(world.etcd, &options, &watch), ERR_OK);
    RUN_UNTIL(&world, story.reset > first);
    assert_string_equal(story.trace, "");
    etcd_watch_stop(watch);
    world_deinit(&world);
}

struct mirror_story {
    char trace[512];
    int synced;
    int resets;
    struct etcd_mirror *stop_at_put; /* Stopped from within the callback. */
};

static void mirror_put(void *context, const struct etcd_kv *kv)
{
    struct mirror_story *story = context;
    size_t used = strlen(story->trace);

    snprintf(story->trace + used, sizeof story->trace - used, "%.*s=%.*s ", (int)kv->key.size,
             (const char *)kv->key.data, (int)kv->value.size, (const char *)kv->value.data);
    if (story->stop_at_put != NULL)
        etcd_mirror_stop(story->stop_at_put);
}

static void mirror_deleted(void *context, struct slice key, int64_t revision)
{
    struct mirror_story *story = context;
    size_t used = strlen(story->trace);
    (void)revision;

    snprintf(story->trace + used, sizeof story->trace - used, "-%.*s ", (int)key.size,
             (const char *)key.data);
}

static void mirror_synced(void *context, int64_t revision)
{
    (void)revision;
    ((struct mirror_story *)context)->synced++;
}

static void mirror_reset(void *context)
{
    ((struct mirror_story *)context)->resets++;
}

static struct etcd_mirror *mirror_begin(struct etcd *etcd, const char *prefix, uint64_t refresh_ms,
                                        struct mirror_story *story)
{
    struct etcd_mirror_options options = { .prefix = slice_from_text(prefix),
                                           .refresh_ms = refresh_ms,
                                           .put = mirror_put,
                                           .deleted = mirror_deleted,
                                           .synced = mirror_synced,
                                           .reset = mirror_reset,
                                           .context = story };
    struct etcd_mirror *mirror;

    assert_int_equal(etcd_mirror_start(etcd, &options, &mirror), ERR_OK);
    return mirror;
}

static void mirror_tells_each_change_once(void **state)
{
    struct world world;
    struct mirror_story story = { 0 };
    (void)state;

    world_init(&world);
    put(&world, "m/1", "a", 0);
    struct etcd_mirror *mirror = mirror_begin(world.etcd, "m/", 50, &story);
    RUN_UNTIL(&world, story.synced == 1);
    assert_string_equal(story.trace, "m/1=a ");
    /* Each is waited for: changes closer together than a range may reach the mirror as one. */
    put(&world, "m/2", "b", 0);
    RUN_UNTIL(&world, strstr(story.trace, "m/2=b ") != NULL);
    erase(&world, "m/1");
    RUN_UNTIL(&world, strstr(story.trace, "-m/1 ") != NULL);
    put(&world, "m/1", "c", 0);
    RUN_UNTIL(&world, strstr(story.trace, "m/1=c ") != NULL);
    erase(&world, "m/2");
    RUN_UNTIL(&world, strstr(story.trace, "-m/2 ") != NULL);
    int synced = story.synced;
    RUN_UNTIL(&world, story.synced > synced + 3);
    assert_string_equal(story.trace, "m/1=a m/2=b -m/1 m/1=c -m/2 ");
    etcd_mirror_stop(mirror);
    world_deinit(&world);
}

/* While etcd is away and compacted, the watch cannot tell; the range does. */
static void mirror_repairs_what_a_watch_missed(void **state)
{
    struct world world;
    struct mirror_story story = { 0 };
    struct world other;
    (void)state;

    world_init(&world);
    world_init(&other);
    put(&world, "r/1", "a", 0);
    put(&world, "r/2", "b", 0);
    struct etcd_mirror *mirror = mirror_begin(world.etcd, "r/", 0, &story);
    RUN_UNTIL(&world, story.synced == 1);
    /* Only the other loop runs: this mirror hears nothing until its stream is broken. */
    erase(&other, "r/1");
    compact(put(&other, "r/3", "c", 0).revision);
    etcd_process_kill(&server);
    assert_int_equal(etcd_process_restart(&server, 0), ERR_OK);
    RUN_UNTIL(&world, strstr(story.trace, "r/3=c") != NULL && strstr(story.trace, "-r/1") != NULL);
    assert_null(strstr(strstr(story.trace, "r/2") + 1, "r/2"));
    etcd_mirror_stop(mirror);
    world_deinit(&world);
    world_deinit(&other);
}

static void count_put(void *context, const struct etcd_kv *kv)
{
    (void)kv;
    (*(size_t *)context)++;
}

static void count_deleted(void *context, struct slice key, int64_t revision)
{
    (void)key;
    (void)revision;
    ((size_t *)context)[2]++;
}

static void count_synced(void *context, int64_t revision)
{
    (void)revision;
    ((size_t *)context)[1]++;
}

/* As many as a txn of etcd may have. */
static void put_many(struct world *world, size_t first, size_t count)
{
    struct etcd_txn *txn = etcd_txn_new();
    char key[32];

    for (size_t i = first; i < first + count; i++) {
        snprintf(key, sizeof key, "many/%zu", i);
        etcd_txn_put(txn, ETCD_THEN, slice_from_text(key), slice_from_text("v"), 0);
    }
    assert_int_equal(commit(world, txn).e, ERR_OK);
}

/* More than one answer of etcd can hold, and more than the default limit. */
static void mirror_reads_a_large_prefix_in_pages(void **state)
{
    const size_t count = ETCD_MIRROR_KEYS_MAX + 1;
    size_t told[3] = { 0 };
    struct world world;
    struct etcd_mirror *mirror;
    (void)state;

    world_init(&world);
    for (size_t i = 0; i < count; i += 128)
        put_many(&world, i, count - i < 128 ? count - i : 128);
    struct etcd_mirror_options options = { .prefix = slice_from_text("many/"),
                                           .keys_max = count + 1,
                                           .refresh_ms = 50,
                                           .put = count_put,
                                           .deleted = count_deleted,
                                           .synced = count_synced,
                                           .context = told };
    assert_int_equal(etcd_mirror_start(world.etcd, &options, &mirror), ERR_OK);
    RUN_UNTIL(&world, told[1] == 1);
    assert_int_equal(told[0], count);
    assert_int_equal(told[2], 0);
    /* Changes while pages are read: each is told once. */
    for (size_t i = 1; i <= 20; i++) {
        char key[32];
        snprintf(key, sizeof key, "many/%zu", i * 3000);
        erase(&world, key);
        put(&world, key, "w", 0);
        erase(&world, key);
    }
    size_t synced = told[1];
    RUN_UNTIL(&world, told[1] > synced + 2);
    assert_true(told[2] >= 20 && told[2] <= 40); /* A range may miss that one came back. */
    assert_int_equal(told[0] - told[2], count - 20);
    etcd_mirror_stop(mirror);
    world_deinit(&world);
}

static void mirror_may_be_stopped_from_its_callback(void **state)
{
    struct world world;
    struct mirror_story story = { 0 };
    (void)state;

    world_init(&world);
    put(&world, "s/1", "a", 0);
    put(&world, "s/2", "a", 0);
    story.stop_at_put = mirror_begin(world.etcd, "s/", 0, &story);
    RUN_UNTIL(&world, story.trace[0] != '\0');
    assert_string_equal(story.trace, "s/1=a ");
    world_deinit(&world);
}

/* ---- Rollback ---- */

static void revision_going_back_freezes_mirrors_until_accepted(void **state)
{
    struct world world;
    struct mirror_story story = { 0 };
    (void)state;

    world_init(&world);
    put(&world, "back/1", "a", 0);
    struct etcd *etcd =
        client_new(&world, server.endpoint, etcd_cluster_id_seen(world.etcd), INT64_C(1) << 40);
    struct etcd_mirror *mirror = mirror_begin(etcd, "back/", 20, &story);
    RUN_UNTIL(&world, world.rollbacks == 1);
    assert_int_equal(world.rollback.kind, ETCD_REVISION_WENT_BACK);
    assert_true(world.rollback.revision_known == INT64_C(1) << 40);
    assert_true(etcd_rolled_back(etcd));
    RUN_UNTIL(&world, etcd_calls_pending(etcd) == 0);
    assert_string_equal(story.trace, "");
    etcd_rollback_accept(etcd);
    RUN_UNTIL(&world, story.synced > 1);
    assert_int_equal(story.resets, 1);
    assert_string_equal(story.trace, "back/1=a ");
    assert_int_equal(world.rollbacks, 1);
    etcd_mirror_stop(mirror);
    etcd_free(etcd);
    world_deinit(&world);
}

static void another_cluster_id_is_reported(void **state)
{
    struct world world;
    struct answer a = { 0 };
    struct etcd_range range = { .key = SLICE_LITERAL("x") };
    (void)state;

    world_init(&world);
    struct etcd *etcd = client_new(&world, server.endpoint, 7, 0);
    assert_int_equal(etcd_range(etcd, &range, range_done, &(struct etcd_wait){ 0, &a, NULL }),
                     ERR_OK);
    RUN_UNTIL(&world, a.done);
    assert_int_equal(world.rollbacks, 1);
    assert_int_equal(world.rollback.kind, ETCD_CLUSTER_ID_CHANGED);
    assert_true(world.rollback.cluster_id_known == 7);
    etcd_free(etcd);
    world_deinit(&world);
}

/* ---- Election ---- */

struct candidate {
    struct etcd_election *election;
    int elected, lost;
    char key[64]; /* The last that it was elected with. */
    int64_t create_revision;
    char leader[32];
};

static void note_elected(void *context, struct slice key, int64_t create_revision)
{
    struct candidate *c = context;

    assert_true(key.size > 0 && key.size < sizeof c->key && create_revision > 0);
    memcpy(c->key, key.data, key.size);
    c->key[key.size] = 0;
    c->create_revision = create_revision;
    c->elected++;
}

static void note_lost(void *context)
{
    ((struct candidate *)context)->lost++;
}

static void note_leader(void *context, const struct etcd_kv *kv)
{
    struct candidate *c = context;

    snprintf(c->leader, sizeof c->leader, "%.*s", kv != NULL ? (int)kv->value.size : 0,
             kv != NULL ? (const char *)kv->value.data : "");
}

/* "life-1" and "life-2" are lives of one; "one" and "two" are not. */
static bool is_earlier_life(void *context, const struct etcd_kv *kv)
{
    (void)context;
    return kv->value.size > 5 && memcmp(kv->value.data, "life-", 5) == 0;
}

static void campaign(struct etcd *etcd, const char *prefix, const char *name, uint64_t ttl_ms,
                     struct candidate *candidate)
{
    struct etcd_election_options options = { .prefix = slice_from_text(prefix),
                                             .value = slice_from_text(name),
                                             .ttl_ms = ttl_ms,
                                             .elected = note_elected,
                                             .lost = note_lost,
                                             .leader_changed = note_leader,
                                             .is_predecessor = is_earlier_life,
                                             .context = candidate };

    assert_int_equal(etcd_election_start(etcd, &options, &candidate->election), ERR_OK);
}

/* As every write of a leader does. */
static void compare_election(const struct candidate *candidate, struct etcd_txn *txn)
{
    etcd_txn_compare(txn, slice_from_text(candidate->key), ETCD_CREATE_REVISION, ETCD_EQUAL,
                     candidate->create_revision);
}

static void leadership_passes_when_the_leader_resigns(void **state)
{
    struct world world;
    struct candidate one = { 0 }, two = { 0 };
    (void)state;

    world_init(&world);
    struct etcd *second = client_new(&world, server.endpoint, 0, 0);
    campaign(world.etcd, "elect/", "one", 30000, &one);
    RUN_UNTIL(&world, one.elected == 1);
    campaign(second, "elect/", "two", 30000, &two);
    RUN_UNTIL(&world, strcmp(two.leader, "one") == 0);
    struct etcd_txn *txn = etcd_txn_new();
    compare_election(&one, txn);
    etcd_txn_put(txn, ETCD_THEN, SLICE_LITERAL("by-leader"), SLICE_LITERAL("1"), 0);
    assert_true(commit(&world, txn).succeeded);
    txn = etcd_txn_new(); /* What the deposed leader would still send. */
    compare_election(&one, txn);
    etcd_txn_put(txn, ETCD_THEN, SLICE_LITERAL("by-leader"), SLICE_LITERAL("2"), 0);
    assert_int_equal(two.elected, 0);
    etcd_election_stop(one.election);
    RUN_UNTIL(&world, two.elected == 1);
    assert_string_equal(two.leader, "two");
    assert_false(commit(&world, txn).succeeded);
    etcd_election_stop(two.election);
    RUN_UNTIL(&world, etcd_calls_pending(second) == 0);
    etcd_free(second);
    world_deinit(&world);
}

/* The leader's loop stands still past its TTL: the other is elected, and the first, once it runs
 * again, must say lost before anything else. */
static void leadership_passes_when_the_leader_stalls(void **state)
{
    struct world first, second;
    struct candidate one = { 0 }, two = { 0 };
    (void)state;

    world_init(&first);
    world_init(&second);
    campaign(first.etcd, "stall/", "one", 1000, &one);
    RUN_UNTIL(&first, one.elected == 1);
    campaign(second.etcd, "stall/", "two", 30000, &two); /* Its loop will rest, too. */
    RUN_UNTIL(&second, two.elected == 1);
    RUN_UNTIL(&first, one.lost == 1 && strcmp(one.leader, "two") == 0);
    assert_int_equal(one.elected, 1);
    etcd_election_stop(one.election);
    etcd_election_stop(two.election);
    world_deinit(&first);
    world_deinit(&second);
}

/* The earlier life hangs: the next one does not wait for its lease, and has fenced it. When it
 * wakes up it waits its turn, although both take the other for an earlier life. */
static void new_life_leads_at_once_and_fences_the_one_before(void **state)
{
    struct world first, second;
    struct candidate one = { 0 }, two = { 0 };
    struct etcd_txn *late = etcd_txn_new();
    (void)state;

    world_init(&first);
    world_init(&second);
    campaign(first.etcd, "life/", "life-1", 600000, &one);
    RUN_UNTIL(&first, one.elected == 1);
    compare_election(&one, late);
    etcd_txn_put(late, ETCD_THEN, SLICE_LITERAL("by-earlier-life"), SLICE_LITERAL("1"), 0);
    campaign(second.etcd, "life/", "life-2", 600000, &two);
    RUN_UNTIL(&second, two.elected == 1);
    assert_false(commit(&first, late).succeeded);
    RUN_UNTIL(&first, one.lost == 1 && strcmp(one.leader, "life-2") == 0);
    etcd_election_stop(two.election);
    RUN_UNTIL(&second, etcd_calls_pending(second.etcd) == 0);
    RUN_UNTIL(&first, one.elected == 2);
    assert_int_equal(two.lost, 0);
    assert_int_equal(two.elected, 1);
    etcd_election_stop(one.election);
    world_deinit(&first);
    world_deinit(&second);
}

static void deleted_candidate_takes_a_new_place(void **state)
{
    struct world world;
    struct candidate one = { 0 };
    struct etcd_txn *txn = etcd_txn_new();
    (void)state;

    world_init(&world);
    campaign(world.etcd, "gone/", "one", 30000, &one);
    RUN_UNTIL(&world, one.elected == 1);
    etcd_txn_delete(txn, ETCD_THEN, slice_from_text(one.key));
    assert_int_equal(commit(&world, txn).deleted, 1);
    RUN_UNTIL(&world, one.lost == 1 && one.elected == 2);
    etcd_election_stop(one.election);
    world_deinit(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watch_resumes_after_etcd_was_killed),
        cmocka_unit_test(watch_of_compacted_revisions_is_reset),
        cmocka_unit_test(mirror_tells_each_change_once),
        cmocka_unit_test(mirror_repairs_what_a_watch_missed),
        cmocka_unit_test(mirror_reads_a_large_prefix_in_pages),
        cmocka_unit_test(mirror_may_be_stopped_from_its_callback),
        cmocka_unit_test(revision_going_back_freezes_mirrors_until_accepted),
        cmocka_unit_test(another_cluster_id_is_reported),
        cmocka_unit_test(leadership_passes_when_the_leader_resigns),
        cmocka_unit_test(leadership_passes_when_the_leader_stalls),
        cmocka_unit_test(new_life_leads_at_once_and_fences_the_one_before),
        cmocka_unit_test(deleted_candidate_takes_a_new_place),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
