#include "node/core/codec/json_canon.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

/* Counts brackets outside strings, before jansson recurses over them. */
static bool nests_too_deep(struct slice text)
{
    uint32_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > JSON_DEPTH_MAX)
                return true;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

static const char *explain(const json_error_t *error)
{
    switch (json_error_code(error)) {
    case json_error_duplicate_key:
        return "JSON without duplicate members";
    case json_error_numeric_overflow:
        return "JSON whose integers fit int64 and whose numbers fit a double";
    case json_error_invalid_utf8:
        return "JSON in UTF-8";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "JSON without NUL characters";
    default:
        return "valid JSON";
    }
}

json_t *json_canon_parse(struct slice text, const char **ret_why)
{
    json_error_t error;

    if (nests_too_deep(text)) {
        *ret_why = "JSON nested at most 64 deep";
        return NULL;
    }
    json_t *value = json_loadb((const char *)text.data, text.size,
                               JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (value == NULL)
        *ret_why = explain(&error);
    return value;
}

void json_canon_write_string(struct slice text, struct buf *out)
{
    static const char digits[] = "0123456789abcdef";

    buf_put_u8(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        static const char named[] = "btn.fr"; /* For 8 to 13; 11 has no name. */
        if (c == '"' || c == '\\') {
            buf_put_u8(out, '\\');
            buf_put_u8(out, c);
        } else if (c >= 8 && c <= 13 && c != 11) {
            buf_put_u8(out, '\\');
            buf_put_u8(out, (uint8_t)named[c - 8]);
        } else if (c < 0x20) {
            buf_append(out, "\\u00", 4);
            buf_put_u8(out, (uint8_t)digits[c >> 4]);
            buf_put_u8(out, (uint8_t)digits[c & 15]);
        } else {
            buf_put_u8(out, c);
        }
    }
    buf_put_u8(out, '"');
}

/* The fewest digits that read back as the same double; without exponent from 1e-6 to below 1e17;
 * always marked as not an integer. */
static void write_real(double number, struct buf *out)
{
    char text[48];
    int digits = 0;
    int length;

    do {
        length = snprintf(text, sizeof text, "%.*e", digits, number);
        CHECK(length > 0 && (size_t)length < sizeof text);
    } while (strtod(text, NULL) != number && ++digits < 17);
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= -6 && exponent < 17) {
        int decimals = digits > exponent ? digits - exponent : 0;
        length = snprintf(text, sizeof text, "%.*f", decimals, number);
        CHECK(length > 0 && (size_t)length < sizeof text);
    }
    buf_append(out, text, (size_t)length);
    if (strpbrk(text, ".e") == NULL)
        buf_append(out, ".0", 2);
}

static int member_compare(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

static err write_value(const json_t *value, uint32_t depth, struct buf *out);

static err write_object(const json_t *object, uint32_t depth, struct buf *out)
{
    size_t count = json_object_size(object);
    const char **names = mem_alloc(sizeof(char *) * (count + 1));
    size_t place = 0;
    const char *name;
    json_t *member;
    err e = ERR_OK;

    json_object_foreach((json_t *)(uintptr_t)object, name, member) names[place++] = name;
    CHECK(place == count);
    qsort(names, count, sizeof(char *), member_compare);
    buf_put_u8(out, '{');
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        if (i > 0)
            buf_put_u8(out, ',');
        json_canon_write_string(slice_from_text(names[i]), out);
        buf_put_u8(out, ':');
        e = write_value(json_object_get(object, names[i]), depth + 1, out);
    }
    buf_put_u8(out, '}');
    free(names);
    return e;
}

static err write_array(const json_t *array, uint32_t depth, struct buf *out)
{
    buf_put_u8(out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            buf_put_u8(out, ',');
        err e = write_value(json_array_get(array, i), depth + 1, out);
        if (e != ERR_OK)
            return e;
    }
    buf_put_u8(out, ']');
    return ERR_OK;
}

/* Recurses at most JSON_DEPTH_MAX deep. */
static err write_value(const json_t *value, uint32_t depth, struct buf *out)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return depth < JSON_DEPTH_MAX ? write_object(value, depth, out) : ERR_TOO_LARGE;
    case JSON_ARRAY:
        return depth < JSON_DEPTH_MAX ? write_array(value, depth, out) : ERR_TOO_LARGE;
    case JSON_STRING:
        json_canon_write_string(
            (struct slice){ (const uint8_t *)json_string_value(value), json_string_length(value) },
            out);
        return ERR_OK;
    case JSON_INTEGER:
        buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return ERR_OK;
    case JSON_REAL:
        write_real(json_real_value(value), out);
        return ERR_OK;
    case JSON_TRUE:
        buf_append(out, "true", 4);
        return ERR_OK;
    case JSON_FALSE:
        buf_append(out, "false", 5);
        return ERR_OK;
    case JSON_NULL:
        buf_append(out, "null", 4);
        return ERR_OK;
    }
    CHECK(false);
    return ERR_INVALID;
}

err json_canon_write(const json_t *value, struct buf *out)
{
    return write_value(value, 0, out);
}

err json_canon_write_at(const json_t *value, uint32_t depth, struct buf *out)
{
    return write_value(value, depth, out);
}

err json_canon(struct slice text, struct buf *out, const char **ret_why)
{
    json_t *value = json_canon_parse(text, ret_why);

    if (value == NULL)
        return ERR_INVALID;
    err e = json_canon_write(value, out);
    json_decref(value);
    CHECK(e == ERR_OK);
    return ERR_OK;
}
