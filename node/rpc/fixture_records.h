/*
 * fixture_records: two players on two shards, records of every kind between them, and the means to
 * spoil a record or a decision on it, to repair it, and to count what there is. For tests only.
 */
#ifndef NODE_RPC_FIXTURE_RECORDS_H
#define NODE_RPC_FIXTURE_RECORDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/repair/record_repair.h"
#include "node/core/repair/row_repair.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_shards.h"

typedef Holdfast__V1__ChannelRecord record_message;
typedef Holdfast__V1__GetChannelResponse channel_response;
typedef Holdfast__V1__RepairRowRequest repair_request;
typedef Holdfast__V1__RepairRowResponse repair_response;
typedef Holdfast__V1__CurrencyAmount amount_message;

#define OUTCOME(name) HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_##name
#define OP            "claim:a"
#define AGAIN         "claim:b"
#define PAID          50

/* Ann on shard 0 has 100 gold and an orb; bob on shard 1 has 100 gems. The receipt is of shard 1.
 */
struct record_world {
    struct fixture_shards s;
    char ann[16], bob[16], receipt[32], orb[ITEM_UID_TEXT_SIZE];
    deliver_response *decided; /* What shard 1 answered last. */
};

struct record_kind {
    const char *name;
    void (*open)(struct record_world *w, const char *op_id);
    int kind;
};

#define RECORD_KINDS 7u
extern const struct record_kind record_kinds[RECORD_KINDS];

struct record_wealth {
    int64_t gold, gems;
    size_t orbs, mails;
};

struct fixture *records_on(struct record_world *w, uint32_t shard);
amount_message **records_amount_of(struct record_world *w, const char *currency, int64_t amount);
Holdfast__V1__GrantResponse *records_grant(struct record_world *w, uint32_t shard,
                                           const char *op_id, amount_message **amounts);
int records_setup(void **state);
int records_teardown(void **state);
void records_pay(struct record_world *w, const char *op_id);
void records_give(struct record_world *w, const char *op_id);
void records_mail_send(struct record_world *w, const char *op_id, bool goods);
void records_mail(struct record_world *w, const char *op_id);
void records_text(struct record_world *w, const char *op_id);
void records_post(struct record_world *w, const char *op_id);
void records_swap(struct record_world *w, const char *op_id);
void records_buy(struct record_world *w, const char *op_id);
const char *records_op_of(struct record_world *w, const struct record_kind *kind);
void records_count_mails(struct record_world *w, uint32_t shard, char *player,
                         struct record_wealth *ret);
struct record_wealth records_wealth_of(struct record_world *w, uint32_t shard);
void records_assert_all_is_there(struct record_world *w, int64_t paid);
void records_assert_as_before(struct record_world *w);
int records_state_of(struct record_world *w, const char *op_id);
void records_row_key(bool sent, uint64_t seq, struct row_key *key);
void records_spoil(struct record_world *w, bool sent, uint64_t seq);
channel_response *records_channel(struct record_world *w, uint32_t shard, uint64_t seq,
                                  const char *held);
record_message *records_stated(struct record_world *w, const char *op_id);
/* The decision of ann's transaction OP, for that player of shard 1. `ref` NULL: what holds bob. */
record_message *records_finish_stated(struct record_world *w, const char *player,
                                      Holdfast__V1__TransactionRef *ref);
/* Ann's operation has no outcome any more. */
void records_prune(struct record_world *w, const char *op_id);
repair_response *records_repair(struct record_world *w, bool sent, uint64_t seq,
                                repair_request *request);
repair_response *records_repair_sent(struct record_world *w, uint64_t seq, record_message *record);
repair_response *records_repair_decision(struct record_world *w, uint64_t seq, int decision);
void records_refused(struct record_world *w, uint32_t shard, const char *field);
deliver_response *records_deliver(struct record_world *w);
/* What the next try of a purchase comes to; others have their outcome. */
void records_try_again(struct record_world *w, const struct record_kind *kind);
/* A fresh world for each. */
void records_of_each_kind(void **state,
                          void (*test)(struct record_world *w, const struct record_kind *kind));

#endif
