#include "tests/chaos/wire/wire.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define IPV4_HEADER_BYTES 20u
#define DESTINATION_AT    16u

struct packet {
    uint64_t due_us;
    uint64_t seq; /* Those of one time keep their order. */
    uint32_t to;
    size_t size;
    uint8_t *bytes;
};

struct wire {
    uint32_t addresses[WIRE_HOSTS_MAX];
    uint32_t host_count;
    struct wire_rule rules[WIRE_HOSTS_MAX][WIRE_HOSTS_MAX];
    struct packet heap[WIRE_PACKETS_MAX]; /* The next one first. */
    uint32_t packet_count;
    struct packet taken;
    uint64_t seq;
    uint64_t dice;
    struct wire_counts counts;
};

struct wire *wire_new(uint64_t seed)
{
    struct wire *wire = mem_zalloc(sizeof *wire);

    wire->dice = seed != 0 ? seed : 1;
    return wire;
}

void wire_free(struct wire *wire)
{
    for (uint32_t i = 0; i < wire->packet_count; i++)
        free(wire->heap[i].bytes);
    free(wire->taken.bytes);
    free(wire);
}

err wire_add_host(struct wire *wire, uint32_t address)
{
    for (uint32_t i = 0; i < wire->host_count; i++) {
        if (wire->addresses[i] == address)
            return ERR_EXISTS;
    }
    if (wire->host_count == WIRE_HOSTS_MAX)
        return ERR_FULL;
    wire->addresses[wire->host_count++] = address;
    return ERR_OK;
}

err wire_set(struct wire *wire, uint32_t from, uint32_t to, const struct wire_rule *rule)
{
    if (from >= wire->host_count || to >= wire->host_count)
        return ERR_INVALID;
    if (rule->loss_ppm > WIRE_MILLION || rule->delay_us > WIRE_DELAY_MAX ||
        rule->jitter_us > WIRE_DELAY_MAX)
        return ERR_INVALID;
    wire->rules[from][to] = *rule;
    return ERR_OK;
}

void wire_heal(struct wire *wire)
{
    memset(wire->rules, 0, sizeof wire->rules);
}

/* ---- the heap ---- */

static bool sooner(const struct packet *a, const struct packet *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->seq < b->seq;
}

static void swap(struct packet *a, struct packet *b)
{
    struct packet packet = *a;

    *a = *b;
    *b = packet;
}

static void heap_put(struct wire *wire, const struct packet *packet)
{
    uint32_t at = wire->packet_count++;

    wire->heap[at] = *packet;
    while (at > 0 && sooner(&wire->heap[at], &wire->heap[(at - 1) / 2])) {
        swap(&wire->heap[at], &wire->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static struct packet heap_take(struct wire *wire)
{
    struct packet first = wire->heap[0];
    uint32_t at = 0;

    wire->heap[0] = wire->heap[--wire->packet_count];
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= wire->packet_count)
            return first;
        if (child + 1 < wire->packet_count && sooner(&wire->heap[child + 1], &wire->heap[child]))
            child++;
        if (!sooner(&wire->heap[child], &wire->heap[at]))
            return first;
        swap(&wire->heap[child], &wire->heap[at]);
        at = child;
    }
}

/* ---- packets ---- */

/* xorshift64*. */
static uint32_t below(struct wire *wire, uint32_t limit)
{
    wire->dice ^= wire->dice >> 12;
    wire->dice ^= wire->dice << 25;
    wire->dice ^= wire->dice >> 27;
    return limit > 0 ? (uint32_t)((wire->dice * 2685821657736338717u >> 33) % limit) : 0;
}

static bool find_destination(const struct wire *wire, struct slice packet, uint32_t *ret_to)
{
    if (packet.size < IPV4_HEADER_BYTES || packet.data[0] >> 4 != 4)
        return false;
    const uint8_t *at = packet.data + DESTINATION_AT;
    uint32_t address = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    for (uint32_t i = 0; i < wire->host_count; i++) {
        if (wire->addresses[i] == address) {
            *ret_to = i;
            return true;
        }
    }
    return false;
}

void wire_offer(struct wire *wire, uint64_t now_us, uint32_t from, struct slice bytes)
{
    struct packet packet = { .size = bytes.size, .seq = wire->seq++ };

    CHECK(from < wire->host_count);
    if (!find_destination(wire, bytes, &packet.to)) {
        wire->counts.nowhere++;
        return;
    }
    const struct wire_rule *rule = &wire->rules[from][packet.to];
    if (rule->cut) {
        wire->counts.cut++;
        return;
    }
    if (rule->loss_ppm > 0 && below(wire, WIRE_MILLION) < rule->loss_ppm) {
        wire->counts.lost++;
        return;
    }
    if (wire->packet_count == WIRE_PACKETS_MAX) {
        wire->counts.full++;
        return;
    }
    packet.due_us = now_us + rule->delay_us + below(wire, rule->jitter_us);
    packet.bytes = mem_alloc(bytes.size);
    memcpy(packet.bytes, bytes.data, bytes.size);
    heap_put(wire, &packet);
}

bool wire_take(struct wire *wire, uint64_t now_us, uint32_t *ret_to, struct slice *ret_packet)
{
    if (wire_due_us(wire) > now_us)
        return false;
    free(wire->taken.bytes);
    wire->taken = heap_take(wire);
    wire->counts.passed++;
    *ret_to = wire->taken.to;
    *ret_packet = (struct slice){ wire->taken.bytes, wire->taken.size };
    return true;
}

uint64_t wire_due_us(const struct wire *wire)
{
    return wire->packet_count > 0 ? wire->heap[0].due_us : UINT64_MAX;
}

struct wire_counts wire_counts(const struct wire *wire)
{
    return wire->counts;
}
