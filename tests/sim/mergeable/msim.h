/*
 * msim: the mergeable class in virtual time. One seed is one story: members that write on all sides
 * of cuts, crash, lose disks, get old images of them back, join and leave; a network that loses,
 * repeats, delays and reorders. The oracle knows each write and what it replaced, from what stood
 * there before and after, and judges reads as they come and all replicas once everything has
 * healed.
 */
#ifndef TESTS_SIM_MERGEABLE_MSIM_H
#define TESTS_SIM_MERGEABLE_MSIM_H

#include <stdnoreturn.h>

#include "node/core/mergeable/pieces.h"
#include "node/core/mergeable/policy.h"
#include "node/core/mergeable/replica.h"
#include "node/core/mergeable/write.h"

#define NODES         5u
#define KEYS          24u /* Four entities, a record of each form. */
#define FORMS         6u
#define COUNTERS      5u /* The form of counters. */
#define RETRIES       8u
#define OP_WINDOW_MS  6000u
#define CELL_REMOVERS 24u
#define SESSIONS      6u
#define SESSION_CELLS 64u
#define FLIGHT_MAX    4096u
#define STRICT_MAX    256u /* Configurations and erasures of one story. */
#define VALUE_BYTES   1032u

/* clang-format off */
#define MSIM_REACH(X) \
    X(writes) X(acked) X(majority_acked) X(memory) X(refused_clock) X(refused_syncing) \
    X(refused_majority) X(siblings_refused) X(reads) X(not_yet) X(majority_reads) X(majority_tokens) X(majority_not_yet) X(tokens) \
    X(tokens_forged) X(tokens_lost) X(crashes) X(disks_lost) X(images) X(damaged) X(voided) \
    X(cuts) X(joints) X(left) X(departed) X(erasures) X(sweeps) X(closed) X(pulls_full) \
    X(checkpoints) X(logs_kept) X(deletes) X(siblings) X(expired) X(config_changed_pending) \
    X(increments) X(resets) X(retries) X(retries_late) X(counters_judged) X(folded) X(eras) \
    X(power_cuts) X(deafened) X(leaps) X(stood) X(set_back) \
    X(pieces) X(joined) X(cut_short) X(requests_waited)
/* clang-format on */

struct counts {
#define FIELD(name) uint64_t name;
    MSIM_REACH(FIELD)
#undef FIELD
};

/* One value that some write made. */
struct cell {
    struct merge_dot dot;
    uint8_t path[16];
    uint32_t path_size;
    uint64_t hlc, expires_ms, value, erasure;
    uint32_t write; /* Which made it. */
    uint32_t remover_count;
    uint32_t removers[CELL_REMOVERS]; /* Writes that replaced it. */
};

struct write {
    struct merge_dot dot;
    uint32_t key, node;
    uint64_t ticket, boot, erasure;
    uint64_t acked_at; /* Its place among acknowledgements; 0: none. */
    enum merge_durability durability;
    bool exempt; /* Exempt: every disk that had it was lost. */
};

/* What a write counts, and what a reset took away: increments, by number. */
struct increment {
    uint32_t write, key;
    uint8_t path; /* Its first letter: names of counters have one. */
    int64_t delta;
    uint64_t op, hlc, expires_ms, erasure;
};

struct reset {
    uint32_t write, key;
    uint64_t erasure;
    uint32_t covered_count;
    uint32_t *covered;
};

/* The dots of an actor that all members agreed on at its end; others are void. No caller waits for
 * a closing, so no promise keeps one that is on no disk: it is undone when all that knew it crash.
 * A dot that it made void may then come back with an old image of the disk of its writer, which has
 * it as any member has what it wrote; then it counts. Once a disk had the closing it holds. */
struct ended {
    uint64_t actor;
    struct mclock dots;       /* Of that actor alone. */
    uint64_t known_at[NODES]; /* The place in the node's log that has it; 0: the node has not. */
    bool on_disk;             /* Of at least one node, once. */
};

/* An increment whose answer the caller did not get. */
struct again {
    bool used;
    uint32_t key;
    char path[2];
    int64_t delta;
    uint64_t op, op_ms, expires_ms;
    enum merge_durability durability;
};

struct disk_row {
    struct merge_key *key;
    struct buf bytes;
};

