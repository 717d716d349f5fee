/*
 * Documents of players (node/core/codec/json_canon.h, json_edit.h; docs/profiles.md): one canonical
 * text for each value however it was written, merges as RFC 7396 has them, and typed steps.
 */
#include <string.h>

#include "node/core/codec/json_canon.h"
#include "node/core/codec/json_edit.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define DEPTH_MAX 4u
#define PARTS_MAX 3u
#define KIND(x)   HOLDFAST__V1__PATCH_KIND__PATCH_KIND_##x

/* As a caller may write it, and as it is stored. */
struct written {
    const char *given, *canonical;
};

/* ---- one value in two texts ---- */

static const struct written numbers[] = {
    { "0", "0" },
    { "-0", "0" },
    { "17", "17" },
    { "-9223372036854775808", "-9223372036854775808" },
    { "9223372036854775807", "9223372036854775807" },
    { "1.50", "1.5" },
    { "1E2", "100.0" },
    { "0.1", "0.1" },
    { "0.30000000000000004", "0.30000000000000004" },
    { "1e-6", "0.000001" },
    { "1e-7", "1e-07" },
    { "2.50e-3", "0.0025" },
    { "1e16", "10000000000000000.0" },
    { "1e17", "1e+17" },
    { "-12.5e300", "-1.25e+301" },
    { "123456789.125", "123456789.125" },
};
static const struct written pieces[] = {
    { "\\u0041", "A" },        { "\\/", "/" },
    { "\\b", "\\b" },          { "\\u0008", "\\b" },
    { "\\u000b", "\\u000b" },  { "\\u001F", "\\u001f" },
    { "\\\"", "\\\"" },        { "\\\\", "\\\\" },
    { "\\u000d", "\\r" },      { "\\t", "\\t" },
    { "\\u000A", "\\n" },      { "\\f", "\\f" },
    { "\\u000E", "\\u000e" },  { "\\u0007", "\\u0007" },
    { "\\u00e9", "\xc3\xa9" }, { "\\ud83d\\ude00", "\xf0\x9f\x98\x80" },
    { "\x7f", "\x7f" },        { "[{", "[{" },
};
static const char *const names[] = { "", "A", "B", "a", "aa", "ab", "b" }; /* Sorted by bytes. */

static void put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

static void space(struct rsim *sim, struct buf *given)
{
    static const char *const spaces[] = { "", "", "", " ", "\n", "\t ", "\r\n" };

    put(given, RSIM_PICK(sim, spaces));
}

static void write_value(struct rsim *sim, uint32_t depth, struct buf *given, struct buf *canonical);

static void write_text(struct rsim *sim, struct buf *given, struct buf *canonical)
{
    uint64_t count = rsim_between(sim, 0, 4);

    put(given, "\"");
    put(canonical, "\"");
    for (uint64_t i = 0; i < count; i++) {
        const struct written *piece = &RSIM_PICK(sim, pieces);
        put(given, piece->given);
        put(canonical, piece->canonical);
    }
    put(given, "\"");
    put(canonical, "\"");
}

static void write_array(struct rsim *sim, uint32_t depth, struct buf *given, struct buf *canonical)
{
    uint64_t count = rsim_between(sim, 0, 3);

    put(given, "[");
    put(canonical, "[");
    for (uint64_t i = 0; i < count; i++) {
        put(given, i > 0 ? "," : "");
        put(canonical, i > 0 ? "," : "");
        write_value(sim, depth + 1, given, canonical);
    }
    space(sim, given);
    put(given, "]");
    put(canonical, "]");
}

