#include "tests/sim/faults/wrong.h"
#include "tests/sim/oracle/oracle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/handler/outcome_row.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "tests/sim/model/definition.h"

#define REPAIR_MS_MIN   1000u /* Less than what coordinators wait (coordinator.c). */
#define UNUSED_SLACK_MS 500u  /* Clocks differ. */
#define STALL_MS        300u  /* So long without an entry: no one serves, or a disk stands still. */
#define WINDOW_MS_MIN   (15u * 60u * 1000u)

struct oracle *oracle_new(struct sim *sim, const struct model_rule *const *rules)
{
    struct oracle *oracle = mem_zalloc(sizeof *oracle);

    oracle->rules = rules;
    oracle->slots = mem_zalloc(sizeof *oracle->slots * MODEL_SLOTS);
    oracle->ops = mem_alloc(sizeof *oracle->ops * (MODEL_SLOTS / 2));
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        oracle->shards[i].applier = applier_new(i, node_handlers());
        policy_begin(&oracle->shards[i].policy);
        applier_set_shard_count(oracle->shards[i].applier, sim->shard_count);
        applier_set_version_max(oracle->shards[i].applier, SIM_APPLY_VERSION_MAX);
    }
    for (uint32_t i = 0; i < sim->player_count; i++)
        oracle->players[i].shard = sim->player_shard[i];
    return oracle;
}

void oracle_free(struct oracle *oracle)
{
    for (uint32_t i = 0; i < SIM_SHARDS_MAX; i++) {
        struct shard_oracle *shard = &oracle->shards[i];
        for (uint64_t j = 0; j < shard->count; j++)
            entry_unref(shard->entries[j]);
        free(shard->entries);
        free(shard->outcomes);
        need_deinit(&shard->need);
        applier_free(shard->applier);
    }
    for (uint32_t i = 0; i < SIM_PLAYERS_MAX; i++) {
        free(oracle->players[i].history);
        free(oracle->players[i].entries);
        free(oracle->players[i].lost_at);
    }
    arena_deinit(&oracle->arena);
    goods_deinit(&oracle->book);
    free(oracle->ops);
    free(oracle->slots);
    free(oracle);
}

/* ---- the committed log ---- */
static bool disk_holds_now(const struct slot *slot, const struct entry *entry)
{
    const struct entry *held = sim_disk_entry(&slot->disk, entry->index);

    if (held == NULL)
        return slot->disk.checkpoint.index >= entry->index;
    return hash128_equal(held->hash, entry->hash);
}

static bool disk_holds(const struct slot *slot, const struct entry *entry)
{
    for (uint32_t i = 0; i < slot->forgotten_count; i++) {
        if (hash128_equal(slot->forgotten[i], entry->hash))
            return true;
    }
    return disk_holds_now(slot, entry);
}

uint32_t oracle_held_by(const struct sim *sim, uint32_t shard, uint64_t index)
{
    const struct shard_oracle *known = &sim->oracle->shards[shard];
    uint32_t count = 0;

    if (sim->counts.bits_flipped + sim->counts.replicas_dropped + sim->counts.damaged_dropped > 0)
        return 0;
    for (uint32_t i = 0; i < sim->node_count && index > 0 && index <= known->count; i++)
        count += disk_holds(&sim->nodes[i].slots[shard], known->entries[index - 1]);
    return count;
}

/* Whichever majority promises, one of it has the entry. */
static bool majority_finds(const struct sim *sim, uint32_t shard, const struct entry *entry,
                           const uint64_t *ids, uint32_t id_count)
{
    uint32_t without = 0;

    for (uint32_t i = 0; i < id_count; i++) {
        const struct sim_node *node = &sim->nodes[ids[i] - PROC_NODE];
        const struct slot *slot = &node->slots[shard];

        without += !node->gone && !slot->damaged && !disk_holds_now(slot, entry);
    }
    return without < id_count / 2 + 1;
}

void oracle_stalled(struct sim *sim, uint32_t shard)
{
    sim->oracle->shards[shard].stalled_ms = sim->now_ms;
}

void oracle_served(struct sim *sim, uint32_t shard, uint64_t epoch)
{
    struct shard_oracle *known = &sim->oracle->shards[shard];

    if (epoch > known->epoch_served)
        known->epoch_served = epoch;
}

