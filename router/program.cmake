if(TARGET router_io)
    program(holdfast-router SOURCES main.c DEPENDS router_io)
    target_compile_definitions(holdfast-router PRIVATE HOLDFAST_VERSION="${PROJECT_VERSION}")
endif()
