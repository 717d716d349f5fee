#include "node/io/process/node_text.h"

#include <stdio.h>
#include <string.h>

void address_of(const char *advertise, const char *listen, uint16_t port, char ret[256])
{
    const char *colon = strrchr(listen, ':');

    if (advertise[0] != 0)
        snprintf(ret, 256, "%s", advertise);
    else
        snprintf(ret, 256, "%.*s:%u", (int)(colon - listen), listen, port);
}
