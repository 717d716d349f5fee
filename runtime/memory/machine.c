#include "runtime/memory/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define SHARE           16u
#define SHARE_BYTES_MIN (16ull * 1024 * 1024)
#define SHARE_BYTES_MAX (2048ull * 1024 * 1024)

/* What a file of one number says; UINT64_MAX for none, and for "max". */
static uint64_t read_limit(const char *path)
{
    FILE *file = fopen(path, "re");
    uint64_t bytes;

    if (file == NULL)
        return UINT64_MAX;
    if (fscanf(file, "%" SCNu64, &bytes) != 1)
        bytes = UINT64_MAX;
    fclose(file);
    return bytes;
}

uint64_t memory_machine_bytes(void)
{
    static const char *const limits[] = { "/sys/fs/cgroup/memory.max",
                                          "/sys/fs/cgroup/memory/memory.limit_in_bytes" };
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    for (unsigned i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint64_t limit = read_limit(limits[i]);
        if (limit > 0 && limit < bytes)
            bytes = limit;
    }
    return bytes;
}

uint64_t memory_share(uint64_t configured)
{
    uint64_t bytes = memory_machine_bytes() / SHARE;

    if (configured > 0)
        return configured;
    if (bytes < SHARE_BYTES_MIN)
        return SHARE_BYTES_MIN;
    return bytes < SHARE_BYTES_MAX ? bytes : SHARE_BYTES_MAX;
}
