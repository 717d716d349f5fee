/*
 * authority_walk: every authority that a message names, in parts of batches and of other
 * participants too. Pure. An authority is a field `authority`, or `<x>_authority`; the player whom
 * it is for stands beside it in `player_id`, or `<x>_player_id`.
 */
#ifndef ROUTER_CORE_AUTHORITY_WALK_H
#define ROUTER_CORE_AUTHORITY_WALK_H

#include <stdbool.h>

#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/err.h"

struct message_place;

struct authority_place {
    const char *name;                   /* Of the field. */
    const struct message_place *within; /* What has it. */
    char **text;        /* Never NULL; what it points at may be. The visitor may put another. */
    const char *player; /* "": there is none. */
    bool has_player;    /* False: shared by a batch, and not sent to nodes. */
};

struct authority_visitor {
    err (*visit)(void *user, const struct authority_place *place);
    void *user;
    struct arena *arena;
    Holdfast__V1__ErrorDetail *detail; /* Filled in when messages are nested too deep. */
};

/* Ends with the first error of `visit`. ERR_INVALID: messages are nested deeper than any of the
 * API; visitor->detail says so. */
NODISCARD err authority_walk(const struct authority_visitor *visitor,
                             const ProtobufCMessage *message);

/* A message on its way from the outermost, whose `outer` is NULL. */
struct message_place {
    const ProtobufCMessage *message;
    const struct message_place *outer;
    const ProtobufCFieldDescriptor *field; /* Of the outer one. */
    size_t at;                             /* In its list. */
};
/* Of its fields, with a point at the end: "others[2]."; "": it is the outermost. */
const char *message_path(const struct message_place *place, struct arena *arena);

struct message_visitor {
    err (*visit)(void *user, const struct message_place *place);
    void *user;
    struct arena *arena;
    Holdfast__V1__ErrorDetail *detail; /* As above. */
};

/* The message and every one within it, the outer first. Errors as above. */
NODISCARD err message_walk(const struct message_visitor *visitor, const ProtobufCMessage *message);

/* Whether that is a field that authority_walk visits. */
bool authority_is_field(const ProtobufCFieldDescriptor *field);
/* The field of the player beside it; NULL: there is none. */
const ProtobufCFieldDescriptor *authority_player_field(const ProtobufCMessageDescriptor *descriptor,
                                                       const ProtobufCFieldDescriptor *field);

#endif