struct disk {
    bool exists;
    struct buf state;
    uint32_t row_count;
    struct disk_row *rows;
    uint64_t first, synced; /* Places in the log: of log[0]; up to here it survives a crash. */
    uint32_t log_count;
    struct buf *log;
};

struct held {
    uint64_t to, after;
    struct buf bytes;
};

struct node {
    struct msim *sim;
    uint64_t id;
    struct pieces pieces;              /* Of a process. */
    struct merge_replica *replica;     /* NULL: down. */
    uint64_t boot;                     /* Its lives. */
    uint64_t told_boot, told_boot_max; /* What its process says of that; a clock may be set back. */
    uint64_t log_base;                 /* Where in the disk's log this process began. */
    struct disk disk, image;
    uint64_t image_erasures;
    int64_t skew_ms;
    uint64_t leap_ms, leaps_until_ms; /* Its clock is so far ahead until then. */
    uint32_t side;                    /* Of the cut. */
    uint32_t deaf;                    /* Bit i: nothing comes from nodes[i]. */
    uint32_t strict_applied;
    bool syncing; /* As it was when last seen. */
    uint64_t up_at_ms;
    uint32_t held_count;
    struct held held[512];
};

struct flight {
    uint64_t at_ms, from, to;
    struct buf bytes;
};

/* What the strict log of the shard says. */
struct strict {
    bool is_erasure;
    struct merge_members members;
    uint32_t entity;
    uint64_t number;
};

struct session {
    bool used;
    uint32_t key;
    uint64_t erasure;
    struct buf token;
    uint32_t seen_count, own_count, gone_count;
    /* Cells: those of the last read, what it wrote since, and what was replaced of both. */
    uint32_t seen[SESSION_CELLS], own[SESSION_CELLS], gone[SESSION_CELLS];
    struct causal past; /* Of the record that it read last. */
};

struct majority_read {
    bool used;
    uint32_t node, key;
    uint64_t ticket, boot, acked_before;
    struct session *session; /* Whose context it brought; NULL: without one. */
    struct buf token;
};

struct msim {
    uint64_t seed, random, now_ms;
    uint64_t acked_last;
    bool healing;
    struct merge_key *keys[KEYS];
    struct node nodes[NODES];
    struct merge_members members; /* The latest. */
    uint32_t index_max;
    uint32_t flight_count;
    struct flight flights[FLIGHT_MAX];
    uint32_t strict_count;
    struct strict strict[STRICT_MAX];
    uint64_t erasures[4]; /* Numbers of the entities. */
    uint32_t write_count, write_capacity;
    struct write *writes;
    uint32_t cell_count, cell_capacity;
    struct cell *cells;
    struct session sessions[SESSIONS];
    struct majority_read reads[8];
    struct again retries[RETRIES];
    uint32_t increment_count, reset_count, ended_count;
    struct increment *increments;
    struct reset *resets;
    struct ended *ended;
    uint32_t closed_max;
    uint32_t lost_per_thousand, late_per_thousand; /* Of messages, until it heals. */
    uint32_t synced_per_thousand;                  /* Of steps. */
    bool loses_many;                               /* Several members may lack what they had. */
    bool leaps;                                    /* Clocks go far ahead for a moment. */
    bool large;                                    /* Records are, and go in pieces. */
    uint32_t in_pieces_count;
    struct hash128 *in_pieces; /* What was sent so. */
    bool counts_most;          /* Most writes count, or reset. */
    uint64_t fades_ms; /* From then on most writes delete, so records go for good; 0: never. */
    struct counts *counts;
};

