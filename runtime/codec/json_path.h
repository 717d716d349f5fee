/*
 * json_path: where in a message the decoder is, as errors name it: `currencies["gold"].amount`. An
 * entry of a map has its key in every form of JSON, also where it is an element of an array.
 * Private to runtime/codec.
 */
#ifndef RUNTIME_CODEC_JSON_PATH_H
#define RUNTIME_CODEC_JSON_PATH_H

#include "runtime/codec/json_type.h"

enum json_step {
    JSON_STEP_FIELD,
    JSON_STEP_ELEMENT, /* Of an array. */
    JSON_STEP_ENTRY    /* Of an object that is a map. */
};

/* One step of the way, innermost first; lives on the decoder's stack, one for each field. */
struct json_path {
    const struct json_path *up;
    union {
        struct {
            struct slice name; /* FIELD: as the request spells it. ENTRY: its key. */
            const char *field; /* FIELD: the schema's name of it, which errors tell; or NULL. */
        };
        struct {                          /* ELEMENT: */
            const struct json_field *key; /* the key of such a message; or NULL; */
            const uint8_t *from;          /* where its text begins. */
        };
    };
    size_t index; /* ELEMENT, ENTRY: from 0. */
    enum json_step kind;
};

/* Into scope->error.field. The text ends at `end`. An element whose key cannot be read has its
 * place.
 */
void json_path_print(const struct json_path *path, const uint8_t *end, struct codec_scope *scope);

#endif
