/* Inside of mergers.h: shared by the mergers*.c files alone. */
#ifndef NODE_IO_MERGEABLE_MERGERS_INTERNAL_H
#define NODE_IO_MERGEABLE_MERGERS_INTERNAL_H

#include <uv.h>

#include "idl/method.h"
#include "node/core/document/methods.h"
#include "node/core/document/online.h"
#include "node/core/mergeable/pieces.h"
#include "node/core/mergeable/replica.h"
#include "node/io/mergeable/mergers.h"
#include "node/store/merge_db.h"
#include "runtime/base/arena.h"
#include "runtime/crypto/hmac.h"

/* What waits for the disk; beyond it members' messages are lost and writes are refused. */
#define BATCH_BYTES_MAX (32u * 1024u * 1024u)
#define HELD_MAX        4096u
#define HELD_BYTES_MAX  (16u * 1024u * 1024u)

/* A message that waits for the log. */
struct held {
    uint64_t to, after_log;
    struct buf bytes;
};

/* A call that waits for its durability, or for a majority. */
struct waiting_call {
    struct waiting_call *next;
    uint64_t id, ticket;
    bool is_read;
    char *context;      /* Of a write's answer. */
    struct buf more;    /* Of the same: what it says besides. */
    struct buf request; /* Of a read. */
};

/* One shard. */
struct merger {
    struct merge_replica *replica; /* NULL: none is needed here. */
    uint32_t life;                 /* Counts them. */
    bool started;                  /* It knows its members. */
    bool whole;                    /* What was read of the disk is all that it ever acknowledged. */
    bool known;                    /* `record` is there. */
    uint64_t generation;           /* 0: the first. */
    uint64_t generation_durable;   /* As the disk has it. */
    bool generation_known;         /* The log or the disk has told of one. */
    bool restoring;                /* No call is served. */
    bool spoiled;                  /* It had documents when a restore came. */
    /* A member has a generation that this one has not read of: what is written here would go. Until
     * then, unless it says so again. */
    uint64_t doubted_until_ms;
    struct rep_record record;
    struct merge_members members;              /* As the replica was told; on disk, too. */
    uint64_t given_up_ms[MERGE_DEPARTING_MAX]; /* By place in departing: when it is forgotten. */
    uint64_t joint_config;                     /* Whose LEAVE was asked for last; 0: none. */
    uint64_t joint_ms;                         /* Since when. */
    bool joint_told, joint_over;               /* That it waits; it waited for long enough. */
    uint64_t told_config,
        holders_asked_ms; /* An owner without documents asks whether there are any. */
    uint32_t told_none;   /* By place of old members: has said that it has none. */
    uint64_t boot;
    uint64_t log_base;  /* The number of the record before this process's first. */
    uint64_t taken;     /* Records of it that were handed to a batch. */
    size_t log_bytes;   /* Since the last checkpoint. */
    size_t state_bytes; /* Of it, beside rows. */
    uint64_t checkpoint_ms;
    uint32_t held_count, held_capacity;
    size_t held_bytes;
    struct held *held;
    struct waiting_call *calls;
    uint64_t looked_ms; /* At what the following say: */
    uint64_t records[MERGE_POLICY_COUNT], siblings, record_bytes, documents;
    /* The latest moment of which all members have all that was written. 0: they are equal. */
    uint64_t apart_since_ms;
    struct mclock mark; /* What the members had between them at `mark_ms`. */
    uint64_t mark_ms;
    struct merge_key *swept;         /* The sweep has come up to here. */
    struct merge_key *swept_deleted; /* As above, of deleted collections. */
    uint64_t deleted_due_ms;
    uint64_t erased_stamp; /* Of the last erasure that the replica was told of. */
    bool erasures_full;    /* It takes no more of them, which was logged. */
    /* As above, of the presence of dead servers: when it is through, those that had ended by
     * `mourning` have no part left. */
    struct merge_key *swept_dead;
    uint64_t mourned, mourning;
    struct online online;
    /* How many were shown, and when. */
    uint64_t online_count, online_counted_ms;
};

struct disk_part {
    uint32_t shard;
    uint32_t life;     /* Of the replica: another one since then has another log. */
    uint64_t position; /* Of its log, durable with the batch; so is: */
    uint64_t generation;
};

/* One batch on its way to the disk. */
struct disk_job {
    uv_work_t work;
    struct mergers *mergers;
    struct merge_batch *batch;
    uint32_t count;
    struct disk_part *parts; /* Whose records are in it. */
    uint64_t took_ns;
    struct merge_db *db; /* Where it goes; the pool makes it if there is none. */
    bool open;
};

