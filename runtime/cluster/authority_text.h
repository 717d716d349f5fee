/*
 * authority_text: the one string that says with what right a mutation acts, as callers write it and
 * ledgers print it: `session:<token>`, `system:<scope>` or `unheld` (docs/security.md). Reads the
 * form alone: whether a token or a scope is good, others say. A token is a secret: no error may
 * repeat a text that is not known to be free of one.
 */
#ifndef RUNTIME_CLUSTER_AUTHORITY_TEXT_H
#define RUNTIME_CLUSTER_AUTHORITY_TEXT_H

#include "runtime/base/buf.h"

enum authority_text_kind {
    AUTHORITY_TEXT_NONE, /* Another text, or none. */
    AUTHORITY_TEXT_SESSION,
    AUTHORITY_TEXT_SYSTEM,
    AUTHORITY_TEXT_UNHELD
};

/* What an error expects where no kind is recognised, and where the scope is not one. */
#define AUTHORITY_TEXT_LIMIT "session:<token>, system:<scope> or unheld"
#define AUTHORITY_SCOPE_LIMIT                                                                      \
    "system:payments, system:mail, system:match, system:moderation or system:admin"

/* `ret_rest` points into `text`: the token, or the name of the scope; empty for the others. */
enum authority_text_kind authority_text_read(struct slice text, struct slice *ret_rest);

#endif
