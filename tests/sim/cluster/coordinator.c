/* Coordinators: the production core, an election by lease, transactions whose answers are lost or
 * that commit late, calls to nodes. What coordinator/io does. */
#include <stdio.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/faults/wrong.h"
#include "tests/sim/model/definition.h"
#include "tests/sim/servers/request.h"
#include "tests/sim/sim.h"

#define LATE_POLICY_MS   2000u
#define POLICY_BRANCH    1009u /* Above all versions of a run. */
#define TICK_MS          50u
#define LEASE_TTL_MS     1500u
#define TXN_TIMEOUT_MS   500u
#define ASK_MS           3u
#define CLOCK_AHEAD_MS   5000u /* Each one's clock is so far ahead of the one before. */
#define REPLY_HEAD_BYTES 17u
#define CHECK_EVERY      4u /* Steps of one coordinator, from one look at all of it to the next. */

static void carry_out(struct sim *sim, uint32_t place);

/* No cut may ever say that something was doubled or lost: nothing is. */
static void look_at_audit(struct sim *sim, struct sim_coord *c)
{
    struct coord_stats stats;

    coord_stats_get(c->core, &stats);
    if (stats.audit_violations > 0 && !sim->damaged)
        sim_fail(sim, 0, "the audit says that cut %llu does not come to zero",
                 (unsigned long long)stats.audit_cut);
    sim->counts.audit_cuts += stats.audit_cuts - c->audit_cuts;
    c->audit_cuts = stats.audit_cuts;
}

/* Another one may decide: what this one still held would be carried out beside it, or never. */
static void look_at_rest(struct sim *sim, const struct sim_coord *c)
{
    const char *left = coord_is_active(c->core) ? NULL : coord_work_left(c->core);

    if (left != NULL)
        sim_fail(sim, 0, "a coordinator that does not decide still holds %s", left);
}

static void step(struct sim *sim, uint32_t place, struct coord_event event)
{
    struct sim_coord *c = &sim->coords[place];

    event.now_ms = sim->now_ms;
    event.wall_ms = SIM_UNIX_MS + sim->now_ms + sim->clock_ms + place * CLOCK_AHEAD_MS;
    coord_step(c->core, &event, &c->out);
    look_at_rest(sim, c);
    if (++c->steps % CHECK_EVERY == 0)
        coord_check(c->core);
    carry_out(sim, place);
    if (event.type == COORD_CALL_DONE)
        look_at_audit(sim, c);
}

/* ---- repairs ---- */
/* Of a change in which one leaves and none comes; 0: it is no such record. */
static uint64_t who_leaves(const struct shard_record *record)
{
    if (record->phase != SHARD_JOINT || record->new_member_count >= record->member_count)
        return 0;
    for (uint32_t i = 0; i < record->member_count; i++) {
        bool stays = false;
        for (uint32_t j = 0; j < record->new_member_count; j++)
            stays |= record->new_members[j] == record->members[i];
        if (!stays)
            return record->members[i];
    }
    return 0;
}

/* Who is damaged leaves only while all others are there and whole, as far as its coordinator knows
 * when it first says so. */
static void check_repair(struct sim *sim, uint32_t place, const struct coord_write *write)
{
    struct cluster_key_parts parts = cluster_key_parse(SIM_CLUSTER, write->key);
    const struct coord *core = sim->coords[place].core;
    struct shard_record record;

    if (parts.kind != CLUSTER_KEY_SHARD || write->remove ||
        shard_record_decode(write->value, &record, NULL) != ERR_OK || who_leaves(&record) == 0)
        return;
    const struct node_record *leaver = coord_find_node(core, who_leaves(&record));
    const struct shard_record *now = coord_find_shard(core, parts.shard);

    if (now == NULL || now->phase != SHARD_STABLE || leaver == NULL ||
        !node_record_is_damaged(leaver, parts.shard))
        return;
    for (uint32_t i = 0; i < record.new_member_count; i++) {
        const struct node_record *node = coord_find_node(core, record.new_members[i]);
        if (node == NULL || node_record_is_damaged(node, parts.shard))
            sim_fail(sim, parts.shard, "a repair begins while node %u is away or damaged",
                     (uint32_t)record.new_members[i]);
    }
}

