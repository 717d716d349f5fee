/* A node: what node/io does with a shard's decisions, against virtual disk, network and etcd. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/shard/read_options.h"
#include "node/core/shard/request_shard.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "tests/sim/faults/wrong.h"
#include "tests/sim/faults/backup.h"
#include "tests/sim/model/goods.h"
#include "tests/sim/cluster/node_claim.h"
#include "tests/sim/favorites/top.h"

#define TICK_MS       30u
#define CHECK_EVERY   64u /* Steps of one shard, from one look at all of it to the next. */
#define LEASE_TTL_MS  2000u
#define LEASE_KEEP_MS 500u
#define NOTE_MS       2000u

struct sim_node *node_get(struct sim *sim, uint32_t proc)
{
    CHECK(proc >= PROC_NODE && proc < PROC_NODE + sim->node_count);
    return &sim->nodes[proc - PROC_NODE];
}

static void node_later(struct sim *sim, const struct sim_node *node, uint64_t delay_ms,
                       struct sim_event event)
{
    event.node = node->id;
    event.life = node->life;
    sim_later(sim, delay_ms, &event);
}

/* ---- calls ---- */
static void send_reply(struct sim *sim, const struct sim_node *node, const struct node_call *call,
                       const struct shard_reply *reply, struct slice body)
{
    static const uint8_t statuses[] = { [REPLY_OK] = WIRE_OK,
                                        [REPLY_REFUSED] = WIRE_REFUSED,
                                        [REPLY_NOT_OWNER] = WIRE_NOT_OWNER,
                                        [REPLY_UNKNOWN] = WIRE_UNKNOWN };
    struct sim_event event = {
        .kind = EV_REPLY,
        .node = call->proc,
        .from = call->send,
        .life = call->proc_life,
        .number = call->number,
    };

    if (call->proc == 0)
        return;
    event.bytes = sim_queue_bytes(&sim->queue);
    buf_put_u8(&event.bytes, statuses[reply->status]);
    buf_put_u64(&event.bytes, reply->owner);
    buf_put_u64(&event.bytes, reply->epoch);
    buf_append(&event.bytes, body.data, body.size);
    bool sent = net_send(sim, node->id, &event);
    if (!sent && call->proc < PROC_COORD)
        node_delivery_failed(sim, call->proc, call->proc_life, call->send, call->number);
    else if (!sent && call->proc >= PROC_ROUTER)
        sim_later(sim, sim_between(sim, 20, 600),
                  &(struct sim_event){ .kind = EV_CALL_FAILED,
                                       .node = call->proc,
                                       .from = call->send,
                                       .number = call->number });
}

static struct node_call *call_find(struct sim_node *node, uint64_t number)
{
    for (uint32_t i = 0; i < NODE_CALLS_MAX; i++) {
        if (node->calls[i].call == number)
            return &node->calls[i];
    }
    return NULL;
}

static void call_end(struct node_call *call)
{
    buf_clear(&call->request);
    call->call = 0;
}

static bool is_read_refused(const struct node_call *call, const struct shard_reply *reply,
                            struct slice body)
{
    if (call->method != METHOD_READ_SETTLED || reply->status != REPLY_REFUSED)
        return false;
    Holdfast__Internal__V1__Refusal *detail =
        holdfast__internal__v1__refusal__unpack(NULL, body.size, body.data);
    CHECK(detail != NULL);
    bool refused = detail->code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_TXN_CONFLICT;
    holdfast__internal__v1__refusal__free_unpacked(detail, NULL);
    return refused;
}

/* Reads and writes that wait for each other: bounded in number and in time, and truly so. */
static void look_at_waiting(struct sim *sim, const struct shard_stats *stats, uint32_t shard)
{
    if (stats->reads_waiting > node_reads_waiting_max(sim))
        sim_fail(sim, shard, "%llu reads wait for transactions",
                 (unsigned long long)stats->reads_waiting);
    if (stats->writes_waiting > SIM_WRITES_WAITING)
        sim_fail(sim, shard, "%llu writes wait for reads",
                 (unsigned long long)stats->writes_waiting);
    if (stats->oldest_write_ms >= SIM_READ_HOLD_MS)
        sim_fail(sim, shard, "a write has waited for reads for %llu ms",
                 (unsigned long long)stats->oldest_write_ms);
}

