/* Inside of shard.h: shared by the shard_*.c files alone. */
#ifndef NODE_CORE_SHARD_SHARD_INTERNAL_H
#define NODE_CORE_SHARD_SHARD_INTERNAL_H

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/shard/answer_sizes.h"
#include "node/core/shard/asked_rows.h"
#include "node/core/shard/channel_lanes.h"
#include "node/core/shard/link_table.h"
#include "node/core/shard/read_hold.h"
#include "node/core/shard/shard.h"

/* Where a caller's request stands. A call is in exactly one list. */
enum call_place {
    CALL_PROPOSED,   /* Its entry is at `index`; the list is in index order.              */
    CALL_QUEUED,     /* StartSession WAIT: until the holder leaves; first come, first served. */
    CALL_STEALING,   /* StartSession STEAL: until the claim is decided.                   */
    CALL_CONFIRMING, /* A read: until `round` is confirmed; the list is in round order.   */
    CALL_READING,    /* A read that looks at its rows in this step; none between steps.   */
    CALL_LAGGING,    /* A read: until applied reaches `index`; in index order.            */
    CALL_AHEAD,      /* A read: until `at_least` is applied; in the order of versions.    */
    CALL_LOADING,    /* A read: until a row is here.                                      */
    CALL_TURN,       /* A read: until the answers before it have left.                    */
    CALL_SETTLING,   /* A read of a player: until no transaction holds it.                */
    CALL_YIELDING,   /* A write that is not proposed yet: until reads of its players are done. */
    CALL_SENDING,    /* A transfer: until the other shard's decision is logged here. */
    CALL_ANSWERING,  /* A granted StartSession: until there is room for its profile.      */
    CALL_FETCHING,   /* The same: until a row of the profile is here.                     */
    CALL_PLACES
};

struct call {
    struct call *previous, *next;
    enum call_place place;
    struct hash_link by_id;   /* In shard->calls_by_id, while id is not 0. */
    struct hash_link by_what; /* In shard->calls_by_what: QUEUED, STEALING, SENDING. */
    struct row_waiter waiter; /* LOADING, FETCHING: the row that it waits for. */
    bool claimed;      /* This very call made the claim it waits for: its answer is no duplicate. */
    bool starved;      /* ANSWERING: no room for its profile; the next tick looks again. */
    uint32_t reserved; /* Of shard->answers, for its reply; given back with the call. */
    uint64_t id;       /* The shell's; 0 when its caller has gone. */
    uint32_t method;
    uint64_t deadline_ms;
    uint64_t since_ms; /* YIELDING. */
    uint64_t index;
    uint64_t round;
    struct dot at_least;  /* Reads: not before this dot is applied; epoch 0: none. */
    struct buf request;   /* Reads: the request. StartSession, YIELDING: the op body. */
    struct buf answer;    /* CALL_ANSWERING: the outcome's body with its WriteInfo. QUEUED,
                           * SETTLING: the refusal when time runs out. CHANNEL_DELIVER: what was
                           * left out of its entry. */
    struct slice entity;  /* Inside `request`, where that is an op body. */
    uint32_t destination; /* CALL_SENDING: which record of the outbox is waited for. */
    uint64_t seq;
};

struct call_list {
    struct call *first, *last;
    uint32_t count;
};

