#include "runtime/codec/json_scan.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/nearest.h"

#define ESCAPE_BYTES 6 /* \uXXXX */

/* How many bytes the one value has that begins at `from`: what stands behind it may be a secret,
 * and is not shown. Of an object or an array only what opens it. */
static size_t value_size(const uint8_t *from, const uint8_t *end)
{
    const uint8_t *at = from + 1;
    bool is_text = *from == '"';
    bool is_escape = *from == '\\';

    if (*from == '{' || *from == '[')
        return 1;
    while (at < end && (is_text ? *at != '"' : strchr(",:]}\" \t\r\n", *at) == NULL))
        at += is_text && *at == '\\' && at + 1 < end ? 2 : 1;
    if (is_escape && at - from > ESCAPE_BYTES)
        return ESCAPE_BYTES;
    return (size_t)(at - from) + (is_text && at < end);
}

err json_fail(struct json_in *in, const char *message, const char *limit, const uint8_t *from)
{
    struct codec_error *error = &in->scope->error;

    *error = (struct codec_error){ 0 };
    json_path_print(in->path, in->end, in->scope);
    snprintf(error->message, sizeof error->message, "%s", message);
    snprintf(error->limit, sizeof error->limit, "%s", limit);
    if (from != NULL && from < in->end)
        nearest_show((struct slice){ from, value_size(from, in->end) }, error->value);
    return ERR_INVALID;
}

err json_fail_large(struct json_in *in, const char *message, size_t limit)
{
    char text[32];

    snprintf(text, sizeof text, "%zu", limit);
    (void)json_fail(in, message, text, NULL);
    return ERR_TOO_LARGE;
}

void *json_alloc(struct json_in *in, size_t size_bytes)
{
    if (size_bytes > in->memory_left) {
        (void)json_fail_large(in, "the message needs too much memory", in->memory_max);
        return NULL;
    }
    in->memory_left -= size_bytes;
    return arena_alloc(in->scope->arena, size_bytes);
}

bool json_take_word(struct json_in *in, const char *word)
{
    size_t size = strlen(word);

    if ((size_t)(in->end - in->at) < size || memcmp(in->at, word, size) != 0)
        return false;
    if (in->at + size < in->end && json_is_word_byte(in->at[size]))
        return false;
    in->at += size;
    return true;
}

static err fail_flaw(struct json_in *in, const struct json_flaw *flaw)
{
    return json_fail(in, flaw->why, flaw->limit, flaw->at);
}

err json_scan_string(struct json_in *in, struct slice *ret_text)
{
    struct json_string string;
    struct json_flaw flaw;

    if (!json_text_string(&in->at, in->end, &string, &flaw))
        return fail_flaw(in, &flaw);
    if (!string.escaped)
        return *ret_text = string.raw, ERR_OK;
    uint8_t *text = json_alloc(in, string.raw.size);
    size_t size;
    if (text == NULL)
        return ERR_TOO_LARGE;
    if (!json_text_unescape(string.raw, text, &size, &flaw))
        return fail_flaw(in, &flaw);
    *ret_text = (struct slice){ text, size };
    return ERR_OK;
}

err json_scan_number(struct json_in *in, struct slice *ret_text)
{
    const uint8_t *end = json_number_end(in->at, in->end);

    if (end == NULL || (end < in->end && json_is_word_byte(*end)))
        return json_fail(in, "not a number", "a number", in->at);
    *ret_text = (struct slice){ in->at, (size_t)(end - in->at) };
    in->at = end;
    return ERR_OK;
}
