/*
 * bank: what two players of one shard own, by the promises of ledger.proto, inventory.proto and
 * mailbox.proto said again: balances and reservations, items, mail, and every ledger entry. A
 * request is judged before it is sent: it has to be refused for one of the reasons found here, or
 * to do what is done here.
 */
#ifndef TESTS_SIM_CORES_NODE_BANK_H
#define TESTS_SIM_CORES_NODE_BANK_H

#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/error_code.h"
#include "node/rpc/fixture.h"
#include "tests/sim/cores/rsim.h"

#define BANK_PLAYERS    2u
#define BANK_CURRENCIES 18u /* Declared: two more than a request may name. */
#define BANK_NAMES      20u /* With two that are not. */
#define BANK_ITEMS      4000u
#define BANK_HELD       512u
#define BANK_ENTRIES    256u
#define BANK_MAILS      128u
#define BANK_OPS        160u
#define BANK_CAUSES     512u
#define BANK_KIND(name) HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name

/* Sorted; the last two are never declared. */
extern const char *const bank_names[BANK_NAMES];
extern const char *const bank_players[BANK_PLAYERS];

struct bank_change {
    uint32_t currency;
    int64_t amount, after, reserved, reserved_after;
};

struct bank_item {
    char uid[33];
    const char *kind, *attributes;
    uint64_t minted_ms;
};

/* An item where it stood, after its step of that number. */
struct bank_held {
    uint32_t item, step;
};

struct bank_entry {
    int kind;
    const char *op_id, *authority, *reason;
    uint64_t at_ms;
    uint32_t change_count, item_count;
    struct bank_change *changes;
    struct bank_held *items;
    bool taken;
    const char *counterpart, *mail_op_id; /* NULL: none. */
    uint64_t refers_to, undone_by;        /* By which entry it was reversed, or closed. */
    uint64_t expires_ms;                  /* Of a reservation that is open; 0: none. */
};

struct bank_mail {
    char id[33];
    uint32_t from, to;
    bool gone;
    uint32_t change_count, item_count;
    struct bank_change *changes; /* Only currency and amount. */
    struct bank_held *items;
    const char *text, *reason, *op_id;
    uint64_t sent_ms, expires_ms;
};

struct bank_player {
    uint64_t version;
    bool known[BANK_NAMES]; /* It has had a balance in it. */
    int64_t amounts[BANK_NAMES], reserved[BANK_NAMES];
    struct bank_held held[BANK_HELD]; /* Sorted by UID. */
    uint32_t held_count, entry_count, open_count;
    struct bank_entry entries[BANK_ENTRIES]; /* Entry `seq` stands at seq - 1. */
};

struct bank_state {
    struct bank_player players[BANK_PLAYERS];
    struct bank_mail mails[BANK_MAILS];
    uint32_t mail_count;
};

struct bank_cause {
    Holdfast__V1__ErrorCode code;
    const char *limit, *value; /* NULL: any. */
};

struct bank_op {
    uint32_t method, player, attempt;
    const char *id;
    ProtobufCMessage *request;
    bool done, refused, old;
    struct bank_cause cause;
    struct slice answer; /* Without its WriteInfo. */
    uint64_t seq, version;
};

struct bank {
    struct rsim *sim;
    struct fixture f;
    struct bank_state state, draft;
    int64_t min[BANK_CURRENCIES], max[BANK_CURRENCIES];
    uint32_t items_max, mailbox_max;
    uint64_t policy_version;
    struct bank_item items[BANK_ITEMS];
    uint32_t item_count, item_count_draft;
    struct bank_op ops[BANK_OPS];
    uint32_t op_count, named;
    struct bank_cause causes[BANK_CAUSES];
    uint32_t cause_count;
    bool fault; /* The request is wrong by itself: it never reaches the log. */
};

/* ---- bank.c: the rules ---- */
/* What the request would do, in b->draft, and why it has to be refused, in b->causes. */
void bank_judge(struct bank *b, struct bank_op *op);
/* What the answer has to say beside the write. */
void bank_check_answer(struct bank *b, const struct bank_op *op, const void *response);
void bank_cause(struct bank *b, Holdfast__V1__ErrorCode code, const char *limit, const char *value);
const char *bank_number(struct bank *b, int64_t number);
/* Reservations that end by then come back, in the order in which they end; how many. The clock of
 * the shard still shows from when on it looks. */
uint32_t bank_expire(struct bank *b, uint64_t end_ms);
uint32_t bank_currency(const char *name);
/* The value of a field of any message; fails when there is no such field. */
void *bank_field(struct bank *b, const void *message, const char *name);
bool bank_has_field(const void *message, const char *name);

/* ---- bank_told.c: what reads tell ---- */
void bank_read(struct bank *b);

#endif
