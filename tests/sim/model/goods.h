/*
 * goods: where every item and every unit of currency is, by the rules of DESIGN section 7 said
 * again: with a player, in a mailbox, or on its way between two shards. Part of the model.
 */
#ifndef TESTS_SIM_MODEL_GOODS_H
#define TESTS_SIM_MODEL_GOODS_H

#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/operation.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "tests/sim/model/edit.h"
#include "tests/sim/sim.h"

#define GOODS_ID_SIZE 33u

#define SIM_GOODS_ITEMS 3u

struct goods {
    int64_t amounts[SIM_CURRENCIES];
    uint32_t items[SIM_GOODS_ITEMS]; /* Places plus one. */
    uint32_t item_count;
};

enum item_place { ITEM_HELD, ITEM_MAILED, ITEM_ON_ITS_WAY, ITEM_GONE };

struct item_model {
    char uid[GOODS_ID_SIZE];
    enum item_place place;
    uint32_t player;               /* Whose inventory or mailbox. */
    uint32_t steps;                /* Of its history, over all shards. */
    char kind[80], attributes[48]; /* As they were when it was made; they never change. */
    uint64_t minted_ms;
};

/* One step in an item's history: which entry of which shard brought it to a player, or took it. */
struct step_model {
    uint32_t item; /* Place plus one. */
    uint32_t number, player, shard;
    uint64_t index;
    uint64_t op_hash;
    bool held;
    uint32_t to; /* To whom it went, plus one; 0: to no player. */
};

struct mail_model {
    char id[GOODS_ID_SIZE];
    uint32_t player, from;
    bool gone;
    uint64_t expires_ms;             /* 0: never. */
    uint64_t came_index, gone_index; /* Entries of its player's shard; 0: not gone. */
    struct goods goods;
};

enum decision { UNDECIDED, APPLIED, REJECTED, CANCELLED };

/* From a debit in the log of its source until the decision is in that log too. */
struct transfer_model {
    uint32_t source, destination;
    uint64_t seq;
    uint32_t from, to;
    uint32_t op; /* Place plus one; 0: mail that comes back. */
    struct goods goods;
    uint64_t expires_ms, epoch;
    enum decision decision; /* In the destination's log. */
    char mail[GOODS_ID_SIZE];
    bool sealed;
    bool settled;
    uint32_t txn;           /* A record of a transaction: place plus one; 0: mail. */
    bool finish;            /* ... its FINISH; else a PREPARE. */
    uint32_t receipt;       /* It asks for a receipt: place plus one. */
    struct hash128 payload; /* ... for this request. */
};

/* "receipt:<id>", by the logs. */
struct receipt_model {
    char id[48];
    bool bound, paid;
    bool entered;    /* ... with an entry in a ledger: a letter without goods has none. */
    uint32_t player; /* Whose it is, */
    struct hash128 payload;
    uint64_t bound_index; /* ... as of this entry of its shard. */
};

#define SIM_TXN_PLAYERS 3u
#define SIM_TXN_ITEMS   4u

/* One player of a transaction. Items are places plus one. */
struct txn_part_model {
    uint32_t player;
    int64_t take[SIM_CURRENCIES], give[SIM_CURRENCIES], at_least[SIM_CURRENCIES];
    uint32_t items_out[SIM_TXN_ITEMS], items_in[SIM_TXN_ITEMS], minted[SIM_TXN_ITEMS];
    uint32_t out_count, in_count, mint_count;
    bool spent[SIM_TXN_ITEMS]; /* Of items_out: it leaves for good. */
    struct edit_model edits[SIM_SECTIONS];
    uint32_t edit_count;
    /* Checks beside `at_least`. */
    bool wants_version, wants_section, wants_item;
    uint64_t version, section_version;
    uint32_t section, item; /* item: place plus one; 0: it never was. */
    bool own;               /* Its authority stands here, not in the operation. */
    struct authority authority;
    bool strange; /* Names an item that the run never made. */
    bool prepared, finished;
    /* Of the player: before it was held, and since it is free again. */
    uint64_t before_version, done_version;
    uint32_t turn; /* Which of the transactions that have held the player; from 1. */
};

enum txn_decision { TXN_OPEN, TXN_COMMIT, TXN_ABORT };

/* A shard that takes part. */
struct txn_member_model {
    uint32_t shard;
    uint64_t seq; /* 0: the home shard. */
    bool voted, prepared;
};

struct txn_model {
    uint32_t op, home; /* op: place plus one. */
    uint32_t place;    /* In the book, plus one. */
    struct txn_part_model parts[SIM_TXN_PLAYERS];
    uint32_t part_count;
    struct txn_member_model members[SIM_TXN_PLAYERS];
    uint32_t member_count;
    enum txn_decision decision;
};

struct goods_book {
    struct item_model *items;
    struct mail_model *mails;
    struct transfer_model *transfers;
    struct step_model *steps;
    uint32_t step_count, step_capacity;
    struct txn_model *txns;
    uint32_t txn_count, txn_capacity;
    struct receipt_model *receipts;
    uint32_t receipt_count, receipt_capacity;
    uint32_t item_count, item_capacity;
    uint32_t items_gone; /* Spent, or granted by an operation that was reversed. */
    uint32_t mail_count, mail_capacity;
    uint32_t transfer_count, transfer_capacity;
    uint32_t open;
    uint64_t last_seq[SIM_SHARDS_MAX][SIM_SHARDS_MAX];  /* Source, destination. */
    uint64_t watermark[SIM_SHARDS_MAX][SIM_SHARDS_MAX]; /* As the destination has logged it. */
    int64_t made[SIM_CURRENCIES];                       /* Granted less spent. */
};

