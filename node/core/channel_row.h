/*
 * channel_row: the rows of the channel between shards, found and stored: where a channel stands,
 * records of the outbox, decisions of the inbox. DESIGN section 7, docs/transfers.md.
 */
#ifndef NODE_CORE_CHANNEL_ROW_H
#define NODE_CORE_CHANNEL_ROW_H

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/handler.h"

/* Open records of a shard, and records of one channel above its watermark. */
#define OUTBOX_MAX        65536u
#define CHANNEL_BATCH_MAX 256u
/* Records of an inbox dropped by one entry. */
#define CHANNEL_DROP_MAX 4096u

/* All of them: MISSING, and the key is noted in `need` (unless that is NULL); ABSENT; PRESENT,
 * and *ret is in the arena. */
enum state_found channel_out_find(struct state *state, struct arena *arena, uint32_t destination,
                                  struct need *need, Holdfast__Internal__V1__ChannelOutRow **ret);
enum state_found channel_in_find(struct state *state, struct arena *arena, uint32_t source,
                                 struct need *need, Holdfast__Internal__V1__ChannelInRow **ret);
/* PRESENT and NULL: it cannot be read. It stays open then, and nothing is done with it. */
enum state_found outbox_find(struct state *state, struct arena *arena, uint32_t destination,
                             uint64_t seq, struct need *need,
                             Holdfast__Internal__V1__OutboxRow **ret);
/* Whether it is there, without reading it. */
enum state_found outbox_look(struct state *state, uint32_t destination, uint64_t seq,
                             struct need *need);
enum state_found inbox_find(struct state *state, struct arena *arena, uint32_t source, uint64_t seq,
                            struct need *need, Holdfast__Internal__V1__InboxRow **ret);

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
/* Nothing was decided of it before. */
void inbox_add(struct apply_context *context, uint32_t source,
               const Holdfast__Internal__V1__InboxRow *row);

/* What a PENDING operation's row says: which record of the outbox it waits for. */
struct slice channel_ref_encode(struct arena *arena, uint32_t destination, uint64_t seq);
void channel_ref_decode(struct slice body, uint32_t *ret_destination, uint64_t *ret_seq);

#endif
