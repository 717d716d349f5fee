#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/cli/doctor/doctor_judge.h"
#include "runtime/base/check.h"

#define NOW_MS 1700000000000ull
#define DAY_MS UINT64_C(86400000)
#define GIB    (1ull << 30)

static void add_process(struct doctor_facts *facts, enum process_role role, const char *name)
{
    struct process_facts *process = &facts->processes[facts->process_count++];

    *process = (struct process_facts){
        .role = role,
        .live = true,
        .answered = true,
        .version = "0.4.1",
        .clock_known = true,
        .clock_ahead_ms = 3,
        .clock_error_ms = 2,
        .certificates_known = true,
        .cluster_certificate_ms = NOW_MS + 400 * DAY_MS,
        .counts_known = role == PROCESS_NODE,
        .consumers_known = role == PROCESS_ROUTER,
        .consumers_behind_percent = role == PROCESS_ROUTER ? 75 : 0,
    };
    snprintf(process->name, sizeof process->name, "%s", name);
    if (role != PROCESS_NODE)
        return;
    process->replica_id = facts->process_count;
    process->disk_state = DISK_OK;
    process->disk_free_bytes = 40 * GIB;
    process->disk_free_min_bytes = GIB / 4;
}

/* Three nodes, a router, a coordinator, one etcd, four shards; all well. Processes 0 to 2 are the
 * nodes, 3 the router. */
static struct doctor_facts *healthy(void)
{
    struct doctor_facts *facts = mem_zalloc(sizeof *facts);

    *facts = (struct doctor_facts){ .now_ms = NOW_MS,
                                    .router_count = 1,
                                    .cluster_known = true,
                                    .coordinator = "coordinator-1",
                                    .replication_factor = 3,
                                    .shard_count = 4,
                                    .shards_known = true,
                                    .shards_listed = 4,
                                    .quarantine_known = true,
                                    .etcd_known = true,
                                    .etcd_count = 1,
                                    .audit_known = true };
    facts->processes = mem_zalloc(DOCTOR_PROCESSES_MAX * sizeof *facts->processes);
    facts->shards = mem_zalloc(DOCTOR_SHARDS_MAX * sizeof *facts->shards);
    facts->pairs = mem_zalloc(DOCTOR_PAIRS_MAX * sizeof *facts->pairs);
    facts->routers[0] = (struct router_facts){ "http://r:7400", true, 4, "" };
    facts->etcd[0] = (struct etcd_facts){ .endpoint = "http://e:2379",
                                          .answered = true,
                                          .version = "3.6.9",
                                          .has_leader = true,
                                          .database_bytes = 1 << 20,
                                          .answer_ms = 2 };
    add_process(facts, PROCESS_NODE, "node-1");
    add_process(facts, PROCESS_NODE, "node-2");
    add_process(facts, PROCESS_NODE, "node-3");
    add_process(facts, PROCESS_ROUTER, "router-1");
    add_process(facts, PROCESS_COORDINATOR, "coordinator-1");
    for (uint32_t i = 0; i < 4; i++)
        facts->shards[i] =
            (struct shard_facts){ .shard = i, .owner = 1 + i % 3, .serving = true, .members = 3 };
    return facts;
}

static void facts_free(struct doctor_facts *facts)
{
    free(facts->processes);
    free(facts->shards);
    free(facts->pairs);
    free(facts);
}

static struct findings *judge(const struct doctor_facts *facts)
{
    struct findings *findings = mem_zalloc(sizeof *findings);

    doctor_judge(facts, findings);
    return findings;
}

static void what_is_well_is_ok_in_every_check(void **state)
{
    static const char *const checks[] = { "router",    "coordinator",  "nodes",    "versions",
                                          "clocks",    "disks",        "etcd",     "shards",
                                          "replicas",  "replication",  "learners", "players",
                                          "transfers", "certificates", "audit",    "counts",
                                          "consumers" };
    struct doctor_facts *facts = healthy();
    struct findings *findings = judge(facts);
    (void)state;

    assert_int_equal(findings->count, ARRAY_SIZE(checks));
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        uint32_t found = 0;
        for (uint32_t k = 0; k < findings->count; k++)
            found += strcmp(findings->items[k].check, checks[i]) == 0;
        if (found != 1)
            fail_msg("check %s was made %u times", checks[i], found);
    }
    assert_int_equal(findings->levels[FINDING_OK], findings->count);
    free(findings);
    facts_free(facts);
}

