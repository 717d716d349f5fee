/*
 * channel_row: the rows of the channel between shards, found and stored: where a channel stands,
 * records of the outbox, decisions of the inbox. DESIGN section 7, docs/transfers.md.
 */
#ifndef NODE_CORE_CHANNEL_CHANNEL_ROW_H
#define NODE_CORE_CHANNEL_CHANNEL_ROW_H

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/handler/handler.h"

/* Apply version from which replicas know repairs of records and of decisions (node/core/repair). */
#define RECORD_REPAIR_VERSION 5u
#define OUTBOX_DAMAGE         "a record of the outbox cannot be read"

/* Open records of a shard, and records of one channel above its watermark. */
#define OUTBOX_MAX        65536u
#define CHANNEL_BATCH_MAX 256u
/* The same with what finishes transactions, which always finds room. A row that tells of a greater
 * span cannot be right: every replica would count for hours. */
#define CHANNEL_SPAN_MAX (1ull << 20)
/*
 * Records settled by one entry. A record that a receipt pays for may make items, and each that
 * comes back may be mail: their places in the entry, which make UIDs and mail ids unique, are
 * apart.
 */
#define SETTLE_ITEMS_MAX        640u
#define SETTLE_PLACES_BELOW     1024u /* Mail that comes back: one place each. */
#define SETTLE_PLACES_OF_RECORD 64u   /* Items that one operation makes. */
_Static_assert(SETTLE_ITEMS_MAX <= SETTLE_PLACES_BELOW &&
                   SETTLE_PLACES_BELOW + SETTLE_ITEMS_MAX * SETTLE_PLACES_OF_RECORD <= 65536u,
               "every record that an entry settles has its own places for UIDs");
/* Of one decision, packed: a vote is the largest. */
#define SETTLE_RESULT_BYTES_MAX (256u * 1024u)
_Static_assert(2 * CHANNEL_BATCH_MAX <= SETTLE_ITEMS_MAX, "one delivery's decisions fit one entry");
/* Records of an inbox dropped by one entry. */
#define CHANNEL_DROP_MAX 4096u

/* A record: of the outbox for that shard, or of the inbox from it. */
struct channel_ref {
    uint32_t shard;
    uint64_t seq;
};

/* All of them: MISSING, and the key is noted in `need` (unless that is NULL); ABSENT; PRESENT,
 * and *ret is in the arena, or NULL: the row cannot be read. */
enum state_found channel_out_find(struct state *state, struct arena *arena, uint32_t destination,
                                  struct need *need, Holdfast__Internal__V1__ChannelOutRow **ret);
enum state_found channel_in_find(struct state *state, struct arena *arena, uint32_t source,
                                 struct need *need, Holdfast__Internal__V1__ChannelInRow **ret);
/* One that cannot be read stays open, and nothing is done with it. */
enum state_found outbox_find(struct state *state, struct arena *arena, struct channel_ref ref,
                             struct need *need, Holdfast__Internal__V1__OutboxRow **ret);
/* Whether it is there, without reading it. */
enum state_found outbox_look(struct state *state, struct channel_ref ref, struct need *need);
enum state_found inbox_find(struct state *state, struct arena *arena, struct channel_ref ref,
                            struct need *need, Holdfast__Internal__V1__InboxRow **ret);

/* A row's value, in the arena. NULL: it cannot be read. */
Holdfast__Internal__V1__ChannelOutRow *channel_out_decode(struct arena *arena, struct slice value);
Holdfast__Internal__V1__ChannelInRow *channel_in_decode(struct arena *arena, struct slice value);
Holdfast__Internal__V1__OutboxRow *outbox_decode(struct arena *arena, struct slice value,
                                                 uint64_t seq);
Holdfast__Internal__V1__InboxRow *inbox_decode(struct arena *arena, struct slice value);
#define INBOX_DAMAGE "a decision in the inbox cannot be read"

/* For operators: which channel it is whose row cannot be read. ERR_CONFLICT. */
err channel_damaged(struct apply_context *context, bool outgoing, uint32_t shard);

/* In the open transaction. */
void channel_out_store(struct apply_context *context, uint32_t destination,
                       const Holdfast__Internal__V1__ChannelOutRow *row);
void channel_in_store(struct apply_context *context, uint32_t source,
                      const Holdfast__Internal__V1__ChannelInRow *row);
/* A new record; ... */
void outbox_add(struct apply_context *context, uint32_t destination,
                const Holdfast__Internal__V1__OutboxRow *row);
/* ... one that stands, and has changed. */
void outbox_store(struct apply_context *context, uint32_t destination,
                  const Holdfast__Internal__V1__OutboxRow *row);
/* Nothing was decided of it before; ... */
void inbox_add(struct apply_context *context, uint32_t source,
               const Holdfast__Internal__V1__InboxRow *row);

/* ... one that stands, and is made again. */
void inbox_store(struct apply_context *context, uint32_t source,
                 const Holdfast__Internal__V1__InboxRow *row);

/* What a PENDING operation's row says: which record of the outbox it waits for. */
struct slice channel_ref_encode(struct arena *arena, struct channel_ref ref);
/* False: malformed, and nothing is set. */
NODISCARD bool channel_ref_decode(struct slice body, struct channel_ref *ret_ref);

#endif
