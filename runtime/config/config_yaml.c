#include "runtime/config/config_yaml.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/config/config_value.h"

/* Characters beyond ASCII that YAML takes for line breaks, or not at all, unless escaped: their
 * UTF-8 and number. C1 controls are done by range. */
static const struct special {
    const char *bytes;
    unsigned number;
} specials[] = {
    { "\xe2\x80\xa8", 0x2028 }, { "\xe2\x80\xa9", 0x2029 }, { "\xef\xbb\xbf", 0xfeff },
    { "\xef\xbf\xbe", 0xfffe }, { "\xef\xbf\xbf", 0xffff },
};

/* Bytes taken of `text`; 0: nothing special stands there. */
static size_t special_print(const char *text, struct buf *out)
{
    const unsigned char *bytes = (const unsigned char *)text;

    if (bytes[0] == 0xc2 && bytes[1] >= 0x80 && bytes[1] <= 0x9f) {
        buf_printf(out, "\\x%02x", bytes[1]);
        return 2;
    }
    for (size_t i = 0; i < ARRAY_SIZE(specials); i++) {
        if (strncmp(text, specials[i].bytes, 3) != 0)
            continue;
        buf_printf(out, "\\u%04x", specials[i].number);
        return 3;
    }
    return 0;
}

static void text_print(const char *text, struct buf *out)
{
    buf_put_u8(out, '"');
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        size_t special = special_print(c, out);
        if (special > 0)
            c += special - 1;
        else if (byte == '"' || byte == '\\')
            buf_printf(out, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            buf_printf(out, "\\x%02x", byte);
        else
            buf_put_u8(out, byte);
    }
    buf_put_u8(out, '"');
}

static void value_print(const struct config_option *option, const void *config, struct buf *out)
{
    const char *value = (const char *)config + option->offset;
    const struct config_list *list = (const void *)value;

    switch (option->type) {
    case CONFIG_U32:
        buf_printf(out, "%" PRIu32, *(const uint32_t *)(const void *)value);
        break;
    case CONFIG_BOOL:
        buf_printf(out, "%s", *(const bool *)(const void *)value ? "true" : "false");
        break;
    case CONFIG_TEXT:
    case CONFIG_PATH:
    case CONFIG_ADDRESS:
        text_print(*(char *const *)(const void *)value, out);
        break;
    case CONFIG_LIST:
        buf_put_u8(out, '[');
        for (uint32_t i = 0; i < list->count; i++) {
            buf_printf(out, "%s", i > 0 ? ", " : "");
            text_print(list->items[i], out);
        }
        buf_put_u8(out, ']');
        break;
    default:
        config_limit_print(option, *(const uint64_t *)(const void *)value, out);
    }
}

void config_yaml_print(const struct config_program *program, const void *config, struct buf *out)
{
    for (size_t i = 0; i < program->option_count; i++) {
        buf_printf(out, "%s: ", program->options[i].name);
        value_print(&program->options[i], config, out);
        buf_put_u8(out, '\n');
    }
}
