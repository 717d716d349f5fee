/*
 * shown: what of a document one answer has room for. Siblings that are too many bytes together are
 * told in several answers: each has those that its caller's context has not seen, from the first
 * on, and its own context has seen no others.
 */
#ifndef NODE_CORE_DOCUMENT_SHOWN_H
#define NODE_CORE_DOCUMENT_SHOWN_H

#include "node/core/mergeable/token.h"

/* Of siblings in one answer. With the latest one again it is less than a frame holds. */
#define SHOWN_BYTES_MAX (2u * 1024u * 1024u + 512u * 1024u)
/* Of an answer's document. A larger one is left out of a list, and refused by itself. */
#define SHOWN_DOCUMENT_BYTES_MAX (3u * 1024u * 1024u + 768u * 1024u)

struct shown {
    struct merge_record record; /* Some of the cells, and no context. */
    uint32_t unseen;            /* Siblings that neither `seen` nor this part has. */
};

/* False: the answer has room for all, and *ret_shown is not touched. `seen`: the caller's context;
 * NULL: none. Free the part's record. */
bool shown_part(const struct merge_record *record, uint64_t now_ms, const struct merge_token *seen,
                struct shown *ret_shown);

#endif
