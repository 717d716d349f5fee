/*
 * metadata_wire: what a router sends to an endpoint of metadata, and what it takes from its answer
 * (docs/favorites.md#an-endpoint): the plain JSON of BatchGetTargetMetadata, so a cluster can be
 * the endpoint of another one. What breaks the rules of PutTargetMetadata is left out. Pure;
 * answers are untrusted.
 */
#ifndef ROUTER_CORE_METADATA_WIRE_H
#define ROUTER_CORE_METADATA_WIRE_H

#include "holdfast/v1/favorites.pb-c.h"
#include "runtime/base/arena.h"

#define METADATA_ANSWER_MAX (512u * 1024u)

struct metadata_question {
    struct slice collection;
    const struct slice *targets;
    size_t count;
};

/* Appends {"collection": .., "targetIds": [..]}. */
void metadata_question_print(const struct metadata_question *question, struct buf *out);

struct metadata_answer {
    Holdfast__V1__TargetMetadata **told; /* By place of the question; NULL: none is told. */
    uint32_t left_out;                   /* Entries that break a rule. */
};

/* In the arena. ERR_INVALID: it is not such an answer; *ret_why is static text. */
NODISCARD err metadata_answer_read(const struct metadata_question *question, struct slice json,
                                   struct arena *arena, struct metadata_answer *ret_answer,
                                   const char **ret_why);

#endif
