/*
 * sim: a whole Holdfast cluster in one process: nodes over the production cores (node/core,
 * node/rpc), coordinators over coordinator/core, routers over router/core, and around them a
 * virtual network, disks, etcd, clocks and game servers. DESIGN section 13.
 *
 * One seed is one run. Everything follows from the seed: one queue of events in virtual time, one
 * stream of random numbers, no clock, no thread, no order that depends on an address.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include "coordinator/core/coord.h"
#include "node/core/replication/sim/sim_disk.h"
#include "node/core/replication/sim/sim_queue.h"
#include "node/core/shard/shard.h"
#include "router/core/retry.h"
#include "router/core/txn_read.h"
#include "tests/sim/op.h"
#include "tests/sim/events/event_counts.h"
#include "tests/sim/favorites/favorite_counts.h"
#include "tests/sim/switches.h"

#define SIM_CLUSTER     "sim"
#define SIM_UNIX_MS     1790000000000u
#define SIM_NODES_MAX   7u
#define SIM_SHARDS_MAX  4u
#define SIM_COORDS_MAX  2u
#define SIM_ROUTERS_MAX 2u
#define SIM_SERVERS_MAX 4u
#define SIM_PLAYERS_MAX 10u
#define SIM_TELL_MS     500u /* Of watermarks: runs are short. */
#define SIM_CURRENCIES  4u
#define SIM_TEXT_BYTES  640u
#define SIM_PROMISES    4u

/* Processes by number: nodes are their replica ids. */
enum {
    PROC_ETCD = 0,
    PROC_NODE = 1, /* .. SIM_NODES_MAX */
    PROC_COORD = 8,
    PROC_ROUTER = 12,
    PROC_SERVER = 16,
    PROCS = 20
};

enum sim_kind {
    EV_REP,         /* node <- node: a replication message                     */
    EV_CALL,        /* node <- router, coordinator                             */
    EV_REPLY,       /* router, coordinator <- node                             */
    EV_CANCEL,      /* node <- router: its caller has gone                     */
    EV_NODE_TICK,   /*                                                         */
    EV_FLUSH,       /* the round of a shard ends; number: shard                */
    EV_SYNCED,      /* writes of a shard are durable; number: shard            */
    EV_LOAD,        /* rows are read and given back; number: shard             */
    EV_ROWS,        /* rows read earlier are given back; number: shard         */
    EV_LOG_READ,    /* number: shard                                           */
    EV_PAGE,        /* a part of a snapshot is read; number: shard             */
    EV_STORED,      /* rows of a snapshot are put aside; number: shard         */
    EV_INSTALL,     /* a step of a snapshot's installation; number: shard      */
    EV_CHECKPOINT,  /* a checkpoint's rows are in the database; number: shard  */
    EV_RESTART,     /*                                                         */
    EV_DAMAGE,      /* what cannot be read; from: an entry of the log. The node stops */
    EV_TOO_OLD,     /* its program cannot apply what its owner sends: it stops */
    EV_MIRROR,      /* changes of etcd reach a process                         */
    EV_ETCD_TICK,   /* leases lapse                                            */
    EV_TXN,         /* a coordinator's transaction reaches etcd                */
    EV_TXN_DONE,    /* its answer, or the timeout; number: ticket              */
    EV_COORD_TICK,  /*                                                         */
    EV_REPORT,      /* coordinator <- node                                     */
    EV_ASK,         /* router <- game server; number: op                       */
    EV_READ_AGAIN,  /* router: the pause of a read is over; number: its place, from: its name */
    EV_WAKE,        /* router: the pause of a call is over; number: call       */
    EV_CALL_FAILED, /* router: an attempt ended without an answer; number: call */
    EV_ANSWER,      /* game server <- router; number: op                       */
    EV_GIVE_UP,     /* game server: its own patience is over; number: op       */
    EV_ACT,         /* game server does something                              */
    EV_RENEW,       /* game server's heartbeat                                 */
    EV_ATTACH,      /* a late (re)registration reaches etcd                    */
    EV_RESTORE,     /* etcd is backed up, restored, or that is accepted        */
    EV_MEMBERS,     /* an operator, or a node that comes or goes for good       */
    EV_ROT,         /* a bit flips on some disk                                */
    EV_TROUBLE,     /* number: a node that crashes, or PROC_COORD; 0: anything */
    EV_KINDS
};

