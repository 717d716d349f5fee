/*
 * rest_tag: the ETag of an answer, whether If-None-Match names it (RFC 9110, sections 8.8.3 and
 * 13.1.2), and how long a caller may keep the answer. Pure; for untrusted input.
 */
#ifndef RUNTIME_REST_REST_TAG_H
#define RUNTIME_REST_REST_TAG_H

#include <protobuf-c/protobuf-c.h>

#include "idl/as_of.h"
#include "idl/method.h"
#include "runtime/base/buf.h"

#define REST_TAG_BYTES (AS_OF_TEXT_SIZE + 4u)

/*
 * `"7"`: the version, of `write`, of a profile or of the answer itself; If-Match takes it.
 * `W/"c1.…"`: the token `as_of`, where there is no version, or where it does not tell all: mail
 * comes without a new version. The state that was read is the same while the token is, but it also
 * changes with what else the shard does, so it is a weak one. `W/"n12"`: the count, of a
 * TargetCount that is not stale: whenever it was read, it is the same. `W/"t…"`: what a top list
 * holds, if it is not stale. `W/"s7.2"`: the number and version of settings. False: the answer has
 * no tag.
 */
bool rest_tag_of(const ProtobufCMessage *answer, char ret_tag[REST_TAG_BYTES]);

/* Whether the request asks for what comes from elsewhere, which changes while versions and counts
 * stay: such an answer has no tag. */
bool rest_tag_is_told(const ProtobufCMessage *request);

/* For how many seconds the caller may keep the answer, by the option cache_max_age_s in idl. 0: not
 * at all, as where the request asks for what is `fresh`, or where a count is stale. */
uint32_t rest_keep_s(enum method_id method, const ProtobufCMessage *request,
                     const ProtobufCMessage *answer);

/* `*`, or entity tags with commas between them. */
bool rest_tags_are_sound(struct slice header);
/* Whether `tag` is among them, by the weak comparison. Of sound ones. */
bool rest_tags_have(struct slice header, const char *tag);

#endif
