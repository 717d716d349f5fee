/*
 * handler: what a method is, to the core: pure functions, one file per method in node/rpc/.
 * The table is passed in, so that node/core never depends on node/rpc.
 */
#ifndef NODE_CORE_HANDLER_HANDLER_H
#define NODE_CORE_HANDLER_HANDLER_H

#include <protobuf-c/protobuf-c.h>

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/error.pb-c.h"
#include "node/core/codec/op.h"
#include "node/core/entry/entry.h"
#include "node/core/player/meta.h"
#include "node/core/player/player.h"
#include "node/core/rows/state.h"
#include "runtime/base/arena.h"

struct handler_table;

/*
 * Since which apply version the state that an operation leaves, and its outcome, are as they are
 * told here. Entries of before it are replayed as they were applied first: replicas that have
 * applied them already must agree.
 */
#define FACTS_APPLY_VERSION  3u /* Refusals store their facts (refusal_tell_funds). */
#define CALLER_APPLY_VERSION 5u /* Operations of a system tell who asked (caller_name.h). */
#define AS_OF_APPLY_VERSION  4u /* A settled operation tells `as_of`, and no dot. */

/* Why a request is refused. Texts live in an arena or are static. */
struct refusal {
    Holdfast__V1__ErrorCode code;
    const char *message;
    const char *field;
    const char *limit;
    const char *value;
    uint32_t retry_after_ms;
    const char *holder;                      /* SESSION_LOCKED: the incarnation. */
    const char *player_id;                   /* Of a transaction: whose part it is; else NULL. */
    Holdfast__V1__ErrorDetail__Funds *funds; /* NULL: none. */
    Holdfast__V1__ErrorDetail__Capacity *capacity;
    bool came_back, on_its_way; /* What a reservation had posted (error.proto). */
    bool final;     /* Stored under (op_id, attempt); set by the core, not by handlers. */
    bool transient; /* Not stored: the same attempt may be carried out later (WAIT). */
    bool by_rate;   /* A rate rule is passed. */
};

/* A pending steal that this entry decides: for the caller that still waits for it. */
struct decided {
    struct slice op_id; /* Empty: none. */
    bool refused;       /* `body` is a Refusal, else the response without WriteInfo. */
    struct slice body;  /* Arena memory, as is op_id. */
    uint64_t version;
};

/* A record of the outbox whose decision this entry logs: for the callers who wait for it. */
struct settled {
    uint32_t destination;
    uint64_t seq;
    bool refused;      /* `body` is a Refusal, else the response without WriteInfo. */
    struct slice body; /* Arena memory. */
    struct dot dot;    /* Of the entry that opened it, and the player's version then. */
    uint64_t version;
    uint32_t method;
    bool cancelled;      /* By a seal. */
    bool receipt;        /* It waited for its receipt to be bound. */
    struct slice entity; /* Whose operation it was, and which. Arena memory. */
    struct slice op_id;
};

#define CHANNEL_OPENED_MAX 8u

/* What an entry did to the channels of this shard (DESIGN section 7). */
struct channel_effect {
    uint32_t destination;
    uint64_t opened_seq;    /* A record opened, or still open, that the caller waits for. */
    uint64_t cancelled_seq; /* A seal asks for this record to be cancelled. */
    bool touched;           /* The sender has something to look at. */
    bool several;           /* ... in other channels too, more of them than `opened` has places. */
    uint32_t opened[CHANNEL_OPENED_MAX]; /* Destinations that records were opened to. */
    uint32_t opened_count;
    uint32_t *left; /* Destinations with a decision that met a row which cannot be read here. */
    uint32_t left_count;
    uint32_t intents_ended; /* Players whom no transaction holds any more. */
    uint32_t settled_count;
    struct settled *settled;
};

/* A record that breaks an invariant, found while applying or reading: its player is to be
 * quarantined. The first one that is found counts. */
struct damage {
    bool found;
    char player[QUARANTINE_PLAYER_SIZE]; /* Without its kind; empty: the record is no player's. */
    char reason[QUARANTINE_REASON_SIZE];
};
/* `entity` may be empty, or no player: then operators are told, and no player is held back. */
void damage_note(struct damage *damage, struct slice entity, const char *reason);
/* The same, and refuses: QUARANTINED, not stored as the operation's outcome. Returns ERR_CONFLICT.
 */
err refuse_damaged(struct arena *arena, struct refusal *refusal, struct damage *damage,
                   struct slice entity, const char *reason);
/* Takes `by` from a count that the shard keeps of its rows. Less than that was counted only if rows
 * are damaged: then the count is 0 from here on, and the damage is noted. */
void damage_count_down(struct damage *damage, uint64_t *count, uint64_t by);
struct apply_context;
struct read_context;
/* refuse_damaged while an entry is applied, about any entity, or a read of its entity answered. */
err apply_damaged(struct apply_context *context, struct slice entity, const char *reason);
err read_damaged(struct read_context *context, const char *reason);

/* Before the log, at the owner. May canonicalise the request in place (arena memory). */
struct check_context {
    struct arena *arena;
    const struct meta *meta;       /* Limits and currencies in force; may change before apply. */
    struct refusal *refusal;       /* Fill it and return ERR_INVALID. */
    enum authority_kind authority; /* Under which the operation asks to be carried out. */
    struct slice caller;           /* As op.h has it. */
    uint32_t shard;
    uint32_t shard_count;
    struct state *state; /* What is applied, to be looked at alone: it may change before apply, and
                          * rows may be missing. NULL: entries of earlier owners may be missing. */
    struct refusal deferred; /* See refusal_defer. */
};

