/*
 * jwt_json: JSON of strangers, for key sets and tokens: bounded in size and depth, no name twice in
 * an object. Pure.
 */
#ifndef RUNTIME_JWT_JWT_JSON_H
#define RUNTIME_JWT_JWT_JSON_H

#include <jansson.h>

#include "runtime/base/buf.h"

#define JWT_JSON_DEPTH_MAX 8u

/* One object, for json_decref; NULL: it is none, is deeper than JWT_JSON_DEPTH_MAX, or names a
 * member twice. */
json_t *jwt_json_read(struct slice json);
/* The member of that name if it is a string; its bytes belong to `object`. Empty: there is none. */
struct slice jwt_json_text(const json_t *object, const char *name);
/* Whether there is a member of that name. */
bool jwt_json_has(const json_t *object, const char *name);

#endif
