if(NOT EXISTS ${CMAKE_CURRENT_LIST_DIR}/apply.c OR NOT EXISTS ${CMAKE_CURRENT_LIST_DIR}/rep.c)
    return()
endif()
component(node_core LAYER 5
    SOURCES shard.c shard_list.c shard_reply.c shard_call.c shard_apply.c shard_read.c shard_channel.c shard_settle.c shard_operation.c
            shard_settled.c shard_yield.c read_hold.c
            shard_incident.c shard_contain.c shard_snapshot.c
            channel_lanes.c key_set.c
            read_options.c request_shard.c
    HEADERS shard.h shard_snapshot.h incident.h shard_internal.h channel_lanes.h key_set.h read_hold.h read_options.h request_shard.h
    DEPENDS base idl cluster node_rep node_state)
unit_test(key_set_test node_core)
unit_test(read_hold_test node_core)