void oracle_accepted(struct sim *sim, uint32_t shard, const struct shard_record *record)
{
    const struct shard_oracle *known = &sim->oracle->shards[shard];
    const struct entry *last = known->count > 0 ? known->entries[known->count - 1] : NULL;

    if (record->epoch <= known->epoch_served)
        sim_fail(sim, shard,
                 "an accepted etcd gives epoch %" PRIu64 ", and an owner served under %" PRIu64,
                 record->epoch, known->epoch_served);
    if (last == NULL || majority_finds(sim, shard, last, record->members, record->member_count) ||
        (record->phase == SHARD_JOINT &&
         majority_finds(sim, shard, last, record->new_members, record->new_member_count)))
        return;
    sim_fail(sim, shard,
             "entry %" PRIu64 " is committed, and not with the members that an "
             "acceptance gave the shard",
             last->index);
}

bool oracle_names(const struct sim *sim, uint32_t shard, const struct sim_node *node)
{
    return membership_has(&applier_meta(sim->oracle->shards[shard].applier)->membership, node->id);
}

/* An owner of the joint phase may still hear, after the last record, that the old members had an
 * entry. It commits that, and safely: the new members' majority has it too, and no later owner
 * comes without theirs. */
void oracle_forgets(struct sim *sim, uint32_t shard, struct slot *slot)
{
    uint64_t index = sim->oracle->shards[shard].count + 1;
    uint64_t last = sim_disk_last_index(&slot->disk);

    for (; index <= last; index++) {
        const struct entry *entry = sim_disk_entry(&slot->disk, index);
        if (entry == NULL)
            continue;
        slot->forgotten =
            mem_realloc(slot->forgotten, sizeof *slot->forgotten * (slot->forgotten_count + 1));
        slot->forgotten[slot->forgotten_count++] = entry->hash;
    }
}

/* Counted on the disks, not by what anybody believes. */
static bool majority_of(const struct sim *sim, uint32_t shard, const struct entry *entry,
                        const uint64_t *ids, uint32_t id_count)
{
    uint32_t count = 0;

    CHECK(id_count > 0);
    for (uint32_t i = 0; i < id_count; i++)
        count += disk_holds(&sim->nodes[ids[i] - PROC_NODE].slots[shard], entry);
    return count >= id_count / 2 + 1;
}

/* Of those whom the START names under which it is committed, and in a joint phase of the new ones
 * too: an owner's own, with which all before it is committed. */
static bool majority_holds(const struct sim *sim, uint32_t shard, const struct rep *rep,
                           const struct entry *entry)
{
    struct membership m = applier_meta(sim->oracle->shards[shard].applier)->membership;
    struct start start;

    if (rep_role(rep) == REP_OWNER) {
        m = *rep_membership(rep);
    } else if (entry->kind == ENTRY_START) {
        CHECK(start_decode(entry->body, &start) == ERR_OK);
        m = start.membership;
    }
    return majority_of(sim, shard, entry, m.members, m.count) &&
           (m.new_count == 0 || majority_of(sim, shard, entry, m.new_members, m.new_count));
}

void oracle_load_absent(struct shard_oracle *shard)
{
    struct state *state = applier_state(shard->applier);
    struct reader keys = reader_from(buf_slice(&shard->need.keys));
    struct reader ranges = reader_from(buf_slice(&shard->need.ranges));

    while (reader_left(&keys) > 0)
        CHECK(state_load(state, state_load_generation(state),
                         read_bytes(&keys, STATE_KEY_BYTES_MAX), NULL));
    while (reader_left(&ranges) > 0) {
        struct state_range range;
        range.prefix = read_bytes(&ranges, STATE_KEY_BYTES_MAX);
        range.after = read_bytes(&ranges, STATE_KEY_BYTES_MAX);
        range.limit = read_u32(&ranges);
        CHECK(state_load_range(state, state_load_generation(state), &range, range.after, true));
    }
    need_clear(&shard->need);
}

/* What of the audit an entry touched: a cut taken because a message had it, a record settled that
 * was open at a cut, and one that its destination had counted too. */
