/*
 * event_row: the rows of events (TABLE_EVENT): key epoch, counter (u64 big-endian), place (u32
 * big-endian), so they sort as they were committed. Written once, never changed; removed from the
 * oldest on (TrimEvents). What is outside of this file knows places and events, not rows.
 *
 * Each grant leaves one, and most are trimmed unread: an event of a ledger's entry says which entry
 * it is, and no more. Entries are neither changed nor removed while the shard lives.
 */
#ifndef NODE_CORE_HANDLER_EVENT_ROW_H
#define NODE_CORE_HANDLER_EVENT_ROW_H

#include "holdfast/v1/events.pb-c.h"
#include "node/core/player/event_log.h"
#include "node/core/rows/row_key.h"
#include "runtime/base/arena.h"

#define EVENT_PLACE_BYTES 20u
#define EVENT_ENTITY_MAX  160u
#define EVENT_DAMAGE      "an event cannot be read"

struct event_row {
    uint64_t at_ms;
    Holdfast__V1__EventKind kind;
    struct slice entity;
    uint64_t ledger_seq; /* Of the kind LEDGER; it has nothing of what follows. */
    uint64_t owner;      /* Of the entry's dot. */
    struct slice op_id;
    struct slice body; /* The message of its kind, packed. */
};

void event_place_print(const struct event_place *place, uint8_t ret_bytes[EVENT_PLACE_BYTES]);
/* ERR_INVALID: of another size. */
NODISCARD err event_place_parse(struct slice bytes, struct event_place *ret_place);

void event_row_key(struct row_key *key, const struct event_place *place);
/* ERR_CORRUPT: it is none. */
NODISCARD err event_key_parse(struct slice key, struct event_place *ret_place);
void event_row_encode(const struct event_row *row, struct buf *out);
/* What buf_put_short wrote; a longer one makes the reader bad. */
struct slice row_read_short(struct reader *reader, size_t size_max);
/* Slices point into `value`. Of a kind that this program does not know the body is not looked at.
 * ERR_CORRUPT. */
NODISCARD err event_row_decode(struct slice value, struct event_row *ret_row);
/* In place of one that cannot be read: readers are told of a gap. */
void event_lost_encode(struct buf *out);
bool event_row_is_lost(const struct event_row *row);
/* As the API tells it, in the arena; of a ledger's entry the seq alone, which ledger_event.h
 * completes. NULL: its body cannot be read. */
Holdfast__V1__Event *event_tell(struct arena *arena, uint32_t shard,
                                const struct event_place *place, const struct event_row *row);
/* Whether key, value and body can be read. */
bool event_row_is_sound(struct arena *arena, struct slice key, struct slice value);

#endif
