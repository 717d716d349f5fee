/* coord_private: the core's inside, shared by the files of this folder only. */
#ifndef COORDINATOR_CORE_COORD_PRIVATE_H
#define COORDINATOR_CORE_COORD_PRIVATE_H

#include "coordinator/core/coord.h"
#include "holdfast/v1/admin.pb-c.h"

/* Members and new members of a joint record: at most one id is added. */
#define REPLICAS_MAX (CLUSTER_MEMBERS_MAX + 1)
#define MARKS_MAX    256u /* Recent expiries remembered for holds. */

struct node {
    struct node_record record;
    int64_t mod_revision;
    int64_t life_revision;  /* When this life of the node registered. */
    uint64_t since_ms;      /* When this coordinator first saw this life. */
    uint64_t full_until_ms; /* It said that its disk is full, and has not said so since then. */
};

/* When a node was last claimed against; outlives its record. */
struct shunned {
    uint64_t replica_id; /* 0: free. */
    uint64_t until_ms;
};

/* Who was asked what it knows of all shards; outlives its record. */
struct word {
    uint64_t replica_id; /* 0: free. */
    bool told;
    bool again; /* Of some shard it could not tell. */
    bool calling;
    uint64_t next_ms; /* Not asked earlier. */
};

/* What an operator wants of a node. */
struct wanted_node {
    uint64_t replica_id;
    struct node_wish wish;
    int64_t mod_revision;
    bool in_txn; /* Its removal is on its way. */
};

struct told_member {
    uint64_t replica_id;
    uint64_t lag; /* Committed entries that it has not acknowledged. */
    uint64_t silent_ms;
};

/* What an owner said of its shard last; its START of that epoch is committed. */
struct told_state {
    uint64_t epoch; /* 0: nothing. */
    uint64_t told_ms;
    uint64_t learner, learner_lag, silent_ms;
    struct told_member members[CLUSTER_MEMBERS_MAX]; /* All but the owner. */
    uint32_t member_count;
};

/* What a shard has to do: writes and strict reads, as its owner counts them. */
struct shard_load {
    uint64_t epoch;      /* Of the owner who told it last; 0: nobody did. */
    uint64_t operations; /* It had done by then. */
    uint64_t at_ms;
    uint64_t ask_at_ms; /* Not asked earlier. */
    bool known;         /* `rate` is. */
    uint64_t rate;      /* A second, an average in which the last ones count most. */
};

struct report {
    uint64_t reporter; /* 0: none. */
    uint64_t at_ms;
    uint64_t epoch;
    uint64_t dot_epoch;
    uint64_t dot_counter;
};

struct shard {
    struct shard_record record; /* Meaningful while mod_revision > 0. */
    int64_t mod_revision;       /* 0: no record. */
    int64_t stale_revision;     /* A write compared with it failed: wait for a newer record. */
    uint64_t stale_ms;          /* When. */
    bool in_txn;
    bool seen;               /* Had a record: never placed again. */
    uint64_t changed_ms;     /* When the record changed under this coordinator; 0: it did not. */
    uint64_t call_at_ms;     /* No call to it earlier. */
    int64_t policy_revision; /* Of the policy it confirmed; 0: none. */
    uint32_t policy_calls;   /* In flight. */
    struct report reports[REPLICAS_MAX];
    uint64_t declined_epoch; /* Its owner had it before and never begins under it; 0: none. */
    struct shard_wish wish;  /* Meaningful while wish_revision > 0. */
    int64_t wish_revision;
    bool wish_in_txn; /* Its removal is on its way, or `wish` itself. */
    struct told_state state;
    uint32_t state_calls;   /* In flight. */
    uint64_t state_next_ms; /* The owner is not asked earlier. */
    uint64_t comer_gone_ms; /* Since when whoever comes is gone, or a repair waits; 0: not. */
    struct shard_load load;
    uint64_t epoch_known;        /* The greatest that any replica said it knows. */
    uint64_t owner_known;        /* Under that epoch; 0: nobody said. */
    uint64_t rival_epoch;        /* Replicas named two owners under it; 0: none. */
    uint64_t config_known;       /* As epoch_known. */
    bool held;                   /* A replica said whom some record named. */
    uint64_t mute[REPLICAS_MAX]; /* Replicas that cannot say what they knew of it. */
    uint32_t mute_count;
    bool heard;   /* A majority of its members said what they know. */
    bool doubted; /* A replica, or this coordinator, knows a later record than etcd has. */
    uint64_t doubted_logged_ms;
};

