/*
 * rep_internal: the state of rep, shared by its verbs alone.
 *
 *   rep_out.c      what a step asks its shell to do
 *   rep_peer.c     the other members: quorums, versions, what of the log they need
 *   rep_log.c      the entries in memory: append, truncate, durability, eviction
 *   rep_promise.c  the promise, the role, and who deposes whom
 *   rep_compose.c  messages
 *   rep_judge.c    outcomes that differ
 *   rep_clock.c    clocks that are ahead
 *   rep_read.c     confirmation rounds
 *   rep_append.c   the owner: START, propose, send, acknowledgements, commit
 *   rep_accept.c   the follower: check, store, acknowledge
 *   rep_fetch.c    adoption of the greatest log; entries read back from disk
 *   rep_seal.c     SEAL, promotion up to START
 *   rep_step.c     new, free, dispatch of events, invariants
 *   rep_view.c     accessors
 *
 * Each uses those above it alone.
 */
#ifndef NODE_CORE_REPLICATION_REP_INTERNAL_H
#define NODE_CORE_REPLICATION_REP_INTERNAL_H

#include "node/core/replication/rep.h"

#define REP_PEERS_MAX    (2u * MEMBERS_MAX)
#define REP_OUTCOMES_MAX 256u
/* What a peer that differs came to, so many indexes of it. */
#define REP_TOLD_MAX REP_OUTCOMES_MAX
/* Unacknowledged APPENDs of full size on their way to one peer, at most. */
#define REP_PIPELINE 4u
/* Of entries that every member has, so many bytes stay in memory. */
#define REP_SHARED_BYTES 4096u
/* So many times the in-flight limit of committed entries may wait to be applied. */
#define REP_UNAPPLIED_FACTOR 4u
/* A source of entries that stays silent for so many retries is given up. */
#define REP_FETCH_TRIES_MAX 3u

struct rep_slot {
    struct entry *entry;
    uint64_t ticket;    /* Of the write; 0: durable since before this life. */
    uint64_t bytes_end; /* Encoded bytes of this and all earlier entries since rep_new. */
};

/* The newest entries, base_index + 1 to last_index, in a ring. */
struct rep_window {
    struct rep_slot *slots;
    uint32_t capacity; /* A power of two. */
    uint64_t base_index;
    struct hash128 base_hash;
    uint64_t base_ms;
    uint64_t base_bytes;
    uint64_t last_index;
};

enum rep_peer_mode {
    REP_PEER_PROBE, /* Where its log ends is a guess: one message at a time. */
    REP_PEER_STREAM /* It follows: messages are sent before earlier ones are acknowledged. */
};

/* What an owner (or one who wants to be) knows of another member. */
struct rep_peer {
    uint64_t replica;
    uint64_t heard_ms;
    bool votes;
    bool learner;           /* It promises nothing to us, and counts nowhere. */
    bool vote_lost;         /* Wiped or damaged while we own the shard. */
    uint32_t apply_version; /* 0: unknown. */
    /* Promotion. */
    bool sealed;
    bool given_up; /* As a source; counts in no quorum until it answers again. */
    struct dot sealed_dot;
    uint64_t sealed_commit_index;
    struct vector sealed_vector;
    /* Its outcomes, as compared with ours in this epoch (rep_judge.c). */
    uint64_t agreed_index;
    uint64_t differs_index; /* Where they were first seen to differ; 0: they do not. */
    uint32_t same_as;  /* Bits by place in rep.peers: who differs as it does, where last seen. */
    bool diverged;     /* A majority agrees with us: it is told so. */
    bool quarantined;  /* It says that it was found to differ, by us or another owner. */
    bool clock_behind; /* It says so of its clock: see rep_message.behind. */
    /* Replication. */
    enum rep_peer_mode mode;
    bool probing;        /* PROBE: a message is on its way, */
    uint64_t probe_prev; /* ... it follows this index, */
    uint64_t probe_last; /* ... and ends at this one. */
    bool needs_snapshot;
    bool reading; /* A log_read from next_index is on its way. */
    uint64_t read_ms;
    uint64_t matched_index; /* Identical with our log and durable there, seen in this epoch. */
    uint64_t next_index;    /* To be sent next. */
    uint64_t sent_ms;       /* Any APPEND, heartbeats too. */
    uint64_t progress_ms;   /* Begins the wait for an acknowledgement. */
    uint64_t moved_ms;      /* matched_index rose then, or was all there is. */
    uint64_t round_sent;
    uint64_t round_acked;
};

