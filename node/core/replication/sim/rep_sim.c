#include "node/core/replication/sim/rep_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/replication/sim/rep_sim_check.h"
#include "runtime/base/check.h"

#define SIM_SHARD   3u
#define SIM_TICK_MS 10u

static struct sim_node *node_get(struct rep_sim *sim, uint64_t id)
{
    CHECK(id >= 1 && id <= sim->node_count);
    return &sim->nodes[id - 1];
}

struct rep *rep_sim_rep(struct rep_sim *sim, uint64_t id)
{
    return node_get(sim, id)->rep;
}

static void later(struct rep_sim *sim, const struct sim_node *node, enum sim_kind kind,
                  uint64_t delay_ms, uint64_t number)
{
    sim_queue_push(&sim->queue, &(struct sim_event){ .at_ms = sim->now_ms + delay_ms,
                                                     .kind = (int)kind,
                                                     .node = node->id,
                                                     .life = node->life,
                                                     .number = number });
}

/* ---- What a step asks for ---- */

static void trace(const struct rep_sim *sim, const char *what, uint64_t from, uint64_t to,
                  const struct rep_message *m)
{
    static const char *const names[] = { "?",        "APPEND", "APPEND_ACK", "SEAL",
                                         "SEAL_ACK", "FETCH",  "FETCH_ACK" };

    if (!sim->verbose)
        return;
    printf("%6llu %s %llu->%llu %s%s epoch %llu prev %llu +%u commit %llu matched %llu round %llu"
           " dot %llu.%llu\n",
           (unsigned long long)sim->now_ms, what, (unsigned long long)from, (unsigned long long)to,
           names[m->type], m->refused ? " refused" : "", (unsigned long long)m->epoch,
           (unsigned long long)m->prev_index, m->entry_count, (unsigned long long)m->commit_index,
           (unsigned long long)m->matched_index, (unsigned long long)m->round,
           (unsigned long long)m->last_dot.epoch, (unsigned long long)m->last_dot.counter);
}

static void count_message(struct rep_sim *sim, const struct rep_message *m)
{
    if (m->type == REP_MSG_SEAL_ACK && m->refused)
        sim->counts.seal_refusals++;
    if (m->type == REP_MSG_APPEND_ACK && m->refused) {
        bool mismatch = m->vector.count > 0 && m->prev_index > 0;
        sim->counts.append_refusals++;
        sim->counts.mismatches += mismatch;
    }
}

/* Those who forget what they have just said are the ones to fear. */
static void crash_soon(struct rep_sim *sim, uint64_t id, uint32_t weight)
{
    if (sim_random_chance(&sim->random, sim->faults.crash_per_thousand * weight))
        later(sim, node_get(sim, id), SIM_CRASH, sim_random_between(&sim->random, 0, 8), 0);
}

static void send_message(struct rep_sim *sim, uint64_t from, const struct rep_send *send)
{
    uint32_t copies = 1;

    if (send->to < 1 || send->to > sim->node_count || send->to == from) {
        rep_sim_fail(sim, "node %llu sends to %llu", (unsigned long long)from,
                     (unsigned long long)send->to);
        return;
    }
    count_message(sim, &send->message);
    if (send->message.type == REP_MSG_SEAL_ACK)
        crash_soon(sim, from, 5);
    if (send->message.type == REP_MSG_APPEND_ACK)
        crash_soon(sim, from, 1);
    if (sim->cut[from - 1][send->to - 1] ||
        sim_random_chance(&sim->random, sim->faults.drop_per_thousand)) {
        sim->counts.dropped++;
        trace(sim, "lost", from, send->to, &send->message);
        return;
    }
    trace(sim, "send", from, send->to, &send->message);
    if (sim_random_chance(&sim->random, sim->faults.duplicate_per_thousand)) {
        sim->counts.duplicated++;
        copies = 2;
    }
    for (; copies > 0; copies--) {
        struct sim_event event = { .kind = SIM_MESSAGE, .node = send->to, .from = from };
        uint64_t max = sim->faults.delay_ms_max;
        /* Mostly quick; now and then as late as it may be, so messages overtake. */
        if (!sim_random_chance(&sim->random, 200))
            max = max / 10 + 1;
        event.at_ms = sim->now_ms + sim_random_between(&sim->random, 1, max);
        rep_message_encode(&send->message, &event.bytes);
        sim_queue_push(&sim->queue, &event);
    }
}