static void take_replies(struct sim *sim, struct sim_node *node, uint32_t shard,
                         struct shard_out *out)
{
    const struct slot *slot = &node->slots[shard];
    bool turned_away = shard_reads_turned_away(slot->shard) > slot->turned_away;

    for (uint32_t i = 0; i < out->reply_count; i++) {
        const struct shard_reply *reply = &out->replies[i];
        struct node_call *call = call_find(node, reply->call);
        struct slice body = { out->bytes.data + reply->offset, reply->size };
        CHECK(call != NULL);
        if (!turned_away && !sim->damaged && is_read_refused(call, reply, body))
            read_check_refused(sim, call, slot->applied_before);
        oracle_answer(sim, call, reply, body);
        if (reply->status == REPLY_NOT_OWNER || reply->status == REPLY_UNKNOWN)
            sim->counts.deposed_calls++;
        send_reply(sim, node, call, reply, body);
        call_end(call);
    }
}

static uint64_t must_see(const struct sim *sim, const struct node_call *call, struct slice request)
{
    struct read_options options;

    read_options_scan(call->method, request, call->shard, &options);
    if (options.kind != READ_AGED)
        return oracle_acknowledged(sim, call->shard);
    if (options.max_age_ms >= sim->now_ms)
        return 0;
    return oracle_acknowledged_before(sim, call->shard, sim->now_ms - options.max_age_ms);
}

/* Each reply has left; what no call waits with was given back. */
static void give_back_answers(struct sim *sim, struct slot *slot, uint32_t shard,
                              const struct shard_stats *stats)
{
    const struct shard_out *out = &sim->out;

    for (uint32_t i = 0; i < out->reply_count; i++)
        budget_give(&slot->answers, out->replies[i].held);
    if (stats->waiting_calls == 0 && budget_held(&slot->answers) > 0)
        sim_fail(sim, shard, "%llu bytes of answers are held, and no call waits for one",
                 (unsigned long long)budget_held(&slot->answers));
}

static void on_call(struct sim *sim, struct sim_node *node, struct sim_event *event)
{
    struct reader reader = reader_from(buf_slice(&event->bytes));
    struct node_call *call = call_find(node, 0);
    struct refusal refusal = { 0 };

    if (call == NULL)
        return;
    call->proc = read_u8(&reader);
    call->late = read_u8(&reader) != 0;
    call->proc_life = read_u64(&reader);
    call->method = read_u32(&reader);
    uint64_t deadline_ms = sim->now_ms + read_u32(&reader);
    struct slice body = read_raw(&reader, reader_left(&reader));
    call->send = event->from;
    call->number = event->number;
    buf_append(&call->request, body.data, body.size);
    CHECK(request_shard(call->method, body, sim->shard_count, &call->shard, &refusal) == ERR_OK);
    if (node->slots[call->shard].shard == NULL || node->slots[call->shard].damaged) {
        send_reply(sim, node, call, &(struct shard_reply){ .status = REPLY_NOT_OWNER },
                   (struct slice){ 0 });
        call_end(call);
        return;
    }
    call->call = ++sim->calls;
    call->must_see = must_see(sim, call, body);
    call->came_ms = sim->now_ms;
    node_step(sim, node, call->shard,
              &(struct shard_event){ .type = SHARD_CALL,
                                     .call = call->call,
                                     .method = call->method,
                                     .request = body,
                                     .deadline_ms = deadline_ms });
}