/* What has been exercised. A zero over a whole batch of seeds fails it. */
/* clang-format off */
#define SIM_REACH(X)                                                                               \
    X(promotions) X(truncated_entries) X(seals) X(aborted_answers) X(steals) X(waits_granted)      \
    X(expiries) X(expired_refused) X(duplicates) X(mismatches) X(versions_held) X(versions_refused) X(pruned_ops) X(keys_pruned) X(keys_reused) X(callers_told) X(callers_again) X(ops_expired) X(pending_below)        \
    X(checkpoints) X(checkpoints_failed) X(db_flushes) X(log_cuts) X(evictions) X(need_rounds)     \
    X(stale_rows) X(log_reads) X(unknown_txns) X(late_txns) X(stale_writes_refused)                \
    X(grants_freed) X(read_rounds) X(refused_funds) X(refused_locked) X(refused_session_lost)      \
    X(refused_final) X(attempts_raised) X(unknown_told) X(retries) X(claims) X(failovers) X(owners_declined) X(owners_raised)          \
    X(restarted_owners) X(elections) X(reattached) X(committed) X(reads_checked) X(reads_aged) X(renewals)       \
    X(get_operations) X(policies) X(policies_late) X(policies_again) X(policies_bind) X(edits_refused) X(pages_told) X(invalid_refused) X(channels_told) X(contained) X(released) X(refused_contained) X(deposed_calls) X(late_packets_applied) X(shards_damaged)       \
    X(damage_stops) X(snapshots) X(snapshot_views) X(snapshot_parts) X(snapshots_abandoned)        \
    X(installs_cut) X(promotions_resumed) X(changes_begun) X(changes_done) X(changes_aborted)      \
    X(drained) X(exchanges) X(replicas_dropped) X(joint_promotions)                                \
    X(repairs_begun) X(repairs_done) X(repairs_resumed) X(damaged_dropped) X(promises_rotten)      \
    X(salvages) X(learners_rotten) X(transfers_local) X(transfers_opened) X(transfers_settled)     \
    X(transfers_refunded) X(transfers_cancelled) X(transfers_across_owners) X(credits_repeated)    \
    X(told_at_decision) X(cuts_frozen) X(settles_of_several) X(credits_below_watermark) X(watermarks)             \
    X(inbox_drops) X(mails_claimed) X(mails_returned) X(seals_too_late) X(conservation_checks)     \
    X(in_flight_checks) X(items_spent) X(txn_items_spent) X(reversals) X(refused_items)            \
    X(refused_reversed) X(traces) X(reservations) X(posted) X(voided) X(reservations_expired)      \
    X(refused_closed) X(refused_expired) X(closed_just_before) X(refused_before_due)               \
    X(txns_local) X(txns_opened) X(txns_committed) X(txns_refused) X(txns_conflicted) X(refused_again) \
    X(txns_sealed) X(txns_seals_late) X(txn_late_votes) X(txn_poisoned) X(txns_across_owners)      \
    X(txn_conflicts_told) X(txn_escrow_checks) X(txn_reads) X(txn_reads_again)                     \
    X(txn_reads_of_trades) X(txn_reads_busy) X(txn_reads_registered) X(txn_reads_drained)          \
    X(txn_reads_settled) X(txn_reads_paused) X(reads_waited) X(reads_timed_out)                    \
    X(reads_turned_away) X(writes_yielded) X(prepares_later) X(trading_reads) X(trading_swaps)     \
    X(audit_cuts) X(audit_cuts_carried) X(audit_cuts_awaited) X(audit_cuts_corrected) \
    X(receipts_local) X(receipts_asked) X(receipts_bound) X(receipts_rejected)                     \
    X(receipts_cancelled) X(receipts_paid) X(receipts_refused) X(receipts_put_off)                 \
    X(receipts_across_owners) X(receipts_told)                                                     \
    X(definitions_made) X(definitions_made_again) X(definitions_rolled_back) X(definitions_deleted) \
    X(definitions_in_force) X(definitions_told_again) X(definitions_unknown)                        \
    X(definitions_conflicted) X(definitions_swept) X(defines) X(defines_late)                       \
    X(calls_left) X(calls_abandoned) X(calls_cancelled) X(queues) X(stragglers) X(comers_zoned) X(ranges_slow) X(swaps_large) FAVORITE_REACH(X) EVENT_REACH(X) X(servers_held) X(refused_full) X(evacuations) X(promotions_upgraded)        \
    X(programs_refused) X(programs_stopped) X(etcd_rolled_back) X(rollbacks_noticed)               \
    X(restores_accepted) X(restores_interrupted) X(restores_refused) X(restores_of_members)
/* What a build without the means to damage records cannot do, it need not have done. */
#ifdef HOLDFAST_DEBUG_INJECT
#define SIM_INJECTED(X) X(damages) X(rebuilds_mended)
#else
#define SIM_INJECTED(X)
#endif
/* Troubles made. */
#define SIM_FAULTS(X)                                                                              \
    X(messages_lost) X(messages_doubled) X(packets_late) X(crashes) X(torn_crashes)                \
    X(database_lost) X(pauses) X(partitions) X(one_way_cuts) X(isolations) X(clock_skews)          \
    X(clock_jumps) X(etcd_outages) X(etcd_cuts) X(leases_revoked) X(watch_delays)                  \
    X(watch_resets) X(coordinators_killed) X(servers_killed) X(servers_paused) X(answers_lost)     \
    X(disk_stalls) X(duels) X(deposals) X(replicas_isolated) X(unseatings) X(stale_reads)          \
    X(bits_flipped) X(outcomes_spoilt) X(quarantines) X(servers_flapped) X(credits_late) SIM_INJECTED(X) X(nodes_come)     \
    X(nodes_gone) X(nodes_removed) X(nodes_drained) X(shards_moved) X(disks_filled)                        \
    X(upgrades) X(programs_taken_back)
/* clang-format on */

struct sim_counts {
#define SIM_FIELD(name) uint64_t name;
    SIM_REACH(SIM_FIELD)
    SIM_FAULTS(SIM_FIELD)
#undef SIM_FIELD
    uint64_t events, trading_busy, replication_messages;
};

/* ---- etcd ---- */
struct etcd_kv {
    char key[CLUSTER_KEY_SIZE];
    struct buf value;
    int64_t create_revision; /* 0: absent. */
    int64_t mod_revision;
    int64_t lease;
};