static void sync_begin(struct rep_sim *sim, struct sim_node *node)
{
    uint32_t count = node->disk.pending_count;

    if (node->syncing || node->disk_held || count == 0)
        return;
    node->syncing = true;
    later(sim, node, SIM_SYNCED,
          sim_random_between(&sim->random, 1, sim->faults.sync_ms_max + node->slow_ms),
          node->disk.pending[count - 1].ticket);
}

static void take_writes(struct rep_sim *sim, struct sim_node *node)
{
    for (uint32_t i = 0; i < sim->out.write_count; i++)
        if (sim->out.writes[i].type == REP_WRITE_TRUNCATE)
            sim->counts.truncations++;
    sim_disk_write(&node->disk, sim->out.writes, sim->out.write_count);
    sim->out.write_count = 0;
    sync_begin(sim, node);
}

static void note_role(struct rep_sim *sim, struct sim_node *node)
{
    enum rep_role role = rep_role(node->rep);

    node->read_count = 0;
    node->membership = *rep_membership(node->rep);
    if (sim->verbose)
        printf("%6llu node %llu role %d epoch %llu\n", (unsigned long long)sim->now_ms,
               (unsigned long long)node->id, role, (unsigned long long)rep_epoch(node->rep));
    if (role == REP_STARTING)
        crash_soon(sim, node->id, 10);
    sim->counts.promotions += role == REP_SEALING;
    sim->counts.adoptions += role == REP_ADOPTING;
    sim->counts.deposed += role == REP_FOLLOWER;
    sim->counts.starts_committed += role == REP_OWNER;
    sim->counts.joint_commits += role == REP_OWNER && node->membership.new_count > 0;
}

static void take_out(struct rep_sim *sim, struct sim_node *node)
{
    struct rep_out *out = &sim->out;

    take_writes(sim, node);
    for (uint32_t i = 0; i < out->send_count; i++)
        send_message(sim, node->id, &out->sends[i]);
    for (uint32_t i = 0; i < out->log_read_count; i++) {
        const struct rep_log_read *read = &out->log_reads[i];
        sim->counts.log_reads++;
        later(sim, node, SIM_LOG_READ, 1, read->from_index << 32 | read->to_index);
    }
    /* Before the role is looked at: a round may be done in the step that ends the ownership. */
    if (out->rounds_done > 0)
        rep_sim_check_reads(sim, node, out);
    if (out->role_changed)
        note_role(sim, node);
    if (out->committed)
        rep_sim_check_commit(sim, node);
    if (out->diverged)
        rep_sim_fail(sim, "node %llu sees diverged outcomes", (unsigned long long)node->id);
    if (rep_commit_index(node->rep) > node->applied.index && !node->apply_due) {
        node->apply_due = true;
        later(sim, node, SIM_APPLY, sim_random_between(&sim->random, 0, sim->faults.apply_ms_max),
              0);
    }
    rep_out_clear(out);
}

static err step(struct rep_sim *sim, struct sim_node *node, struct rep_event *event)
{
    CHECK(node->rep != NULL);
    sim->counts.steps++;
    event->now_ms = sim->now_ms;
    event->unix_ms = SIM_UNIX_MS + sim->now_ms + (uint64_t)node->skew_ms;
    err e = rep_step(node->rep, event, &sim->out);
    take_out(sim, node);
    return e;
}

static void step_plain(struct rep_sim *sim, struct sim_node *node, struct rep_event event)
{
    err e = step(sim, node, &event);

    if (e != ERR_OK)
        rep_sim_fail(sim, "node %llu: event %d: %s", (unsigned long long)node->id, event.type,
                     err_name(e));
}

/* ---- Events ---- */