struct cuts_seen {
    uint64_t id, open;
    int64_t count, net;
};

static struct cuts_seen cuts_see(const struct meta *meta, uint64_t id)
{
    struct cuts_seen seen = { .id = meta->cut_id };

    for (uint32_t i = 0; i < CUTS_KEPT; i++) {
        const struct totals *totals = &meta->cuts[i].totals;
        if (meta->cuts[i].id != id)
            continue;
        seen.open += meta->cuts[i].open;
        seen.count += totals->count;
        for (uint32_t j = 0; j < totals->currency_count; j++)
            seen.net += (int64_t)(j + 1) * totals->currencies[j].net;
    }
    return seen;
}

static void cuts_count(struct sim *sim, const struct meta *meta, const struct cuts_seen *before,
                       const struct entry *entry)
{
    struct cuts_seen after = cuts_see(meta, before->id);
    struct op op;

    if (entry->kind != ENTRY_OP)
        return;
    CHECK(op_decode(entry->body, &op) == ERR_OK);
    sim->counts.audit_cuts_carried += op.method != METHOD_TAKE_CUT && after.id > before->id;
    sim->counts.audit_cuts_awaited += after.open < before->open;
    sim->counts.audit_cuts_corrected += after.count != before->count || after.net != before->net;
}

static void apply(struct sim *sim, uint32_t number, struct entry *entry)
{
    struct shard_oracle *shard = &sim->oracle->shards[number];
    struct outcome outcome = { 0 };
    uint64_t operations = applier_meta(shard->applier)->operation_count;
    uint64_t keys = applier_meta(shard->applier)->key_count;
    struct cuts_seen cuts =
        cuts_see(applier_meta(shard->applier), applier_meta(shard->applier)->cut_id);
    err e;

    CHECK(entry->index == shard->count + 1);
    while ((e = applier_apply(shard->applier, entry, &shard->need, &outcome)) == ERR_NEED)
        oracle_load_absent(shard);
    CHECK(e == ERR_OK);
    cuts_count(sim, applier_meta(shard->applier), &cuts, entry);
    if (applier_meta(shard->applier)->key_count < keys)
        sim->counts.keys_pruned += keys - applier_meta(shard->applier)->key_count;
    if (applier_meta(shard->applier)->operation_count < operations)
        sim->counts.pruned_ops += operations - applier_meta(shard->applier)->operation_count;
    uint64_t floor_ms = applier_meta(shard->applier)->floor_ms;
    if (floor_ms < shard->floor_ms)
        sim_fail(sim, number, "the floor of op_ids went back");
    if (floor_ms > shard->floor_ms && floor_ms + WINDOW_MS_MIN > entry->owner_ms)
        sim_fail(sim, number, "operations younger than 15 minutes are forgotten");
    if (shard->count == shard->capacity) {
        shard->capacity = shard->capacity > 0 ? shard->capacity * 2 : 512;
        shard->entries = mem_realloc(shard->entries, sizeof *shard->entries * shard->capacity);
        shard->outcomes = mem_realloc(shard->outcomes, sizeof *shard->outcomes * shard->capacity);
    }
    if (shard->dated_from == 0 && applier_meta(shard->applier)->apply_version >= KEYS_APPLY_VERSION)
        shard->dated_from = entry->index;
    shard->entries[shard->count] = entry_ref(entry);
    shard->outcomes[shard->count++] = applier_outcome_hash(shard->applier);
    sim->counts.committed++;
    if (sim->now_ms - shard->logged_ms > STALL_MS)
        shard->stalled_ms = sim->now_ms;
    shard->logged_ms = sim->now_ms;
    model_apply(sim, number, entry, &outcome);
    if (!sim->damaged &&
        (floor_ms > shard->floor_ms || applier_meta(shard->applier)->operation_count < operations))
        floor_check(sim, number);
    damage_look(sim, entry, &outcome);
    damage_applied(sim);
    shard->floor_ms = applier_meta(shard->applier)->floor_ms;
}

