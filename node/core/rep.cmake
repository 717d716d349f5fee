component(node_rep LAYER 3
    SOURCES vector.c entry.c start.c rep_message.c rep.c rep_log.c rep_out.c rep_seal.c rep_fetch.c
        rep_append.c rep_accept.c rep_read.c rep_judge.c
    HEADERS vector.h entry.h start.h rep_message.h rep.h rep_internal.h
    DEPENDS base)
unit_test(vector_test node_rep)
unit_test(entry_test node_rep)
unit_test(rep_message_test node_rep)

# Simulated network, disks and ownership record, for tests of this folder and of tests/sim.
component(node_rep_sim LAYER 4
    SOURCES rep_sim.c rep_sim_check.c rep_sim_chaos.c sim_disk.c sim_queue.c
    HEADERS rep_sim.h rep_narrative.h sim_disk.h sim_queue.h
    DEPENDS base node_rep)
unit_test(sim_queue_test node_rep_sim)
unit_test(rep_sim_test node_rep_sim TIMEOUT 600)
foreach(part rep rep_log rep_seal rep_fetch rep_append rep_accept rep_read)
    unit_test(${part}_test node_rep_sim)
endforeach()
