#include "node/io/disk/caches.h"

#define MIB          (1024ull * 1024)
#define ROWS_SHARE   16u
#define BLOCKS_SHARE 64u

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