/* In the text given, the members stand in another order. */
static void write_object(struct rsim *sim, uint32_t depth, struct buf *given, struct buf *canonical)
{
    struct buf members[sizeof names / sizeof names[0]] = { 0 };
    uint32_t count = 0;

    put(canonical, "{");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!rsim_chance(sim, 35))
            continue;
        put(canonical, count > 0 ? "," : "");
        buf_printf(canonical, "\"%s\":", names[i]);
        buf_printf(&members[count], "\"%s\"", names[i]);
        space(sim, &members[count]);
        put(&members[count], ":");
        write_value(sim, depth + 1, &members[count], canonical);
        count++;
    }
    put(canonical, "}");
    uint64_t first = count > 0 ? rsim_between(sim, 0, count - 1) : 0;
    put(given, "{");
    for (uint32_t i = 0; i < count; i++) {
        const struct buf *member = &members[(first + i) % count];
        put(given, i > 0 ? "," : "");
        buf_append(given, member->data, member->size);
    }
    space(sim, given);
    put(given, "}");
    for (uint32_t i = 0; i < count; i++)
        buf_deinit(&members[i]);
}

static void write_value(struct rsim *sim, uint32_t depth, struct buf *given, struct buf *canonical)
{
    static const char *const words[] = { "true", "false", "null" };
    uint64_t die = rsim_between(sim, 0, depth < DEPTH_MAX ? 7 : 3);

    space(sim, given);
    if (die == 0) {
        const char *word = RSIM_PICK(sim, words);
        put(given, word);
        put(canonical, word);
    } else if (die <= 2) {
        const struct written *number = &RSIM_PICK(sim, numbers);
        put(given, number->given);
        put(canonical, number->canonical);
    } else if (die == 3) {
        write_text(sim, given, canonical);
    } else if (die == 4) {
        write_array(sim, depth, given, canonical);
    } else {
        write_object(sim, depth, given, canonical);
    }
    space(sim, given);
}

static void canon_check(struct rsim *sim, struct slice given, struct slice wanted)
{
    struct buf out = { 0 };
    const char *why = NULL;

    PROMISE(sim, json_canon(given, &out, &why) == ERR_OK, "%.*s is refused: %s", (int)given.size,
            (const char *)given.data, why);
    PROMISE(sim, slice_equal(buf_slice(&out), wanted), "%.*s becomes %.*s, not %.*s",
            (int)given.size, (const char *)given.data, (int)out.size, (const char *)out.data,
            (int)wanted.size, (const char *)wanted.data);
    buf_deinit(&out);
}

static void canon_turn(struct rsim *sim)
{
    struct buf given = { 0 }, canonical = { 0 };

    write_value(sim, 0, &given, &canonical);
    canon_check(sim, buf_slice(&given), buf_slice(&canonical));
    canon_check(sim, buf_slice(&canonical), buf_slice(&canonical));
    buf_deinit(&given);
    buf_deinit(&canonical);
}

static void refused_turn(struct rsim *sim)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "{\"a\":1,\"a\":2}", "JSON without duplicate members" },
        { "9223372036854775808", "JSON whose integers fit int64 and whose numbers fit a double" },
        { "1e999", "JSON whose integers fit int64 and whose numbers fit a double" },
        { "\"\xff\"", "JSON in UTF-8" },
        { "\"\\u0000\"", "JSON without NUL characters" },
        { "{\"\\u0000\":1}", "JSON without NUL characters" },
        { "", "valid JSON" },
        { "01", "valid JSON" },
        { "{\"a\":1,}", "valid JSON" },
        { "[1] 2", "valid JSON" },
    };
    struct buf out = { 0 }, deep = { 0 };
    const char *why = NULL;
    uint64_t at = rsim_between(sim, 0, sizeof bad / sizeof bad[0] - 1);
    uint64_t depth = rsim_about(sim, JSON_DEPTH_MAX);

    PROMISE(sim, json_canon(slice_from_text(bad[at].text), &out, &why) == ERR_INVALID,
            "%s is taken", bad[at].text);
    PROMISE(sim, why != NULL && strcmp(why, bad[at].why) == 0, "%s: %s", bad[at].text, why);
    put(&deep, "");
    for (uint64_t i = 0; i < depth; i++)
        put(&deep, rsim_chance(sim, 50) || i + 1 == depth ? "[" : "{\"\\\"[[{\":");
    struct buf whole = { 0 };
    buf_append(&whole, deep.data, deep.size);
    for (size_t i = deep.size, quoted = 0; i-- > 0;) { /* Closed from the inside out. */
        if (deep.data[i] == '"' && (i == 0 || deep.data[i - 1] != '\\'))
            quoted = !quoted;
        else if (!quoted && deep.data[i] == '[')
            put(&whole, "]");
        else if (!quoted && deep.data[i] == '{')
            put(&whole, "}");
    }
    err e = json_canon(buf_slice(&whole), &out, &why);
    PROMISE(sim, (e == ERR_OK) == (depth <= JSON_DEPTH_MAX), "nested %llu deep: %d",
            (unsigned long long)depth, (int)e);
    if (e != ERR_OK)
        PROMISE(sim, strcmp(why, "JSON nested at most 64 deep") == 0, "%s", why);
    sim->counts.documents_refused++;
    buf_deinit(&whole);
    buf_deinit(&deep);
    buf_deinit(&out);
}

