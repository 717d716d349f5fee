#include "client/cli/top/status_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/console/admin_client.h"
#include "client/cli/console/answer.h"
#include "runtime/base/check.h"

#define VERSIONS_BYTES 96u
#define LABEL_WIDTH    14

static const struct column node_columns[] = {
    { .title = "NODE", .path = "node" },
    { .title = "STATE", .path = "state" },
    { .title = "OWNED", .path = "owned" },
    { .title = "HELD", .path = "held" },
    { .title = "MEMORY", .path = "memory" },
    { .title = "ZONE", .path = "zone" },
    { .title = "VERSION", .path = "version" },
    { .title = "ADDRESS", .path = "address" },
    { .title = NULL },
};
static const struct column shard_columns[] = {
    { .title = "SHARD", .path = "shard" },
    { .title = "OWNER", .path = "owner" },
    { .title = "SERVED", .path = "served" },
    { .title = "PHASE", .path = "phase" },
    { .title = "SESSIONS", .path = "sessions" },
    { .title = "REPLICAS", .path = "replicas" },
    { .title = NULL },
};
static const struct column server_columns[] = {
    { .title = "SERVER", .path = "name" },
    { .title = "INCARNATION", .path = "incarnation" },
    { .title = "STATE", .path = "state" },
    { .title = NULL },
};

/* jansson's loops want a json_t that is not const, and change nothing. */
static json_t *rows_of(const json_t *array)
{
    return (json_t *)(uintptr_t)array;
}

/* ---- nodes ---- */

/* A node without a lease has no name any more: its replica id is what other verbs take. */
static json_t *node_name(const json_t *cluster, uint64_t replica_id)
{
    size_t i;
    json_t *node;

    json_array_foreach(rows_of(json_object_get(cluster, "nodes")), i, node)
    {
        if (answer_number(node, "replicaId") == replica_id && answer_text(node, "name")[0] != 0)
            return json_string(answer_text(node, "name"));
    }
    return json_sprintf("%" PRIu64, replica_id);
}

static const char *node_state(const json_t *node)
{
    if (!json_is_true(json_object_get(node, "live")))
        return "away";
    return answer_number(node, "residentBytes") > 0 ? "up" : "silent";
}

static json_t *node_row(const json_t *cluster, const json_t *node)
{
    char memory[BYTES_TEXT_BYTES];
    json_t *row = json_object();
    bool up = strcmp(node_state(node), "up") == 0;

    json_object_set_new(row, "node", node_name(cluster, answer_number(node, "replicaId")));
    json_object_set_new(row, "state", json_string(node_state(node)));
    json_object_set_new(row, "owned", json_sprintf("%" PRIu64, answer_number(node, "shardsOwned")));
    json_object_set_new(row, "held", json_sprintf("%" PRIu64, answer_number(node, "shardsHeld")));
    json_object_set_new(
        row, "memory",
        json_string(up ? bytes_text(answer_number(node, "residentBytes"), memory) : "-"));
    json_object_set_new(row, "zone", json_string(answer_text(node, "zone")));
    json_object_set_new(row, "version", json_string(answer_text(node, "version")));
    json_object_set_new(row, "address", json_string(answer_text(node, "address")));
    return row;
}

/* ---- shards ---- */

static bool is_well(const json_t *replica)
{
    return strcmp(answer_text(replica, "state"), "ok") == 0;
}

static uint64_t lag_of(const json_t *shard, const json_t *replica)
{
    uint64_t applied = answer_number(replica, "appliedIndex"), committed = 0;
    size_t i;
    json_t *other;

    json_array_foreach(rows_of(json_object_get(shard, "replicas")), i, other)
    {
        uint64_t index = answer_number(other, "commitIndex");
        committed = index > committed ? index : committed;
    }
    return committed > applied ? committed - applied : 0;
}

/* The owner does not serve it, or a replica is not as it should be. */
static bool is_wrong(const json_t *shard)
{
    size_t i;
    json_t *replica;

    if (!json_is_true(json_object_get(shard, "serving")))
        return true;
    json_array_foreach(rows_of(json_object_get(shard, "replicas")), i, replica)
    {
        if (!is_well(replica))
            return true;
    }
    return false;
}

static bool is_changing(const json_t *shard)
{
    const char *phase = answer_text(shard, "phase");

    return phase[0] != 0 && strcmp(phase, "stable") != 0;
}

/* "node-1, node-2 catching_up 205 behind, node-3 unreachable" */
static json_t *replicas_text(const json_t *cluster, const json_t *shard)
{
    struct buf text = { 0 };
    size_t i;
    json_t *replica;

    json_array_foreach(rows_of(json_object_get(shard, "replicas")), i, replica)
    {
        json_t *name = node_name(cluster, answer_number(replica, "replicaId"));
        uint64_t lag = lag_of(shard, replica);

        buf_printf(&text, "%s%s", text.size > 0 ? ", " : "", json_string_value(name));
        if (!is_well(replica))
            buf_printf(&text, " %s", answer_text(replica, "state"));
        if (lag > 0 && strcmp(answer_text(replica, "state"), "unreachable") != 0)
            buf_printf(&text, " %" PRIu64 " behind", lag);
        json_decref(name);
    }
    json_t *value = json_stringn(text.size > 0 ? (const char *)text.data : "", text.size);
    buf_deinit(&text);
    return value;
}

