/*
 * limit_fixture: makes requests at a limit and beyond it, by the names of their fields, for tables
 * of limits. For tests only.
 */
#ifndef IDL_LIMIT_FIXTURE_H
#define IDL_LIMIT_FIXTURE_H

#include <protobuf-c/protobuf-c.h>

#include "runtime/base/arena.h"

enum limit_shape {
    LIMIT_TEXT,   /* So many letters. */
    LIMIT_OBJECT, /* A JSON object of so many bytes. */
    LIMIT_NESTED, /* So many JSON objects, one in another. */
    LIMIT_PATH,   /* These are of so many bytes: a JSON Pointer, .. */
    LIMIT_URL,
    LIMIT_ENTITY, /* .. a player with its kind, .. */
    LIMIT_OP_ID,  /* .. an op_id with its kind. */
    LIMIT_NUMBER,
    LIMIT_COUNT, /* So many entries of a list. */
};

/* A message of that type, with defaults. */
ProtobufCMessage *limit_message(struct arena *arena, const ProtobufCMessageDescriptor *type);
/* `path`: names of fields with dots between them; [0] behind a list's, whose first entry is made if
 * there is none. CHECKs that there are such fields. */
void limit_set(struct arena *arena, ProtobufCMessage *message, const char *path,
               enum limit_shape shape, int64_t value);

#endif
