/*
 * heap: keeps what the allocator holds of the system near what is in use. Rows of all sizes come
 * and go, and RocksDB allocates on threads of its own: left alone, the heap of a node that has
 * seen a million players holds a third more than its caches. DESIGN section 8.
 */
#ifndef RUNTIME_MEMORY_HEAP_H
#define RUNTIME_MEMORY_HEAP_H

#include <stdint.h>

/* Once, before threads start: few arenas, which keep the room of a few large answers; larger blocks
 * go back to the system when freed. */
void heap_configure(void);

/* Gives free pages back when more than this is resident. Takes tens of milliseconds then: call it
 * from a thread that no other waits for. Returns what is resident, in bytes; 0: unknown. */
uint64_t heap_trim_above(uint64_t resident_max);

#endif
