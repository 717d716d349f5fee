#include <stdio.h>

#include "client/cli/doctor/doctor_checks.h"

#define SHARDS_NAMED_MAX DOCTOR_NAMED_MAX

/* Those of a kind: "shard 3", "shards 3, 7 and 12 more". */
struct shard_names {
    char text[96];
    uint32_t count;
};

static void name_shard(struct shard_names *names, uint32_t shard)
{
    size_t size = 0;

    while (names->text[size] != 0)
        size++;
    if (names->count++ < SHARDS_NAMED_MAX)
        snprintf(names->text + size, sizeof names->text - size, "%s%u", size > 0 ? ", " : "",
                 shard);
}

static void add_shards(struct findings *out, struct verdict verdict,
                       const struct shard_names *names, const char *what)
{
    if (names->count > SHARDS_NAMED_MAX)
        finding_add(out, verdict, "%s: shards %s and %u more", what, names->text,
                    names->count - SHARDS_NAMED_MAX);
    else if (names->count > 0)
        finding_add(out, verdict, "%s: shard%s %s", what, names->count > 1 ? "s" : "", names->text);
}

static void judge_served(const struct doctor_facts *facts, struct findings *out)
{
    struct shard_names unowned = { 0 }, halves = { 0 }, waiting = { 0 }, unfit = { 0 },
                       wanting = { 0 };

    for (uint32_t i = 0; i < facts->shards_listed; i++) {
        const struct shard_facts *shard = &facts->shards[i];
        if (shard->serving)
            continue;
        if (shard->owner == 0)
            name_shard(&unowned, shard->shard);
        else if ((shard->members - shard->unreachable) * 2 <= shard->members)
            name_shard(&halves, shard->shard);
        else if (shard->rows_wanting > 0)
            name_shard(&wanting, shard->shard);
        else if (shard->quarantined > 0 &&
                 shard->quarantined + shard->unreachable == shard->members)
            name_shard(&unfit, shard->shard);
        else
            name_shard(&waiting, shard->shard);
    }
    add_shards(out,
               (struct verdict){ FINDING_FAIL, "shards", "See whether a coordinator is elected.",
                                 "HoldfastShardsUnserved" },
               &unowned, "without an owner");
    add_shards(out,
               (struct verdict){ FINDING_FAIL, "shards",
                                 "Start nodes again until a majority is back: nothing else helps.",
                                 "HoldfastShardsUnserved" },
               &halves, "not served, and without a majority of their replicas");
    add_shards(out,
               (struct verdict){ FINDING_FAIL, "shards",
                                 "Start the nodes of the other members: one that is quarantined "
                                 "never owns a shard.",
                                 "HoldfastReplicaQuarantined" },
               &unfit, "not served, since all members that are up are quarantined");
    add_shards(out,
               (struct verdict){ FINDING_FAIL, "shards",
                                 "Start the nodes of the other members: one that is quarantined "
                                 "gives no rows.",
                                 "HoldfastReplicaQuarantined" },
               &wanting, "not served, since only quarantined members have the rows");
    add_shards(out,
               (struct verdict){ FINDING_FAIL, "shards",
                                 "A failover takes a second or two: run it again.",
                                 "HoldfastShardsUnserved" },
               &waiting, "not served");
    if (facts->shards_listed < facts->shard_count)
        finding_add(out, (struct verdict){ FINDING_UNKNOWN, "shards", "Run it again.", NULL },
                    "%u of %u were listed", facts->shards_listed, facts->shard_count);
    else if (unowned.count + halves.count + waiting.count + unfit.count + wanting.count == 0)
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = "shards" },
                    "all %u are served", facts->shard_count);
}

/* Nodes' replicas that serve nothing. */
static uint32_t judge_broken(const struct doctor_facts *facts, struct findings *out)
{
    uint32_t broken = 0;

    for (uint32_t i = 0; i < facts->process_count; i++) {
        const struct process_facts *node = &facts->processes[i];
        broken += node->damaged + node->quarantined;
        if (node->damaged > 0)
            finding_add(out,
                        (struct verdict){ FINDING_FAIL, "replicas",
                                          "Its disk lost or changed bytes. They are repaired from "
                                          "the others by themselves, while all of those are up.",
                                          "HoldfastReplicaDamaged" },
                        "%s has %u that are damaged", node->name, node->damaged);
        if (node->quarantined > 0)
            finding_add(out,
                        (struct verdict){ FINDING_FAIL, "replicas",
                                          "Keep a copy of its volume, to find the cause; then "
                                          "holdfast replica rebuild SHARD NODE.",
                                          "HoldfastReplicaQuarantined" },
                        "%s has %u that differ from a majority", node->name, node->quarantined);
    }
    return broken;
}