struct shard {
    uint32_t number;
    uint64_t self;
    struct shard_limits limits;
    struct rep *rep;
    struct applier *applier;
    struct call_list calls[CALL_PLACES];
    struct link_table calls_by_id, calls_by_what;
    struct call *free_calls; /* CALLS_KEPT at most. */
    uint32_t free_count;
    uint32_t call_count;
    uint64_t rounds_done; /* Highest confirmed read round of this ownership. */
    uint64_t rounds_index;
    uint64_t rounds_ms, rounds_unix_ms; /* When that round began. */
    uint64_t due_index;                 /* Owner-made entry on its way; 0: none. */
    uint32_t due_chain;                 /* Of those, proposed at once since the last tick. */
    uint64_t contain_index;             /* Entry that contains a player, on its way; 0: none. */
    uint64_t due_next_ms;               /* now_ms at which to ask applier_due again. */
    bool served;                        /* As of the last step. */
    bool apply_blocked;                 /* Rows are missing for the next entry. */
    uint64_t foreseen_index;            /* Of entries up to this one rows were asked for ahead. */
    uint64_t halt_index;                /* See shard_image. */
    uint64_t applying_index;            /* See shard_applying_index. */
    bool flush_wanted;
    bool checkpoint_open;
    uint64_t checkpoint_index; /* Of the open checkpoint. */
    uint64_t clean_index;      /* Applied index of the last finished checkpoint. */
    uint64_t armed_cut;        /* 0: not armed. */
    bool at_cut;
    struct channel_lanes lanes; /* What is on its way to other shards. */
    struct read_holds holds_of_reads;
    struct snapshot_source source;
    struct snapshot_target target;
    enum snapshot_leftover leftover;
    uint64_t leftover_ms; /* When to try once more. */
    struct snapshot_stats snapshot;
    uint64_t unreadable_ms;  /* When an unreadable row of no player may be told again. */
    bool stopped;            /* A snapshot takes its place. */
    struct asked_rows asked; /* Of the database, not answered yet. */
    uint64_t holds_ended;    /* Of holds_of_reads, as far as writes that wait have looked. */
    struct arena arena;      /* One step's. */
    struct arena read_arena; /* One read's: rows unpacked, and the response before it is packed. */
    struct budget *answers;  /* See shard_image; NULL: none. */
    struct answer_sizes sizes;
    uint64_t read_bytes; /* Answers made since the last flush or tick, refused ones included. */
    struct buf scratch;
    struct need need;            /* One apply's or read's, before `loading` is taken out. */
    char full[SHARD_FULL_BYTES]; /* Why nothing is proposed; empty: there is room. */
    struct buf holds; /* SessionHolds that wait for room, length-prefixed; HOLDS_BYTES_MAX. */
    struct shard_stats stats;
};

/* shard_list.c: call lists and their lifetime. */
struct call *call_new(struct shard *shard, const struct shard_event *event);
void call_free(struct shard *shard, struct call *call);
void call_move(struct shard *shard, struct call *call, enum call_place place);
/* Behind the last one in the list that does not come after it. */
void call_move_sorted(struct shard *shard, struct call *call, enum call_place place,
                      bool (*comes_before)(const struct call *a, const struct call *b));
/* A read waits until that index is applied: LAGGING. */
void call_lag(struct shard *shard, struct call *call, uint64_t index);
struct call *call_find(struct shard *shard, uint64_t id);
/* Its caller has gone; the call goes on. */
void call_forget(struct shard *shard, struct call *call);
/* QUEUED or STEALING, of that player; first come, first found. `after` NULL: the first one. To be
 * asked before a call is moved on. */
struct call *call_of_player(struct shard *shard, enum call_place place, struct slice entity,
                            const struct call *after);
/* SENDING, of that record. */
struct call *call_of_record(struct shard *shard, uint32_t destination, uint64_t seq,
                            const struct call *after);

/* shard_read.c: once there is room, what was renewed meanwhile is logged before a timer can end it.
 */
void shard_holds_progress(struct shard *shard, const struct shard_event *event,
                          struct shard_out *out);

/* shard_reply.c: answers. Each ends the call it answers. */
void reply_bytes(struct shard *shard, struct call *call, enum reply_status status,
                 struct slice body, struct shard_out *out);
void reply_refusal(struct shard *shard, struct call *call, const struct refusal *refusal,
                   struct shard_out *out);
void reply_elsewhere(struct shard *shard, struct call *call, enum reply_status status,
                     struct shard_out *out);
/* Everyone waits for an owner, which this replica is no longer. */
void reply_deposed(struct shard *shard, struct shard_out *out);
/* Reserves room for a reply of so many bytes, instead of what the call has reserved before, for
 * reply_bytes to use. False: there is none. */
bool reply_reserve(struct shard *shard, struct call *call, enum budget_kind kind, size_t size);
/* Refuses an event's call that never became one. */
void reply_event_refused(struct shard_out *out, uint64_t id, const struct refusal *refusal);

/* The caller's router gives up at the deadline: a tick and the way back must fit before it. */
#define WAIT_ANSWER_EARLY_MS 50u

