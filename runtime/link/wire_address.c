#include <stdlib.h>
#include <string.h>

#include "runtime/link/wire.h"

static bool parse_port(const char *text, uint16_t *ret_port)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    unsigned long value = strtoul(text, &end, 10);
    *ret_port = (uint16_t)value;
    return *end == 0 && value <= UINT16_MAX;
}

err wire_address_parse(const char *text, struct wire_address *ret_address)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon != NULL ? (size_t)(colon - text) : 0;

    if (size == 0 || !parse_port(colon + 1, &ret_address->port))
        return ERR_INVALID;
    ret_address->is_v6 = text[0] == '[';
    if (ret_address->is_v6) {
        if (text[size - 1] != ']' || size < 4)
            return ERR_INVALID;
        text++;
        size -= 2;
    } else if (memchr(text, ':', size) != NULL) {
        return ERR_INVALID;
    }
    if (size >= WIRE_HOST_SIZE)
        return ERR_INVALID;
    memcpy(ret_address->host, text, size);
    ret_address->host[size] = 0;
    return ERR_OK;
}
