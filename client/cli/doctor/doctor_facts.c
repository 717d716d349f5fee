#include "client/cli/doctor/doctor_facts.h"

#include <stddef.h>

struct process_facts *doctor_find_node(const struct doctor_facts *facts, uint64_t replica_id)
{
    for (uint32_t i = 0; i < facts->process_count; i++) {
        if (facts->processes[i].role == PROCESS_NODE &&
            facts->processes[i].replica_id == replica_id)
            return &facts->processes[i];
    }
    return NULL;
}