static void on_message(struct rep_sim *sim, struct sim_node *node, const struct sim_event *event)
{
    struct rep_message message;

    if (rep_message_decode(buf_slice(&event->bytes), &message) != ERR_OK) {
        rep_sim_fail(sim, "a message does not decode");
        return;
    }
    trace(sim, "recv", event->from, node->id, &message);
    step_plain(sim, node,
               (struct rep_event){ .type = REP_RECEIVE, .from = event->from, .message = &message });
    rep_message_deinit(&message);
}

static void on_log_read(struct rep_sim *sim, struct sim_node *node, uint64_t number)
{
    uint64_t from = number >> 32;
    uint64_t to = number & UINT32_MAX;
    uint32_t count = 0;

    while (from + count <= to && sim_disk_entry(&node->disk, from + count) != NULL)
        count++;
    struct entry **entries =
        count > 0 ? node->disk.entries + (from - node->disk.first_index) : NULL;
    step_plain(sim, node,
               (struct rep_event){
                   .type = REP_LOG_READ, .index = from, .entries = entries, .entry_count = count });
}

static void on_apply(struct rep_sim *sim, struct sim_node *node)
{
    node->apply_due = false;
    while (node->applied.index < rep_commit_index(node->rep)) {
        const struct entry *entry = rep_entry(node->rep, node->applied.index + 1);
        if (entry == NULL) {
            rep_sim_fail(sim, "node %llu: committed entry %llu is not in memory",
                         (unsigned long long)node->id, (unsigned long long)node->applied.index + 1);
            return;
        }
        sim_checkpoint_apply(&node->applied, entry);
        if (entry->dot.owner == node->id && entry->index > sim->acknowledged_index) {
            sim->acknowledged_index = entry->index; /* Now the client is answered. */
            sim->marks[sim->mark_count % SIM_MARKS].ms = sim->now_ms;
            sim->marks[sim->mark_count++ % SIM_MARKS].index = entry->index;
            sim->counts.acknowledged++;
        }
        step_plain(sim, node,
                   (struct rep_event){ .type = REP_APPLIED,
                                       .index = node->applied.index,
                                       .outcome = node->applied.outcome });
    }
}

static void on_node_event(struct rep_sim *sim, struct sim_node *node, const struct sim_event *event)
{
    switch ((enum sim_kind)event->kind) {
    case SIM_TICK:
        later(sim, node, SIM_TICK, SIM_TICK_MS, 0);
        step_plain(sim, node, (struct rep_event){ .type = REP_TICK });
        break;
    case SIM_SYNCED:
        node->syncing = false;
        if (node->disk_held)
            break;
        sim_disk_sync(&node->disk, event->number);
        step_plain(sim, node, (struct rep_event){ .type = REP_PERSISTED, .ticket = event->number });
        sync_begin(sim, node);
        break;
    case SIM_LOG_READ:
        on_log_read(sim, node, event->number);
        break;
    case SIM_APPLY:
        on_apply(sim, node);
        break;
    case SIM_FLUSH:
        node->flush_due = false;
        step_plain(sim, node, (struct rep_event){ .type = REP_FLUSH });
        break;
    case SIM_RECORD:
        step_plain(
            sim, node,
            (struct rep_event){ .type = REP_RECORD, .record = &sim->records[event->number] });
        break;
    default:
        CHECK(false); /* Not an event of a node. */
    }
}

static void dispatch(struct rep_sim *sim, const struct sim_event *event)
{
    if (event->kind >= SIM_CLIENT) {
        CHECK(sim->chaos != NULL);
        sim->chaos(sim, event);
        return;
    }
    struct sim_node *node = node_get(sim, event->node);
    if (event->kind == SIM_RESTART) {
        if (node->rep == NULL)
            rep_sim_restart(sim, node->id);
        return;
    }
    if (node->rep == NULL)
        return;
    if (event->kind == SIM_MESSAGE)
        on_message(sim, node, event);
    else if (event->life == node->life)
        on_node_event(sim, node, event);
}

bool rep_sim_one(struct rep_sim *sim, uint64_t until_ms)
{
    struct sim_event event;

    if (!sim_queue_pop(&sim->queue, until_ms, &event))
        return false;
    CHECK(event.at_ms >= sim->now_ms);
    sim->now_ms = event.at_ms;
    dispatch(sim, &event);
    buf_deinit(&event.bytes);
    return true;
}

