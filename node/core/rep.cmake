component(node_rep LAYER 3
    SOURCES vector.c entry.c start.c rep_message.c
    HEADERS vector.h entry.h start.h rep_message.h rep.h
    DEPENDS base)
unit_test(vector_test node_rep)
unit_test(entry_test node_rep)
unit_test(rep_message_test node_rep)