struct rep_outcome {
    uint64_t index;
    struct hash128 hash;
};

struct rep_seal_answer {
    bool due;
    uint64_t to;
    uint64_t ticket; /* Everything up to it must be durable first. */
};

/* One who adopts our log waits for entries that are only on disk. */
struct rep_fetch_answer {
    bool due;
    uint64_t to;
    uint64_t from_index;
};

struct rep {
    uint32_t shard;
    uint64_t self;
    struct rep_limits limits;
    bool votes;
    enum rep_role role;
    uint64_t now_ms;
    uint64_t unix_ms;
    uint64_t cut_id;

    struct promise promise;
    uint64_t promise_ticket;

    /* The greatest record or promise seen, and what came with it. */
    uint64_t generation;
    struct promise known;
    struct membership membership;
    uint32_t apply_version;     /* In force: the greatest of any START in the log. */
    uint32_t apply_version_max; /* Of this program. */
    uint32_t apply_version_floor;
    uint32_t members_version; /* Least of all members', as the last owner told; 0: unknown. */
    uint64_t members_config;  /* Who they were. */
    uint64_t owner_heard_ms;

    struct rep_window window;
    struct vector vector;         /* Up to window.last_index. */
    struct vector applied_vector; /* Up to applied_index; never truncated. */
    uint32_t applied_version;     /* The same of apply_version. */
    uint64_t commit_index;
    uint64_t applied_index;
    uint64_t durable_index; /* Every entry up to it is durable here. */
    uint64_t written_index; /* ... was handed to the shell. */
    uint64_t ticket_step;   /* Of this step; 0: nothing written yet. */
    uint64_t ticket_last;
    uint64_t ticket_persisted;

    /* Follower. */
    uint64_t verified_index; /* Identical with the log of the promise's owner. */
    uint64_t told_index;     /* Last matched index acknowledged to that owner. */
    uint64_t told_round;
    uint64_t owner_commit_index;
    uint64_t owner_unix_ms; /* Its clock, as it told last; 0: not known. */
    uint64_t refused_index; /* Of that owner's entries, the last that was dated ahead; 0: none. */
    uint64_t retain_index;
    uint64_t snapshot_source;
    bool rows_wanting; /* ADOPTING: see rep_wants_rows. */
    bool resumes;      /* See rep_image. */
    bool dropped;      /* Likewise. */
    bool buried;       /* REP_DAMAGED: a confirmed record does not name it, and that is promised. */
    struct rep_seal_answer seal_answer;
    struct rep_fetch_answer fetch_answer;

    /* Owner and those who would be. The membership is that of the record. */
    struct rep_peer *peers;
    uint32_t peer_count;
    uint64_t seal_ms;        /* When seals were sent last. */
    uint64_t seal_begun_ms;  /* When they were sent first. */
    struct rep_peer *source; /* ADOPTING: entries come from here, */
    struct dot source_dot;   /* ... up to this dot. */
    uint64_t source_ms;
    uint32_t source_tries;
    uint64_t sealed_index; /* Where our log ended when it was sealed. */
    uint64_t ahead_index;  /* The first entry of it that is dated ahead; 0: none. */
    uint64_t start_index;
    uint64_t outgrown_ms; /* Since when every member applies a later version; 0: one does not. */
    uint64_t round_started;
    bool round_open; /* round_started is not confirmed yet. */
    bool round_wanted;
    uint64_t round_index;
    uint64_t round_ms, round_unix_ms; /* When round_started began. */

    bool quarantined;       /* Our outcomes are wrong, or the next entry cannot be applied. */
    bool differs;           /* Our outcomes are wrong; see rep_image. */
    uint64_t differs_index; /* Owner: the last index at which somebody was first seen to differ. */
    struct rep_outcome *outcomes; /* Ring by index; made on first use. */
    struct rep_outcome expected;  /* A peer's, at an index not applied here yet. */
    uint32_t witnesses;           /* rep_judge.c: those of one mind who are counted just now. */
    struct rep_outcome *told; /* Owner: of peers that differ, by place, REP_TOLD_MAX each, a ring
                               * by index; made on first use, and NULL again with `peers`. */
};

