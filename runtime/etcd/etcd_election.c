#include "runtime/etcd/etcd_election.h"

#include <inttypes.h>
#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_lease.h"
#include "runtime/etcd/etcd_mirror.h"
#include "runtime/etcd/etcd_client.h"

enum { CANDIDATES_MAX = 64, REMOVAL_AGAIN_MS = 200 };

/* A key under the prefix. */
struct candidate {
    struct buf key;
    struct buf value;
    struct etcd_kv kv; /* Points into the two above. */
};

struct etcd_election {
    struct etcd *etcd;
    struct etcd_election_options options;
    struct buf prefix;
    struct buf value;
    struct buf key;          /* Empty until the lease is granted. */
    int64_t create_revision; /* Of our key; 0 while etcd does not have it. */
    struct etcd_lease *lease;
    struct etcd_mirror *mirror;
    int64_t first_revision; /* The first that create_revision had: older keys may be removed. */
    struct etcd_call *call;
    struct etcd_call *removal; /* Of a predecessor's key. */
    struct etcd_timer judge;   /* After a burst of changes, not amid it. */
    struct candidate *candidates[CANDIDATES_MAX];
    uint32_t candidate_count;
    int64_t leader_revision; /* Create revision of the leader last told of; 0 for none. */
    bool leader;
    bool busy; /* In a callback: free later. */
    bool stopped;
};

static void lease_begin(struct etcd_election *election);
static void key_write(struct etcd_election *election);

static void judge_soon(struct etcd_election *election)
{
    etcd_timer_start(&election->etcd->timers, &election->judge, 0);
}

/* ---- Candidates ---- */

static void candidate_free(struct candidate *candidate)
{
    buf_deinit(&candidate->key);
    buf_deinit(&candidate->value);
    free(candidate);
}

static uint32_t candidate_position(const struct etcd_election *election, struct slice key)
{
    uint32_t i = 0;

    while (i < election->candidate_count && !slice_equal(election->candidates[i]->kv.key, key))
        i++;
    return i;
}

static void candidate_remove(struct etcd_election *election, uint32_t at)
{
    if (at >= election->candidate_count)
        return;
    candidate_free(election->candidates[at]);
    election->candidates[at] = election->candidates[--election->candidate_count];
}

static void candidate_put(void *context, const struct etcd_kv *kv)
{
    struct etcd_election *election = context;

    candidate_remove(election, candidate_position(election, kv->key));
    if (election->candidate_count == CANDIDATES_MAX) {
        log_event(election->etcd->log, LOG_ERROR, "etcd.election_full",
                  LOG_N("candidates_max", CANDIDATES_MAX));
        return;
    }
    struct candidate *candidate = mem_zalloc(sizeof *candidate);
    buf_append(&candidate->key, kv->key.data, kv->key.size);
    buf_append(&candidate->value, kv->value.data, kv->value.size);
    candidate->kv = *kv;
    candidate->kv.key = buf_slice(&candidate->key);
    candidate->kv.value = buf_slice(&candidate->value);
    election->candidates[election->candidate_count++] = candidate;
    judge_soon(election);
}

static void candidate_deleted(void *context, struct slice key, int64_t revision)
{
    struct etcd_election *election = context;

    candidate_remove(election, candidate_position(election, key));
    /* Ours, by someone else's hand: take a new place at the end of the row. */
    if (election->create_revision != 0 && revision > election->create_revision &&
        slice_equal(key, buf_slice(&election->key)))
        election->create_revision = 0;
    judge_soon(election);
}

static void candidates_synced(void *context, int64_t revision)
{
    struct etcd_election *election = context;
    bool there =
        candidate_position(election, buf_slice(&election->key)) < election->candidate_count;

    /* Deleted before its put was answered. */
    if (!there && revision >= election->create_revision)
        election->create_revision = 0;
    judge_soon(election);
}

static void candidates_reset(void *context)
{
    struct etcd_election *election = context;

    while (election->candidate_count > 0)
        candidate_remove(election, 0);
    judge_soon(election);
}

static const struct candidate *candidate_first(const struct etcd_election *election)
{
    const struct candidate *first = NULL;

    for (uint32_t i = 0; i < election->candidate_count; i++) {
        const struct candidate *c = election->candidates[i];
        if (first == NULL || c->kv.create_revision < first->kv.create_revision)
            first = c;
    }
    return first;
}