/* ---- what a step asks for ---- */
static void sync_begin(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct slot *slot = &node->slots[shard];
    uint32_t count = slot->disk.pending_count;
    uint64_t delay_ms = sim_between(sim, 1, sim->sync_ms_max);

    if (slot->syncing || count == 0)
        return;
    if (node->stalled_until_ms > sim->now_ms)
        delay_ms += node->stalled_until_ms - sim->now_ms;
    slot->syncing = true;
    node_later(sim, node, delay_ms,
               (struct sim_event){ .kind = EV_SYNCED,
                                   .number = slot_number(slot, shard),
                                   .from = slot->disk.pending[count - 1].ticket });
}

static void take_writes(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct rep_out *out = &sim->out.rep;

    for (uint32_t i = 0; i < out->write_count; i++) {
        const struct rep_write *write = &out->writes[i];
        if (write->type == REP_WRITE_TRUNCATE) {
            sim->counts.truncated_entries++;
            sim_say(sim, "node %u   s%u cuts its log back to %llu", node->id, shard,
                    (unsigned long long)write->keep_index);
        }
    }
    sim_disk_write(&node->slots[shard].disk, out->writes, out->write_count);
    out->write_count = 0;
    sync_begin(sim, node, shard);
}

static void send_message(struct sim *sim, struct sim_node *node, const struct rep_send *send)
{
    struct sim_event event = { .kind = EV_REP, .node = send->to, .from = node->id };

    CHECK(send->to >= 1 && send->to <= sim->node_count && send->to != node->id);
    wrong_look_at_part(sim, node, send);
    if (send->message.type == REP_MSG_SEAL && !sim->healing && sim_chance(sim, sim->duel))
        trouble_duel(sim, node->id);
    event.bytes = sim_queue_bytes(&sim->queue);
    rep_message_encode(&send->message, &event.bytes);
    (void)net_send(sim, node->id, &event);
    if (send->message.type == REP_MSG_SEAL_ACK && !send->message.refused && !sim->healing &&
        node->id == sim->duel_voter && send->to == sim->duel_claimant && sim_chance(sim, 700)) {
        sim->duel_voter = 0;
        sim_later(sim, sim_between(sim, 0, 4),
                  &(struct sim_event){ .kind = EV_TROUBLE, .number = node->id });
    }
}

static const char *role_name(enum rep_role role)
{
    static const char *const names[] = {
        "follows", "seals", "adopts", "starts", "OWNS", "damaged"
    };

    return names[role];
}

static void carry_out(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct shard_out *out = &sim->out;
    struct slot *slot = &node->slots[shard];

    if (out->rep.write_count > 0)
        take_writes(sim, node, shard);
    for (uint32_t i = 0; i < out->rep.send_count; i++)
        send_message(sim, node, &out->rep.sends[i]);
    for (uint32_t i = 0; i < out->rep.log_read_count; i++)
        node_read_log(sim, node, shard, &out->rep.log_reads[i]);
    if (out->role_changed)
        sim_say(sim, "node %u   s%u %s, epoch %llu, owner %llu, log %llu, commit %llu", node->id,
                shard, role_name(rep_role(shard_rep(slot->shard))),
                (unsigned long long)rep_epoch(shard_rep(slot->shard)),
                (unsigned long long)rep_owner(shard_rep(slot->shard)),
                (unsigned long long)rep_last_index(shard_rep(slot->shard)),
                (unsigned long long)rep_commit_index(shard_rep(slot->shard)));
    if (out->role_changed && shard_serves(slot->shard)) {
        const struct membership *membership = rep_membership(shard_rep(slot->shard));
        sim->counts.joint_promotions += membership->new_count > 0;
        if (membership->config > sim->served_config[shard])
            sim->served_config[shard] = membership->config;
        oracle_served(sim, shard, rep_epoch(shard_rep(slot->shard)));
        program_look(sim, slot);
    }
    /* Nothing here writes what cannot be read: what meets such a row has lost something before. */
    if (out->unreadable)
        sim_fail(sim, shard, "node %u met a row or an entry that cannot be read", node->id);
    if (out->rep.too_new)
        program_meets_later(sim, node, shard);
    if (shard_serves(slot->shard) &&
        shard_applied_index(slot->shard) < rep_commit_index(shard_rep(slot->shard)))
        oracle_stalled(sim, shard); /* It waits for rows. */
    oracle_look(sim, node, shard);
    if (out->rep.diverged && !sim->twins_met && !wrong_shard(sim, shard))
        sim_fail(sim, shard, "node %u sees that outcomes differ", node->id);
    struct shard_stats stats;
    shard_stats_get(slot->shard, &stats);
    look_at_waiting(sim, &stats, shard);
    take_replies(sim, node, shard, out);
    give_back_answers(sim, slot, shard, &stats);
    node_deliver(sim, node, shard, out);
    if (out->need.key_count > 0 || out->need.range_count > 0)
        node_load(sim, node, shard, &out->need);
    node_snapshot(sim, node, shard, &out->snapshot);
    shard_out_clear(out);
}