static void check_write(struct sim *sim, uint32_t place, const struct coord_write *write)
{
    check_repair(sim, place, write);
    wrong_look_at_write(sim, sim->coords[place].core, write);
    zones_look(sim, place, write);
}

/* It dies between the two halves of a repair: the next one must bring the replica back. */
static void look_at_repairs(struct sim *sim, const struct sim_coord *c)
{
    for (uint32_t i = 0; i < sim->shard_count && c->elected; i++) {
        struct cluster_key wish_key = cluster_key_shard_wish(SIM_CLUSTER, i);
        struct cluster_key key = cluster_key_shard(SIM_CLUSTER, i);
        const struct etcd_kv *wish_kv = etcd_find(sim, cluster_key_slice(&wish_key));
        const struct etcd_kv *kv = etcd_find(sim, cluster_key_slice(&key));
        struct shard_wish wish;
        struct shard_record record;

        if (wish_kv == NULL || kv == NULL ||
            shard_wish_decode(buf_slice(&wish_kv->value), &wish, NULL) != ERR_OK ||
            shard_record_decode(buf_slice(&kv->value), &record, NULL) != ERR_OK)
            continue;
        sim->counts.repairs_resumed +=
            wish.repair != 0 && !shard_record_has_member(&record, wish.repair);
    }
}

/* ---- transactions ---- */
static void txn_encode(const struct coord_txn *txn, struct buf *out)
{
    buf_put_u64(out, txn->ticket);
    buf_put_bytes(out, txn->election_key);
    buf_put_u64(out, (uint64_t)txn->election_revision);
    buf_put_u32(out, txn->write_count);
    for (uint32_t i = 0; i < txn->write_count; i++) {
        const struct coord_write *write = &txn->writes[i];
        buf_put_u8(out, write->remove);
        buf_put_bytes(out, write->key);
        buf_put_bytes(out, write->value);
        buf_put_u64(out, (uint64_t)write->mod_revision);
        buf_put_bytes(out, write->absent_key);
        buf_put_bytes(out, write->after_key);
        buf_put_u64(out, (uint64_t)write->after_revision);
    }
}

static void txn_answer(struct sim *sim, uint32_t place, uint64_t delay_ms, struct buf *bytes)
{
    struct sim_event event = { .kind = EV_TXN_DONE,
                               .node = PROC_COORD + place,
                               .life = sim->coords[place].life,
                               .bytes = *bytes };

    *bytes = (struct buf){ 0 };
    sim_later(sim, delay_ms, &event);
}

/* Nothing is known of it: the answer is a timeout, whatever becomes of the transaction. */
static void txn_unknown(struct sim *sim, uint32_t place, uint64_t ticket)
{
    struct buf bytes = { 0 };

    sim->counts.unknown_txns++;
    buf_put_u64(&bytes, ticket);
    buf_put_u8(&bytes, COORD_TXN_UNKNOWN);
    txn_answer(sim, place, TXN_TIMEOUT_MS, &bytes);
}

/* from: 1 when the coordinator hears the answer. */
static void txn_send(struct sim *sim, uint32_t place, const struct coord_txn *txn)
{
    uint32_t proc = PROC_COORD + place;
    struct sim_event event = { .kind = EV_TXN, .node = PROC_ETCD, .number = proc, .from = 1 };
    uint64_t delay_ms = sim_between(sim, 1, 15);
    bool reached = net_etcd_reachable(sim, proc);
    bool faulty = !sim->healing && sim_chance(sim, 120) && !sim_without(sim, WITHOUT_txns);

    buf_put_u32(&event.bytes, sim->etcd.restores);
    for (uint32_t i = 0; i < txn->write_count && txn->ticket > sim->coords[place].ticket; i++)
        check_write(sim, place, &txn->writes[i]);
    if (txn->ticket > sim->coords[place].ticket)
        sim->coords[place].ticket = txn->ticket;
    txn_encode(txn, &event.bytes);
    if (reached && !faulty) {
        sim_later(sim, delay_ms, &event);
        return;
    }
    txn_unknown(sim, place, txn->ticket);
    event.from = 0;
    /* Half of what was not answered is carried out nevertheless, some of it much later. */
    if (sim_chance(sim, 500)) {
        buf_deinit(&event.bytes);
        return;
    }
    if (!reached || sim_chance(sim, 600)) {
        delay_ms = sim_between(sim, TXN_TIMEOUT_MS, 4000);
        event.from = 2;
    }
    sim_later(sim, delay_ms, &event);
}

