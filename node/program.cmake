if(TARGET node_io)
    program(holdfast-node SOURCES main.c DEPENDS node_io node_rpc)
    target_compile_definitions(holdfast-node PRIVATE HOLDFAST_VERSION="${PROJECT_VERSION}")
endif()