void rep_sim_run(struct rep_sim *sim, uint64_t duration_ms)
{
    uint64_t until_ms = sim->now_ms + duration_ms;

    while (rep_sim_one(sim, until_ms))
        ;
    sim->now_ms = until_ms;
}

/* ---- What a test may do ---- */

void rep_sim_restart(struct rep_sim *sim, uint64_t id)
{
    struct sim_node *node = node_get(sim, id);
    struct rep_image image = sim_disk_image(&node->disk);

    CHECK(node->rep == NULL);
    image.votes = !node->wiped;
    if (node->program > 0)
        image.apply_version_max = node->program;
    node->rep = rep_new(SIM_SHARD, id, &sim->limits, &image);
    node->applied = node->disk.checkpoint;
    node->commit_seen = node->applied.index;
    node->syncing = false;
    node->apply_due = false;
    node->flush_due = false;
    node->read_count = 0;
    rep_sim_check_commit(sim, node);
    later(sim, node, SIM_TICK, sim_random_between(&sim->random, 0, SIM_TICK_MS), 0);
}

void rep_sim_crash(struct rep_sim *sim, uint64_t id)
{
    struct sim_node *node = node_get(sim, id);
    uint32_t pending = node->disk.pending_count;
    uint32_t keep = 0;

    if (node->rep == NULL)
        return;
    if (!node->disk_held && sim_random_chance(&sim->random, 300))
        keep = (uint32_t)sim_random_between(&sim->random, 0, pending);
    sim->counts.crashes++;
    sim->counts.lost_writes += pending - keep;
    if (sim->verbose)
        printf("%6llu node %llu crashes, loses %u writes\n", (unsigned long long)sim->now_ms,
               (unsigned long long)id, pending - keep);
    rep_free(node->rep);
    node->rep = NULL;
    node->life++;
    sim_disk_crash(&node->disk, keep);
}

void rep_sim_wipe(struct rep_sim *sim, uint64_t id)
{
    struct sim_node *node = node_get(sim, id);

    rep_sim_crash(sim, id);
    CHECK(!node->wiped);
    sim_disk_deinit(&node->lost);
    node->lost = node->disk;
    node->disk = (struct sim_disk){ 0 };
    node->wiped = true;
    sim->counts.wipes++;
}

void rep_sim_forget(struct rep_sim *sim, uint64_t id)
{
    struct sim_node *node = node_get(sim, id);
    struct promise promise;

    rep_sim_crash(sim, id);
    promise = node->disk.promise;
    sim_disk_deinit(&node->lost);
    node->lost = node->disk;
    node->disk = (struct sim_disk){ .promise = promise, .dropped = true };
    node->forgot = true;
    sim->counts.forgotten++;
    rep_sim_restart(sim, id);
}

void rep_sim_snapshot(struct rep_sim *sim, uint64_t from, uint64_t to)
{
    struct sim_node *node = node_get(sim, to);
    bool up = node->rep != NULL;

    rep_sim_crash(sim, to);
    sim_disk_install(&node->disk, &node_get(sim, from)->disk.checkpoint);
    sim->counts.snapshots++;
    if (up)
        rep_sim_restart(sim, to);
}

void rep_sim_cut(struct rep_sim *sim, uint64_t a, uint64_t b, bool cut)
{
    sim->cut[a - 1][b - 1] = cut;
    sim->cut[b - 1][a - 1] = cut;
}

void rep_sim_hold_disk(struct rep_sim *sim, uint64_t id, bool held)
{
    struct sim_node *node = node_get(sim, id);

    node->disk_held = held;
    if (node->rep != NULL)
        sync_begin(sim, node);
}

static void flush_soon(struct rep_sim *sim, struct sim_node *node)
{
    if (node->flush_due)
        return;
    node->flush_due = true;
    later(sim, node, SIM_FLUSH, sim_random_between(&sim->random, 0, 2), 0);
}

