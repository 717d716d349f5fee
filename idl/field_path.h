/*
 * field_path: what the `field` of an error may say of a request: `player_id`, `items[2].kind`,
 * `currencies["gold"].amount`.
 */
#ifndef IDL_FIELD_PATH_H
#define IDL_FIELD_PATH_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/*
 * Whether `path` leads to a field of such a message. What follows a field of bytes or of text is a
 * path within its JSON, and fits. An entry of a map by its key is its value, or a part of that.
 */
bool field_path_fits(const ProtobufCMessageDescriptor *message, const char *path);

#endif
