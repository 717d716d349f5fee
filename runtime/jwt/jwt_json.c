#include "runtime/jwt/jwt_json.h"

/* jansson goes deeper for each bracket: so they are counted first, those in strings apart. */
static bool is_shallow(struct slice json)
{
    unsigned depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < json.size; i++) {
        uint8_t c = json.data[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > JWT_JSON_DEPTH_MAX)
                return false;
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
        }
    }
    return true;
}

json_t *jwt_json_read(struct slice json)
{
    json_t *object;

    if (json.size == 0 || !is_shallow(json))
        return NULL;
    object = json_loadb((const char *)json.data, json.size, JSON_REJECT_DUPLICATES, NULL);
    if (object != NULL && !json_is_object(object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

struct slice jwt_json_text(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_string(value))
        return (struct slice){ 0 };
    return (struct slice){ (const uint8_t *)json_string_value(value), json_string_length(value) };
}

bool jwt_json_has(const json_t *object, const char *name)
{
    return json_object_get(object, name) != NULL;
}
