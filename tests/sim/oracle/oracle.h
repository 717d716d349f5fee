/*
 * oracle: what the promises of DESIGN section 1 say about a run. It keeps the one committed log of
 * each shard, applies it once more to rows that never leave memory, and beside that to a model of
 * players and operations written apart from the product (model.c). Every commit, every outcome
 * and every answer of every node is held against them.
 */
#ifndef TESTS_SIM_ORACLE_ORACLE_H
#define TESTS_SIM_ORACLE_ORACLE_H

#include "tests/sim/model/edit.h"
#include "tests/sim/model/goods.h"

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
    struct sections_model sections;
    uint32_t reservations; /* Open ones. */
    uint32_t items;
    uint32_t mails; /* In the mailbox. */
};

#define ENTRY_ITEMS 8u

/* An entry of a ledger, as its bytes say. */
struct entry_model {
    uint64_t seq, index; /* index: of the log's entry. */
    int kind;
    bool extended, items_taken;
    uint64_t at_ms, refers_to, op_hash;
    uint32_t changed; /* Bits: which currencies. */
    int64_t amounts[SIM_CURRENCIES], balances[SIM_CURRENCIES], reserved[SIM_CURRENCIES];
    uint32_t items[ENTRY_ITEMS], item_count; /* Places plus one. */
    uint8_t hash[32];
};

struct player_model {
    uint32_t shard;
    uint64_t fence;
    struct incarnation incarnation; /* None: free. */
    uint64_t granted_ms;            /* Since when it is granted and not used; 0: it was used. */
    uint32_t renewals;              /* Answered as good, of this fence. */
    uint64_t renewed_ms;            /* When there were RENEWALS_SURE of them. */
    uint64_t renewed_epoch;         /* Of the owner that answered them. */
    uint64_t free_ms;            /* Of the run: since when nothing keeps a server from having it. */
    struct incarnation claimant; /* Of the claim that is pending: who asked last. */
    bool contained;              /* Held back for review, or not any more, since this entry. */
    uint64_t review_index;
    uint64_t claim_ms; /* When the holder's time is over; 0: no one asked for it. */
    uint64_t *lost_at; /* By model_fence_place: the entry that ended it; 0: it stands. */
    uint64_t lost_capacity;
    uint32_t txn;                /* The transaction that holds it: place plus one; 0: none. */
    uint64_t freed_index;        /* The entry that ended the last one that held the player. */
    uint32_t turns;              /* How many have held it. */
    uint64_t touched_index;      /* The last entry about it, or that freed it. */
    struct entry_model *entries; /* Of its ledger. */
    uint64_t entry_count, entry_capacity;
    uint8_t entry_hash[32];                 /* Of the newest, */
    int64_t entry_balances[SIM_CURRENCIES]; /* ... and what it comes to. */
    int64_t entry_reserved[SIM_CURRENCIES];
    struct moment now;
    struct moment *history; /* By index. */
    uint32_t history_count, history_capacity;
};

enum op_state { OP_NONE, OP_PENDING, OP_COMMITTED, OP_REFUSED, OP_ABORTED };

struct op_model {
    char key[MODEL_KEY_BYTES]; /* Entity, a space, op_id. */
    enum op_state state;
    uint32_t method;
    uint32_t attempt;        /* Highest evaluated. */
    bool refused_before;     /* OP_PENDING: an earlier attempt was refused, ... */
    uint32_t attempt_before; /* ... and is again if this one ends without an outcome. */
    uint64_t ms;             /* Of a UUIDv7; UINT64_MAX: typed. */
    bool is_key, again;      /* Of kind `key:`; it was over, and the id is used again. */
    uint32_t shard;          /* That had it last. */
    uint32_t before;         /* What the id stood for until that was over: place plus one; 0. */
    uint64_t index;          /* That decided it. */
    uint64_t refused_index;  /* Of the newest refusal... */
    uint64_t refused_ms;     /* ... and when, of the run. */
    uint64_t
        settled_index; /* A transfer: that logged its decision; `index` is that of its debit. */
    struct dot dot;
    uint64_t version;
    uint64_t fence; /* StartSession: granted. */
    struct hash128 payload;
    uint64_t body_hash; /* Of what it came to in the entry that asked for it; 0: not known. */
    uint32_t packets;   /* Sent to nodes; copies that come late count too. */
    int64_t net[SIM_CURRENCIES];     /* What it did to the balances. */
    uint32_t items[SIM_GOODS_ITEMS]; /* That it granted or spent: places in the book plus one. */
    uint32_t item_count;
    bool reversed, by_system;
    bool named;      /* It was asked for as the system, */
    char caller[49]; /* ... under this key; empty: not told. Of the entry that stands for it. */
    /* Reserve: what, until when; whether nothing has closed it. */
    struct goods set_aside;
    uint64_t expires_ms, ledger_seq;
    uint64_t entry_seq;    /* Of the entry in the ledger that it left last; 0: none. */
    uint64_t closed_index; /* Of the entry that closed it; 0: none. */
    uint32_t closed_by;    /* Place of the operation that closed it, plus one; 0: its time did. */
    uint32_t player;
    bool open, expired;
    bool sent; /* Post: to another player. */
    bool waited;
    bool too_old;   /* Refused as such once. */
    bool forgotten; /* By a program below FLOOR_APPLY_VERSION, while it was pending; it waits on. */
    uint64_t told_ms; /* When a caller was first told that it is done; 0: none was. */
};

#define LIST_CURSORS  256u
#define ORACLE_FIELDS 64u
#define ORACLE_MARKS  2048u /* Of acknowledgements: more than in the longest age of a read. */

/* As the shard's log says. */
struct policy_model {
    uint64_t generation, version;
    uint32_t items_max, mailbox_max;
    int64_t least[SIM_CURRENCIES], most[SIM_CURRENCIES];
};

struct shard_oracle {
    struct policy_model policy;
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
    uint64_t logged_ms;    /* The newest entry. */
    uint64_t stalled_ms;   /* The end of the last time without one, or behind at its owner. */
    uint64_t epoch_served; /* The greatest under which an owner ever served. */
    uint64_t floor_ms;
    uint64_t dated_from; /* The START since which outcomes of `key:` ids are dated; 0: none yet. */
    struct incarnation lowest_live;
    struct incarnation expired[MODEL_EXPIRED], expired_from[MODEL_EXPIRED];
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
    struct {
        uint64_t hash, place;
    } cursors[LIST_CURSORS]; /* Of pages told last (list.h). */
    uint32_t cursor_count;
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

/* ---- model_floor.c ---- */
/* After an entry that may have forgotten operations: what is PENDING by the model stands as such,
 * wherever the floor is, and the shard counts what it has. */
void floor_check(struct sim *sim, uint32_t shard);

/* ---- model_policy.c ---- */
void policy_begin(struct policy_model *policy);
/* Shards in which the policy that etcd has is not in force. */
uint32_t policy_pending(struct sim *sim);

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
/* How many replicas have the entry on their disks; 0: not known, since some dropped what they had.
 */
uint32_t oracle_held_by(const struct sim *sim, uint32_t shard, uint64_t index);
void oracle_acknowledge(struct sim *sim, uint32_t shard, uint64_t index);

/* Fences of a generation begin far above those of the one before. */
uint64_t model_fence_place(uint64_t fence);
/* What `need` of the shard names and memory has not is not there at all. */
void oracle_load_absent(struct shard_oracle *shard);

#endif