/* ---- Earlier lives of this candidate ---- */

static void predecessor_removed(void *context, err e, const struct etcd_txn_result *result)
{
    struct etcd_election *election = context;

    (void)e; /* If it still stands, the next judgement tries again; the mirror tells when not. */
    (void)result;
    election->removal = NULL;
    etcd_timer_start(&election->etcd->timers, &election->judge, REMOVAL_AGAIN_MS);
}

static const struct candidate *predecessor_find(const struct etcd_election *election)
{
    for (uint32_t i = 0; i < election->candidate_count; i++) {
        const struct candidate *c = election->candidates[i];

        if (c->kv.create_revision < election->first_revision &&
            election->options.is_predecessor(election->options.context, &c->kv))
            return c;
    }
    return NULL;
}

/* One at a time; a key that was written again meanwhile stays. */
static void predecessors_remove(struct etcd_election *election)
{
    if (election->options.is_predecessor == NULL || election->first_revision == 0 ||
        election->removal != NULL)
        return;
    const struct candidate *old = predecessor_find(election);

    if (old == NULL)
        return;
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_compare(txn, old->kv.key, ETCD_CREATE_REVISION, ETCD_EQUAL, old->kv.create_revision);
    etcd_txn_delete(txn, ETCD_THEN, old->kv.key);
    log_event(election->etcd->log, LOG_INFO, "etcd.election_predecessor",
              LOG_N("create_revision", old->kv.create_revision));
    if (etcd_txn(election->etcd, txn, predecessor_removed,
                 &(struct etcd_wait){ 0, election, &election->removal }) != ERR_OK)
        etcd_timer_start(&election->etcd->timers, &election->judge, REMOVAL_AGAIN_MS);
    etcd_txn_free(txn);
}

/* ---- Judging who leads ---- */

static void step_down(struct etcd_election *election)
{
    if (!election->leader)
        return;
    election->leader = false;
    log_event(election->etcd->log, LOG_WARN, "etcd.election_lost",
              LOG_N("create_revision", election->create_revision));
    election->options.lost(election->options.context);
}

static void step_up(struct etcd_election *election)
{
    election->leader = true;
    log_event(election->etcd->log, LOG_INFO, "etcd.elected",
              LOG_N("create_revision", election->create_revision));
    election->options.elected(election->options.context, buf_slice(&election->key),
                              election->create_revision);
}

static void tell_leader(struct etcd_election *election, const struct candidate *first)
{
    int64_t revision = first != NULL ? first->kv.create_revision : 0;

    if (revision == election->leader_revision)
        return;
    election->leader_revision = revision;
    if (election->options.leader_changed != NULL)
        election->options.leader_changed(election->options.context,
                                         first != NULL ? &first->kv : NULL);
}

static void judge(struct etcd_election *election)
{
    const struct candidate *first = candidate_first(election);
    bool ours = first != NULL && election->create_revision != 0 &&
                first->kv.create_revision == election->create_revision &&
                slice_equal(first->kv.key, buf_slice(&election->key)) && election->lease != NULL &&
                etcd_lease_held(election->lease);

    if (election->leader && !ours)
        step_down(election);
    if (!election->stopped)
        tell_leader(election, first);
    if (!election->stopped && ours && !election->leader)
        step_up(election);
}

static void judge_due(struct etcd_timer *timer)
{
    struct etcd_election *election = CONTAINER_OF(timer, struct etcd_election, judge);

    key_write(election);
    predecessors_remove(election);
    election->busy = true;
    judge(election);
    election->busy = false;
    if (election->stopped)
        free(election);
}

/* ---- Our own key and its lease ---- */

static void key_written(void *context, err e, const struct etcd_txn_result *result)
{
    struct etcd_election *election = context;

    election->call = NULL;
    if (e != ERR_OK)
        return; /* The lease is gone: its own callback says so and begins again. */
    if (result->succeeded) {
        election->create_revision = result->header.revision;
    } else if (result->op_count == 1 && result->ops[0].range.kv_count == 1) {
        /* An earlier attempt of ours: the key carries our lease's id. */
        election->create_revision = result->ops[0].range.kvs[0].create_revision;
    }
    if (election->first_revision == 0)
        election->first_revision = election->create_revision;
    judge_soon(election);
}

