#include "runtime/base/large_reads.h"

#include <stdlib.h>

#include "runtime/base/caller_share.h"
#include "runtime/base/check.h"

#define PLACES 1024u /* Of callers' methods; of two that have one place, the later is known. */
#define FADES  8u    /* A smaller answer lessens what is expected by this part. */

struct seen {
    uint64_t name;
    uint32_t bytes;
};

struct large_reads {
    struct caller_shares *held;
    struct seen seen[PLACES];
};

struct large_reads *large_reads_new(void)
{
    struct large_reads *reads = mem_zalloc(sizeof *reads);

    reads->held = caller_shares_new();
    return reads;
}

void large_reads_free(struct large_reads *reads)
{
    if (reads == NULL)
        return;
    caller_shares_free(reads->held);
    free(reads);
}

static uint64_t name_of(const struct large_read *read)
{
    return (read->caller ^ read->method) * 0x9e3779b97f4a7c15u;
}

static uint32_t place_of(uint64_t name)
{
    return (uint32_t)(name >> 32) % PLACES;
}

bool large_reads_begin(struct large_reads *reads, struct large_read *read, uint64_t share_bytes)
{
    uint64_t name = name_of(read);
    const struct seen *seen = &reads->seen[place_of(name)];

    read->expected_bytes = seen->name == name ? seen->bytes : 0;
    return caller_share_take(reads->held, read->caller, read->expected_bytes, share_bytes);
}

static void learn(struct large_reads *reads, uint64_t name, uint64_t came_bytes)
{
    struct seen *seen = &reads->seen[place_of(name)];
    uint32_t bytes = came_bytes < UINT32_MAX ? (uint32_t)came_bytes : UINT32_MAX;

    if (seen->name != name && bytes < LARGE_READ_BYTES)
        return;
    uint32_t before = seen->name == name ? seen->bytes : 0;
    uint32_t faded = before - before / FADES;
    seen->name = name;
    seen->bytes = bytes > faded ? bytes : faded;
    if (seen->bytes < LARGE_READ_BYTES)
        seen->bytes = 0;
}

void large_reads_answered(struct large_reads *reads, struct large_read *read, uint64_t came_bytes)
{
    uint32_t bytes = came_bytes < UINT32_MAX ? (uint32_t)came_bytes : UINT32_MAX;

    if (bytes > 0)
        learn(reads, name_of(read), bytes);
    caller_share_give(reads->held, read->caller, read->expected_bytes);
    CHECK(caller_share_take(reads->held, read->caller, bytes, UINT64_MAX));
    read->expected_bytes = bytes;
}

void large_reads_end(struct large_reads *reads, const struct large_read *read, uint64_t came_bytes)
{
    caller_share_give(reads->held, read->caller, read->expected_bytes);
    if (came_bytes > 0)
        learn(reads, name_of(read), came_bytes);
}

uint64_t large_reads_held(const struct large_reads *reads, uint64_t caller)
{
    return caller_share_held(reads->held, caller);
}

void large_reads_check(const struct large_reads *reads)
{
    caller_shares_check(reads->held);
    for (uint32_t i = 0; i < PLACES; i++) {
        const struct seen *seen = &reads->seen[i];

        CHECK(seen->bytes == 0 || seen->bytes >= LARGE_READ_BYTES);
        CHECK(seen->bytes == 0 || place_of(seen->name) == i);
    }
}