struct change;
struct op_model;

void goods_deinit(struct goods_book *book);
bool goods_are_nothing(const struct goods *goods);
/* The mail brings them, all of them and nothing else. */
bool goods_are_mailed(const struct goods_book *book, const struct goods *goods,
                      const Holdfast__V1__Mail *mail);
/* An operation that sends goods is pending from here on. */
void goods_opened(struct change *c, struct op_model *op);
void goods_sealed(struct change *c, const struct op_model *op);
void goods_delivered(struct change *c);
void goods_settled(struct change *c);
/* The transfer of this operation of shard `source` is applied, in its destination's log. */
bool goods_has_arrived(const struct sim *sim, uint32_t source, const struct op_model *op);
/* A record of the channel, in the log of its source; NULL: there is none. */
struct transfer_model *goods_record_find(const struct goods_book *book, uint32_t source,
                                         uint32_t destination, uint64_t seq);
struct transfer_model *goods_record_open(const struct change *c,
                                         const struct transfer_model *record);
uint32_t goods_item_find(const struct goods_book *book, const char *uid);
/* Without a step in its history. */
uint32_t goods_item_new(const struct change *c, const char *uid, enum item_place place,
                        uint32_t player);
void goods_item_move(const struct change *c, uint32_t item, enum item_place place, uint32_t player);

/* ---- model_txn.c ---- */
/* Done in one entry; pending from here on; aborted by a seal. */
void txn_done(struct change *c, struct op_model *op);
void txn_opened(struct change *c, struct op_model *op);
void txn_sealed(struct change *c, struct op_model *op);
/* A member decides on a record; the home shard logs that. */
void txn_delivered(struct change *c, struct transfer_model *record, bool is_credit,
                   const Holdfast__Internal__V1__ChannelCredit *credit, int decision);
void txn_settled(struct change *c, const struct transfer_model *record);

/* ---- model_read.c ---- */
/* A router answers a read of several players: nothing that was told before is missing, and no
 * transaction is seen on one side, or without one that came before it. */
void read_check_told(struct sim *sim, const struct sim_reading *reading);
/* A part of one was refused, since a transaction holds the player: as of `applied` one must. */
void read_check_refused(struct sim *sim, const struct node_call *call, uint64_t applied);

/* ---- model_receipt.c ---- */
bool receipt_is_id(struct slice op_id);
/* Carried out, refused or pending in the entry that asks. */
void receipt_done(struct change *c);
void receipt_refused(struct change *c, const Holdfast__Internal__V1__Refusal *detail);
void receipt_opened(struct change *c, struct op_model *op);
/* Its shard decides on a record; the home shard logs that, and carries out. */
void receipt_delivered(struct change *c, struct transfer_model *record,
                       const Holdfast__Internal__V1__ChannelCredit *credit);
void receipt_settled(struct change *c, const struct transfer_model *record);
/* What its shard tells of it. */
void receipt_check_told(struct sim *sim, const char *id, uint64_t must_see,
                        const Holdfast__Internal__V1__OperationRecord *status);
/* By the rows of all ledgers: none paid twice, and none less than the logs say. */
void receipts_check(struct sim *sim);

/* ---- model_caller.c ---- */
/* Behind the request of a call as the system: whose key it is, as a router writes it. */
void caller_append(const struct sim *sim, const struct sim_op *op, struct buf *request);
/* By the rows of all ledgers. */
void callers_check(struct sim *sim);

/* What a destination tells is what it has logged. */
void goods_check_told(struct sim *sim, uint32_t destination, const ProtobufCMessage *request,
                      const ProtobufCMessage *response);
/* An item or a piece of mail to ask for, mostly one that is there; NULL: none yet. */
const char *goods_pick_item(struct sim *sim, uint32_t player);
/* Beside op->uid: other items of the player, which no die chooses. */
void goods_pick_more(const struct sim *sim, struct sim_op *op);
const char *goods_pick_mail(struct sim *sim, uint32_t player);

/* ---- model_trace.c ---- */
/* The item came to that player, into its mailbox or left it. */
void trace_step(const struct change *c, uint32_t item, uint32_t player, bool held,
                struct slice op_id);
/* The step that the item took last went to that player. */
void trace_to(const struct change *c, uint32_t item, uint32_t player);
/* What a shard tells of an item's history, as of an entry. */
void trace_check_told(struct sim *sim, uint32_t shard, uint64_t index,
                      const ProtobufCMessage *request, const ProtobufCMessage *response);
/* Any item that ever was; NULL: none yet. */
const char *trace_pick_item(struct sim *sim);

/* ---- server_goods.c, server_txn.c, server_receipt.c ---- */
/* A game server asks for something to be moved. */
void server_move_goods(struct sim *sim, uint32_t server, uint32_t player);
/* ... or several players to exchange things, or to be read as of one moment. */
void server_transact(struct sim *sim, uint32_t server);
/* Of SIM_READ_PLAYERS players: some trade; all are read together. One is given something. */
void server_trade(struct sim *sim, uint32_t server, const uint32_t *group);
void server_read_group(struct sim *sim, uint32_t server, const uint32_t *group);
void server_give(struct sim *sim, uint32_t server, uint32_t player);
/* A payment provider's webhook: receipts, some of them for several players. */
void server_webhook(struct sim *sim, uint32_t server);

/* ---- conservation.c ---- */
/* Adds up the rows of all shards as committed: each unit and each item is in one place. */
void conservation_check(struct sim *sim);
/* In how many places the item is. */
uint32_t conservation_places(struct sim *sim, const uint8_t uid[ITEM_UID_BYTES]);

#endif