static struct process_facts *of_node(struct doctor_facts *facts)
{
    return &facts->processes[1];
}

static void router_away(struct doctor_facts *f)
{
    f->router_count = 2;
    f->routers[1] = (struct router_facts){ "http://q:7400", false, 0, "connection refused" };
}

static void router_slow(struct doctor_facts *f)
{
    f->routers[0].answer_ms = 1500;
}

static void nobody_elected(struct doctor_facts *f)
{
    f->coordinator[0] = 0;
}

static void coordinator_halted(struct doctor_facts *f)
{
    f->coordinator_halted = true;
}

static void node_dead(struct doctor_facts *f)
{
    of_node(f)->live = false;
}

static void node_mute(struct doctor_facts *f)
{
    of_node(f)->answered = false;
}

static void node_too_few(struct doctor_facts *f)
{
    f->replication_factor = 5;
    for (uint32_t i = 0; i < f->shards_listed; i++)
        f->shards[i].members = 5;
}

static void version_next(struct doctor_facts *f)
{
    snprintf(of_node(f)->version, DOCTOR_NAME_BYTES, "0.5.0");
}

static void version_far(struct doctor_facts *f)
{
    snprintf(of_node(f)->version, DOCTOR_NAME_BYTES, "0.6.0");
}

static void version_unknown(struct doctor_facts *f)
{
    of_node(f)->version[0] = 0;
}

static void clock_off(struct doctor_facts *f)
{
    of_node(f)->clock_ahead_ms = 3 - 300;
}

static void clock_far_off(struct doctor_facts *f)
{
    of_node(f)->clock_ahead_ms = 1500;
}

/* It may be the way there: nothing is certain. */
static void clock_off_by_a_slow_link(struct doctor_facts *f)
{
    of_node(f)->clock_ahead_ms = 300;
    of_node(f)->clock_error_ms = 250;
}

static void clock_here(struct doctor_facts *f)
{
    for (uint32_t i = 0; i < f->process_count; i++)
        f->processes[i].clock_ahead_ms = -5000;
}

static void clock_unknown(struct doctor_facts *f)
{
    of_node(f)->clock_known = false;
}

static void counts_differ(struct doctor_facts *f)
{
    of_node(f)->counts_different = 2;
    of_node(f)->counts_drift = 7;
}

static void totals_late(struct doctor_facts *f)
{
    of_node(f)->totals_behind_ms = 61000;
}

static void counts_untold(struct doctor_facts *f)
{
    of_node(f)->counts_known = false;
}

static void consumer_late(struct doctor_facts *f)
{
    f->processes[3].consumers_behind_percent = 76;
}

static void consumers_untold(struct doctor_facts *f)
{
    f->processes[3].consumers_known = false;
}

static void disk_low(struct doctor_facts *f)
{
    of_node(f)->disk_state = DISK_LOW;
    of_node(f)->disk_free_bytes = GIB / 3;
}

static void disk_full(struct doctor_facts *f)
{
    of_node(f)->disk_state = DISK_FULL;
}

static void disk_log_full(struct doctor_facts *f)
{
    of_node(f)->disk_state = DISK_LOG_FULL;
}

static void disk_unknown(struct doctor_facts *f)
{
    of_node(f)->disk_state = DISK_UNKNOWN;
}

static void certificate_soon(struct doctor_facts *f)
{
    of_node(f)->cluster_certificate_ms = NOW_MS + 13 * DAY_MS;
}

static void certificate_over(struct doctor_facts *f)
{
    f->processes[3].public_certificate_ms = NOW_MS;
}

static void certificate_unknown(struct doctor_facts *f)
{
    f->processes[4].certificates_known = false;
}

static void etcd_old(struct doctor_facts *f)
{
    snprintf(f->etcd[0].version, DOCTOR_NAME_BYTES, "3.4.23");
}

static void etcd_old_five(struct doctor_facts *f)
{
    snprintf(f->etcd[0].version, DOCTOR_NAME_BYTES, "3.5.27");
}

static void etcd_old_six(struct doctor_facts *f)
{
    snprintf(f->etcd[0].version, DOCTOR_NAME_BYTES, "3.6.8");
}