enum { ACK_WANTED, ACK_CALLING, ACK_DONE };

struct server {
    struct incarnation incarnation;
    struct server_record record; /* Of gs/known. */
    int64_t known_revision;      /* mod_revision of gs/known; 0: absent. */
    bool live;                   /* gs/live is there. */
    bool in_txn;                 /* Also while a committed removal has not come back from etcd. */
    uint64_t gone_ms;            /* When it was first seen known without live; 0: it was not. */
    uint64_t held_since_ms;      /* Wall clock; 0: it is not held. To be written, or in `record`. */
    uint64_t retry_ms;           /* No write about it earlier. */
    uint8_t *acks;               /* EXPIRING: per shard; NULL until work on it began. */
    uint32_t acks_left;
};

enum target_kind {
    TARGET_CLUSTER,
    TARGET_POLICY,
    TARGET_SHARD,
    TARGET_SERVER_MARK,
    TARGET_SERVER_HOLD,
    TARGET_SERVER_FORGET,
    TARGET_NODE_WISH,
    TARGET_SHARD_WISH
};

/* What a write is about, and what to adopt when it was carried out. */
struct target {
    enum target_kind kind;
    uint32_t shard;
    struct shard_record record;
    struct incarnation incarnation;
    uint64_t held_since_ms;
    uint64_t replica_id;
};

enum flight_state { FLIGHT_FREE, FLIGHT_FILLING, FLIGHT_SENT, FLIGHT_WAITING };

/* One transaction, kept until its answer is definite. */
struct flight {
    enum flight_state state;
    uint64_t ticket;
    bool unelected;       /* Without the election key. */
    uint64_t retry_at_ms; /* WAITING. */
    uint32_t count;
    struct coord_write writes[COORD_TXN_WRITES_MAX];
    struct target targets[COORD_TXN_WRITES_MAX];
    struct arena arena;
};

struct open_call {
    uint64_t call; /* 0: free. */
    uint32_t shard;
    uint16_t method;
    struct incarnation incarnation; /* None: the call is about the policy. */
    int64_t policy_revision;
    uint64_t cut;     /* TakeCut: which. AuditSearch and ContainPlayer: which search. */
    uint32_t suspect; /* ContainPlayer: whom. */
    uint64_t node;    /* GetNodeStatus: whom. */
};

#define AUDIT_CURRENCIES_MAX 256u
#define AUDIT_CUTS           2u
#define AUDIT_BUCKETS        4096u /* node/core/totals.h */
#define AUDIT_UID_BYTES      16u
#define AUDIT_PLAYER_SIZE    104u
#define AUDIT_REASON_SIZE    65u
#define AUDIT_OP_SIZE        72u

/* More than these are found by later searches. */
#define AUDIT_BAD_BUCKETS_MAX    64u
#define AUDIT_BAD_CURRENCIES_MAX 16u
#define AUDIT_FOUND_MAX          262144u
#define AUDIT_SUSPECTS_MAX       256u
#define AUDIT_TRIES_MAX          5u

struct audit_currency {
    char name[33];
    int64_t net;
};

struct audit_bucket {
    int64_t count;
    uint64_t hashes;
};

/* What all shards hold at one cut, less what was made. */
struct audit_sum {
    uint64_t cut;  /* 0: none. */
    uint8_t *told; /* Per shard: it is in here, and will not change. */
    uint32_t left; /* Shards that are not. */
    uint32_t currency_count;
    struct audit_currency currencies[AUDIT_CURRENCIES_MAX]; /* In no order. */
    int64_t count;                                          /* Of items. */
    uint64_t hashes;
    uint32_t bucket_parts;        /* Of how many shards `buckets` is the sum. */
    struct audit_bucket *buckets; /* AUDIT_BUCKETS of them. */
};

