/* Inside of worker.h: shared by the worker*.c files alone. */
#ifndef NODE_IO_WORKER_WORKER_INTERNAL_H
#define NODE_IO_WORKER_WORKER_INTERNAL_H

#include <uv.h>

#include "node/io/worker/spans.h"
#include "node/io/worker/worker.h"
#include "runtime/base/log_gate.h"
#include "runtime/base/check.h"
#include "runtime/loop/mailbox.h"
#include "runtime/trace/slow_gate.h"

/* A snapshot takes a shard's place: the shard takes no step meanwhile. */
enum install {
    INSTALL_NONE,
    INSTALL_DRAIN,   /* What the shard asked for is on its way. */
    INSTALL_SWITCH,  /* The database begins to count the snapshot's rows, */
    INSTALL_RESET,   /* the log forgets its entries, */
    INSTALL_EMPTIED, /* and did; the database has no room for the next step yet. */
    INSTALL_FINISH,  /* the note of that is taken away; all is read again. */
    INSTALL_RECOVER  /* At a start: the log forgets its entries. */
};

/* A shard on its way to a backup, docs/backup.md. */
enum backup_state {
    BACKUP_NONE,
    BACKUP_ARMED,  /* Waits for the cut; no checkpoint may be open then. */
    BACKUP_FROZEN, /* Its checkpoint at the cut waits to be written. */
    BACKUP_VIEWED  /* There is a view of what was written. */
};

struct backup {
    enum backup_state state;
    uint64_t cut;
    uint64_t touched_ms;
    struct shard_checkpoint checkpoint; /* FROZEN */
    struct db_view *view;               /* VIEWED */
    uint64_t index;                     /* What it shows. */
    uint32_t reads_open;
};

/* One shard at this node. */
struct slot {
    struct shard *shard; /* NULL: not held here. */
    bool damaged;        /* Not recovered; `shard` waits to be removed, with nothing in it. */
    bool flush_listed;
    uint32_t open_entries;  /* Proposed here and not yet committed. */
    bool was_serving;       /* At the last step, */
    uint64_t events;        /* and how many events it had written (event_log.h). */
    uint64_t durable_index; /* Covered by a finished db_flush. */
    uint64_t written_index; /* Of the last checkpoint. */
    uint64_t checkpoints;   /* Written. */
    uint64_t replayed;      /* Entries that the log had behind the checkpoint. */
    enum install install;
    uint64_t install_ms;      /* Not before then: the database had no room for the step. */
    bool resumes;             /* The shard after the installation may go on with a promotion. */
    bool has_record;          /* `record` is the newest that was heard of. */
    struct rep_record record; /* For the shard after the installation. */
    struct db_view *view;     /* That a snapshot is read from. While a page is read: the job's. */
    struct buf snapshot_meta;
    uint32_t loads_open, writes_open, snapshot_jobs; /* On their way. */
    struct log_gate diverged; /* Of the line that says so: it is found again and again. */
    struct backup backup;
};

/*
 * Which proposals wait for company: as routers pace requests (DESIGN section 9), so an owner holds
 * what is proposed while earlier entries are on their way, until some commit or enough wait. One
 * message per peer and one sync then carry many; a lone call never waits.
 */
#define PACE_ENTRIES 16u
#define PACE_MS_MAX  1u
struct pace {
    uint32_t open; /* Entries of all shards, proposed here and not yet committed... */
    uint32_t held; /* ... and those among them that have not been flushed. */
    bool urgent;   /* Something committed, or a read asks for a round. */
};

/* Of a write, for its line if it is slow. */
struct slow_write {
    uint64_t handed_ns;
    uint64_t stalled_ns; /* Nothing ran here for so long, just before it came. */
    uint64_t last_index; /* 0: it has no entries. */
    uint64_t from;       /* The replica that sent it; 0: it is our own. */
    uint8_t trace[TRACE_ID_SIZE];
};

/* Fields of one line, in order. */
struct slow_line {
    struct log_field fields[16];
    uint32_t count;
};

struct worker;
typedef void worker_reset_done(struct worker *worker, uint32_t shard);

/* Writes on their way to the log; kept in a pool. */
struct write_job {
    struct mailbox_node node;
    struct node_log_request request;
    struct write_job *next_free;
    struct rep_write *writes;
    uint32_t write_capacity;
    struct slow_write slow;
    worker_reset_done *reset_done; /* Of NODE_LOG_RESET. */
};

