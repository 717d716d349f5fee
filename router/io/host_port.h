/* host_port: "127.0.0.1:7300" and "[::1]:7300" taken apart. Pure. */
#ifndef ROUTER_IO_HOST_PORT_H
#define ROUTER_IO_HOST_PORT_H

#include <stdint.h>

#include "runtime/base/err.h"

struct host_port {
    char host[256]; /* Without brackets. */
    uint16_t port;
};

/* ERR_INVALID: no port, a port above 65535, an empty or too long host. */
NODISCARD err host_port_parse(const char *text, struct host_port *ret_address);

#endif
