/*
 * name_index: definitions of one kind, found by their names. Each kind has one row of all of them,
 * which the entry of a DEFINE makes again. Where there is no such row, since definitions were
 * logged under an earlier apply version, they are looked through.
 */
#ifndef NODE_CORE_DEFINITION_NAME_INDEX_H
#define NODE_CORE_DEFINITION_NAME_INDEX_H

#include "holdfast/v1/definition.pb-c.h"
#include "node/core/handler/handler.h"
#include "node/core/rows/rows.h"

/* What is kept of a definition for those who look it up: what `facts` are, its kind says. */
struct named {
    struct slice name;
    uint64_t number; /* Data is kept under it: a name made again has another one. */
    uint64_t facts[2];
};

/* One kind. Static. */
struct name_kind {
    enum row_names row;
    const char *noun;     /* "collection": the field of requests, and what refusals call it. */
    const char *fallback; /* What a request means that names none; "": it has to. */
    /* False: it is of another kind. */
    bool (*of_body)(const Holdfast__V1__DefinitionBody *body, uint64_t ret_facts[2]);
    /* As they stand in the row. A number of 0, and what could be no fact, is told as bad. */
    void (*put)(struct buf *out, const struct named *named);
    void (*read)(struct reader *reader, struct named *ret_named);
};

/* The name that a request means. */
struct slice name_given(const struct name_kind *kind, const char *given);
/* Before the log: INVALID_ARGUMENT, `field`, if the name could be none; NOT_FOUND if there is none
 * for sure. Whether there is one is said again at apply. ERR_NEED: it is not in memory. */
NODISCARD err name_check(struct check_context *context, const struct name_kind *kind,
                         const char *given, struct named *ret_named);
/* ERR_NEED. ERR_NOT_FOUND: there is none of that name. */
NODISCARD err name_find(struct state *state, struct arena *arena, struct need *need,
                        const struct name_kind *kind, struct named *named);
/* The same by the name of a request, of what is in memory alone: nothing is asked for. */
NODISCARD err name_known(struct state *state, struct arena *arena, const struct name_kind *kind,
                         const char *given, struct named *ret_named);
/* Refuses with NOT_FOUND, ERR_CONFLICT, and says which name is near. ERR_NEED. */
NODISCARD err name_read(struct read_context *context, const struct name_kind *kind,
                        const char *given, struct named *ret_named);
NODISCARD err name_get(struct apply_context *context, const struct name_kind *kind,
                       const char *given, struct named *ret_named);
/* Makes the row again, at apply. ERR_NEED. */
NODISCARD err name_index(struct apply_context *context, const struct name_kind *kind);
/* Whether the row can be read. */
bool name_row_is_sound(const struct name_kind *kind, struct slice key, struct slice value);

#endif
