/* The fence of a coordinator's writes, against a real etcd: one that was elected, and is no more,
 * writes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/io/registry.h"
#include "runtime/base/test_directory.h"
#include "runtime/etcd/etcd_process.h"

#define CLUSTER      "test"
#define WAIT_MS      60000u
#define LEASE_TTL_MS 30000u /* Longer than a test: no election ends by itself. */

struct candidate {
    struct fixture *fixture;
    struct registry *registry;
    uint32_t elected, lost, answers;
    char key[CLUSTER_KEY_SIZE];
    int64_t revision;
    enum coord_txn_outcome outcome;
    bool written;
    char seen[16]; /* The value of `put`'s key, by its own mirror. */
};

struct fixture {
    char directory[TEST_DIRECTORY_BYTES];
    struct etcd_process process;
    struct loop *loop;
    struct loop_timer heartbeat;
    struct log log;
    struct candidate first, second;
};

static void no_log(void *sink, enum log_level level, const char *event,
                   const struct log_field *fields)
{
    (void)sink;
    (void)level;
    (void)event;
    (void)fields;
}

static void on_heartbeat(void *user)
{
    (void)user;
}

static void copy(char *to, size_t size, struct slice from)
{
    assert_true(from.size < size);
    memcpy(to, from.data, from.size);
    to[from.size] = 0;
}

static struct cluster_key written_key(void)
{
    return cluster_key_shard(CLUSTER, 0);
}

static void on_event(void *user, struct coord_event *event)
{
    struct candidate *candidate = user;
    struct cluster_key key = written_key();

    if (event->type == COORD_ELECTED) {
        copy(candidate->key, sizeof candidate->key, event->key);
        candidate->revision = event->create_revision;
        candidate->elected++;
    } else if (event->type == COORD_LOST) {
        candidate->lost++;
    } else if (event->type == COORD_TXN_DONE) {
        candidate->outcome = event->outcome;
        candidate->written = event->outcome == COORD_TXN_ANSWERED && event->written[0];
        candidate->answers++;
    } else if (event->type == COORD_PUT && slice_equal(event->key, cluster_key_slice(&key))) {
        copy(candidate->seen, sizeof candidate->seen, event->value);
    }
}

static const struct cluster_record *no_cluster(void *user)
{
    (void)user;
    return NULL;
}

static void candidate_start(struct fixture *fixture, struct candidate *candidate, const char *name)
{
    const char *endpoint = fixture->process.endpoint;
    struct coordinator_record self = { .address = "127.0.0.1:1" };
    struct registry_options options = { .loop = fixture->loop,
                                        .log = &fixture->log,
                                        .cluster = CLUSTER,
                                        .endpoints = &endpoint,
                                        .endpoint_count = 1,
                                        .lease_ttl_ms = LEASE_TTL_MS,
                                        .event = on_event,
                                        .cluster_of = no_cluster,
                                        .user = candidate };

    *candidate = (struct candidate){ .fixture = fixture };
    snprintf(self.name, sizeof self.name, "%s", name);
    assert_int_equal(registry_new(&options, &candidate->registry), ERR_OK);
    registry_campaign(candidate->registry, &self);
}

static bool was_elected(void *user)
{
    return ((struct candidate *)user)->elected > 0;
}

static bool was_answered(void *user)
{
    return ((struct candidate *)user)->answers > 0;
}

static bool has_seen(void *user)
{
    return ((struct candidate *)user)->seen[0] != 0;
}

static bool never(void *user)
{
    (void)user;
    return false;
}

/* Writes `value` as a core does that knows of no loss: in the term of its election. */
static void write_as_elected(struct candidate *candidate, const char *value, int64_t mod_revision)
{
    struct cluster_key key = written_key();
    struct coord_write write = { .key = cluster_key_slice(&key),
                                 .value = slice_from_text(value),
                                 .mod_revision = mod_revision };
    struct coord_txn txn = { .ticket = 1,
                             .election_key = slice_from_text(candidate->key),
                             .election_revision = candidate->revision,
                             .writes = &write,
                             .write_count = 1 };

    candidate->answers = 0;
    registry_txn(candidate->registry, &txn);
    assert_true(loop_run_until(candidate->fixture->loop, was_answered, candidate, WAIT_MS));
}

static void fixture_start(struct fixture *fixture)
{
    char data[80];

    *fixture = (struct fixture){ .log = { .write = no_log, .level_min = LOG_ERROR } };
    test_directory_make("registry", fixture->directory);
    snprintf(data, sizeof data, "%s/etcd", fixture->directory);
    assert_int_equal(
        etcd_process_start(&(struct etcd_process_options){ .data_dir = data }, &fixture->process),
        ERR_OK);
    assert_int_equal(loop_new(&fixture->loop), ERR_OK);
    loop_timer_init(&fixture->heartbeat, fixture->loop, on_heartbeat, NULL);
    loop_timer_start_repeating(&fixture->heartbeat, 20);
}

static void fixture_stop(struct fixture *fixture)
{
    registry_free(fixture->first.registry);
    registry_free(fixture->second.registry);
    (void)loop_run_until(fixture->loop, never, NULL, 100);
    loop_timer_stop(&fixture->heartbeat);
    loop_free(fixture->loop);
    etcd_process_stop(&fixture->process);
    test_directory_remove(fixture->directory);
}

/* A later life of the same coordinator removes the key of the first. The record would still take
 * the write of the deposed one: it has the revision that the write is compared with. */
static void a_deposed_coordinator_writes_nothing(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_start(&fixture);
    candidate_start(&fixture, &fixture.first, "a");
    assert_true(loop_run_until(fixture.loop, was_elected, &fixture.first, WAIT_MS));
    candidate_start(&fixture, &fixture.second, "a");
    assert_true(loop_run_until(fixture.loop, was_elected, &fixture.second, WAIT_MS));
    write_as_elected(&fixture.first, "deposed", 0);
    assert_int_equal(fixture.first.outcome, COORD_TXN_DEPOSED);
    write_as_elected(&fixture.second, "leader", 0);
    assert_int_equal(fixture.second.outcome, COORD_TXN_ANSWERED);
    assert_true(fixture.second.written);
    assert_true(loop_run_until(fixture.loop, has_seen, &fixture.first, WAIT_MS));
    assert_string_equal(fixture.first.seen, "leader");
    fixture_stop(&fixture);
}

/* The term's number is the key's create revision: the same key under another one is another term.
 */
static void an_earlier_term_of_the_same_key_writes_nothing(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_start(&fixture);
    candidate_start(&fixture, &fixture.first, "a");
    assert_true(loop_run_until(fixture.loop, was_elected, &fixture.first, WAIT_MS));
    fixture.first.revision--;
    write_as_elected(&fixture.first, "earlier", 0);
    assert_int_equal(fixture.first.outcome, COORD_TXN_DEPOSED);
    fixture.first.revision++;
    write_as_elected(&fixture.first, "leader", 0);
    assert_true(fixture.first.written);
    /* And a write whose record has changed is not carried out, though the term stands. */
    write_as_elected(&fixture.first, "stale", 0);
    assert_int_equal(fixture.first.outcome, COORD_TXN_ANSWERED);
    assert_false(fixture.first.written);
    fixture_stop(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deposed_coordinator_writes_nothing),
        cmocka_unit_test(an_earlier_term_of_the_same_key_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
