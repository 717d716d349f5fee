/*
 * codec_scope: where a decode puts what it makes (an arena) and, on failure, what was wrong with
 * the input. Shared by json_codec and proto_codec.
 */
#ifndef RUNTIME_CODEC_CODEC_SCOPE_H
#define RUNTIME_CODEC_CODEC_SCOPE_H

#include <protobuf-c/protobuf-c.h>

#include "runtime/base/arena.h"

/* What was wrong: texts for ErrorDetail's fields of the same names; empty when not known. */
struct codec_error {
    char message[160];
    char field[128]; /* Its path, in the schema's names: `currencies["gold"].amount`. */
    char limit[64];  /* What was expected, or the limit that was passed.    */
    char value[72];  /* What was given, shortened.                          */
};

/* The two forms of JSON, of one schema. docs/json.md */
enum json_form {
    JSON_CANONICAL, /* As protobuf.dev/programming-guides/json has it. */
    JSON_PLAIN      /* As people and game servers write it: json_shape.h. */
};

struct codec_scope {
    /* Receives the decoded message and everything it points to. */
    struct arena *arena;
    /* Longest input; 0 means 4 MiB. */
    size_t size_bytes_max;
    /* Most bytes a decode may take from the arena; 0 means 16 times the input plus 64 KiB. Small
     * input can otherwise ask for much memory (a million empty messages). */
    size_t memory_bytes_max;
    /* The form of JSON that is read. */
    enum json_form form;
    /* Filled when a decode fails. */
    struct codec_error error;
};

#define CODEC_SIZE_BYTES_MAX (4u << 20)
#define CODEC_DEPTH_MAX      32u
/* Of a document within a message: where it ends. How deep a stored one may nest is said where all
 * forms come together, in node/core/codec/json_canon.h. */
#define CODEC_DOCUMENT_DEPTH_MAX 4096u
/* All forms say this of a string. */
#define CODEC_NUL_MESSAGE "a string may not hold U+0000"
#define CODEC_NUL_LIMIT   "no U+0000"
#define CODEC_NUL_VALUE   "\\u0000"

#endif
