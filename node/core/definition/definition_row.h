/*
 * definition_row: the rows of definitions in a shard: one of each definition, by its number, and
 * the head, which says how far the shard has followed and which currencies there are.
 */
#ifndef NODE_CORE_DEFINITION_DEFINITION_ROW_H
#define NODE_CORE_DEFINITION_DEFINITION_ROW_H

#include "holdfast/internal/v1/definition.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/buf.h"

#define DEFINITION_HEAD_NUMBER 0u
#define DEFINITION_NAME_MAX    64u
#define DEFINITIONS_BYTES_MAX  (256u * 1024u) /* Of all rows of a shard. */
#define DEFINITIONS_MAX        4096u

typedef Holdfast__Internal__V1__Defined defined;
typedef Holdfast__Internal__V1__DefinedHead defined_head;

/* What a key of TABLE_DEFINITION names. */
uint64_t definition_number_of(struct slice key);
/* Whether the row can be read. */
bool definition_row_is_sound(struct arena *arena, struct slice key, struct slice value);
/* NULL: it cannot be read. In the arena, as the value has to be. */
defined *definition_row_decode(struct arena *arena, struct slice key, struct slice value);
/* The same for the head. */
defined_head *definition_head_decode(struct arena *arena, struct slice value);

#endif
