#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/doctor/doctor_checks.h"
#include "runtime/base/check.h"

#define DAY_MS UINT64_C(86400000)
#define MIB    UINT64_C(1048576)

static const char *role_name(enum process_role role)
{
    static const char *const names[] = { "router", "node", "coordinator" };

    CHECK(role < ARRAY_SIZE(names));
    return names[role];
}

/* How the findings of one check stand. */
struct tally {
    uint32_t asked, known, bad;
};

/* The line that ends a check: what is unknown is said; ok only if something was looked at. */
static void close_check(struct findings *out, const char *check, const struct tally *tally,
                        const char *what)
{
    if (tally->known < tally->asked || tally->asked == 0)
        finding_add(out,
                    (struct verdict){ FINDING_UNKNOWN, check,
                                      "See whether they answer, and whether all processes are of "
                                      "this version.",
                                      NULL },
                    "%u of %u processes did not tell", tally->asked - tally->known, tally->asked);
    if (tally->known > 0 && tally->bad == 0)
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = check },
                    "%u processes: %s", tally->known, what);
}

/* ---- versions ---- */

/* "0.1.0": its first two numbers. */
struct version {
    unsigned long major, minor;
};

static bool parse_version(const char *text, struct version *ret_version)
{
    char *end;

    ret_version->major = strtoul(text, &end, 10);
    if (end == text || *end != '.')
        return false;
    text = end + 1;
    ret_version->minor = strtoul(text, &end, 10);
    return end != text;
}

static bool within_one(struct version a, struct version b)
{
    return a.major == b.major && a.minor + 1 >= b.minor && b.minor + 1 >= a.minor;
}

static void judge_versions(const struct doctor_facts *facts, struct findings *out)
{
    struct tally tally = { 0 };
    const struct process_facts *first = NULL;
    struct version first_version = { 0 };
    char what[FINDING_BYTES] = "";

    for (uint32_t i = 0; i < facts->process_count; i++) {
        const struct process_facts *process = &facts->processes[i];
        struct version version;

        if (!process->live)
            continue;
        tally.asked++;
        if (!parse_version(process->version, &version))
            continue;
        tally.known++;
        if (first == NULL) {
            first = process;
            first_version = version;
            snprintf(what, sizeof what, "all are %s", process->version);
            continue;
        }
        if (strcmp(process->version, first->version) == 0)
            continue;
        tally.bad++;
        finding_add(out,
                    within_one(version, first_version)
                        ? (struct verdict){ FINDING_WARN, "versions",
                                            "Finish the upgrade: one node after the other.", NULL }
                        : (struct verdict){ FINDING_FAIL, "versions",
                                            "Only neighbouring versions work together: upgrade by "
                                            "way of those between.",
                                            NULL },
                    "%s %s is %s, %s is %s", role_name(process->role), process->name,
                    process->version, first->name, first->version);
    }
    close_check(out, "versions", &tally, what);
}

/* ---- clocks ---- */

