/*
 * What etcd's mirror tells late, again or wrongly (coordinator/core/records.c): the copy is never
 * older than what was told or written before, what cannot be read changes nothing, and a record
 * that must never go is not made again. After an accepted restore every shard goes on above the
 * floor of its epochs.
 */
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/coordinator/pace.h"

#define KEPT_MAX 64u
#define SERVER   1000u

struct kept {
    char key[CLUSTER_KEY_SIZE];
    struct buf value;
    int64_t create_revision, mod_revision;
};

struct mail {
    struct rsim *sim;
    struct pace *p;
    struct kept kept[KEPT_MAX];
    uint32_t count;
};

/* What etcd has now. */
static void keep(struct mail *m)
{
    for (uint32_t i = 0; i < WORLD_KEYS_MAX; i++) {
        const struct world_kv *kv = &m->p->world->kvs[i];

        if (kv->create_revision == 0 || strstr(kv->key, "/election/") != NULL)
            continue;
        CHECK(m->count < KEPT_MAX);
        struct kept *kept = &m->kept[m->count++];

        memcpy(kept->key, kv->key, sizeof kept->key);
        kept->create_revision = kv->create_revision;
        kept->mod_revision = kv->mod_revision;
        buf_append(&kept->value, kv->value.data, kv->value.size);
    }
}

static void tell(struct mail *m, const char *key, struct slice value, int64_t created,
                 int64_t revision)
{
    world_step(m->p->world, (struct coord_event){ .type = COORD_PUT,
                                                  .key = slice_from_text(key),
                                                  .value = value,
                                                  .create_revision = created,
                                                  .mod_revision = revision });
}

/* Much changes: owners, a policy, a server, lives of nodes, wishes. */
static void stir(struct mail *m)
{
    struct world *w = m->p->world;
    struct shard_wish wish = { .member_count = 3, .members = { 1, 2, 4 } };

    world_set_policy(w, 3);
    world_node_down(w, 3);
    pace_run(m->p, 10);
    world_node_up(w, 3, 2);
    world_unwish_node(w, 9);
    world_wish_node(w, 9, NODE_DRAIN);
    world_wish_shard(w, 0, &wish);
    world_server_hold_text(w, SERVER, rsim_chance(m->sim, 50) ? "5" : NULL);
    if (rsim_chance(m->sim, 50))
        world_raise_epochs(w, rsim_between(m->sim, 3, 9));
    pace_run(m->p, 300);
}

/* No write, no call, and nothing that is told of the cluster changes. */
static void unmoved_check(struct mail *m, const struct coord_stats *before, const char *what)
{
    struct coord_stats now;

    pace_run(m->p, 100);
    now = world_stats(m->p->world);
    PROMISE(m->sim, m->p->write_count == 0 && now.transactions == before->transactions,
            "%s, and something is written", what);
    PROMISE(m->sim, m->p->call_count == 0 && now.calls == before->calls, "%s, and a call is made",
            what);
    PROMISE(m->sim,
            now.nodes_live == before->nodes_live && now.nodes_leaving == before->nodes_leaving &&
                now.servers_known == before->servers_known &&
                now.servers_gone == before->servers_gone &&
                now.shards_placed_now == before->shards_placed_now && now.policy_pending == 0 &&
                now.shards_doubted == before->shards_doubted,
            "%s, and what is told of the cluster is another", what);
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        const struct shard_record *known = coord_find_shard(m->p->world->coord, i);

        PROMISE(m->sim, known == NULL || known->epoch == world_shard(m->p->world, i).epoch,
                "%s, and shard %u is known under an earlier epoch", what, i);
    }
}

static void told_late(struct mail *m)
{
    struct coord_stats before = world_stats(m->p->world);
    uint32_t from = (uint32_t)rsim_between(m->sim, 0, m->count - 1);

    pace_clear(m->p);
    for (uint32_t i = 0; i < m->count; i++) {
        const struct kept *kept = &m->kept[(from + i) % m->count];

        if (world_revision_of(m->p->world, slice_from_text(kept->key)) > kept->mod_revision)
            tell(m, kept->key, buf_slice(&kept->value), kept->create_revision, kept->mod_revision);
    }
    unmoved_check(m, &before, "old records come late");
    world_refresh(m->p->world);
    unmoved_check(m, &before, "all records come again");
    PROMISE(m->sim, world_stats(m->p->world).records_malformed == before.records_malformed,
            "a good record is taken for a bad one");
}

