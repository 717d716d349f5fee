#include "runtime/base/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/hash.h"

#define V4_BITS       96u /* Of the prefix ::ffff:0:0/96. */
#define NETWORK_BYTES 8u

static const uint8_t v4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static bool is_v4(const struct address *address)
{
    return memcmp(address->bytes, v4_prefix, sizeof v4_prefix) == 0;
}

static bool parse_host(const char *host, struct address *ret_address)
{
    memset(ret_address, 0, sizeof *ret_address);
    if (inet_pton(AF_INET, host, ret_address->bytes + sizeof v4_prefix) == 1) {
        memcpy(ret_address->bytes, v4_prefix, sizeof v4_prefix);
        return true;
    }
    memset(ret_address, 0, sizeof *ret_address);
    return inet_pton(AF_INET6, host, ret_address->bytes) == 1;
}

bool address_parse(const char *text, struct address *ret_address)
{
    bool bracket = text[0] == '[';
    const char *first = bracket ? text + 1 : text;
    size_t size = strcspn(first, bracket ? "]" : "");
    const char *colon = strchr(first, ':');
    char host[INET6_ADDRSTRLEN];

    /* One colon stands before a port, more are those of IPv6. */
    if (!bracket && colon != NULL && strchr(colon + 1, ':') == NULL)
        size = (size_t)(colon - first);
    memset(ret_address, 0, sizeof *ret_address);
    if (size >= sizeof host)
        return false;
    memcpy(host, first, size);
    host[size] = 0;
    return parse_host(host, ret_address);
}

struct address address_network(const struct address *address)
{
    struct address network = *address;

    if (!is_v4(address))
        memset(network.bytes + NETWORK_BYTES, 0, sizeof network.bytes - NETWORK_BYTES);
    return network;
}

uint64_t address_name(const char *text)
{
    struct address address;

    (void)address_parse(text, &address);
    const struct address network = address_network(&address);
    return hash_u64((struct slice){ network.bytes, sizeof network.bytes });
}

void address_print(const struct address *address, char ret_text[ADDRESS_TEXT_SIZE])
{
    static const struct address unknown;
    const char *said;

    if (is_v4(address))
        said = inet_ntop(AF_INET, address->bytes + sizeof v4_prefix, ret_text, ADDRESS_TEXT_SIZE);
    else
        said = inet_ntop(AF_INET6, address->bytes, ret_text, ADDRESS_TEXT_SIZE);
    if (said == NULL || memcmp(address, &unknown, sizeof unknown) == 0)
        (void)snprintf(ret_text, ADDRESS_TEXT_SIZE, "?");
}

/* Whether all bits from `bits` on are equal to those of zero, or up to it to those of `b`. */
static bool same_bits(const struct address *a, const struct address *b, uint32_t bits)
{
    uint32_t whole = bits / 8;
    uint8_t mask = (uint8_t)(0xff00u >> (bits % 8));

    if (memcmp(a->bytes, b->bytes, whole) != 0)
        return false;
    return bits % 8 == 0 || ((a->bytes[whole] ^ b->bytes[whole]) & mask) == 0;
}

static bool has_host_bits(const struct address *address, uint32_t bits)
{
    for (uint32_t i = bits; i < 128; i++) {
        if ((address->bytes[i / 8] & (0x80u >> (i % 8))) != 0)
            return true;
    }
    return false;
}

bool address_ranges_add(struct address_ranges *ranges, const char *text)
{
    const char *slash = strchr(text, '/');
    size_t size = slash != NULL ? (size_t)(slash - text) : strlen(text);
    char host[INET6_ADDRSTRLEN];
    struct address first;

    if (ranges->count == ADDRESS_RANGES_MAX || size >= sizeof host)
        return false;
    memcpy(host, text, size);
    host[size] = 0;
    if (!parse_host(host, &first))
        return false;
    uint32_t base = is_v4(&first) ? V4_BITS : 0;
    unsigned long bits = 128 - base;
    if (slash != NULL) {
        char *end;
        if (slash[1] < '0' || slash[1] > '9')
            return false;
        bits = strtoul(slash + 1, &end, 10);
        if (*end != 0 || bits > 128 - base)
            return false;
    }
    if (has_host_bits(&first, base + (uint32_t)bits))
        return false;
    ranges->first[ranges->count] = first;
    ranges->bits[ranges->count++] = (uint8_t)(base + bits);
    return true;
}

bool address_ranges_have(const struct address_ranges *ranges, const struct address *address)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        if (same_bits(address, &ranges->first[i], ranges->bits[i]))
            return true;
    }
    return false;
}
