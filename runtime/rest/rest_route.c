#include "runtime/rest/rest_route.h"

#include <stdio.h>
#include <string.h>

#include "rest/rest_tables.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"
#include "runtime/rest/rest_openapi.h"
#include "runtime/rest/rest_text.h"

static const struct rest_route routes[] = {
#define REST_ROW(verb, method, count, path, action)                                                \
    { REST_##verb, METHOD_##method, (count), (path), (action) },
    REST_ROUTES(REST_ROW)
#undef REST_ROW
};

static const char *const verb_names[REST_VERBS] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

/* A path as it was asked for: raw segments, and what stands behind the last colon of the last. */
struct asked {
    struct slice segments[REST_SEGMENTS_MAX];
    size_t count;
    struct slice stem;   /* Of the last segment, in front of its last colon. */
    struct slice action; /* Behind it; without data where there is no colon. */
    bool aliases;        /* `users` stands for `players`. */
};

void rest_route_show(const struct rest_route *route, char ret_text[REST_SHOWN_BYTES])
{
    snprintf(ret_text, REST_SHOWN_BYTES, "/%s%s%s", route->path, route->action[0] != 0 ? ":" : "",
             route->action);
}

bool rest_path_is_rest(struct slice path)
{
    return slice_equal(path, SLICE_LITERAL("/v1")) ||
           slice_equal(path, SLICE_LITERAL(REST_OPENAPI_PATH)) ||
           (path.size >= 4 && memcmp(path.data, "/v1/", 4) == 0);
}

/* ---- the path that was asked for ---- */

/* False: it has more segments than any route. */
static bool asked_read(struct slice path, struct asked *ret_asked)
{
    struct asked asked = { .count = 0 };

    CHECK(path.size > 0 && path.data[0] == '/');
    path = (struct slice){ path.data + 1, path.size - 1 };
    while (path.data != NULL) {
        if (asked.count == REST_SEGMENTS_MAX)
            return false;
        asked.segments[asked.count++] = rest_text_take(&path, '/');
    }
    struct slice last = asked.segments[asked.count - 1];
    asked.stem = last;
    for (size_t i = last.size; i > 0; i--) {
        if (last.data[i - 1] != ':')
            continue;
        asked.stem.size = i - 1;
        asked.action = (struct slice){ last.data + i, last.size - i };
        break;
    }
    *ret_asked = asked;
    return true;
}

static struct slice segment_of(const struct asked *asked, size_t place, bool without_action)
{
    return without_action && place + 1 == asked->count ? asked->stem : asked->segments[place];
}

static bool is_variable(struct slice segment)
{
    return segment.size > 0 && segment.data[0] == '{';
}

static bool literal_fits(const struct asked *asked, struct slice wanted, struct slice given)
{
    return slice_equal(wanted, given) ||
           (asked->aliases && slice_equal(wanted, SLICE_LITERAL("players")) &&
            slice_equal(given, SLICE_LITERAL("users")));
}

/* Whether the segments fit, whatever the verb and the action. */
static bool path_fits(const struct rest_route *route, const struct asked *asked,
                      bool without_action)
{
    struct slice rest = slice_from_text(route->path);

    if (route->segment_count != asked->count)
        return false;
    for (size_t i = 0; i < asked->count; i++) {
        struct slice wanted = rest_text_take(&rest, '/');
        struct slice given = segment_of(asked, i, without_action);
        if (is_variable(wanted) ? given.size == 0 : !literal_fits(asked, wanted, given))
            return false;
    }
    return true;
}

static bool action_fits(const struct rest_route *route, const struct asked *asked)
{
    return route->action[0] != 0 && slice_equal(slice_from_text(route->action), asked->action) &&
           path_fits(route, asked, true);
}

/* ---- what was probably meant ---- */

/* The place of the one word that differs; REST_SEGMENTS_MAX: more do, or none. */
static size_t place_that_differs(const struct rest_route *route, const struct asked *asked)
{
    struct slice rest = slice_from_text(route->path);
    size_t place = REST_SEGMENTS_MAX;

    if (route->segment_count != asked->count)
        return place;
    for (size_t i = 0; i < asked->count; i++) {
        struct slice wanted = rest_text_take(&rest, '/');
        struct slice given = segment_of(asked, i, asked->action.size > 0);
        if (is_variable(wanted) || literal_fits(asked, wanted, given))
            continue;
        if (place < REST_SEGMENTS_MAX)
            return REST_SEGMENTS_MAX;
        place = i;
    }
    return place;
}

static void suggest_action(const struct asked *asked, struct rest_found *found)
{
    struct nearest nearest;

    nearest_init(&nearest, asked->action);
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        const char *action = routes[i].action;
        if (action[0] == 0 || !path_fits(&routes[i], asked, true))
            continue;
        nearest_offer_text(&nearest, action);
        if (nearest.name.data == (const uint8_t *)action)
            rest_route_show(&routes[i], found->meant);
    }
}