static void look_at_commits(struct sim *sim, struct sim_node *node, uint32_t number)
{
    struct shard_oracle *shard = &sim->oracle->shards[number];
    struct slot *slot = &node->slots[number];
    const struct rep *rep = shard_rep(slot->shard);
    uint64_t commit = rep_commit_index(rep);

    for (uint64_t index = slot->commit_seen + 1; index <= commit; index++) {
        struct entry *entry = rep_entry(rep, index);
        if (entry == NULL)
            entry = sim_disk_entry(&slot->disk, index);
        if (entry == NULL && index > shard->count) {
            sim_fail(sim, number, "node %u: committed entry %" PRIu64 " is nowhere", node->id,
                     index);
            return;
        }
        if (index == shard->count + 1) {
            if (!majority_holds(sim, number, rep, entry))
                sim_fail(sim, number,
                         "node %u commits entry %" PRIu64 ", which no majority has on disk",
                         node->id, index);
            apply(sim, number, entry);
        }
        if (entry != NULL && !hash128_equal(shard->entries[index - 1]->hash, entry->hash))
            sim_fail(sim, number, "node %u commits another entry %" PRIu64 " (epoch %" PRIu64 ")",
                     node->id, index, entry->dot.epoch);
    }
    if (commit > slot->commit_seen)
        slot->commit_seen = commit;
}

/* What no outcome tells. */
static void check_counters(struct sim *sim, const struct sim_node *node, uint32_t number,
                           const struct meta *meta)
{
    const struct meta *own = applier_meta(sim->oracle->shards[number].applier);

    if (meta->operation_count != own->operation_count || meta->key_count != own->key_count ||
        meta->floor_ms != own->floor_ms || meta->session_count != own->session_count ||
        meta->outbox_open != own->outbox_open)
        sim_fail(sim, number,
                 "node %u: after entry %" PRIu64 " it has %" PRIu64 " operations, %" PRIu64
                 " sessions, should have %" PRIu64 ", %" PRIu64,
                 node->id, meta->applied_index, meta->operation_count, meta->session_count,
                 own->operation_count, own->session_count);
}

/* What the shard proposes because of such an entry is in its log by then. */
static void note_touches(const struct sim *sim, struct slot *slot, uint32_t shard)
{
    for (uint32_t i = 0; i < sim->player_count; i++) {
        uint64_t touched = sim->oracle->players[i].touched_index;
        if (sim->player_shard[i] != shard || touched > slot->applied_seen ||
            touched == slot->touch_seen[i])
            continue;
        slot->touch_seen[i] = touched;
        slot->touch_last[i] = rep_last_index(shard_rep(slot->shard));
    }
}

void oracle_look(struct sim *sim, struct sim_node *node, uint32_t number)
{
    struct shard_oracle *shard = &sim->oracle->shards[number];
    struct slot *slot = &node->slots[number];
    const struct meta *meta = shard_meta(slot->shard);

    CHECK(number < sim->shard_count && slot->shard != NULL);
    look_at_commits(sim, node, number);
    if (meta->applied_index == slot->applied_seen || sim->failure[0] != '\0' || sim->twins_met)
        return;
    slot->applied_seen = meta->applied_index;
    note_touches(sim, slot, number);
    if (meta->applied_index > shard->count)
        sim_fail(sim, number, "node %u applied entry %" PRIu64 ", committed are %" PRIu64, node->id,
                 meta->applied_index, shard->count);
    else if (!wrong_shard(sim, number) &&
             !hash128_equal(meta->outcome_hash, shard->outcomes[meta->applied_index - 1]))
        sim_fail(sim, number, "node %u: outcomes differ at entry %" PRIu64, node->id,
                 meta->applied_index);
    else if (meta->applied_index == shard->count)
        check_counters(sim, node, number, meta);
}

static int dot_order(const struct entry *entry, struct dot dot)
{
    return dot_compare(entry->dot, dot);
}

uint64_t oracle_index_of(const struct shard_oracle *shard, struct dot dot)
{
    uint64_t low = 0, high = shard->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (dot_order(shard->entries[middle], dot) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == shard->count || dot_order(shard->entries[low], dot) != 0 ||
        shard->entries[low]->dot.owner != dot.owner)
        return 0;
    return low + 1;
}