void node_step(struct sim *sim, struct sim_node *node, uint32_t shard, struct shard_event *event)
{
    struct slot *slot = &node->slots[shard];

    CHECK(node->up && slot->shard != NULL);
    event->now_ms = sim->now_ms;
    event->unix_ms = sim_unix_ms(sim, node);
    slot->applied_before = shard_applied_index(slot->shard);
    slot->turned_away = shard_reads_turned_away(slot->shard);
    uint64_t last = rep_last_index(shard_rep(slot->shard));
    bool served = shard_serves(slot->shard);
    shard_step(slot->shard, event, &sim->out);
    if (++slot->steps % CHECK_EVERY == 0)
        shard_check(slot->shard);
    if (node->full && served && shard_serves(slot->shard) &&
        rep_last_index(shard_rep(slot->shard)) > last)
        sim_fail(sim, shard, "node %u proposes although its disk is full", node->id);
    carry_out(sim, node, shard);
    wrong_look(sim, node, shard);
    if (slot->shard == NULL)
        return;
    if (shard_wants_flush(slot->shard) && !slot->flush_due) {
        slot->flush_due = true;
        node_later(sim, node, sim_chance(sim, 800) ? 0 : 1,
                   (struct sim_event){ .kind = EV_FLUSH, .number = slot_number(slot, shard) });
    }
    backup_follow(sim, node, shard);
}

/* ---- etcd ---- */
static void put_record(struct sim *sim, struct sim_node *node, int64_t lease)
{
    struct node_record record = { .replica_id = node->id, .started_at_ms = node->started_ms };
    struct cluster_key key = cluster_key_node(SIM_CLUSTER, node->id);
    struct buf value = { 0 };

    snprintf(record.name, sizeof record.name, "node-%u", node->id);
    snprintf(record.address, sizeof record.address, "10.0.0.%u:7000", node->id);
    snprintf(record.peer_address, sizeof record.peer_address, "10.0.0.%u:7001", node->id);
    snprintf(record.version, sizeof record.version, "sim-%u", node->apply_version_max);
    if (sim->zones > 0)
        snprintf(record.zone, sizeof record.zone, "z%u", node->id % sim->zones);
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        if (node->slots[i].damaged)
            node_record_mark_damaged(&record, i);
        else if (node->slots[i].shard != NULL &&
                 rep_is_quarantined(shard_rep(node->slots[i].shard)))
            node_record_mark_quarantined(&record, i);
    }
    if (sim->mirrors[node->id].rolled_back)
        record.doubts = sim->mirrors[node->id].generation;
    node_record_encode(&record, &value);
    node->lease = lease;
    node->record_changed = false;
    etcd_put(sim, cluster_key_slice(&key), buf_slice(&value), lease);
    if (node->registered_revision == 0)
        node->registered_revision = sim->etcd.revision;
    buf_deinit(&value);
    sim_say(sim, "node %u   registers", node->id);
}

