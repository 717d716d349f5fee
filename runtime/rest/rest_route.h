/*
 * rest_route: the table of REST routes, made of the options google.api.http in idl by
 * cmake/rest_tables.py, and what finds a route in it. Pure; for untrusted input. No other file
 * lists routes.
 *
 * A path is /v1/<plural>/{id}/<plural>, and an action of what it names stands behind a colon:
 * /v1/players/ada:grant. An id is percent-decoded once. One whose own text ends in a colon and the
 * name of an action writes that colon as %3A. /v1/users/ stands for /v1/players/,
 * where no route has the path by itself.
 */
#ifndef RUNTIME_REST_REST_ROUTE_H
#define RUNTIME_REST_REST_ROUTE_H

#include "idl/method.h"
#include "runtime/base/arena.h"

#define REST_SEGMENTS_MAX 8u   /* Of a path. */
#define REST_ALLOW_BYTES  40u  /* "GET, HEAD, POST, PUT, PATCH, DELETE", and a NUL. */
#define REST_SHOWN_BYTES  160u /* Of a route, for people. */

enum rest_verb { REST_GET, REST_POST, REST_PUT, REST_PATCH, REST_DELETE, REST_VERBS };

struct rest_route {
    enum rest_verb verb;
    enum method_id method;
    uint8_t segment_count;
    const char *path;   /* "v1/players/{player_id}": a field of the request in braces. */
    const char *action; /* "grant"; "" for none. */
};

/* Why a request was refused, as the fields of ErrorDetail have it: texts are static, or in the
 * arena. */
struct rest_flaw {
    const char *message;
    const char *field;
    const char *limit;
    struct slice value;
};

/* A field that the path names, decoded. */
struct rest_value {
    struct slice name; /* In the table. */
    struct slice text; /* In the arena. */
};

struct rest_found {
    const struct rest_route *route;
    struct rest_value values[REST_SEGMENTS_MAX];
    size_t value_count;
    /* REST_NO_VERB: for the header Allow. */
    char allow[REST_ALLOW_BYTES];
    /* REST_NO_PATH: the route that was probably meant, "/v1/players/{player_id}:grant"; or empty.
     */
    char meant[REST_SHOWN_BYTES];
};

enum rest_result {
    REST_FOUND,
    REST_NO_PATH,  /* 404 */
    REST_NO_VERB,  /* 405 */
    REST_MALFORMED /* 400: *ret_flaw says why. */
};

/* "/v1/players/{player_id}:grant" */
void rest_route_show(const struct rest_route *route, char ret_text[REST_SHOWN_BYTES]);
/* Whether a path belongs to REST at all, found or not; that of the document does. */
bool rest_path_is_rest(struct slice path);

/* `verb` as HTTP has it: HEAD finds what GET does. `path` begins with a slash and has no query.
 * *ret_found is filled as the result says. */
enum rest_result rest_route_find(struct slice verb, struct slice path, struct arena *arena,
                                 struct rest_found *ret_found, struct rest_flaw *ret_flaw);

#endif