static void judge_replicas(const struct doctor_facts *facts, struct findings *out)
{
    struct shard_names thin = { 0 }, behind = { 0 }, diverged = { 0 };
    uint32_t broken = judge_broken(facts, out);

    for (uint32_t i = 0; i < facts->shards_listed; i++) {
        const struct shard_facts *shard = &facts->shards[i];
        if (shard->diverged)
            name_shard(&diverged, shard->shard);
        if (shard->owner == 0)
            continue;
        if (shard->unreachable > 0 || shard->members < facts->replication_factor)
            name_shard(&thin, shard->shard);
        else if (shard->catching_up > 0)
            name_shard(&behind, shard->shard);
    }
    add_shards(out,
               (struct verdict){ FINDING_FAIL, "replicas",
                                 "Page somebody: replicas computed different outcomes.",
                                 "HoldfastReplicaDivergence" },
               &diverged, "outcomes differ");
    add_shards(out,
               (struct verdict){ FINDING_WARN, "replicas",
                                 "Bring back the node, or start one more.", "HoldfastNodeMissing" },
               &thin, "fewer than there should be");
    add_shards(out,
               (struct verdict){ FINDING_WARN, "replicas",
                                 "Wait: restart no other node until it is done.",
                                 "HoldfastApplyBehind" },
               &behind, "catching up");
    if (broken + thin.count + behind.count + diverged.count == 0 &&
        facts->shards_listed == facts->shard_count)
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = "replicas" },
                    "every shard has %u that are up to date", facts->replication_factor);
}

static bool is_live(const struct doctor_facts *facts, uint64_t replica_id)
{
    const struct process_facts *node = doctor_find_node(facts, replica_id);

    return node != NULL && node->live;
}

static void add_pair(const struct doctor_facts *facts, const struct pair_facts *pair,
                     struct findings *out)
{
    struct shard_names names = { 0 };
    char more[32] = "";

    for (uint32_t i = 0; i < pair->shard_count && i < DOCTOR_NAMED_MAX; i++)
        name_shard(&names, pair->shards[i]);
    if (pair->shard_count > DOCTOR_NAMED_MAX)
        snprintf(more, sizeof more, " and %u more", pair->shard_count - DOCTOR_NAMED_MAX);
    finding_add(
        out,
        (struct verdict){ FINDING_WARN, "replication",
                          "See the link between the two, and the second one's disk; wait "
                          "if it gets a snapshot.",
                          "HoldfastReplicationStalled" },
        "%s -> %s: nothing acknowledged for %llu s, %llu entries behind: shard%s %s%s",
        doctor_find_node(facts, pair->owner)->name, doctor_find_node(facts, pair->member)->name,
        (unsigned long long)(pair->stalled_ms / 1000), (unsigned long long)pair->lag_entries,
        pair->shard_count > 1 ? "s" : "", names.text, more);
}

/* A link that is up says nothing: only what came back does. Who is away is named as a node. */
static void judge_replication(const struct doctor_facts *facts, struct findings *out)
{
    uint32_t stalled = 0;

    for (uint32_t i = 0; i < facts->pair_count; i++) {
        const struct pair_facts *pair = &facts->pairs[i];

        if (!is_live(facts, pair->owner) || !is_live(facts, pair->member))
            continue;
        stalled++;
        add_pair(facts, pair, out);
    }
    if (facts->pairs_unknown > 0)
        finding_add(out,
                    (struct verdict){ FINDING_UNKNOWN, "replication",
                                      "Upgrade all nodes and routers, or run it again.", NULL },
                    "owners do not say of %u replicas what they acknowledged",
                    facts->pairs_unknown);
    else if (stalled == 0 && facts->shards_listed == facts->shard_count)
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = "replication" },
                    "every live node acknowledges what owners send it");
}

static void judge_learners(const struct doctor_facts *facts, struct findings *out)
{
    struct shard_names stuck = { 0 };
    uint32_t learning = 0;

    for (uint32_t i = 0; i < facts->shards_listed; i++) {
        if (facts->shards[i].learner == 0)
            continue;
        learning++;
        if (!is_live(facts, facts->shards[i].learner))
            name_shard(&stuck, facts->shards[i].shard);
    }
    add_shards(out,
               (struct verdict){ FINDING_WARN, "learners",
                                 "Start the node that is to hold them, or move them to another.",
                                 "HoldfastNodeMissing" },
               &stuck, "the node that is to catch up is away");
    if (stuck.count == 0 && facts->shards_listed == facts->shard_count)
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = "learners" },
                    "%u shards get another member, none waits for a node that is away", learning);
}

static void judge_transfers(const struct doctor_facts *facts, struct findings *out)
{
    uint64_t open = 0, oldest_ms = 0;
    struct shard_names stuck = { 0 };

    for (uint32_t i = 0; i < facts->shards_listed; i++) {
        const struct shard_facts *shard = &facts->shards[i];
        open += shard->transfers_open;
        if (shard->transfers_oldest_ms > oldest_ms)
            oldest_ms = shard->transfers_oldest_ms;
        if (shard->transfers_oldest_ms > TRANSFER_WARN_MS)
            name_shard(&stuck, shard->shard);
    }
    add_shards(out,
               (struct verdict){ FINDING_WARN, "transfers",
                                 "See holdfast transfers, and whether their destination is served.",
                                 "HoldfastTransfersStuck" },
               &stuck, "on their way for more than 10 s, from");
    if (stuck.count == 0 && facts->shards_listed == facts->shard_count)
        finding_add(out, (struct verdict){ .level = FINDING_OK, .check = "transfers" },
                    "%llu on their way, the oldest for %llu ms", (unsigned long long)open,
                    (unsigned long long)oldest_ms);
}

void doctor_judge_shards(const struct doctor_facts *facts, struct findings *findings)
{
    if (!facts->shards_known) {
        finding_add(findings, (struct verdict){ FINDING_UNKNOWN, "shards", "Run it again.", NULL },
                    "the router did not list them");
        return;
    }
    judge_served(facts, findings);
    judge_replicas(facts, findings);
    judge_replication(facts, findings);
    judge_learners(facts, findings);
    judge_transfers(facts, findings);
}
