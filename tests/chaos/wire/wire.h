/*
 * wire: a network between hosts that does as it is told: packets are lost, late, or do not pass one
 * way. Pure: packets and the time come in, packets go out. Only IPv4; no packet is changed.
 */
#ifndef TESTS_CHAOS_WIRE_WIRE_H
#define TESTS_CHAOS_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/base/err.h"

#define WIRE_HOSTS_MAX   16u
#define WIRE_PACKETS_MAX 65536u    /* On their way; more are lost, as in a switch. */
#define WIRE_DELAY_MAX   10000000u /* Microseconds. */
#define WIRE_MILLION     1000000u

/* What happens to packets from one host to another. All zero: they pass at once. */
struct wire_rule {
    bool cut;
    uint32_t loss_ppm; /* 0 to a million. */
    uint32_t delay_us, jitter_us;
};

struct wire_counts {
    uint64_t passed, lost, cut, full, nowhere;
};

struct wire;

struct wire *wire_new(uint64_t seed);
void wire_free(struct wire *wire);
/* `address`: as in a packet, host byte order. Hosts are numbered from 0. ERR_EXISTS; ERR_FULL. */
NODISCARD err wire_add_host(struct wire *wire, uint32_t address);
/* ERR_INVALID: no such host, or a number that is too large; nothing was changed. */
NODISCARD err wire_set(struct wire *wire, uint32_t from, uint32_t to, const struct wire_rule *rule);
void wire_heal(struct wire *wire);
/* A packet from a host; it is copied, or lost. */
void wire_offer(struct wire *wire, uint64_t now_us, uint32_t from, struct slice packet);
/* The next packet that is due; false: none is. It is valid until the next call. */
bool wire_take(struct wire *wire, uint64_t now_us, uint32_t *ret_to, struct slice *ret_packet);
/* When the next one is; UINT64_MAX: none is on its way. */
uint64_t wire_due_us(const struct wire *wire);
struct wire_counts wire_counts(const struct wire *wire);

#endif
