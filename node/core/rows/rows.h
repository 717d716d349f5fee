/*
 * rows: the keys of every table (state.h), and the row of an item. Keys sort: integers in them
 * are big-endian.
 */
#ifndef NODE_CORE_ROWS_ROWS_H
#define NODE_CORE_ROWS_ROWS_H

#include "node/core/codec/op.h"
#include "node/core/rows/row_key.h"
#include "node/core/rows/state.h"

#define ITEM_PLACES_MAX 65536u /* UIDs that one entry can make: a UID holds 16 bits of place. */
#define ITEM_UID_BYTES  16u
/* Of an item's row: a ledger has a byte for a kind's length, and all items of an entry have to fit
 * one row. Requests have narrower limits. */
#define ITEM_KIND_ROW_MAX       255u
#define ITEM_ATTRIBUTES_ROW_MAX 2048u
#define ITEM_UID_TEXT_SIZE      33 /* With the NUL. */

/* state_find; a row that is MISSING is noted in `need`, unless that is NULL. PRESENT: *ret_value is
 * borrowed. */
enum state_found row_find(struct state *state, const struct row_key *key, struct need *need,
                          struct slice *ret_value);
/* What a function that finds and decodes a row returns: ERR_NEED while it is MISSING, ERR_OK if it
 * is ABSENT, else as it was decoded. */
NODISCARD err row_found(enum state_found found, err decoded);
void row_key_player(struct row_key *key, struct slice entity);
void row_key_section(struct row_key *key, struct slice entity, struct slice name);
void row_key_ledger(struct row_key *key, struct slice entity, uint64_t seq);
/* A UUIDv7 goes to TABLE_OPERATION, a typed id to TABLE_TYPED. */
void row_key_operation(struct row_key *key, struct slice entity, const struct op_id *id);
void row_key_timer(struct row_key *key, uint64_t due_ms, struct slice entity);
/* Of the outcome of a `key:` id: sorts by when that was decided. */
void row_key_keyed(struct row_key *key, uint64_t decided_at_ms, struct slice entity,
                   struct slice op_id);
/* Of a reservation, by its ledger entry. */
void row_key_reservation_timer(struct row_key *key, uint64_t due_ms, struct slice entity,
                               uint64_t seq);
/* Of an erasure, by its number: its seq is above those of reservations. */
#define ERASURE_TIMER_SEQ 0x8000000000000000u
void row_key_erasure_timer(struct row_key *key, uint64_t due_ms, struct slice entity,
                           uint64_t number);
void row_key_item(struct row_key *key, struct slice entity, const uint8_t uid[ITEM_UID_BYTES]);
/* All items of an entity share this prefix. */
void row_key_item_prefix(struct row_key *key, struct slice entity);
/* Mail ids are made like item UIDs, so they sort by arrival. */
void row_key_mail(struct row_key *key, struct slice entity, const uint8_t id[ITEM_UID_BYTES]);
/* All mail of an entity shares this prefix. */
void row_key_mail_prefix(struct row_key *key, struct slice entity);
void row_key_mailbox(struct row_key *key, struct slice entity);
/* The channel to (outgoing) or from another shard. */
void row_key_channel(struct row_key *key, bool outgoing, uint32_t shard);
void row_key_outbox(struct row_key *key, uint32_t destination, uint64_t seq);
void row_key_inbox(struct row_key *key, uint32_t source, uint64_t seq);
void row_key_reservation(struct row_key *key, struct slice entity, uint64_t seq);
void row_key_reversal(struct row_key *key, struct slice entity, uint64_t seq);
void row_key_history(struct row_key *key, const uint8_t uid[ITEM_UID_BYTES], uint32_t step);
/* What this shard knows of an item's history shares this prefix. */
void row_key_history_prefix(struct row_key *key, const uint8_t uid[ITEM_UID_BYTES]);
void row_key_intent(struct row_key *key, struct slice entity);
void row_key_txn(struct row_key *key, uint32_t destination, uint64_t seq);
void row_key_receipt(struct row_key *key, struct slice receipt);
/* 0: how far the shard has followed the definitions. */
void row_key_definition(struct row_key *key, uint64_t number);
/* Of collections, or of counters, all of them: their names. */
enum row_names { ROW_NAMES_COLLECTIONS, ROW_NAMES_COUNTERS };
void row_key_names(struct row_key *key, enum row_names of);
static inline void row_key_collection(struct row_key *key)
{
    row_key_names(key, ROW_NAMES_COLLECTIONS);
}
/* Of rate rules, all of them. */
void row_key_rate_rules(struct row_key *key);
/* How often an entity changed a subject lately: the number of that one's definition. */
void row_key_rate(struct row_key *key, struct slice entity, uint64_t subject);
/* Of edges from players to targets: `collection` is the number of its definition. */
void row_key_favorite(struct row_key *key, struct slice entity, uint64_t collection,
                      struct slice target);
