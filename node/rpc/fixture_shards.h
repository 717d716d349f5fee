/*
 * fixture_shards: a cluster of four shards under test. What travels between them is carried by
 * hand, so that a test says when; what a test does not carry is lost. For tests only.
 */
#ifndef NODE_RPC_FIXTURE_SHARDS_H
#define NODE_RPC_FIXTURE_SHARDS_H

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/rpc/fixture.h"

#define FIXTURE_SHARDS 4u
#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name

typedef Holdfast__Internal__V1__DeliverRequest deliver_request;
typedef Holdfast__Internal__V1__DeliverResponse deliver_response;

struct fixture_shards {
    struct fixture shards[FIXTURE_SHARDS];
    struct arena arena; /* Of everything that is carried. */
};

void fixture_shards_init(struct fixture_shards *s);
void fixture_shards_deinit(struct fixture_shards *s);
/* A player's id that lives on this shard: the stem and a number. */
void fixture_name_on(uint32_t shard, const char *stem, char ret_name[16]);

/* What the owner of `from` would send to `to` now: all that is open, and its watermark. */
deliver_request *fixture_batch(struct fixture_shards *s, uint32_t from, uint32_t to);
deliver_response *fixture_deliver(struct fixture_shards *s, uint32_t to,
                                  const deliver_request *request);
/* The owner of `from` logs what `to` has told. */
void fixture_settle(struct fixture_shards *s, uint32_t from, uint32_t to,
                    const deliver_response *response);
/* All three, of what is open now. */
void fixture_carry(struct fixture_shards *s, uint32_t from, uint32_t to);
/* Until nothing is on its way. */
void fixture_carry_all(struct fixture_shards *s);
uint64_t fixture_open_records(const struct fixture_shards *s);
/* Holds a player of this shard back for review, and lets it go. */
void fixture_contain(struct fixture *f, const char *player);
void fixture_release(struct fixture *f, const char *player);
/* Every shard goes on from its database alone. */
void fixture_restart_all(struct fixture_shards *s);

#endif