struct etcd_change {
    struct buf key, value;
    int64_t create_revision, mod_revision; /* create_revision 0: deleted. */
};

struct etcd_lease {
    int64_t id;
    uint64_t ttl_ms;
    uint64_t deadline_ms;
    bool gone;
};

/* What a backup holds. */
struct etcd_backup {
    struct etcd_kv *kvs;
    uint32_t kv_count;
    struct etcd_lease *leases;
    uint32_t lease_count;
    int64_t revision;
    uint32_t change_count;
};

struct etcd_sim {
    struct etcd_decoded *decoded; /* By shard. */
    struct etcd_backup backup;    /* kvs NULL: there is none. */
    uint32_t restores;
    struct etcd_kv *kvs;
    uint32_t kv_count;
    struct etcd_change *changes;
    uint32_t change_count, change_capacity;
    struct etcd_lease *leases;
    uint32_t lease_count;
    int64_t revision;
    uint64_t generation; /* Of the cluster; 0: it has no record. */
    bool in_txn, txn_wrote;
    uint64_t down_until_ms;
};

struct etcd_known {
    char key[CLUSTER_KEY_SIZE];
    int64_t revision; /* Of what was told last. */
    bool gone;
};

/* One process's copy of etcd: how far it has followed. */
struct etcd_mirror {
    uint32_t cursor;
    bool fresh;    /* Read everything first. */
    bool awaiting; /* An EV_MIRROR is on its way. */
    uint64_t held_until_ms;
    struct etcd_known *known; /* Keys told, also of their deletion. */
    uint32_t known_count;
    int64_t revision_seen;
    uint64_t generation; /* Of the cluster, the highest seen. */
    uint32_t restores;   /* Of etcd, when it was last heard of. */
    bool rolled_back;    /* Until the restore is accepted. */
};

/* ---- nodes ---- */
/* Shared by the copies of a table; never changed. */
struct db_row {
    uint32_t refs;
    bool rotten; /* A bit of it is flipped: reading it stops the node, which then salvages. */
    struct blob *value;
    uint32_t key_size;
    uint8_t key[];
};

/* Rows of one shard, by rising key. */
struct db_rows {
    struct db_row **rows;
    uint32_t count, capacity;
    struct buf meta;
    struct sim_checkpoint at; /* What `meta` says, once a checkpoint has written it. */
    uint64_t version;         /* Copies of one table have one. */
};

struct slot {
    struct shard *shard;
    struct sim_disk disk;   /* The log; its checkpoint says where `flushed` stands. */
    struct db_rows db;      /* As written by checkpoints. */
    struct db_rows flushed; /* As of the last flush: survives a crash for sure. */
    struct shard_checkpoint checkpoint;
    struct sim_checkpoint checkpoint_at;
    bool checkpoint_open;
    bool flush_due, syncing;
    uint64_t commit_seen, applied_seen;
    /* By player: the last entry about it that is applied here, and the end of the log just then. */
    uint64_t touch_seen[SIM_PLAYERS_MAX], touch_last[SIM_PLAYERS_MAX];
    uint64_t applied_before, turned_away; /* Before the last step. */
    uint64_t steps;
    uint64_t truncated_seen;
    struct budget answers; /* Of this shard alone. */
    struct db_rows view;   /* What a snapshot is read from. */
    struct db_rows staged; /* What one is put together in. */
    uint64_t installs;     /* Of snapshots in this life: what was asked before is not answered. */
    struct hash128 *forgotten; /* What a removed replica held beyond what was known as committed: */
    uint32_t forgotten_count;  /* it may have said so, and what it said counts in a joint phase. */
    bool resumes;              /* The shard that takes the place may go on with its promotion. */
    bool installing;           /* There is no shard meanwhile. */
    bool reset_due;            /* Durable, with a switch to a snapshot: the log is to be emptied. */
    uint64_t rotten_index;     /* The entry in the log with a flipped bit; 0: none. */
    struct dot rotten_dot; /* ... is this one: another may take the place of one that was cut. */
    bool marked;           /* Durable, until the log is emptied: damage was found. */
    bool damaged, wrong;   /* Found at a start: `shard` waits to be removed. wrong.c. */
    struct promise promises[SIM_PROMISES]; /* Made before; what rot may leave of them. */
    uint32_t promise_count;
    struct promise promised; /* The greatest that was ever durable. */
};

struct node_call {
    uint64_t call; /* 0: free. */
    uint32_t proc; /* 0: no caller waits for the answer. */
    uint64_t proc_life, send, number;
    uint32_t method, shard;
    uint64_t must_see; /* Acknowledged when it came in, or its greatest age before that. */
    uint64_t came_ms;
    struct buf request;
    bool late;
};

#define NODE_CALLS_MAX 256u