/* Puts our key unless it is there, or on its way. */
static void key_write(struct etcd_election *election)
{
    struct slice key = buf_slice(&election->key);

    if (election->call != NULL || election->create_revision != 0 || key.size == 0)
        return;
    struct etcd_txn *txn = etcd_txn_new();
    etcd_txn_compare(txn, key, ETCD_CREATE_REVISION, ETCD_EQUAL, 0);
    etcd_txn_put(txn, ETCD_THEN, key, buf_slice(&election->value), etcd_lease_id(election->lease));
    etcd_txn_get(txn, ETCD_ELSE, key);
    err e = etcd_txn_until_definite(election->etcd, txn, key_written,
                                    &(struct etcd_wait){ 0, election, &election->call });
    etcd_txn_free(txn);
    if (e != ERR_OK)
        etcd_timer_start(&election->etcd->timers, &election->judge, 1000);
}

static void key_forget(struct etcd_election *election)
{
    if (election->call != NULL)
        etcd_call_cancel(election->call);
    election->call = NULL;
    election->create_revision = 0;
    buf_clear(&election->key);
}

static void lease_changed(void *context, struct etcd_lease *lease, enum etcd_lease_state state)
{
    struct etcd_election *election = context;

    if (state == ETCD_LEASE_HELD) {
        if (election->key.size == 0) {
            buf_append(&election->key, election->prefix.data, election->prefix.size);
            buf_printf(&election->key, "%" PRIx64, (uint64_t)etcd_lease_id(lease));
        }
        judge_soon(election);
        return;
    }
    election->busy = true;
    step_down(election);
    election->busy = false;
    if (election->stopped) {
        free(election);
        return;
    }
    if (state == ETCD_LEASE_LOST) {
        key_forget(election);
        etcd_lease_stop(lease, false);
        lease_begin(election);
    }
}

static void lease_begin(struct etcd_election *election)
{
    struct etcd_lease_options options = { .ttl_ms = election->options.ttl_ms,
                                          .changed = lease_changed,
                                          .context = election };

    CHECK(etcd_lease_start(election->etcd, &options, &election->lease) == ERR_OK);
}

/* ---- Public ---- */

err etcd_election_start(struct etcd *etcd, const struct etcd_election_options *options,
                        struct etcd_election **ret_election)
{
    struct etcd_mirror_options mirror = { .prefix = options->prefix,
                                          .put = candidate_put,
                                          .deleted = candidate_deleted,
                                          .synced = candidates_synced,
                                          .reset = candidates_reset };

    if (options->prefix.size == 0 || options->prefix.size > ETCD_KEY_MAX - 16 ||
        options->value.size > ETCD_VALUE_MAX)
        return ERR_INVALID;
    if (options->ttl_ms < 1000 || options->ttl_ms > 600000)
        return ERR_INVALID;
    struct etcd_election *election = mem_zalloc(sizeof *election);
    mirror.context = election;
    election->etcd = etcd;
    election->options = *options;
    election->judge.fire = judge_due;
    buf_append(&election->prefix, options->prefix.data, options->prefix.size);
    buf_append(&election->value, options->value.data, options->value.size);
    etcd->users++;
    CHECK(etcd_mirror_start(etcd, &mirror, &election->mirror) == ERR_OK);
    lease_begin(election);
    *ret_election = election;
    return ERR_OK;
}

void etcd_election_stop(struct etcd_election *election)
{
    struct etcd *etcd = election->etcd;

    CHECK(!election->stopped);
    election->stopped = true;
    key_forget(election);
    if (election->removal != NULL)
        etcd_call_cancel(election->removal);
    etcd_timer_stop(&etcd->timers, &election->judge);
    etcd_mirror_stop(election->mirror);
    etcd_lease_stop(election->lease, true);
    while (election->candidate_count > 0)
        candidate_remove(election, 0);
    buf_deinit(&election->prefix);
    buf_deinit(&election->value);
    buf_deinit(&election->key);
    etcd->users--;
    if (!election->busy)
        free(election);
}