err rep_sim_propose(struct rep_sim *sim, uint64_t id, const char *text)
{
    struct sim_node *node = node_get(sim, id);
    struct rep_event event = { .type = REP_PROPOSE,
                               .kind = ENTRY_OP,
                               .body = slice_from_text(text) };
    err e = step(sim, node, &event);

    flush_soon(sim, node);
    return e;
}

err rep_sim_read(struct rep_sim *sim, uint64_t id)
{
    struct sim_node *node = node_get(sim, id);
    struct rep_event event = { .type = REP_READ };

    if (node->read_count == SIM_READS_MAX)
        return ERR_FULL;
    CHECK(node->rep != NULL);
    event.now_ms = sim->now_ms;
    event.unix_ms = SIM_UNIX_MS + sim->now_ms;
    err e = rep_step(node->rep, &event, &sim->out);
    if (e == ERR_OK)
        node->reads[node->read_count++] =
            (struct sim_read){ sim->out.read_round, sim->acknowledged_index };
    take_out(sim, node);
    flush_soon(sim, node);
    return e;
}

struct membership rep_sim_members(uint64_t config, uint32_t count)
{
    struct membership m = { .config = config, .count = count };

    for (uint32_t i = 0; i < count; i++)
        m.members[i] = i + 1;
    return m;
}

static void trace_record(const struct rep_sim *sim)
{
    const struct rep_record *record = &sim->records[sim->record_count - 1];
    const struct membership *m = &record->membership;

    if (!sim->verbose)
        return;
    printf("%6llu record: epoch %llu owner %llu config %llu members",
           (unsigned long long)sim->now_ms, (unsigned long long)record->epoch,
           (unsigned long long)record->owner, (unsigned long long)m->config);
    for (uint32_t i = 0; i < m->count; i++)
        printf(" %llu", (unsigned long long)m->members[i]);
    for (uint32_t i = 0; i < m->new_count; i++)
        printf("%s %llu", i == 0 ? " and" : "", (unsigned long long)m->new_members[i]);
    if (m->learner != 0)
        printf(" learner %llu", (unsigned long long)m->learner);
    printf("\n");
}

void rep_sim_record(struct rep_sim *sim, uint64_t owner, const struct membership *membership)
{
    uint32_t at = sim->record_count++;

    if (sim->record_count > sim->record_capacity) {
        sim->record_capacity = sim->record_capacity > 0 ? sim->record_capacity * 2 : 16;
        sim->records = mem_realloc(sim->records, sim->record_capacity * sizeof sim->records[0]);
    }
    sim->records[at] = (struct rep_record){
        .generation = 1, .epoch = at + 1, .owner = owner, .membership = *membership
    };
    sim->serving_ms = sim->now_ms;
    trace_record(sim);
    for (uint32_t i = 0; i < sim->node_count; i++)
        if (!sim->nodes[i].blind)
            later(sim, &sim->nodes[i], SIM_RECORD,
                  sim_random_between(&sim->random, 1, sim->faults.delay_ms_max), at);
}

void rep_sim_init(struct rep_sim *sim, uint64_t seed, uint32_t node_count)
{
    CHECK(node_count <= SIM_NODES_MAX);
    *sim = (struct rep_sim){ .node_count = node_count };
    sim->random.state = seed;
    sim->limits = rep_limits_default();
    sim->limits.heartbeat_ms = 30;
    sim->limits.retry_ms = 60;
    sim->faults = (struct sim_faults){ .delay_ms_max = 1, .sync_ms_max = 1 };
    for (uint32_t i = 0; i < node_count; i++) {
        sim->nodes[i].id = i + 1;
        rep_sim_restart(sim, i + 1);
    }
}

void rep_sim_deinit(struct rep_sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        rep_free(sim->nodes[i].rep);
        sim_disk_deinit(&sim->nodes[i].disk);
        sim_disk_deinit(&sim->nodes[i].lost);
    }
    sim_queue_deinit(&sim->queue);
    rep_out_deinit(&sim->out);
    free(sim->records);
    free(sim->committed);
    *sim = (struct rep_sim){ 0 };
}
