/*
 * mergers: the shell of the mergeable class (node/core/mergeable) at one node: a replica for each
 * shard of which this node is a member and that has documents, their messages, their disk, and the
 * calls of DocumentService and PresenceService. Everything runs on the main loop, whatever
 * `workers` says; the disk is written by libuv's pool, one batch at a time for all shards, so that
 * one sync carries what gathered meanwhile.
 *
 * A replica is made when a call, a member's message or the disk first asks for it: a cluster
 * without documents has none, and no database of them. Members and configurations are those of the
 * shard's record in etcd. A member that is removed keeps its replica until a member has all that it
 * holds; the others keep it as departing until it says that it holds nothing (docs/documents.md).
 */
#ifndef NODE_IO_MERGEABLE_MERGERS_H
#define NODE_IO_MERGEABLE_MERGERS_H

#include "node/core/document/living.h"
#include "node/core/document/rules.h"
#include "node/core/replication/rep.h"
#include "node/core/shard/shard.h"
#include "node/io/disk/space.h"
#include "node/io/view/erasures.h"
#include "runtime/base/log.h"
#include "runtime/loop/loop.h"

#define MERGERS_SECRET_BYTES 32u
#define MERGERS_TEXT_BYTES   320u

struct mergers;

/* Each restore from a backup begins a generation of documents: what members have of an earlier one
 * goes, and contexts of it are refused. */
#define MERGERS_GENERATION_FIRST 1u
struct mergers_restored {
    uint64_t generation;
    bool goes_on; /* Until it is over no call is served. */
};

struct mergers_options {
    struct loop *loop;
    const struct log *log;
    const char *directory;     /* Of the database; made when it is first needed. */
    struct space *space;       /* NULL: there is always room. */
    struct erasures *erasures; /* Who is erased, as the strict log says; NULL: no entity ever is. */
    uint64_t self;             /* This replica's id. */
    uint64_t boot;             /* Rises with each start. */
    uint32_t shard_count;
    const struct living *living; /* Whose players are shown. Borrowed; NULL: everyone's. */
    /* To a member; lost if it is not reachable, or runs a program that knows no documents.
     * Borrowed. */
    void (*send)(void *user, uint64_t replica, struct slice message);
    /* False: the member's program is known to know no documents. Borrowed; NULL: all may. */
    bool (*takes)(void *user, uint64_t replica);
    /* A change of members waits no longer for documents. */
    uint64_t leave_wait_ms;
    /* What the shard was restored from, as its applied log says; false: not known now. Borrowed;
     * NULL: no shard ever was. */
    bool (*restored)(void *user, uint32_t shard, struct mergers_restored *ret_restored);
    /* Ends a call. */
    void (*answer)(void *user, uint64_t call, const struct shard_reply *reply, struct slice body);
    void *user;
};

/* Reads what the disk has; blocks on it. ERR_IO, with ret_text: the disk cannot be used. A database
 * that is damaged is set aside and logged: its members take everything in from the others. */
NODISCARD err mergers_new(const struct mergers_options *options, struct mergers **ret_mergers,
                          char ret_text[MERGERS_TEXT_BYTES]);
/* Writes what is not durable yet, running the loop meanwhile; calls under way are not answered.
 * NULL is allowed. */
void mergers_free(struct mergers *mergers);

/* The shard's record, as read or watched. */
void mergers_record(struct mergers *mergers, uint32_t shard, const struct rep_record *record);
/* A version of a definition, of whatever kind (internal.v1.DefinitionVersion). */
void mergers_definition(struct mergers *mergers, struct slice version);
/* All definitions are told again. */
void mergers_definitions_reset(struct mergers *mergers);
/* All that there are were told: until then an unknown collection is UNAVAILABLE. */
void mergers_definitions_complete(struct mergers *mergers);
/* What contexts are signed with; without it no call is taken. Copied. */
void mergers_secret(struct mergers *mergers, const uint8_t secret[MERGERS_SECRET_BYTES]);

/* A member's message. ERR_CORRUPT: malformed. */
NODISCARD err mergers_message(struct mergers *mergers, uint64_t from, struct slice message);

struct mergers_request {
    uint32_t shard, method;
    uint64_t call;
    struct slice bytes;
};
/* Answered by options.answer, perhaps before this returns: DocumentService, PresenceService, and of
 * BackupService what is about documents. ERR_NOT_FOUND: this node is not a member of the shard;
 * ERR_FULL: too much waits for the disk to write more. Nothing was begun then. A full disk ends
 * writes, which the caller may bring to another member, and no reads. */
NODISCARD err mergers_call(struct mergers *mergers, const struct mergers_request *request);
void mergers_cancel(struct mergers *mergers, uint32_t shard, uint64_t call);

/* Appends the answer to a ListNodeOnline. False: the request is malformed. */
bool mergers_list_online(struct mergers *mergers, struct slice request, struct buf *out);

/* Appends the answer to a GetNodeClock. False: the request is malformed. */
bool mergers_clock(struct mergers *mergers, struct slice request, struct buf *out);

/* Why the shard takes neither the begin nor the end of a restore; NULL: it may. */
const char *mergers_bars_restore(struct mergers *mergers, uint32_t shard);

/* In a joint phase of the shard: how many new members may lack documents that a majority of the old
 * ones had; LEAVE waits for them. All, while this owner has no documents and a majority of the old
 * ones has not said that they have none either. 0: it waits for none, since there are no documents,
 * those members' programs know none, or options.leave_wait_ms are over. */
uint32_t mergers_lacking(struct mergers *mergers, uint32_t shard);

struct mergers_stats {
    uint32_t replicas, syncing;
    uint64_t records[MERGE_POLICY_COUNT]; /* By policy. */
    uint64_t siblings;                    /* Records with several. */
    uint64_t record_bytes;
    /* Since the latest moment of which all members have all that was written; the longest of all
     * shards. 0: the members of each are equal. */
    uint64_t apart_ms;
    uint64_t repair_bytes;     /* Taken in by anti-entropy. */
    uint64_t messages_dropped; /* Too much waited. */
    uint64_t calls, disk_writes, disk_bytes, disk_ns;
    uint32_t servers;   /* Game servers that are known to live. */
    uint32_t departing; /* Removed members that have not said that they hold nothing. */
};
void mergers_stats_get(const struct mergers *mergers, struct mergers_stats *ret_stats);

#endif