void oracle_acknowledge(struct sim *sim, uint32_t shard, uint64_t index)
{
    CHECK(shard < sim->shard_count && index <= sim->oracle->shards[shard].count);
    struct shard_oracle *told = &sim->oracle->shards[shard];

    if (index <= told->acknowledged)
        return;
    told->acknowledged = index;
    told->marks[told->mark_count % ORACLE_MARKS].ms = sim->now_ms;
    told->marks[told->mark_count % ORACLE_MARKS].index = index;
    told->mark_count++;
}

uint64_t oracle_acknowledged_before(const struct sim *sim, uint32_t shard, uint64_t ms)
{
    CHECK(shard < sim->shard_count);
    const struct shard_oracle *told = &sim->oracle->shards[shard];
    uint64_t kept = told->mark_count < ORACLE_MARKS ? told->mark_count : ORACLE_MARKS;

    for (uint64_t i = told->mark_count; i > told->mark_count - kept; i--) {
        if (told->marks[(i - 1) % ORACLE_MARKS].ms < ms)
            return told->marks[(i - 1) % ORACLE_MARKS].index;
    }
    return 0;
}

uint64_t oracle_acknowledged(const struct sim *sim, uint32_t shard)
{
    CHECK(shard < sim->shard_count);
    return sim->oracle->shards[shard].acknowledged;
}

uint64_t oracle_committed(const struct sim *sim, uint32_t shard)
{
    CHECK(shard < sim->shard_count);
    return sim->oracle->shards[shard].count;
}

/* The repair is over, or another member came in the replica's place. */
static bool needs_no_repair(const struct sim *sim, uint32_t shard, const struct shard_wish *wish)
{
    struct cluster_key key = cluster_key_shard(SIM_CLUSTER, shard);
    const struct etcd_kv *kv = etcd_find(sim, cluster_key_slice(&key));
    struct shard_record record;

    return kv != NULL && shard_record_decode(buf_slice(&kv->value), &record, NULL) == ERR_OK &&
           (shard_record_has_member(&record, wish->repair) ||
            record.member_count >= wish->member_count);
}

/* A repair whose replica has left is given up only when that does not come for a while, or is not
 * wanted any more. */
static void look_at_wish(struct sim *sim, uint32_t shard, bool remove)
{
    struct cluster_key key = cluster_key_shard_wish(SIM_CLUSTER, shard);
    const struct etcd_kv *kv = etcd_find(sim, cluster_key_slice(&key));
    struct shard_wish wish;

    if (!remove) {
        /* But a late copy of the write that made the wish which was just taken away is no new one.
         */
        if (sim->wish_gone_ms[shard] == 0 ||
            sim->now_ms - sim->wish_gone_ms[shard] >= REPAIR_MS_MIN)
            sim->repair_ms[shard] = sim->now_ms;
        return;
    }
    sim->wish_gone_ms[shard] = sim->now_ms;
    if (kv == NULL || shard_wish_decode(buf_slice(&kv->value), &wish, NULL) != ERR_OK ||
        wish.repair == 0 || needs_no_repair(sim, shard, &wish))
        return;
    if (sim->now_ms - sim->repair_ms[shard] < REPAIR_MS_MIN &&
        !sim->nodes[wish.repair - PROC_NODE].removed)
        sim_fail(sim, shard, "the repair of node %u is forgotten half way", (uint32_t)wish.repair);
}

/* A hold begins once: until its server comes back, no coordinator begins it again. */
static void look_at_hold(struct sim *sim, struct slice key, struct slice value)
{
    const struct etcd_kv *kv = etcd_find(sim, key);
    struct server_record before;
    struct server_record after;

    if (kv == NULL || server_record_decode(buf_slice(&kv->value), &before, NULL) != ERR_OK ||
        server_record_decode(value, &after, NULL) != ERR_OK)
        return;
    sim->counts.servers_held += before.held_since_ms == 0 && after.held_since_ms > 0;
    if (before.held_since_ms > 0 && after.held_since_ms > before.held_since_ms)
        sim_fail(sim, 0, "the hold of a game server begins again: %" PRIu64 " ms later",
                 after.held_since_ms - before.held_since_ms);
}

