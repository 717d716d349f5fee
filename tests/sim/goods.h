/*
 * goods: where every item and every unit of currency is, by the rules of DESIGN section 7 said
 * again: with a player, in a mailbox, or on its way between two shards. Part of the model.
 */
#ifndef TESTS_SIM_GOODS_H
#define TESTS_SIM_GOODS_H

#include "holdfast/v1/ledger.pb-c.h"
#include "tests/sim/sim.h"

#define GOODS_ID_SIZE   33u
#define SIM_MAILBOX_MAX 4u /* As the run's policy says. */

struct goods {
    int64_t amount;
    uint32_t currency;
    uint32_t item; /* Place plus one; 0: none. */
};

enum item_place { ITEM_HELD, ITEM_MAILED, ITEM_ON_ITS_WAY, ITEM_GONE };

struct item_model {
    char uid[GOODS_ID_SIZE];
    enum item_place place;
    uint32_t player; /* Whose inventory or mailbox. */
    uint32_t steps;  /* Of its history, over all shards. */
};

/* One step in an item's history: which entry of which shard brought it to a player, or took it. */
struct step_model {
    uint32_t item; /* Place plus one. */
    uint32_t number, player, shard;
    uint64_t index;
    uint64_t op_hash;
    bool held;
};

struct mail_model {
    char id[GOODS_ID_SIZE];
    uint32_t player, from;
    bool gone;
    uint64_t expires_ms; /* 0: never. */
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
};

struct goods_book {
    struct item_model *items;
    struct mail_model *mails;
    struct transfer_model *transfers;
    struct step_model *steps;
    uint32_t step_count, step_capacity;
    uint32_t item_count, item_capacity;
    uint32_t items_gone; /* Consumed, or minted by an operation that was reversed. */
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
/* A mutation that is done, or is pending from here on. */
void goods_effect(struct change *c, const ProtobufCMessage *response);
void goods_opened(struct change *c, struct op_model *op);
void goods_sealed(struct change *c, const struct op_model *op);
void goods_delivered(struct change *c);
void goods_settled(struct change *c);
/* What a destination tells is what it has logged. */
void goods_check_told(struct sim *sim, uint32_t destination, const ProtobufCMessage *request,
                      const ProtobufCMessage *response);
/* An item or a piece of mail to ask for, mostly one that is there; NULL: none yet. */
const char *goods_pick_item(struct sim *sim, uint32_t player);
const char *goods_pick_mail(struct sim *sim, uint32_t player);

/* ---- model_trace.c ---- */
/* The item came to that player, into its mailbox or left it. */
void trace_step(const struct change *c, uint32_t item, uint32_t player, bool held,
                struct slice op_id);
/* What a shard tells of an item's history, as of an entry. */
void trace_check_told(struct sim *sim, uint32_t shard, uint64_t index,
                      const ProtobufCMessage *request, const ProtobufCMessage *response);
/* Any item that ever was; NULL: none yet. */
const char *trace_pick_item(struct sim *sim);

/* ---- server_goods.c ---- */
struct goods_parts {
    const char *player, *to;
    Holdfast__V1__Authority *authority;
    Holdfast__V1__CurrencyAmount *amount;
};
/* A game server asks for something to be moved. */
void server_move_goods(struct sim *sim, uint32_t server, uint32_t player);
/* False: a method that moves no goods. */
bool request_goods_encode(const struct sim_op *op, const struct goods_parts *parts,
                          struct buf *out);

/* ---- conservation.c ---- */
/* Adds up the rows of all shards as committed: each unit and each item is in one place. */
void conservation_check(struct sim *sim);

#endif
