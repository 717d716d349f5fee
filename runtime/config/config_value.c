#include "runtime/config/config_value.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

struct unit {
    const char *suffix;
    uint64_t factor;
};

static const struct unit duration_units[] = { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 },
                                              { "s", 1000 },     { "ms", 1 },      { NULL, 0 } };
static const struct unit size_units[] = { { "GiB", UINT64_C(1) << 30 },
                                          { "MiB", UINT64_C(1) << 20 },
                                          { "KiB", UINT64_C(1) << 10 },
                                          { "B", 1 },
                                          { NULL, 0 } };

__attribute__((format(printf, 3, 4))) static err
refuse(const struct config_source *source, struct config_error *ret_why, const char *format, ...)
{
    va_list args;
    size_t used = (size_t)snprintf(ret_why->text, sizeof ret_why->text, "%s: ", source->text);

    va_start(args, format);
    vsnprintf(ret_why->text + used, sizeof ret_why->text - used, format, args);
    va_end(args);
    return ERR_INVALID;
}

static const struct unit *units_of(enum config_type type)
{
    if (type == CONFIG_DURATION)
        return duration_units;
    return type == CONFIG_SIZE ? size_units : NULL;
}

const char *config_type_word(enum config_type type)
{
    static const char *const words[] = { "integer", "integer", "boolean",  "text", "path",
                                         "address", "list",    "duration", "size" };
    return words[type];
}

/* Digits, then nothing or one of `units`. */
static bool number_parse(const char *text, const struct unit *units, uint64_t *ret_number)
{
    uint64_t number = 0;
    uint64_t factor = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    if (at == text)
        return false;
    if (*at == '\0')
        factor = 1;
    for (const struct unit *u = units; factor == 0 && u != NULL && u->suffix != NULL; u++) {
        if (strcmp(at, u->suffix) == 0)
            factor = u->factor;
    }
    if (factor == 0 || number > UINT64_MAX / factor)
        return false;
    *ret_number = number * factor;
    return true;
}

static void number_print(uint64_t number, const struct unit *units, struct buf *out)
{
    for (const struct unit *u = units; u != NULL && u->suffix != NULL; u++) {
        if (number % u->factor == 0 && (number > 0 || u->factor == 1)) {
            buf_printf(out, "%" PRIu64 "%s", number / u->factor, u->suffix);
            return;
        }
    }
    buf_printf(out, "%" PRIu64, number);
}

void config_limit_print(const struct config_option *option, uint64_t limit, struct buf *out)
{
    number_print(limit, units_of(option->type), out);
}

bool config_bool_parse(const char *text, bool *ret_value)
{
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return false;
    *ret_value = text[0] == 't';
    return true;
}

/* What is compared with an option's limits. */
struct measure {
    uint64_t number;
    const char *what;  /* "" or "length ", "count ". */
    const char *value; /* As it was given, for the error. */
};

/* Says the limit that it breaks, if any. */
static err limits_check(const struct config_option *option, const struct measure *measure,
                        const struct config_source *source, struct config_error *ret_why)
{
    uint64_t number = measure->number;
    struct buf limit = { 0 };
    bool low = number < option->min;

    if (!low && number <= option->max)
        return ERR_OK;
    if (measure->what[0] != '\0')
        buf_printf(&limit, "%" PRIu64, low ? option->min : option->max);
    else
        config_limit_print(option, low ? option->min : option->max, &limit);
    buf_put_u8(&limit, 0);
    err e = refuse(source, ret_why, "\"%.64s\": %s%s the %s of %s", measure->value, measure->what,
                   low ? "below" : "above", low ? "minimum" : "maximum", (const char *)limit.data);
    buf_deinit(&limit);
    return e;
}

static void *field(const struct config_option *option, void *config)
{
    return (char *)config + option->offset;
}

static err set_number(const struct config_option *option, void *config, const char *text,
                      const struct config_source *source, struct config_error *ret_why)
{
    uint64_t number;

    if (!number_parse(text, units_of(option->type), &number))
        return refuse(source, ret_why, "\"%.64s\" is no %s%s", text, config_type_word(option->type),
                      option->type == CONFIG_DURATION ? " (such as 250ms, 5s, 2m)"
                      : option->type == CONFIG_SIZE   ? " (such as 64KiB, 8MiB)"
                                                      : "");
    err e = limits_check(option, &(struct measure){ number, "", text }, source, ret_why);
    if (e != ERR_OK)
        return e;
    if (option->type == CONFIG_U32) {
        CHECK(option->max <= UINT32_MAX);
        *(uint32_t *)field(option, config) = (uint32_t)number;
    } else {
        *(uint64_t *)field(option, config) = number;
    }
    return ERR_OK;
}