static void keep_lease(struct sim *sim, struct sim_node *node)
{
    if (sim->now_ms < node->renew_next_ms || !net_etcd_reachable(sim, node->id))
        return;
    node->renew_next_ms = sim->now_ms + LEASE_KEEP_MS;
    if (etcd_heard(sim, node->id) && sim->now_ms >= node->note_next_ms) {
        node->note_next_ms = sim->now_ms + NOTE_MS;
        node->noted_revision = sim->mirrors[node->id].revision_seen;
        node->noted_generation = sim->mirrors[node->id].generation;
    }
    if (node->lease == 0 || !etcd_lease_keep(sim, node->lease))
        put_record(sim, node, etcd_lease_grant(sim, LEASE_TTL_MS));
    else if (node->record_changed)
        put_record(sim, node, node->lease);
}

static void sort_ids(const uint64_t *ids, uint32_t count, uint64_t *ret_ids)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        while (at > 0 && ret_ids[at - 1] > ids[i]) {
            ret_ids[at] = ret_ids[at - 1];
            at--;
        }
        ret_ids[at] = ids[i];
    }
}

static struct rep_record rep_record_of(const struct shard_record *record)
{
    struct rep_record out = {
        .generation = record->generation,
        .epoch = record->epoch,
        .owner = record->owner,
        .membership = { .config = record->config,
                        .count = record->member_count,
                        .new_count = record->new_member_count,
                        .learner = record->learner },
    };

    sort_ids(record->members, record->member_count, out.membership.members);
    sort_ids(record->new_members, record->new_member_count, out.membership.new_members);
    return out;
}

static void make_shard(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct shard_image image = { .number = shard,
                                 .rep = { .votes = true, .log_first_index = 1 },
                                 .answers = &node->slots[shard].answers };
    struct shard_limits limits = node_limits(sim, node);

    budget_init(&node->slots[shard].answers, SIM_ANSWERS_BYTES);
    CHECK(shard_new(node->id, &limits, node_handlers(), &image, &node->slots[shard].shard) ==
          ERR_OK);
    shard_set_full(node->slots[shard].shard, node->full ? SIM_FULL_TEXT : NULL);
    node->slots[shard].commit_seen = 0;
    node->slots[shard].applied_seen = 0;
}

/* As the registry's range of all that comes after the registration, some time; but of an etcd that
 * went back nothing is followed. */
static void confirm_records(struct sim *sim, struct sim_node *node)
{
    if (sim->mirrors[node->id].rolled_back)
        return;
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        struct cluster_key key = cluster_key_shard(SIM_CLUSTER, i);
        const struct etcd_kv *kv = etcd_find(sim, cluster_key_slice(&key));
        struct shard_record record;

        if (!node->slots[i].damaged || node->slots[i].shard == NULL || kv == NULL)
            continue;
        CHECK(etcd_shard_record(sim, i, &kv->value, &record) == ERR_OK);
        struct rep_record rep = rep_record_of(&record);
        rep.confirmed = true;
        node_step(sim, node, i, &(struct shard_event){ .type = SHARD_RECORD, .record = &rep });
    }
}

void node_changed(struct sim *sim, struct sim_node *node, const struct etcd_change *change)
{
    struct cluster_key_parts parts = cluster_key_parse(SIM_CLUSTER, buf_slice(&change->key));
    struct shard_record record;

    if (!node->up || parts.kind != CLUSTER_KEY_SHARD || change->create_revision == 0)
        return;
    CHECK(etcd_shard_record(sim, parts.shard, &change->value, &record) == ERR_OK);
    struct rep_record rep = rep_record_of(&record);
    rep.confirmed =
        node->registered_revision > 0 && change->mod_revision > node->registered_revision;
    node->owners[parts.shard] = (uint32_t)record.owner;
    if (node->slots[parts.shard].installing)
        return;
    if (node->slots[parts.shard].shard == NULL) {
        if (!membership_names(&rep.membership, node->id))
            return;
        make_shard(sim, node, parts.shard);
    }
    node_step(sim, node, parts.shard,
              &(struct shard_event){ .type = SHARD_RECORD, .record = &rep });
}

