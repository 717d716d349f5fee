#include "router/io/host_port.h"

#include <stdlib.h>
#include <string.h>

err host_port_parse(const char *text, struct host_port *ret_address)
{
    const char *colon = strrchr(text, ':');
    const char *host = text;
    struct host_port address = { 0 };
    unsigned long port;
    size_t size;
    char *end;

    if (colon == NULL || colon[1] < '0' || colon[1] > '9')
        return ERR_INVALID;
    port = strtoul(colon + 1, &end, 10);
    if (*end != 0 || port > UINT16_MAX)
        return ERR_INVALID;
    size = (size_t)(colon - text);
    if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
        host++;
        size -= 2;
    }
    if (size == 0 || size >= sizeof address.host)
        return ERR_INVALID;
    memcpy(address.host, host, size);
    address.port = (uint16_t)port;
    *ret_address = address;
    return ERR_OK;
}