/* While a committed entry is applied: inside an open state transaction. */
struct apply_context {
    struct arena *arena;
    struct buf *scratch; /* For one row's bytes at a time; keeps its memory. */
    struct state *state;
    struct meta *meta; /* Counters are put back if the operation is refused; policy and
                        * expired set change only right before a handler's ERR_OK. */
    struct need *need;
    const struct op *op;
    struct dot dot;
    uint64_t owner_ms;
    uint32_t shard;
    uint64_t replica; /* Whose state this is, for damage on purpose (debug_inject.c): what depends
                       * on it makes replicas differ. */
    uint32_t version; /* The apply version in force: see APPLY_VERSION in apply.h. */
    struct player *player; /* Loaded for entity methods; written back by the core. */
    bool unreadable;       /* The player's row cannot be read: `player` is as if it had none, and is
                            * not written back, unless a handler makes it again and says so. */
    struct refusal *refusal;
    struct slice authority_text; /* "session:<server>", "system:payments/<key>": for the ledger. */
    bool pending;                /* Set: not decided yet (a steal in its grace period, a transfer
                                  * on its way: then channel->opened_seq). */
    uint32_t *freed;             /* Counts sessions freed, so that waiters are looked at. */
    struct decided *decided;     /* See session_apply.h. */
    bool player_changed;         /* The player's row is to be written though no version rises. */
    bool missing;   /* Set: a row is to be loaded (`need`), and all to be done again. */
    bool releasing; /* The holder gives the session up: no one is displaced. */
    struct channel_effect *channel;
    struct damage *damage;
    const struct handler_table *handlers;
    uint32_t *events;   /* Counts the events of this entry (event.h). */
    uint32_t uid_place; /* In the entry, of the first UID that a handler makes. */
};

struct recent_changes;

struct member_lag {
    uint64_t replica;
    uint64_t lag; /* rep_member_lag. */
    uint64_t silent_ms;
};

/* How far the replicas are, as the owner knows (docs/membership.md). */
struct member_state {
    uint64_t epoch, config; /* Of the owner's START, which is committed. */
    uint64_t learner;       /* 0: none. */
    uint64_t learner_lag;   /* rep_learner_lag. */
    uint64_t learner_silent_ms;
    uint64_t operations; /* Writes proposed and strict reads taken since the start. */
    struct member_lag members[MEMBERS_MAX]; /* But the owner. */
    uint32_t member_count;
};

struct read_context {
    struct arena *arena;
    struct state *state;
    const struct meta *meta;
    struct need *need;
    struct slice entity;
    uint32_t shard;
    uint32_t shard_count; /* 0: not known yet. */
    struct dot as_of;     /* What the state includes: as_of_text. */
    struct member_state members;
    uint64_t now_unix_ms;
    int64_t pulled_ms; /* Every shard's counts are logged here as of then (node/core/top); 0:
                          unknown. */
    const struct recent_changes *recent; /* Of counts, for their homes: recent_changes.h. */
    struct refusal *refusal;
    struct damage *damage;
};

/* Which kinds of authority a method admits; none for those without an authority field. */
enum admits {
    ADMITS_SESSION = 1 << AUTHORITY_SESSION,
    ADMITS_SYSTEM = 1 << AUTHORITY_SYSTEM, /* Additive typed operations only. */
    ADMITS_UNHELD = 1 << AUTHORITY_UNHELD
};

struct handler {
    uint32_t method;
    uint32_t admits; /* enum admits */
    /* ... and from which apply version on the system, where it was not always. */
    uint32_t system_since;
    uint32_t receipts; /* ... and under which of them its op_id may be a receipt (receipt.h). */
    /* ERR_INVALID: refused before the log; `refusal` says why. May be NULL. */
    err (*check)(struct check_context *context, ProtobufCMessage *request);
    /* Of a request that carries more than its operation is: what deduplication compares. NULL: all
     * of it. May change the request, which is decoded for this alone. */
    struct hash128 (*payload)(struct arena *arena, const struct op *op, ProtobufCMessage *request);
    /* Every row that apply may touch, from the request's bytes alone; the player's own row and
     * the operation's are added by the core. May be NULL. */
    void (*footprint)(const struct op *op, const ProtobufCMessage *request, struct need *keys);
    /*
     * Applies. The core has deduplicated and checked authority. Fills `response` (its `write`
     * stays NULL: the core adds it).
     * ERR_NEED: rows are missing and noted; nothing may have been kept.
     * ERR_CONFLICT, ERR_INVALID: refused by the rules; `refusal` says why; the transaction is
     * rolled back and the refusal stored.
     */
    err (*handle)(struct apply_context *context, const ProtobufCMessage *request,
                  ProtobufCMessage *response);
    /* Reads; ERR_NEED, or ERR_CONFLICT or ERR_INVALID with `refusal`. NULL for mutations. */
    err (*read)(struct read_context *context, const ProtobufCMessage *request,
                ProtobufCMessage *response);
};

/* By method number; NULL where there is none. */
struct handler_table {
    const struct handler *const *handlers;
    uint32_t count;
};

/* VERSION_CONFLICT, ERR_CONFLICT: the request has an `if_version`, and the entity's version, before
 * this operation, is another one. */
NODISCARD err version_check(struct apply_context *context, const ProtobufCMessage *request,
                            uint64_t version);
const struct handler *handler_find(const struct handler_table *table, uint32_t method);
/* Fills context->refusal; printf-style message. Returns `e`, so that it can be returned. */
err refuse(struct arena *arena, struct refusal *refusal, Holdfast__V1__ErrorCode code,
           const char *field, const char *format, ...) __attribute__((format(printf, 5, 6)));
void refusal_encode(const struct refusal *refusal, struct buf *out); /* As refusal.proto has it. */
/* The token of what a read's answer includes (idl/as_of.h), in the arena. */
char *as_of_text(const struct read_context *context);

#endif
