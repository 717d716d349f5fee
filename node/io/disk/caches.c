#include "node/io/disk/caches.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define MIB          (1024ull * 1024)
#define ROWS_SHARE   16u
#define BLOCKS_SHARE 64u

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

uint64_t caches_machine_bytes(void)
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

static uint64_t share(uint64_t configured, uint64_t bytes, uint64_t least, uint64_t most)
{
    if (configured > 0)
        return configured;
    if (bytes < least)
        return least;
    return bytes < most ? bytes : most;
}

struct caches caches_of(uint64_t row_bytes, uint64_t block_bytes, uint64_t machine_bytes)
{
    return (struct caches){
        .row_bytes = share(row_bytes, machine_bytes / ROWS_SHARE, 256 * MIB, 16384 * MIB),
        .block_bytes = share(block_bytes, machine_bytes / BLOCKS_SHARE, 64 * MIB, 4096 * MIB),
    };
}
