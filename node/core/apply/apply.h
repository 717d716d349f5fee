/*
 * apply: from a caller's request to an operation, from a committed entry to its outcome, and
 * reads. Deterministic: apply looks only at the entry and the state. DESIGN sections 4 to 6.
 *
 * In order, at apply: deduplication by op_id (same payload: the stored outcome; other payload:
 * OPERATION_ID_MISMATCH), floor (OPERATION_EXPIRED), seal, authority, the method's handler,
 * then the outcome is stored in the same transaction and folded into the outcome hash.
 */
#ifndef NODE_CORE_APPLY_APPLY_H
#define NODE_CORE_APPLY_APPLY_H

#include "node/core/apply/outcome.h"
#include "node/core/handler/answer.h"

/* What this program can apply; raised with every change of what an entry does. A binary applies
 * this version and the one before (DESIGN section 4, Determinism).
 * 2: outcomes of transactions, and ledger entries of mail from the system, tell what is reserved.
 * 3: refusals for want of funds or of room have their facts; SESSION_LOST names the field
 * `authority`.
 * 4: `if_version`; a settled operation tells `as_of` in place of a dot; answers tell what is
 * reserved in a list beside the balances, not within each; RepairRow makes a channel's row again.
 * 5: ids of kind `key:` are forgotten after a day; RepairRow settles a record of a channel that
 * cannot be read; ledger entries of a system tell whose API key asked; there are definitions.
 * 6: there are edges from players to targets; a DEFINE keeps the row of all collections.
 * 7: partial counts know in which hours their edges were made; there are totals of targets; what is
 * kept of a target without edges goes once its home has logged that; what changes leaves events.
 * 8: rate rules hold; there are counters; a DEFINE keeps the rows of all rate rules and counters.
 * 9: counts of targets are computed again while they change, and an entry may change several; edges
 * are flagged; there are consumers of events; a shard counts the events that it has trimmed; a
 * player's edges and additions can be erased; what a player added knows in which hours.
 * 10: a currency that is swept after a restore of etcd leaves a later one of its name alone; shards
 * keep the metadata of targets; the floor of op_ids passes operations that are PENDING, whose rows
 * are told below it; a restore brings the backup's floor; a shard keeps ranges of expired servers;
 * players have a share of its room for outcomes; the erasure of a quarantined player waits;
 * repairs count a bounded number of rows, and a trial of one changes nothing; a
 * purge leaves the count of outcomes; a shard with consumers or metadata is in use; a person may
 * state how a transaction was decided; a restore leaves out totals, which are pulled again, and
 * versions of records rise above those of the backup; a consumer keeps the op_id that made it.
 */
#define APPLY_VERSION 10u
/* Programs of an earlier one cannot be members beside this program: their requests had other forms
 * (UPGRADING.md). Every START of this program says at least this. */
#define APPLY_VERSION_FLOOR 4u
/* With HOLDFAST_DEBUG_INJECT alone, for tests of upgrades: it dates the outcomes that it keeps a
 * millisecond later. */
#define APPLY_VERSION_TEST (APPLY_VERSION + 1u)

struct applier;

struct applier *applier_new(uint32_t shard, const struct handler_table *handlers);
void applier_free(struct applier *applier);
/* Of the cluster, for ever the same (DESIGN section 3); before anything is sent between shards. */
void applier_set_shard_count(struct applier *applier, uint32_t shard_count);
/* Whose state it is, for apply_context.replica; 0: no damage on purpose is meant for it. */
void applier_set_replica(struct applier *applier, uint64_t replica);
/* What this program can apply, if not APPLY_VERSION. */
void applier_set_version_max(struct applier *applier, uint32_t version_max);
/* How many edges and additions one entry of an erasure deals with. */
void applier_set_erasure_rows(struct applier *applier, uint32_t rows_max);
/* Under which version what is prepared from here on is applied, and in which epoch: of the last
 * START in the log, which may not be applied yet. 0, at first: of the START applied last. */
void applier_set_log(struct applier *applier, uint32_t version, uint64_t epoch);
/* What reads are told of the replicas until it is set again. */
void applier_set_members(struct applier *applier, const struct member_state *members);
/* Until when other shards' counts are logged in this one, for reads (read_context). */
void applier_set_pulled(struct applier *applier, int64_t pulled_ms);
/* Where its memory for a step comes from; borrowed. */
void applier_set_arenas(struct applier *applier, struct arena_pool *arenas);
/* At the end of a step: gives that memory back. Outcomes are gone after it. */
void applier_rest(struct applier *applier);
struct state *applier_state(struct applier *applier);
const struct meta *applier_meta(const struct applier *applier);
/* Sets what the database holds (meta row, may be empty for a new shard; timers by state_load). */
NODISCARD err applier_restore(struct applier *applier, struct slice meta_row);

