/* What goes wrong, and what operators do meanwhile. */
#include "node/core/mergeable/members.h"
#include "runtime/base/check.h"
#include "tests/sim/mergeable/msim.h"

static struct node *any_node(struct msim *sim)
{
    return &sim->nodes[msim_between(sim, 0, NODES - 1)];
}

static void cut(struct msim *sim)
{
    for (uint32_t i = 0; i < NODES; i++)
        sim->nodes[i].side = (uint32_t)msim_between(sim, 0, msim_chance(sim, 300) ? 4 : 1);
    sim->counts->cuts++;
}

/* Between two, or one way: what one of them writes comes to the other by third members alone. */
static void deafen(struct msim *sim)
{
    uint32_t a = (uint32_t)msim_between(sim, 0, NODES - 1);
    uint32_t b = (uint32_t)msim_between(sim, 0, NODES - 1);

    sim->nodes[a].deaf |= 1u << b;
    if (msim_chance(sim, 500))
        sim->nodes[b].deaf |= 1u << a;
    sim->counts->deafened++;
}

/* So far that its peers were not heard lately: it cannot tell that its clock is off, and writes. */
static void leap(struct msim *sim)
{
    struct node *node = any_node(sim);

    node->leap_ms = msim_between(sim, 8000, 14000);
    node->leaps_until_ms = sim->now_ms + msim_between(sim, 100, 2000);
    sim->counts->leaps++;
}

static void mend(struct msim *sim)
{
    for (uint32_t i = 0; i < NODES; i++)
        sim->nodes[i].side = sim->nodes[i].deaf = 0;
}

/* It takes everything in, or would again after a crash: the end of that is not on its disk yet. */
static bool lacks_what_it_had(struct msim *sim, struct node *node)
{
    if (!node->disk.exists || node->syncing)
        return node->disk.exists;
    struct merge_replica *replica = msim_recover(sim, node);
    bool syncing = replica->syncing;

    merge_free(replica);
    return syncing;
}

/* In most stories there is but one old member at a time without all that it acknowledged. */
static bool may_lose(struct msim *sim, const struct node *node)
{
    const struct membership *m = &sim->members.membership;

    if (m->count < 3)
        return false;
    for (uint32_t i = 0; i < NODES; i++) {
        struct node *other = &sim->nodes[i];

        if (other != node && !sim->loses_many && lacks_what_it_had(sim, other))
            return false;
    }
    return true;
}

static void lose_disk(struct msim *sim, struct node *node)
{
    oracle_loss(sim, node, UINT32_MAX);
    if (node->image.exists && msim_chance(sim, 600)) {
        disk_copy(&node->disk, &node->image);
        sim->counts->images++;
    } else {
        disk_deinit(&node->disk);
        sim->counts->disks_lost++;
    }
    msim_start(sim, node, false);
}

static void rot(struct msim *sim, struct node *node)
{
    struct disk *disk = &node->disk;

    if (disk->row_count == 0)
        return;
    struct disk_row *row = &disk->rows[msim_between(sim, 0, disk->row_count - 1)];
    uint32_t key = UINT32_MAX;

    for (uint32_t i = 0; i < KEYS; i++)
        if (merge_key_compare(sim->keys[i], row->key) == 0)
            key = i;
    /* With a short index a delete of another record may be forgotten with the clock. */
    oracle_loss(sim, node, sim->index_max < 1000 ? UINT32_MAX : key);
    row->bytes.data[0] ^= 0x55;
    msim_start(sim, node, true);
}

static void crash(struct msim *sim)
{
    struct node *node = any_node(sim);

    if (node->replica == NULL)
        return;
    msim_crash(sim, node);
    sim->counts->crashes++;
    if (may_lose(sim, node) && msim_chance(sim, 250))
        lose_disk(sim, node);
    else if (may_lose(sim, node) && msim_chance(sim, 300))
        rot(sim, node);
    else if (msim_chance(sim, 500))
        msim_start(sim, node, true);
    else
        node->up_at_ms = sim->now_ms + msim_between(sim, 100, 15000);
}

/* All at once: what no disk has yet is gone, wherever it was. */
static void power_cut(struct msim *sim)
{
    for (uint32_t i = 0; i < NODES; i++) {
        struct node *node = &sim->nodes[i];

        if (node->replica == NULL || msim_chance(sim, 200))
            continue;
        msim_crash(sim, node);
        node->up_at_ms = sim->now_ms + msim_between(sim, 100, 3000);
    }
    sim->counts->power_cuts++;
}

static void come_back(struct msim *sim)
{
    for (uint32_t i = 0; i < NODES; i++) {
        struct node *node = &sim->nodes[i];

        if (node->replica == NULL && node->disk.exists && node->up_at_ms <= sim->now_ms)
            msim_start(sim, node, true);
    }
}

