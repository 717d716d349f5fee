#include "runtime/http/http_exchange.h"

#include <string.h>

struct slice http_header_find(const struct http_exchange *exchange, const char *name)
{
    size_t size = strlen(name);

    for (size_t i = 0; i < exchange->header_count; i++) {
        struct slice given = exchange->headers[i].name;
        if (given.size == size && memcmp(given.data, name, size) == 0)
            return exchange->headers[i].value;
    }
    return (struct slice){ 0 };
}

bool http_header_find_sole(const struct http_exchange *exchange, const char *name,
                           struct slice *ret_value)
{
    size_t size = strlen(name);
    size_t count = 0;

    for (size_t i = 0; i < exchange->header_count; i++) {
        struct slice given = exchange->headers[i].name;
        if (given.size != size || memcmp(given.data, name, size) != 0)
            continue;
        *ret_value = exchange->headers[i].value;
        count++;
    }
    return count == 1;
}

bool http_text_equal(struct slice text, const char *expected)
{
    return strlen(expected) == text.size &&
           strncasecmp((const char *)text.data, expected, text.size) == 0;
}

bool http_is_h2(const struct http_exchange *exchange)
{
    return exchange->stream_id != 0;
}
