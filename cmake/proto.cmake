# proto_library(NAME LAYER n ROOT dir PROTOS a.proto ..): C code by protoc-c, in the build tree.
find_program(PROTOC_C protoc-c REQUIRED)
find_program(PYTHON3 python3 REQUIRED)
add_custom_target(generated) # All of it, for what reads sources without building them.
function(proto_library NAME)
    cmake_parse_arguments(P "" "LAYER;ROOT" "PROTOS" ${ARGN})
    set(out ${CMAKE_BINARY_DIR}/generated)
    file(MAKE_DIRECTORY ${out})
    set(plain ${CMAKE_BINARY_DIR}/proto/${NAME})
    set(sources)
    set(inputs ${PROJECT_SOURCE_DIR}/cmake/proto_for_c.py)
    set(headers)
    foreach(proto IN LISTS P_PROTOS)
        string(REGEX REPLACE "\\.proto$" ".pb-c" stem ${proto})
        list(APPEND sources ${out}/${stem}.c ${out}/${stem}.h)
        list(APPEND headers ${out}/${stem}.h)
        list(APPEND inputs ${P_ROOT}/${proto})
    endforeach()
    add_custom_command(OUTPUT ${sources}
        COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/cmake/proto_for_c.py ${P_ROOT} ${plain}
            ${P_PROTOS}
        COMMAND ${PROTOC_C} -I ${plain} --c_out=${out} ${P_PROTOS}
        # A method may be named as C forbids (LedgerService.VoidReservation): the tables of services, which
        # nothing here uses, call it void_.
        COMMAND sed -i "s/(\\*void)(/(*void_)(/" ${headers}
        DEPENDS ${inputs} COMMENT "protoc-c ${NAME}" VERBATIM)
    add_library(${NAME} STATIC ${sources})
    target_include_directories(${NAME} SYSTEM PUBLIC ${out})
    target_link_libraries(${NAME} PUBLIC PkgConfig::PROTOBUF_C)
    set_property(TARGET ${NAME} PROPERTY LAYER ${P_LAYER})
    add_dependencies(generated ${NAME})
endfunction()
