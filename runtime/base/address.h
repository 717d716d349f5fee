/*
 * address: where a connection comes from, as limits count it: an IPv4 address, or the /64 of an
 * IPv6 address, since a household or a host has a whole one. Ranges (CIDR) name those that a limit
 * leaves out. Pure.
 */
#ifndef RUNTIME_BASE_ADDRESS_H
#define RUNTIME_BASE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_TEXT_SIZE  48u
#define ADDRESS_RANGES_MAX 64u

/* IPv4 as ::ffff:a.b.c.d, so that both kinds of socket give the same. All zero: unknown. */
struct address {
    uint8_t bytes[16];
};

/* "10.0.0.1:5123", "[2001:db8::1]:5123", or without a port. False: neither; *ret_address is then
 * all zero, and counts as an address of its own. */
bool address_parse(const char *text, struct address *ret_address);
/* What is counted together with it: itself, or the first 64 bits of IPv6. */
struct address address_network(const struct address *address);
/* A number for the network of an address that address_parse takes: equal for those that are counted
 * together. What it does not take has one of its own. */
uint64_t address_name(const char *text);
/* "10.0.0.1", "2001:db8::", "?". */
void address_print(const struct address *address, char ret_text[ADDRESS_TEXT_SIZE]);

struct address_ranges {
    struct address first[ADDRESS_RANGES_MAX];
    uint8_t bits[ADDRESS_RANGES_MAX]; /* Of 128; IPv4's are counted from 96 on. */
    uint32_t count;
};

/* Adds "10.0.0.0/8", "2001:db8::/32" or one address. False: it is none, its host bits are not
 * zero, or ADDRESS_RANGES_MAX is reached; nothing is added then. */
bool address_ranges_add(struct address_ranges *ranges, const char *text);
bool address_ranges_have(const struct address_ranges *ranges, const struct address *address);

#endif
