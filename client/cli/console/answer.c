#include "client/cli/console/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/utf8.h"

#define ERROR_PREFIX "ERROR_CODE_"
#define CODE_BYTES   80u

uint64_t answer_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_string(value))
        return strtoull(json_string_value(value), NULL, 10);
    return json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
}

int64_t answer_signed(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_string(value))
        return strtoll(json_string_value(value), NULL, 10);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : 0;
}

const char *answer_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* What is behind "error" of plain JSON, or "details" of Connect's. */
static const json_t *detail_of(const json_t *error)
{
    const json_t *plain = json_object_get(error, "error");
    const json_t *first = json_array_get(json_object_get(error, "details"), 0);

    return plain != NULL ? plain : json_object_get(first, "debug");
}

/* "SESSION_LOST", in either form of JSON. */
static const char *code_of(const json_t *detail, char *ret_code, size_t size)
{
    const char *code = answer_text(detail, "code");
    bool prefixed = strncmp(code, ERROR_PREFIX, strlen(ERROR_PREFIX)) == 0;

    snprintf(ret_code, size, "%s", prefixed ? code + strlen(ERROR_PREFIX) : code);
    for (char *at = ret_code; *at != 0; at++)
        *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
    return ret_code;
}

void error_code(struct slice body, char *ret_code, size_t size)
{
    json_t *error = json_loadb((const char *)body.data, body.size, 0, NULL);

    (void)code_of(detail_of(error), ret_code, size);
    json_decref(error);
}

static void append_printable(struct buf *out, const char *text)
{
    size_t size = strlen(text) + 5;
    char *shown = mem_zalloc(size);

    utf8_snippet(shown, size, slice_from_text(text));
    buf_append(out, shown, strlen(shown));
    free(shown);
}

bool error_format(struct slice body, struct buf *out)
{
    json_t *error = json_loadb((const char *)body.data, body.size, 0, NULL);
    const json_t *detail = detail_of(error);
    const json_t *wait_ms = json_object_get(detail, "retryAfterMs");
    const char *holder =
        answer_text(json_object_get(json_object_get(detail, "about"), "holder"), "incarnation");
    char code[CODE_BYTES];

    if (!json_is_object(error)) {
        json_decref(error);
        return false;
    }
    (void)code_of(detail, code, sizeof code);
    append_printable(out, code[0] != 0 ? code : answer_text(error, "code"));
    buf_printf(out, ": ");
    append_printable(out, answer_text(error, "message"));
    if (holder[0] != 0) {
        buf_printf(out, " (held by ");
        append_printable(out, holder);
        buf_printf(out, ")");
    }
    if (json_is_integer(wait_ms))
        buf_printf(out, " (retry after %lld ms)", (long long)json_integer_value(wait_ms));
    json_decref(error);
    return true;
}