static void etcd_headless(struct doctor_facts *f)
{
    f->etcd[0].has_leader = false;
}

static void etcd_alarm(struct doctor_facts *f)
{
    snprintf(f->etcd[0].alarms, sizeof f->etcd[0].alarms, "NOSPACE");
}

static void etcd_near_quota(struct doctor_facts *f)
{
    f->etcd[0].database_bytes = 1700ull << 20;
}

static void etcd_near_its_own_quota(struct doctor_facts *f)
{
    f->etcd[0].quota_bytes = 100 << 20;
    f->etcd[0].database_bytes = 81 << 20;
}

static void etcd_slow(struct doctor_facts *f)
{
    f->etcd[0].answer_ms = 501;
}

static void etcd_one_away(struct doctor_facts *f)
{
    f->etcd[1] = (struct etcd_facts){ .endpoint = "http://f:2379" };
    f->etcd_count = 2;
}

static void etcd_away(struct doctor_facts *f)
{
    f->etcd[0].answered = false;
}

static void etcd_unknown(struct doctor_facts *f)
{
    f->etcd_known = false;
    f->etcd_count = 0;
}

static void shard_unowned(struct doctor_facts *f)
{
    f->shards[2] = (struct shard_facts){ .shard = 2 };
}

static void shard_below_majority(struct doctor_facts *f)
{
    f->shards[2].serving = false;
    f->shards[2].unreachable = 2;
}

static void shard_of_quarantined_members(struct doctor_facts *f)
{
    f->shards[2].serving = false;
    f->shards[2].unreachable = 1;
    f->shards[2].quarantined = f->shards[2].members - 1;
}

static void shard_without_rows(struct doctor_facts *f)
{
    f->shards[2].serving = false;
    f->shards[2].unreachable = 1;
    f->shards[2].quarantined = 1;
    f->shards[2].rows_wanting = 1;
}

static void shard_between_owners(struct doctor_facts *f)
{
    f->shards[2].serving = false;
}

static void shard_unlisted(struct doctor_facts *f)
{
    f->shards_listed = 3;
}

static void replica_away(struct doctor_facts *f)
{
    f->shards[1].unreachable = 1;
}

static void replica_behind(struct doctor_facts *f)
{
    f->shards[1].catching_up = 1;
}

/* Every replica calls itself well. */
static void link_stalled(struct doctor_facts *f)
{
    f->pairs[f->pair_count++] = (struct pair_facts){ .owner = 1,
                                                     .member = 3,
                                                     .shards = { 0, 3 },
                                                     .shard_count = 2,
                                                     .lag_entries = 205,
                                                     .stalled_ms = 900000 };
}

static void link_stalled_for_many_shards(struct doctor_facts *f)
{
    link_stalled(f);
    f->pairs[0].shard_count = 20;
}

static void links_stalled_both_ways(struct doctor_facts *f)
{
    f->pairs[f->pair_count++] =
        (struct pair_facts){ .owner = 3, .member = 1, .shard_count = 1, .stalled_ms = 10000 };
    link_stalled(f);
}

static void link_to_the_dead_stalled(struct doctor_facts *f)
{
    node_dead(f);
    f->pairs[f->pair_count++] =
        (struct pair_facts){ .owner = 1, .member = 2, .shard_count = 1, .stalled_ms = 60000 };
}

static void acknowledgements_unknown(struct doctor_facts *f)
{
    f->pairs_unknown = 8;
}

static void replica_damaged(struct doctor_facts *f)
{
    of_node(f)->damaged = 2;
}

static void replica_quarantined(struct doctor_facts *f)
{
    of_node(f)->quarantined = 1;
}

static void replicas_diverged(struct doctor_facts *f)
{
    f->shards[3].diverged = true;
}

static void learner_away(struct doctor_facts *f)
{
    f->shards[0].learner = 99;
}

static void transfer_old(struct doctor_facts *f)
{
    f->shards[0].transfers_open = 1;
    f->shards[0].transfers_oldest_ms = 10001;
}

static void players_held(struct doctor_facts *f)
{
    f->players_quarantined = 2;
}

static void players_unknown(struct doctor_facts *f)
{
    f->quarantine_known = false;
}

static void audit_wrong(struct doctor_facts *f)
{
    f->audit_imbalance = true;
}