/* ---- events ---- */
static void on_tick(struct sim *sim, struct sim_node *node)
{
    node_look_at_space(sim, node);
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        struct slot *slot = &node->slots[i];
        if (slot->shard == NULL)
            continue;
        node_step(
            sim, node, i,
            &(struct shard_event){ .type = SHARD_TICK, .pulled_ms = node_pulled_ms(node, i) });
        if (slot->shard == NULL)
            continue;
        if (sim_chance(sim, sim->evict)) {
            struct shard_stats before, after;
            shard_stats_get(slot->shard, &before);
            shard_evict(slot->shard, sim_between(sim, 0, 6000));
            shard_stats_get(slot->shard, &after);
            sim->counts.evictions += after.state.evictions - before.state.evictions;
        }
        if (sim_chance(sim, sim->checkpoint))
            node_checkpoint(sim, node, i);
    }
    if (sim_chance(sim, 8 + sim->checkpoint / 2))
        node_db_flush(sim, node);
    keep_lease(sim, node);
    if (node->registered_revision > 0 && net_etcd_reachable(sim, node->id) && sim_chance(sim, 30))
        confirm_records(sim, node);
    node_claim(sim, node);
    node_pull(sim, node);
    node_later(sim, node, TICK_MS, (struct sim_event){ .kind = EV_NODE_TICK });
}

static void on_message(struct sim *sim, struct sim_node *node, const struct sim_event *event)
{
    struct rep_message message;

    node->heard_ms[event->from] = sim->now_ms;
    node->closed_ms[event->from] = 0;
    CHECK(rep_message_decode(buf_slice(&event->bytes), &message) == ERR_OK);
    if (node->slots[message.shard].shard != NULL)
        node_step(sim, node, message.shard,
                  &(struct shard_event){
                      .type = SHARD_RECEIVE, .from = event->from, .message = &message });
    rep_message_deinit(&message);
}

/* The last few, in no order: see rot_promise. */
static void note_promise(struct slot *slot)
{
    const struct promise *last = &slot->disk.promise;

    if (last->epoch > slot->promised.epoch)
        slot->promised = *last;
    if (last->epoch > slot->promises[(slot->promise_count + SIM_PROMISES - 1) % SIM_PROMISES].epoch)
        slot->promises[slot->promise_count++ % SIM_PROMISES] = *last;
}

static void on_synced(struct sim *sim, struct sim_node *node, uint32_t shard,
                      const struct sim_event *event)
{
    struct slot *slot = &node->slots[shard];

    sim_disk_sync(&slot->disk, event->from);
    note_promise(slot);
    slot->syncing = false;
    node_step(sim, node, shard,
              &(struct shard_event){ .type = SHARD_PERSISTED, .ticket = event->from });
    if (slot->shard != NULL)
        sync_begin(sim, node, shard);
}

static void on_flush(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    node->slots[shard].flush_due = false;
    if (shard_wants_flush(node->slots[shard].shard))
        node_step(sim, node, shard, &(struct shard_event){ .type = SHARD_FLUSH });
}

/* Asked by a shard whose place a snapshot has taken since. */
static bool is_outlived(const struct sim_node *node, const struct sim_event *event)
{
    bool of_slot = (event->kind >= EV_FLUSH && event->kind <= EV_CHECKPOINT);

    return of_slot && event->number >> 16 != node->slots[event->number & 0xffff].installs;
}

