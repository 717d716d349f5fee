#include "runtime/cluster/record_fields.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "runtime/cluster/incarnation.h"

__attribute__((format(printf, 2, 3))) static void refuse(struct record_fields *fields,
                                                         const char *format, ...)
{
    va_list args;

    if (fields->e != ERR_OK)
        return;
    fields->e = ERR_INVALID;
    size_t used =
        (size_t)snprintf(fields->why.text, sizeof fields->why.text, "%s record: ", fields->record);
    va_start(args, format);
    vsnprintf(fields->why.text + used, sizeof fields->why.text - used, format, args);
    va_end(args);
}

struct record_fields record_fields_open(const char *record, struct slice json)
{
    struct record_fields fields = { .record = record };
    json_error_t error;

    if (json.size > CLUSTER_RECORD_SIZE_MAX) {
        refuse(&fields, "%zu bytes, at most %d", json.size, (int)CLUSTER_RECORD_SIZE_MAX);
        fields.e = ERR_TOO_LARGE;
        return fields;
    }
    fields.object = json_loadb(json.size > 0 ? (const char *)json.data : "", json.size,
                               JSON_REJECT_DUPLICATES, &error);
    if (fields.object == NULL)
        refuse(&fields, "not JSON: %.100s at byte %d", error.text, error.position);
    else if (!json_is_object(fields.object))
        refuse(&fields, "not a JSON object");
    return fields;
}

err record_fields_close(struct record_fields *fields, struct record_error *ret_why)
{
    json_decref(fields->object);
    fields->object = NULL;
    if (fields->e != ERR_OK && ret_why != NULL)
        *ret_why = fields->why;
    return fields->e;
}

/* The field, or NULL with the error set. */
static const json_t *field_get(struct record_fields *fields, const char *name)
{
    if (fields->e != ERR_OK)
        return NULL;
    const json_t *value = json_object_get(fields->object, name);
    if (value == NULL)
        refuse(fields, "%s: missing", name);
    return value;
}

void record_text(struct record_fields *fields, const char *name, char *ret_text, size_t size)
{
    const json_t *value = field_get(fields, name);

    ret_text[0] = '\0';
    if (value == NULL)
        return;
    if (!json_is_string(value)) {
        refuse(fields, "%s: not a string", name);
        return;
    }
    size_t length = json_string_length(value);
    if (length >= size) {
        refuse(fields, "%s: %zu bytes, at most %zu", name, length, size - 1);
        return;
    }
    memcpy(ret_text, json_string_value(value), length + 1);
}

void record_text_or_empty(struct record_fields *fields, const char *name, char *ret_text,
                          size_t size)
{
    ret_text[0] = '\0';
    if (fields->object != NULL && json_object_get(fields->object, name) != NULL)
        record_text(fields, name, ret_text, size);
}

static uint64_t number_from(struct record_fields *fields, const char *name, const json_t *value)
{
    uint64_t number = 0;

    if (!json_is_string(value)) {
        refuse(fields, "%s: not a decimal string", name);
        return 0;
    }
    struct slice text = { (const uint8_t *)json_string_value(value), json_string_length(value) };
    if (decimal_parse(text, &number) != ERR_OK) {
        refuse(fields, "%s: \"%.32s\" is no decimal number below 2^64", name,
               json_string_value(value));
        return 0;
    }
    return number;
}

uint64_t record_u64(struct record_fields *fields, const char *name)
{
    const json_t *value = field_get(fields, name);

    return value != NULL ? number_from(fields, name, value) : 0;
}

uint64_t record_u64_or_zero(struct record_fields *fields, const char *name)
{
    bool there = fields->object != NULL && json_object_get(fields->object, name) != NULL;

    return there ? record_u64(fields, name) : 0;
}

uint64_t record_u64_if_any(struct record_fields *fields, const char *name)
{
    const json_t *value = fields->object != NULL ? json_object_get(fields->object, name) : NULL;
    struct slice text = { (const uint8_t *)json_string_value(value), json_string_length(value) };
    uint64_t number;

    return value != NULL && decimal_parse(text, &number) == ERR_OK ? number : 0;
}

void record_bytes_or_zero(struct record_fields *fields, const char *name, uint8_t *ret_bytes,
                          size_t size)
{
    const json_t *value = fields->object != NULL ? json_object_get(fields->object, name) : NULL;

    memset(ret_bytes, 0, size);
    if (value == NULL)
        return;
    struct slice text = { (const uint8_t *)json_string_value(value), json_string_length(value) };

    if (!json_is_string(value) || text.size > 2 * size ||
        hex_parse(text, text.size / 2, ret_bytes) != ERR_OK)
        refuse(fields, "%s: not hexadecimal text of at most %zu bytes", name, size);
}

int64_t record_i64(struct record_fields *fields, const char *name)
{
    uint64_t number = record_u64(fields, name);

    if (number > INT64_MAX) {
        refuse(fields, "%s: %" PRIu64 " is above 2^63 - 1", name, number);
        return 0;
    }
    return (int64_t)number;
}

uint32_t record_u32(struct record_fields *fields, const char *name)
{
    const json_t *value = field_get(fields, name);

    if (value == NULL)
        return 0;
    if (!json_is_integer(value)) {
        refuse(fields, "%s: not an integer", name);
        return 0;
    }
    json_int_t number = json_integer_value(value);
    if (number < 0 || number > UINT32_MAX) {
        refuse(fields, "%s: %" JSON_INTEGER_FORMAT " is not within 0 to 2^32 - 1", name, number);
        return 0;
    }
    return (uint32_t)number;
}

uint32_t record_u64_list(struct record_fields *fields, const char *name, uint64_t *ret_numbers,
                         uint32_t count_max)
{
    const json_t *value = field_get(fields, name);

    if (value == NULL)
        return 0;
    if (!json_is_array(value)) {
        refuse(fields, "%s: not an array", name);
        return 0;
    }
    size_t count = json_array_size(value);
    if (count > count_max) {
        refuse(fields, "%s: %zu items, at most %" PRIu32, name, count, count_max);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        ret_numbers[i] = number_from(fields, name, json_array_get(value, i));
    return (uint32_t)count;
}

uint32_t record_word(struct record_fields *fields, const char *name, const char *const *words,
                     uint32_t word_count)
{
    const json_t *value = field_get(fields, name);

    if (value == NULL)
        return 0;
    if (!json_is_string(value)) {
        refuse(fields, "%s: not a string", name);
        return 0;
    }
    for (uint32_t i = 0; i < word_count; i++) {
        if (strcmp(json_string_value(value), words[i]) == 0)
            return i;
    }
    refuse(fields, "%s: unknown value \"%.32s\"", name, json_string_value(value));
    return 0;
}

json_t *record_decimal(uint64_t number)
{
    return json_sprintf("%" PRIu64, number);
}
