#include "runtime/memory/heap.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define ARENAS_MAX 4
/* The buffers of one large answer are smaller: mapped and given back each time, their fresh pages
 * cost a router a third of the answer's time, and its node half of it. */
#define MMAP_BYTES_MIN (4 * 1024 * 1024)
/* What an arena keeps at its end, for the next ones; heap_trim_above gives it back. */
#define KEPT_BYTES_MAX (8 * 1024 * 1024)

/* A sanitizer has a heap of its own. That of the C library is not even set up then, and trimming it
 * from two threads breaks it. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HEAP_IS_OURS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEAP_IS_OURS false
#endif
#endif
#ifndef HEAP_IS_OURS
#define HEAP_IS_OURS true
#endif

void heap_configure(void)
{
    (void)mallopt(M_ARENA_MAX, ARENAS_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_BYTES_MIN);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
}

static uint64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long total = 0;
    unsigned long long resident = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%llu %llu", &total, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t heap_trim_above(uint64_t resident_max)
{
    uint64_t resident = resident_bytes();

    if (resident <= resident_max || !HEAP_IS_OURS)
        return resident;
    (void)malloc_trim(0);
    return resident_bytes();
}