/* A port of digits behind the last colon; colons in the host only within brackets. */
static bool address_is_valid(const char *text)
{
    const char *colon = strrchr(text, ':');
    uint64_t port;

    if (colon == NULL || colon == text || !number_parse(colon + 1, NULL, &port) ||
        port > UINT16_MAX)
        return false;
    size_t host = (size_t)(colon - text);
    if (text[0] == '[')
        return host > 2 && text[host - 1] == ']';
    return memchr(text, ':', host) == NULL;
}

static bool is_text(enum config_type type)
{
    return type == CONFIG_TEXT || type == CONFIG_PATH || type == CONFIG_ADDRESS;
}

static err set_text(const struct config_option *option, void *config, const char *text,
                    const struct config_source *source, struct config_error *ret_why)
{
    char **value = field(option, config);

    err e =
        limits_check(option, &(struct measure){ strlen(text), "length ", text }, source, ret_why);
    if (e != ERR_OK)
        return e;
    if (option->type == CONFIG_ADDRESS && text[0] != '\0' && !address_is_valid(text))
        return refuse(source, ret_why,
                      "\"%.64s\" is no address (such as 127.0.0.1:7400, [::1]:7400)", text);
    char *copy = strdup(text);
    CHECK(copy != NULL);
    free(*value);
    *value = copy;
    return ERR_OK;
}

static void list_free(struct config_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct config_list){ 0 };
}

err config_value_set_list(const struct config_option *option, void *config,
                          const struct config_items *items, const struct config_source *source,
                          struct config_error *ret_why)
{
    size_t count = items->count;
    struct config_list *list = field(option, config);

    CHECK(option->type == CONFIG_LIST && option->max <= CONFIG_LIST_MAX);
    const struct measure measure = { count, "count ", count > 0 ? items->texts[0] : "" };
    err e = limits_check(option, &measure, source, ret_why);
    if (e != ERR_OK)
        return e;
    for (size_t i = 0; i < count; i++) {
        if (items->texts[i][0] == '\0')
            return refuse(source, ret_why, "item %zu is empty", i + 1);
    }
    list_free(list);
    list->items = mem_zalloc((count + 1) * sizeof list->items[0]);
    list->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        list->items[i] = strdup(items->texts[i]);
        CHECK(list->items[i] != NULL);
    }
    return ERR_OK;
}

static err set_list(const struct config_option *option, void *config, const char *text,
                    const struct config_source *source, struct config_error *ret_why)
{
    const char *items[CONFIG_LIST_MAX + 1];
    size_t count = 0;
    char *copy = strdup(text);

    CHECK(copy != NULL);
    char *rest = copy;
    while (text[0] != '\0' && rest != NULL && count < ARRAY_SIZE(items))
        items[count++] = strsep(&rest, ",");
    err e = config_value_set_list(option, config, &(struct config_items){ items, count }, source,
                                  ret_why);
    free(copy);
    return e;
}

err config_value_set(const struct config_option *option, void *config, const char *text,
                     const struct config_source *source, struct config_error *ret_why)
{
    if (strlen(text) > CONFIG_TEXT_MAX)
        return refuse(source, ret_why, "%zu bytes, at most %d", strlen(text), (int)CONFIG_TEXT_MAX);
    switch (option->type) {
    case CONFIG_BOOL:
        if (config_bool_parse(text, field(option, config)))
            return ERR_OK;
        return refuse(source, ret_why, "\"%.64s\" is neither true nor false", text);
    case CONFIG_TEXT:
    case CONFIG_PATH:
    case CONFIG_ADDRESS:
        return set_text(option, config, text, source, ret_why);
    case CONFIG_LIST:
        return set_list(option, config, text, source, ret_why);
    default:
        return set_number(option, config, text, source, ret_why);
    }
}

void config_value_free(const struct config_option *option, void *config)
{
    if (option->type == CONFIG_LIST)
        list_free(field(option, config));
    if (!is_text(option->type))
        return;
    char **text = field(option, config);
    free(*text);
    *text = NULL;
}