/* Rows or log entries being read by the pool. */
enum load_kind { LOAD_ROWS, LOAD_RANGE, LOAD_LOG };

struct load_job {
    struct load_job *next; /* In a list, or free. */
    enum load_kind kind;
    uint32_t shard;
    uint64_t load_generation;
    struct buf keys; /* As in struct need: u32 length + key; a range for LOAD_RANGE. */
    uint32_t key_count;
    struct node_log_range log_range;
    struct db_rows rows;
    struct entry **entries;
    uint32_t entry_count;
    err result;
};

struct load_list {
    struct load_job *first, *last;
    uint32_t count;
};

/* What one thread of the pool reads in one go: to it and back costs as much as a row. While as many
 * as LOAD_BATCHES_MAX are on their way, what else is wanted gathers for the next. */
#define LOAD_BATCHES_MAX 3u

struct load_batch {
    uv_work_t work;
    struct worker *worker;
    struct load_list jobs;
    bool open;
};

/* At most one checkpoint or flush is on its way. */
struct checkpoint_job {
    uv_work_t work;
    struct worker *worker;
    uint32_t shard;
    bool flush;
    bool of_backup; /* Begun at a backup's cut. */
    struct shard_checkpoint checkpoint;
    err result;
    uint64_t *flush_indexes; /* By shard: what the flush covers. */
};

/* A shard between what the disks say of it and its adoption. */
struct recovery {
    struct shard_image image;
    struct buf meta_row;
    struct db_rows timers;
    struct db_rows erasures;
};

struct snapshot_job;

struct worker {
    struct worker_options options;
    /* worker_step: one event for one shard, and what follows from it; none while it is installed.
     * Blocking work that is done comes back by it. */
    void (*step)(struct worker *worker, uint32_t shard, struct shard_event *event);
    struct slot *slots;
    struct check_watch watch; /* Of checks that fail in a step ... */
    uint32_t stepped;         /* ... of this shard. */
    uint32_t held;
    struct shard_out out;
    struct arena_pool arenas; /* Of all its shards: one step at a time needs any. */
    /* Gives back rows, flushes shards, then hands the round's writes to the log. */
    struct loop_hook round_hook;
    uint32_t *flush_list;
    uint32_t flush_count;
    struct pace pace;
    struct loop_timer pace_timer;
    struct loop_timer tick_timer;
    uint64_t ticks;
    uint64_t views_due_ms; /* When all shards are published again. */
    struct mailbox persisted;
    struct node_log_client log_client;
    struct write_job *free_writes;
    struct node_log_request *writes_newest, *writes_oldest; /* Of this round, linked by next. */
    uint32_t writes_open;
    struct load_job *free_loads;
    struct load_list loads_asked;   /* In this round. */
    struct load_list loads_waiting; /* For a batch: they may need the disk. */
    struct load_batch load_batches[LOAD_BATCHES_MAX];
    uint32_t loads_open;
    uint8_t load_here[UINT8_MAX + 1]; /* By table, how often rows need no disk: of 255. */
    uint32_t loads_sent;              /* Without looking here. */
    struct snapshot_job *snapshots_waiting;
    uint32_t snapshots_open;
    struct checkpoint_job checkpoint;
    bool checkpoint_running;
    bool checkpoint_waits;    /* Begun; its index is not durable in the log yet. */
    uint32_t checkpoint_next; /* Shard to look at next; shard_count: time to flush. */
    uint64_t checkpoint_due_ms;
    bool checkpoint_pressed;     /* Dirty rows fill more than half of the cache. */
    bool checkpoint_hurry;       /* Do not wait between shards. */
    uint64_t checkpoint_full_ms; /* The database had no room: none before then. */
    uint64_t checkpoint_rounds;
    uint32_t backup_reads_open;
    struct spans *spans;
    struct slow_gate slow;
    uint64_t clock_ns; /* As of this step; 0: not read in it. */
    uint64_t ticked_ns, stalled_ns, stall_over_ns;
    struct {
        uint64_t from;
        const uint8_t *trace;
    } incoming; /* During a replica's message; trace NULL: none. */
    bool full;  /* The shards were told that the disk is. */
    bool stopping;
};

