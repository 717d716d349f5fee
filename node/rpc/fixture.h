/*
 * fixture: one shard's state machine under test: requests go in as a caller would send them, are
 * committed at once and applied; rows live in a stand-in for the database. Time is what the test
 * says. For tests only.
 */
#ifndef NODE_RPC_FIXTURE_H
#define NODE_RPC_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/internal/v1/operation.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/as_of.h"
#include "idl/method.h"
#include "node/core/apply/apply.h"

#define FIXTURE_START_MS 1750000000000ull
#define SERVER_A         "1-100"
#define SERVER_B         "1-200"
#define SERVER_C         "1-300"

/* A test that gets a fresh struct fixture as *state. */
#define FIXTURE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define ERROR(name)        HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name
#define OPERATION(name)    HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_##name

struct fixture_row {
    struct buf key;
    struct buf value;
};

struct fixture {
    uint32_t shard, shard_count;
    struct applier *applier;
    uint64_t now_ms;
    uint64_t epoch, counter;
    uint64_t generation;    /* Of the next START; 0: the first. */
    uint64_t ids;           /* Op ids made so far. */
    const char *caller;     /* Whom the router names with every request; NULL: no one. */
    struct entry **entries; /* Everything applied, for a second replica. */
    uint32_t entry_count, entry_capacity;
    struct fixture_row *rows; /* The database, sorted. */
    uint32_t row_count, row_capacity;
    struct buf meta_row;
    uint64_t need_rounds;
    uint64_t reads;
    bool reads_once;    /* The test looks at what is in memory. */
    struct slice asked; /* The last request, as it was sent. */
    struct arena arena; /* Of the last call's results. */
    struct need need;
    struct buf reply; /* The last answer. */
    /* What the last mutation or read came to. */
    struct outcome outcome;
    Holdfast__Internal__V1__Refusal *error; /* NULL: not refused. */
    bool recorded;                          /* The last mutation reached the log. */
};

/* A new shard: START, then a policy with the currencies gems (0 to 1000), gold and debt (from
 * -50). */
void fixture_init(struct fixture *f);
/* The same for any shard of a cluster with so many. */
void fixture_init_shard(struct fixture *f, uint32_t shard, uint32_t shard_count);
/* The same currencies under a new version, with other limits; 0: the default. */
void fixture_policy(struct fixture *f, uint64_t operation_window_ms, uint64_t operations_max);
void fixture_deinit(struct fixture *f);
/* cmocka group setup and teardown: *state is a struct fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* A fresh UUIDv7 of now, in static memory that lasts for 64 more. */
char *fixture_op_id(struct fixture *f);
char *fixture_op_id_at(struct fixture *f, uint64_t unix_ms);

/* Sends a mutation and commits it. Returns the response, or NULL when it was refused or is
 * pending; see f->outcome and f->error. */
void *fixture_mutate(struct fixture *f, uint32_t method, const ProtobufCMessage *request);
/* The same, but refused before the log or not, only prepares. False: refused. */
bool fixture_prepare(struct fixture *f, uint32_t method, const ProtobufCMessage *request,
                     struct buf *ret_body);
/* Commits one op body. */
void fixture_commit(struct fixture *f, struct slice body);
void fixture_apply_entry(struct fixture *f, struct entry *entry);
/* Appends a START of a new epoch. */
void fixture_next_epoch(struct fixture *f);
/* NULL: refused; see f->error. Now and then it asks a second time with as few rows in memory as can
 * be, and fails if the answer is another. */
void *fixture_read(struct fixture *f, uint32_t method, const ProtobufCMessage *request);
/* Lets time pass and commits whatever the owner finds due; returns how many entries. */
uint32_t fixture_pass(struct fixture *f, uint64_t ms);

void fixture_checkpoint(struct fixture *f);
void fixture_evict(struct fixture *f, size_t bytes_max);
/* A checkpoint, then a new process that has only the database. */
void fixture_restart(struct fixture *f);
/* The same without the checkpoint: what was not written is lost. */
void fixture_reopen(struct fixture *f);
/* The database after a checkpoint, as one hash. */
struct hash128 fixture_digest(struct fixture *f);

/* Shorthands. Those returning a token return arena text; NULL when refused or pending. */
char *fixture_start(struct fixture *f, const char *player, const char *server,
                    Holdfast__V1__StartMode mode, const char *op_id);
void *fixture_end(struct fixture *f, const char *player, const char *token);
Holdfast__V1__GrantResponse *fixture_grant(struct fixture *f, const char *player, const char *token,
                                           int64_t gold);
void fixture_expire(struct fixture *f, const char *server, const char *lowest_live);
int64_t fixture_balance(struct fixture *f, const char *player, const char *currency);
Holdfast__V1__GetSessionResponse *fixture_session(struct fixture *f, const char *player);
Holdfast__Internal__V1__OperationRecord *fixture_operation(struct fixture *f, const char *player,
                                                           const char *op_id);
Holdfast__Internal__V1__OperationRecord *fixture_seal(struct fixture *f, const char *player,
                                                      const char *op_id);

/* What a player's ledger adds up to, in one currency: what each kind of entry did to available
 * and reserved together (negative: it left), and items. */
struct fixture_sums {
    int64_t granted, spent, consumed, reversed;
    int64_t available, reserved;
    int64_t items;
    uint64_t entries;
};
/* Reads the whole ledger: its chain holds, its seqs have no gaps, and it adds up to the balance
 * and the items that the API tells. */
void fixture_audit(struct fixture *f, const char *player, const char *currency,
                   struct fixture_sums *ret_sums);
/* All of them, at most 500. */
Holdfast__V1__ListItemsResponse *fixture_items(struct fixture *f, const char *player);

#define FIXTURE_UNREADABLE_MAX 256u
struct fixture_unreadable {
    bool player; /* The player's own row is among them; its key is not. */
    uint32_t count;
    char *keys[FIXTURE_UNREADABLE_MAX]; /* Hex digits; freed by fixture_unreadable_free. */
};
/* What CheckPlayer tells, of all pages; how many rows. */
uint32_t fixture_check_player(struct fixture *f, const char *player,
                              struct fixture_unreadable *ret_rows);
void fixture_unreadable_free(struct fixture_unreadable *rows);
/* A RepairPlayer by an administrator, without rows; in the arena. */
Holdfast__V1__RepairPlayerRequest *fixture_repair_request(struct fixture *f, const char *player);
bool fixture_is_quarantined(struct fixture *f, const char *player);

/* The authority of a token, in the fixture's arena; "system:<scope>" and "unheld" as they are. */
char *fixture_authority(struct fixture *f, const char *text);

/* What a token of this shard names; fails the test when it is none. */
struct as_of fixture_as_of(const struct fixture *f, const char *text);

#endif
