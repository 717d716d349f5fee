/* text_rule: which texts are allowed as names, ids and reasons. */
#ifndef NODE_CORE_CODEC_TEXT_RULE_H
#define NODE_CORE_CODEC_TEXT_RULE_H

#include <stdbool.h>

#include "node/core/codec/op.h"
#include "runtime/base/arena.h"

/* Valid UTF-8 (RFC 3629), without control characters. */
bool text_is_clean(struct slice text);
/* 1 to `size_max` of [a-z0-9_]. */
bool text_is_name(struct slice text, size_t size_max);
/* For an error's `value`: at most 64 bytes of UTF-8, cut between two characters. What is malformed
 * or a control character is told byte by byte, as `\x0a`. */
const char *text_shorten(struct arena *arena, struct slice text);
/* The same in printable ASCII; the rest becomes '?'. For logs of earlier versions alone. */
const char *text_shorten_ascii(struct arena *arena, struct slice text);

/* "player:<id>" with a valid id. ERR_INVALID: `ret_why` is static text. */
NODISCARD err entity_parse(struct slice entity, const char **ret_why);
/* ERR_INVALID: not 1 to 100 bytes of UTF-8 without control characters. */
NODISCARD err player_id_check(struct slice id);
/* "player:<id>", in the arena. */
struct slice entity_of_player(struct arena *arena, const char *id);

#endif
