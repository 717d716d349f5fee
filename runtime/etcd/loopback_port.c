#include "runtime/etcd/loopback_port.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PORT_MIN = 15000, PORT_END = 32000, TRIES_MAX = 1000 };

/* An abstract unix socket of the port's name, held open: it goes when the process does. */
static int claim(uint16_t port)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int size = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "holdfast-port-%u",
                        (unsigned)port);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);

    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&address, length) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool is_free(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return false;
    bool bound = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return bound;
}

uint16_t loopback_port_claim(void)
{
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        uint32_t random;

        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            continue;
        uint16_t port = (uint16_t)(PORT_MIN + random % (PORT_END - PORT_MIN));
        int fd = claim(port);
        if (fd < 0)
            continue;
        if (is_free(port))
            return port; /* `fd` stays open: that is the claim. */
        close(fd);
    }
    return 0;
}
