#include "node/core/codec/json_edit.h"

#include <string.h>

#include "node/core/codec/json_canon.h"
#include "runtime/base/check.h"

#define INDEX_DIGITS_MAX 9u

/* Recurses as deep as `patch`, so at most JSON_DEPTH_MAX. */
json_t *json_merge(json_t *target, const json_t *patch)
{
    const char *name;
    json_t *member;

    if (!json_is_object(patch)) {
        json_decref(target);
        return json_deep_copy(patch);
    }
    if (!json_is_object(target)) {
        json_decref(target);
        target = json_object();
    }
    json_object_foreach((json_t *)(uintptr_t)patch, name, member)
    {
        if (json_is_null(member)) {
            (void)json_object_del(target, name);
            continue;
        }
        json_t *old = json_incref(json_object_get(target, name));
        (void)json_object_del(target, name);
        CHECK(json_object_set_new(target, name, json_merge(old, member)) == 0);
    }
    return target;
}

/* One part of a pointer, unescaped, in `ret_part`; returns what follows it. */
struct part {
    char text[PATCH_PATH_BYTES_MAX + 1];
};

static struct slice part_next(struct slice path, struct part *ret_part)
{
    size_t at = 1;
    size_t size = 0;

    CHECK(path.size > 0 && path.data[0] == '/');
    while (at < path.size && path.data[at] != '/') {
        uint8_t c = path.data[at++];
        if (c == '~')
            c = path.data[at++] == '0' ? '~' : '/';
        ret_part->text[size++] = (char)c;
    }
    ret_part->text[size] = 0;
    return (struct slice){ path.data + at, path.size - at };
}

err json_pointer_check(struct slice path)
{
    uint32_t parts = 0;

    if (path.size > PATCH_PATH_BYTES_MAX || (path.size > 0 && path.data[0] != '/'))
        return ERR_INVALID;
    for (size_t i = 0; i < path.size; i++) {
        if (path.data[i] == '/')
            parts++;
        if (path.data[i] != '~')
            continue;
        if (i + 1 == path.size || (path.data[i + 1] != '0' && path.data[i + 1] != '1'))
            return ERR_INVALID;
    }
    return parts <= JSON_DEPTH_MAX ? ERR_OK : ERR_INVALID;
}

/* A place in an array; "-" is the place after the last. */
static bool index_of(const json_t *array, const char *part, size_t *ret_index)
{
    size_t digits = strlen(part);
    size_t index = 0;

    if (strcmp(part, "-") == 0) {
        *ret_index = json_array_size(array);
        return true;
    }
    if (digits == 0 || digits > INDEX_DIGITS_MAX || (digits > 1 && part[0] == '0'))
        return false;
    for (size_t i = 0; i < digits; i++) {
        if (part[i] < '0' || part[i] > '9')
            return false;
        index = index * 10 + (size_t)(part[i] - '0');
    }
    *ret_index = index;
    return index <= json_array_size(array);
}

static json_t *child_find(const json_t *parent, const char *part)
{
    size_t index;

    if (json_is_object(parent))
        return json_object_get(parent, part);
    if (json_is_array(parent) && index_of(parent, part, &index))
        return json_array_get(parent, index);
    return NULL;
}

/* False: `parent` cannot have such a member. */
static bool child_set(json_t *parent, const char *part, json_t *value)
{
    size_t index;

    if (json_is_object(parent))
        return json_object_set(parent, part, value) == 0;
    if (!json_is_array(parent) || !index_of(parent, part, &index))
        return false;
    if (index == json_array_size(parent))
        return json_array_append(parent, value) == 0;
    return json_array_set(parent, index, value) == 0;
}

static void child_remove(json_t *parent, const char *part)
{
    size_t index;

    if (json_is_object(parent))
        (void)json_object_del(parent, part);
    else if (json_is_array(parent) && index_of(parent, part, &index) &&
             index < json_array_size(parent))
        (void)json_array_remove(parent, index);
}

/* The parent of `path`'s last part, which goes to *ret_last; NULL when it does not exist, or,
 * with `make`, cannot be made. */
static json_t *parent_of(json_t *document, struct slice path, bool make, struct part *ret_last)
{
    json_t *at = document;
    struct slice rest = part_next(path, ret_last);

    while (rest.size > 0 && at != NULL) {
        json_t *child = child_find(at, ret_last->text);
        if (child == NULL && make) {
            child = json_object();
            if (!child_set(at, ret_last->text, child)) {
                json_decref(child);
                return NULL;
            }
            json_decref(child); /* Its parent keeps it. */
        }
        at = child;
        rest = part_next(rest, ret_last);
    }
    return at;
}