void oracle_coord_write(struct sim *sim, struct slice key, struct slice value, bool remove)
{
    struct cluster_key_parts parts = cluster_key_parse(SIM_CLUSTER, key);

    if (parts.kind == CLUSTER_KEY_DEFINITION)
        definition_written_to_etcd(sim, &parts, value, remove);
    if (parts.kind == CLUSTER_KEY_SHARD_WISH)
        look_at_wish(sim, parts.shard, remove);
    if (parts.kind != CLUSTER_KEY_SERVER_KNOWN || sim->damaged)
        return;
    if (!remove)
        look_at_hold(sim, key, value);
    struct cluster_key live = cluster_key_server_live(SIM_CLUSTER, parts.incarnation);
    if (!remove && etcd_find(sim, cluster_key_slice(&live)) != NULL)
        sim_fail(sim, 0, "server 1-%" PRIu64 " is marked as expiring while it is live",
                 parts.incarnation.revision);
    for (uint32_t i = 0; i < sim->shard_count && remove; i++) {
        if (!model_expired(&sim->oracle->shards[i], parts.incarnation))
            sim_fail(sim, i, "server 1-%" PRIu64 " is forgotten before this shard knows",
                     parts.incarnation.revision);
    }
}

/* Game servers without a lease, which are to be expired in the end, held or not. */
static uint32_t servers_gone(const struct sim *sim)
{
    uint32_t gone = 0;

    for (uint32_t i = 0; i < sim->etcd.kv_count; i++) {
        const struct etcd_kv *kv = &sim->etcd.kvs[i];
        struct cluster_key_parts parts = cluster_key_parse(SIM_CLUSTER, slice_from_text(kv->key));
        struct cluster_key live;

        if (kv->create_revision == 0 || parts.kind != CLUSTER_KEY_SERVER_KNOWN)
            continue;
        live = cluster_key_server_live(SIM_CLUSTER, parts.incarnation);
        gone += etcd_find(sim, cluster_key_slice(&live)) == NULL;
    }
    return gone;
}

uint32_t oracle_pending(const struct sim *sim)
{
    uint64_t unix_ms = SIM_UNIX_MS + sim->now_ms + sim->clock_ms;
    uint32_t unused = 0;

    for (uint32_t i = 0; i < sim->player_count; i++) {
        const struct player_model *player = &sim->oracle->players[i];
        unused += player->granted_ms != 0 &&
                  player->granted_ms + SESSION_UNUSED_MS + UNUSED_SLACK_MS < unix_ms &&
                  !model_expired(&sim->oracle->shards[player->shard], player->incarnation);
    }
    for (uint32_t i = 0; i < sim->oracle->op_count; i++)
        unused +=
            sim->oracle->ops[i].open && sim->oracle->ops[i].expires_ms + UNUSED_SLACK_MS < unix_ms;
    return sim->oracle->pending + sim->oracle->book.open + unused + servers_gone(sim);
}

/* ---- the end ---- */
static bool slot_converged(const struct sim *sim, uint32_t number, const struct slot *slot)
{
    uint64_t count = sim->oracle->shards[number].count;

    return slot->shard != NULL && rep_last_index(shard_rep(slot->shard)) == count &&
           rep_durable_index(shard_rep(slot->shard)) == count &&
           shard_applied_index(slot->shard) == count;
}

static bool shard_converged(const struct sim *sim, uint32_t number)
{
    uint32_t serving = 0;

    if (!members_settled(sim, number))
        return false;
    for (uint32_t n = 0; n < sim->node_count; n++) {
        const struct slot *slot = &sim->nodes[n].slots[number];
        if (!members_hold(sim, number, &sim->nodes[n]))
            continue;
        if (slot->damaged || !slot_converged(sim, number, slot))
            return false;
        serving += shard_serves(slot->shard);
    }
    return serving == 1;
}

uint32_t oracle_converged_count(const struct sim *sim)
{
    uint32_t count = 0;

    while (count < sim->shard_count && shard_converged(sim, count))
        count++;
    return count;
}

bool oracle_converged(const struct sim *sim)
{
    return oracle_converged_count(sim) == sim->shard_count;
}

