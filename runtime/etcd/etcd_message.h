/*
 * etcd_message: what goes to etcd and what comes back, as typed values: transactions, answers,
 * watch events. Pure data; the JSON is made in etcd_build and read in etcd_parse.
 */
#ifndef RUNTIME_ETCD_ETCD_MESSAGE_H
#define RUNTIME_ETCD_ETCD_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/buf.h"

enum {
    ETCD_TXN_OPS_MAX = 128,   /* etcd's own --max-txn-ops, nested ones included. */
    ETCD_TXN_DEPTH_MAX = 4,   /* Transactions within transactions. */
    ETCD_KEY_MAX = 4096,      /* Bytes. */
    ETCD_VALUE_MAX = 1048576, /* Bytes; etcd refuses requests above 1.5 MiB. */
};

/* In every answer. `revision` is the store's when it answered. */
struct etcd_header {
    uint64_t cluster_id;
    uint64_t member_id;
    int64_t revision;
    uint64_t raft_term;
};

struct etcd_kv {
    struct slice key;
    struct slice value;
    int64_t create_revision;
    int64_t mod_revision;
    int64_t version; /* Puts since creation; from 1. */
    int64_t lease;   /* 0 for none. */
};

struct etcd_range {
    struct slice key;
    bool prefix;        /* All keys that begin with `key`. */
    struct slice after; /* With `prefix`: only those above this one; empty: all. */
    bool keys_only;
    int64_t limit;    /* 0: none. */
    int64_t revision; /* 0: now. */
};

struct etcd_range_result {
    struct etcd_header header; /* Zero inside a transaction: see the transaction's. */
    struct etcd_kv *kvs;
    size_t kv_count;
    int64_t total; /* Keys in the range, also those above the limit. */
    bool more;
};

enum etcd_op_kind { ETCD_OP_RANGE, ETCD_OP_PUT, ETCD_OP_DELETE, ETCD_OP_TXN };

struct etcd_txn_result;

struct etcd_op_result {
    enum etcd_op_kind kind;
    struct etcd_range_result range;    /* ETCD_OP_RANGE. */
    int64_t deleted;                   /* ETCD_OP_DELETE: how many keys. */
    const struct etcd_txn_result *txn; /* ETCD_OP_TXN. */
};

struct etcd_txn_result {
    struct etcd_header header;
    bool succeeded; /* The compares held, so the THEN ops ran; else the ELSE ops did. */
    struct etcd_op_result *ops;
    size_t op_count;
    /* How often the request may have reached etcd. Above 1, `succeeded == false` may mean that an
     * earlier one of them won: see etcd_txn_until_definite. Set by the client. */
    uint32_t attempts;
};

/* Whether the range that was operation `op` is the one key with that value; an empty value: no key.
 * For ELSE branches that read what the THEN branch would have written: then an attempt of ours
 * whose answer was lost was carried out. */
bool etcd_txn_shows(const struct etcd_txn_result *result, size_t op, struct slice value);

/* It did not succeed, and its ELSE shows nothing of ours: an earlier attempt may have been carried
 * out all the same, and others have written since. Then its outcome is unknown, and not "conflict".
 */
bool etcd_txn_is_unknown(const struct etcd_txn_result *result);

/* ---- Transactions to send ---- */

enum etcd_target { ETCD_VERSION, ETCD_CREATE_REVISION, ETCD_MOD_REVISION, ETCD_LEASE };
enum etcd_relation { ETCD_EQUAL, ETCD_GREATER, ETCD_LESS, ETCD_NOT_EQUAL };
enum etcd_branch { ETCD_THEN, ETCD_ELSE };

/* A builder. Bytes given to it are copied. Every add CHECKs the limits above. */
struct etcd_txn;

struct etcd_txn *etcd_txn_new(void);
void etcd_txn_free(struct etcd_txn *txn);
/* A key that is absent has version, create and mod revision and lease 0. */
void etcd_txn_compare(struct etcd_txn *txn, struct slice key, enum etcd_target target,
                      enum etcd_relation relation, int64_t number);
void etcd_txn_put(struct etcd_txn *txn, enum etcd_branch branch, struct slice key,
                  struct slice value, int64_t lease);
void etcd_txn_get(struct etcd_txn *txn, enum etcd_branch branch, struct slice key);
/* How many keys begin with `prefix`: the `total` of the operation's range. */
void etcd_txn_count(struct etcd_txn *txn, enum etcd_branch branch, struct slice prefix);
void etcd_txn_delete(struct etcd_txn *txn, enum etcd_branch branch, struct slice key);
/* THEN: the key gets that value, without a lease, or is deleted if it is empty. ELSE: it is read,
 * for etcd_txn_shows; that is one operation, so the n-th of these is operation n of the answer. */
void etcd_txn_make(struct etcd_txn *txn, struct slice key, struct slice value);
/* Takes `inner`: do not free or use it afterwards. ETCD_TXN_OPS_MAX counts its ops, too. */
void etcd_txn_nest(struct etcd_txn *txn, enum etcd_branch branch, struct etcd_txn *inner);

/* ---- Leases and watches ---- */

struct etcd_lease_result {
    struct etcd_header header;
    int64_t lease_id;
    int64_t ttl_s; /* 0 from keep-alive: the lease is gone. */
};

#define ETCD_ERRORS_BYTES 256u

struct etcd_status_result {
    struct etcd_header header;
    uint64_t leader; /* 0: no leader. */
    char version[32];
    uint64_t database_bytes;
    uint64_t quota_bytes;           /* 0: it does not tell, as those before 3.6. */
    char errors[ETCD_ERRORS_BYTES]; /* Alarms and the like, with "; " between; may be cut. */
};

struct etcd_event {
    bool deleted;
    struct etcd_kv kv; /* When deleted: key and mod_revision only. */
};

struct etcd_watch_result {
    struct etcd_header header;
    bool created;
    bool canceled;
    int64_t compact_revision; /* Above 0: revisions below it are gone; range again. */
    struct etcd_event *events;
    size_t event_count;
};

enum etcd_rollback_kind { ETCD_CLUSTER_ID_CHANGED, ETCD_REVISION_WENT_BACK };

/* etcd was restored from a backup, or is another one. */
struct etcd_rollback {
    enum etcd_rollback_kind kind;
    uint64_t cluster_id_known, cluster_id_seen;
    int64_t revision_known, revision_seen;
};

#endif
