/* etcd as the cluster sees it: linearizable keys with revisions, leases, watches that lag. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/sim.h"

#define KVS_MAX    4096u
#define LEASES_MAX 4096u
#define KNOWN_MAX  512u
#define TICK_MS    40u
#define STALE_MAX  30u /* Changes that a lagging member does not have. */

/* A shard's record, as it was read last: all processes are told it, and look at it again. */
struct etcd_decoded {
    struct buf value;
    struct shard_record record;
};

static bool key_is(const char key[CLUSTER_KEY_SIZE], struct slice slice)
{
    return slice.size < CLUSTER_KEY_SIZE && memcmp(key, slice.data, slice.size) == 0 &&
           key[slice.size] == '\0';
}

static struct etcd_kv *find(const struct sim *sim, struct slice key)
{
    for (uint32_t i = 0; i < sim->etcd.kv_count; i++) {
        if (sim->etcd.kvs[i].create_revision > 0 && key_is(sim->etcd.kvs[i].key, key))
            return &sim->etcd.kvs[i];
    }
    return NULL;
}

const struct etcd_kv *etcd_find(const struct sim *sim, struct slice key)
{
    return find(sim, key);
}

static struct etcd_change *change_new(struct etcd_sim *etcd, const struct etcd_kv *kv)
{
    if (etcd->change_count == etcd->change_capacity) {
        etcd->change_capacity = etcd->change_capacity > 0 ? etcd->change_capacity * 2 : 256;
        etcd->changes = mem_realloc(etcd->changes, sizeof *etcd->changes * etcd->change_capacity);
    }
    struct etcd_change *change = &etcd->changes[etcd->change_count++];
    *change = (struct etcd_change){ .create_revision = kv->create_revision,
                                    .mod_revision = kv->mod_revision };
    buf_append(&change->key, kv->key, strlen(kv->key));
    if (kv->create_revision > 0)
        buf_append(&change->value, kv->value.data, kv->value.size);
    return change;
}

static struct etcd_kv *kv_new(struct etcd_sim *etcd, struct slice key)
{
    if (etcd->kvs == NULL)
        etcd->kvs = mem_alloc(sizeof *etcd->kvs * KVS_MAX);
    uint32_t place = 0;
    while (place < etcd->kv_count && etcd->kvs[place].create_revision > 0)
        place++;
    CHECK(place < KVS_MAX && key.size < CLUSTER_KEY_SIZE);
    struct etcd_kv *kv = &etcd->kvs[place];
    if (place == etcd->kv_count) {
        etcd->kv_count++;
        *kv = (struct etcd_kv){ 0 };
    }
    memcpy(kv->key, key.data, key.size);
    kv->key[key.size] = '\0';
    kv->create_revision = etcd->revision;
    return kv;
}

/* What the record of the cluster says; asked all the time, and changed at a restore alone. */
static void note_generation(struct sim *sim)
{
    struct cluster_key key = cluster_key_cluster(SIM_CLUSTER);
    const struct etcd_kv *kv = find(sim, cluster_key_slice(&key));
    struct cluster_record record;
    bool good = kv != NULL && cluster_record_decode(buf_slice(&kv->value), &record, NULL) == ERR_OK;

    sim->etcd.generation = good ? record.generation : 0;
}

static void note_if_cluster(struct sim *sim, const char *changed)
{
    struct cluster_key key = cluster_key_cluster(SIM_CLUSTER);

    if (strcmp(changed, key.text) == 0)
        note_generation(sim);
}

/* All that one transaction writes has one revision. */
static void raise_revision(struct sim *sim)
{
    if (!sim->etcd.in_txn || !sim->etcd.txn_wrote)
        sim->etcd.revision++;
    sim->etcd.txn_wrote = true;
}

void etcd_txn_begin(struct sim *sim)
{
    CHECK(!sim->etcd.in_txn);
    sim->etcd.in_txn = true;
    sim->etcd.txn_wrote = false;
}

void etcd_txn_end(struct sim *sim)
{
    CHECK(sim->etcd.in_txn);
    sim->etcd.in_txn = false;
}

static void append_ids(const char *what, const uint64_t *ids, uint32_t count, struct buf *out)
{
    if (count > 0)
        buf_printf(out, "%s", what);
    for (uint32_t i = 0; i < count; i++)
        buf_printf(out, " %" PRIu64, ids[i]);
}