static bool write_one(struct sim *sim, struct reader *reader)
{
    bool remove = read_u8(reader) != 0;
    struct slice key = read_bytes(reader, CLUSTER_KEY_SIZE);
    struct slice value = read_bytes(reader, CLUSTER_RECORD_SIZE_MAX);
    int64_t mod_revision = (int64_t)read_u64(reader);
    struct slice absent = read_bytes(reader, CLUSTER_KEY_SIZE);
    struct slice after = read_bytes(reader, CLUSTER_KEY_SIZE);
    int64_t after_revision = (int64_t)read_u64(reader);
    const struct etcd_kv *kv = etcd_find(sim, key);

    if ((kv == NULL ? 0 : kv->mod_revision) != mod_revision)
        return false;
    if (absent.size > 0 && etcd_find(sim, absent) != NULL)
        return false;
    kv = after.size > 0 ? etcd_find(sim, after) : NULL;
    if (after.size > 0 && (kv == NULL || kv->mod_revision != after_revision))
        return false;
    oracle_coord_write(sim, key, value, remove);
    if (remove)
        etcd_remove(sim, key);
    else
        etcd_put(sim, key, value, 0);
    return true;
}

void etcd_coord_txn(struct sim *sim, struct sim_event *event)
{
    struct reader reader = reader_from(buf_slice(&event->bytes));
    uint32_t place = (uint32_t)event->number - PROC_COORD;
    struct buf answer = { 0 };

    if (read_u32(&reader) != sim->etcd.restores) { /* The etcd that it was sent to is no more. */
        if (event->from == 1)
            txn_unknown(sim, place, read_u64(&reader));
        return;
    }
    if (event->from == 2)
        sim->counts.late_txns++;
    buf_put_u64(&answer, read_u64(&reader));
    struct slice election = read_bytes(&reader, CLUSTER_KEY_SIZE);
    int64_t election_revision = (int64_t)read_u64(&reader);
    const struct etcd_kv *kv = etcd_find(sim, election);
    bool deposed = election.size > 0 && (kv == NULL || kv->create_revision != election_revision);
    uint32_t count = deposed ? 0 : read_u32(&reader);

    buf_put_u8(&answer, deposed ? COORD_TXN_DEPOSED : COORD_TXN_ANSWERED);
    etcd_txn_begin(sim);
    for (uint32_t i = 0; i < count; i++)
        buf_put_u8(&answer, write_one(sim, &reader));
    etcd_txn_end(sim);
    CHECK(!reader.bad);
    if (event->from != 1) {
        buf_deinit(&answer);
        return;
    }
    buf_put_u64(&answer, (uint64_t)sim->etcd.revision);
    txn_answer(sim, place, sim_between(sim, 1, 15), &answer);
}

static void on_txn_done(struct sim *sim, uint32_t place, const struct sim_event *event)
{
    struct reader reader = reader_from(buf_slice(&event->bytes));
    struct coord_event done = { .type = COORD_TXN_DONE, .ticket = read_u64(&reader) };
    bool written[COORD_TXN_WRITES_MAX] = { false };

    done.outcome = (enum coord_txn_outcome)read_u8(&reader);
    for (uint32_t i = 0; reader_left(&reader) > 8; i++)
        written[i] = read_u8(&reader) != 0;
    done.written = written;
    if (done.outcome != COORD_TXN_UNKNOWN)
        done.mod_revision = (int64_t)read_u64(&reader);
    CHECK(!reader.bad);
    bool answered = done.outcome != COORD_TXN_UNKNOWN;

    if (answered && done.mod_revision < sim->mirrors[PROC_COORD + place].revision_seen)
        (void)etcd_heard(sim, PROC_COORD + place); /* Before the answer is delivered. */
    step(sim, place, done);
    if (answered)
        etcd_seen(sim, PROC_COORD + place, done.mod_revision);
}

