/*
 * oracle: what the promises of DESIGN section 1 say about a run. It keeps the one committed log of
 * each shard, applies it once more to rows that never leave memory, and beside that to a model of
 * players and operations written apart from the product (model.c). Every commit, every outcome
 * and every answer of every node is held against them.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include "tests/sim/goods.h"

#define MODEL_SLOTS 32768u
#define MODEL_EXPIRED                                                                              \
    1024u /* Ended registrations; a restored etcd ends them all, again and again. */
#define MODEL_KEY_BYTES 96u
/* What one renewal proposes may get lost; that of so many does not. */
#define RENEWALS_SURE 4u

/* A player after one entry. */
struct moment {
    uint64_t index;
    uint64_t version;
    int64_t balances[SIM_CURRENCIES];
    int64_t reserved[SIM_CURRENCIES];
    uint32_t sections[SIM_SECTIONS]; /* The number written last. */
    uint32_t items;
    uint32_t mails; /* In the mailbox. */
};

struct player_model {
    uint32_t shard;
    uint64_t fence;
    struct incarnation incarnation; /* None: free. */
    uint64_t granted_ms;            /* Since when it is granted and not used; 0: it was used. */
    uint32_t renewals;              /* Answered as good, of this fence. */
    uint64_t renewed_ms;            /* When there were RENEWALS_SURE of them. */
    uint64_t renewed_epoch;         /* Of the owner that answered them. */
    uint64_t claim_ms;              /* When the holder's time is over; 0: no one asked for it. */
    uint64_t *lost_at; /* By model_fence_place: the entry that ended it; 0: it stands. */
    uint64_t lost_capacity;
    uint32_t txn;         /* The transaction that holds it: place plus one; 0: none. */
    uint64_t freed_index; /* The entry that ended the last one that held the player. */
    uint32_t turns;       /* How many have held it. */
    struct moment now;
    struct moment *history; /* By index. */
    uint32_t history_count, history_capacity;
};

enum op_state { OP_NONE, OP_PENDING, OP_COMMITTED, OP_REFUSED, OP_ABORTED };

struct op_model {
    char key[MODEL_KEY_BYTES]; /* Entity, a space, op_id. */
    enum op_state state;
    uint32_t method;
    uint32_t attempt;       /* Highest evaluated. */
    uint64_t ms;            /* Of a UUIDv7; UINT64_MAX: typed. */
    bool is_key, again;     /* Of kind `key:`; it was over, and the id is used again. */
    uint32_t shard;         /* That had it last. */
    uint32_t before;        /* What the id stood for until that was over: place plus one; 0. */
    uint64_t index;         /* That decided it. */
    uint64_t refused_index; /* Of the newest refusal. */
    uint64_t
        settled_index; /* A transfer: that logged its decision; `index` is that of its debit. */
    struct dot dot;
    uint64_t version;
    uint64_t fence; /* StartSession: granted. */
    struct hash128 payload;
    uint32_t packets;            /* Sent to nodes; copies that come late count too. */
    int64_t net[SIM_CURRENCIES]; /* What it did to the balances. */
    uint32_t item;               /* That it granted or spent: place in the book plus one. */
    bool reversed, by_system;
    bool named;      /* It was asked for as the system, */
    char caller[49]; /* ... under this key; empty: not told. Of the entry that stands for it. */
    /* Reserve: what, until when; whether nothing has closed it. */
    struct goods set_aside;
    uint64_t expires_ms, ledger_seq;
    uint32_t player;
    bool open, expired;
    bool sent; /* Post: to another player. */
    bool waited;
    bool too_old;     /* Refused as such once. */
    uint64_t told_ms; /* When a caller was first told that it is done; 0: none was. */
};

#define ORACLE_FIELDS 64u
#define ORACLE_MARKS  2048u /* Of acknowledgements: more than in the longest age of a read. */

struct shard_oracle {
    struct applier *applier;
    struct need need;
    struct entry **entries; /* Index less one. */
    struct hash128 *outcomes;
    uint64_t count, capacity;
    uint64_t acknowledged; /* Greatest index whose effect was told to anybody. */
    struct {
        uint64_t ms, index;
    } marks[ORACLE_MARKS]; /* A ring: when `acknowledged` rose, and to what. */
    uint64_t mark_count;
    uint64_t epoch_served; /* The greatest under which an owner ever served. */
    uint64_t floor_ms;
    uint64_t dated_from; /* The START since which outcomes of `key:` ids are dated; 0: none yet. */
    struct incarnation lowest_live;
    struct incarnation expired[MODEL_EXPIRED];
    uint32_t expired_count;
};

/* The numbers of the fields that name an operation, of one method; 0: it has none. */
struct op_fields {
    const struct method_info *method;
    uint32_t id, player, given;
};

struct oracle {
    struct op_fields fields[ORACLE_FIELDS]; /* Of the last method with that remainder. */
    const struct model_rule *const *rules;  /* By method: model.h. */
    struct shard_oracle shards[SIM_SHARDS_MAX];
    struct player_model players[SIM_PLAYERS_MAX];
    struct op_model *ops;
    uint32_t op_count;
    uint32_t pending; /* Steals that are not decided. */
    uint32_t *slots;  /* Place in ops plus one. */
    struct arena arena;
    struct goods_book book;
};

/* ---- model.c ---- */
void model_apply(struct sim *sim, uint32_t shard, const struct entry *entry,
                 const struct outcome *outcome);
struct op_model *model_op(struct oracle *oracle, struct slice entity, struct slice id);
/* Another operation under the same id, from here on found by it. */
struct op_model *model_op_again(struct oracle *oracle, struct op_model *op);
struct player_model *model_player(struct sim *sim, struct slice entity);
bool model_expired(const struct shard_oracle *shard, struct incarnation incarnation);
/* The player as of an index; NULL: it did not exist. */
const struct moment *model_at(const struct player_model *player, uint64_t index);
uint32_t model_section(const char *json);

/* ---- model_key.c ---- */
/* What a `key:` stood for may be over at that time, is over for sure. */
bool model_key_may_be_over(const struct shard_oracle *shard, const struct op_model *op,
                           uint64_t now_ms);
bool model_key_is_over(const struct shard_oracle *shard, const struct op_model *op,
                       uint64_t now_ms);
/* Of all that the id has stood for: what this entry decided, else the newest. */
const struct op_model *model_life(const struct oracle *oracle, const struct op_model *op,
                                  uint64_t index);
/* Whether any of them came to that. */
bool model_was(const struct oracle *oracle, const struct op_model *op, enum op_state state);

/* ---- oracle.c ---- */
/* 0: no committed entry has this dot. */
uint64_t oracle_index_of(const struct shard_oracle *shard, struct dot dot);
void oracle_acknowledge(struct sim *sim, uint32_t shard, uint64_t index);

/* Fences of a generation begin far above those of the one before. */
uint64_t model_fence_place(uint64_t fence);

#endif
