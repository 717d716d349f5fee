/* Processes and disks. */
#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/members.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"
#include "tests/sim/mergeable/msim.h"

enum merge_policy msim_policy(uint32_t key)
{
    static const enum merge_policy policies[FORMS] = { MERGE_POLICY_LWW,    MERGE_POLICY_LWW,
                                                       MERGE_POLICY_MERGE,  MERGE_POLICY_SET,
                                                       MERGE_POLICY_VECTOR, MERGE_POLICY_COUNTER };

    return policies[key % FORMS];
}

uint64_t msim_wall(const struct msim *sim, const struct node *node)
{
    uint64_t leap_ms = sim->now_ms < node->leaps_until_ms ? node->leap_ms : 0;

    return (uint64_t)((int64_t)(sim->now_ms + leap_ms) + node->skew_ms);
}

struct node *msim_node(struct msim *sim, uint64_t id)
{
    return id >= 1 && id <= NODES ? &sim->nodes[id - 1] : NULL;
}

bool msim_is_named(const struct msim *sim, uint64_t id)
{
    return membership_has(&sim->members.membership, id);
}

/* ---- disks ---- */

static void rows_deinit(struct disk *disk)
{
    for (uint32_t i = 0; i < disk->row_count; i++) {
        merge_key_unref(disk->rows[i].key);
        buf_deinit(&disk->rows[i].bytes);
    }
    free(disk->rows);
    disk->rows = NULL;
    disk->row_count = 0;
}

void disk_deinit(struct disk *disk)
{
    rows_deinit(disk);
    for (uint32_t i = 0; i < disk->log_count; i++)
        buf_deinit(&disk->log[i]);
    free(disk->log);
    buf_deinit(&disk->state);
    *disk = (struct disk){ 0 };
}

static void buf_copy(struct buf *to, const struct buf *from)
{
    buf_append(to, from->data, from->size);
}

void disk_copy(struct disk *to, const struct disk *from)
{
    struct disk copy = { .exists = from->exists,
                         .row_count = from->row_count,
                         .first = from->first,
                         .synced = from->synced,
                         .log_count = (uint32_t)(from->synced - from->first) };

    buf_copy(&copy.state, &from->state);
    copy.rows = mem_zalloc((copy.row_count + 1) * sizeof *copy.rows);
    copy.log = mem_zalloc((copy.log_count + 1) * sizeof *copy.log);
    for (uint32_t i = 0; i < copy.row_count; i++) {
        copy.rows[i].key = merge_key_ref(from->rows[i].key);
        buf_copy(&copy.rows[i].bytes, &from->rows[i].bytes);
    }
    for (uint32_t i = 0; i < copy.log_count; i++)
        buf_copy(&copy.log[i], &from->log[i]);
    disk_deinit(to);
    *to = copy;
}

static void log_append(struct disk *disk, struct slice record)
{
    disk->log = mem_realloc(disk->log, (disk->log_count + 1) * sizeof *disk->log);
    disk->log[disk->log_count] = (struct buf){ 0 };
    buf_append(&disk->log[disk->log_count++], record.data, record.size);
}

static void release(struct msim *sim, struct node *node);

void msim_sync(struct msim *sim, struct node *node)
{
    node->disk.synced = node->disk.first + node->disk.log_count;
    merge_durable(node->replica, node->disk.synced - node->log_base);
    msim_drain(sim, node);
    release(sim, node);
}

static uint32_t row_place(const struct disk *disk, const struct merge_key *key)
{
    uint32_t at = 0;

    while (at < disk->row_count && merge_key_compare(disk->rows[at].key, key) < 0)
        at++;
    return at;
}

static bool row_is_at(const struct disk *disk, uint32_t at, const struct merge_key *key)
{
    return at < disk->row_count && merge_key_compare(disk->rows[at].key, key) == 0;
}

static void on_gone(void *user, const struct merge_key *key)
{
    struct disk *disk = user;
    uint32_t at = row_place(disk, key);

    if (!row_is_at(disk, at, key))
        return;
    merge_key_unref(disk->rows[at].key);
    buf_deinit(&disk->rows[at].bytes);
    disk->row_count--;
    memmove(&disk->rows[at], &disk->rows[at + 1], (disk->row_count - at) * sizeof *disk->rows);
}

