/*
 * world: a coordinator in virtual time, for this folder's tests: an etcd of a few keys, shards
 * that answer or do not, and the faults a test wants. One coordinator at a time decides; another
 * may take over the same etcd.
 */
#ifndef COORDINATOR_CORE_WORLD_H
#define COORDINATOR_CORE_WORLD_H

#include "coordinator/core/coord.h"

#define WORLD_KEYS_MAX   512u
#define WORLD_CUT_SHARDS 8u
#define WORLD_CLUSTER    "test"
#define WORLD_SHARDS     8u

struct world_kv {
    char key[CLUSTER_KEY_SIZE];
    struct buf value;
    int64_t create_revision; /* 0: absent. */
    int64_t mod_revision;
};

enum world_fault {
    WORLD_WELL,
    WORLD_ANSWER_LOST, /* Transactions commit, the answer does not come. */
    WORLD_SILENT,      /* They are all lost. */
};

/* Told what the coordinator does; each may be NULL. */
struct world_watch {
    void *user;
    /* On its way to etcd, perhaps again. */
    void (*sent)(void *user, const struct coord_txn *txn);
    /* Before etcd carries it out. */
    void (*wrote)(void *user, const struct coord_write *write);
    /* A shard, or a node, is about to answer. */
    void (*called)(void *user, const struct coord_call *call);
    void (*answered)(void *user, const struct coord_answer *answer);
    /* What a shard tells of its goods, and of who holds them, in place of the world's one item and
     * one player. What is lent stands until the next of these. */
    void (*counted)(void *user, uint32_t shard, bool with_buckets,
                    Holdfast__Internal__V1__CutTotals *part);
    void (*searched)(void *user, const Holdfast__Internal__V1__AuditSearchRequest *request,
                     Holdfast__Internal__V1__AuditSearchResponse *response);
};

struct world {
    struct coord_limits limits;
    struct coord *coord;
    struct coord_out out;
    uint64_t now_ms;
    uint64_t tick_ms;  /* Between two ticks; at first 20. */
    uint64_t clock_ms; /* So far ahead is the wall clock of the coordinator elected next. */
    int64_t revision;
    struct world_kv kvs[WORLD_KEYS_MAX];
    enum world_fault fault;
    bool mirror_stopped;   /* etcd changes, and the coordinator hears nothing of it. */
    bool txns_unseen;      /* The same for what transactions change. */
    uint32_t since_ms;     /* Of reports; 0: just enough. */
    uint64_t deaf_node;    /* Its shards never answer calls. */
    uint64_t garbled_node; /* They carry calls out, and no answer of theirs can be read. */
    uint64_t txns, calls_expire, calls_policy;
    uint64_t cuts[WORLD_CUT_SHARDS][3];          /* Taken by each shard: the newest first. */
    int64_t gold[WORLD_CUT_SHARDS];              /* What each holds, less what was made. */
    uint64_t open[WORLD_CUT_SHARDS];             /* Records that are never settled. */
    bool holds[WORLD_CUT_SHARDS];                /* The player pN of shard N holds the one item. */
    int32_t items;                               /* How many more hold it than were made. */
    int64_t rich[WORLD_CUT_SHARDS];              /* What pN holds more than its ledger says. */
    bool contained[WORLD_CUT_SHARDS];            /* pN. */
    char reason[65];                             /* Of the last ContainPlayer. */
    bool uncontainable;                          /* No shard answers ContainPlayer. */
    uint64_t searches, containments;             /* Calls. */
    bool unstarted;                              /* No owner has its START committed. */
    uint64_t learner_lag;                        /* What owners say of it. */
    uint64_t learner_silent_ms;                  /* Likewise. */
    uint32_t documents_lacking;                  /* Likewise, in joint phases. */
    uint64_t states;                             /* Calls. */
    uint64_t rates[WORLD_CUT_SHARDS];            /* What each has to do, operations a second. */
    uint64_t done_milli[WORLD_CUT_SHARDS];       /* And did, in thousandths. */
    uint64_t words;                              /* Calls. */
    uint64_t holder;                             /* It says that a record named it, and it alone. */
    uint64_t mute_node;                          /* It lost what it knew of every shard. */
    uint64_t epochs_known[16][WORLD_CUT_SHARDS]; /* By node, of each shard; 0: nothing. */
    uint64_t owners_known[16][WORLD_CUT_SHARDS]; /* Under those epochs; 0: it does not say. */
    uint64_t configs_known[16][WORLD_CUT_SHARDS]; /* Likewise. */
    uint64_t member_lag;                          /* What owners say of members. */
    const char *version;                          /* Of nodes that register; NULL: "test". */
    uint32_t term;
    char lowest_live[INCARNATION_TEXT_SIZE];  /* Of the last ExpireServer, */
    char expired_from[INCARNATION_TEXT_SIZE]; /* and `from`. */
    uint64_t policy_version;                  /* Of the last ApplyPolicy. */
    uint64_t defined[WORLD_CUT_SHARDS][2];    /* Generation and revision that each shard is at. */
    uint64_t defines;                         /* Calls of Define. */
    struct world_watch watch;
};

