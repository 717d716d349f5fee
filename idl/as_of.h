/*
 * as_of: the consistency token of the public API, "c1." and base64 (RFC 4648 section 5): the place
 * in a shard's log that an answer includes. A read that names it (`read.at_least`) sees at least as
 * much. Callers pass it on and read nothing out of it. DESIGN section 4 (reads).
 */
#ifndef IDL_AS_OF_H
#define IDL_AS_OF_H

#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/base/err.h"

struct as_of {
    uint32_t shard;
    uint64_t epoch, owner, counter; /* As holdfast.v1.Dot. */
};

#define AS_OF_TEXT_SIZE 64 /* Prefix, the longest of all, and the NUL. */

/* Empty when it names nothing: a replica that has applied no entry yet, or a damaged row. */
void as_of_print(const struct as_of *as_of, char ret_text[AS_OF_TEXT_SIZE]);
/* ERR_INVALID: it was not printed by as_of_print; a mistyped one is noticed by its checksum. */
NODISCARD err as_of_parse(struct slice text, struct as_of *ret_as_of);

/* What an error about a token says that it should be. */
#define AS_OF_LIMIT "as_of of an earlier answer about the same entity: \"c1.\" and what follows"

#endif
