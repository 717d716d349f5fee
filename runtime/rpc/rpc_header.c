#include "runtime/rpc/rpc_header.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/http/http_exchange.h"

static const struct {
    const char *name;
    enum rpc_protocol protocol;
    enum rpc_form form;
} content_types[] = {
    { "application/json", RPC_CONNECT, RPC_FORM_PLAIN_JSON },
    { "application/proto", RPC_CONNECT, RPC_FORM_PROTO },
    { "application/connect+json", RPC_CONNECT_STREAM, RPC_FORM_JSON },
    { "application/connect+proto", RPC_CONNECT_STREAM, RPC_FORM_PROTO },
    { "application/grpc+proto", RPC_GRPC, RPC_FORM_PROTO },
    { "application/grpc+json", RPC_GRPC, RPC_FORM_JSON },
    { "application/grpc-web+proto", RPC_GRPC_WEB, RPC_FORM_PROTO },
    { "application/grpc-web+json", RPC_GRPC_WEB, RPC_FORM_JSON },
    { "application/grpc", RPC_GRPC, RPC_FORM_PROTO },
    { "application/grpc-web", RPC_GRPC_WEB, RPC_FORM_PROTO },
};

static struct slice trimmed(struct slice text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = (struct slice){ text.data + 1, text.size - 1 };
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* Takes what stands in front of the next `separator`, trimmed; *list is the rest. */
static struct slice take_item(struct slice *list, char separator)
{
    const uint8_t *end = list->size > 0 ? memchr(list->data, separator, list->size) : NULL;
    struct slice item = *list;

    if (end == NULL) {
        *list = (struct slice){ 0 };
        return trimmed(item);
    }
    item.size = (size_t)(end - item.data);
    *list = (struct slice){ end + 1, list->size - item.size - 1 };
    return trimmed(item);
}

/* "name=value" or "name=\"value\"". */
static bool parameter_is(struct slice parameter, const char *name, struct slice *ret_value)
{
    struct slice value = parameter;

    if (!http_text_equal(take_item(&value, '='), name))
        return false;
    value = trimmed(value);
    if (value.size >= 2 && value.data[0] == '"' && value.data[value.size - 1] == '"')
        value = (struct slice){ value.data + 1, value.size - 2 };
    *ret_value = value;
    return true;
}

static bool charset_is_utf8(struct slice parameters)
{
    while (parameters.size > 0) {
        struct slice charset;
        if (parameter_is(take_item(&parameters, ';'), "charset", &charset) &&
            !http_text_equal(charset, "utf-8") && !http_text_equal(charset, "utf8"))
            return false;
    }
    return true;
}

bool rpc_content_type_parse(struct slice value, enum rpc_protocol *ret_protocol,
                            enum rpc_form *ret_form)
{
    struct slice type = take_item(&value, ';');

    for (size_t i = 0; i < ARRAY_SIZE(content_types); i++) {
        if (!http_text_equal(type, content_types[i].name))
            continue;
        *ret_protocol = content_types[i].protocol;
        *ret_form = content_types[i].form;
        return content_types[i].form == RPC_FORM_PROTO || charset_is_utf8(value);
    }
    return false;
}

static bool begins(struct slice text, const char *prefix)
{
    size_t size = strlen(prefix);

    return text.size >= size && http_text_equal((struct slice){ text.data, size }, prefix);
}

enum rpc_protocol rpc_content_type_family(struct slice value)
{
    if (begins(value, "application/grpc-web"))
        return RPC_GRPC_WEB;
    return begins(value, "application/grpc") ? RPC_GRPC : RPC_CONNECT;
}

bool rpc_content_type_is_ours(struct slice value)
{
    static const char *const prefixes[] = { "application/grpc", "application/connect+",
                                            "application/json", "application/proto" };

    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        if (begins(value, prefixes[i]))
            return true;
    }
    return false;
}

bool rpc_is_connect(enum rpc_protocol protocol)
{
    return protocol == RPC_CONNECT || protocol == RPC_CONNECT_STREAM;
}

bool rpc_query_has(struct slice query, const char *wanted)
{
    while (query.size > 0) {
        if (slice_equal(take_item(&query, '&'), slice_from_text(wanted)))
            return true;
    }
    return false;
}

const char *rpc_content_type(enum rpc_protocol protocol, enum rpc_form form)
{
    bool is_proto = form == RPC_FORM_PROTO;

    for (size_t i = 0; i < ARRAY_SIZE(content_types); i++) {
        if (content_types[i].protocol == protocol &&
            (content_types[i].form == RPC_FORM_PROTO) == is_proto)
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

const char *rpc_encoding_header(enum rpc_protocol protocol)
{
    if (protocol == RPC_CONNECT)
        return "content-encoding";
    return protocol == RPC_CONNECT_STREAM ? "connect-content-encoding" : "grpc-encoding";
}

const char *rpc_accept_header(enum rpc_protocol protocol)
{
    if (protocol == RPC_CONNECT)
        return "accept-encoding";
    return protocol == RPC_CONNECT_STREAM ? "connect-accept-encoding" : "grpc-accept-encoding";
}

bool rpc_encoding_is_gzip(struct slice value)
{
    return http_text_equal(value, "gzip") || http_text_equal(value, "x-gzip");
}

/* "0.5" as 500; what is malformed is 0, as not wanted. */
static unsigned weight_parse(struct slice text)
{
    unsigned weight = 0;

    if (text.size == 0 || text.size > 5 || (text.size > 1 && text.data[1] != '.') ||
        (text.data[0] != '0' && text.data[0] != '1'))
        return 0;
    weight = text.data[0] == '1' ? 1000 : 0;
    for (size_t i = 2, unit = 100; i < text.size; i++, unit /= 10) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return 0;
        weight += (unsigned)(unit * (size_t)(text.data[i] - '0'));
    }
    return weight <= 1000 ? weight : 0;
}

/* Of one item: its name, and its weight in thousandths. */
static struct slice weighted_parse(struct slice item, unsigned *ret_weight)
{
    struct slice name = take_item(&item, ';');
    struct slice weight;

    *ret_weight = 1000;
    while (item.size > 0) {
        if (parameter_is(take_item(&item, ';'), "q", &weight))
            *ret_weight = weight_parse(weight);
    }
    return name;
}

bool rpc_accepts_gzip(struct slice list)
{
    unsigned gzip = 0, any = 0, identity = 0;
    bool named = false, weighed = false;

    while (list.size > 0) {
        unsigned weight;
        struct slice name = weighted_parse(take_item(&list, ','), &weight);
        if (rpc_encoding_is_gzip(name)) {
            gzip = weight;
            named = true;
        } else if (http_text_equal(name, "*")) {
            any = weight;
        } else if (http_text_equal(name, "identity")) {
            identity = weight;
        }
        weighed = weighed || weight != 1000;
    }
    if (!named)
        gzip = any;
    /* Without weights the order is said to count, and identity to be last wherever it stands. */
    return gzip > 0 && (!weighed || gzip >= identity);
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