static json_t *shard_row(const json_t *cluster, const json_t *shard)
{
    json_t *row = json_object();
    uint64_t owner = answer_number(shard, "owner");
    bool served = json_is_true(json_object_get(shard, "serving"));

    json_object_set_new(row, "shard", json_sprintf("%" PRIu64, answer_number(shard, "shard")));
    json_object_set_new(row, "owner",
                        owner != 0 ? node_name(cluster, owner) : json_string("(none)"));
    json_object_set_new(row, "served", json_string(served ? "yes" : "NO"));
    json_object_set_new(row, "phase", json_string(answer_text(shard, "phase")));
    json_object_set_new(row, "sessions",
                        json_sprintf("%" PRIu64, answer_number(shard, "sessions")));
    json_object_set_new(row, "replicas", replicas_text(cluster, shard));
    return row;
}

/* ---- the summary ---- */

static void count_replicas(const json_t *shard, struct status_summary *summary)
{
    size_t i;
    json_t *replica;

    json_array_foreach(rows_of(json_object_get(shard, "replicas")), i, replica)
    {
        const char *state = answer_text(replica, "state");
        bool away = strcmp(state, "unreachable") == 0;
        bool behind = strcmp(state, "catching_up") == 0;
        uint64_t lag = away ? 0 : lag_of(shard, replica);

        summary->replicas++;
        summary->replicas_away += away;
        summary->replicas_behind += behind;
        summary->replicas_broken += !away && !behind && !is_well(replica);
        summary->lag_entries = lag > summary->lag_entries ? lag : summary->lag_entries;
    }
}

void status_count(const struct status_answers *answers, struct status_summary *ret_summary)
{
    struct status_summary summary = { .coordinator = answer_text(answers->cluster, "coordinator") };
    size_t i;
    json_t *row;

    json_array_foreach(rows_of(json_object_get(answers->cluster, "nodes")), i, row)
    {
        summary.nodes++;
        summary.nodes_up += strcmp(node_state(row), "up") == 0;
        summary.nodes_silent += strcmp(node_state(row), "silent") == 0;
    }
    summary.shards = (uint32_t)answer_number(answers->cluster, "shardCount");
    json_array_foreach(rows_of(answers->shards), i, row)
    {
        summary.shards_listed++;
        summary.shards_served += json_is_true(json_object_get(row, "serving"));
        summary.shards_changing += is_changing(row);
        summary.sessions += answer_number(row, "sessions");
        count_replicas(row, &summary);
    }
    json_array_foreach(rows_of(answers->servers), i, row)
    {
        summary.servers++;
        summary.servers_expiring += strcmp(answer_text(row, "state"), "expiring") == 0;
    }
    if (summary.servers == 0) {
        summary.sessions_lapsed = summary.sessions;
        summary.sessions = 0;
    }
    CHECK(summary.nodes_up + summary.nodes_silent <= summary.nodes);
    *ret_summary = summary;
}

