#include "node/core/document/value.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/json_canon.h"
#include "node/core/mergeable/counter.h"
#include "runtime/base/check.h"

#define HLC_COUNT_BITS 16u

/* ---- from JSON ---- */

static err wrong(struct value_edits *edits, const char *why)
{
    edits->why = why;
    return ERR_INVALID;
}

err value_add(struct value_edits *edits, const struct merge_edit *edit)
{
    if (edits->count == MERGE_EDITS_MAX)
        return wrong(edits, "at most 64 leaves or steps in one write");
    if (edit->path.size > MERGE_PATH_BYTES_MAX)
        return wrong(edits, "paths, names and elements of at most 255 bytes");
    edits->list[edits->count] = *edit;
    if (!edit->remove)
        edits->list[edits->count].expires_ms = edits->expires_ms;
    edits->count++;
    return ERR_OK;
}

/* How deep in the document a leaf of this path stands. */
static uint32_t depth_of(struct slice path)
{
    uint32_t depth = path.size > 0;

    for (size_t i = 0; i < path.size; i++)
        depth += path.data[i] == '/';
    return depth;
}

static err canonical(struct value_edits *edits, struct slice path, const json_t *value,
                     struct slice *ret_bytes)
{
    struct buf bytes = { 0 };

    if (depth_of(path) > JSON_DEPTH_MAX ||
        json_canon_write_at(value, depth_of(path), &bytes) != ERR_OK) {
        buf_deinit(&bytes);
        return wrong(edits, "JSON nested at most 64 deep");
    }
    *ret_bytes = arena_copy(edits->arena, buf_slice(&bytes));
    buf_deinit(&bytes);
    return ERR_OK;
}

static err add_leaf(struct value_edits *edits, struct slice path, const json_t *value)
{
    struct slice bytes;
    err e = canonical(edits, path, value, &bytes);

    return e == ERR_OK ? value_add(edits, &(struct merge_edit){ .path = path, .value = bytes }) : e;
}

err value_whole(struct value_edits *edits, const json_t *value)
{
    return add_leaf(edits, (struct slice){ 0 }, value);
}

/* RFC 6901, section 3. */
static struct slice path_within(struct arena *arena, struct slice path, const char *name)
{
    struct buf bytes = { 0 };

    buf_append(&bytes, path.data, path.size);
    if (path.size > 0)
        buf_put_u8(&bytes, '/');
    for (const char *at = name; *at != 0; at++) {
        if (*at == '~' || *at == '/') {
            buf_put_u8(&bytes, '~');
            buf_put_u8(&bytes, *at == '~' ? '0' : '1');
        } else {
            buf_put_u8(&bytes, (uint8_t)*at);
        }
    }
    struct slice copy = arena_copy(arena, buf_slice(&bytes));

    buf_deinit(&bytes);
    return copy;
}

err value_leaves(struct value_edits *edits, struct slice path, const json_t *value, bool patch)
{
    const char *name;
    json_t *member;
    err e = ERR_OK;

    if (path.size > 0 && patch && json_is_null(value))
        return value_add(edits, &(struct merge_edit){ .path = path, .remove = true });
    if (path.size > 0 && (!json_is_object(value) || (!patch && json_object_size(value) == 0)))
        return add_leaf(edits, path, value);
    if (!json_is_object(value))
        return wrong(edits, "a JSON object");
    json_object_foreach((json_t *)(uintptr_t)value, name, member)
    {
        if (name[0] == 0)
            return wrong(edits, "names of at least a byte");
        e = value_leaves(edits, path_within(edits->arena, path, name), member, patch);
        if (e != ERR_OK)
            return e;
    }
    return e;
}

/* ---- to JSON ---- */

/* What stands in a cell was written in canonical form; disks rot. */
static json_t *parse(const struct merge_cell *cell)
{
    const char *why;
    json_t *value = json_canon_parse(merge_cell_value(cell), &why);

    return value != NULL ? value : json_null();
}

/* One name of a path, unescaped; returns what follows it. */
static struct slice name_next(struct slice path, char ret_name[MERGE_PATH_BYTES_MAX + 1])
{
    size_t at = 0, size = 0;