/* shard_rows.c */
/* Asks for what is missing and not yet on its way; empties shard->need. */
void shard_ask_rows(struct shard *shard, struct shard_out *out);
/* The same, and the call waits for what comes last: LOADING or FETCHING. */
void shard_wait_rows(struct shard *shard, struct call *call, enum call_place place,
                     struct shard_out *out);
/* What cannot be taken in, because rows were evicted since, is asked for again. Calls that waited
 * for what came go on: READING or ANSWERING. */
void shard_rows_arrived(struct shard *shard, const struct shard_event *event,
                        struct shard_out *out);

/* shard_propose.c: the way into the log. */
/* Feeds rep; true on ERR_OK. */
err shard_rep_step(struct shard *shard, const struct rep_event *event, struct shard_out *out);
/* Keeps an op body, so that it can be proposed later. */
void shard_call_keep_body(struct call *call, struct slice body);
/* Proposes call->request (an op body) again: the call moves to CALL_PROPOSED. False: it could not
 * be, the call was answered and is gone. */
bool shard_call_propose(struct shard *shard, struct call *call, const struct shard_event *event,
                        struct shard_out *out);
/* Proposes an op body. ERR_OK: `*ret_index` is its place, and its cold rows are asked for. */
NODISCARD err shard_propose(struct shard *shard, struct slice body, const struct shard_event *event,
                            uint64_t *ret_index, struct shard_out *out);

/* shard_call.c: calls come in. */
void shard_call_begin(struct shard *shard, const struct shard_event *event, struct shard_out *out);
void shard_propose_due(struct shard *shard, const struct shard_event *event, struct shard_out *out);
/* What the owner proposed last is applied. */
void shard_due_applied(struct shard *shard, const struct shard_event *event, struct shard_out *out);

/* shard_apply.c: committed entries are applied, their callers answered. */
void shard_apply(struct shard *shard, const struct shard_event *event, struct shard_out *out);

/* shard_channel.c: batches for other shards, and what they answered. */
void shard_channel_progress(struct shard *shard, const struct shard_event *event,
                            struct shard_out *out);
void shard_channel_delivered(struct shard *shard, const struct shard_event *event,
                             struct shard_out *out);
/* An applied entry opened, cancelled or settled records. */
void shard_channel_follow(struct shard *shard, const struct outcome *outcome,
                          const struct shard_event *event, struct shard_out *out);

/* shard_catch_up.c */
void shard_snapshot_message(struct shard *shard, const struct shard_event *event,
                            struct shard_out *out);
void shard_snapshot_page(struct shard *shard, const struct shard_event *event,
                         struct shard_out *out);
void shard_snapshot_stored(struct shard *shard, const struct shard_event *event,
                           struct shard_out *out);
void shard_snapshot_dropped(struct shard *shard, const struct shard_event *event);
void shard_snapshot_tick(struct shard *shard, const struct shard_event *event,
                         struct shard_out *out);
void shard_snapshot_deinit(struct shard *shard);

/* shard_contain.c: the owner logs what apply or a read found broken. */
void shard_contain(struct shard *shard, const struct shard_event *event, struct shard_out *out);

/* shard_settle.c: decisions on their way into this shard's log. */
/* Takes what one delivery was answered, for as many entries as its size needs. False: there is no
 * room for all of it; it must be sent again. */
NODISCARD bool shard_settles_add(struct shard *shard,
                                 const Holdfast__Internal__V1__SettleRequest *request,
                                 const struct shard_event *event, struct shard_out *out);
/* Answers those whose transfers arrived. What anybody waits for is logged in this step. */
void shard_settles_tell(struct shard *shard, const Holdfast__Internal__V1__SettleRequest *request,
                        const struct shard_event *event, struct shard_out *out);
/* Whether an item is of a transfer that arrived: what shard_settles_tell tells its caller. */
bool shard_settles_arrived(const Holdfast__Internal__V1__SettleItem *item);
/* Its outcome, as its caller is told. ERR_NEED: rows are missing, and noted. ERR_NOT_FOUND: they do
 * not say so. */
NODISCARD err shard_settles_answer(struct shard *shard, uint32_t destination,
                                   const Holdfast__Internal__V1__SettleItem *item,
                                   struct answer *ret_answer);
/* Logs what was taken, when it is time. */
void shard_settles_progress(struct shard *shard, const struct shard_event *event,
                            struct shard_out *out);
