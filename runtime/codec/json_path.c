#include "runtime/codec/json_path.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/field_key.h"
#include "runtime/base/nearest.h"
#include "runtime/codec/json_document.h"

#define STEPS_MAX (2 * CODEC_DEPTH_MAX + 4)

static bool is_named(const struct json_field *field, struct slice name)
{
    return slice_equal(name, field->name) ||
           slice_equal(name, slice_from_text(field->descriptor->name));
}

/* A look at an element's text, ahead of what is wrong in it. */
struct ahead {
    const uint8_t *at;
    const uint8_t *end;
    struct arena *arena;
    struct json_flaw flaw; /* Not the one that is told. */
};

static void skip_space(struct ahead *ahead)
{
    while (ahead->at < ahead->end && strchr(" \n\r\t", *ahead->at) != NULL && *ahead->at != 0)
        ahead->at++;
}

/* Moves past the space, and past `c` if it stands there. */
static bool take(struct ahead *ahead, uint8_t c)
{
    skip_space(ahead);
    if (ahead->at == ahead->end || *ahead->at != c)
        return false;
    ahead->at++;
    skip_space(ahead);
    return true;
}

static bool take_string(struct ahead *ahead, struct slice *ret_text)
{
    struct json_string string;

    if (ahead->at == ahead->end || *ahead->at != '"' ||
        !json_text_string(&ahead->at, ahead->end, &string, &ahead->flaw))
        return false;
    uint8_t *text = arena_alloc(ahead->arena, string.raw.size + 1);
    size_t size;
    if (!json_text_unescape(string.raw, text, &size, &ahead->flaw))
        return false;
    *ret_text = (struct slice){ text, size };
    return true;
}

/* "name": value. False: the text goes on otherwise. A key that is no string leaves *ret_key. */
static bool take_member(struct ahead *ahead, const struct json_field *key, struct slice *ret_key)
{
    struct slice name;

    if (!take_string(ahead, &name) || !take(ahead, ':'))
        return false;
    if (is_named(key, name))
        return take_string(ahead, ret_key);
    ahead->at = json_document_end(ahead->at, ahead->end, &ahead->flaw);
    return ahead->at != NULL;
}

/* The key of an element, which may stand behind what is wrong with it; else empty. */
static struct slice key_of(const struct json_path *step, const uint8_t *end, struct arena *arena)
{
    struct ahead ahead = { .at = step->from, .end = end, .arena = arena };
    struct slice key = { 0 };

    if (step->key == NULL || !take(&ahead, '{'))
        return key;
    while (take_member(&ahead, step->key, &key) && key.size == 0) {
        if (!take(&ahead, ','))
            break;
    }
    return key;
}

static size_t step_print(const struct json_path *step, struct slice key, bool first, char *text,
                         size_t room)
{
    char name[NEAREST_SHOWN_BYTES], entry[FIELD_KEY_BYTES];

    if (step->kind != JSON_STEP_FIELD)
        return (size_t)snprintf(text, room, "%s", field_key_print(key, step->index, entry));
    nearest_show(step->field != NULL ? slice_from_text(step->field) : step->name, name);
    return (size_t)snprintf(text, room, "%s%s", first ? "" : ".", name);
}

void json_path_print(const struct json_path *path, const uint8_t *end, struct codec_scope *scope)
{
    const struct json_path *steps[STEPS_MAX];
    struct codec_error *error = &scope->error;
    size_t count = 0;
    size_t used = 0;

    for (; path != NULL && count < STEPS_MAX; path = path->up)
        steps[count++] = path;
    while (count > 0 && used < sizeof error->field - 1) {
        const struct json_path *step = steps[--count];
        struct slice key =
            step->kind == JSON_STEP_ELEMENT ? key_of(step, end, scope->arena) : step->name;
        used += step_print(step, key, used == 0, error->field + used, sizeof error->field - used);
    }
}