static void audit_unknown(struct doctor_facts *f)
{
    f->audit_known = false;
}

static const struct {
    void (*change)(struct doctor_facts *facts);
    enum finding_level level;
    const char *check;
    const char *what;    /* Stands in the finding. */
    const char *runbook; /* NULL: any or none. */
    const char *also;    /* A check that it shows in, too; NULL: none. */
} cases[] = {
    { router_away, FINDING_FAIL, "router", "connection refused", "HoldfastRequestsFailing", NULL },
    { router_slow, FINDING_WARN, "router", "1500 ms", "HoldfastSlowRequests", NULL },
    { nobody_elected, FINDING_FAIL, "coordinator", "no coordinator", "HoldfastNoCoordinator",
      NULL },
    { coordinator_halted, FINDING_FAIL, "coordinator", "halted", "HoldfastCoordinatorHalted",
      NULL },
    { node_dead, FINDING_WARN, "nodes", "node-2", "HoldfastNodeMissing", NULL },
    { node_mute, FINDING_WARN, "nodes", "node-2", "HoldfastNodeMissing", NULL },
    { node_too_few, FINDING_WARN, "nodes", "5 replicas", "HoldfastNodeMissing", NULL },
    { version_next, FINDING_WARN, "versions", "0.5.0", NULL, NULL },
    { version_far, FINDING_FAIL, "versions", "0.6.0", NULL, NULL },
    { version_unknown, FINDING_UNKNOWN, "versions", "1 of 5", NULL, NULL },
    { clock_off, FINDING_WARN, "clocks", "node-2 is 300 ms behind", NULL, NULL },
    { clock_far_off, FINDING_FAIL, "clocks", "node-2 is 1497 ms ahead", NULL, NULL },
    { clock_off_by_a_slow_link, FINDING_OK, "clocks", "5 processes", NULL, NULL },
    { clock_here, FINDING_WARN, "clocks", "this machine is 5000 ms ahead", NULL, NULL },
    { clock_unknown, FINDING_UNKNOWN, "clocks", "1 of 5", NULL, NULL },
    { counts_differ, FINDING_WARN, "counts", "node-2 found 2 targets", "HoldfastCountsDrift",
      NULL },
    { totals_late, FINDING_WARN, "counts", "61 s behind", "HoldfastTotalsBehind", NULL },
    { counts_untold, FINDING_UNKNOWN, "counts", "1 of 3", NULL, NULL },
    { consumer_late, FINDING_WARN, "consumers", "76 %", "HoldfastConsumerBehind", NULL },
    { consumers_untold, FINDING_UNKNOWN, "consumers", "1 of 1", NULL, NULL },
    { disk_low, FINDING_WARN, "disks", "node-2 is low: 341 MiB", "HoldfastDiskLow", NULL },
    { disk_full, FINDING_FAIL, "disks", "node-2 is full", "HoldfastDiskFull", NULL },
    { disk_log_full, FINDING_FAIL, "disks", "--log-size-max", "HoldfastLogFull", NULL },
    { disk_unknown, FINDING_UNKNOWN, "disks", "1 of 3", NULL, NULL },
    { certificate_soon, FINDING_WARN, "certificates", "13 days", "HoldfastCertificateExpires",
      NULL },
    { certificate_over, FINDING_FAIL, "certificates", "public", "HoldfastCertificateExpires",
      NULL },
    { certificate_unknown, FINDING_UNKNOWN, "certificates", "1 of 5", NULL, NULL },
    { etcd_old, FINDING_WARN, "etcd", "3.4.23", NULL, NULL },
    { etcd_old_five, FINDING_WARN, "etcd", "3.5.27", NULL, NULL },
    { etcd_old_six, FINDING_WARN, "etcd", "3.6.8", NULL, NULL },
    { etcd_headless, FINDING_FAIL, "etcd", "no leader", "HoldfastEtcdUnreachable", NULL },
    { etcd_alarm, FINDING_FAIL, "etcd", "NOSPACE", "HoldfastEtcdUnreachable", NULL },
    { etcd_near_quota, FINDING_WARN, "etcd", "1700 MiB", NULL, NULL },
    { etcd_near_its_own_quota, FINDING_WARN, "etcd", "quota is 100 MiB", NULL, NULL },
    { etcd_slow, FINDING_WARN, "etcd", "501 ms", NULL, NULL },
    { etcd_one_away, FINDING_WARN, "etcd", "http://f:2379", NULL, NULL },
    { etcd_away, FINDING_FAIL, "etcd", "does not answer", "HoldfastEtcdUnreachable", NULL },
    { etcd_unknown, FINDING_UNKNOWN, "etcd", "not told", NULL, NULL },
    { shard_unowned, FINDING_FAIL, "shards", "without an owner: shard 2", NULL, NULL },
    { shard_below_majority, FINDING_FAIL, "shards", "majority of their replicas: shard 2",
      "HoldfastShardsUnserved", "replicas" },
    { shard_of_quarantined_members, FINDING_FAIL, "shards", "are quarantined: shard 2",
      "HoldfastReplicaQuarantined", "replicas" },
    { shard_without_rows, FINDING_FAIL, "shards", "members have the rows: shard 2",
      "HoldfastReplicaQuarantined", "replicas" },
    { shard_between_owners, FINDING_FAIL, "shards", "not served: shard 2", "HoldfastShardsUnserved",
      NULL },
    { shard_unlisted, FINDING_UNKNOWN, "shards", "3 of 4", NULL, NULL },
    { replica_away, FINDING_WARN, "replicas", "shard 1", "HoldfastNodeMissing", NULL },
    { link_stalled, FINDING_WARN, "replication",
      "node-1 -> node-3: nothing acknowledged for 900 s, 205 entries behind: shards 0, 3",
      "HoldfastReplicationStalled", NULL },
    { link_stalled_for_many_shards, FINDING_WARN, "replication", "and 12 more",
      "HoldfastReplicationStalled", NULL },
    { links_stalled_both_ways, FINDING_WARN, "replication", "node-3 -> node-1: nothing",
      "HoldfastReplicationStalled", NULL },
    { link_to_the_dead_stalled, FINDING_OK, "replication", "every live node", NULL, "nodes" },
    { acknowledgements_unknown, FINDING_UNKNOWN, "replication", "8 replicas", NULL, NULL },
    { replica_behind, FINDING_WARN, "replicas", "catching up: shard 1", NULL, NULL },
    { replica_damaged, FINDING_FAIL, "replicas", "node-2 has 2 that are damaged",
      "HoldfastReplicaDamaged", NULL },
    { replica_quarantined, FINDING_FAIL, "replicas", "node-2", "HoldfastReplicaQuarantined", NULL },
    { replicas_diverged, FINDING_FAIL, "replicas", "shard 3", "HoldfastReplicaDivergence", NULL },
    { learner_away, FINDING_WARN, "learners", "shard 0", NULL, NULL },
    { transfer_old, FINDING_WARN, "transfers", "shard 0", "HoldfastTransfersStuck", NULL },
    { players_held, FINDING_FAIL, "players", "2 are", "HoldfastPlayersContained", NULL },
    { players_unknown, FINDING_UNKNOWN, "players", "not all shards", NULL, NULL },
    { audit_wrong, FINDING_FAIL, "audit", "doubled or lost", "HoldfastAuditImbalance", NULL },
    { audit_unknown, FINDING_UNKNOWN, "audit", "was not told", NULL, NULL },
};

