/*
 * table: what is true of each table of rows, in one list. The first byte of a key is its table's
 * letter. Code that works on rows of any table reads that table's facts. What each table needs of
 * its own (its check, its repair) is generated from the list, or chosen by a switch over enum table
 * without a default: code that forgets a table does not compile.
 */
#ifndef NODE_CORE_ROWS_TABLE_H
#define NODE_CORE_ROWS_TABLE_H

#include <stdint.h>

#include "runtime/base/buf.h"

/*
 * X(NAME, name, letter, entity, tail, order, run, drop, miss, carried); what each may be stands
 * below, in the enums of these names. Every table of rows, and what their keys and values are.
 * Tables that are written in runs keep their order here in a checkpoint, too.
 */
/* clang-format off */
#define TABLE_ROWS(X) \
    /* entity -> session, wallet, ledger head, sections. */ \
    X(PLAYER,      player,      'p', REST,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* entity, 0, name -> document. */ \
    X(SECTION,     section,     's', FIRST,  TEXT, NONE,   NO,  LARGE,  LOAD,   ROWS) \
    /* entity, 0, seq (u64 big-endian) -> ledger entry. */ \
    X(LEDGER,      ledger,      'l', FIRST,  SEQ,  NONE,   YES, FIRST,  LOAD,   ROWS) \
    /* item uid, step (u32 big-endian) -> who held it. */ \
    X(HISTORY,     history,     'k', NONE,   NONE, ALWAYS, YES, FIRST,  LOAD,   ROWS) \
    /* entity, 0, uid -> item. */ \
    X(ITEM,        item,        'i', FIRST,  UID,  ENTITY, YES, UNUSED, LOAD,   ROWS) \
    /* entity, 0, mail id -> mail. */ \
    X(MAIL,        mail,        'b', FIRST,  UID,  ENTITY, YES, USE,    LOAD,   ROWS) \
    /* entity -> count of its mail. */ \
    X(MAILBOX,     mailbox,     'h', REST,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* uuid v7 (16), entity -> outcome. Sorts by time. */ \
    X(OPERATION,   operation,   'o', UUID,   NONE, ALWAYS, NO,  AGE,    ABOVE,  DATED) \
    /* entity, 0, typed op id -> outcome. As long-lived as the ledger, but for `key:` ids. */ \
    X(TYPED,       typed,       'y', FIRST,  NONE, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* decided_at_ms (u64 big-endian), entity, 0, `key:` id -> version. When its outcome is over. */ \
    X(KEYED,       keyed,       'e', TIMER,  NONE, ALWAYS, NO,  FIRST,  LOAD,   ROWS) \
    /* 'o' or 'i', other shard (u16 big-endian) -> where it stands. */ \
    X(CHANNEL,     channel,     'c', NONE,   NONE, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* destination (u16 big-endian), seq (u64 big-endian) -> record. */ \
    X(OUTBOX,      outbox,      'x', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* source, seq (as above) -> decision. */ \
    X(INBOX,       inbox,       'n', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* entity, 0, seq (as in the ledger) -> seq of what undid or closed it. */ \
    X(REVERSAL,    reversal,    'v', FIRST,  SEQ,  NONE,   NO,  USE,    LOAD,   ROWS) \
    /* entity, 0, seq (as in the ledger) -> what is set aside, until when. */ \
    X(RESERVATION, reservation, 'r', FIRST,  SEQ,  ENTITY, NO,  USE,    LOAD,   ROWS) \
    /* entity -> the transaction that holds it, and its escrow. */ \
    X(INTENT,      intent,      'q', REST,   NONE, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* destination, seq (as above) -> a transaction of this home shard. */ \
    X(TXN,         txn,         'z', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* "receipt:<id>" -> whose it is. As long-lived as the ledger. */ \
    X(RECEIPT,     receipt,     'R', NONE,   NONE, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* number (u64 big-endian) -> definition; 0: how far the shard has followed. */ \
    X(DEFINITION,  definition,  'd', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* 0, or 1 -> names and numbers of all collections, or of all counters. */ \
    X(COLLECTION,  collection,  'C', NONE,   NONE, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* 0 -> all rate rules, by subject. */ \
    X(RATE_RULES,  rate_rules,  'M', NONE,   NONE, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* entity, 0, number (u64 big-endian) of a collection -> how often the entity changed it lately. */ \
    X(RATE,        rate,        'V', FIRST,  SEQ,  ENTITY, NO,  USE,    LOAD,   ROWS) \
    /* entity, 0, collection (u64 big-endian), target -> state, ver, since when. */ \
    X(FAVORITE,    favorite,    'f', FIRST,  TEXT, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* entity, 0, collection -> how many edges, and how many that are gone and remembered. */ \
    X(FAVORITES,   favorites,   'F', FIRST,  SEQ,  NONE,   NO,  USE,    LOAD,   ROWS) \
    /* entity, 0, collection, part, when, target -> ver. The newest first, or what is gone. */ \
    X(FAVORED,     favored,     'g', FIRST,  TEXT, ENTITY, NO,  USE,    LOAD,   ROWS) \
    /* collection, target, 0, entity -> since when. */ \
    X(FAVORER,     favorer,     'G', NONE,   NONE, ASKED,  NO,  FIRST,  LOAD,   ROWS) \
    /* flagged_at_ms (u64 big-endian), entity, 0, collection, target -> why that edge waits for a review. */ \
    X(REVIEW,      review,      'B', TIMER,  NONE, ASKED,  NO,  FIRST,  LOAD,   ROWS) \
    /* collection, or counter, target -> how many edges of this shard lead to it, or how much was added, and since which hours. */ \
    X(PARTIAL,     partial,     'P', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* entity, 0, counter (u64 big-endian), target -> what the player added to it in all, and when last. */ \
    X(ADDED,       added,       'J', FIRST,  TEXT, ENTITY, NO,  USE,    LOAD,   ROWS) \
    /* counter, target, 0, entity -> the same. */ \
    X(ADDER,       adder,       'Q', NONE,   NONE, ASKED,  NO,  FIRST,  LOAD,   ROWS) \
    /* home (u16 big-endian), epoch, counter, collection, target: that partial changed then. */ \
    X(CHANGED,     changed,     'H', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* home (u16 big-endian) -> when any partial of that home's targets changed last. */ \
    X(NEWEST,      newest,      'N', NONE,   NONE, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* home, epoch, counter, collection, target (as above): no edge of this shard has led to it since. */ \
    X(EMPTIED,     emptied,     'Z', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* source (u16 big-endian) -> how far this home has logged that shard's partials. */ \
    X(PULLED,      pulled,      'U', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* collection, target, 0, source -> that shard's partial, as it was pulled. */ \
    X(SHARE,       share,       'S', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* collection, target -> the sum of its shares. */ \
    X(TALLY,       tally,       'T', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* collection, window, count (inverted), target: where a tally stands in a top list. */ \
    X(RANK,        rank,        'K', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* 0 -> how far the last rebuild of counts or totals has come. */ \
    X(RECOUNT,     recount,     'L', NONE,   NONE, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* entity -> how far the entity's edges and additions are erased. */ \
    X(ERASURE,     erasure,     'X', REST,   NONE, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* epoch, counter (u64 big-endian), place (u32 big-endian) -> event. */ \
    X(EVENT,       event,       'E', NONE,   NONE, ASKED,  YES, FIRST,  LOAD,   ROWS) \
    /* "consumer:<name>" -> what it reads, and how far it has come. */ \
    X(CONSUMER,    consumer,    'D', NONE,   NONE, ASKED,  NO,  USE,    LOAD,   ROWS) \
    /* collection (u64 big-endian), target -> what it is called and looks like. */ \
    X(METADATA,    metadata,    'O', NONE,   NONE, NONE,   NO,  USE,    LOAD,   ROWS) \
    /* due_ms (u64 big-endian), entity, or that, 0, seq -> kind. */ \
    X(TIMER,       timer,       't', TIMER,  NONE, ALWAYS, NO,  NEVER,  ABSENT, READ)

/* And the letters that are no rows among others. */
#define TABLE_LIST(X) \
    TABLE_ROWS(X) \
    /* One row per shard; see meta.h. Always in memory. */ \
    X(META,        meta,        'm', NONE,   NONE, NONE,   NO,  NEVER,  LOAD,   APART) \
    /* No rows: what is told to the observer (state_note). */ \
    X(NOTE,        note,        'w', NONE,   NONE, NONE,   NO,  NEVER,  LOAD,   NOWHERE)
/* clang-format on */

/* In the database two bytes of shard (big-endian) stand before it. */
#define TABLE_LETTER(NAME, name, letter, ...) TABLE_##NAME = letter,
enum table { TABLE_LIST(TABLE_LETTER) };
#undef TABLE_LETTER

/* Where the entity stands in a key, behind the letter. */
enum table_entity {
    TABLE_ENTITY_NONE,  /* The row is the shard's. */
    TABLE_ENTITY_REST,  /* The rest of the key. */
    TABLE_ENTITY_FIRST, /* Up to a 0. */
    TABLE_ENTITY_UUID,  /* Behind 16 bytes. */
    TABLE_ENTITY_TIMER  /* Behind 8 bytes, perhaps up to a 0. */
};

/* What stands behind the entity and its 0. */
enum table_tail {
    TABLE_TAIL_NONE, /* Nothing, or what may be of any length. */
    TABLE_TAIL_TEXT, /* The 0 at least. */
    TABLE_TAIL_SEQ,  /* 8 bytes. */
    TABLE_TAIL_UID   /* ITEM_UID_BYTES. */
};

/* Whether rows are kept in order: others cannot be ranged. */
enum table_order {
    TABLE_ORDER_NONE,
    TABLE_ORDER_ALWAYS,
    TABLE_ORDER_ASKED, /* From the first range on. */
    TABLE_ORDER_ENTITY /* For ranges of one entity. */
};

/* In which order clean rows leave memory (state_evict). */
enum table_drop {
    TABLE_DROP_USE,    /* The least recently used first, once the others have made room. */
    TABLE_DROP_FIRST,  /* Hardly any operation looks at them once they are written. */
    TABLE_DROP_UNUSED, /* First until they are looked at, then by use. */
    TABLE_DROP_AGE,    /* As they came. */
    TABLE_DROP_LARGE,  /* Large, and most operations need none. */
    TABLE_DROP_NEVER
};

/* What a row is that memory does not have. */
enum table_miss {
    TABLE_MISS_LOAD,  /* The database must be asked. */
    TABLE_MISS_ABOVE, /* Absent when its UUIDv7 is above state_set_operations_known_ms. */
    TABLE_MISS_ABSENT /* Absent: all of them are always in memory. */
};

/* How it gets into backups and snapshots, and out of them. */
enum table_carried {
    TABLE_CARRIED_ROWS,
    TABLE_CARRIED_DATED,  /* Likewise; a restore refuses keys without their UUIDv7. */
    TABLE_CARRIED_READ,   /* Likewise; they are read unasked, and one that cannot be is passed over.
                           */
    TABLE_CARRIED_APART,  /* Before the rows. */
    TABLE_CARRIED_NOWHERE /* There is nothing to carry. */
};

/* Places of the tables that have some structure of their own, from 0. */
#define TABLE_PLACE_NO(place)
#define TABLE_PLACE_YES(place) place,
#define TABLE_RUN_PLACE(NAME, name, letter, entity, tail, order, run, ...)                         \
    TABLE_PLACE_##run(TABLE_RUN_##NAME)
enum table_run { TABLE_LIST(TABLE_RUN_PLACE) TABLE_RUNS };

#define TABLE_TREE_NONE(place)
#define TABLE_TREE_ENTITY(place)
#define TABLE_TREE_ALWAYS(place) place,
#define TABLE_TREE_ASKED(place)  place,
#define TABLE_TREE_PLACE(NAME, name, letter, entity, tail, order, ...)                             \
    TABLE_TREE_##order(TABLE_TREE_OF_##NAME)
enum table_tree { TABLE_LIST(TABLE_TREE_PLACE) TABLE_TREES };

struct table_facts {
    uint8_t entity, tail, order, drop, miss, carried; /* Of the enums above. */
    uint8_t run;                                      /* 1 + enum table_run; 0: none. */
    uint8_t tree; /* 1 + enum table_tree, of the whole table's order; 0: none. */
};

/* By letter. One of no table: any row of the shard's. */
extern const struct table_facts table_facts[256];

static inline const struct table_facts *table_of(struct slice key)
{
    return &table_facts[key.data[0]];
}

#endif