/* ---- merges ---- */

static json_t *any_value(struct rsim *sim)
{
    struct buf given = { 0 }, canonical = { 0 };
    const char *why;

    write_value(sim, 0, &given, &canonical);
    json_t *value = json_canon_parse(buf_slice(&given), &why);
    CHECK(value != NULL);
    buf_deinit(&given);
    buf_deinit(&canonical);
    return value;
}

/* RFC 7396, said with new values alone. */
static json_t *merged(const json_t *target, const json_t *patch)
{
    const char *name;
    json_t *member;

    if (!json_is_object(patch))
        return json_deep_copy(patch);
    json_t *made = json_object();
    if (json_is_object(target)) {
        json_object_foreach((json_t *)(uintptr_t)target, name, member)
        {
            if (json_object_get(patch, name) == NULL)
                json_object_set_new(made, name, json_deep_copy(member));
        }
    }
    json_object_foreach((json_t *)(uintptr_t)patch, name, member)
    {
        if (!json_is_null(member))
            json_object_set_new(
                made, name,
                merged(json_is_object(target) ? json_object_get(target, name) : NULL, member));
    }
    return made;
}

static void merge_turn(struct rsim *sim)
{
    json_t *target = rsim_chance(sim, 90) ? any_value(sim) : NULL, *patch = any_value(sim);
    json_t *wanted = merged(target, patch);
    json_t *got = json_merge(target, patch);

    PROMISE(sim, json_equal(got, wanted), "a merge comes to something else");
    sim->counts.documents_merged++;
    json_decref(got);
    json_decref(wanted);
    json_decref(patch);
}

/* ---- steps ---- */

static const struct written parts[] = {
    /* As a pointer has it, and the member's name. */
    { "a", "a" }, { "b", "b" }, { "~0x", "~x" }, { "a~1b", "a/b" }, { "~01", "~1" }, { "", "" },
};

/* What is to stand there; NULL: refused. `old` NULL: nothing stands there. */
static json_t *step_of(int kind, json_t *old, json_t *value)
{
    if (kind == (int)KIND(SET))
        return json_incref(value);
    if (kind == (int)KIND(MAX) || kind == (int)KIND(INCREMENT)) {
        json_int_t stands = json_integer_value(old), given = json_integer_value(value);

        if (old != NULL && !json_is_integer(old))
            return NULL;
        if (kind == (int)KIND(MAX))
            return json_integer(old != NULL && stands > given ? stands : given);
        if (given > 0 ? stands > INT64_MAX - given : stands < INT64_MIN - given)
            return NULL;
        return json_integer(stands + given);
    }
    if (old != NULL && !json_is_array(old))
        return NULL;
    json_t *made = json_array();
    bool has = false;
    for (size_t i = 0; i < json_array_size(old); i++) {
        bool same = json_equal(json_array_get(old, i), value);
        has |= same;
        if (!same || kind != (int)KIND(DISCARD))
            json_array_append(made, json_array_get(old, i));
    }
    if (kind == (int)KIND(APPEND) || (kind == (int)KIND(ADD) && !has))
        json_array_append(made, value);
    return made;
}