/* Logs it now; there is some, and one entry always takes it. ERR_OK: *ret_index is its entry.
 * ERR_FULL, ERR_NOT_OWNER: it stays. */
NODISCARD err shard_settles_log(struct shard *shard, const struct shard_event *event,
                                uint64_t *ret_index, struct shard_out *out);

/* shard_operation.c: looks over the answer of a GetOperation, in shard->scratch. False: the call
 * waits, to be read again. */
bool shard_operation_told(struct shard *shard, struct call *call, struct shard_out *out);
/* The same of a ResolveOperation that was applied, with `body` for an answer. True:
 * call->destination and seq name a record of the outbox, whose decision it is to wait for and then
 * ask again. */
bool shard_operation_waits(struct shard *shard, struct call *call, struct slice body);

/* shard_erased.c: the entry may have changed how far its entity is erased, or brought erasures from
 * a backup. */
void shard_erasure_follow(struct shard *shard, const struct entry *entry,
                          const struct outcome *outcome, struct shard_out *out);

/* shard_incident.c: what operators may ask about. Told by the owner alone, orphans aside. */
void incident_applied(struct shard *shard, const struct entry *entry, const struct outcome *outcome,
                      const struct shard_event *event, struct shard_out *out);
/* A row that cannot be read is no player's, or its player has no place among those held back:
 * operators are told, now and then. */
void incident_unreadable(struct shard *shard, const struct damage *damage,
                         const struct shard_event *event, struct shard_out *out);
/* This replica begins to serve; transfers of earlier owners are on their way. */
void incident_resumed(struct shard *shard, const struct shard_event *event, struct shard_out *out);
/* Entries that were never acknowledged were truncated in this step. */
void incident_orphans(struct shard *shard, const struct shard_event *event, struct shard_out *out);

/* shard_settled.c: reads of players that no transaction may hold. */
/* A READ_SETTLED comes in: what it asks for beside the read. */
void shard_settled_begin(struct shard *shard, struct call *call, const struct shard_event *event);
/* It was read, and is in shard->scratch. Ends the call. */
void shard_settled_answer(struct shard *shard, struct call *call, const struct shard_event *event,
                          struct shard_out *out);
/* A transaction holds the player, as `refusal` says: waits, or is answered with it. */
void shard_settled_wait(struct shard *shard, struct call *call, const struct refusal *refusal,
                        struct shard_out *out);
/* Whether a transaction holds the player. Not known, since its row is not in memory: false, and
 * the read itself looks. */
bool shard_settled_is_held(struct shard *shard, const struct call *call);
/* The read's caller has gone: nothing waits for the read. */
void shard_settled_end(struct shard *shard, const struct call *call, uint64_t now_ms);

/* shard_yield.c: writes that wait for reads. */
/* True: the operation waits, and will be proposed by shard_yield_progress. */
bool shard_yield_begin(struct shard *shard, const struct shard_event *event, struct slice body);
void shard_yield_progress(struct shard *shard, const struct shard_event *event,
                          struct shard_out *out);
/* A CHANNEL_DELIVER comes in. True: it is answered. False: *ret_request is to be proposed; what was
 * left out of it is noted in `ret_later`, for shard_yield_answer. */
bool shard_yield_deliver(struct shard *shard, const struct shard_event *event,
                         struct slice *ret_request, struct buf *ret_later, struct shard_out *out);
/* Answers a delivery of which something was left out (call->answer). */
void shard_yield_answer(struct shard *shard, struct call *call, struct slice body,
                        struct shard_out *out);

/* shard_read.c */
/* An entry that ended intents has just been applied: reads of those players see the state that it
 * left, before the next transaction can hold them. */
void shard_read_wake(struct shard *shard, const struct shard_event *event, struct shard_out *out);
void shard_read_begin(struct shard *shard, const struct shard_event *event, struct shard_out *out);
void shard_read_progress(struct shard *shard, const struct shard_event *event,
                         struct shard_out *out);
void shard_answer_progress(struct shard *shard, const struct shard_event *event,
                           struct shard_out *out);
/* shard_check.c: what must hold after each step, as far as it costs next to nothing. */
void shard_check_step(const struct shard *shard);

#endif