/* Who holds a shard from now on is part of a run's story. */
static void say_members(struct sim *sim, struct slice key, struct slice value)
{
    struct cluster_key_parts parts = cluster_key_parse(SIM_CLUSTER, key);
    struct shard_record record;
    struct buf members = { 0 };

    if (parts.kind != CLUSTER_KEY_SHARD || shard_record_decode(value, &record, NULL) != ERR_OK)
        return;
    append_ids(" members", record.members, record.member_count, &members);
    append_ids(" new", record.new_members, record.new_member_count, &members);
    append_ids(" learner", &record.learner, record.learner != 0, &members);
    sim_say(sim, "etcd     s%u epoch %" PRIu64 " owner %" PRIu64 " config %" PRIu64 "%.*s",
            parts.shard, record.epoch, record.owner, record.config, (int)members.size,
            (const char *)members.data);
    buf_deinit(&members);
}

void etcd_put(struct sim *sim, struct slice key, struct slice value, int64_t lease)
{
    struct etcd_kv *kv = find(sim, key);

    say_members(sim, key, value);

    raise_revision(sim);
    if (kv == NULL)
        kv = kv_new(&sim->etcd, key);
    kv->mod_revision = sim->etcd.revision;
    kv->lease = lease;
    buf_clear(&kv->value);
    buf_append(&kv->value, value.data, value.size);
    note_if_cluster(sim, kv->key);
    change_new(&sim->etcd, kv);
    etcd_announce(sim);
}

static void remove_kv(struct sim *sim, struct etcd_kv *kv)
{
    kv->create_revision = 0;
    kv->mod_revision = sim->etcd.revision;
    note_if_cluster(sim, kv->key);
    change_new(&sim->etcd, kv);
    etcd_announce(sim);
}

void etcd_remove(struct sim *sim, struct slice key)
{
    struct etcd_kv *kv = find(sim, key);

    if (kv == NULL)
        return;
    raise_revision(sim);
    remove_kv(sim, kv);
}

/* ---- leases ---- */
static struct etcd_lease *lease_find(struct sim *sim, int64_t id)
{
    for (uint32_t i = 0; i < sim->etcd.lease_count; i++) {
        if (sim->etcd.leases[i].id == id && !sim->etcd.leases[i].gone)
            return &sim->etcd.leases[i];
    }
    return NULL;
}

int64_t etcd_lease_grant(struct sim *sim, uint64_t ttl_ms)
{
    struct etcd_sim *etcd = &sim->etcd;

    if (etcd->leases == NULL)
        etcd->leases = mem_alloc(sizeof *etcd->leases * LEASES_MAX);
    uint32_t place = 0;
    while (place < etcd->lease_count && !etcd->leases[place].gone)
        place++;
    CHECK(place < LEASES_MAX);
    if (place == etcd->lease_count)
        etcd->lease_count++;
    etcd->leases[place] = (struct etcd_lease){
        .id = (int64_t)(sim_between(sim, 1, UINT32_MAX) << 24 | ++sim->sends),
        .ttl_ms = ttl_ms,
        .deadline_ms = sim->now_ms + ttl_ms,
    };
    return etcd->leases[place].id;
}

bool etcd_lease_keep(struct sim *sim, int64_t id)
{
    struct etcd_lease *lease = lease_find(sim, id);

    if (lease == NULL)
        return false;
    lease->deadline_ms = sim->now_ms + lease->ttl_ms;
    return true;
}

void etcd_lease_revoke(struct sim *sim, int64_t id)
{
    struct etcd_lease *lease = lease_find(sim, id);

    if (lease == NULL)
        return;
    lease->gone = true;
    sim->etcd.revision++;
    for (uint32_t i = 0; i < sim->etcd.kv_count; i++) {
        struct etcd_kv *kv = &sim->etcd.kvs[i];
        if (kv->create_revision > 0 && kv->lease == id) {
            sim_say(sim, "etcd     %s is gone with its lease", kv->key);
            remove_kv(sim, kv);
        }
    }
}

void etcd_tick(struct sim *sim)
{
    struct etcd_sim *etcd = &sim->etcd;
    struct sim_event again = { .kind = EV_ETCD_TICK };

    for (uint32_t i = 0; i < etcd->lease_count; i++) {
        struct etcd_lease *lease = &etcd->leases[i];
        /* Nothing lapses while there is no leader; afterwards everybody has a little time. */
        if (etcd->down_until_ms > sim->now_ms && lease->deadline_ms < sim->now_ms + 500)
            lease->deadline_ms = sim->now_ms + 500;
        if (!lease->gone && lease->deadline_ms <= sim->now_ms)
            etcd_lease_revoke(sim, lease->id);
    }
    sim_later(sim, TICK_MS, &again);
}

