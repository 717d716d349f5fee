/*
 * ledger: one row for each operation that changes a wallet or mints items, chained by SHA-256, so
 * that an edit of history shows. docs/ledger.md gives the bytes. DESIGN sections 3 and 6.
 */
#ifndef NODE_CORE_GOODS_LEDGER_H
#define NODE_CORE_GOODS_LEDGER_H

#include "holdfast/v1/ledger.pb-c.h"
#include "idl/limit.h"
#include "node/core/handler/handler.h"
#include "node/core/rows/rows.h"

#define LEDGER_CHANGES_MAX LIMIT_CURRENCIES
#define LEDGER_ITEMS_MAX   LIMIT_ITEMS
#define REASON_BYTES_MAX   LIMIT_REASON_BYTES
#define COUNTERPARTS_MAX   (LIMIT_TRANSACTION_PLAYERS - 1)

/* Entries name the other side, from here on. */
#define COUNTERPART_APPLY_VERSION 10u

struct ledger_change {
    struct slice currency;
    int64_t amount; /* Negative for a spend. */
    int64_t balance_after;
    int64_t reserved; /* What moved into reservations; negative: out of them. */
    int64_t reserved_after;
};

struct ledger_entry {
    Holdfast__V1__LedgerKind kind;
    struct slice reason;
    uint32_t change_count;
    const struct ledger_change *changes;
    uint32_t item_count;
    const struct item_row *items;
    bool items_taken;   /* They leave the player. */
    struct slice next;  /* To whom, where that is known: an entity. */
    uint64_t refers_to; /* The entry that this one reverses, posts, voids; 0: none. */
    /* Player ids of the other side, and the operation that sent what is claimed; NULL: none. Left
     * out below COUNTERPART_APPLY_VERSION. */
    uint32_t counterpart_count;
    const char *const *counterparts;
    const char *mail_op_id;
};

/* Writes the player's next entry into the open transaction; its seq and hash become the head. Each
 * of its items gets a row in TABLE_HISTORY, under its step. */
void ledger_append(struct apply_context *context, const struct ledger_entry *entry);

#define LEDGER_DAMAGE "an entry of the player's ledger cannot be read"

/* An entity's entry, borrowed from the state. ERR_NEED; ERR_CORRUPT: there is no row, though
 * ledgers have no gaps. */
NODISCARD err ledger_row_find(struct state *state, struct slice entity, uint64_t seq,
                              struct need *need, struct slice *ret_row);

/* The seq of an entity's newest entry, from the rows alone: ledgers have no gaps. 0: there is none.
 * ERR_NEED. */
NODISCARD err ledger_head_find(struct state *state, struct slice entity, struct need *need,
                               uint64_t *ret_seq);
/* What entry `seq` ends with, or what stands before the first one. ERR_NEED; ERR_CORRUPT: the entry
 * is too short, or there is none. */
NODISCARD err ledger_hash_find(struct state *state, struct slice entity, uint64_t seq,
                               struct need *need, uint8_t ret_hash[LEDGER_HASH_BYTES]);
/* Puts an entry of kind LOST in the place of one of context->player's that cannot be read. It
 * chains to the one before it, which ends with `previous`. */
void ledger_lose(struct apply_context *context, uint64_t seq,
                 const uint8_t previous[LEDGER_HASH_BYTES], struct slice reason);

/* A stored row as the API tells it, in the arena; player ids and the like point into `row`.
 * ERR_CORRUPT: malformed. */
NODISCARD err ledger_row_decode(struct slice row, struct arena *arena,
                                Holdfast__V1__LedgerEntry **ret_entry);

/* The kind and the time of a stored row, without the rest. ERR_CORRUPT: too short for them. */
NODISCARD err ledger_row_peek(struct slice row, Holdfast__V1__LedgerKind *ret_kind,
                              uint64_t *ret_at_ms);

/* The op_id of a stored row, borrowed from it. ERR_CORRUPT: too short for one. */
NODISCARD err ledger_row_peek_op_id(struct slice row, struct slice *ret_op_id);

/* Stands in the place of an entry that could not be read: the next one chains to what was there. */
bool ledger_row_is_lost(struct slice row);

/* What a stored row says of amounts and items, told one by one; nothing is copied. */
struct ledger_visitor {
    void (*amount)(void *context, struct slice currency, int64_t amount, int64_t reserved);
    void (*item)(void *context, const uint8_t uid[ITEM_UID_BYTES], bool taken);
    void *context;
};
/* ERR_CORRUPT: malformed; some of it may have been told. */
NODISCARD err ledger_row_visit(struct slice row, const struct ledger_visitor *visitor);

/* SHA-256 of two pieces, for the chain and for tests of it. */
void ledger_hash(const uint8_t previous[LEDGER_HASH_BYTES], struct slice bytes,
                 uint8_t ret_hash[LEDGER_HASH_BYTES]);
/* What stands before the first entry: SHA-256 of "holdfast.ledger.1:" and the entity. */
void ledger_genesis(struct slice entity, uint8_t ret_hash[LEDGER_HASH_BYTES]);

#endif
