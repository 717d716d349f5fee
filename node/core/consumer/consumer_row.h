/*
 * consumer_row: the rows of consumers of events (TABLE_CONSUMER): what each reads, and how far it
 * has come in every shard. One row a consumer, in the shard of the entity "consumer:<name>".
 */
#ifndef NODE_CORE_CONSUMER_CONSUMER_ROW_H
#define NODE_CORE_CONSUMER_CONSUMER_ROW_H

#include "holdfast/v1/events.pb-c.h"
#include "idl/limit.h"
#include "idl/method.h"
#include "node/core/rows/row_key.h"
#include "runtime/base/arena.h"
#include "runtime/base/hash.h"
#include "runtime/cluster/event_cursor.h"

#define CONSUMER_ENTITY      "consumer:"
#define CONSUMER_ENTITY_SIZE (sizeof CONSUMER_ENTITY - 1 + LIMIT_CONSUMER_NAME_BYTES + 1)
#define CONSUMER_KINDS_MAX   16u
#define CONSUMER_PREFIX_MAX  128u
#define CONSUMER_CURSOR_MAX  METHOD_BYTES_GOODS
#define CONSUMER_DAMAGE      "the row of a consumer of events cannot be read"

/* What wrote it last. */
enum consumer_change { CONSUMER_CREATED = 1, CONSUMER_COMMITTED };

struct consumer_row {
    uint64_t version;
    uint8_t kinds[CONSUMER_KINDS_MAX];
    uint32_t kind_count;
    struct slice entity_prefix, entity;
    uint64_t created_at_ms, committed_at_ms;
    enum consumer_change change;
    struct slice by; /* The API key that did it; empty: none was asked for. */
    struct slice op_id;
    struct hash128 payload; /* Of that operation. */
    /* The operation that made it, once it was committed. Empty: that stands above, or is not known,
     * since it was committed under an earlier apply version. */
    struct slice made_op_id;
    struct hash128 made_payload;
    struct slice cursor; /* As it was printed; empty: nothing was committed. */
};

#define CONSUMER_NAME_RULE "1 to 64 letters, digits, '.', '_' and '-'"

/* 1 to LIMIT_CONSUMER_NAME_BYTES letters, digits, '.', '_' and '-'. */
bool consumer_name_is_good(struct slice name);
void consumer_row_key(struct row_key *key, struct slice name);
/* *ret_name points into the key. ERR_CORRUPT. */
NODISCARD err consumer_key_parse(struct slice key, struct slice *ret_name);

void consumer_row_encode(const struct consumer_row *row, struct buf *out);
/* Slices point into `value`; *ret_cursor is in the arena, of no shard count if nothing was
 * committed. ERR_CORRUPT. */
NODISCARD err consumer_row_decode(struct slice value, struct arena *arena,
                                  struct consumer_row *ret_row, struct event_cursor *ret_cursor);
/* Whether key and value can be read. */
bool consumer_row_is_sound(struct arena *arena, struct slice key, struct slice value);

#endif