struct sim_node {
    uint32_t id;
    uint64_t life;
    bool up;
    bool came, gone, removed; /* For good. */
    bool salvage;             /* Durable: its database was found damaged. */
    uint64_t paused_until_ms;
    uint64_t stalled_until_ms; /* Its disk. */
    uint64_t full_until_ms;    /* The same: it has no room. */
    bool filled;               /* It had none once. */
    bool full;                 /* Its shards were told so. */
    uint64_t slow_until_ms;    /* What other nodes send it comes late. */
    int64_t skew_ms;
    uint32_t apply_version_max; /* Of its program (program.c). */
    bool refused_program;       /* The earlier one stopped: it starts with the later one. */
    bool ran_later;             /* In some life. */
    struct slot slots[SIM_SHARDS_MAX];
    struct node_call calls[NODE_CALLS_MAX];
    uint64_t heard_ms[PROCS];
    uint64_t closed_ms[PROCS]; /* Since when a peer's link is closed; 0: open. */
    uint64_t reported_ms[PROCS];
    uint64_t declined_ms, outgrown_ms;
    int64_t lease;
    uint64_t renewed_ms;
    uint64_t renew_next_ms;
    uint64_t started_ms;
    int64_t noted_revision; /* IDENTITY: node/io/cluster/etcd_note.c. */
    uint64_t noted_generation, note_next_ms;
    int64_t registered_revision;     /* Of etcd, when this life registered first; 0: it did not. */
    bool record_changed;             /* It is to be put again. */
    uint32_t owners[SIM_SHARDS_MAX]; /* Of shards, as it has heard from etcd; 0: never. */
    struct puller *puller;           /* node_pull.c; NULL: none yet. */
};

/* ---- coordinators ---- */
struct sim_coord {
    struct coord *core;
    struct coord_out out;
    uint64_t life;
    uint64_t paused_until_ms;
    uint64_t down_until_ms;
    int64_t lease;
    char key[CLUSTER_KEY_SIZE];
    uint64_t renewed_ms;
    bool elected;
    uint64_t audit_cuts; /* Counted by this life, as of the last look. */
    uint64_t steps;
    uint64_t ticket; /* The last one sent; one that is not above it is sent again. */
};

/* ---- routers ---- */
struct sim_call {
    bool used;
    uint32_t generation;
    uint32_t router, shard, method, op;
    uint64_t op_call;
    struct retry_call retry;
    uint64_t send; /* On its way; 0: none. */
    struct buf body;
    uint32_t reading, part; /* The read that it is a part of: place plus one; 0: none. */
};

#define ROUTER_CALLS_MAX    512u
#define ROUTER_READINGS_MAX 64u
#define SIM_READ_PLAYERS    3u

/* One TransactionService.ReadPlayers: see router/rpc/players/transaction_read_players.c. */
struct sim_reading {
    bool used;
    uint32_t op;
    uint64_t op_call, deadline_ms;
    uint64_t number; /* Names it to the nodes. */
    bool trading;    /* It began then (trade.c). */
    struct txn_read core;
    uint32_t players[SIM_READ_PLAYERS];
    uint64_t must_see[SIM_READ_PLAYERS]; /* Of each player's shard: acknowledged when it came. */
    struct sim_call *calls[SIM_READ_PLAYERS]; /* Open ones. */
};

struct sim_router {
    struct route_target map[SIM_SHARDS_MAX];
    struct sim_call calls[ROUTER_CALLS_MAX];
    uint32_t free_from;
    struct sim_reading readings[ROUTER_READINGS_MAX];
};

/* ---- game servers ---- */
struct held {
    bool held;
    uint64_t fence;
    char token[64];
};

struct sim_server {
    uint64_t life;
    bool up;
    uint64_t paused_until_ms;
    bool registered;
    bool attaching; /* A registration or re-attachment is on its way. */
    struct incarnation incarnation;
    int64_t lease;
    char lease_text[24];
    struct held held[SIM_PLAYERS_MAX];
};

struct oracle;
struct definitions_sim;
struct model_rule;
struct workload;