/* Changes `document`. False: refused. */
static bool step(json_t *document, const uint64_t *path, uint32_t depth, int kind, json_t *value)
{
    bool takes = kind == (int)KIND(REMOVE) || kind == (int)KIND(DISCARD);
    json_t *at = document;

    for (uint32_t i = 0; i + 1 < depth; i++) {
        json_t *next = json_object_get(at, parts[path[i]].canonical);
        if (next == NULL && takes)
            return true;
        if (next == NULL && !json_is_object(at))
            return false;
        if (next == NULL) {
            next = json_object();
            json_object_set_new(at, parts[path[i]].canonical, next);
        }
        at = next;
    }
    const char *name = parts[path[depth - 1]].canonical;
    json_t *old = json_object_get(at, name);
    if (takes && old == NULL)
        return true;
    if (kind == (int)KIND(REMOVE))
        return json_object_del(at, name) == 0;
    json_t *made = step_of(kind, old, value);
    if (made == NULL || !json_is_object(at)) {
        json_decref(made);
        return false;
    }
    json_object_set_new(at, name, made);
    return true;
}

/* Members are few, so that steps meet one another; integers stand at the ends of their range. */
static json_t *step_operand(struct rsim *sim, int kind)
{
    static const json_int_t ends[] = { 0, 1, -1, 5, INT64_MAX, INT64_MAX - 1, INT64_MIN };
    static const char *const elements[] = { "1", "2", "\"x\"", "{\"a\":[1]}", "null" };
    const char *why;

    if (kind == (int)KIND(MAX) || kind == (int)KIND(INCREMENT))
        return json_integer(RSIM_PICK(sim, ends));
    return json_canon_parse(slice_from_text(RSIM_PICK(sim, elements)), &why);
}

static void steps_turn(struct rsim *sim)
{
    json_t *document = json_object(), *model = json_object();

    for (uint32_t i = 0; i < 40; i++) {
        int kind = (int)rsim_between(sim, KIND(SET), KIND(DISCARD));
        json_t *value = kind == (int)KIND(REMOVE) ? NULL : step_operand(sim, kind);
        uint64_t path[PARTS_MAX];
        uint32_t depth = (uint32_t)rsim_between(sim, 1, 3);
        struct buf pointer = { 0 };
        const char *why = NULL;

        for (uint32_t k = 0; k < depth; k++) {
            path[k] = rsim_between(sim, 0, sizeof parts / sizeof parts[0] - 1);
            buf_printf(&pointer, "/%s", parts[path[k]].given);
        }
        json_t *next = json_deep_copy(model);
        bool done = step(next, path, depth, kind, value);
        err e = json_patch_step(&document, (Holdfast__V1__PatchKind)kind, buf_slice(&pointer),
                                value, &why);
        PROMISE(sim, (e == ERR_OK) == done, "a step of kind %d at %.*s: %d", kind,
                (int)pointer.size, (const char *)pointer.data, (int)e);
        PROMISE(sim, e == ERR_OK || (why != NULL && why[0] != 0), "refused without a reason");
        if (!done) { /* What a refused step leaves is never stored. */
            json_decref(next);
            next = json_deep_copy(model);
            json_decref(document);
            document = json_deep_copy(model);
        }
        PROMISE(sim, json_equal(document, next),
                "a step of kind %d at %.*s leaves another document", kind, (int)pointer.size,
                (const char *)pointer.data);
        json_decref(model);
        model = next;
        json_decref(value);
        buf_deinit(&pointer);
    }
    sim->counts.documents_stepped++;
    json_decref(document);
    json_decref(model);
}