/* An item that somebody holds. */
struct audit_found {
    uint8_t uid[AUDIT_UID_BYTES];
    uint64_t hash;
    uint32_t shard;
    char player[AUDIT_PLAYER_SIZE];
};

/* Somebody to be contained. */
struct audit_suspect {
    uint32_t shard;
    uint8_t ack;
    char player[AUDIT_PLAYER_SIZE];
    char reason[AUDIT_REASON_SIZE];
    char op_id[AUDIT_OP_SIZE];
};

enum search_state { SEARCH_NONE, SEARCH_PAGES, SEARCH_CONTAIN };

/* Who holds what is too much (audit_search.c). */
struct audit_search {
    enum search_state state;
    bool known;     /* `hash` was searched for, and what could be found is contained. */
    uint64_t hash;  /* The imbalance. */
    uint32_t tries; /* Searches for it. */
    uint64_t number, cut, next_ms;
    uint32_t bucket_count, currency_count;
    uint32_t buckets[AUDIT_BAD_BUCKETS_MAX];
    struct audit_bucket bad[AUDIT_BAD_BUCKETS_MAX];
    char currencies[AUDIT_BAD_CURRENCIES_MAX][33];
    uint8_t *acks; /* Per shard. */
    uint32_t acks_left;
    char (*cursors)[AUDIT_PLAYER_SIZE]; /* Per shard. */
    struct audit_found *found;
    uint32_t found_count, found_capacity;
    bool overflow; /* More was found than is kept. */
    uint32_t wallets, undecided;
    struct audit_suspect *suspects;
    uint32_t suspect_count;
};

struct audit {
    bool running;        /* A round: each shard is asked to take `cut`. */
    uint64_t cut;        /* Of this round, or of the last one. */
    uint64_t started_ms; /* The round. */
    uint64_t next_ms;    /* No round earlier. */
    uint64_t counted_ms; /* When a cut was last counted. */
    uint8_t *acks;       /* Per shard. */
    uint32_t acks_left;
    struct audit_sum sums[AUDIT_CUTS]; /* Of the cuts before `cut`, the newer one first. */
    bool imbalance;                    /* At the cut counted last. */
    uint64_t imbalance_hash;           /* Of all of it: another one is another violation. */
    bool want_buckets;                 /* Items are wrong, and it is not known which. */
    struct audit_search search;
};

struct coord {
    struct coord_limits limits;
    char cluster_name[CLUSTER_NAME_MAX + 1];
    struct cluster_record initial;
    struct buf initial_policy;
    uint32_t placement_nodes;
    const struct log *log;
    uint64_t now_ms;

    bool synced, elected, halted;
    bool held_back; /* Nodes doubt this etcd. */
    uint64_t elected_ms;
    struct buf election_key;
    int64_t election_revision;

    struct cluster_record cluster; /* Meaningful while cluster_revision > 0. */
    int64_t cluster_revision;
    uint64_t cluster_retry_ms; /* Not created earlier. */
    struct buf policy;
    int64_t policy_revision;              /* 0: none. */
    uint32_t policy_left;                 /* Shards to confirm it, as of the last look. */
    struct node nodes[CLUSTER_NODES_MAX]; /* By rising replica id. */
    uint32_t node_count;
    uint64_t node_added_ms;
    struct word words[CLUSTER_NODES_MAX];
    struct shunned shunned[CLUSTER_NODES_MAX];
    struct wanted_node wanted[CLUSTER_NODES_MAX];
    uint32_t wanted_count;
    uint32_t change_from; /* Shards are looked at from here on. */
    uint32_t changes_open;
    uint64_t drain_at_ms; /* No hand-over of a drain earlier. */
    struct shard *shards; /* cluster.shard_count of them. */
    uint32_t shard_count;
    struct server **servers; /* By rising incarnation. */
    uint32_t server_count, server_capacity;

    struct flight *flights; /* limits.txns_max of them. */
    uint64_t ticket;
    struct open_call *calls; /* limits.calls_max of them; a call's place is call % calls_max. */
    uint32_t call_count;
    uint64_t call;

