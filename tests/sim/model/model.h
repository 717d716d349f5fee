/* model: what the files of the model share; see oracle.h. It says what an entry of the log does,
 * by rules that the rows of the workload bring (workload.h); it knows no row. */
#ifndef TESTS_SIM_MODEL_MODEL_H
#define TESTS_SIM_MODEL_MODEL_H

#include "idl/method.h"
#include "tests/sim/oracle/oracle.h"

struct model_rule;
struct told;

/* One entry and what became of it. */
struct change {
    struct sim *sim;
    struct shard_oracle *shard;
    uint32_t number;
    const struct entry *entry;
    const struct outcome *outcome;
    struct op op;
    const struct model_rule *rule; /* Of its method. */
    struct player_model *player;   /* NULL: none is concerned. */
    const ProtobufCMessage *request;
    enum op_state was; /* The operation, before this entry. */
    struct hash128 payload;
};

/* ---- model_floor.c ---- */
/* The entry refuses its operation as older than what is kept. */
bool floor_refuses(const struct change *c);

/* What an operation sends to another player, by mail. */
struct goods_wish {
    uint32_t from, to;
    struct goods goods;
    uint64_t expires_ms;
    bool reserved; /* They have left a reservation, not the balance. */
};

/* What Reverse does to an operation of a method. */
enum model_reversal {
    NOT_REVERSED,
    REVERSED_BY_TAKING, /* It gave. */
    REVERSED_BY_GIVING  /* It took. */
};

/* What an operation of a method asks for in its request's fields, for refusals to be held against.
 */
enum model_wants {
    WANTS_NOTHING,
    WANTS_FUNDS,          /* `currencies` are taken, */
    WANTS_FUNDS_AND_MAIL, /* ... and it goes to a mailbox. */
    WANTS_MAIL,
    WANTS_ROOM /* `currencies` and `items` come to the player. */
};

/* What one method does, by the log and to its callers. NULL and 0: nothing of that kind. */
struct model_rule {
    /* It may stand in the log under the system's authority: it only adds, or gives back. */
    bool system_admitted;
    /* Its op_id names another operation. */
    bool about_another;
    enum model_reversal reversal;
    enum model_wants wants;
    /* Also while the player is held back for review. */
    bool passes_review;
    /* It edits sections, and some edit cannot be done. */
    bool (*edit_refused)(const struct change *c);
    /* Carried out: the player is as it was before, but for the version, which has risen. */
    void (*effect)(struct change *c, struct op_model *op, const ProtobufCMessage *response);
    /* It waits in its own shard until something is due. Else an operation that is pending waits for
     * a receipt, or for the shards of what it `sends` or `plans`. */
    void (*claims)(struct change *c, struct op_model *op);
    /* It sends goods: which, and to whom; the player is as in `effect`. */
    void (*sends)(const struct change *c, struct goods_wish *ret_wish);
    /* It is a transaction: what each player gives and gets. There is no `effect`. */
    void (*plans)(const struct change *c, struct txn_model *txn);
    /* Refused for good: whether the log gives the reason. */
    void (*refused)(const struct change *c, const struct op_model *op,
                    const Holdfast__Internal__V1__Refusal *detail);
    /* Refused, for good or not: as above. */
    void (*refused_now)(const struct change *c, const struct op_model *op, int code);
    /* An entry without an op_id. */
    void (*logged)(struct change *c);
    /* A good answer to a caller; NULL: told_write() (answer.h). */
    void (*told)(const struct told *t);
};

/* ---- model_memory.c ---- */
/* Never NULL. */
const struct model_rule *model_rule(const struct oracle *oracle, uint32_t method);
void model_fail(const struct change *c, const char *what, uint64_t number);
void model_fail_op(const struct change *c, const struct op_model *op, const char *what);
/* The change's player. */
uint32_t model_player_number(const struct change *c);
/* "p0" to "p9". */
uint32_t model_player_of_id(const char *player_id);
uint32_t model_currency(const char *name);
/* The player as it is now, from this entry on. */
void model_remember(struct player_model *player, uint64_t index);
/* Currency, for good: it is nowhere else less. `sign` -1: it is taken. */
/* All of them, of different currencies; those told are their balances, after. */
void model_change_balances(struct change *c, size_t count,
                           Holdfast__V1__CurrencyAmount *const *amounts, int sign);
void model_check_balances(const struct change *c, size_t count,
                          Holdfast__V1__CurrencyAmount *const *asked, size_t told_count,
                          Holdfast__V1__CurrencyAmount *const *told);
void model_change_balance(struct change *c, const Holdfast__V1__CurrencyAmount *amount, int sign);
void model_check_balance(const struct change *c, const Holdfast__V1__CurrencyAmount *told);
void model_edit(struct change *c, size_t count, Holdfast__V1__SectionEdit *const *edits,
                size_t told_count, Holdfast__V1__SectionVersion *const *told);
/* Some of them cannot be done. */
bool model_edit_refused(const struct change *c, size_t count,
                        Holdfast__V1__SectionEdit *const *edits);

/* ---- model_policy.c ---- */
void policy_logged(struct change *c);
/* What the shard keeps is what its log says. */
void policy_check_stored(const struct change *c);
/* The lowest balance that something may be taken down to. */
int64_t policy_least(const struct change *c, uint32_t currency);
bool policy_has_room(const struct change *c, const struct moment *now, const struct goods *more);
/* Refused with INSUFFICIENT_FUNDS, with CAPACITY_FULL. */
void policy_check_funds(const struct change *c, const struct op_model *op);
void policy_check_full(const struct change *c, const struct op_model *op);