struct sim {
    uint64_t seed;
    struct sim_switches switches;
    uint32_t troubles;  /* Numbered so far. */
    bool stopped;       /* After switches.events_max. */
    uint64_t *progress; /* Told of every event; NULL: none asks. */
    struct sim_random random;
    struct sim_queue queue;
    uint64_t now_ms;
    bool verbose;
    uint32_t node_count, shard_count, coord_count, router_count, server_count, player_count;
    struct sim_node *nodes;
    struct sim_coord coords[SIM_COORDS_MAX];
    struct sim_router *routers;
    uint32_t receipts; /* Numbered so far. */
    uint32_t player_shard[SIM_PLAYERS_MAX];
    struct sim_server servers[SIM_SERVERS_MAX];
    struct etcd_sim etcd;
    struct etcd_mirror mirrors[PROCS];
    bool cut[PROCS][PROCS];
    uint64_t cut_until_ms[PROCS]; /* From etcd. */
    uint64_t clock_ms;            /* Added to every wall clock. */
    struct sim_op *ops;
    uint32_t op_count, op_capacity;
    uint64_t calls, sends, readings;
    uint64_t db_versions;
    struct shard_out out;
    struct oracle *oracle;
    struct workload *workload; /* What game servers ask for. */
    /* Knobs of the run. */
    uint32_t drop, twice, late, duel; /* per thousand */
    uint32_t delay_ms_max, sync_ms_max, load_ms_max, evict, trouble_ms;
    uint32_t checkpoint, answer_lost; /* per thousand */
    uint32_t lag_ms_max, raise_ms, part_bytes;
    /* variety.c: per thousand calls are given up early, messages come very late; nodes are in so
     * many zones, 0: they do not say; ranges are read so slowly, 0: as rows; one of so many wishes
     * holds a player back for review. */
    uint32_t hurry, straggle, zones, range_ms_max, reviews;
    bool large_swaps, long_windows;
    bool backups;                   /* Owners are armed for a backup: backup.c. */
    uint64_t backup_ms;             /* When the next one is taken. */
    uint32_t replicas, first_nodes; /* Of node_count nodes the others may come later. */
    uint32_t members_ms;            /* Members change about so often; 0: never. */
    uint32_t members_made;
    uint32_t restore_ms; /* etcd is restored from a backup about so often; 0: never. */
    uint32_t restores_made;
    bool restored;   /* And not accepted yet. */
    uint32_t rot_ms; /* Bits flip about so often, more than otherwise; 0: they do not. */
    uint64_t rots_made, snapshots_learned;
    uint32_t repaired_node,
        repaired_shard;                 /* The last one that dropped a damaged replica; 0: none. */
    uint64_t repair_ms[SIM_SHARDS_MAX]; /* When a coordinator last wished a repair, */
    uint64_t wish_gone_ms[SIM_SHARDS_MAX];  /* and last took a wish away. */
    uint64_t served_config[SIM_SHARDS_MAX]; /* The latest under which an owner served. */
    uint64_t duel_next_ms;
    uint32_t duel_voter, duel_claimant; /* Of the last duel. */
    uint64_t deadline_ms;
    uint64_t act_ms;
    uint32_t policy_version;
    struct definitions_sim *definitions; /* definition.c; NULL: none yet. */
    struct favorites_sim *favorites;     /* favorite.c; NULL: none yet. */
    struct events_sim *event_log;        /* event.c; likewise. */
    struct consumers_sim *consumers;     /* consumer.c; likewise. */
    struct metadata_sim *metadata;       /* metadata.c; likewise. */
    bool damaged;                        /* damage.c: the models know nothing of what follows. */
    bool doubled, twins_met; /* The entry that doubles an item did so; both came to one player. */
    uint8_t doubled_uid[ITEM_UID_BYTES];
    bool healing, quiet; /* quiet: game servers ask for nothing new, */
    bool trading;        /* but trades (trade.c). */
    struct sim_counts counts;
    struct hash128 digest;              /* Of every event. */
    uint32_t failed_shard, wrong_shard; /* wrong.c: the second from 1; 0: none. */
    uint32_t told_shard;                /* Of which a server was told something last. */
    char failure[SIM_TEXT_BYTES];       /* Empty: nothing is broken. */
};

