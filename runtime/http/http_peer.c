#include "runtime/http/http_peer.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

void http_peer_print(const uv_tcp_t *tcp, char ret[HTTP_PEER_SIZE])
{
    struct sockaddr_storage address = { 0 };
    int size = sizeof address;
    char name[48] = "?";
    unsigned port = 0;

    if (uv_tcp_getpeername(tcp, (struct sockaddr *)&address, &size) == 0) {
        if (address.ss_family == AF_INET) {
            struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address;
            uv_ip4_name(in, name, sizeof name);
            port = ntohs(in->sin_port);
        } else {
            struct sockaddr_in6 *in = (struct sockaddr_in6 *)(void *)&address;
            uv_ip6_name(in, name, sizeof name);
            port = ntohs(in->sin6_port);
        }
    }
    snprintf(ret, HTTP_PEER_SIZE, strchr(name, ':') != NULL ? "[%s]:%u" : "%s:%u", name, port);
}

size_t http_peer_owed(const uv_tcp_t *tcp)
{
    uv_os_fd_t fd;
    int owed = 0;

    if (uv_fileno((const uv_handle_t *)tcp, &fd) != 0 || ioctl(fd, SIOCOUTQ, &owed) != 0)
        return 0;
    return owed > 0 ? (size_t)owed : 0;
}