/* rep_out.c */
uint64_t rep_ticket(struct rep *rep);
void rep_write_entry(struct rep *rep, struct entry *entry, struct rep_out *out);
void rep_write_promise(struct rep *rep, struct rep_out *out);
void rep_write_truncate(struct rep *rep, uint64_t keep_index, struct rep_out *out);
void rep_ask_log(struct rep_out *out, uint64_t from_index, uint64_t to_index);
/* Takes a reference, until the output is cleared. */
void rep_note_orphan(struct rep_out *out, struct entry *entry);

/* rep_peer.c */
/* It holds nothing, and was removed. */
bool rep_is_empty_tombstone(const struct rep *rep);
/* It owns the shard, or is about to. */
bool rep_leads(const struct rep *rep);
struct rep_peer *rep_peer_find(const struct rep *rep, uint64_t replica);
/* Whether those for whom `may` says yes could have made a commit, a peer whose word does not count
 * included. Of a joint record the old members alone are asked: what was committed before it needed
 * no others. */
bool rep_may_be_quorum(const struct rep *rep, bool self_may,
                       bool (*may)(const struct rep *rep, const struct rep_peer *peer));
/* Majority, or both majorities, of those for whom `holds` says yes; self included. */
bool rep_quorum(const struct rep *rep, bool self_holds,
                bool (*holds)(const struct rep *rep, const struct rep_peer *peer));
/* The least of all members', so an entry is never of a version that one of them cannot apply. */
uint32_t rep_apply_version_min(const struct rep *rep);

/* rep_log.c */
void rep_log_init(struct rep *rep, const struct rep_image *image);
void rep_log_deinit(struct rep *rep);
/* NULL unless in memory. */
struct rep_slot *rep_log_slot(const struct rep *rep, uint64_t index);
/* index within base_index .. last_index. */
struct hash128 rep_log_hash(const struct rep *rep, uint64_t index);
uint64_t rep_log_bytes(const struct rep *rep, uint64_t from_index, uint64_t to_index);
struct dot rep_log_last_dot(const struct rep *rep);
uint64_t rep_log_last_ms(const struct rep *rep);
/* Entries stay in memory until they are applied: false when too many committed ones wait. Those
 * that are not committed are bounded by their owner, and must be taken: only START behind them
 * can commit them. */
bool rep_log_has_room(const struct rep *rep);
/* True when `entry` may follow the last one: chain, counters, START. */
bool rep_log_follows(const struct rep *rep, const struct entry *entry);
/* Takes a reference of its own; written by the next rep_log_write. */
void rep_log_push(struct rep *rep, struct entry *entry);
void rep_log_write(struct rep *rep, struct rep_out *out);
void rep_log_truncate(struct rep *rep, uint64_t keep_index, struct rep_out *out);
void rep_log_persisted(struct rep *rep, uint64_t ticket);
void rep_log_applied(struct rep *rep, uint64_t index);
void rep_log_check(const struct rep *rep);

/* rep_promise.c */
void rep_role_set(struct rep *rep, enum rep_role role, struct rep_out *out);
enum rep_order { REP_LOWER, REP_SAME, REP_GREATER };
/* How (config, epoch, owner) stands to the promise; LOWER is refused. */
enum rep_order rep_promise_order(const struct rep *rep, const struct promise *asked);
struct promise rep_promise_of(const struct rep_message *message);
void rep_promise(struct rep *rep, const struct promise *promise, struct rep_out *out);
void rep_know(struct rep *rep, const struct promise *promise);
/* A member refused and told its promise: if that is above ours, we are deposed. */
void rep_refused(struct rep *rep, const struct promise *theirs, struct rep_out *out);
/* Stops whatever an owner, or one who would be, does. */
void rep_step_down(struct rep *rep, struct rep_out *out);

/* rep_compose.c */
struct rep_message rep_message_make(const struct rep *rep, enum rep_message_type type);
/* Adds entries from `from_index` up to `to_index` within the limits; returns the last one added. */
uint64_t rep_message_fill(const struct rep *rep, struct rep_message *message, uint64_t from_index,
                          uint64_t to_index);
/* The same from borrowed entries; returns how many were added. */
uint32_t rep_message_fill_from(const struct rep *rep, struct rep_message *message,
                               struct entry *const *entries, uint32_t entry_count);

