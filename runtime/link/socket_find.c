#include "runtime/link/socket_find.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
    const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
    const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;

    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return a->ss_family == AF_INET6 && a6->sin6_port == b6->sin6_port &&
           memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0;
}

static bool is_between(int fd, const struct sockaddr_storage *own,
                       const struct sockaddr_storage *peer)
{
    struct sockaddr_storage here = { 0 }, there = { 0 };
    socklen_t here_size = sizeof here, there_size = sizeof there;

    return getsockname(fd, (struct sockaddr *)&here, &here_size) == 0 && is_same(&here, own) &&
           getpeername(fd, (struct sockaddr *)&there, &there_size) == 0 && is_same(&there, peer);
}

int socket_find(const struct sockaddr_storage *own, const struct sockaddr_storage *peer,
                uint32_t look_max)
{
    int lowest_free = eventfd(0, EFD_CLOEXEC);
    int below = lowest_free - 1, above = lowest_free + 1;

    if (lowest_free < 0)
        return -1;
    (void)close(lowest_free);
    for (uint32_t looks = 0; looks < look_max; looks++) {
        int fd = looks % 2 == 0 && below >= 0 ? below-- : above++;
        if (is_between(fd, own, peer))
            return fd;
    }
    return -1;
}
