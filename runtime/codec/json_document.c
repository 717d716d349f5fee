#include "runtime/codec/json_document.h"

#include <string.h>

#include "runtime/codec/codec_scope.h"

struct walk {
    const uint8_t *at;
    const uint8_t *end;
    struct json_flaw *flaw;
    unsigned depth;
    uint64_t *objects; /* Bit d: the value open at depth d is an object. */
};

#define WORD_BITS 64u

static bool fail_at(struct walk *walk, const char *why, const char *limit, const uint8_t *at)
{
    *walk->flaw = (struct json_flaw){ why, limit, at };
    return false;
}

static void skip_space(struct walk *walk)
{
    while (walk->at < walk->end &&
           (*walk->at == ' ' || *walk->at == '\n' || *walk->at == '\r' || *walk->at == '\t'))
        walk->at++;
}

static uint8_t peek(const struct walk *walk)
{
    return walk->at < walk->end ? *walk->at : 0;
}

static bool walk_string(struct walk *walk)
{
    struct json_string string;

    return json_text_string(&walk->at, walk->end, &string, walk->flaw) &&
           (!string.escaped || json_text_check_escapes(string.raw, walk->flaw));
}

/* A number, or one of the three words. */
static bool walk_scalar(struct walk *walk)
{
    static const char *const words[] = { "true", "false", "null" };
    const uint8_t *from = walk->at;
    const uint8_t *behind = json_number_end(walk->at, walk->end);

    for (size_t i = 0; behind == NULL && i < sizeof words / sizeof words[0]; i++) {
        size_t size = strlen(words[i]);
        if ((size_t)(walk->end - from) >= size && memcmp(from, words[i], size) == 0)
            behind = from + size;
    }
    if (behind == NULL || (behind < walk->end && json_is_word_byte(*behind)))
        return fail_at(walk, "not a JSON value", "a JSON value", from);
    walk->at = behind;
    return true;
}

/* The name of a member and the colon behind it. */
static bool walk_name(struct walk *walk)
{
    skip_space(walk);
    if (peek(walk) != '"')
        return fail_at(walk, "expected a member's name", "\"", walk->at);
    if (!walk_string(walk))
        return false;
    skip_space(walk);
    if (peek(walk) != ':')
        return fail_at(walk, "expected : behind a member's name", ":", walk->at);
    walk->at++;
    return true;
}

/* At '{' or '['. *ret_empty: it was closed at once, and is a whole value. */
static bool walk_open(struct walk *walk, bool *ret_empty)
{
    bool is_object = *walk->at == '{';

    if (walk->depth == CODEC_DOCUMENT_DEPTH_MAX)
        return fail_at(walk, "a document nested too deeply", "4096", walk->at);
    walk->at++;
    skip_space(walk);
    *ret_empty = peek(walk) == (is_object ? '}' : ']');
    if (*ret_empty) {
        walk->at++;
        return true;
    }
    uint64_t *word = &walk->objects[walk->depth / WORD_BITS];
    uint64_t bit = 1ull << walk->depth % WORD_BITS;
    *word = is_object ? *word | bit : *word & ~bit;
    walk->depth++;
    return !is_object || walk_name(walk);
}

static bool is_in_object(const struct walk *walk)
{
    unsigned inner = walk->depth - 1;

    return (walk->objects[inner / WORD_BITS] >> inner % WORD_BITS & 1) != 0;
}

/* Behind a value: what it stands in goes on, or ends. *ret_more: a value follows. */
static bool walk_on(struct walk *walk, bool *ret_more)
{
    *ret_more = false;
    while (walk->depth > 0 && !*ret_more) {
        bool is_object = is_in_object(walk);
        skip_space(walk);
        uint8_t c = peek(walk);
        if (c != ',' && c != (is_object ? '}' : ']'))
            return is_object ? fail_at(walk, "expected , or }", ", or }", walk->at)
                             : fail_at(walk, "expected , or ]", ", or ]", walk->at);
        walk->at++;
        if (c != ',') {
            walk->depth--;
            continue;
        }
        if (is_object && !walk_name(walk))
            return false;
        *ret_more = true;
    }
    return true;
}

const uint8_t *json_document_end(const uint8_t *at, const uint8_t *end, struct json_flaw *ret_flaw)
{
    uint64_t objects[CODEC_DOCUMENT_DEPTH_MAX / WORD_BITS];
    struct walk walk = { .at = at, .end = end, .flaw = ret_flaw, .objects = objects };
    bool more = true;

    while (more) {
        bool whole = true;
        skip_space(&walk);
        uint8_t c = peek(&walk);
        bool good = c == '"'               ? walk_string(&walk)
                    : c == '{' || c == '[' ? walk_open(&walk, &whole)
                                           : walk_scalar(&walk);
        if (!good || (whole && !walk_on(&walk, &more)))
            return NULL;
    }
    return walk.at;
}

bool json_document_is_whole(struct slice text)
{
    const uint8_t *end = text.data + text.size;
    struct json_flaw flaw;

    return text.size > 0 && strchr(" \t\r\n", *text.data) == NULL &&
           json_document_end(text.data, end, &flaw) == end;
}