/* ---- backups ---- */
static struct etcd_kv *kvs_copy(const struct etcd_kv *kvs, uint32_t count)
{
    struct etcd_kv *copy = mem_alloc(sizeof *copy * KVS_MAX);

    for (uint32_t i = 0; i < count; i++) {
        copy[i] = kvs[i];
        copy[i].value = (struct buf){ 0 };
        buf_append(&copy[i].value, kvs[i].value.data, kvs[i].value.size);
    }
    return copy;
}

static void kvs_free(struct etcd_kv *kvs, uint32_t count)
{
    for (uint32_t i = 0; i < count && kvs != NULL; i++)
        buf_deinit(&kvs[i].value);
    free(kvs);
}

static void changes_cut(struct etcd_sim *etcd, uint32_t count)
{
    while (etcd->change_count > count) {
        struct etcd_change *change = &etcd->changes[--etcd->change_count];
        buf_deinit(&change->key);
        buf_deinit(&change->value);
    }
}

static void backup_free(struct etcd_backup *backup)
{
    kvs_free(backup->kvs, backup->kv_count);
    free(backup->leases);
    *backup = (struct etcd_backup){ 0 };
}

void etcd_back_up(struct sim *sim)
{
    struct etcd_sim *etcd = &sim->etcd;

    backup_free(&etcd->backup);
    etcd->backup = (struct etcd_backup){
        .kvs = kvs_copy(etcd->kvs, etcd->kv_count),
        .kv_count = etcd->kv_count,
        .leases = mem_alloc(sizeof *etcd->leases * LEASES_MAX),
        .lease_count = etcd->lease_count,
        .revision = etcd->revision,
        .change_count = etcd->change_count,
    };
    memcpy(etcd->backup.leases, etcd->leases, sizeof *etcd->leases * etcd->lease_count);
}

void etcd_restore(struct sim *sim)
{
    struct etcd_sim *etcd = &sim->etcd;
    struct etcd_backup *backup = &etcd->backup;

    kvs_free(etcd->kvs, etcd->kv_count);
    etcd->kvs = kvs_copy(backup->kvs, backup->kv_count);
    etcd->kv_count = backup->kv_count;
    memcpy(etcd->leases, backup->leases, sizeof *etcd->leases * backup->lease_count);
    etcd->lease_count = backup->lease_count;
    for (uint32_t i = 0; i < etcd->lease_count; i++)
        etcd->leases[i].deadline_ms = sim->now_ms + etcd->leases[i].ttl_ms;
    etcd->revision = backup->revision;
    changes_cut(etcd, backup->change_count);
    note_generation(sim);
    etcd->restores++;
    etcd_announce(sim);
}

uint64_t etcd_generation(const struct sim *sim)
{
    return sim->etcd.generation;
}

err etcd_shard_record(const struct sim *sim, uint32_t shard, const struct buf *value,
                      struct shard_record *ret_record)
{
    CHECK(shard < SIM_SHARDS_MAX);
    struct etcd_decoded *decoded = &sim->etcd.decoded[shard];

    if (decoded->value.size == 0 || !slice_equal(buf_slice(&decoded->value), buf_slice(value))) {
        err e = shard_record_decode(buf_slice(value), &decoded->record, NULL);
        buf_clear(&decoded->value);
        if (e != ERR_OK)
            return e;
        buf_append(&decoded->value, value->data, value->size);
    }
    *ret_record = decoded->record;
    return ERR_OK;
}

static void begin_anew(struct sim *sim, uint32_t proc)
{
    struct etcd_mirror *mirror = &sim->mirrors[proc];

    mirror->rolled_back = false;
    mirror->revision_seen = 0;
    mirror->known_count = 0;
    etcd_mirror_reset(sim, proc);
    if (proc >= PROC_ROUTER)
        router_accepted(sim, proc - PROC_ROUTER);
    else if (proc >= PROC_COORD)
        coord_accepted(sim, proc - PROC_COORD);
    else
        node_get(sim, proc)->lease = 0; /* Its record is to say that it doubts no more. */
}