void row_key_favorites(struct row_key *key, struct slice entity, uint64_t collection);
/* The parts of TABLE_FAVORED: edges, the newest first; those that are gone, the oldest first. */
#define FAVORED_EDGES 'e'
#define FAVORED_GONE  'g'
/* All of a part shares this prefix; after `at_ms` and the target they go on. */
void row_key_favored_prefix(struct row_key *key, struct slice entity, uint64_t collection,
                            char part);
void row_key_favored_add(struct row_key *key, char part, uint64_t at_ms, struct slice target);
/* Who favorited a target shares this prefix; the entity follows. */
void row_key_favorer_prefix(struct row_key *key, uint64_t collection, struct slice target);
void row_key_favorer_add(struct row_key *key, struct slice entity);
/* Of an edge that waits for a review: sorts by since when. */
void row_key_review(struct row_key *key, uint64_t flagged_at_ms, struct slice entity,
                    uint64_t collection);
void row_key_review_add(struct row_key *key, struct slice target);
void row_key_partial(struct row_key *key, uint64_t collection, struct slice target);
/* What a player added to targets, in the order of these, shares this prefix; the target follows. */
void row_key_added_prefix(struct row_key *key, struct slice entity, uint64_t counter);
void row_key_added_add(struct row_key *key, struct slice target);
/* Who added to a target shares this prefix; the entity follows. */
void row_key_adder_prefix(struct row_key *key, uint64_t counter, struct slice target);
void row_key_adder_add(struct row_key *key, struct slice entity);
/* Notes that a partial changed, for its home: all for that home share the prefix, then come an
 * entry's epoch and counter, then what changed. */
void row_key_changed_prefix(struct row_key *key, uint32_t home);
/* When any of them was made last. */
void row_key_newest(struct row_key *key, uint32_t home);
/* Likewise of those that have come to nothing. */
void row_key_emptied_prefix(struct row_key *key, uint32_t home);
void row_key_changed_add_dot(struct row_key *key, uint64_t epoch, uint64_t counter);
void row_key_changed_add(struct row_key *key, uint64_t collection, struct slice target);
/* Of totals, in the home of a target. */
void row_key_pulled(struct row_key *key, uint32_t source);
void row_key_share_prefix(struct row_key *key, uint64_t collection, struct slice target);
void row_key_share_add(struct row_key *key, uint32_t source);
void row_key_tally(struct row_key *key, uint64_t collection, struct slice target);
/* What a target is called and looks like. */
void row_key_metadata(struct row_key *key, uint64_t collection, struct slice target);
/* A top list shares this prefix; the highest counts come first, at one count by target. */
void row_key_rank_prefix(struct row_key *key, uint64_t collection, char window);
void row_key_rank_add(struct row_key *key, uint64_t count, struct slice target);
/* How far the last rebuild of counts or totals has come: one of the shard. */
void row_key_recount(struct row_key *key);
/* What all rows of a table whose keys begin with that number share; of 0: all rows of the table. */
void row_key_of_number(struct row_key *key, char table, uint64_t number);
/* All rows of a table that begins with the entity share this prefix (TABLE_ENTITY_FIRST). */
void row_key_entity_prefix(struct row_key *key, enum table table, struct slice entity);
/* How far the entity's edges and additions are erased. */
void row_key_erasure(struct row_key *key, struct slice entity);
/* Events sort by the entry that committed them, then by place in it. */
void row_key_event(struct row_key *key, uint64_t epoch, uint64_t counter, uint32_t place);
/* `entity`: "consumer:<name>"; empty: the prefix of all. */
void row_key_consumer(struct row_key *key, struct slice entity);
/* Whose the row is, by its key alone: it points into `key`. Empty: the shard's. */
struct slice row_entity(struct slice key);

