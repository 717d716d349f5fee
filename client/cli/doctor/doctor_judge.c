#include "client/cli/doctor/doctor_judge.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/doctor/doctor_checks.h"
#include "runtime/base/check.h"

static void judge_router(const struct router_facts *router, struct findings *out)
{
    if (!router->answered)
        finding_add(out,
                    (struct verdict){ FINDING_FAIL, "router",
                                      "Is that a router's public port? Then look at its process "
                                      "and /readyz, and at what is between.",
                                      "HoldfastRequestsFailing" },
                    "%s does not answer: %.120s", router->endpoint, router->why);
    else if (router->answer_ms > SLOW_ANSWER_MS)
        finding_add(out,
                    (struct verdict){ FINDING_WARN, "router",
                                      "A node or etcd answers it late, or its machine is busy.",
                                      "HoldfastSlowRequests" },
                    "%s answers in %u ms", router->endpoint, router->answer_ms);
    else
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = "router" },
                    "%s answers in %u ms", router->endpoint, router->answer_ms);
}

static void judge_coordinator(const struct doctor_facts *facts, struct findings *out)
{
    if (facts->coordinator[0] == 0)
        finding_add(out,
                    (struct verdict){ FINDING_FAIL, "coordinator",
                                      "Start one: until then no shard gets another owner.",
                                      "HoldfastNoCoordinator" },
                    "no coordinator is elected");
    else if (facts->coordinator_halted)
        finding_add(out,
                    (struct verdict){ FINDING_FAIL, "coordinator",
                                      "etcd went back in time: do as the runbook says.",
                                      "HoldfastCoordinatorHalted" },
                    "%s has halted", facts->coordinator);
    else
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = "coordinator" },
                    "%s is elected", facts->coordinator);
}

static void judge_node(const struct process_facts *node, struct findings *out)
{
    if (!node->live)
        finding_add(out,
                    (struct verdict){ FINDING_WARN, "nodes",
                                      "Start it again; if it is gone for good: holdfast node "
                                      "remove.",
                                      "HoldfastNodeMissing" },
                    "%s (replica %llu) is named by shards, but has no lease",
                    node->name[0] != 0 ? node->name : "a node",
                    (unsigned long long)node->replica_id);
    else if (!node->answered)
        finding_add(out,
                    (struct verdict){ FINDING_WARN, "nodes",
                                      "Look for what is between it and the router, or for a "
                                      "process that hangs.",
                                      "HoldfastNodeMissing" },
                    "%s has its lease, but does not answer the router", node->name);
}

static void judge_nodes(const struct doctor_facts *facts, struct findings *out)
{
    uint32_t nodes = 0, well = 0;

    for (uint32_t i = 0; i < facts->process_count; i++) {
        const struct process_facts *node = &facts->processes[i];
        if (node->role != PROCESS_NODE)
            continue;
        nodes++;
        well += node->live && node->answered;
        judge_node(node, out);
    }
    if (nodes < facts->replication_factor)
        finding_add(
            out,
            (struct verdict){ FINDING_WARN, "nodes", "Start more nodes.", "HoldfastNodeMissing" },
            "%u nodes cannot keep %u replicas", nodes, facts->replication_factor);
    else if (well == nodes)
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = "nodes" }, "all %u answer",
                    nodes);
}

static void judge_quarantine(const struct doctor_facts *facts, struct findings *out)
{
    static const struct verdict unknown = { FINDING_UNKNOWN, "players",
                                            "Run it again once all shards are served.", NULL };

    if (facts->players_quarantined > 0)
        finding_add(out,
                    (struct verdict){ FINDING_FAIL, "players",
                                      "See holdfast quarantine list, and docs/containment.md.",
                                      "HoldfastPlayersContained" },
                    "%u %s quarantined%s", facts->players_quarantined,
                    facts->players_quarantined == 1 ? "is" : "are",
                    facts->quarantine_known ? "" : ", and not all shards were asked");
    else if (!facts->quarantine_known)
        finding_add(out, unknown, "not all shards told who is quarantined");
    else
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = "players" },
                    "no player is quarantined");
}

static void judge_audit(const struct doctor_facts *facts, struct findings *out)
{
    static const struct verdict unknown = {
        FINDING_UNKNOWN, "audit", "The coordinator tells it alone: holdfast_audit_imbalance.", NULL
    };

    if (!facts->audit_known)
        finding_add(out, unknown, "whether all goods are accounted for was not told");
    else if (facts->audit_imbalance)
        finding_add(out,
                    (struct verdict){ FINDING_FAIL, "audit",
                                      "Page somebody, and see docs/containment.md.",
                                      "HoldfastAuditImbalance" },
                    "goods were doubled or lost");
    else
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = "audit" },
                    "all goods are accounted for");
}

void doctor_judge(const struct doctor_facts *facts, struct findings *ret_findings)
{
    memset(ret_findings, 0, sizeof *ret_findings);
    for (uint32_t i = 0; i < facts->router_count; i++)
        judge_router(&facts->routers[i], ret_findings);
    if (!facts->cluster_known) {
        finding_add(ret_findings,
                    (struct verdict){ FINDING_UNKNOWN, "cluster",
                                      "Name a router that answers by --endpoint.", NULL },
                    "no router told of the cluster, so nothing else is known");
        return;
    }
    judge_coordinator(facts, ret_findings);
    judge_nodes(facts, ret_findings);
    doctor_judge_processes(facts, ret_findings);
    doctor_judge_etcd(facts, ret_findings);
    doctor_judge_shards(facts, ret_findings);
    judge_quarantine(facts, ret_findings);
    judge_audit(facts, ret_findings);
}
