/*
 * machine: how much memory this process may expect, and the share of it that answers on their way
 * may take where no option says (docs/sizing.md).
 */
#ifndef RUNTIME_MEMORY_MACHINE_H
#define RUNTIME_MEMORY_MACHINE_H

#include <stdint.h>

/* Bytes of this machine, or of the control group that this process is in if that allows fewer. */
uint64_t memory_machine_bytes(void);
/* `configured`, or if that is 0 a sixteenth of memory_machine_bytes: 16 MiB at least, for a few
 * large answers, and 2 GiB at most. */
uint64_t memory_share(uint64_t configured);

#endif