/* As runtime/etcd/etcd.c and runtime/restore_watch. */
bool etcd_heard(struct sim *sim, uint32_t proc)
{
    struct etcd_mirror *mirror = &sim->mirrors[proc];
    uint64_t generation = etcd_generation(sim);

    if (!mirror->rolled_back && mirror->revision_seen > sim->etcd.revision) {
        mirror->rolled_back = true;
        sim->counts.rollbacks_noticed++;
        sim_say(sim, "process %u knows a newer etcd", proc);
        if (proc >= PROC_COORD && proc < PROC_ROUTER)
            coord_rolled_back(sim, proc - PROC_COORD);
        else if (proc < PROC_COORD)
            node_get(sim, proc)->lease = 0; /* Its record is to say so. */
    }
    if (mirror->restores != sim->etcd.restores) {
        mirror->restores = sim->etcd.restores;
        mirror->fresh = true; /* The watch broke, with the connection. */
    }
    if (generation > mirror->generation && mirror->generation > 0)
        begin_anew(sim, proc); /* Be it that it had not noticed. */
    if (mirror->rolled_back)
        return false;
    mirror->revision_seen = sim->etcd.revision;
    mirror->generation = generation > mirror->generation ? generation : mirror->generation;
    return true;
}

void etcd_seen(struct sim *sim, uint32_t proc, int64_t revision)
{
    if (sim->mirrors[proc].revision_seen < revision)
        sim->mirrors[proc].revision_seen = revision;
    (void)etcd_heard(sim, proc);
}

/* ---- watches ---- */
static bool follows(const struct sim *sim, uint32_t proc)
{
    if (proc >= PROC_NODE && proc < PROC_NODE + sim->node_count)
        return true;
    if (proc >= PROC_COORD && proc < PROC_COORD + sim->coord_count)
        return true;
    return proc >= PROC_ROUTER && proc < PROC_ROUTER + sim->router_count;
}

void etcd_announce(struct sim *sim)
{
    for (uint32_t proc = 0; proc < PROCS; proc++) {
        struct etcd_mirror *mirror = &sim->mirrors[proc];
        if (!follows(sim, proc) || mirror->awaiting)
            continue;
        mirror->awaiting = true;
        sim_later(sim, sim_between(sim, 1, sim->delay_ms_max / 2 + 2),
                  &(struct sim_event){ .kind = EV_MIRROR, .node = proc });
    }
}

static void tell(struct sim *sim, uint32_t proc, const struct etcd_change *change)
{
    if (proc >= PROC_ROUTER)
        router_changed(sim, proc - PROC_ROUTER, change);
    else if (proc >= PROC_COORD)
        coord_changed(sim, proc - PROC_COORD, change);
    else
        node_changed(sim, node_get(sim, proc), change);
}

static struct etcd_known *known_find(const struct etcd_mirror *mirror, struct slice key)
{
    for (uint32_t i = 0; i < mirror->known_count; i++) {
        if (key_is(mirror->known[i].key, key))
            return &mirror->known[i];
    }
    return NULL;
}

/* As runtime/etcd/etcd_mirror.c: what is older than what was told is passed over. */
static void pass_on(struct sim *sim, uint32_t proc, const struct etcd_change *change)
{
    struct etcd_mirror *mirror = &sim->mirrors[proc];
    struct slice key = buf_slice(&change->key);
    struct etcd_known *known = known_find(mirror, key);

    if (known != NULL && known->revision > change->mod_revision)
        return;
    if (mirror->known == NULL)
        mirror->known = mem_alloc(sizeof *mirror->known * KNOWN_MAX);
    if (known == NULL) {
        CHECK(mirror->known_count < KNOWN_MAX);
        known = &mirror->known[mirror->known_count++];
        memcpy(known->key, key.data, key.size);
        known->key[key.size] = '\0';
    }
    known->revision = change->mod_revision;
    known->gone = change->create_revision == 0;
    tell(sim, proc, change);
}

/* The change that says what a key was after the first `count` changes; NULL: it never was. */
static const struct etcd_change *change_of(const struct etcd_sim *etcd, struct slice key,
                                           uint32_t count)
{
    while (count > 0) {
        const struct etcd_change *change = &etcd->changes[--count];
        if (slice_equal(buf_slice(&change->key), key))
            return change;
    }
    return NULL;
}

static void forget_gone(struct etcd_mirror *mirror)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < mirror->known_count; i++) {
        if (!mirror->known[i].gone)
            mirror->known[kept++] = mirror->known[i];
    }
    mirror->known_count = kept;
}

/* What it knows and does not find in a range as of the first `count` changes is gone. */
static void sweep(struct sim *sim, uint32_t proc, uint32_t count)
{
    struct etcd_mirror *mirror = &sim->mirrors[proc];
    int64_t revision = count > 0 ? sim->etcd.changes[count - 1].mod_revision : 0;

    for (uint32_t i = mirror->known_count; i > 0; i--) {
        const struct etcd_known *known = &mirror->known[i - 1];
        struct slice key = slice_from_text(known->key);
        const struct etcd_change *change = change_of(&sim->etcd, key, count);
        if (known->gone || known->revision > revision ||
            (change != NULL && change->create_revision > 0))
            continue;
        struct etcd_change gone = { .mod_revision = revision };
        buf_append(&gone.key, key.data, key.size);
        pass_on(sim, proc, &gone);
        buf_deinit(&gone.key);
    }
}

