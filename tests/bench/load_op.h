/* load_op: the requests a load run sends to Holdfast, as Connect JSON, and what it reads from the
 * answers. */
#ifndef TESTS_BENCH_LOAD_OP_H
#define TESTS_BENCH_LOAD_OP_H

#include <stdbool.h>

#include "load_goods.h"
#include "load_grant.h"
#include "load_options.h"
#include "load_run.h"
#include "runtime/base/buf.h"

#define LOAD_DOCUMENT_BYTES 1000u /* With names and numbers, a profile of 1 KiB. */

/* clang-format off */
/*    name         text          method called                                                      */
#define LOAD_OPS(X)                                                                                 \
    X(GRANT,       "grant",      "LedgerService/Grant: one currency, --items items")                \
    X(BATCH_GRANT, "batchgrant", "LedgerService/BatchGrant of --batch grants")                      \
    X(READ,        "read",       "ProfileService/GetProfile, strict")                               \
    X(BATCH_READ,  "batchread",  "ProfileService/BatchGetProfile of --batch players, strict")       \
    X(START_END,   "startend",   "SessionService/StartSession, then EndSession: one operation")     \
    X(TRANSFER,    "transfer",   "InventoryService/TransferItems of one item to another shard")          \
    X(SWAP,        "swap",       "TransactionService/Swap of an item each, across shards")           \
    X(FAVORITE,    "favorite",   "FavoritesService/Favorite of a target; what is no new edge is a duplicate") \
    X(BATCH_FAVORITE, "batchfavorite", "FavoritesService/BatchFavorite of --batch favourites")       \
    X(DOCUMENT,    "document",   "DocumentService/UpdateDocument: one of eight leaves of a player's settings") \
    X(CALL,        "call",       "--method with any of --bodies")                                    \
    X(FILL,        "fill",       "once: gives every player a profile of 1 KiB, --batch a call")     \
    X(AUDIT,       "audit",      "once: reads every player, sums balances and items")               \
    X(LEDGER,      "ledger",     "once: reads every player's newest ledger entry, sums its seq")    \
    X(EDGES,       "edges",      "once: asks every player how many favourites it has, sums them")
/* clang-format on */

enum load_op {
#define LOAD_ENUM(name, text, meaning) LOAD_##name,
    LOAD_OPS(LOAD_ENUM)
#undef LOAD_ENUM
};

/* What all connections share. */
struct load_work {
    const struct load_options *options;
    enum load_op op;
    char incarnation[64];
    unsigned player_next; /* Of a sweep: the first that no request has taken. */
    uint64_t balance;     /* Sums over the answers of audit, ledger and edges. */
    uint64_t items;       /* And those that transfer and swap made for themselves. */
    uint64_t entries;
    uint64_t edges;
    uint64_t answer_bytes;
    struct buf bodies; /* call: the file. */
    uint32_t *lines;   /* Where each line begins, and where the last ends. */
    unsigned line_count;
};

/* What one connection remembers between requests. */
struct load_slot {
    unsigned index;
    unsigned turn;
    char player[32];
    char token[96]; /* startend: set while it holds a session. */
    struct load_history history;
    struct load_goods goods;
    struct buf body;   /* Of the last request. */
    bool again;        /* Of a sweep: that one failed, repeat it. */
    unsigned in_sweep; /* Players in it. */
};

bool load_op_parse(const char *text, enum load_op *ret_op);
/* Reads --bodies, if the operation needs it; exits with 2 if it cannot be read. */
void load_op_start(struct load_work *work);
/* Every operation and what it calls, one a line. */
const char *load_op_list(void);
/* True for those that go once over all players. */
bool load_op_sweeps(enum load_op op);
/* Appends a whole HTTP request; false: a sweep has nothing left. */
bool load_op_write(struct load_work *work, struct load_slot *slot, struct buf *out);
/* Appends an HTTP request with this body. */
void load_http_write(const struct load_options *options, const char *method, struct slice body,
                     struct buf *out);
/* Looks at the answer to the slot's request. `body` ends in NUL. */
struct load_outcome load_op_read(struct load_work *work, struct load_slot *slot, unsigned status,
                                 const char *body);
/* The connection was lost with the slot's request on its way. */
struct load_outcome load_op_lost(const struct load_work *work, struct load_slot *slot);
/* Operations in one request. */
unsigned load_op_count(const struct load_work *work);
/* Copies the JSON string value behind "name": false when it is not there. */
bool load_json_find(const char *body, const char *name, char *ret_text, size_t capacity);

#endif