/* ---- calls to nodes ---- */
static void call_failed(struct sim *sim, uint32_t place, uint64_t number, uint64_t delay_ms)
{
    struct sim_event event = { .kind = EV_REPLY,
                               .node = PROC_COORD + place,
                               .life = sim->coords[place].life,
                               .number = number };

    buf_put_u8(&event.bytes, WIRE_UNKNOWN);
    sim_later(sim, delay_ms, &event);
}

/* What a node knows; it draws no random numbers, so that runs without restores stay as they are. */
static void ask_node(struct sim *sim, uint32_t place, const struct coord_call *call)
{
    const struct sim_node *node = node_get(sim, (uint32_t)call->node);
    uint32_t proc = PROC_COORD + place;
    struct sim_event event = {
        .kind = EV_REPLY, .node = proc, .life = sim->coords[place].life, .number = call->call
    };

    if (!node->up || node->paused_until_ms > sim->now_ms || sim->cut[proc][node->id] ||
        sim->cut[node->id][proc]) {
        call_failed(sim, place, call->call, call->timeout_ms);
        return;
    }
    buf_put_u8(&event.bytes, WIRE_OK);
    buf_put_u64(&event.bytes, 0);
    buf_put_u64(&event.bytes, 0);
    restore_status(sim, node, &event.bytes);
    sim_later(sim, ASK_MS, &event);
}

static void call_send(struct sim *sim, uint32_t place, const struct coord_call *call)
{
    if (call->method == METHOD_GET_NODE_STATUS) {
        ask_node(sim, place, call);
        return;
    }
    struct sim_event event = { .kind = EV_CALL, .node = call->node, .number = call->call };

    buf_put_u8(&event.bytes, (uint8_t)(PROC_COORD + place));
    buf_put_u8(&event.bytes, 0);
    buf_put_u64(&event.bytes, sim->coords[place].life);
    buf_put_u32(&event.bytes, call->method);
    buf_put_u32(&event.bytes, call->timeout_ms);
    buf_append(&event.bytes, call->body.data, call->body.size);
    (void)net_send(sim, PROC_COORD + place, &event);
    call_failed(sim, place, call->call, call->timeout_ms);
}

static void carry_out(struct sim *sim, uint32_t place)
{
    struct sim_coord *c = &sim->coords[place];

    for (uint32_t i = 0; i < c->out.txn_count; i++)
        txn_send(sim, place, &c->out.txns[i]);
    for (uint32_t i = 0; i < c->out.call_count; i++)
        call_send(sim, place, &c->out.calls[i]);
    for (uint32_t i = 0; i < c->out.answer_count; i++)
        definition_answered(sim, &c->out.answers[i]);
    coord_out_clear(&c->out);
}

/* Behind status, owner and epoch; empty without an answer. */
static struct slice reply_body(const struct sim_event *event)
{
    if (event->bytes.size <= REPLY_HEAD_BYTES)
        return (struct slice){ 0 };
    return (struct slice){ event->bytes.data + REPLY_HEAD_BYTES,
                           event->bytes.size - REPLY_HEAD_BYTES };
}

static void on_reply(struct sim *sim, uint32_t place, const struct sim_event *event)
{
    step(sim, place,
         (struct coord_event){ .type = COORD_CALL_DONE,
                               .call = event->number,
                               .status = (enum wire_status)event->bytes.data[0],
                               .body = reply_body(event) });
}

static void on_report(struct sim *sim, uint32_t place, const struct sim_event *event)
{
    Holdfast__Internal__V1__ReportOwnerRequest *report =
        holdfast__internal__v1__report_owner_request__unpack(NULL, event->bytes.size,
                                                             event->bytes.data);

    CHECK(report != NULL);
    step(sim, place, (struct coord_event){ .type = COORD_REPORT, .report = report });
    holdfast__internal__v1__report_owner_request__free_unpacked(report, NULL);
}

