/*
 * client_contexts: what a caller has seen of documents (docs/documents.md, "Siblings and
 * contexts"). Keep the context of each answer, send it with the next call about that document:
 * reads then show at least what the caller wrote, and a write to `vector` replaces what the caller
 * saw. No I/O; one table per thread.
 */
#ifndef CLIENT_SDK_CLIENT_CONTEXTS_H
#define CLIENT_SDK_CLIENT_CONTEXTS_H

#include <stddef.h>

#include "runtime/base/err.h"

#define CLIENT_CONTEXTS_DOCUMENTS_MAX 4096
#define CLIENT_CONTEXT_BYTES_MAX      700

struct client_contexts;

/* The texts are borrowed for the call. */
struct client_document {
    const char *entity; /* "guild:7" */
    const char *collection;
    const char *key;
};

/* ERR_INVALID: `documents_max` is not 1 to CLIENT_CONTEXTS_DOCUMENTS_MAX. */
NODISCARD err client_contexts_new(size_t documents_max, struct client_contexts **ret_contexts);
/* NULL is allowed. */
void client_contexts_free(struct client_contexts *contexts);

/* "": nothing is known. The text is borrowed until the table changes. */
const char *client_contexts_get(struct client_contexts *contexts,
                                const struct client_document *document);
/*
 * Takes the place of what was kept of the document. In a full table the document that was used
 * least recently makes room: without its context a write to `vector` adds a sibling and loses
 * nothing. An empty context, as a write may answer, changes nothing: read the document to see that
 * write. ERR_TOO_LARGE: the name or the context is longer than a router takes, and nothing changed.
 */
NODISCARD err client_contexts_keep(struct client_contexts *contexts,
                                   const struct client_document *document, const char *context);
/* After a refusal with the field `context`: the cluster was restored, read the document again. */
void client_contexts_forget(struct client_contexts *contexts,
                            const struct client_document *document);

#endif