/* How much of what happened a range shows: of a member that lags, less than all. */
static uint32_t range_count(struct sim *sim, uint32_t proc)
{
    uint32_t count = sim->etcd.change_count;

    if (sim->healing || proc >= PROC_ROUTER + SIM_ROUTERS_MAX || count == 0 ||
        sim_without(sim, WITHOUT_stale_reads) || !sim_chance(sim, 250))
        return count;
    uint32_t less = (uint32_t)sim_between(sim, 1, count < STALE_MAX ? count : STALE_MAX);
    sim->counts.stale_reads++;
    return count - less;
}

/* Reads everything: what it did not hear of is told as if it had just happened. */
static void read_all(struct sim *sim, uint32_t proc)
{
    struct etcd_mirror *mirror = &sim->mirrors[proc];
    uint32_t count = range_count(sim, proc);

    sweep(sim, proc, count);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < sim->etcd.kv_count; i++) {
            struct slice key = slice_from_text(sim->etcd.kvs[i].key);
            bool cluster = strstr(sim->etcd.kvs[i].key, "/cluster") != NULL;
            if (cluster != (pass == 0))
                continue;
            const struct etcd_change *change = change_of(&sim->etcd, key, count);
            if (change == NULL || change->create_revision == 0)
                continue;
            struct etcd_change told = *change;
            pass_on(sim, proc, &told);
        }
    }
    if (count == sim->etcd.change_count)
        forget_gone(mirror);
    mirror->fresh = false;
    mirror->cursor = count;
    if (count < sim->etcd.change_count && !mirror->awaiting) {
        mirror->awaiting = true;
        sim_later(sim, sim_between(sim, 1, 400),
                  &(struct sim_event){ .kind = EV_MIRROR, .node = proc });
    }
    if (proc >= PROC_COORD && proc < PROC_ROUTER)
        coord_synced(sim, proc - PROC_COORD);
}

void etcd_mirror_deliver(struct sim *sim, uint32_t proc)
{
    struct etcd_mirror *mirror = &sim->mirrors[proc];

    mirror->awaiting = false;
    if (!net_etcd_reachable(sim, proc) || mirror->held_until_ms > sim->now_ms) {
        mirror->awaiting = true;
        sim_later(sim, 50, &(struct sim_event){ .kind = EV_MIRROR, .node = proc });
        return;
    }
    if (!etcd_heard(sim, proc))
        return;
    if (mirror->fresh) {
        read_all(sim, proc);
        return;
    }
    while (mirror->cursor < sim->etcd.change_count) {
        struct etcd_change change = sim->etcd.changes[mirror->cursor++];
        pass_on(sim, proc, &change);
    }
    if (mirror->known_count > KNOWN_MAX / 2)
        forget_gone(mirror);
}

void etcd_mirror_reset(struct sim *sim, uint32_t proc)
{
    struct etcd_mirror *mirror = &sim->mirrors[proc];

    mirror->fresh = true;
    if (mirror->awaiting)
        return;
    mirror->awaiting = true;
    sim_later(sim, sim_between(sim, 1, 20), &(struct sim_event){ .kind = EV_MIRROR, .node = proc });
}

void etcd_mirror_forget(struct sim *sim, uint32_t proc)
{
    sim->mirrors[proc].known_count = 0;
    sim->mirrors[proc].revision_seen = 0;
    sim->mirrors[proc].generation = 0;
    sim->mirrors[proc].rolled_back = false;
    etcd_mirror_reset(sim, proc);
}

void etcd_init(struct sim *sim)
{
    sim->etcd.revision = 10;
    sim->etcd.decoded = mem_zalloc(sizeof *sim->etcd.decoded * SIM_SHARDS_MAX);
}

void etcd_deinit(struct sim *sim)
{
    kvs_free(sim->etcd.kvs, sim->etcd.kv_count);
    backup_free(&sim->etcd.backup);
    changes_cut(&sim->etcd, 0);
    for (uint32_t i = 0; i < PROCS; i++)
        free(sim->mirrors[i].known);
    for (uint32_t i = 0; i < SIM_SHARDS_MAX; i++)
        buf_deinit(&sim->etcd.decoded[i].value);
    free(sim->etcd.decoded);
    free(sim->etcd.changes);
    free(sim->etcd.leases);
}
