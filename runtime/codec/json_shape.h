/*
 * json_shape: which fields have a form of their own in plain JSON (docs/json.md). One row a field;
 * nothing else lists them. The .proto says the same in its comments: `(document)`, `(key)`,
 * `(value)`, `(list)`, `(verb)`, `(operand)`; tools/json_shapes.py compares the two. Canonical
 * JSON and protobuf know nothing of it. Private to runtime/codec.
 *
 *   DOCUMENT  a string that holds JSON text: any JSON value stands there inline. A JSON string is
 *             taken for the text, as in canonical JSON; `[]` for {}.
 *   KEY       lists of the message are objects, and this string is the member's name.
 *   VALUE     where nothing but the key and this is set, the member's value is this alone.
 *   LIST      the message is this list: an array stands in its place.
 *   VERB      an enum that names the member which holds the OPERAND: {"increment": 40}.
 *   OPERAND   the JSON text that belongs to the VERB. A string in it is a string. The value 2 of
 *             the enum, REMOVE, has none: {"remove": true}.
 */
#ifndef RUNTIME_CODEC_JSON_SHAPE_H
#define RUNTIME_CODEC_JSON_SHAPE_H

enum json_shape {
    JSON_SHAPE_NONE,
    JSON_SHAPE_DOCUMENT,
    JSON_SHAPE_KEY,
    JSON_SHAPE_VALUE,
    JSON_SHAPE_LIST,
    JSON_SHAPE_VERB,
    JSON_SHAPE_OPERAND
};

/* clang-format off */
#define JSON_SHAPES(X)                               \
    X("holdfast.v1.CurrencyAmount", "currency",   KEY)      \
    X("holdfast.v1.CurrencyAmount", "amount",     VALUE)    \
    X("holdfast.v1.Section",        "name",       KEY)      \
    X("holdfast.v1.Section",        "json",       DOCUMENT) \
    X("holdfast.v1.SectionVersion", "name",       KEY)      \
    X("holdfast.v1.SectionEdit",    "name",       KEY)      \
    X("holdfast.v1.SectionEdit",    "replace",    DOCUMENT) \
    X("holdfast.v1.SectionEdit",    "merge",      DOCUMENT) \
    X("holdfast.v1.Document",       "json",       DOCUMENT) \
    X("holdfast.v1.DocumentSibling", "json",      DOCUMENT) \
    X("holdfast.v1.PutDocumentRequest", "json",   DOCUMENT) \
    X("holdfast.v1.UpdateDocumentRequest", "merge", DOCUMENT) \
    X("holdfast.v1.PresenceConnection", "status", DOCUMENT) \
    X("holdfast.v1.SetPresenceRequest", "status", DOCUMENT) \
    X("holdfast.v1.BatchSetPresenceRequest", "status", DOCUMENT) \
    X("holdfast.v1.User",           "attributes", DOCUMENT) \
    X("holdfast.v1.User",           "settings",   DOCUMENT) \
    X("holdfast.v1.UpsertUserRequest", "attributes", DOCUMENT) \
    X("holdfast.v1.UpsertUserRequest", "settings", DOCUMENT) \
    X("holdfast.v1.UpsertUserRequest", "status", DOCUMENT) \
    X("holdfast.v1.BatchUpsertUsersRequest", "status", DOCUMENT) \
    X("holdfast.v1.PatchList",      "steps",      LIST)     \
    X("holdfast.v1.PatchStep",      "kind",       VERB)     \
    X("holdfast.v1.PatchStep",      "json",       OPERAND)  \
    X("holdfast.v1.ItemSpec",       "attributes", DOCUMENT) \
    X("holdfast.v1.Item",           "attributes", DOCUMENT) \
    X("holdfast.v1.TargetMetadata", "attributes", DOCUMENT) \
    X("holdfast.v1.PutTargetMetadataRequest", "attributes", DOCUMENT) \
    X("holdfast.v1.SettingsBody",   "json",       DOCUMENT) \
    X("holdfast.v1.GetSettingsResponse", "json",  DOCUMENT)
/* clang-format on */

/* The name of the KEY of a message, by the message's full name; NULL: it has none. */
const char *json_shape_key(const char *message);

#endif