static void fail_row(struct sim *sim, const struct sim_node *node, uint32_t number,
                     const struct state_write *write, const struct db_row *row)
{
    char text[160] = { 0 };

    for (size_t i = 1; i < write->key.size && i < sizeof text; i++) {
        uint8_t c = write->key.data[i];
        text[i - 1] = c >= 0x20 && c < 0x7f ? (char)c : '.';
    }
    sim_fail(sim, number, "node %u: row %c %s is %s, should be %s", node->id, write->key.data[0],
             text, row == NULL ? "missing" : "there",
             write->value == NULL ? "gone" : "so, but else");
}

/* Only a doubled item takes the same step twice: what was written last holds. */
static bool is_written_again(const struct sim *sim, const struct state_write *writes,
                             uint32_t place, uint32_t count)
{
    for (uint32_t i = place + 1; i < count && sim->doubled; i++) {
        if (slice_equal(writes[i].key, writes[place].key))
            return true;
    }
    return false;
}

static void check_rows(struct sim *sim, struct sim_node *node, uint32_t number,
                       const struct state_write *writes, uint32_t count)
{
    const struct db_rows *db = &node->slots[number].db;
    uint32_t present = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct db_row *row = db_find(db, writes[i].key);
        const struct blob *value = writes[i].value;
        if (is_written_again(sim, writes, i, count))
            continue;
        present += value != NULL;
        bool same = (row == NULL) == (value == NULL);
        if (same && row != NULL)
            same = row->value->size == value->size &&
                   memcmp(row->value->bytes, value->bytes, value->size) == 0;
        if (!same) {
            fail_row(sim, node, number, &writes[i], row);
            return;
        }
    }
    if (present != db->count)
        sim_fail(sim, number, "node %u holds %u rows, should hold %u", node->id, db->count,
                 present);
}

static void check_slot(struct sim *sim, struct sim_node *node, uint32_t number,
                       const struct state_write *writes, uint32_t count)
{
    struct slot *slot = &node->slots[number];
    struct buf meta = { 0 };

    CHECK(number < sim->shard_count);
    if (slot->checkpoint_open)
        node_checkpoint_done(sim, node, number);
    node_checkpoint(sim, node, number);
    if (slot->checkpoint_open)
        node_checkpoint_done(sim, node, number);
    check_rows(sim, node, number, writes, count);
    applier_meta_encode(sim->oracle->shards[number].applier, &meta);
    if (!wrong_shard(sim, number) && !slice_equal(buf_slice(&meta), buf_slice(&slot->db.meta))) {
        size_t at = 0;
        while (at < meta.size && at < slot->db.meta.size && meta.data[at] == slot->db.meta.data[at])
            at++;
        sim_fail(sim, number, "node %u: the meta row is not as it should be from byte %zu on",
                 node->id, at);
    }
    buf_deinit(&meta);
}

void oracle_check_end(struct sim *sim)
{
    definition_check_end(sim);
    for (uint32_t i = 0; i < sim->shard_count && !sim->twins_met; i++) {
        struct state *state = applier_state(sim->oracle->shards[i].applier);
        const struct state_write *writes;
        uint32_t count;
        CHECK(state_checkpoint_begin(state, &writes, &count));
        for (uint32_t n = 0; n < sim->node_count; n++) {
            if (members_hold(sim, i, &sim->nodes[n]))
                check_slot(sim, &sim->nodes[n], i, writes, count);
        }
        state_checkpoint_end(state, false);
    }
}

/* A router's "nothing was done" is as binding as an answer. */
void oracle_check_ops(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->op_count; i++) {
        const struct sim_op *op = &sim->ops[i];
        if (op->id[0] == '\0')
            continue;
        const struct op_model *model =
            model_op(sim->oracle, slice_from_text(op->entity), slice_from_text(op->id));
        uint32_t shard = sim->player_shard[op->player];
        bool done = model_was(sim->oracle, model, OP_COMMITTED);
        if (op->told_done && !op->shared_id && !done)
            sim_fail(sim, shard, "op %s was answered as done and is not in the log", op->id);
        if (op->told_never && model->state == OP_COMMITTED && model->before == 0)
            sim_fail(sim, shard, "op %s was answered as aborted and is done", op->id);
        if (op->told_nothing && op->calls == 1 && !op->packet_late && !op->shared_id &&
            model->state == OP_COMMITTED && model->method == op->method)
            sim_fail(sim, shard, "op %s: \"nothing was done\" was told, and it is done", op->id);
    }
}
