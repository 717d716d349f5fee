/*
 * loopback_port: ports for child processes that must know theirs before they listen. For
 * `holdfast dev` and for tests; code that can listen on port 0 does that instead.
 */
#ifndef RUNTIME_ETCD_LOOPBACK_PORT_H
#define RUNTIME_ETCD_LOOPBACK_PORT_H

#include <stdint.h>

/* A free port of 127.0.0.1, below the range that the kernel gives to outgoing
 * connections: else one of those (even a connection to this very port, while its owner is down)
 * could take it. Claimed for this process as long as it lives: no other process that asks here,
 * or in tests/integration, gets it. 0: none found. */
uint16_t loopback_port_claim(void);

#endif