/* Equal as canonical JSON: json_equal takes 0.0 and -0.0 for one number. */
static bool is_same(const json_t *one, const json_t *other)
{
    struct buf first = { 0 };
    struct buf second = { 0 };

    if (!json_equal(one, other))
        return false;
    CHECK(json_canon_write(one, &first) == ERR_OK); /* No deeper than a step's value. */
    CHECK(json_canon_write(other, &second) == ERR_OK);
    bool same = slice_equal(buf_slice(&first), buf_slice(&second));
    buf_deinit(&first);
    buf_deinit(&second);
    return same;
}

static bool array_has(const json_t *array, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (is_same(json_array_get(array, i), value))
            return true;
    }
    return false;
}

/* A new array, made in one pass: taking the elements out of the old one would move the rest of it
 * each time. */
static json_t *array_without(const json_t *array, const json_t *value)
{
    json_t *left = json_array();

    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *element = json_array_get(array, i);
        if (!is_same(element, value))
            CHECK(json_array_append(left, element) == 0);
    }
    return left;
}

/* The array that is to stand where `old` stands; NULL: `old` is none. */
static json_t *array_value(Holdfast__V1__PatchKind kind, json_t *old, json_t *value)
{
    if (old != NULL && !json_is_array(old))
        return NULL;
    if (kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_DISCARD)
        return array_without(old, value);
    old = old != NULL ? json_incref(old) : json_array();
    if (kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_APPEND || !array_has(old, value))
        CHECK(json_array_append(old, value) == 0);
    return old;
}

/* What is to stand at a place where `old` stands; NULL with *ret_error set when it cannot. */
static json_t *step_value(Holdfast__V1__PatchKind kind, json_t *old, json_t *value,
                          const char **ret_why, err *ret_error)
{
    json_int_t sum;

    *ret_error = ERR_INVALID;
    switch (kind) {
    case HOLDFAST__V1__PATCH_KIND__PATCH_KIND_SET:
        return json_incref(value);
    case HOLDFAST__V1__PATCH_KIND__PATCH_KIND_APPEND:
    case HOLDFAST__V1__PATCH_KIND__PATCH_KIND_ADD:
    case HOLDFAST__V1__PATCH_KIND__PATCH_KIND_DISCARD:
        *ret_why = "an array, or nothing, at the path";
        return array_value(kind, old, value);
    case HOLDFAST__V1__PATCH_KIND__PATCH_KIND_INCREMENT:
    case HOLDFAST__V1__PATCH_KIND__PATCH_KIND_MAX:
        *ret_why = "an integer, or nothing, at the path";
        if (old != NULL && !json_is_integer(old))
            return NULL;
        if (kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_MAX) {
            bool keep = old != NULL && json_integer_value(old) >= json_integer_value(value);
            return json_incref(keep ? old : value);
        }
        if (__builtin_add_overflow(old != NULL ? json_integer_value(old) : 0,
                                   json_integer_value(value), &sum)) {
            *ret_why = "a sum that fits int64";
            *ret_error = ERR_FULL;
            return NULL;
        }
        return json_integer(sum);
    default: /* Of a later version of this program, whose transactions come here. */
        *ret_why = "a step of a kind that this version knows";
        return NULL;
    }
}

static err step_at_root(json_t **document, Holdfast__V1__PatchKind kind, json_t *value,
                        const char **ret_why)
{
    err e;

    if (kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_REMOVE) {
        json_decref(*document);
        *document = json_object();
        return ERR_OK;
    }
    json_t *made = step_value(kind, *document, value, ret_why, &e);
    if (made == NULL)
        return e;
    json_decref(*document);
    *document = made;
    return ERR_OK;
}

err json_patch_step(json_t **document, Holdfast__V1__PatchKind kind, struct slice path,
                    json_t *value, const char **ret_why)
{
    struct part last;
    bool removes = kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_REMOVE;
    bool takes = removes || kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_DISCARD;
    err e;

    *ret_why = "a JSON Pointer, and a value unless the step removes";
    if (json_pointer_check(path) != ERR_OK || (value == NULL && !removes))
        return ERR_INVALID;
    if (path.size == 0)
        return step_at_root(document, kind, value, ret_why);
    json_t *parent = parent_of(*document, path, !takes, &last);
    if (takes && (parent == NULL || child_find(parent, last.text) == NULL))
        return ERR_OK;
    if (removes) {
        child_remove(parent, last.text);
        return ERR_OK;
    }
    *ret_why = "objects, or places in arrays, on the way to the path";
    if (parent == NULL)
        return ERR_INVALID;
    json_t *made = step_value(kind, child_find(parent, last.text), value, ret_why, &e);
    if (made == NULL)
        return e;
    bool set = child_set(parent, last.text, made);
    json_decref(made);
    if (!set)
        *ret_why = "an object, or a place in an array, at the path";
    return set ? ERR_OK : ERR_INVALID;
}