/* Routes of the same length with one word that is near, the first word first. */
static void suggest_word(const struct asked *asked, struct rest_found *found)
{
    for (size_t place = 0; place < asked->count && found->meant[0] == 0; place++) {
        struct nearest nearest;
        nearest_init(&nearest, segment_of(asked, place, asked->action.size > 0));
        for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
            struct slice rest = slice_from_text(routes[i].path), wanted = { 0 };
            if (place_that_differs(&routes[i], asked) != place ||
                !slice_equal(slice_from_text(routes[i].action), asked->action))
                continue;
            for (size_t j = 0; j <= place; j++)
                wanted = rest_text_take(&rest, '/');
            nearest_offer(&nearest, wanted);
            if (nearest.name.data == wanted.data)
                rest_route_show(&routes[i], found->meant);
        }
    }
}

static void suggest(const struct asked *asked, struct rest_found *found)
{
    if (asked->action.size > 0)
        suggest_action(asked, found);
    if (found->meant[0] == 0)
        suggest_word(asked, found);
}

/* ---- finding ---- */

static void allow(struct rest_found *found, uint32_t verbs)
{
    size_t size = 0;

    for (unsigned i = 0; i < REST_VERBS; i++) {
        if ((verbs & 1u << i) != 0)
            size += (size_t)snprintf(found->allow + size, sizeof found->allow - size, "%s%s%s",
                                     size > 0 ? ", " : "", verb_names[i],
                                     i == REST_GET ? ", HEAD" : "");
    }
}

/* RFC 9110, section 9.3.2: the same without the body, which the server leaves out by itself. */
static bool verb_fits(enum rest_verb wanted, struct slice given)
{
    return slice_equal(given, slice_from_text(verb_names[wanted])) ||
           (wanted == REST_GET && slice_equal(given, SLICE_LITERAL("HEAD")));
}

static enum rest_result malformed(struct rest_flaw *flaw, const char *message, struct slice name,
                                  struct slice value)
{
    *flaw = (struct rest_flaw){ message, (const char *)name.data, NULL, value };
    flaw->limit = "percent-encoded UTF-8, not empty, and neither . nor ..";
    return REST_MALFORMED;
}

static bool is_dots(struct slice text)
{
    return slice_equal(text, SLICE_LITERAL(".")) || slice_equal(text, SLICE_LITERAL(".."));
}

static enum rest_result take_values(const struct asked *asked, struct arena *arena,
                                    struct rest_found *found, struct rest_flaw *flaw)
{
    struct slice rest = slice_from_text(found->route->path);

    for (size_t i = 0; i < asked->count; i++) {
        struct slice wanted = rest_text_take(&rest, '/');
        struct slice raw = segment_of(asked, i, found->route->action[0] != 0), text;
        if (!is_variable(wanted))
            continue;
        struct slice name =
            arena_copy(arena, (struct slice){ wanted.data + 1, wanted.size - 2 }); /* Its NUL. */
        if (!rest_text_decode(raw, false, arena, &text))
            return malformed(flaw, "an escape in the path is not % and two hex digits", name, raw);
        if (is_dots(text))
            return malformed(flaw, "a path has no segments . and ..", name, raw);
        found->values[found->value_count++] = (struct rest_value){ name, text };
    }
    return REST_FOUND;
}

static bool fits(const struct rest_route *route, const struct asked *asked, bool acts)
{
    return acts ? action_fits(route, asked)
                : route->action[0] == 0 && path_fits(route, asked, false);
}

static bool any_fits(const struct asked *asked, bool acts)
{
    bool found = false;

    for (size_t i = 0; i < ARRAY_SIZE(routes) && !found; i++)
        found = fits(&routes[i], asked, acts);
    return found;
}

enum rest_result rest_route_find(struct slice verb, struct slice path, struct arena *arena,
                                 struct rest_found *ret_found, struct rest_flaw *ret_flaw)
{
    struct asked asked;
    uint32_t verbs = 0;
    bool acts;

    *ret_found = (struct rest_found){ .route = NULL };
    if (!asked_read(path, &asked))
        return REST_NO_PATH;
    asked.aliases = true;
    acts = asked.action.size > 0 && any_fits(&asked, true);
    asked.aliases = false; /* A route that has the path by itself goes before. */
    asked.aliases = !any_fits(&asked, acts);
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        const struct rest_route *route = &routes[i];
        if (!fits(route, &asked, acts))
            continue;
        verbs |= 1u << route->verb;
        if (verb_fits(route->verb, verb))
            ret_found->route = route;
    }
    if (ret_found->route != NULL)
        return take_values(&asked, arena, ret_found, ret_flaw);
    /* An action that there is not, of something that there is. */
    if (!acts && asked.action.data != NULL && slice_equal(verb, SLICE_LITERAL("POST")))
        verbs = 0;
    if (verbs != 0) {
        allow(ret_found, verbs);
        return REST_NO_VERB;
    }
    suggest(&asked, ret_found);
    return REST_NO_PATH;
}
