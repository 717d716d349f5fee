/*
 * caches: how much memory a node's caches may take. What is not configured follows from the
 * machine: more players than fit in memory cost a read of the disk each (docs/sizing.md), and
 * a machine that is there for its nodes has memory to spare.
 */
#ifndef NODE_IO_DISK_CACHES_H
#define NODE_IO_DISK_CACHES_H

#include <stdint.h>

struct caches {
    uint64_t row_bytes;   /* Rows and recent log entries. */
    uint64_t block_bytes; /* RocksDB's blocks. */
};

/* `machine_bytes`: runtime/memory/machine.h. 0 configured: a sixteenth of the machine for rows (256
 * MiB to 16 GiB), a quarter of that for blocks (64 MiB to 4 GiB), so that three nodes on one
 * machine leave three quarters to others. */
struct caches caches_of(uint64_t row_bytes, uint64_t block_bytes, uint64_t machine_bytes);

#endif