    uint32_t owned[CLUSTER_NODES_MAX]; /* Shards owned by nodes[i]; counted anew in each step. */
    uint64_t reported_ms;              /* When a report was last taken; 0: never. */
    uint64_t handover_at_ms;           /* No hand-over earlier. */
    uint64_t exchange_at_ms;           /* Nor one for what shards have to do. */
    uint64_t placement_logged_ms;
    uint64_t marks_ms[MARKS_MAX]; /* Ring of the times at which servers were marked. */
    uint32_t mark_count;
    bool holding;
    uint64_t hold_since_ms; /* The newest hold; wall clock. */
    uint64_t wall_ahead_ms; /* Of now_ms, as it was when this coordinator was elected. */
    struct audit audit;
    struct coord_stats stats;
};

/* ---- records.c: what etcd says ---- */
void records_put(struct coord *coord, const struct coord_event *event);
/* True: a node is gone, which cannot wait for the next tick. */
bool records_deleted(struct coord *coord, const struct coord_event *event);
struct node *node_find(struct coord *coord, uint64_t replica_id);
struct server *server_find(struct coord *coord, struct incarnation incarnation);
void server_remove(struct coord *coord, struct server *server);
void shard_adopt(struct coord *coord, uint32_t number, const struct shard_record *record,
                 int64_t mod_revision);

/* ---- term.c: what is held only while this coordinator decides ---- */
/* Lets go of all of it. */
void term_drop(struct coord *coord);

/* ---- flight.c: transactions ---- */
/* Puts gather in an open flight; flights_send sends it. False: too many are in flight; the caller
 * leaves its change for a later step. */
bool flight_put_cluster(struct coord *coord);
/* Of the next write of the shard's record: one on, and above what a restored backup knew. */
uint64_t epoch_after(const struct coord *coord, const struct shard *shard);
bool flight_put_shard(struct coord *coord, uint32_t number, const struct shard_record *record);
bool flight_put_server(struct coord *coord, struct server *server,
                       const struct server_record *record);
bool flight_remove_server(struct coord *coord, struct server *server);
bool flight_remove_node_wish(struct coord *coord, uint64_t replica_id);
bool flight_remove_shard_wish(struct coord *coord, uint32_t number);
/* Only where there is none. */
bool flight_put_shard_wish(struct coord *coord, uint32_t number, const struct shard_wish *wish);
/* False: the election key does not stand; the caller stops acting. */
bool flights_done(struct coord *coord, const struct coord_event *event);
/* Sends what is filled and repeats what is due. */
void flights_send(struct coord *coord, struct coord_out *out);
void flights_drop(struct coord *coord);
uint32_t flights_open(const struct coord *coord);

/* ---- ownership.c: who owns which shard ---- */
void ownership_run(struct coord *coord);
void ownership_report(struct coord *coord,
                      const Holdfast__Internal__V1__ReportOwnerRequest *report);
/* Its disk; it says so again and again, until there is room. */
bool node_is_full(const struct coord *coord, const struct node *node);
/* Whatever was held against an earlier life is forgotten. */
void ownership_new_life(struct coord *coord, uint64_t replica_id);
/* False: a write is on its way, or was refused and the record that says why has not come yet; or a
 * replica knows a later record. */
bool shard_is_settled(const struct shard *shard);
/* It may also get a new number of a configuration: a majority said that nobody has that number. */
bool shard_may_change(const struct shard *shard);

/* False: too much is in flight. */
bool ownership_hand_over(struct coord *coord, uint32_t number, uint64_t owner, const char *reason);
/* Not an owner if anybody else can be. */
bool node_is_avoided(const struct coord *coord, const struct node *node);
/* Its record did not change lately: what may wait leaves it alone until then. */
bool shard_is_calm(const struct coord *coord, const struct shard *shard);
/* Every shard as it is or, where it has no record, as it would be placed. To be freed. */
struct placement_shard *ownership_proposals_new(struct coord *coord);