/* A member that a backup waited for in vain: for some seconds the other shards' do not. */
struct gather_absent {
    uint64_t member; /* 0: none. */
    uint64_t until_ms, since_wall_ms;
};
#define GATHER_ABSENT_MAX 16u

struct mergers {
    struct mergers_options options;
    /* mergers_drain: what is durable comes back by it. */
    void (*drain)(struct mergers *mergers, uint32_t shard);
    /* mergers_need, mergers_begin_again: for what mergers_shards.c calls itself. */
    struct merge_replica *(*need)(struct mergers *mergers, uint32_t shard);
    void (*begin_again)(struct mergers *mergers, uint32_t shard, uint64_t generation);
    /* mergers_message, and the same of a request of a pull whose turn has come. */
    err (*message)(struct mergers *mergers, uint64_t from, struct slice message);
    err (*serve)(struct mergers *mergers, uint64_t from, struct slice message);
    struct merger *shards;
    struct document_rules rules;
    struct hmac_key secret;
    bool has_secret;
    struct merge_db *db;      /* NULL: none was needed yet. */
    struct merge_batch *next; /* Gathers while `job` is on its way. */
    bool *in_next;            /* By shard. */
    struct disk_job job;
    struct loop_hook hook; /* Starts the job. */
    struct loop_timer timer;
    struct arena arena;
    uint32_t replicas;
    uint64_t repair_bytes, messages_dropped, calls, disk_ns;
    struct gather *gathers; /* First pages of backups that wait for other members. */
    uint64_t gather_last;
    struct gather_absent absent[GATHER_ABSENT_MAX];
    struct loop_timer gather_timer;
    uint32_t online_next;     /* The shard that is counted next. */
    struct pieces pieces;     /* Large messages on their way. */
    struct merge_rest *rests; /* Rows of large documents, for the next pages of backups. */
    uint64_t rest_number;     /* Of the latest of them. */
    bool stopping;
};

static inline bool mergers_is_member(const struct mergers *mergers, uint32_t shard)
{
    const struct merger *merger = &mergers->shards[shard];

    return merger->known && membership_has(&merger->record.membership, mergers->options.self);
}

/* mergers_shards.c */
/* Takes away what a call of the core has put out, and carries it out. */
void mergers_drain(struct mergers *mergers, uint32_t shard);
/* The replica, made if it was not needed before. NULL: this node is no member, or the shard's
 * record is not known. */
struct merge_replica *mergers_need(struct mergers *mergers, uint32_t shard);

/* The documents of the shard go, from the disk, too, and a generation begins without any. */
void mergers_begin_again(struct mergers *mergers, uint32_t shard, uint64_t generation);

/* mergers_generation.c */
uint64_t mergers_generation_of(const struct merger *merger);
/* Begins the generation that the shard's log names. */
void mergers_generation_follow(struct mergers *mergers, uint32_t shard);
/* The generation that it has will outlive its process. */
bool mergers_generation_begun(const struct merger *merger);
/* A member's message is of that generation. */
void mergers_generation_heard(struct mergers *mergers, uint32_t shard, uint64_t generation);
/* Why no call is served; NULL: calls are. */
const char *mergers_generation_bars(const struct mergers *mergers, uint32_t shard);

/* mergers_bars.c */
/* Whether the log takes what such a call may write. */
bool mergers_fits(const struct mergers *mergers, bool writes);
/* Why this member takes no such call of the shard now, which another may take; NULL: it does. */
const char *mergers_bars(struct mergers *mergers, uint32_t shard, bool writes);

/* mergers_backup.c */
void mergers_backup_init(struct mergers *mergers);
bool mergers_backup_has(uint32_t method);
void mergers_backup_call(struct mergers *mergers, const struct mergers_request *request);
/* A message between shells about backups; ERR_NOT_FOUND: it is another one. */
NODISCARD err mergers_backup_message(struct mergers *mergers, uint64_t from, struct slice message);
void mergers_backup_cancel(struct mergers *mergers, uint64_t call);
void mergers_backup_deinit(struct mergers *mergers);

/* mergers_leave.c */
/* A message between shells about leaving; ERR_NOT_FOUND: it is another one. */
NODISCARD err mergers_leave_message(struct mergers *mergers, uint64_t from, struct slice message);