/* Each fault alone changes its own check and no other, and what fails or warns says what to do. */
static void each_fault_is_found_by_its_check_alone(void **state)
{
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct doctor_facts *facts = healthy();
        bool found = false;

        cases[i].change(facts);
        struct findings *findings = judge(facts);
        for (uint32_t k = 0; k < findings->count; k++) {
            const struct finding *finding = &findings->items[k];
            bool is_it = strcmp(finding->check, cases[i].check) == 0;
            bool may_be = cases[i].also != NULL && strcmp(finding->check, cases[i].also) == 0;
            if (!is_it && !may_be && finding->level != FINDING_OK)
                fail_msg("case %zu (%s): also %s: %s", i, cases[i].what, finding->check,
                         finding->what);
            if (is_it && finding->level == cases[i].level &&
                strstr(finding->what, cases[i].what) != NULL &&
                (cases[i].runbook == NULL ||
                 (finding->runbook != NULL && strcmp(finding->runbook, cases[i].runbook) == 0)))
                found = true;
            if (finding->level != FINDING_OK)
                assert_non_null(finding->todo);
        }
        if (!found)
            fail_msg("case %zu: no finding of %s says '%s'", i, cases[i].check, cases[i].what);
        free(findings);
        facts_free(facts);
    }
}

static void what_is_unknown_is_never_ok(void **state)
{
    struct doctor_facts *facts = healthy();
    struct findings *findings;
    (void)state;

    for (uint32_t i = 0; i < facts->process_count; i++) {
        struct process_facts *process = &facts->processes[i];
        process->version[0] = 0;
        process->clock_known = process->certificates_known = false;
        process->counts_known = process->consumers_known = false;
        process->disk_state = DISK_UNKNOWN;
    }
    facts->shards_known = facts->etcd_known = facts->audit_known = false;
    facts->quarantine_known = false;
    facts->etcd_count = 0;
    findings = judge(facts);
    for (uint32_t i = 0; i < findings->count; i++) {
        const char *check = findings->items[i].check;
        if (strcmp(check, "router") != 0 && strcmp(check, "coordinator") != 0 &&
            strcmp(check, "nodes") != 0)
            assert_int_equal(findings->items[i].level, FINDING_UNKNOWN);
    }
    assert_int_equal(findings->levels[FINDING_UNKNOWN], 10);
    free(findings);
    facts_free(facts);
}