uint64_t msim_next(struct msim *sim);
/* Both included. */
uint64_t msim_between(struct msim *sim, uint64_t low, uint64_t high);
bool msim_chance(struct msim *sim, uint32_t per_thousand);
noreturn void msim_broken(const struct msim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define PROMISE(sim, condition, ...) ((condition) ? (void)0 : msim_broken(sim, "" __VA_ARGS__))

/* ---- network.c: links, pieces of what no frame holds ---- */
void msim_pieces_init(struct node *node);
/* The node sends a message of its replica. */
void msim_send(struct node *node, uint64_t to, struct slice message);
void msim_deliver(struct msim *sim);
void msim_network_free(struct msim *sim);

/* ---- world.c: processes, disks ---- */
enum merge_policy msim_policy(uint32_t key);
uint64_t msim_wall(const struct msim *sim, const struct node *node);
struct node *msim_node(struct msim *sim, uint64_t id);
bool msim_is_named(const struct msim *sim, uint64_t id);
/* Takes away what the replica put out. */
void msim_drain(struct msim *sim, struct node *node);
void msim_sync(struct msim *sim, struct node *node);
void msim_checkpoint(struct msim *sim, struct node *node, bool cut_log);
void msim_crash(struct msim *sim, struct node *node);
void msim_start(struct msim *sim, struct node *node, bool whole);
/* A replica as it would come back from the node's disk now; NULL: it has none. */
struct merge_replica *msim_recover(struct msim *sim, struct node *node);
void msim_strict(struct msim *sim, struct node *node);
void disk_deinit(struct disk *disk);
void disk_copy(struct disk *to, const struct disk *from);
void msim_world_free(struct msim *sim);

/* ---- trouble.c ---- */
void msim_trouble(struct msim *sim);
/* What goes on in healing too: configurations end, removed members go. */
void msim_members(struct msim *sim);
void msim_heal(struct msim *sim);

/* ---- caller.c ---- */
void msim_call(struct msim *sim);
/* The value of a write of that record, of `number`. */
struct slice msim_value(const struct msim *sim, uint32_t key, uint64_t number,
                        uint8_t ret_bytes[VALUE_BYTES]);
void msim_sweep(struct msim *sim);
void msim_done(struct msim *sim, struct node *node, const struct merge_done *done);

/* ---- oracle.c ---- */
/* Notes a write from what stood there before and after; its number. */
struct noted {
    uint32_t key;
    struct node *node;
    struct merge_written written;
    enum merge_durability durability;
    const struct merge_record *before, *after;
    bool is_sweep;
    const struct session *session; /* Whose token it had, covering what is not there; NULL: none. */
};
uint32_t oracle_write(struct msim *sim, const struct noted *noted);
void oracle_acked(struct msim *sim, const struct node *node, uint64_t ticket);
/* The cell's number; UINT32_MAX: no write made it. */
uint32_t oracle_cell(const struct msim *sim, const struct merge_cell *cell);
void oracle_shown(struct msim *sim, const struct merge_record *record, uint64_t now_ms);
/* The session knows nothing of its record. */
void oracle_session_begin(struct session *session);
/* A read with the session's token was answered; the session then knows what it saw. */
void oracle_session_read(struct msim *sim, struct session *session,
                         const struct merge_record *record);
/* A write of the session was taken, perhaps where what it saw has not come yet, and stands under
 * that dot. Of the record it is shown nothing else. */
void oracle_session_wrote(struct msim *sim, struct session *session,
                          const struct merge_record *record, struct merge_dot dot);
void oracle_majority_read(struct msim *sim, const struct majority_read *read,
                          const struct merge_record *record);
/* The node's disk is about to be lost, or just one record of it (UINT32_MAX: all). */
void oracle_loss(struct msim *sim, const struct node *node, uint32_t key);
void oracle_healed(struct msim *sim);

/* ---- ended.c: actors that members have closed, and then forget ---- */
void ended_watch(struct msim *sim);
/* The node has crashed: what its disk does not have it does not know any more. */
void ended_crashed(struct msim *sim, const struct node *node);
/* The dot is not void. It was in when its actor was closed; of an actor that is not closed, as what
 * has forgotten the eras below `era` says: an actor of those of which no member ever heard had
 * none. */
bool ended_has(const struct msim *sim, struct merge_dot dot, uint16_t era);
/* The clock holds the dot, or has forgotten its actor, which had it. */
bool ended_holds(const struct msim *sim, const struct mclock *clock, struct merge_dot dot);
void ended_free(struct msim *sim);

/* ---- counting.c: what counters must say ---- */
/* The policy of the record is COUNTER. `op`: of its increments. */
void counting_write(struct msim *sim, const struct noted *noted, uint32_t write);
/* A counter says the sum of what its record has taken in, at whichever member and time. */
void counting_judge(struct msim *sim, const struct merge_record *record, uint32_t key,
                    uint64_t now_ms);
/* A majority's read has each increment and reset that a majority acknowledged before. */
void counting_majority(struct msim *sim, const struct majority_read *read,
                       const struct merge_record *record);
void counting_free(struct msim *sim);

#endif