json_t *status_json(const struct status_summary *summary)
{
    json_t *object = json_object();
    const struct {
        const char *key;
        uint64_t number;
    } rows[] = {
        { "nodes", summary->nodes },
        { "nodesUp", summary->nodes_up },
        { "nodesSilent", summary->nodes_silent },
        { "shards", summary->shards },
        { "shardsServed", summary->shards_served },
        { "shardsChanging", summary->shards_changing },
        { "replicas", summary->replicas },
        { "replicasBehind", summary->replicas_behind },
        { "replicasAway", summary->replicas_away },
        { "replicasBroken", summary->replicas_broken },
        { "lagEntries", summary->lag_entries },
        { "servers", summary->servers },
        { "serversExpiring", summary->servers_expiring },
        { "sessions", summary->sessions },
        { "sessionsLapsed", summary->sessions_lapsed },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        json_object_set_new(object, rows[i].key, json_integer((json_int_t)rows[i].number));
    json_object_set_new(object, "coordinatorElected", json_boolean(summary->coordinator[0] != 0));
    return object;
}

/* "0.1.0", or "0.1.0, 0.2.0" in the middle of an upgrade: each once. */
static void versions_text(const json_t *cluster, char ret_text[VERSIONS_BYTES])
{
    size_t i, k, size = 0;
    json_t *node, *other;

    ret_text[0] = 0;
    json_array_foreach(rows_of(json_object_get(cluster, "nodes")), i, node)
    {
        const char *version = answer_text(node, "version");
        bool told = version[0] == 0;

        json_array_foreach(rows_of(json_object_get(cluster, "nodes")), k, other)
        {
            told = told || (k < i && strcmp(answer_text(other, "version"), version) == 0);
        }
        if (told || size + strlen(version) + 3 > VERSIONS_BYTES)
            continue;
        size += (size_t)snprintf(ret_text + size, VERSIONS_BYTES - size, "%s%s",
                                 size > 0 ? ", " : "", version);
    }
}

static void put_replicas(const struct status_summary *summary, struct buf *out)
{
    uint32_t well = summary->replicas - summary->replicas_behind - summary->replicas_away -
                    summary->replicas_broken;

    buf_printf(out, "%-*s%u of %u up to date; %u behind", LABEL_WIDTH, "replicas", well,
               summary->replicas, summary->replicas_behind);
    if (summary->replicas_away > 0)
        buf_printf(out, ", %u unreachable", summary->replicas_away);
    if (summary->replicas_broken > 0)
        buf_printf(out, ", %u DAMAGED OR QUARANTINED", summary->replicas_broken);
    buf_printf(out, "; largest lag %" PRIu64 " entries\n", summary->lag_entries);
}

static void put_summary(const struct status_answers *answers, const struct status_summary *summary,
                        struct buf *out)
{
    char versions[VERSIONS_BYTES];

    versions_text(answers->cluster, versions);
    buf_printf(out, "%-*s%s\n", LABEL_WIDTH, "cluster", answer_text(answers->cluster, "clusterId"));
    buf_printf(out, "%-*s%s\n", LABEL_WIDTH, "version", versions[0] != 0 ? versions : "(unknown)");
    buf_printf(out, "%-*s%u of %u up", LABEL_WIDTH, "nodes", summary->nodes_up, summary->nodes);
    if (summary->nodes_silent > 0)
        buf_printf(out, ", %u silent (a lease, but no answer)", summary->nodes_silent);
    buf_printf(out, "\n%-*s%u of %u served", LABEL_WIDTH, "shards", summary->shards_served,
               summary->shards);
    if (summary->shards_listed < summary->shards)
        buf_printf(out, "; %u were listed", summary->shards_listed);
    if (summary->shards_changing > 0)
        buf_printf(out, "; %u changing members", summary->shards_changing);
    buf_put_u8(out, '\n');
    put_replicas(summary, out);
    buf_printf(out, "%-*s%s\n", LABEL_WIDTH, "coordinator",
               summary->coordinator[0] != 0 ? summary->coordinator : "NONE IS ELECTED");
    buf_printf(out, "%-*s%u live, %u expiring; %" PRIu64 " sessions", LABEL_WIDTH, "game servers",
               summary->servers - summary->servers_expiring, summary->servers_expiring,
               summary->sessions);
    if (summary->sessions_lapsed > 0)
        buf_printf(out, ", %" PRIu64 " lapsed", summary->sessions_lapsed);
    buf_put_u8(out, '\n');
}

/* ---- the page ---- */

static void put_shards(const struct status_answers *answers, bool every_shard, struct buf *out)
{
    json_t *rows = json_array(), *shard;
    uint32_t picked = 0;
    size_t i;

    json_array_foreach(rows_of(answers->shards), i, shard)
    {
        if (!every_shard && !is_wrong(shard) && !is_changing(shard))
            continue;
        picked++;
        if (every_shard || picked <= STATUS_SHARDS_SHOWN_MAX)
            json_array_append_new(rows, shard_row(answers->cluster, shard));
    }
    if (picked > 0) {
        buf_printf(out, every_shard ? "\n" : "\n%u shard%s to look at:\n", picked,
                   picked > 1 ? "s" : "");
        table_format(rows, shard_columns, out);
    }
    if (!every_shard && picked > STATUS_SHARDS_SHOWN_MAX)
        buf_printf(out, "and %u more: --shards lists all\n", picked - STATUS_SHARDS_SHOWN_MAX);
    json_decref(rows);
}

void status_print(const struct status_answers *answers, bool every_shard, struct buf *out)
{
    uint64_t doubting = answer_number(answers->cluster, "nodesDoubting");
    json_t *rows = json_array(), *node;
    struct status_summary summary;
    size_t i;

    if (doubting > 0)
        buf_printf(out,
                   "ETCD WAS RESTORED FROM A BACKUP: %" PRIu64 " nodes know a newer one. No shard "
                   "moves, and no game server registers, until:\n"
                   "  holdfast admin accept-etcd-restore\n\n",
                   doubting);
    status_count(answers, &summary);
    put_summary(answers, &summary, out);
    json_array_foreach(rows_of(json_object_get(answers->cluster, "nodes")), i, node)
    {
        json_array_append_new(rows, node_row(answers->cluster, node));
    }
    buf_put_u8(out, '\n');
    table_format(rows, node_columns, out);
    put_shards(answers, every_shard, out);
    if (json_array_size(answers->servers) > 0) {
        buf_put_u8(out, '\n');
        table_format(answers->servers, server_columns, out);
    }
    json_decref(rows);
}