void node_event(struct sim *sim, struct sim_event *event)
{
    struct sim_node *node = node_get(sim, (uint32_t)event->node);
    uint32_t shard = (uint32_t)event->number & 0xffff;

    if (event->kind == EV_RESTART) {
        node_start(sim, node);
        return;
    }
    if (!node->up || is_outlived(node, event))
        return;
    switch (event->kind) {
    case EV_REP:
        on_message(sim, node, event);
        break;
    case EV_CALL:
        on_call(sim, node, event);
        break;
    case EV_REPLY:
    case EV_CALL_FAILED:
        node_delivery_event(sim, node, event);
        break;
    case EV_CANCEL:
        node_cancel(sim, node, event);
        break;
    case EV_NODE_TICK:
        on_tick(sim, node);
        break;
    case EV_FLUSH:
        on_flush(sim, node, shard);
        break;
    case EV_SYNCED:
        on_synced(sim, node, shard, event);
        break;
    case EV_LOAD:
    case EV_ROWS:
        node_rows_arrive(sim, node, event);
        break;
    case EV_LOG_READ:
        node_log_arrives(sim, node, event);
        break;
    case EV_PAGE:
        node_page_arrives(sim, node, shard, event);
        break;
    case EV_STORED:
        node_rows_stored(sim, node, shard, event);
        break;
    case EV_INSTALL:
        node_install(sim, node, shard, event);
        break;
    case EV_CHECKPOINT:
        node_checkpoint_done(sim, node, shard);
        break;
    case EV_DAMAGE:
        sim->counts.damage_stops++;
        sim_say(sim, "node %u   stops: its disk is damaged", node->id);
        node->salvage |= event->from == 0;
        node_crash(sim, node);
        sim_later(sim, 100, &(struct sim_event){ .kind = EV_RESTART, .node = node->id });
        break;
    case EV_TOO_OLD:
        program_too_old(sim, node);
        break;
    default:
        CHECK(false); /* an event for a node */
    }
}

/* ---- life ---- */
void node_start(struct sim *sim, struct sim_node *node)
{
    CHECK(!node->up && !node->gone);
    node->up = true;
    node->started_ms = SIM_UNIX_MS + sim->now_ms;
    node->lease = 0;
    node->registered_revision = 0;
    node->record_changed = false;
    node->renew_next_ms = 0;
    for (uint32_t i = 0; i < PROCS; i++) {
        node->heard_ms[i] = sim->now_ms;
        node->closed_ms[i] = 0;
        node->reported_ms[i] = 0;
    }
    for (uint32_t i = 0; i < sim->node_count; i++)
        sim->nodes[i].closed_ms[node->id] = 0;
    sim_say(sim, "node %u   starts", node->id);
    program_choose(sim, node);
    for (uint32_t i = 0; i < sim->shard_count; i++)
        node->salvage |= rot_in_timers(&node->slots[i].db);
    rot_salvage(sim, node);
    node_recover(sim, node);
    etcd_mirror_forget(sim, node->id);
    sim->mirrors[node->id].revision_seen = node->noted_revision;
    sim->mirrors[node->id].generation = node->noted_generation;
    node_later(sim, node, sim_between(sim, 1, TICK_MS), (struct sim_event){ .kind = EV_NODE_TICK });
}

void node_crash(struct sim *sim, struct sim_node *node)
{
    CHECK(node->up);
    sim_say(sim, "node %u   crashes", node->id);
    node->up = false;
    node->life++;
    node->full = false;
    node->paused_until_ms = 0;
    for (uint32_t i = 0; i < NODE_CALLS_MAX; i++)
        call_end(&node->calls[i]);
    node_pull_stop(node);
    node_disk_crash(sim, node);
    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (!sim->cut[node->id][sim->nodes[i].id])
            sim->nodes[i].closed_ms[node->id] = sim->now_ms;
    }
    routers_node_closed(sim, node->id);
}

void node_free(struct sim_node *node)
{
    node_pull_stop(node);
    for (uint32_t i = 0; i < SIM_SHARDS_MAX; i++) {
        struct slot *slot = &node->slots[i];
        if (slot->checkpoint_open)
            buf_deinit(&slot->checkpoint.meta_row);
        shard_free(slot->shard);
        sim_disk_deinit(&slot->disk);
        db_deinit(&slot->db);
        db_deinit(&slot->flushed);
        db_deinit(&slot->view);
        db_deinit(&slot->staged);
        free(slot->forgotten);
    }
    for (uint32_t i = 0; i < NODE_CALLS_MAX; i++)
        buf_deinit(&node->calls[i].request);
}