/* What is asked of a shard, in memory of its own. */
struct applier_asked {
    uint32_t method;
    struct slice request; /* As protobuf. */
    uint64_t now_unix_ms;
    struct arena *arena; /* What is made for it, refusals too, lasts as long. */
};

/*
 * Before the log: decodes and checks a request, and makes the operation's body for the log.
 * `ret_entity` points into `out_body`. ERR_INVALID: `refusal` (arena memory) says why.
 * Also refuses, with the rules' own errors, an id above now + OP_ID_AHEAD_MS_MAX.
 */
NODISCARD err applier_prepare(struct applier *applier, const struct applier_asked *asked,
                              struct buf *out_body, struct refusal *ret_refusal);

/* The rows that applying this operation will touch and that are not in memory. */
void applier_footprint(struct applier *applier, struct slice op_body, struct need *need);
/* The same of an entry behind the next one, if it is about an edge or a counter, of which every row
 * may be new: they are loaded together, not one entry after another. An entry that cannot be read
 * needs nothing. */
void applier_foresee(struct applier *applier, const struct entry *entry, struct need *need);

/*
 * Applies the next entry: entries must come in order, each once.
 * ERR_NEED: `need` lists the missing rows; nothing changed; call again once they are loaded.
 * An entry that cannot be read is skipped: outcome->unapplied. There are no other errors.
 */
NODISCARD err applier_apply(struct applier *applier, const struct entry *entry, struct need *need,
                            struct outcome *ret_outcome);
/* What the last apply or read found broken; NULL: nothing. Told once. Valid until the next one. */
const struct damage *applier_take_damage(struct applier *applier);
uint64_t applier_applied_index(const struct applier *applier);
struct hash128 applier_outcome_hash(const struct applier *applier);

/* The answer to who asked for it. COMMITTED alone. */
struct answer outcome_answer(uint32_t shard, const struct outcome *outcome,
                             uint32_t replicas_fsynced);
/* Notes that a record of this entity cannot be read, as apply does: applier_take_damage tells. */
void applier_note_damage(struct applier *applier, struct slice entity, const char *reason);

/*
 * Runs a read on the applied state; appends the response to `out`.
 * ERR_NEED: load `need`, call again. ERR_CONFLICT or ERR_INVALID: `refusal` says why.
 */
NODISCARD err applier_read(struct applier *applier, const struct applier_asked *asked,
                           struct need *need, struct buf *out, struct refusal *ret_refusal);

/* A StartSession that was committed. */
struct granted {
    struct slice operation; /* Its op body, which says what sections it asked for. */
    struct slice answer;    /* The response's bytes so far, with its token. */
};

/*
 * Appends the profile field of the response to `out`, read now. Appends nothing when the token is
 * no longer current.
 * ERR_NEED: section rows are missing. ERR_CONFLICT: a row of the profile cannot be read.
 * ERR_CORRUPT: the answer has no token. applier_take_damage tells of both.
 */
NODISCARD err applier_profile_append(struct applier *applier, const struct granted *granted,
                                     struct need *need, struct buf *out);

/* RenewTokens: the op bodies (u32 length + bytes, repeated; SessionHold) for tokens in this
 * request that are current and still GRANTED. Player rows are in memory: the read just ran. */
void applier_renew_holds(struct applier *applier, struct slice request, struct buf *out_bodies);

/* StartSession requests: what the shard needs to queue a WAIT. False: not held by a live server,
 * or not known yet (append it and let apply decide). */
bool applier_session_held(struct applier *applier, struct slice entity, uint64_t now_unix_ms);

/* Owner-made work that is due at `unix_ms`: appends one op body for it to `out` and returns
 * true; false when nothing is due. `*ret_next_ms` is when to ask again. Asked again only after
 * the entry made from it was applied. */
bool applier_due(struct applier *applier, uint64_t unix_ms, struct buf *out, uint64_t *ret_next_ms);
/* The same of what should not wait for the owner's next tick: sessions and reservations whose time
 * is over. Erasures and upkeep, each of which may go on for long, keep the pace of ticks. */
bool applier_due_at_once(struct applier *applier, uint64_t unix_ms, struct buf *out);

/* Checkpoint: the meta row as of the applied index, to be written in the same batch. */
void applier_meta_encode(const struct applier *applier, struct buf *out);

#endif
