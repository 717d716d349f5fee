if(TARGET coordinator_io)
    program(holdfast-coordinator SOURCES main.c DEPENDS coordinator_io)
    target_compile_definitions(holdfast-coordinator PRIVATE HOLDFAST_VERSION="${PROJECT_VERSION}")
endif()
