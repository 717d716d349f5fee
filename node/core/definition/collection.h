/*
 * collection: which collections a shard knows, by name (docs/favorites.md): one row, made again of
 * the definitions' rows whenever a DEFINE changes one of them. Where there is no such row, since
 * definitions were logged under an earlier apply version, they are looked through.
 */
#ifndef NODE_CORE_DEFINITION_COLLECTION_H
#define NODE_CORE_DEFINITION_COLLECTION_H

#include "node/core/handler/handler.h"

/* Since which apply version there are edges, and that row. */
#define FAVORITE_APPLY_VERSION   6u
#define COLLECTION_DEFAULT       "favorites"
#define COLLECTION_EDGES_DEFAULT 10000u
#define COLLECTION_DAMAGE        "the row of all collections cannot be read"

struct collection {
    uint64_t number; /* Data is kept under it: a name made again has another one. */
    uint32_t edges_max;
    bool last_write; /* What is applied later wins, whatever its `ver`. */
};

/* The name that a request means: the default where it is empty. */
struct slice collection_name(const char *given);
/* Before the log: INVALID_ARGUMENT, `field`, if the name could be none; NOT_FOUND if there is none
 * for sure. Whether there is one is said again at apply. */
NODISCARD err collection_check(struct check_context *context, const char *given);
/* ERR_NEED. Refuses with NOT_FOUND, ERR_CONFLICT, and says which name is near. */
NODISCARD err collection_read(struct read_context *context, const char *given,
                              struct collection *ret_collection);
NODISCARD err collection_get(struct apply_context *context, const char *given,
                             struct collection *ret_collection);
/* The name of the collection of that number, in the arena; empty: there is none any more. ERR_NEED.
 */
NODISCARD err collection_name_find(struct state *state, struct arena *arena, struct need *need,
                                   uint64_t number, struct slice *ret_name);
/* Whether memory knows one of that name: what is to be loaded for it may be told ahead. */
bool collection_known(struct state *state, struct arena *arena, const char *given,
                      struct collection *ret_collection);
/* Makes the row again, at apply. ERR_NEED. */
NODISCARD err collection_index(struct apply_context *context);
/* Whether the row can be read. */
bool collection_row_is_sound(struct slice key, struct slice value);

#endif