static int by_size(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

/* Of count > 0 numbers, which it sorts. */
static int64_t median_of(int64_t *numbers, uint32_t count)
{
    qsort(numbers, count, sizeof *numbers, by_size);
    return count % 2 == 1 ? numbers[count / 2] : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}

/* What is certain of a difference that is known to within `error_ms`. */
static int64_t certain_ms(int64_t difference_ms, uint32_t error_ms)
{
    int64_t size = difference_ms < 0 ? -difference_ms : difference_ms;

    return size > error_ms ? size - error_ms : 0;
}

static void judge_clock(const struct process_facts *process, int64_t median_ms,
                        struct findings *out, struct tally *tally)
{
    int64_t off_ms = process->clock_ahead_ms - median_ms;
    int64_t certain = certain_ms(off_ms, process->clock_error_ms);

    if (certain <= CLOCK_WARN_MS)
        return;
    tally->bad++;
    finding_add(out,
                (struct verdict){ certain > CLOCK_FAIL_MS ? FINDING_FAIL : FINDING_WARN, "clocks",
                                  "Mend time synchronisation (chrony, NTP) on its machine: a node "
                                  "that is 1 s off gives its shards up, one 2 s ahead is refused.",
                                  NULL },
                "%s %s is %" PRId64 " ms %s of the others (known to %u ms)",
                role_name(process->role), process->name, off_ms < 0 ? -off_ms : off_ms,
                off_ms < 0 ? "behind" : "ahead", process->clock_error_ms);
}

static void judge_own_clock(int64_t median_ms, uint32_t error_ms, struct findings *out)
{
    if (certain_ms(median_ms, error_ms) > CLOCK_FAIL_MS)
        finding_add(out,
                    (struct verdict){ FINDING_WARN, "clocks",
                                      "Set it, or see which of the two is wrong: operation ids "
                                      "made here carry its time.",
                                      NULL },
                    "this machine is %" PRId64 " ms %s of the cluster",
                    median_ms < 0 ? -median_ms : median_ms, median_ms > 0 ? "behind" : "ahead");
}

static void judge_clocks(const struct doctor_facts *facts, struct findings *out)
{
    int64_t ahead_ms[DOCTOR_PROCESSES_MAX];
    struct tally tally = { 0 };
    uint32_t error_ms = 0;
    int64_t median_ms = 0;

    for (uint32_t i = 0; i < facts->process_count; i++) {
        const struct process_facts *process = &facts->processes[i];
        tally.asked += process->live;
        if (!process->live || !process->clock_known)
            continue;
        ahead_ms[tally.known++] = process->clock_ahead_ms;
        if (process->clock_error_ms > error_ms)
            error_ms = process->clock_error_ms;
    }
    if (tally.known > 0) {
        median_ms = median_of(ahead_ms, tally.known);
        judge_own_clock(median_ms, error_ms, out);
    }
    for (uint32_t i = 0; i < facts->process_count; i++) {
        if (facts->processes[i].live && facts->processes[i].clock_known)
            judge_clock(&facts->processes[i], median_ms, out, &tally);
    }
    close_check(out, "clocks", &tally, "within 200 ms of each other, as far as can be told");
}

/* ---- disks ---- */

static void judge_disk(const struct process_facts *node, struct findings *out, struct tally *tally)
{
    static const struct verdict full = { FINDING_FAIL, "disks",
                                         "It is read-only: make room, or let others take its "
                                         "shards.",
                                         "HoldfastDiskFull" };
    static const struct verdict low = { FINDING_WARN, "disks", "Grow the volume before it is full.",
                                        "HoldfastDiskLow" };

    if (node->disk_state == DISK_OK)
        return;
    tally->bad++;
    if (node->disk_state == DISK_LOG_FULL) {
        finding_add(out,
                    (struct verdict){ FINDING_FAIL, "disks",
                                      "It is read-only until a checkpoint lets its log be cut.",
                                      "HoldfastLogFull" },
                    "the log of %s has reached --log-size-max", node->name);
        return;
    }
    finding_add(out, node->disk_state == DISK_FULL ? full : low,
                "%s is %s: %" PRIu64 " MiB are free, --disk-free-min is %" PRIu64 " MiB",
                node->name, node->disk_state == DISK_FULL ? "full" : "low",
                node->disk_free_bytes / MIB, node->disk_free_min_bytes / MIB);
}

static void judge_disks(const struct doctor_facts *facts, struct findings *out)
{
    struct tally tally = { 0 };
    uint64_t least_bytes = UINT64_MAX;
    char what[FINDING_BYTES];

    for (uint32_t i = 0; i < facts->process_count; i++) {
        const struct process_facts *node = &facts->processes[i];
        if (node->role != PROCESS_NODE || !node->live)
            continue;
        tally.asked++;
        if (node->disk_state == DISK_UNKNOWN)
            continue;
        tally.known++;
        if (node->disk_free_bytes < least_bytes)
            least_bytes = node->disk_free_bytes;
        judge_disk(node, out, &tally);
    }
    snprintf(what, sizeof what, "at least %" PRIu64 " MiB are free", least_bytes / MIB);
    close_check(out, "disks", &tally, what);
}

/* ---- certificates ---- */

/* True: nothing is wrong with it. `expires_ms` 0: there is none. */
static bool judge_certificate(const struct doctor_facts *facts, const struct process_facts *process,
                              bool is_public, struct findings *out)
{
    uint64_t expires_ms =
        is_public ? process->public_certificate_ms : process->cluster_certificate_ms;
    const char *kind = is_public ? "public" : "cluster";
    static const char runbook[] = "HoldfastCertificateExpires";

    if (expires_ms == 0 || expires_ms > facts->now_ms + CERT_WARN_DAYS * DAY_MS)
        return true;
    if (expires_ms <= facts->now_ms)
        finding_add(out,
                    (struct verdict){ FINDING_FAIL, "certificates",
                                      "Put a new one into its files: they are read again by "
                                      "themselves.",
                                      runbook },
                    "the %s certificate of %s %s has expired", kind, role_name(process->role),
                    process->name);
    else
        finding_add(out,
                    (struct verdict){ FINDING_WARN, "certificates",
                                      "Renew it in time: its files are read again by themselves.",
                                      runbook },
                    "the %s certificate of %s %s expires in %" PRIu64 " days", kind,
                    role_name(process->role), process->name, (expires_ms - facts->now_ms) / DAY_MS);
    return false;
}

static void judge_certificates(const struct doctor_facts *facts, struct findings *out)
{
    struct tally tally = { 0 };

    for (uint32_t i = 0; i < facts->process_count; i++) {
        const struct process_facts *process = &facts->processes[i];
        if (!process->live)
            continue;
        tally.asked++;
        if (!process->certificates_known)
            continue;
        tally.known++;
        tally.bad += !judge_certificate(facts, process, false, out);
        tally.bad += !judge_certificate(facts, process, true, out);
    }
    close_check(out, "certificates", &tally, "none expires within 14 days");
}

/* ---- counts, and who reads events ---- */

static void judge_node_counts(const struct process_facts *node, struct findings *out,
                              struct tally *tally)
{
    if (node->counts_different > 0)
        finding_add(out,
                    (struct verdict){ FINDING_WARN, "counts",
                                      "holdfast rebuild counters --dry-run tells them.",
                                      "HoldfastCountsDrift" },
                    "%s found %" PRIu64 " targets with another count than what they count, by up "
                    "to %" PRIu64,
                    node->name, node->counts_different, node->counts_drift);
    if (node->totals_behind_ms > TOTALS_WARN_MS)
        finding_add(out,
                    (struct verdict){ FINDING_WARN, "counts", "Lists of the most counted are late.",
                                      "HoldfastTotalsBehind" },
                    "the totals of %s are %" PRIu64 " s behind", node->name,
                    node->totals_behind_ms / 1000);
    tally->bad += node->counts_different > 0 || node->totals_behind_ms > TOTALS_WARN_MS;
}

static void judge_counts(const struct doctor_facts *facts, struct findings *out)
{
    struct tally tally = { 0 };

    for (uint32_t i = 0; i < facts->process_count; i++) {
        const struct process_facts *node = &facts->processes[i];
        if (node->role != PROCESS_NODE || !node->live)
            continue;
        tally.asked++;
        if (!node->counts_known)
            continue;
        tally.known++;
        judge_node_counts(node, out, &tally);
    }
    close_check(out, "counts", &tally, "what they compared agrees, and totals are in time");
}

static void judge_consumers(const struct doctor_facts *facts, struct findings *out)
{
    struct tally tally = { 0 };

    for (uint32_t i = 0; i < facts->process_count; i++) {
        const struct process_facts *router = &facts->processes[i];
        if (router->role != PROCESS_ROUTER || !router->live)
            continue;
        tally.asked++;
        if (!router->consumers_known)
            continue;
        tally.known++;
        if (router->consumers_behind_percent <= CONSUMERS_WARN)
            continue;
        tally.bad++;
        finding_add(out,
                    (struct verdict){ FINDING_WARN, "consumers",
                                      "holdfast events consumers tells which.",
                                      "HoldfastConsumerBehind" },
                    "a consumer is behind by %u %% of the time for which events are kept, says %s",
                    router->consumers_behind_percent, router->name);
    }
    close_check(out, "consumers", &tally, "none comes near to losing events");
}

void doctor_judge_processes(const struct doctor_facts *facts, struct findings *findings)
{
    judge_versions(facts, findings);
    judge_clocks(facts, findings);
    judge_disks(facts, findings);
    judge_certificates(facts, findings);
    judge_counts(facts, findings);
    judge_consumers(facts, findings);
}