/* ---- run.c, sim.c ---- */
struct sim *sim_new(uint64_t seed, const struct sim_switches *switches, bool verbose);
bool sim_without(const struct sim *sim, enum sim_without kind);
void sim_free(struct sim *sim);
/* The whole run; sim->failure says what broke. */
void sim_run(struct sim *sim);
/* The first broken promise is kept. */
void sim_fail(struct sim *sim, uint32_t shard, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A line of the story; only if verbose. */
void sim_say(const struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t sim_between(struct sim *sim, uint64_t low, uint64_t high);
bool sim_chance(struct sim *sim, uint32_t per_thousand);
void sim_later(struct sim *sim, uint64_t delay_ms, const struct sim_event *event);
uint64_t sim_unix_ms(const struct sim *sim, const struct sim_node *node);

/* ---- variety.c ---- */
void variety_choose(struct sim *sim);

/* ---- zones.c ---- */
/* A coordinator's write, by what it has heard: who comes to a shard comes from a zone that the
 * others use least. */
void zones_look(struct sim *sim, uint32_t coordinator, const struct coord_write *write);

/* ---- net.c ---- */
/* False: it is lost. Takes over event->bytes. */
bool net_send(struct sim *sim, uint32_t from, struct sim_event *event);
bool net_etcd_reachable(const struct sim *sim, uint32_t proc);
/* The life of a process, for events that die with it. */
uint64_t proc_life(const struct sim *sim, uint32_t proc);

/* ---- etcd.c ---- */
const struct etcd_kv *etcd_find(const struct sim *sim, struct slice key);
void etcd_put(struct sim *sim, struct slice key, struct slice value, int64_t lease);
void etcd_remove(struct sim *sim, struct slice key);
/* Puts and removals between them have one revision. */
void etcd_txn_begin(struct sim *sim);
void etcd_txn_end(struct sim *sim);
int64_t etcd_lease_grant(struct sim *sim, uint64_t ttl_ms);
/* False: it is gone. */
bool etcd_lease_keep(struct sim *sim, int64_t lease);
void etcd_lease_revoke(struct sim *sim, int64_t lease);
void etcd_tick(struct sim *sim);
/* Tells every process that follows of what is new, some time. */
void etcd_announce(struct sim *sim);
void etcd_mirror_deliver(struct sim *sim, uint32_t proc);
void etcd_mirror_reset(struct sim *sim, uint32_t proc);
void etcd_back_up(struct sim *sim);
/* etcd is as it was at the backup. */
void etcd_restore(struct sim *sim);
/* The process hears from etcd: false while it refuses it, since it knows a newer one. */
bool etcd_heard(struct sim *sim, uint32_t proc);
/* An answer told it so. */
void etcd_seen(struct sim *sim, uint32_t proc, int64_t revision);
uint64_t etcd_generation(const struct sim *sim);
void etcd_init(struct sim *sim);
/* As shard_record_decode. */
err etcd_shard_record(const struct sim *sim, uint32_t shard, const struct buf *value,
                      struct shard_record *ret_record);
/* The process begins again: it knows nothing. */
void etcd_mirror_forget(struct sim *sim, uint32_t proc);
void etcd_deinit(struct sim *sim);

/* ---- node.c, node_disk.c ---- */
struct sim_node *node_get(struct sim *sim, uint32_t proc);
void node_start(struct sim *sim, struct sim_node *node);
void node_crash(struct sim *sim, struct sim_node *node);
void node_event(struct sim *sim, struct sim_event *event);
void node_changed(struct sim *sim, struct sim_node *node, const struct etcd_change *change);
void node_step(struct sim *sim, struct sim_node *node, uint32_t shard, struct shard_event *event);
void node_free(struct sim_node *node);
void node_load(struct sim *sim, struct sim_node *node, uint32_t shard, const struct need *need);
void node_rows_arrive(struct sim *sim, struct sim_node *node, struct sim_event *event);
void node_read_log(struct sim *sim, struct sim_node *node, uint32_t shard,
                   const struct rep_log_read *read);
void node_log_arrives(struct sim *sim, struct sim_node *node, struct sim_event *event);
/* Begins a checkpoint; it ends by EV_CHECKPOINT. */
void node_checkpoint(struct sim *sim, struct sim_node *node, uint32_t shard);
void node_checkpoint_done(struct sim *sim, struct sim_node *node, uint32_t shard);
void node_db_flush(struct sim *sim, struct sim_node *node);
void node_checkpoint_of(const struct db_rows *db, struct sim_checkpoint *ret_checkpoint);
/* Of its log or its database. */
void node_stop_on_damage(struct sim *sim, const struct sim_node *node, bool of_log);
/* False: its program is too old for what it finds. */
bool node_recover_slot(struct sim *sim, struct sim_node *node, uint32_t shard);
void node_recover(struct sim *sim, struct sim_node *node);
/* What a crash leaves on the disk. */
void node_disk_crash(struct sim *sim, struct sim_node *node);
void db_copy(struct db_rows *to, const struct db_rows *from);
void db_put(struct db_rows *db, struct slice key, const struct blob *value);
/* Place of the first row above `key`. */
uint32_t db_place_after(const struct db_rows *db, struct slice key);
#define SIM_READS_WAITING       16u /* At once in one shard... */
#define SIM_READS_WAITING_FEW   2u  /* ... and in each fifth run, so that some are turned away. */
#define SIM_WRITES_WAITING      48u
#define SIM_READ_HOLD_MS        800u /* Networks are slow here. */
#define SIM_ANSWERS_BYTES       1048576u
#define SIM_ANSWERS_ROUND_BYTES 256u /* So that reads wait for their turn. */
#define SIM_FULL_TEXT           "the disk is full"
#define SIM_APPLY_VERSION_MAX   (APPLY_VERSION + 1u) /* Of the later program. */
/* program.c: at a start; when the chosen one refuses what it finds; when it meets what it cannot
 * apply: it stops; when a shard serves. */
void program_choose(struct sim *sim, struct sim_node *node);
void program_refused(struct sim *sim, struct sim_node *node);
void program_too_old(struct sim *sim, struct sim_node *node);
void program_look(struct sim *sim, const struct slot *slot);
void program_meets_later(struct sim *sim, const struct sim_node *node, uint32_t shard);
void program_stop(struct sim *sim, const struct sim_node *node);
uint32_t node_reads_waiting_max(const struct sim *sim);
struct shard_limits node_limits(const struct sim *sim, const struct sim_node *node);
/* An event's number: the shard, and which of its installations it belongs to. */
uint64_t slot_number(const struct slot *slot, uint32_t shard);
/* ---- node_cancel.c ---- */
void node_cancel(struct sim *sim, struct sim_node *node, const struct sim_event *event);
/* ---- node_snapshot.c ---- */
void node_snapshot(struct sim *sim, struct sim_node *node, uint32_t shard,
                   const struct snapshot_actions *actions);
void node_page_arrives(struct sim *sim, struct sim_node *node, uint32_t shard,
                       const struct sim_event *request);
void node_rows_stored(struct sim *sim, struct sim_node *node, uint32_t shard,
                      const struct sim_event *event);
void node_install(struct sim *sim, struct sim_node *node, uint32_t shard,
                  const struct sim_event *event);
/* Step 7 of an installation; at a start too, if a crash came before it. */
void node_log_reset(struct slot *slot);
/* ---- rot.c ---- */
void rot_choose(struct sim *sim);
void rot_event(struct sim *sim, const struct sim_event *event);
/* The node has just installed a snapshot: if it learns the shard, a bit of it may flip at once. */
void rot_learner(struct sim *sim, const struct sim_node *node, uint32_t shard);
/* Flips a bit of the node's log or database, if any may be, and perhaps lets it start again. */
void rot_flip(struct sim *sim, struct sim_node *node);
/* The replica has a flipped bit, found or not; some has. */
bool slot_rots(const struct slot *slot);
/* Of the log, where it stands. */
bool rot_is_at(const struct slot *slot, uint64_t index);
bool rot_anywhere(const struct sim *sim);
/* What a start finds: an entry whose checksum is wrong; a timer's row that cannot be read. */
bool rot_in_log(struct sim *sim, struct slot *slot);
bool rot_in_timers(const struct db_rows *db);
/* A start after the database was found damaged: shards whose rows cannot all be read are lost, and
 * marked so; also those in whose place a snapshot was put just then. */
void rot_salvage(struct sim *sim, struct sim_node *node);
/* What is left of the promises in a log that was found damaged. */
void rot_promise(struct sim *sim, struct slot *slot);
/* ---- node_delivery.c ---- */
struct delivery_packet {
    uint32_t to, shard;
    uint64_t token;
    struct slice request;
};
/* Sends what a step of `shard` has for other shards. */
void node_deliver(struct sim *sim, struct sim_node *node, uint32_t shard,
                  const struct shard_out *out);
/* An answer (EV_REPLY), or none (EV_CALL_FAILED). */
void node_delivery_event(struct sim *sim, struct sim_node *node, const struct sim_event *event);
/* Some time later the node hears that nothing is known of a batch. */
void node_delivery_failed(struct sim *sim, uint32_t proc, uint64_t life, uint64_t token,
                          uint64_t shard);
const struct db_row *db_find(const struct db_rows *db, struct slice key);
void db_deinit(struct db_rows *db);

/* ---- coordinator.c ---- */
void coord_start(struct sim *sim, uint32_t place);
void coord_kill(struct sim *sim, uint32_t place);
void coord_event(struct sim *sim, struct sim_event *event);
void coord_changed(struct sim *sim, uint32_t place, const struct etcd_change *change);
void coord_synced(struct sim *sim, uint32_t place);
/* It knows a newer etcd; and that this one was accepted. */
void coord_rolled_back(struct sim *sim, uint32_t place);
void coord_accepted(struct sim *sim, uint32_t place);
void etcd_coord_txn(struct sim *sim, struct sim_event *event);

/* ---- router.c, router_read.c ---- */
/* The call is dropped, and the node that has it is told, some time. */
void router_caller_gone(struct sim *sim, const struct sim_op *op);
void router_event(struct sim *sim, struct sim_event *event);
/* Begins a call to the shard that its request names, until `deadline_ms`. `wanted` has router,
 * method, op, op_call, reading and part. NULL: too many are open. It may be over on return. */
struct sim_call *router_call(struct sim *sim, const struct sim_call *wanted, struct slice body,
                             uint64_t deadline_ms);
/* Forgets an open call; what it has on its way comes to nothing. */
void router_call_drop(struct sim_call *call);
/* ... and its node is told, some time. */
void router_call_cancel(struct sim *sim, struct sim_call *call);
/* A read is given up, with all that it has on its way; there is no answer. */
void router_read_stop(struct sim *sim, uint32_t router, uint32_t place);
/* Tells a game server. `code` 0: done. */
void router_answer(struct sim *sim, const struct sim_call *call, Holdfast__V1__ErrorCode code,
                   struct slice body);
void router_read(struct sim *sim, uint32_t router, const struct sim_event *event);
/* Its pause is over. */
void router_read_resume(struct sim *sim, uint32_t router, const struct sim_event *event);
/* A part of a read has ended. */
void router_read_take(struct sim *sim, const struct sim_call *call, Holdfast__V1__ErrorCode code,
                      struct slice body);
void router_accepted(struct sim *sim, uint32_t place);
void router_changed(struct sim *sim, uint32_t place, const struct etcd_change *change);
/* Fails every attempt that waits for `node`. */
void routers_node_closed(struct sim *sim, uint32_t node);
uint32_t routers_open(const struct sim *sim);

/* ---- server.c, server_lease.c, server_op.c, request.c ---- */
void server_start(struct sim *sim, uint32_t place);
void server_event(struct sim *sim, struct sim_event *event);
void server_renew(struct sim *sim, uint32_t place);
void server_attach(struct sim *sim, struct sim_event *event);
/* An event of a game server in this life. Takes over its bytes. */
void server_later(struct sim *sim, uint32_t place, uint64_t delay_ms, struct sim_event event);
/* What else a request has; no die is thrown for it, so that a kept seed stays what it was. */
uint32_t op_twist(uint64_t seed, uint64_t number);
struct sim_op *op_new(struct sim *sim, uint32_t server, uint32_t player, uint32_t method);
/* Sends an op to some router. */
void op_call(struct sim *sim, struct sim_op *op);
void op_call_later(struct sim *sim, const struct sim_op *op, uint64_t delay_ms);
void sim_op_id(struct sim *sim, char ret_id[48]);
void player_entity(uint32_t player, char ret_entity[32]);

/* ---- server_wish.c ---- */
/* An op on what a player has, not called yet; NULL: nothing comes to mind. */
struct sim_op *server_wish(struct sim *sim, uint32_t server, uint32_t player);
/* Asks one shard for the history of an item, or who is there. */
void server_trace(struct sim *sim, uint32_t server);
/* ... of a list for its next page; `op` may move. */
void server_ask_on(struct sim *sim, const struct sim_op *op, const char *next_cursor);
/* Some op on this player, of the last ones, that `fits`; NULL: none was found. */
const struct sim_op *server_earlier_op(struct sim *sim, uint32_t player,
                                       bool (*fits)(const struct sim *sim, uint32_t method));

/* ---- trouble.c ---- */
void trouble_choose(struct sim *sim);
void trouble_event(struct sim *sim, const struct sim_event *event);
/* Leaves one who wants to own a shard with one voter, before the others hear of it. */
void trouble_duel(struct sim *sim, uint32_t claimant);
void trouble_heal(struct sim *sim);
/* The node stops, and comes back. */
void trouble_crash(struct sim *sim, struct sim_node *node);
/* A damaged replica has just dropped what it had: the leader may die, or the node. */
void trouble_amid_repair(struct sim *sim, struct sim_node *node);

/* ---- members.c ---- */
void members_choose(struct sim *sim);
void members_event(struct sim *sim);
void members_heal(struct sim *sim);
/* What operators asked for may be lost with what etcd lost: they ask again. */
void members_again(struct sim *sim);
/* The record is as it must be in the end, and a node that it does not name holds nothing. */
bool members_settled(const struct sim *sim, uint32_t shard);
/* A bit of the replica there may be flipped: a majority of the others stays. */
bool members_spare(const struct sim *sim, uint32_t shard, const struct sim_node *node);
/* Who learns the shard, by its record; 0: no one. */
uint32_t members_learner(const struct sim *sim, uint32_t shard);
/* The record names it. */
bool members_hold(const struct sim *sim, uint32_t shard, const struct sim_node *node);

/* ---- restore.c ---- */
void restore_choose(struct sim *sim);
void restore_event(struct sim *sim, const struct sim_event *event);
/* A replica has just dropped what it held: it may be the only one that knows why. */
void restore_soon(struct sim *sim);
/* GetNodeStatus, as far as it is simulated: what the node knows. Appends. */
void restore_status(struct sim *sim, const struct sim_node *node, struct buf *out);
/* Some live node knows a newer etcd, as its record says. */
bool restore_is_doubted(const struct sim *sim);

/* ---- oracle.c ---- */
/* An owner begins to serve. */
/* The shard's owner has not applied all that is committed. */
void oracle_stalled(struct sim *sim, uint32_t shard);
void oracle_served(struct sim *sim, uint32_t shard, uint64_t epoch);
/* The record that an accepted etcd begins with: all that is committed must be found again, and its
 * epoch is above all under which an owner served. */
void oracle_accepted(struct sim *sim, uint32_t shard, const struct shard_record *record);
/* Whether the node is a member by the last START that is committed. */
bool oracle_names(const struct sim *sim, uint32_t shard, const struct sim_node *node);
/* The replica is about to drop all, since it was removed. */
void oracle_forgets(struct sim *sim, uint32_t shard, struct slot *slot);

/* ---- damage.c ---- */
/* At the end of a run: in some of them an item is doubled, and must be contained in time. */
void damage_check(struct sim *sim, bool (*run_until)(struct sim *sim, uint64_t until_ms));
/* rest.c: a wait for `most_ms` until the cluster is at rest; a node that gets a snapshot, some rows
 * at a time, gets as long again after each part. */
struct rest_wait {
    uint64_t begin_ms;
    uint64_t end_ms;
    uint64_t most_ms;
    uint64_t parts;
};
struct rest_wait rest_wait_begin(const struct sim *sim, uint32_t most_ms);
bool rest_wait_goes_on(const struct sim *sim, struct rest_wait *wait);
/* Told before such a failure. */
void why_not_converged(struct sim *sim);

/* trade.c: a rush of trades, and reads among them. */
void trade_check(struct sim *sim, bool (*run_until)(struct sim *sim, uint64_t until_ms));
/* An entry that is committed; nothing before the damage is done. */
void damage_look(struct sim *sim, const struct entry *entry, const struct outcome *outcome);
/* After each entry. Once an item has met its twin, replicas may differ: one that has the row in
 * memory sees it overwritten, another takes it for new, as no item ever comes to where it is. */
void damage_applied(struct sim *sim);

/* ---- oracle.c, model.c, answer.c ---- */
/* `rules`: by method, METHOD_ID_MAX of them (model.h); NULL: a method without effect. Borrowed. */
struct oracle *oracle_new(struct sim *sim, const struct model_rule *const *rules);
void oracle_free(struct oracle *oracle);
/* After every step of a shard: what it committed and applied. */
void oracle_look(struct sim *sim, struct sim_node *node, uint32_t shard);
/* Every packet that a router sends, every answer that a node gives. */
void oracle_packet(struct sim *sim, const struct sim_op *op);
void oracle_answer(struct sim *sim, const struct node_call *call, const struct shard_reply *reply,
                   struct slice body);
/* Before a coordinator's write: a server is marked only while it is not live, and forgotten only
 * when every shard knows that it has expired. */
/* `value`: of a put. */
void oracle_coord_write(struct sim *sim, struct slice key, struct slice value, bool remove);
uint64_t oracle_acknowledged(const struct sim *sim, uint32_t shard);
/* ... before that moment. 0: not known. */
uint64_t oracle_acknowledged_before(const struct sim *sim, uint32_t shard, uint64_t ms);
uint64_t oracle_committed(const struct sim *sim, uint32_t shard);
/* All replicas alike and like the oracle; fails otherwise. */
void oracle_check_end(struct sim *sim);
bool oracle_converged(const struct sim *sim);
/* Shards before the first that does not serve or has not converged. */
uint32_t oracle_converged_count(const struct sim *sim);
/* Steals that stand undecided, and sessions unused for longer than they live. */
uint32_t oracle_pending(const struct sim *sim);
/* What became of an op at the end, against what its game server was told. */
void oracle_check_ops(struct sim *sim);

#endif