/* ---- members ---- */

static bool add_strict(struct msim *sim, const struct strict *strict)
{
    if (sim->strict_count == STRICT_MAX)
        return false;
    sim->strict[sim->strict_count++] = *strict;
    if (!strict->is_erasure)
        sim->members = strict->members;
    return true;
}

/* One member for another, one more or one less. */
static void begin_change(struct msim *sim)
{
    struct strict strict = { .members = sim->members };
    struct membership *m = &strict.members.membership;
    uint64_t leaves = m->members[msim_between(sim, 0, m->count - 1)];
    uint64_t comes = msim_between(sim, 1, NODES);
    bool less = m->count > 3 && msim_chance(sim, 500);
    bool more = !less && m->count < 5 && msim_chance(sim, 300);

    if (m->new_count > 0 || sim->members.departing_count > 0 ||
        (!less && (membership_has(m, comes) || msim_node(sim, comes)->disk.exists)))
        return;
    for (uint64_t id = 1; id <= NODES; id++)
        if ((membership_has(m, id) && (more || id != leaves)) || (!less && id == comes))
            m->new_members[m->new_count++] = id;
    m->config++;
    if (!add_strict(sim, &strict))
        return;
    sim->counts->joints++;
    if (!less) {
        struct node *node = msim_node(sim, comes);

        msim_start(sim, node, false);
    }
}

static void end_change(struct msim *sim)
{
    struct strict strict = { .members = sim->members };
    struct membership *m = &strict.members.membership;
    bool may = false;

    /* Any member of a majority's side may own the shard, and judge. */
    for (uint32_t i = 0; i < m->count; i++) {
        const struct node *node = msim_node(sim, m->members[i]);

        may |= node->replica != NULL && merge_may_leave(node->replica) &&
               node->replica->members.membership.config == m->config;
    }
    if (m->new_count == 0 || !may)
        return;
    for (uint32_t i = 0; i < m->count; i++) {
        bool stays = false;

        for (uint32_t j = 0; j < m->new_count; j++)
            stays |= m->new_members[j] == m->members[i];
        if (!stays)
            strict.members.departing[strict.members.departing_count++] = m->members[i];
    }
    m->count = m->new_count;
    for (uint32_t i = 0; i < m->count; i++)
        m->members[i] = m->new_members[i];
    m->new_count = 0;
    m->config++;
    sim->counts->left += add_strict(sim, &strict);
}

static void depart(struct msim *sim)
{
    struct strict strict = { .members = sim->members };

    if (sim->members.departing_count == 0)
        return;
    struct node *node = msim_node(sim, sim->members.departing[0]);

    if (node->replica == NULL || !merge_may_delete(node->replica) ||
        node->replica->members.membership.config < sim->members.membership.config)
        return;
    msim_crash(sim, node);
    disk_deinit(&node->disk);
    disk_deinit(&node->image);
    node->syncing = false;
    strict.members.departing_count = 0;
    CHECK(add_strict(sim, &strict));
    sim->counts->departed++;
}

void msim_members(struct msim *sim)
{
    if (sim->strict_count + 2 >= STRICT_MAX)
        return;
    end_change(sim);
    depart(sim);
    if (sim->healing)
        come_back(sim);
}

static void erase(struct msim *sim)
{
    struct strict strict = { .is_erasure = true, .entity = (uint32_t)msim_between(sim, 0, 3) };

    strict.number = sim->erasures[strict.entity] + 1;
    if (sim->strict_count + 8 < STRICT_MAX && add_strict(sim, &strict)) {
        sim->erasures[strict.entity]++;
        sim->counts->erasures++;
    }
}

static void take_image(struct msim *sim)
{
    struct node *node = any_node(sim);

    if (node->disk.exists)
        disk_copy(&node->image, &node->disk);
}

void msim_trouble(struct msim *sim)
{
    come_back(sim);
    if (msim_chance(sim, 6))
        cut(sim);
    if (msim_chance(sim, 6))
        deafen(sim);
    if (sim->leaps && msim_chance(sim, 3))
        leap(sim);
    if (msim_chance(sim, 4))
        mend(sim);
    if (msim_chance(sim, 8))
        crash(sim);
    if (msim_chance(sim, 2))
        power_cut(sim);
    if (msim_chance(sim, 8))
        take_image(sim);
    if (msim_chance(sim, 5))
        begin_change(sim);
    if (msim_chance(sim, 2))
        erase(sim);
}

void msim_heal(struct msim *sim)
{
    sim->healing = true;
    mend(sim);
    for (uint32_t i = 0; i < NODES; i++) {
        sim->nodes[i].skew_ms = 0;
        sim->nodes[i].leaps_until_ms = 0;
        sim->nodes[i].up_at_ms = 0;
    }
    come_back(sim);
}