/* ---- model_valid.c ---- */
/* The request may be logged, or read by, as far as its form goes. */
bool valid_request(uint32_t method, const ProtobufCMessage *request);
bool valid_message(const ProtobufCMessage *message);
/* The highest `page_size` of a list; 0: it is none. */
uint32_t valid_page_most(uint32_t method);

/* ---- model_entry.c, model_rows.c ---- */
/* The player's ledger, up to `head`, since it was looked at last. */
void entries_check(const struct change *c, uint32_t player, uint64_t head,
                   const uint8_t head_hash[32]);
/* The item is as it was made; what is not known yet of it is learned. */
bool item_is_like(struct item_model *item, struct slice kind, struct slice attributes,
                  uint64_t minted_ms);
/* What the outcome of the entry's own operation tells, after that. */
void answer_check(const struct change *c);
/* `balances` and `reserved` of a message: of these currencies, as they are. */
void answer_check_balances(const struct change *c, const ProtobufCMessage *told,
                           const struct moment *now, uint32_t changed);
/* After each entry: what is stored is what the model says. */
void rows_check(const struct change *c);

/* ---- model_op.c ---- */
/* Done in this entry, under the authority that the operation names. */
void model_carried_out(struct change *c, struct op_model *op);
/* What was pending ends without an outcome: as if this attempt had never been. */
void model_attempt_ends(const struct change *c, struct op_model *op);
/* Asked for: nothing is done yet. */
void model_asked(struct change *c, struct op_model *op);
void model_version_rises(struct change *c, const struct op_model *op);
/* No one else may change what a transaction is promised. */
void model_check_free(const struct change *c, const struct op_model *op);
/* What the request wants the version to be, before it rises. */
void model_check_version(const struct change *c, const struct op_model *op);
/* Whether the log gives the reason that a refusal gives. */
void model_check_reason(const struct change *c, const struct op_model *op, int code);

/* ---- model_key.c ---- */
/* The `key:` was over, and stands for another operation from this entry on. */
struct op_model *model_key_again(struct change *c, struct op_model *op);
/* After an entry that forgets: what is over is gone, and all else is there. */
void model_keys_pruned(struct change *c);

/* ---- model_caller.c ---- */
/* The entry stands for the operation from here on: whose key it tells. */
void caller_take(const struct change *c, struct op_model *op);

/* ---- model_session.c ---- */
bool model_is_held(const struct change *c, const struct player_model *player);
/* The change's player has a new session, by the outcome in `body`. */
void model_session_begins(struct change *c, struct slice body, struct op_model *op);
void model_session_ends(struct player_model *player, uint64_t index);
/* A steal that was pending has been decided by this entry. */
void model_session_decided(struct change *c);

/* ---- model_ledger.c ---- */
/* The change's player holds the item. */
bool model_item_is_held(const struct change *c, uint32_t item);
/* An item is gone, and comes back: spent, or undone. */
void model_item_goes(const struct change *c, const struct op_model *op, uint32_t item);
void model_item_comes_back(const struct change *c, const struct op_model *op, uint32_t item);
/* The operation of the change's player that a request names. */
struct op_model *model_target(const struct change *c, const char *op_id);
/* Once, in time; what is not posted is in the balance again. */
void model_close_reservation(const struct change *c, const struct op_model *op,
                             struct op_model *target, const struct goods *posted);
void model_reservation_refused(const struct change *c, const struct op_model *op,
                               const struct op_model *target,
                               const Holdfast__Internal__V1__Refusal *detail);
/* A request that says `reserve_seq` names another entry than the reservation's. */
bool model_names_another(const struct change *c, const struct op_model *target);

/* ---- model_goods.c ---- */
/* `sends`, carried out on one shard; `response` names the mail. */
void goods_sent(struct change *c, struct op_model *op, const ProtobufCMessage *response);
void goods_wish_currencies(const struct change *c, size_t count,
                           Holdfast__V1__CurrencyAmount *const *list, struct goods_wish *wish);
void goods_wish_items(const struct change *c, size_t count, char *const *uids,
                      struct goods_wish *wish);
/* The item comes to be, and takes its first step. */
uint32_t goods_item_add(const struct change *c, const char *uid, enum item_place place,
                        uint32_t player);
/* ... as its request says. */
void goods_item_made(const struct change *c, uint32_t item, const Holdfast__V1__ItemSpec *spec);
/* Goods come to a player. */
void goods_give(const struct change *c, uint32_t player, const struct goods *goods,
                struct slice op_id);
struct mail_model *goods_mail_find(const struct goods_book *book, const char *id);
void goods_mail_arrives(const struct change *c, const char *id, const struct mail_model *mail);
bool goods_mailbox_is_full(const struct change *c, uint32_t player);
/* They are on their way to another shard. */
void goods_transfer_open(const struct change *c, const struct transfer_model *transfer);

/* ---- model_txn.c ---- */
/* Of a plan: the player's part, which is added if need be; that of a player with an authority of
 * its own; what goes from one to the other. */
struct txn_part_model *plan_part(struct txn_model *txn, const char *player_id);
/* Refused, and no other shard was asked: whether some player here cannot take part. */
bool plan_is_hindered(const struct change *c);
struct txn_part_model *plan_other(struct txn_model *txn, const char *player_id, const char *given);
void plan_move(struct txn_part_model *from, struct txn_part_model *to, size_t count,
               Holdfast__V1__CurrencyAmount *const *list);
/* `to` NULL: they leave for good. */
void plan_items(const struct change *c, struct txn_part_model *from, struct txn_part_model *to,
                size_t count, char *const *uids);
void plan_add(int64_t amounts[SIM_CURRENCIES], const Holdfast__V1__CurrencyAmount *amount);

#endif
