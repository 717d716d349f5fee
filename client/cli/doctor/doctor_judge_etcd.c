#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/doctor/doctor_checks.h"

#define MIB UINT64_C(1048576)

/* Fit for production: 3.5.28 and later, 3.6.9 and later, and what comes after. DESIGN section 2. */
static bool is_fit(const char *version)
{
    unsigned major = 0, minor = 0, patch = 0;

    if (sscanf(version, "%4u.%4u.%4u", &major, &minor, &patch) != 3)
        return false;
    if (major != 3)
        return major > 3;
    return minor > 6 || (minor == 6 && patch >= 9) || (minor == 5 && patch >= 28);
}

static bool judge_health(const struct etcd_facts *etcd, struct findings *out)
{
    if (etcd->alarms[0] != 0) {
        finding_add(out,
                    (struct verdict){ FINDING_FAIL, "etcd",
                                      strstr(etcd->alarms, "CORRUPT") != NULL
                                          ? "Replace that member: etcdctl member remove, then add."
                                          : "Compact and defragment it, then etcdctl alarm disarm.",
                                      "HoldfastEtcdUnreachable" },
                    "%s has an alarm: %s", etcd->endpoint, etcd->alarms);
        return false;
    }
    if (!etcd->has_leader) {
        finding_add(out,
                    (struct verdict){ FINDING_FAIL, "etcd",
                                      "Bring back its members until a majority is there.",
                                      "HoldfastEtcdUnreachable" },
                    "%s has no leader", etcd->endpoint);
        return false;
    }
    return true;
}

static bool judge_size(const struct etcd_facts *etcd, struct findings *out)
{
    uint64_t quota = etcd->quota_bytes != 0 ? etcd->quota_bytes : ETCD_QUOTA_BYTES;

    if (etcd->database_bytes < quota / 100 * ETCD_FULL_SHARE)
        return true;
    finding_add(out,
                (struct verdict){ FINDING_WARN, "etcd",
                                  "Compact and defragment it: at its quota it takes no writes.",
                                  "HoldfastEtcdUnreachable" },
                "the database of %s has %" PRIu64 " MiB, its quota is %" PRIu64 " MiB%s",
                etcd->endpoint, etcd->database_bytes / MIB, quota / MIB,
                etcd->quota_bytes == 0 ? " unless configured" : "");
    return false;
}

static bool judge_speed(const struct etcd_facts *etcd, struct findings *out)
{
    if (etcd->answer_ms <= SLOW_ETCD_MS)
        return true;
    finding_add(out,
                (struct verdict){ FINDING_WARN, "etcd",
                                  "Give it a disk and processors of its own: leases live by it.",
                                  "HoldfastEtcdUnreachable" },
                "%s answers the router in %u ms", etcd->endpoint, etcd->answer_ms);
    return false;
}

static bool judge_version(const struct etcd_facts *etcd, struct findings *out)
{
    if (is_fit(etcd->version))
        return true;
    finding_add(out,
                (struct verdict){ FINDING_WARN, "etcd",
                                  "For production take 3.5.28, 3.6.9 or later: older ones may "
                                  "revoke leases by a deposed leader.",
                                  NULL },
                "%s is version %s", etcd->endpoint,
                etcd->version[0] != 0 ? etcd->version : "unknown");
    return false;
}

void doctor_judge_etcd(const struct doctor_facts *facts, struct findings *findings)
{
    uint32_t answered = 0, well = 0;

    for (uint32_t i = 0; i < facts->etcd_count; i++)
        answered += facts->etcd[i].answered;
    for (uint32_t i = 0; i < facts->etcd_count; i++) {
        const struct etcd_facts *etcd = &facts->etcd[i];
        if (!etcd->answered) {
            finding_add(findings,
                        (struct verdict){ answered > 0 ? FINDING_WARN : FINDING_FAIL, "etcd",
                                          "Start it again: without a majority nothing fails over.",
                                          "HoldfastEtcdUnreachable" },
                        "%s does not answer the router", etcd->endpoint);
            continue;
        }
        bool good = judge_health(etcd, findings);
        good = judge_size(etcd, findings) && good;
        good = judge_speed(etcd, findings) && good;
        good = judge_version(etcd, findings) && good;
        well += good;
    }
    if (!facts->etcd_known || facts->etcd_count == 0)
        finding_add(findings,
                    (struct verdict){ FINDING_UNKNOWN, "etcd",
                                      "The router is too old to tell: ask etcdctl endpoint status.",
                                      "HoldfastEtcdUnreachable" },
                    "how it is was not told");
    else if (well == facts->etcd_count)
        finding_add(findings, (struct verdict){ .level = FINDING_OK, .check = "etcd" },
                    "%u %s: version %s, a leader, no alarm", well,
                    well == 1 ? "endpoint" : "endpoints", facts->etcd[0].version);
}