static void on_row(void *user, const struct merge_row *row)
{
    struct disk *disk = user;
    uint32_t at = row_place(disk, row->key);

    if (!row_is_at(disk, at, row->key)) {
        disk->rows = mem_realloc(disk->rows, (disk->row_count + 1) * sizeof *disk->rows);
        memmove(&disk->rows[at + 1], &disk->rows[at], (disk->row_count - at) * sizeof *disk->rows);
        disk->row_count++;
        disk->rows[at] = (struct disk_row){ .key = merge_key_ref(row->key) };
    }
    buf_clear(&disk->rows[at].bytes);
    merge_record_encode(&row->record, &disk->rows[at].bytes);
}

/* The clock, and the rows that changed, of one moment. The log is cut off sometimes only. */
void msim_checkpoint(struct msim *sim, struct node *node, bool cut_log)
{
    struct disk *disk = &node->disk;

    msim_sync(sim, node);
    buf_clear(&disk->state);
    merge_state_encode(node->replica, &disk->state);
    merge_store_save(&node->replica->store,
                     &(struct merge_saving){ .gone = on_gone, .row = on_row, .user = disk });
    sim->counts->checkpoints++;
    if (!cut_log && msim_chance(sim, 400)) {
        sim->counts->logs_kept++;
        return;
    }
    for (uint32_t i = 0; i < disk->log_count; i++)
        buf_deinit(&disk->log[i]);
    disk->first += disk->log_count;
    disk->log_count = 0;
}

/* ---- processes ---- */

static void sign(void *user, struct slice message, uint8_t ret_mac[MERGE_TOKEN_MAC_BYTES])
{
    struct hash128 key = { { 7 } };
    struct hash128 hash = hash_chain(key, message, (struct slice){ 0 });

    (void)user;
    memcpy(ret_mac, hash.bytes, MERGE_TOKEN_MAC_BYTES);
}

static struct merge_options options_of(struct msim *sim, const struct node *node)
{
    struct merge_options options = { .shard = 9,
                                     .generation = 3,
                                     .member = node->id,
                                     .boot = node->told_boot,
                                     .random = (node->id * 1000 + node->boot) * 2654435761u | 1,
                                     .index_dots_max = sim->index_max,
                                     .chunk_records_max = 3,
                                     .closed_max = sim->closed_max,
                                     .op_window_ms = OP_WINDOW_MS,
                                     .mac = { .sign = sign } };

    return options;
}

#define BOOTS 100u /* Between those of two lives: no two are equal, set back or raised. */

/* With its disk a member may have lost its time. */
static void begin_boot(struct msim *sim, struct node *node, bool whole)
{
    uint64_t round = node->told_boot_max / BOOTS;

    node->boot++;
    bool set_back = !whole && round > 1 && (sim->seed + node->boot) % 3 == 0;

    node->told_boot = set_back ? round * BOOTS - 1 - node->boot % (BOOTS / 2) : (round + 1) * BOOTS;
    if (!set_back)
        node->told_boot_max = node->told_boot;
}

struct merge_replica *msim_recover(struct msim *sim, struct node *node)
{
    struct merge_options options = options_of(sim, node);
    struct merge_replica *replica = merge_new(&options);
    struct disk *disk = &node->disk;

    if (disk->state.size > 0)
        PROMISE(sim, merge_state_restore(replica, buf_slice(&disk->state)) == ERR_OK,
                "a state cannot be read");
    for (uint32_t i = 0; i < disk->row_count; i++)
        sim->counts->damaged += merge_row_restore(replica, disk->rows[i].key,
                                                  buf_slice(&disk->rows[i].bytes)) != ERR_OK;
    for (uint32_t i = 0; i < disk->log_count && disk->first + i < disk->synced; i++)
        PROMISE(sim, merge_replay(replica, buf_slice(&disk->log[i])) == ERR_OK,
                "a record of the log cannot be replayed");
    return replica;
}

void msim_start(struct msim *sim, struct node *node, bool whole)
{
    CHECK(node->replica == NULL);
    begin_boot(sim, node, whole);
    node->disk.exists = true;
    node->replica = msim_recover(sim, node);
    node->log_base = node->disk.first + node->disk.log_count;
    msim_pieces_init(node);
    node->strict_applied = 0; /* The strict log is read again, and nothing of it hurts twice. */
    bool damaged = node->replica->damaged_count > 0;

    PROMISE(sim, merge_start(node->replica, &sim->members, whole) == ERR_OK, "it cannot start");
    sim->counts->voided += damaged;
    node->syncing = node->replica->syncing;
    msim_drain(sim, node);
    msim_sync(sim, node);
    if (damaged || !whole)
        msim_checkpoint(sim, node, damaged);
}