    while (at < path.size && path.data[at] != '/') {
        uint8_t c = path.data[at++];
        if (c == '~' && at < path.size)
            c = path.data[at++] == '0' ? '~' : '/';
        ret_name[size++] = (char)c;
    }
    ret_name[size] = 0;
    at += at < path.size;
    return (struct slice){ path.data + at, path.size - at };
}

static void put_leaf(json_t *top, const struct merge_cell *cell)
{
    struct slice path = merge_cell_path(cell);
    char name[MERGE_PATH_BYTES_MAX + 1];
    json_t *object = top;

    for (path = name_next(path, name); path.size > 0; path = name_next(path, name)) {
        json_t *inner = json_object_get(object, name);
        if (!json_is_object(inner)) {
            (void)json_object_set_new(object, name, json_object());
            inner = json_object_get(object, name);
        }
        if (inner == NULL)
            return;
        object = inner;
    }
    (void)json_object_set_new(object, name, parse(cell));
}

static json_t *json_of(const struct merge_record *record, const struct merge_view *view,
                       uint64_t now_ms)
{
    json_t *top = record->policy == MERGE_POLICY_SET ? json_array() : json_object();

    for (uint32_t i = 0; i < view->count; i++) {
        struct slice path = merge_cell_path(view->cells[i]);
        const char *text = (const char *)path.data;
        int64_t sum = INT64_MAX; /* Of what does not fit. */

        if (record->policy == MERGE_POLICY_SET) {
            json_array_append_new(top, json_stringn(text, path.size));
        } else if (record->policy == MERGE_POLICY_COUNTER) {
            (void)!merge_counter_sum(record, path, now_ms, &sum);
            json_object_setn_new(top, text, path.size, json_integer(sum));
        } else {
            put_leaf(top, view->cells[i]);
        }
    }
    return top;
}

/* The latest of the siblings; of `last_write` there is one. */
static const struct merge_cell *latest(const struct merge_view *view)
{
    const struct merge_cell *found = view->cells[0];

    for (uint32_t i = 1; i < view->count; i++)
        found = merge_cell_order(view->cells[i], found) > 0 ? view->cells[i] : found;
    return found;
}

static bool is_whole(const struct merge_record *record)
{
    return record->policy == MERGE_POLICY_LWW || record->policy == MERGE_POLICY_VECTOR;
}

json_t *value_json(const struct merge_record *record, uint64_t now_ms)
{
    struct merge_view view;
    json_t *json = NULL;

    merge_view_init(&view, record, now_ms);
    if (view.count > 0)
        json = is_whole(record) ? parse(latest(&view)) : json_of(record, &view, now_ms);
    merge_view_deinit(&view);
    return json;
}

/* ---- to JSON, without a tree: cells hold canonical text, in the order of their paths ---- */

static struct slice first_name(struct slice path)
{
    const uint8_t *slash = memchr(path.data, '/', path.size);

    return (struct slice){ path.data, slash != NULL ? (size_t)(slash - path.data) : path.size };
}

static struct slice names_after(struct slice path, struct slice name)
{
    size_t skipped = name.size + (name.size < path.size);

    return (struct slice){ path.data + skipped, path.size - skipped };
}

/* What both paths begin with goes. False: the names that then differ are not in the order of
 * canonical JSON, or one of the paths has no more. */
static bool skip_common(struct slice *before, struct slice *path, uint32_t *depth)
{
    struct slice was = first_name(*before), name = first_name(*path);

    while (before->size > 0 && path->size > 0 && slice_equal(was, name)) {
        *before = names_after(*before, was);
        *path = names_after(*path, name);
        *depth += 1;
        was = first_name(*before);
        name = first_name(*path);
    }
    return before->size > 0 && path->size > 0 && slice_compare(was, name) < 0;
}

static void close_objects(uint32_t count, struct buf *out)
{
    for (uint32_t i = 0; i < count; i++)
        buf_put_u8(out, '}');
}

/* `"a":{"b":` of "a/b". */
static void open_names(struct slice path, struct buf *out)
{
    for (;;) {
        struct slice name = first_name(path);

        json_canon_write_string(name, out);
        buf_put_u8(out, ':');
        if (name.size == path.size)
            return;
        buf_put_u8(out, '{');
        path = names_after(path, name);
    }
}