static void told_wrongly(struct mail *m)
{
    const struct coord_stats before = world_stats(m->p->world);
    const struct kept *kept = &m->kept[rsim_between(m->sim, 0, m->count - 1)];
    bool live = strstr(kept->key, "/live/") != NULL;

    pace_clear(m->p);
    tell(m, kept->key, slice_from_text("{\"none\":\""), kept->create_revision,
         m->p->world->revision + 1);
    unmoved_check(m, &before, live ? "a bad record of a session comes" : "a bad record comes");
    PROMISE(m->sim, world_stats(m->p->world).records_malformed == before.records_malformed + 1,
            "a bad record of %s is not told", kept->key);
}

/* Of the cluster, the policy, or a shard. */
static void gone_for_good(struct mail *m)
{
    struct coord_stats before = world_stats(m->p->world);
    uint32_t what = (uint32_t)rsim_between(m->sim, 0, 2);
    struct cluster_key key = what == 0   ? cluster_key_cluster(PACE_CLUSTER)
                             : what == 1 ? cluster_key_policy(PACE_CLUSTER)
                                         : cluster_key_shard(PACE_CLUSTER, 5);

    pace_clear(m->p);
    world_step(m->p->world, (struct coord_event){ .type = COORD_DELETED,
                                                  .key = cluster_key_slice(&key),
                                                  .mod_revision = m->p->world->revision + 1 });
    before.shards_placed_now -= what == 2;
    unmoved_check(m, &before, "a record goes that must not");
    PROMISE(m->sim, world_stats(m->p->world).records_malformed == before.records_malformed + 1,
            "a record goes that must not, and it is not told");
    PROMISE(m->sim, what != 2 || coord_find_shard(m->p->world->coord, 5) == NULL,
            "a shard without a record has one");
    PROMISE(m->sim, coord_cluster(m->p->world->coord) != NULL, "the cluster is forgotten");
}

static void late_mail(struct rsim *sim)
{
    struct mail m = { .sim = sim, .p = pace_new(sim) };

    pace_begin(m.p);
    world_node_up(m.p->world, 4, 1);
    world_wish_node(m.p->world, 9, NODE_REMOVE);
    world_server_up(m.p->world, SERVER);
    world_set_policy(m.p->world, 2);
    pace_run(m.p, 10);
    keep(&m);
    stir(&m);
    told_late(&m);
    told_wrongly(&m);
    gone_for_good(&m);
    for (uint32_t i = 0; i < m.count; i++)
        buf_deinit(&m.kept[i].value);
    pace_free(m.p);
}

/* A restore was accepted: epochs go on above the floor, once, under the same owners, in the new
 * generation; and the next one of each shard follows. */
static void floors(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint64_t floor = rsim_between(sim, 1, 5), owners[PACE_SHARDS];

    pace_begin(p);
    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        owners[i] = world_shard(p->world, i).owner;
    world_raise_epochs(p->world, floor);
    pace_run(p, 50);
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        struct shard_record now = world_shard(p->world, i);

        PROMISE(sim, now.epoch == floor + 1 && now.owner == owners[i] && now.generation == 2,
                "shard %u is at epoch %llu, and %llu is the floor", i,
                (unsigned long long)now.epoch, (unsigned long long)floor);
    }
    PROMISE(sim, p->write_count == PACE_SHARDS, "%u writes raise 8 epochs", p->write_count);
    world_node_down(p->world, owners[0]);
    pace_run(p, 5);
    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        PROMISE(sim, world_shard(p->world, i).epoch == floor + (owners[i] == owners[0] ? 2 : 1),
                "shard %u is at epoch %llu", i, (unsigned long long)world_shard(p->world, i).epoch);
    pace_free(p);
}

void room_late(struct rsim *sim)
{
    late_mail(sim);
    floors(sim);
}
