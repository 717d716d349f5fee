/*
 * player: the one row that every operation on a player touches: version, session, wallet, head
 * of the ledger, count of items, index of sections. Documents, items and ledger entries are rows
 * of their own (rows.h). DESIGN sections 3 and 8.
 *
 * A player lives in an arena for one step; its texts point into the row it was decoded from.
 */
#ifndef NODE_CORE_PLAYER_PLAYER_H
#define NODE_CORE_PLAYER_PLAYER_H

#include "idl/limit.h"
#include "node/core/player/session.h"
#include "runtime/base/arena.h"

#define LEDGER_HASH_BYTES 32u
/* Open, of one player: each has a timer in memory. */
#define RESERVATIONS_MAX       LIMIT_RESERVATIONS
#define SECTIONS_MAX           LIMIT_SECTIONS
#define SECTION_NAME_BYTES_MAX LIMIT_SECTION_NAME_BYTES
#define SECTION_BYTES_MAX      LIMIT_SECTION_BYTES
/* Of all sections: a whole profile must fit one frame between processes. */
#define PROFILE_BYTES_MAX LIMIT_PROFILE_BYTES

/* Of a balance in a row, either way of 0: far past what the rules and refunds can come to
 * (goods.h), and far from where adding to it overflows. */
#define BALANCE_ROW_MAX ((1ll << 62) + (1ll << 60))

struct balance {
    struct slice currency;
    int64_t amount;
    int64_t reserved; /* In open reservations; no part of `amount`. */
    int64_t sent;     /* In large transfers to other shards that are open (goods.h). */
};

bool balance_is_sound(int64_t amount);

struct section_info {
    struct slice name;
    uint32_t schema_version;
    uint32_t size_bytes;
    uint64_t version;
    uint64_t last_write_ms;
};

/* Names a transaction across shards for ever: its home shard, and the first record it opened. */
struct txn_ref {
    uint32_t home;
    uint32_t destination;
    uint64_t seq; /* 0: none. */
};

struct player {
    struct slice entity; /* "player:42" */
    struct txn_ref txn;  /* Which holds the player: its intent is a row of its own. */
    uint64_t version;    /* 0: the player does not exist yet. */
    uint64_t created_at_ms;
    struct session session;
    uint64_t ledger_seq;                    /* Of the newest entry; 0: none. */
    uint8_t ledger_hash[LEDGER_HASH_BYTES]; /* Of that entry. */
    uint32_t item_count;
    uint32_t balance_count;
    struct balance *balances;   /* Sorted by currency; only those ever held. */
    uint32_t reservation_count; /* Open ones. */
    struct slice section_bytes; /* The index as stored, until player_sections decodes it. */
    bool sections_loaded;
    uint64_t sections_gone_version; /* Highest version of any section that was deleted; 0: none. */
    uint32_t section_count;
    struct section_info *sections; /* Sorted by name; room for SECTIONS_MAX. */
};

/* A player without a row. */
void player_init(struct player *player, struct slice entity);
/* ERR_CORRUPT: malformed. Slices point into `row`. */
NODISCARD err player_decode(struct slice row, struct slice entity, struct arena *arena,
                            struct player *ret_player);
void player_encode(const struct player *player, struct buf *out);

/* The id without its kind: "42". */
struct slice player_id(const struct player *player);

/* NULL when never held. */
struct balance *player_find_balance(const struct player *player, struct slice currency);
/* Adds a currency at 0 when it was never held; `currency` must outlive the player. */
struct balance *player_get_balance(struct player *player, struct arena *arena,
                                   struct slice currency);

/* Decodes the index of sections; call before touching `sections`. ERR_CORRUPT: malformed. */
NODISCARD err player_sections(struct player *player, struct arena *arena);
struct section_info *player_find_section(const struct player *player, struct slice name);
/* Makes room for a new one in order; count < SECTIONS_MAX. Sections move. Its version begins where
 * those of deleted ones ended, so that no name ever has the same version twice. */
struct section_info *player_add_section(struct player *player, struct slice name);
void player_remove_section(struct player *player, struct section_info *section);
uint64_t player_sections_bytes(const struct player *player);

#endif