/* ---- spread.c: every node owns as many ---- */
void spread_run(struct coord *coord, struct coord_out *out);

/* ---- load.c: and has as much to do ---- */
void load_ask(struct coord *coord, struct coord_out *out);
void load_told(struct coord *coord, struct shard *shard,
               const Holdfast__Internal__V1__MemberStateResponse *told);
/* One exchange, if any is worth it. `owners`: who may be handed shards. */
void load_exchange(struct coord *coord, const uint64_t *owners, uint32_t owner_count);

/* ---- word.c: whether etcd is as new as what replicas know ---- */
/* A live node says that etcd is older than it knows. */
uint32_t word_doubting_nodes(const struct coord *coord);
/* A term begins: others may have written since the last one. Everybody is asked anew. */
void word_begin(struct coord *coord);
/* Looks at every shard, and asks who has not been asked. */
void word_run(struct coord *coord, struct coord_out *out);
void word_told(struct coord *coord, const struct open_call *call, const struct coord_event *event);
void word_drop(struct coord *coord);

/* ---- change.c: who holds which shard ---- */
void change_run(struct coord *coord, struct coord_out *out);
void change_told(struct coord *coord, const struct open_call *call,
                 const struct coord_event *event);
/* Asks the owner (MemberState), unless it was asked just now: change_told. */
void change_ask(struct coord *coord, uint32_t number, struct coord_out *out);
void change_drop(struct coord *coord);
/* It is drained or removed: it is to own nothing. */
bool node_is_leaving(const struct coord *coord, uint64_t replica_id);
bool node_is_removed(const struct coord *coord, uint64_t replica_id);

/* ---- change.c and repair.c ---- */
struct change {
    uint64_t adding, removing; /* 0: nobody. */
};

/* ---- repair.c: damaged replicas leave and come back ---- */
/* It lives, and did not find this shard damaged. */
bool replica_is_whole(struct coord *coord, uint32_t number, uint64_t replica_id);
bool replica_is_damaged(struct coord *coord, uint32_t number, uint64_t replica_id);
/* Of members, as far as their nodes live. */
uint32_t repair_damaged_count(const struct coord *coord, uint32_t number);
/* The next step of the repair that the shard's wish is; none while it waits. False: it is over. */
bool repair_follow(struct coord *coord, uint32_t number, struct change *ret_change,
                   struct coord_out *out);
/* Its wish is taken away. */
void repair_over(struct coord *coord, uint32_t number);
/* Wishes the repair of a damaged member, if the others can do without it. */
void repair_look(struct coord *coord, uint32_t number, struct coord_out *out);

/* ---- expiry.c: game servers ---- */
void expiry_run(struct coord *coord);

/* ---- delivery.c: what every shard must log ---- */
void delivery_run(struct coord *coord, struct coord_out *out);
void delivery_done(struct coord *coord, const struct coord_event *event);
void delivery_drop(struct coord *coord);
bool shard_takes_calls(struct coord *coord, const struct shard *shard);
/* Adds the call action; the caller fills body and method, of both. NULL: calls_max are open. */
struct coord_call *delivery_call(struct coord *coord, uint32_t shard, struct coord_out *out,
                                 struct open_call **ret_open);

/* ---- audit.c: whether every item and unit is there once ---- */
void audit_run(struct coord *coord, struct coord_out *out);
void audit_done(struct coord *coord, const struct open_call *call, const struct coord_event *event);
void audit_drop(struct coord *coord);
void audit_free(struct coord *coord);

/* ---- audit_search.c: who holds what is too much, and that they are held back ---- */
/* A cut that does not come to zero, whenever it was counted. `hash`: of the imbalance. */
void search_imbalance(struct coord *coord, const struct audit_sum *sum, uint64_t hash);
/* There is none any more. */
void search_balanced(struct coord *coord);
void search_run(struct coord *coord, struct coord_out *out);
void search_page_done(struct coord *coord, const struct open_call *call,
                      const struct coord_event *event);
void search_contained(struct coord *coord, const struct open_call *call,
                      const struct coord_event *event);
void search_drop(struct coord *coord);
void search_free(struct coord *coord);

#endif