/* What a timer's row says: which session, reservation or erasure it is for. */
struct timer_row {
    uint64_t due_ms;
    struct slice entity;
    uint64_t fence;           /* Of a session. */
    uint64_t reservation_seq; /* 0: it is a session's; from ERASURE_TIMER_SEQ on: an erasure's. */
};
#define TIMER_DAMAGE "a timer's row cannot be read"
void timer_row_encode(uint64_t fence, struct buf *out);
NODISCARD err timer_row_decode(struct slice key, struct slice value, struct timer_row *ret_timer);

/* Whose outcome is over a day after it was decided. All of it stands in the row's key. */
struct keyed_row {
    uint64_t decided_at_ms;
    struct slice entity, op_id;
};
#define KEYED_DAMAGE "when the outcome of a `key:` id is over cannot be read"
void keyed_row_encode(struct buf *out);
/* ERR_CORRUPT: the key is none; *ret_keyed untouched. */
NODISCARD err keyed_key_parse(struct slice key, struct keyed_row *ret_keyed);
/* Also of the value. */
NODISCARD err keyed_row_decode(struct slice key, struct slice value, struct keyed_row *ret_keyed);

/*
 * An item's UID is unique by construction, big-endian: shard (2 bytes), epoch (6), counter (6) of
 * the log entry that minted it, place in that entry (2). No two entries share (shard, epoch,
 * counter), since an epoch has one owner and committed entries are never reused.
 */
struct item_row {
    uint8_t uid[ITEM_UID_BYTES];
    uint32_t step; /* Of its history, the newest: travels with it, so steps have an order across
                    * shards. */
    uint64_t minted_at_ms;
    struct slice kind;
    struct slice attributes; /* Canonical JSON. */
};

/* One step in an item's history: a ledger entry of some entity brought or took it. The row is with
 * that entity; the next step is there too, or with `next`. */
struct history_row {
    uint32_t step; /* From 1 without gaps, over all shards. */
    bool held;     /* After it, the entity holds the item. */
    uint64_t ledger_seq;
    struct slice entity;
    struct slice next; /* To whom it went, where that is known; empty: no one. */
};
#define HISTORY_DAMAGE "a step of an item's history cannot be read"
void history_row_encode(const struct history_row *history, struct buf *out);
NODISCARD err history_row_decode(struct slice key, struct slice value,
                                 struct history_row *ret_history);

/* An open reservation: when it comes back by itself. */
#define RESERVATION_DAMAGE "a reservation of the player cannot be read"
void reservation_row_encode(uint64_t expires_at_ms, struct buf *out);
NODISCARD err reservation_row_decode(struct slice row, uint64_t *ret_expires_at_ms);

/* Which entry of the ledger undid or closed another one. */
#define REVERSAL_DAMAGE "what undid an entry of the ledger cannot be read"
void reversal_row_encode(uint64_t undone_by, struct buf *out);
NODISCARD err reversal_row_decode(struct slice row, uint64_t *ret_undone_by);

void item_uid_make(uint32_t shard, uint64_t epoch, uint64_t counter, uint32_t place,
                   uint8_t ret_uid[ITEM_UID_BYTES]);
void item_uid_print(const uint8_t uid[ITEM_UID_BYTES], char ret_text[ITEM_UID_TEXT_SIZE]);
/* ERR_INVALID: not 32 hex digits. */
NODISCARD err item_uid_parse(struct slice text, uint8_t ret_uid[ITEM_UID_BYTES]);
void item_row_encode(const struct item_row *item, struct buf *out);
NODISCARD err item_row_decode(struct slice key, struct slice value, struct item_row *ret_item);

#endif