/* Places in arrays. */
static void places_turn(struct rsim *sim)
{
    static const struct {
        const char *part;
        size_t index; /* SIZE_MAX: no place. */
    } places[] = { { "0", 0 },
                   { "2", 2 },
                   { "3", 3 },
                   { "-", 3 },
                   { "4", SIZE_MAX },
                   { "01", SIZE_MAX },
                   { "", SIZE_MAX },
                   { "x", SIZE_MAX },
                   { "0000000000", SIZE_MAX },
                   { ":", SIZE_MAX },
                   { "/", SIZE_MAX },
                   { "1x", SIZE_MAX },
                   { "10", SIZE_MAX },
                   { "1000000000", SIZE_MAX } };
    uint64_t at = rsim_between(sim, 0, sizeof places / sizeof places[0] - 1);
    bool removes = rsim_chance(sim, 40), far = rsim_chance(sim, 20);
    json_t *document = json_pack("{s:[i,i,i]}", "l", 1, 2, 3), *value = json_integer(9);
    char *path = arena_printf(&sim->arena, "/l/%s%s", places[at].part, far ? "/m" : "");
    const char *why = NULL;
    size_t index = places[at].index;

    err e = json_patch_step(&document, removes ? KIND(REMOVE) : KIND(SET), slice_from_text(path),
                            removes ? NULL : value, &why);
    json_t *list = json_object_get(document, "l");
    if (removes) {
        size_t left = !far && index < 3 ? 2 : 3;
        PROMISE(sim, e == ERR_OK && json_array_size(list) == left, "removed at %s", path);
    } else if (far) { /* A number has no members; behind the last place an object is made. */
        PROMISE(sim, (e == ERR_OK) == (index == 3), "set at %s: %d", path, (int)e);
    } else {
        PROMISE(sim, (e == ERR_OK) == (index != SIZE_MAX), "set at %s: %d", path, (int)e);
        PROMISE(sim, json_array_size(list) == (index == 3 ? 4u : 3u), "set at %s: %zu elements",
                path, json_array_size(list));
        PROMISE(sim, index == SIZE_MAX || json_integer_value(json_array_get(list, index)) == 9,
                "set elsewhere");
    }
    json_decref(document);
    json_decref(value);
}

static void pointers_turn(struct rsim *sim)
{
    static const struct {
        const char *text;
        bool good;
    } all[] = { { "", true },    { "/", true },    { "/a~0~1", true }, { "a", false },
                { "/~", false }, { "/~2", false }, { "/a~", false },   { "/~0~", false } };
    uint64_t at = rsim_between(sim, 0, sizeof all / sizeof all[0] - 1);
    uint64_t size = rsim_about(sim, PATCH_PATH_BYTES_MAX);
    uint64_t count = rsim_about(sim, JSON_DEPTH_MAX);
    char *text = arena_alloc(&sim->arena, size + 1);

    PROMISE(sim, (json_pointer_check(slice_from_text(all[at].text)) == ERR_OK) == all[at].good,
            "the pointer \"%s\"", all[at].text);
    memset(text, 'x', size);
    text[0] = '/';
    PROMISE(sim,
            (json_pointer_check((struct slice){ (uint8_t *)text, size }) == ERR_OK) ==
                (size <= PATCH_PATH_BYTES_MAX),
            "a pointer of %llu bytes", (unsigned long long)size);
    memset(text, '/', count);
    PROMISE(sim,
            (json_pointer_check((struct slice){ (uint8_t *)text, count }) == ERR_OK) ==
                (count <= JSON_DEPTH_MAX),
            "a pointer of %llu parts", (unsigned long long)count);
}

void room_documents(struct rsim *sim)
{
    for (uint32_t i = 0; i < 10; i++) {
        canon_turn(sim);
        merge_turn(sim);
        refused_turn(sim);
        places_turn(sim);
        pointers_turn(sim);
    }
    steps_turn(sim);
}