static void without_a_router_nothing_is_known(void **state)
{
    struct doctor_facts *facts = healthy();
    (void)state;

    facts->routers[0].answered = false;
    facts->cluster_known = false;
    struct findings *findings = judge(facts);
    assert_int_equal(findings->count, 2);
    assert_int_equal(findings->levels[FINDING_FAIL], 1);
    assert_int_equal(findings->levels[FINDING_UNKNOWN], 1);
    free(findings);
    facts_free(facts);
}

static void many_shards_are_counted_and_not_all_named(void **state)
{
    struct doctor_facts *facts = healthy();
    (void)state;

    facts->shard_count = facts->shards_listed = DOCTOR_SHARDS_MAX;
    for (uint32_t i = 0; i < DOCTOR_SHARDS_MAX; i++)
        facts->shards[i] = (struct shard_facts){ .shard = i };
    struct findings *findings = judge(facts);
    assert_int_equal(findings->levels[FINDING_FAIL], 1);
    for (uint32_t i = 0; i < findings->count; i++) {
        if (findings->items[i].level == FINDING_FAIL)
            assert_string_equal(findings->items[i].what,
                                "without an owner: shards 0, 1, 2, 3, 4, 5, 6, 7 and 4088 more");
    }
    free(findings);
    facts_free(facts);
}

static void every_runbook_there_is(void **state)
{
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct doctor_facts *facts = healthy();
        cases[i].change(facts);
        struct findings *findings = judge(facts);
        for (uint32_t k = 0; k < findings->count; k++) {
            char path[512];
            if (findings->items[k].runbook == NULL)
                continue;
            snprintf(path, sizeof path, "%s/%s.md", HOLDFAST_RUNBOOKS, findings->items[k].runbook);
            if (access(path, R_OK) != 0)
                fail_msg("there is no %s", path);
        }
        free(findings);
        facts_free(facts);
    }
}

static void a_node_is_found_by_its_replica_and_no_other_process_is(void **state)
{
    struct process_facts processes[] = {
        { .role = PROCESS_ROUTER, .replica_id = 2 },
        { .role = PROCESS_NODE, .replica_id = 1 },
        { .role = PROCESS_NODE, .replica_id = 2 },
    };
    struct doctor_facts facts = { .processes = processes, .process_count = ARRAY_SIZE(processes) };
    (void)state;

    assert_ptr_equal(doctor_find_node(&facts, 2), &processes[2]);
    assert_null(doctor_find_node(&facts, 3));
    facts.process_count = 2;
    assert_null(doctor_find_node(&facts, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_found_by_its_replica_and_no_other_process_is),
        cmocka_unit_test(what_is_well_is_ok_in_every_check),
        cmocka_unit_test(each_fault_is_found_by_its_check_alone),
        cmocka_unit_test(what_is_unknown_is_never_ok),
        cmocka_unit_test(without_a_router_nothing_is_known),
        cmocka_unit_test(many_shards_are_counted_and_not_all_named),
        cmocka_unit_test(every_runbook_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
