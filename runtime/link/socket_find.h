/*
 * socket_find: the descriptor of a TCP socket that this process holds but that a library keeps to
 * itself, found by the addresses of both ends, which no two sockets of a process have in common.
 *
 * The kernel gives a new descriptor the lowest free number, so the number of a young socket is
 * close to the one that is free now. The search starts there and goes on in both directions: a few
 * system calls as a rule, `look_max` at most.
 */
#ifndef RUNTIME_LINK_SOCKET_FIND_H
#define RUNTIME_LINK_SOCKET_FIND_H

#include <stdint.h>
#include <sys/socket.h>

/* AF_INET or AF_INET6. -1: not among the `look_max` descriptors looked at. Closing the socket stays
 * with the library; the number is good as long as the library holds the socket. */
int socket_find(const struct sockaddr_storage *own, const struct sockaddr_storage *peer,
                uint32_t look_max);

#endif