/* worker_adopt.c: one shard. */
void worker_publish(struct worker *worker, uint32_t shard);
/* Tells the shard whether the disk is full. */
void worker_tell_space(const struct worker *worker, struct shard *shard);
NODISCARD err worker_adopt(struct worker *worker, uint32_t shard, const struct shard_image *image);
/* The meta row is the database's word on where its rows stand. */
NODISCARD err worker_recovery_image(struct recovery *recovery);
NODISCARD err worker_recovery_timers(struct worker *worker, uint32_t shard,
                                     struct recovery *recovery);
/* What database and log have of one shard; blocks on the disk. Fails like node_log_recover_shard
 * and db_load_prefix. */
NODISCARD err worker_recovery_read(struct worker *worker, uint32_t shard,
                                   struct recovery *recovery);
/* Afterwards the shard is there, or nothing was done. */
NODISCARD err worker_recovery_take(struct worker *worker, uint32_t shard,
                                   struct recovery *recovery);
/* Afterwards the shard is there; on error it is marked damaged and reported. */
NODISCARD err worker_recovery_adopt(struct worker *worker, uint32_t shard,
                                    struct recovery *recovery);
void worker_recovery_deinit(struct recovery *recovery);
/* Marks the shard damaged and reports it. */
void worker_give_up(struct worker *worker, uint32_t shard, err e);
/* Its log is of a later apply version than this program knows. */
void worker_too_new(const struct worker *worker, uint32_t shard);

/* worker_slow.c: what is told of slow calls and writes, docs/logs.md. */
/* The time, read at most once a step. */
uint64_t worker_clock(struct worker *worker);
/* After a step and before what it asked for is carried out: which entry a call became, what has
 * committed. */
void worker_slow_step(struct worker *worker, uint32_t shard, const struct shard_event *event);
void worker_slow_answer(struct worker *worker, uint64_t call, enum reply_status status);
void worker_slow_begin_write(struct worker *worker, struct write_job *job);
void worker_slow_end_write(struct worker *worker, const struct write_job *job);
void worker_slow_tick(struct worker *worker);

/* worker_write.c */
void worker_write_init(struct worker *worker);
void worker_write_deinit(struct worker *worker);
/* Takes over the writes of the step; they leave for the log when the round ends. */
void worker_write_submit(struct worker *worker, uint32_t shard, struct rep_out *out);
void worker_write_start(struct worker *worker);
/* The log is to forget the shard's entries; then `done`, unless the worker stops. */
void worker_write_reset(struct worker *worker, uint32_t shard, worker_reset_done *done);

/* worker_load.c */
void worker_load_rows(struct worker *worker, uint32_t shard, const struct need *need);
void worker_load_log(struct worker *worker, uint32_t shard, const struct rep_log_read *read);
/* At the end of a round: gives back rows that needed no disk, sends for the others. */
void worker_load_round(struct worker *worker);
void worker_load_init(struct worker *worker);
void worker_load_deinit(struct worker *worker);

/* worker_snapshot.c */
void worker_snapshot(struct worker *worker, uint32_t shard, struct snapshot_actions *actions);
void worker_snapshot_tick(struct worker *worker);
/* At a start: ends an installation that a crash cut short. */
NODISCARD err worker_snapshot_recover(struct worker *worker, uint32_t shard);
void worker_snapshot_deinit(struct worker *worker);

/* worker_checkpoint.c */
void worker_checkpoint_tick(struct worker *worker);
/* Gives up one that waits for the log. */
void worker_checkpoint_abandon(struct worker *worker);

/* worker_backup.c */
/* METHOD_SHARD_VIEW. */
void worker_backup_call(struct worker *worker, uint32_t shard, uint64_t call, uint32_t method,
                        struct slice request);
/* The shard stands at the cut that it was armed for: freezes it, and lets it pass. */
void worker_backup_freeze(struct worker *worker, uint32_t shard);
/* A frozen shard whose checkpoint is to be written next; UINT32_MAX: none. */
uint32_t worker_backup_frozen(const struct worker *worker);
/* That checkpoint is written, or failed. */
void worker_backup_written(struct worker *worker, uint32_t shard, bool written);
/* Gives up a cut that is not viewed yet. */
void worker_backup_drop(struct worker *worker, uint32_t shard);
/* Gives up views that are no longer asked for. */
void worker_backup_tick(struct worker *worker);
void worker_backup_deinit(struct worker *worker);

/* worker_step.c, which carries out by all of the above. */
void worker_step_init(struct worker *worker);
void worker_step_deinit(struct worker *worker);
void worker_step(struct worker *worker, uint32_t shard, struct shard_event *event);

#endif
