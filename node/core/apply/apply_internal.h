/* apply_internal: what the files behind apply.h share. */
#ifndef NODE_CORE_APPLY_APPLY_INTERNAL_H
#define NODE_CORE_APPLY_APPLY_INTERNAL_H

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/operation.pb-c.h"
#include "node/core/favorite/recent_changes.h"
#include "node/core/goods/audit.h"
#include "node/core/handler/handler.h"
#include "node/core/rows/row_key.h"
#include "node/core/session/timers.h"

#define PRUNE_ROWS_MAX     512u
#define RESTORING_RETRY_MS 1000u
#define PRUNE_EVERY_MS     60000u
/* In a crowded shard where the last one removed nothing. */
#define PRUNE_IN_VAIN_MS 5000u
/* How often outcomes below the floor are looked for, which were settled late. */
#define SWEEP_EVERY_MS          (15u * 60u * 1000u)
#define TRIM_ROWS_MAX           512u
#define TRIM_EVERY_MS           5000u
#define OPERATION_WINDOW_MS_MIN (15u * 60u * 1000u)

struct applier {
    uint32_t shard;
    uint64_t replica;
    uint32_t shard_count; /* 0: not told. */
    uint32_t version_max; /* Entries of a greater apply version never come (rep.h). */
    uint32_t log_version;
    uint64_t log_epoch;
    const struct handler_table *handlers;
    struct state *state;
    struct meta meta;
    struct arena arena;   /* Of the entry applied last: outcomes point into it. */
    struct arena scratch; /* Of any other call. */
    struct buf row;       /* One row being encoded. */
    struct damage damage; /* Found by the last apply or read. */
    struct auditor auditor;
    struct recent_changes recent;
    struct source_dot applying; /* Of the entry that is applied. */
    struct member_state members;
    int64_t pulled_ms;
    uint64_t prune_next_ms;     /* When to look for operations to forget; 0: at once. */
    uint64_t sweep_next_ms;     /* When to do so from the first row on; 0: at once. */
    struct row_key prune_after; /* Where the next page begins; empty: it is a first one. */
    uint64_t trim_next_ms;      /* When to look for events to remove; 0: at once. */
    uint32_t erasure_rows;      /* That one entry of an erasure deals with. */
    bool prune_in_vain;         /* The last PRUNE removed nothing, and was at its end. */
    struct timers_look timers_looked;
    bool timer_last;       /* What was due last was a timer: upkeep comes first. */
    bool pruned_last;      /* Of upkeep, PRUNE was last: TRIM comes first. */
    uint64_t keys_from_ms; /* No `key:` id that is kept was decided earlier; 0: not known. */
};

/* Notes what an operation of the owner's has left, for its next one: it looks again at once while
 * there is more to forget. */
void applier_note_upkeep(struct applier *applier, const struct op *op,
                         const ProtobufCMessage *request, const ProtobufCMessage *response);

/* state_observer.row, of an applier: tells the auditor, and notes for which homes counts change. */
void applier_row_changed(void *user, struct slice key, struct slice before, struct slice after);
/* Before an entry of that method is applied: some put rows as they are, of any age. */
void applier_note_rows_put(struct applier *applier, uint32_t method);

/* Outcomes of UUIDv7 ids that may be forgotten in time: without operations that are PENDING, which
 * stay as long as that takes and are limited by OUTBOX_MAX. A record of the outbox that belongs to
 * no such id counts, too, so at most OUTBOX_MAX outcomes are kept above the policy's limit. */
uint64_t applier_outcomes_kept(const struct applier *applier);

/* Where a mutation says who, which and with what right. NULL where a method has none. */
struct envelope {
    char **entity; /* player_id, or an entity with its kind. */
    bool is_player;
    char **op_id;
    uint32_t *attempt;
    char **authority;
};
void envelope_find(ProtobufCMessage *request, struct envelope *ret_envelope);

#endif