/* ---- the election ---- */
static void campaign(struct sim *sim, uint32_t place)
{
    struct sim_coord *c = &sim->coords[place];
    struct cluster_key key = cluster_key_election_prefix(SIM_CLUSTER);
    struct coordinator_record self = { 0 };
    struct buf value = { 0 };
    size_t used = strlen(key.text);

    snprintf(self.name, sizeof self.name, "coordinator-%u", place);
    snprintf(self.address, sizeof self.address, "10.0.1.%u:7000", place);
    coordinator_record_encode(&self, &value);
    c->lease = etcd_lease_grant(sim, LEASE_TTL_MS);
    snprintf(key.text + used, sizeof key.text - used, "%llx", (unsigned long long)c->lease);
    memcpy(c->key, key.text, sizeof c->key);
    c->renewed_ms = sim->now_ms;
    etcd_put(sim, cluster_key_slice(&key), buf_slice(&value), c->lease);
    buf_deinit(&value);
}

static void lose(struct sim *sim, uint32_t place)
{
    struct sim_coord *c = &sim->coords[place];

    c->key[0] = '\0';
    if (!c->elected)
        return;
    c->elected = false;
    sim_say(sim, "coord %u  is not elected any more", place);
    step(sim, place, (struct coord_event){ .type = COORD_LOST });
}

/* Who leads is whose key is oldest. Reads etcd itself: a watch that lags changes nothing. */
static void look_at_election(struct sim *sim, uint32_t place)
{
    struct sim_coord *c = &sim->coords[place];
    struct cluster_key prefix = cluster_key_election_prefix(SIM_CLUSTER);
    const struct etcd_kv *first = NULL;
    size_t size = strlen(prefix.text);

    for (uint32_t i = 0; i < sim->etcd.kv_count; i++) {
        const struct etcd_kv *kv = &sim->etcd.kvs[i];
        if (kv->create_revision == 0 || strncmp(kv->key, prefix.text, size) != 0)
            continue;
        if (first == NULL || kv->create_revision < first->create_revision)
            first = kv;
    }
    if (c->elected || first == NULL || strcmp(first->key, c->key) != 0)
        return;
    c->elected = true;
    sim->counts.elections++;
    sim_say(sim, "coord %u  is elected", place);
    step(sim, place,
         (struct coord_event){ .type = COORD_ELECTED,
                               .key = slice_from_text(first->key),
                               .create_revision = first->create_revision });
}

/* A lease that a backup does not know is found out by the next keep-alive; a key under one that
 * it knows may be missing. */
static bool holds_key(const struct sim *sim, const struct sim_coord *c)
{
    return etcd_find(sim, slice_from_text(c->key)) != NULL;
}

static void keep_election(struct sim *sim, uint32_t place)
{
    struct sim_coord *c = &sim->coords[place];

    if (!net_etcd_reachable(sim, PROC_COORD + place)) {
        /* Its lease may be gone: it cannot know. */
        if (sim->now_ms - c->renewed_ms >= LEASE_TTL_MS)
            lose(sim, place);
        return;
    }
    (void)etcd_heard(sim, PROC_COORD + place);
    if (c->key[0] != '\0' && etcd_lease_keep(sim, c->lease) && holds_key(sim, c)) {
        c->renewed_ms = sim->now_ms;
    } else {
        lose(sim, place);
        campaign(sim, place);
    }
    look_at_election(sim, place);
}

/* ---- records ---- */
void coord_changed(struct sim *sim, uint32_t place, const struct etcd_change *change)
{
    if (sim->coords[place].core == NULL)
        return;
    step(sim, place,
         (struct coord_event){ .type = change->create_revision > 0 ? COORD_PUT : COORD_DELETED,
                               .key = buf_slice(&change->key),
                               .value = buf_slice(&change->value),
                               .create_revision = change->create_revision,
                               .mod_revision = change->mod_revision });
}

void coord_rolled_back(struct sim *sim, uint32_t place)
{
    if (sim->coords[place].core != NULL)
        step(sim, place, (struct coord_event){ .type = COORD_HALT });
}

void coord_accepted(struct sim *sim, uint32_t place)
{
    if (sim->coords[place].core != NULL)
        step(sim, place, (struct coord_event){ .type = COORD_RESET });
}

void coord_synced(struct sim *sim, uint32_t place)
{
    if (sim->coords[place].core != NULL)
        step(sim, place, (struct coord_event){ .type = COORD_SYNCED });
}

/* ---- life ---- */
static struct coord_limits limits(void)
{
    struct coord_limits l = coord_limits_default();