/* mergers_pieces.c */
void mergers_pieces_init(struct mergers *mergers);
/* Sends a message of the core to a member, however large it is. */
void mergers_send(struct mergers *mergers, uint64_t to, struct slice message);
/* A message between shells about a large one; ERR_NOT_FOUND: it is another one. */
NODISCARD err mergers_pieces_message(struct mergers *mergers, uint64_t from, struct slice message);
/* Whether a request of a pull is served now; else it waits, or its answer is on its way. */
bool mergers_pieces_admit(struct mergers *mergers, uint64_t from, struct slice request);
void mergers_pieces_tick(struct mergers *mergers, uint64_t now_ms);
void mergers_pieces_deinit(struct mergers *mergers);

/* mergers_rest.c */
struct backup_page;
/* Where a reading is: behind the row `after`, which the rest `number` of a document gave. */
struct rest_place {
    uint32_t shard;
    uint64_t number;
    struct slice after;
};
/* The page behind it; without rows: all of that document was told. ERR_NOT_FOUND: it is kept no
 * more. */
NODISCARD err mergers_rest_find(struct mergers *mergers, const struct rest_place *place,
                                struct backup_page *page);
/* Leaves in the page what a frame holds of it, and keeps the rest under *ret_number; 0: there is
 * none. ERR_FULL: there is no room. */
NODISCARD err mergers_rest_keep(struct mergers *mergers, uint32_t shard, struct backup_page *page,
                                uint64_t *ret_number);
void mergers_rests_tick(struct mergers *mergers, uint64_t now_ms);
void mergers_rests_deinit(struct mergers *mergers);

/* mergers_options.c */
/* Of the shard's next replica, above that of its last. */
uint64_t mergers_next_boot(const struct mergers *mergers, uint32_t shard);
struct merge_options mergers_options_of(struct mergers *mergers, uint32_t shard);

/* mergers_disk.c */
NODISCARD err mergers_disk_open(struct mergers *mergers, char ret_text[MERGERS_TEXT_BYTES]);
void mergers_disk_close(struct mergers *mergers);
/* The shard's part of the next batch; it leaves at the end of this round. */
struct merge_batch *mergers_disk_batch(struct mergers *mergers, uint32_t shard);
void mergers_disk_members(struct mergers *mergers, uint32_t shard);
/* All of the replica that has changed; the log so far is not needed any more. */
void mergers_disk_checkpoint(struct mergers *mergers, uint32_t shard);
/* Nothing of the shard is kept. */
void mergers_disk_drop(struct mergers *mergers, uint32_t shard);
bool mergers_disk_is_full(const struct mergers *mergers);
bool mergers_disk_is_behind(const struct mergers *mergers);
void mergers_disk_run(void *user);

/* mergers_sweep.c: by the owner, in each tick; `looks`: walks begin, too, that did not end. */
void mergers_sweep(struct mergers *mergers, uint32_t shard, bool looks);

/* mergers_look.c: what there is, for limits and metrics. */
void mergers_look(struct merger *merger, uint64_t now_ms);

/* mergers_online.c */
void mergers_online_count(struct mergers *mergers, uint32_t shard);
/* Counts shards again, a bounded number of players. */
void mergers_online_tick(struct mergers *mergers);

/* mergers_erasures.c */
/* Whose documents a request is about, in the arena; empty: it does not say. */
struct slice mergers_entity(struct mergers *mergers, const struct method_info *method,
                            struct slice request);
/* Whether nothing of the entity is told or written now. */
bool mergers_hides(const struct mergers *mergers, uint32_t shard, struct slice entity);
/* Takes away what is purged of the entity, to be drained. */
void mergers_erase(struct mergers *mergers, uint32_t shard, struct slice entity);
/* The same of all entities whose erasure the replica has not heard of, a bounded number. */
void mergers_erasures_follow(struct mergers *mergers, uint32_t shard);

/* mergers_batch.c */
/* As mergers_call, of a batch that goes whole (method_goes_whole). */
NODISCARD err mergers_batch(struct mergers *mergers, const struct mergers_request *request);

/* mergers_answer.c */
/* For a call that is about the entity; empty: a job of the member's own. */
struct document_context mergers_context(struct mergers *mergers, uint32_t shard,
                                        struct slice entity, struct refusal *refusal);
void mergers_answer(struct mergers *mergers, uint64_t call, enum reply_status status,
                    struct slice body);
void mergers_refuse(struct mergers *mergers, uint64_t call, const struct refusal *refusal);
void mergers_refuse_unavailable(struct mergers *mergers, uint64_t call, const char *message);
void mergers_call_done(struct mergers *mergers, uint32_t shard, const struct merge_done *done);
void mergers_call_cancel(struct merger *merger, uint64_t id);
void mergers_call_drop_all(struct merger *merger);

#endif
