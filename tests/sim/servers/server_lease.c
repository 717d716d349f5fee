/* Registrations of game servers, as routers keep them in etcd: router/rpc/servers/servers.h. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/sim.h"

#define LEASE_TTL_MS 3000u

/* What one (re)registration writes, decided when it is sent. */
struct attachment {
    uint64_t life;
    struct incarnation incarnation;
    int64_t lease;
    int64_t known_revision; /* 0: a first registration. */
};

static void record_encode(uint32_t place, int64_t lease, enum server_state state, struct buf *out)
{
    struct server_record record = { .ttl_ms = 5000, .state = state, .lease_id = lease };

    snprintf(record.name, sizeof record.name, "server-%u", place);
    server_record_encode(&record, out);
}

static bool is_live(const struct etcd_kv *known)
{
    struct server_record record;

    CHECK(server_record_decode(buf_slice(&known->value), &record, NULL) == ERR_OK);
    return record.state == SERVER_LIVE;
}

/* The transaction reaches etcd soon, or late; asked twice, it recognises itself. */
static void send(struct sim *sim, uint32_t place, const struct attachment *attachment)
{
    struct sim_event event = { .kind = EV_ATTACH, .node = PROC_ETCD, .number = place };
    uint32_t copies = !sim->healing && sim_chance(sim, 100) ? 2 : 1;

    for (uint32_t i = 0; i < copies; i++) {
        uint64_t delay_ms = sim_between(sim, 1, 15);
        if (copies > 1 && sim_chance(sim, 500)) {
            delay_ms = sim_between(sim, 500, 4000);
            sim->counts.late_txns++;
        }
        event.bytes = (struct buf){ 0 };
        buf_append(&event.bytes, attachment, sizeof *attachment);
        sim_later(sim, delay_ms, &event);
    }
    sim->servers[place].attaching = true;
}

static void begin(struct sim *sim, uint32_t place)
{
    struct cluster_key key = cluster_key_server_sequence(SIM_CLUSTER);
    struct attachment attachment;

    if (sim->mirrors[PROC_ROUTER].rolled_back || restore_is_doubted(sim))
        return; /* No router registers anybody. */
    memset(&attachment, 0, sizeof attachment);
    attachment.life = sim->servers[place].life;
    attachment.lease = etcd_lease_grant(sim, LEASE_TTL_MS);
    etcd_put(sim, cluster_key_slice(&key), SLICE_LITERAL("server"), 0);
    uint64_t generation = etcd_generation(sim);

    attachment.incarnation =
        (struct incarnation){ generation > 0 ? generation : 1, (uint64_t)sim->etcd.revision };
    send(sim, place, &attachment);
}

static void forget(struct sim *sim, uint32_t place)
{
    struct sim_server *server = &sim->servers[place];

    sim_say(sim, "server %u is told that it has expired", place);
    server->registered = false;
    for (uint32_t i = 0; i < SIM_PLAYERS_MAX; i++)
        server->held[i].held = false;
}

static void keep(struct sim *sim, uint32_t place)
{
    struct sim_server *server = &sim->servers[place];
    struct cluster_key key = cluster_key_server_known(SIM_CLUSTER, server->incarnation);
    struct attachment attachment;

    if (etcd_lease_keep(sim, server->lease))
        return;
    const struct etcd_kv *known = etcd_find(sim, cluster_key_slice(&key));
    if (known == NULL || !is_live(known)) {
        forget(sim, place);
        return;
    }
    memset(&attachment, 0, sizeof attachment);
    attachment.life = server->life;
    attachment.incarnation = server->incarnation;
    attachment.lease = etcd_lease_grant(sim, LEASE_TTL_MS);
    attachment.known_revision = known->mod_revision;
    send(sim, place, &attachment);
}

void server_renew(struct sim *sim, uint32_t place)
{
    struct sim_server *server = &sim->servers[place];

    /* Its heartbeats go through some router, which may not reach etcd. */
    if (server->attaching ||
        !net_etcd_reachable(sim,
                            PROC_ROUTER + (uint32_t)sim_between(sim, 0, sim->router_count - 1)))
        return;
    if (server->registered)
        keep(sim, place);
    else
        begin(sim, place);
}

static bool carry_out(struct sim *sim, uint32_t place, const struct attachment *attachment)
{
    struct cluster_key live = cluster_key_server_live(SIM_CLUSTER, attachment->incarnation);
    struct cluster_key known = cluster_key_server_known(SIM_CLUSTER, attachment->incarnation);
    const struct etcd_kv *there = etcd_find(sim, cluster_key_slice(&known));
    struct buf value = { 0 };

    if (attachment->known_revision != 0
            ? there == NULL || there->mod_revision != attachment->known_revision
            : there != NULL) {
        struct server_record record;
        return there != NULL &&
               server_record_decode(buf_slice(&there->value), &record, NULL) == ERR_OK &&
               record.lease_id == attachment->lease && record.state == SERVER_LIVE;
    }
    if (!etcd_lease_keep(sim, attachment->lease))
        return false;
    sim->counts.reattached += attachment->known_revision != 0;
    record_encode(place, attachment->lease, SERVER_LIVE, &value);
    etcd_txn_begin(sim);
    etcd_put(sim, cluster_key_slice(&live), buf_slice(&value), attachment->lease);
    etcd_put(sim, cluster_key_slice(&known), buf_slice(&value), 0);
    etcd_txn_end(sim);
    buf_deinit(&value);
    return true;
}

void server_attach(struct sim *sim, struct sim_event *event)
{
    uint32_t place = (uint32_t)event->number;
    struct sim_server *server = &sim->servers[place];
    struct attachment attachment;

    memcpy(&attachment, event->bytes.data, sizeof attachment);
    bool done = carry_out(sim, place, &attachment);
    if (server->life != attachment.life || !server->attaching)
        return;
    server->attaching = false;
    if (!done)
        return;
    server->lease = attachment.lease;
    server->incarnation = attachment.incarnation;
    if (!server->registered)
        memset(server->held, 0, sizeof server->held); /* Those of an earlier registration. */
    if (!server->registered)
        sim_say(sim, "server %u is registered as 1-%llu", place,
                (unsigned long long)attachment.incarnation.revision);
    server->registered = true;
}