/* False: not so simple, and `out` holds a part. Names with ~ are in the order of other bytes. */
static bool print_leaves(const struct merge_view *view, struct buf *out)
{
    struct slice before = { 0 };

    buf_put_u8(out, '{');
    for (uint32_t i = 0; i < view->count; i++) {
        struct slice path = merge_cell_path(view->cells[i]), rest = path, rest_before = before;
        uint32_t common = 0;

        if (path.size == 0 || memchr(path.data, '~', path.size) != NULL ||
            (i > 0 && !skip_common(&rest_before, &rest, &common)))
            return false;
        if (i > 0) {
            close_objects(depth_of(before) - common - 1, out);
            buf_put_u8(out, ',');
        }
        open_names(rest, out);
        struct slice value = merge_cell_value(view->cells[i]);

        buf_append(out, value.data, value.size);
        before = path;
    }
    close_objects(depth_of(before), out);
    return true;
}

static void print_json(json_t *json, struct buf *out)
{
    if (json_canon_write(json, out) != ERR_OK) {
        buf_clear(out);
        buf_append(out, "null", 4);
    }
    json_decref(json);
}

static char *print(const struct merge_record *record, const struct merge_view *view,
                   uint64_t now_ms, struct arena *arena)
{
    if (is_whole(record))
        return arena_text(arena, merge_cell_value(latest(view)));

    struct buf bytes = { 0 };

    if (record->policy != MERGE_POLICY_MERGE || !print_leaves(view, &bytes)) {
        buf_clear(&bytes);
        print_json(json_of(record, view, now_ms), &bytes);
    }
    char *text = arena_text(arena, buf_slice(&bytes));

    buf_deinit(&bytes);
    return text;
}

static int later_first(const void *a, const void *b)
{
    const struct merge_cell *const *x = a;
    const struct merge_cell *const *y = b;

    return merge_cell_order(*y, *x);
}

static void put_siblings(Holdfast__V1__Document *document, struct merge_view *view,
                         struct arena *arena)
{
    qsort(view->cells, view->count, sizeof *view->cells, later_first);
    document->n_siblings = view->count;
    document->siblings =
        arena_messages(arena, &holdfast__v1__document_sibling__descriptor, view->count);
    for (uint32_t i = 0; i < view->count; i++) {
        const struct merge_cell *cell = view->cells[i];

        document->siblings[i]->json = arena_text(arena, merge_cell_value(cell));
        document->siblings[i]->written_at_ms = (int64_t)(cell->hlc >> HLC_COUNT_BITS);
        document->siblings[i]->expires_at_ms = (int64_t)cell->expires_ms;
    }
}

/* A view has one of the increments that make up a sum; the times are those of all. */
static void put_times(Holdfast__V1__Document *document, const struct merge_record *record,
                      const struct merge_view *view, uint64_t now_ms)
{
    bool sums = record->policy == MERGE_POLICY_COUNTER;
    uint32_t count = sums ? record->count : view->count;
    uint64_t written_ms = 0, expires_ms = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct merge_cell *cell = sums ? record->cells[i] : view->cells[i];

        if (sums && cell->expires_ms != 0 && cell->expires_ms <= now_ms)
            continue;
        if (written_ms < cell->hlc >> HLC_COUNT_BITS)
            written_ms = cell->hlc >> HLC_COUNT_BITS;
        if (cell->expires_ms != 0 && (expires_ms == 0 || cell->expires_ms < expires_ms))
            expires_ms = cell->expires_ms;
    }
    document->written_at_ms = (int64_t)written_ms;
    document->expires_at_ms = (int64_t)expires_ms;
}

Holdfast__V1__Document *value_document(const struct merge_record *record, bool some,
                                       uint64_t now_ms, struct arena *arena)
{
    struct merge_view view;
    Holdfast__V1__Document *document = NULL;

    merge_view_init(&view, record, now_ms);
    if (view.count > 0) {
        document = (void *)arena_message(arena, &holdfast__v1__document__descriptor);
        put_times(document, record, &view, now_ms);
        if (record->policy == MERGE_POLICY_VECTOR && (view.count > 1 || some))
            put_siblings(document, &view, arena);
        document->json = print(record, &view, now_ms, arena);
    }
    merge_view_deinit(&view);
    return document;
}