/* 8 shards, 3 replicas, one currency; the coordinator is synced and not elected. */
struct world *world_new(void);
void world_free(struct world *world);
/* Another process takes over: it knows nothing but etcd. Not elected yet. */
void world_replace_coordinator(struct world *world);
void world_elect(struct world *world);
/* Its election key goes, and it does not hear of it. */
void world_depose(struct world *world);
/* The mirror's periodic range: every key again. */
void world_refresh(struct world *world);
/* Ticks every tick_ms; answers what it is asked. */
void world_run(struct world *world, uint64_t ms);
void world_step(struct world *world, struct coord_event event);
/* Answers what it is asked, until it asks for nothing. */
void world_settle(struct world *world);

/* etcd's keys: NULL, it is absent; put and told of, taking over the value; removed (CHECKs that it
 * is there). */
struct world_kv *world_find(struct world *world, struct slice key);
void world_put(struct world *world, struct cluster_key key, struct buf *value);
void world_remove(struct world *world, struct slice key);

/* Registers; `life` is its started_at_ms. */
void world_node_up(struct world *world, uint64_t replica_id, uint64_t life);
void world_node_down(struct world *world, uint64_t replica_id);
/* Nodes 1 to 3, elected, all shards placed. */
void world_start(struct world *world);
/* Registered, or attached again, with an API key: both records. */
void world_server_of_key(struct world *world, uint64_t revision, const char *key_id);
static inline void world_server_up(struct world *world, uint64_t revision)
{
    world_server_of_key(world, revision, "");
}
/* Its lease lapses. */
void world_server_gone(struct world *world, uint64_t revision);
/* Its lease is there again. */
void world_server_back(struct world *world, uint64_t revision);
/* Its record says this instead of when its hold began; NULL: nothing. */
void world_server_hold_text(struct world *world, uint64_t revision, const char *text);
void world_set_policy(struct world *world, uint64_t version);
/* As PrepareRestore does. */
void world_raise_epochs(struct world *world, uint64_t floor);
/* `reason`: "closed" or "silent". The report of one shard, under the recorded epoch. */
void world_report(struct world *world, uint64_t reporter, uint32_t shard, const char *reason,
                  uint64_t counter);

/* An operator's wishes. */
void world_wish_node(struct world *world, uint64_t replica_id, enum node_wish_kind kind);
void world_unwish_node(struct world *world, uint64_t replica_id);
void world_wish_shard(struct world *world, uint32_t shard, const struct shard_wish *wish);
/* Registers, or says so in the same life: `shard` is damaged there; UINT32_MAX: none is. */
void world_node_damaged(struct world *world, uint64_t replica_id, uint64_t life, uint32_t shard);
/* The same; of its replica that differs from a majority. */
void world_node_quarantined(struct world *world, uint64_t replica_id, uint64_t life,
                            uint32_t shard);
/* Says so in the same life: it knows an etcd of this generation that is newer. */
void world_node_doubts(struct world *world, uint64_t replica_id, uint64_t generation);
bool world_shard_wish(struct world *world, uint32_t shard, struct shard_wish *ret_wish);
/* Registers in a zone. */
void world_node_up_in(struct world *world, uint64_t replica_id, uint64_t life, const char *zone);

/* Of a key in etcd; 0: it is absent. */
int64_t world_revision_of(struct world *world, struct slice key);
/* Reads etcd, not the coordinator. CHECKs that the record is there. */
struct shard_record world_shard(struct world *world, uint32_t shard);
/* Its record's revision is lower than the coordinator was told: etcd went back. */
void world_age_shard(struct world *world, uint32_t shard);
uint32_t world_owned(struct world *world, uint64_t replica_id);
bool world_has(struct world *world, struct cluster_key key);
/* CHECKs that known is there. */
enum server_state world_server_state(struct world *world, uint64_t revision);
bool world_server_known(struct world *world, uint64_t revision);
struct coord_stats world_stats(struct world *world);

#endif