void msim_crash(struct msim *sim, struct node *node)
{
    struct disk *disk = &node->disk;

    merge_free(node->replica);
    node->replica = NULL;
    sim->counts->cut_short += node->pieces.taken != NULL;
    pieces_deinit(&node->pieces);
    for (uint32_t i = 0; i < node->held_count; i++)
        buf_deinit(&node->held[i].bytes);
    node->held_count = 0;
    while (disk->first + disk->log_count > disk->synced)
        buf_deinit(&disk->log[--disk->log_count]);
    ended_crashed(sim, node);
    for (uint32_t i = 0; i < 8; i++)
        if (sim->reads[i].node == node->id)
            sim->reads[i].used = false;
}

/* ---- what a replica puts out ---- */

static void release(struct msim *sim, struct node *node)
{
    uint64_t durable = node->disk.synced - node->log_base;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < node->held_count; i++) {
        struct held *held = &node->held[i];

        if (held->after <= durable) {
            merge_message_stamp(&held->bytes, msim_wall(sim, node));
            msim_send(node, held->to, buf_slice(&held->bytes));
            buf_deinit(&held->bytes);
        } else {
            node->held[kept++] = *held;
        }
    }
    node->held_count = kept;
}

void msim_drain(struct msim *sim, struct node *node)
{
    struct merge_out *out = &node->replica->out;
    struct reader reader = reader_from(buf_slice(&out->log));

    while (reader_left(&reader) > 0)
        log_append(&node->disk, read_bytes(&reader, UINT32_MAX));
    for (uint32_t i = 0; i < out->message_count; i++) {
        struct merge_message *message = &out->messages[i];

        if (node->held_count == ARRAY_SIZE(node->held)) {
            buf_deinit(&message->bytes);
            continue;
        }
        node->held[node->held_count++] =
            (struct held){ message->to, message->after_log, message->bytes };
        message->bytes = (struct buf){ 0 };
    }
    for (uint32_t i = 0; i < out->done_count; i++)
        msim_done(sim, node, &out->done[i]);
    merge_out_clear(out);
    node->syncing = node->replica->syncing;
    release(sim, node);
}

/* The strict log reaches a node when its side of a cut has a majority. */
void msim_strict(struct msim *sim, struct node *node)
{
    const struct membership *m = &sim->members.membership;
    uint32_t near = 0;

    for (uint32_t i = 0; i < m->count; i++)
        near += msim_node(sim, m->members[i])->side == node->side;
    if (node->strict_applied == sim->strict_count || near < m->count / 2 + 1 ||
        !msim_chance(sim, sim->healing ? 1000 : 100))
        return;
    const struct strict *strict = &sim->strict[node->strict_applied++];

    if (strict->is_erasure)
        PROMISE(sim,
                merge_erase(node->replica, merge_key_entity(sim->keys[strict->entity * FORMS]),
                            strict->number) == ERR_OK,
                "an erasure is refused");
    else if (strict->members.membership.config >= node->replica->members.membership.config) {
        sim->counts->config_changed_pending +=
            node->replica->pending_count > 0 &&
            strict->members.membership.config > node->replica->members.membership.config;
        PROMISE(sim, merge_configure(node->replica, &strict->members) == ERR_OK,
                "a configuration is refused");
    }
    msim_drain(sim, node);
}

void msim_world_free(struct msim *sim)
{
    for (uint32_t i = 0; i < NODES; i++) {
        if (sim->nodes[i].replica != NULL)
            msim_crash(sim, &sim->nodes[i]);
        disk_deinit(&sim->nodes[i].disk);
        disk_deinit(&sim->nodes[i].image);
    }
    msim_network_free(sim);
    for (uint32_t i = 0; i < ARRAY_SIZE(sim->reads); i++)
        buf_deinit(&sim->reads[i].token);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        buf_deinit(&sim->sessions[i].token);
        causal_deinit(&sim->sessions[i].past);
    }
    for (uint32_t i = 0; i < KEYS; i++)
        merge_key_unref(sim->keys[i]);
    ended_free(sim);
    counting_free(sim);
    free(sim->writes);
    free(sim->cells);
    free(sim);
}