    l.placement_settle_ms = 50;
    l.claim_silent_ms = 800;
    l.claim_calm_ms = 1500;
    l.txn_retry_ms = 150;
    l.call_timeout_ms = 600;
    l.call_refused_ms = 500;
    l.rebalance_up_ms = 2500;
    l.load_ask_ms = 400;
    l.load_exchange_ms = 800;
    l.load_floor = 5;
    l.rebalance_shun_ms = 4000;
    l.server_wait_ms = 1500;
    l.server_settle_ms = 200;
    l.server_hold_ms_max = 3000;
    l.server_hold_min = 2;
    l.server_window_ms = 800;
    l.changes_max = 2;
    l.change_ask_ms = 50;
    l.change_lag_entries = 20;
    l.change_silent_ms = 1000;
    l.change_abort_ms = 1200;
    l.repair_wait_ms = 400;
    l.repair_upgrade_ms = 1500;
    l.audit_interval_ms = 400;
    l.audit_timeout_ms = 2000;
    l.define_ask_ms = 3000;
    l.define_write_ms = 2000;
    return l;
}

/* Policies differ: some bind what players have, or may get. The first does not. One version is
 * another policy after etcd was restored. */
static void policy_bind(const struct sim *sim, Holdfast__V1__Policy *policy)
{
    uint64_t generation = etcd_generation(sim);
    uint32_t die = 0;

    policy->mailbox_max = 4;
    if (policy->version == 1)
        return;
    die = op_twist(sim->seed, UINT64_MAX / 2 + policy->version + generation * POLICY_BRANCH);
    policy->mailbox_max = die % 3 == 0 ? 2 : 4 + die % 3;
    policy->items_max = die / 3 % 3 == 0 ? 5 : die / 3 % 3 == 1 ? 12 : 0;
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if (die >> (8 + 2 * i) & 1)
            policy->currencies[i]->max_balance = 60;
        if ((die >> (16 + 2 * i) & 3) == 0)
            policy->currencies[i]->min_balance = -20;
    }
}

static size_t policy_pack(const struct sim *sim, uint8_t *bytes, uint64_t version)
{
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__CurrencyPolicy each[SIM_CURRENCIES];
    Holdfast__V1__CurrencyPolicy *currencies[SIM_CURRENCIES];

    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        holdfast__v1__currency_policy__init(&each[i]);
        each[i].name = text_lend(request_currency(i));
        currencies[i] = &each[i];
    }
    policy.version = version;
    policy.operation_window_ms = 900000;
    if (sim->long_windows && version % 2 == 0) /* Longer and shorter by turns. */
        policy.operation_window_ms += 60000;
    policy.operations_max = 1000;
    policy.n_currencies = SIM_CURRENCIES;
    policy.currencies = currencies;
    policy_bind(sim, &policy);
    return holdfast__v1__policy__pack(&policy, bytes);
}

void coord_start(struct sim *sim, uint32_t place)
{
    struct sim_coord *c = &sim->coords[place];
    struct coord_limits l = limits();
    struct cluster_record initial = {
        .cluster_id = "01890a5d-ac96-774b-bcce-b302099a8057",
        .generation = 1,
        .shard_count = sim->shard_count,
        .replication_factor = sim->replicas,
        .created_by = "sim",
    };
    uint8_t policy[256];

    sim_say(sim, "coord %u  starts", place);
    c->core = coord_new(&(struct coord_options){
        .cluster = SIM_CLUSTER,
        .limits = &l,
        .initial = &initial,
        .initial_policy = { policy, policy_pack(sim, policy, 1) },
    });
    c->key[0] = '\0';
    c->elected = false;
    c->audit_cuts = 0;
    c->ticket = 0;
    c->down_until_ms = 0;
    etcd_mirror_forget(sim, PROC_COORD + place);
    sim_later(
        sim, sim_between(sim, 1, TICK_MS),
        &(struct sim_event){ .kind = EV_COORD_TICK, .node = PROC_COORD + place, .life = c->life });
}