/* rep_judge.c */
void rep_outcome_note(struct rep *rep, uint64_t index, struct hash128 hash, struct rep_out *out);
/* It has other rows than those that it was compared by, or none. */
void rep_judge_forget(struct rep *rep, struct rep_peer *peer);
enum rep_verdict { REP_UNKNOWN_OUTCOME, REP_SAME_OUTCOME, REP_OTHER_OUTCOME };
enum rep_verdict rep_outcome_compare(struct rep *rep, const struct rep_message *m,
                                     struct rep_out *out);
/* This replica's outcomes are wrong: it owns nothing from here on. */
void rep_quarantine(struct rep *rep, struct rep_out *out);
/* An owner has compared what it came to with what a peer says that it did, `theirs`. May end its
 * ownership: `peer` is gone then. */
void rep_judge(struct rep *rep, struct rep_peer *peer, const struct rep_outcome *theirs,
               enum rep_verdict verdict, struct rep_out *out);

/* rep_clock.c */
/* Whether the follower of `m` may store `entry`, which comes next: it does not move the time
 * further than our clock allows, or it does, and is committed, or may be. */
bool rep_clock_takes(const struct rep *rep, const struct rep_message *m, const struct entry *entry);
/* What a follower tells its owner: see rep_message.behind. */
bool rep_clock_is_behind(const struct rep *rep);
/* Before START, the log being whole and durable: drops what a majority is known to lack, from the
 * first entry that is dated ahead. False: such an entry stays, since it may be committed. */
bool rep_clock_settle(struct rep *rep, struct rep_out *out);

/* rep_read.c */
NODISCARD err rep_read(struct rep *rep, struct rep_out *out);
/* Begins a round when one is wanted and none is open. */
void rep_round_begin(struct rep *rep, struct rep_out *out);
void rep_round_settle(struct rep *rep, struct rep_out *out);

/* rep_append.c */
NODISCARD err rep_propose(struct rep *rep, const struct rep_event *event, struct rep_out *out);
/* Appends START and begins to replicate. */
void rep_start(struct rep *rep, struct rep_out *out);
void rep_append_ack(struct rep *rep, uint64_t from, const struct rep_message *m,
                    struct rep_out *out);
/* Sends to every peer what it may be sent now. */
void rep_pump(struct rep *rep, struct rep_out *out);
void rep_peer_read(struct rep *rep, struct rep_peer *peer, const struct rep_event *event,
                   struct rep_out *out);
void rep_owner_tick(struct rep *rep, struct rep_out *out);
void rep_owner_commit(struct rep *rep, struct rep_out *out);

/* rep_accept.c */
/* Stores what follows prev_index; false when prev does not match our log. */
bool rep_accept(struct rep *rep, const struct rep_message *m, struct rep_out *out);
void rep_append(struct rep *rep, uint64_t from, const struct rep_message *m, struct rep_out *out);
/* After the disk made progress: commits, acknowledges. */
void rep_follower_settle(struct rep *rep, struct rep_out *out);
void rep_follower_commit(struct rep *rep, struct rep_out *out);

/* rep_fetch.c */
void rep_fetch_send(struct rep *rep, struct rep_out *out);
void rep_fetch(struct rep *rep, uint64_t from, const struct rep_message *m, struct rep_out *out);
/* True: the log of the source is whole here, and the promotion may go on. */
bool rep_fetch_ack(struct rep *rep, uint64_t from, const struct rep_message *m,
                   struct rep_out *out);
void rep_log_read(struct rep *rep, const struct rep_event *event, struct rep_out *out);

/* rep_seal.c */
void rep_record(struct rep *rep, const struct rep_record *record, struct rep_out *out);
void rep_seal(struct rep *rep, uint64_t from, const struct rep_message *m, struct rep_out *out);
void rep_seal_ack(struct rep *rep, uint64_t from, const struct rep_message *m, struct rep_out *out);
/* A SEAL waits for the disk: answers it when that is done. */
void rep_seal_settle(struct rep *rep, struct rep_out *out);
/* SEALING and ADOPTING: goes on as far as what is known allows. */
void rep_promote(struct rep *rep, struct rep_out *out);
void rep_promote_tick(struct rep *rep, struct rep_out *out);

#endif
