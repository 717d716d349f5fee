/*
 * meta: what a shard knows of itself besides rows; one row in the database, a struct in memory.
 * Everything here changes only by applied entries. DESIGN sections 4 to 6.
 */
#ifndef NODE_CORE_PLAYER_META_H
#define NODE_CORE_PLAYER_META_H

#include "idl/limit.h"
#include "node/core/codec/op.h"
#include "node/core/entry/entry.h"
#include "node/core/entry/start.h"
#include "node/core/player/event_log.h"
#include "node/core/player/totals.h"
#include "runtime/base/row_digest.h"

#define CURRENCIES_MAX          64u
#define CURRENCY_NAME_BYTES_MAX LIMIT_CURRENCY_NAME_BYTES
#define EXPIRED_MAX             16384u /* Ranges: no more than servers live, and one. */
#define EXPIRED_MAX_OF_ONES     4096u  /* Below apply version 10, each for one of them. */
#define QUARANTINE_MAX          1024u
#define QUARANTINE_PLAYER_SIZE  104u
#define QUARANTINE_REASON_SIZE  72u
#define CUTS_KEPT               2u
#define AMOUNT_MAX              LIMIT_AMOUNT /* 2^53 - 1: exact in every JSON reader. */

struct currency {
    char name[CURRENCY_NAME_BYTES_MAX + 1];
    int64_t min_balance;
    int64_t max_balance;
    /* Of every policy that declared it since it was not declared, and `dropped_min` of before:
     * debts that were allowed once stand. */
    int64_t lowest_min;
};

/* Incarnations that are expired, both ends included. */
struct expired_range {
    struct incarnation first, last;
};

/* A player whose mutations are refused. Texts end with a NUL. */
struct quarantined {
    uint64_t at_ms;
    char player[QUARANTINE_PLAYER_SIZE]; /* Without its kind. */
    char reason[QUARANTINE_REASON_SIZE];
};

/* The totals as they stood before an entry (audit.h). */
struct cut {
    uint64_t id;   /* 0: none. */
    uint64_t open; /* Records of the outbox that were open then and are not settled yet. */
    struct totals totals;
};

/* Since which apply version policies are ordered by the generation of their etcd, too. */
#define POLICY_GENERATION_APPLY_VERSION 10u
/* Since which apply version a shard knows what debts a currency allowed that is declared no more.
 */
#define DROPPED_MIN_APPLY_VERSION 10u
#define POLICY_GENERATION_FIRST   1u /* A cluster begins with it. */

struct policy {
    uint64_t generation; /* Of the etcd that had it. */
    uint64_t version;
    uint64_t operation_window_ms;
    uint64_t operations_max;
    uint32_t items_max;
    uint32_t mailbox_max;
    int64_t dropped_min; /* The least lowest_min of currencies that went; at most 0. */
    uint32_t currency_count;
    struct currency currencies[CURRENCIES_MAX]; /* Sorted by name. */
};

enum use_kind {
    USE_EMPTY,    /* No player was ever written. */
    USE_SERVING,  /* As ever. */
    USE_RESTORING /* Rows of a backup are being put; nothing else is carried out (restore.h). */
};

struct shard_use {
    enum use_kind kind;
    struct hash128 restore_id; /* Of the backup it was, or is being, restored from; zeros: none. */
    uint64_t parts;            /* Put so far, ... */
    struct row_digest rows;    /* ... and what they come to. */
};

struct meta {
    uint64_t applied_index;
    struct dot applied_dot;
    struct hash128 applied_hash; /* Of that entry: the log's chain. */
    struct hash128 outcome_hash; /* Running hash of all outcomes. */
    uint64_t owner_ms;           /* Of that entry. */
    struct vector vector;        /* Up to applied_index. */
    struct membership membership;
    uint64_t generation;
    uint32_t apply_version;
    uint64_t cut_id;
    uint64_t floor_ms; /* UUIDv7 ids at or below it are OPERATION_EXPIRED. */
    uint64_t operation_count;
    uint64_t key_count; /* Outcomes of `key:` ids that are forgotten in time (TABLE_KEYED). */
    uint64_t operation_ms_max;      /* Youngest UUIDv7 id ever applied. */
    uint64_t session_count;         /* GRANTED or HELD; those of an expired server are counted
                                     * until their player is next touched. */
    uint64_t outbox_open;           /* Records in the outbox, to all shards. */
    struct incarnation lowest_live; /* Everything below is expired. */
    struct expired_range *expired;  /* Sorted, apart; at or above lowest_live. Owned. */
    uint32_t expired_count;
    struct quarantined *quarantine; /* Sorted by player. Owned. */
    uint32_t quarantine_count;      /* At most QUARANTINE_MAX. */
    uint64_t unread_rows;       /* Changes of rows that could not be decoded, and so not counted. */
    struct totals totals;       /* As of now. */
    struct cut cuts[CUTS_KEPT]; /* The newest first. */
    struct policy policy;
    struct shard_use use;
    struct event_log events;
    uint64_t review_count;    /* Edges that wait for a review (TABLE_REVIEW). */
    uint64_t review_since_ms; /* Since when the first of them does; 0: none. */
    uint64_t versions_above;  /* Of the backup that the shard was restored from: its versions that
                               * were made of positions in its log are up to here. 0: none. */
    bool inboxes_told; /* Each channel's row knows the greatest seq that it decided. Not of shards
                        * that builds before this one began. */
};

void meta_init(struct meta *meta);
void meta_deinit(struct meta *meta);
void meta_encode(const struct meta *meta, struct buf *out);
/* ERR_CORRUPT: malformed. ERR_TOO_NEW: a later program wrote it. *meta is untouched then. */
NODISCARD err meta_decode(struct slice bytes, struct meta *meta);
/* CHECKs that its lists are in order and within their limits. For tests: it walks all of them. */
void meta_check(const struct meta *meta);
/* The counts that an operation changes as it goes. One that is refused, or tried alone, puts back
 * what they were. Policy, quarantine and the expired set change only where it cannot be refused any
 * more. */
struct meta_counts {
    uint64_t floor_ms, operation_count, key_count, operation_ms_max, session_count, outbox_open,
        review_count, review_since_ms;
};
struct meta_counts meta_counts_take(const struct meta *meta);
void meta_counts_put(struct meta *meta, const struct meta_counts *counts);
bool meta_is_expired(const struct meta *meta, struct incarnation incarnation);
/* NULL: not quarantined. */
const struct quarantined *meta_find_quarantined(const struct meta *meta, struct slice player);
/* False: quarantined already, or the list is full. Texts are cut to what fits. */
bool meta_quarantine(struct meta *meta, struct slice player, struct slice reason, uint64_t at_ms);
/* `quarantined` was found. */
void meta_release(struct meta *meta, const struct quarantined *quarantined);
/* Below 0, 0, above 0: the order in which policies hold, by generation and version. */
int policy_order(const struct policy *a, const struct policy *b);
/* From `before` to `after`: currencies that go leave in `after` what debts they allowed, those that
 * come may have had debts that a currency of before allowed, and those that stay keep theirs. */
void policy_keep_lowest(const struct policy *before, struct policy *after);
/* Orders by name, for qsort. */
int currency_compare(const void *a, const void *b);
const struct currency *policy_find_currency(const struct policy *policy, struct slice name);
/* The policy a shard starts with: no currencies, default limits. */
struct policy policy_default(void);

#endif