static void count_up(struct sim *sim, const struct sim_coord *c)
{
    struct coord_stats stats;

    coord_stats_get(c->core, &stats);
    sim->counts.claims += stats.claims;
    sim->counts.owners_declined += stats.declined;
    sim->counts.owners_raised += stats.outgrown;
    sim->counts.failovers += stats.failovers;
    sim->counts.evacuations += stats.evacuations;
    sim->counts.clocks_ahead += stats.clocks_ahead;
    sim->counts.restarted_owners += stats.restarts;
    sim->counts.changes_begun += stats.changes_begun;
    sim->counts.changes_done += stats.changes_done;
    sim->counts.changes_aborted += stats.changes_aborted;
    sim->counts.drained += stats.drained;
    sim->counts.exchanges += stats.exchanges;
    sim->counts.repairs_begun += stats.repairs_begun;
    sim->counts.repairs_done += stats.repairs_done;
}

void coord_kill(struct sim *sim, uint32_t place)
{
    struct sim_coord *c = &sim->coords[place];

    if (c->core == NULL)
        return;
    sim_say(sim, "coord %u  dies", place);
    count_up(sim, c);
    look_at_repairs(sim, c);
    c->life++;
    c->paused_until_ms = 0;
    coord_free(c->core);
    coord_out_deinit(&c->out);
    c->core = NULL;
}

/* A call with the policy before this one was stuck somewhere, and comes after it. */
static void policy_late(struct sim *sim, const Holdfast__V1__Policy *before)
{
    uint32_t die = op_twist(sim->seed, UINT64_MAX / 4 + sim->policy_version);
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;

    request.policy = (Holdfast__V1__Policy *)(uintptr_t)before;
    request.generation = etcd_generation(sim);
    request.shard = die % sim->shard_count;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_event event = { .kind = EV_CALL, .node = PROC_NODE + i };
        buf_put_u8(&event.bytes, 0); /* No one waits for the answer. */
        buf_put_u8(&event.bytes, 1);
        buf_put_u64(&event.bytes, 0);
        buf_put_u32(&event.bytes, METHOD_APPLY_POLICY);
        buf_put_u32(&event.bytes, LATE_POLICY_MS);
        request_pack(&request.base, &event.bytes);
        sim_later(sim, 300 + die / 8 % 900, &event);
    }
}

/* A new policy, as a router writes it: the successor of the one that etcd has. */
static void set_policy(struct sim *sim)
{
    struct cluster_key key = cluster_key_policy(SIM_CLUSTER);
    const struct etcd_kv *kv = etcd_find(sim, cluster_key_slice(&key));
    uint8_t bytes[256];

    if (kv == NULL || sim->etcd.down_until_ms > sim->now_ms)
        return;
    Holdfast__V1__Policy *before =
        holdfast__v1__policy__unpack(NULL, kv->value.size, kv->value.data);
    CHECK(before != NULL);
    size_t size = policy_pack(sim, bytes, before->version + 1);
    sim->policy_version++;
    etcd_put(sim, cluster_key_slice(&key), (struct slice){ bytes, size }, 0);
    policy_late(sim, before);
    holdfast__v1__policy__free_unpacked(before, NULL);
}

static void on_tick(struct sim *sim, uint32_t place)
{
    struct coord_event ask;

    keep_election(sim, place);
    step(sim, place, (struct coord_event){ .type = COORD_TICK });
    if (definition_ask(sim, place, &ask))
        step(sim, place, ask);
    if (!sim->quiet && sim_chance(sim, 4) && !sim_without(sim, WITHOUT_policies))
        set_policy(sim);
    sim_later(sim, TICK_MS,
              &(struct sim_event){ .kind = EV_COORD_TICK,
                                   .node = PROC_COORD + place,
                                   .life = sim->coords[place].life });
}

void coord_event(struct sim *sim, struct sim_event *event)
{
    uint32_t place = (uint32_t)event->node - PROC_COORD;

    if (event->kind == EV_RESTART) {
        coord_start(sim, place);
        return;
    }
    if (sim->coords[place].core == NULL)
        return;
    switch (event->kind) {
    case EV_COORD_TICK:
        on_tick(sim, place);
        break;
    case EV_TXN_DONE:
        on_txn_done(sim, place, event);
        break;
    case EV_REPLY:
        on_reply(sim, place, event);
        break;
    case EV_REPORT:
        on_report(sim, place, event);
        break;
    default:
        CHECK(false); /* an event for a coordinator */
    }
}
