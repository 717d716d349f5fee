#include "runtime/http/rpc_header.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/http/http_exchange.h"

static const struct {
    const char *name;
    enum rpc_protocol protocol;
    bool json;
} content_types[] = {
    { "application/json", RPC_CONNECT, true },
    { "application/proto", RPC_CONNECT, false },
    { "application/connect+json", RPC_CONNECT_STREAM, true },
    { "application/connect+proto", RPC_CONNECT_STREAM, false },
    { "application/grpc+proto", RPC_GRPC, false },
    { "application/grpc+json", RPC_GRPC, true },
    { "application/grpc-web+proto", RPC_GRPC_WEB, false },
    { "application/grpc-web+json", RPC_GRPC_WEB, true },
    { "application/grpc", RPC_GRPC, false },
    { "application/grpc-web", RPC_GRPC_WEB, false },
};

bool rpc_content_type_parse(struct slice value, enum rpc_protocol *ret_protocol, bool *ret_json)
{
    const uint8_t *end = value.size > 0 ? memchr(value.data, ';', value.size) : NULL;

    if (end != NULL)
        value.size = (size_t)(end - value.data);
    while (value.size > 0 && value.data[value.size - 1] == ' ')
        value.size--;
    for (size_t i = 0; i < ARRAY_SIZE(content_types); i++) {
        if (!http_text_equal(value, content_types[i].name))
            continue;
        *ret_protocol = content_types[i].protocol;
        *ret_json = content_types[i].json;
        return true;
    }
    return false;
}

const char *rpc_content_type(enum rpc_protocol protocol, bool json)
{
    for (size_t i = 0; i < ARRAY_SIZE(content_types); i++) {
        if (content_types[i].protocol == protocol && content_types[i].json == json)
            return content_types[i].name;
    }
    check_failed("every protocol has both encodings", __FILE__, __LINE__);
}

static bool digits_parse(struct slice text, size_t digits_max, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (text.size == 0 || text.size > digits_max)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret_number = number;
    return true;
}

bool rpc_connect_timeout_parse(struct slice value, uint64_t *ret_ms)
{
    return digits_parse(value, 10, ret_ms);
}

bool rpc_grpc_timeout_parse(struct slice value, uint64_t *ret_ms)
{
    uint64_t number;

    if (value.size < 2 || !digits_parse((struct slice){ value.data, value.size - 1 }, 8, &number))
        return false;
    switch (value.data[value.size - 1]) {
    case 'H':
        *ret_ms = number * 3600000;
        return true;
    case 'M':
        *ret_ms = number * 60000;
        return true;
    case 'S':
        *ret_ms = number * 1000;
        return true;
    case 'm':
        *ret_ms = number;
        return true;
    case 'u':
        *ret_ms = (number + 999) / 1000;
        return true;
    case 'n':
        *ret_ms = (number + 999999) / 1000000;
        return true;
    default:
        return false;
    }
}

struct slice rpc_bearer_parse(struct slice authorization)
{
    static const char scheme[] = "bearer ";
    size_t size = sizeof scheme - 1;

    if (authorization.size <= size ||
        strncasecmp((const char *)authorization.data, scheme, size) != 0)
        return (struct slice){ 0 };
    while (size < authorization.size && authorization.data[size] == ' ')
        size++;
    return (struct slice){ authorization.data + size, authorization.size - size };
}

bool rpc_origin_allowed(const char *list, struct slice origin)
{
    if (list == NULL || origin.size == 0)
        return false;
    if (strcmp(list, "*") == 0)
        return true;
    while (*list != 0) {
        size_t size = strcspn(list, ",");
        struct slice item = { (const uint8_t *)list, size };
        while (item.size > 0 && *item.data == ' ')
            item = (struct slice){ item.data + 1, item.size - 1 };
        if (slice_equal(item, origin))
            return true;
        list += size + (list[size] == ',');
    }
    return false;
}

void rpc_percent_encode(const char *text, struct buf *out)
{
    for (; *text != 0; text++) {
        if (*text >= 0x20 && *text <= 0x7E && *text != '%')
            buf_put_u8(out, (uint8_t)*text);
        else
            buf_printf(out, "%%%02X", (unsigned)(uint8_t)*text);
    }
}
