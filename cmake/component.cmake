# component(NAME LAYER n SOURCES .. HEADERS .. DEPENDS .. EXTERNAL ..)
# A static library. It may depend only on components of a strictly lower layer, so an upward
# dependency is refused at configure time. node, router and coordinator never use each other.
set(HOLDFAST_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes
    -Wmissing-prototypes -Wvla -Wundef -Wformat=2 -Wpointer-arith -Werror)
set(HOLDFAST_DEFINES _GNU_SOURCE)
include(${CMAKE_CURRENT_LIST_DIR}/mutate.cmake)

# Servers of a release, and what measures them, are optimised as a whole: up to a tenth less processor
# time a grant. The objects are fat, so that tests and tools, which are many, link as ever.
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set(HOLDFAST_LTO_COMPILE -flto -ffat-lto-objects)
    set(HOLDFAST_LTO_LINK -flto=auto)
    set(HOLDFAST_PLAIN_LINK -fno-lto)
endif()

# The preset `sim` builds one program, which runs a hundred thousand seeds and meets nothing from outside:
# optimised as a whole, objects for that alone, and without what hardens a server.
option(HOLDFAST_FAST_SIM "build the simulator to run many seeds" OFF)
if(HOLDFAST_FAST_SIM)
    add_compile_options(-fno-pie)
    add_link_options(-no-pie)
endif()
if(HOLDFAST_FAST_SIM AND HOLDFAST_LTO_COMPILE)
    set(HOLDFAST_LTO_COMPILE -flto)
    set(HOLDFAST_PLAIN_LINK)
endif()

# A release is built so that a mistake in memory is hard to use; tests/integration/hardening_test.py reads
# it in the programs. A shared library (of tests) is position-independent by itself.
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND NOT HOLDFAST_FAST_SIM)
    set(shared $<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>)
    set(program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
    add_compile_options(-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 $<$<NOT:${shared}>:-fPIE>)
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        add_compile_options(-fcf-protection)
    endif()
    add_link_options($<${program}:-pie> -Wl,-z,relro,-z,now)
endif()

function(holdfast_check_dependency NAME LAYER DEP)
    get_property(dep_layer TARGET ${DEP} PROPERTY LAYER)
    if(dep_layer STREQUAL "")
        message(FATAL_ERROR "${NAME}: ${DEP} is not a component; libraries go under EXTERNAL")
    endif()
    if(NOT dep_layer LESS LAYER)
        message(FATAL_ERROR "${NAME} (layer ${LAYER}) may not use ${DEP} (layer ${dep_layer})")
    endif()
    string(REGEX MATCH "^(node|router|coordinator)_" own "${NAME}")
    string(REGEX MATCH "^(node|router|coordinator)_" other "${DEP}")
    if(own AND other AND NOT own STREQUAL other)
        message(FATAL_ERROR "${NAME} may not use ${DEP}: processes share only runtime and idl")
    endif()
endfunction()

function(component NAME)
    cmake_parse_arguments(C "" "LAYER" "SOURCES;HEADERS;DEPENDS;EXTERNAL" ${ARGN})
    add_library(${NAME} STATIC ${C_SOURCES} ${C_HEADERS})
    target_include_directories(${NAME} PUBLIC ${PROJECT_SOURCE_DIR})
    target_compile_options(${NAME} PRIVATE ${HOLDFAST_WARNINGS} ${HOLDFAST_LTO_COMPILE})
    target_compile_definitions(${NAME} PRIVATE ${HOLDFAST_DEFINES})
    set_property(TARGET ${NAME} PROPERTY LAYER ${C_LAYER})
    foreach(dep IN LISTS C_DEPENDS)
        holdfast_check_dependency(${NAME} ${C_LAYER} ${dep})
    endforeach()
    target_link_libraries(${NAME} PUBLIC ${C_DEPENDS} ${C_EXTERNAL})
    if(HOLDFAST_MUTATED)
        mutate_component(${NAME})
    endif()
endfunction()

# What tests of a release need: no unit tests, fuzzers' replays or micro-benchmarks; nor holdfast-sim, which they run
# as the presets sim and asan build it.
add_custom_target(programs)

# program(NAME SOURCES .. DEPENDS .. EXTERNAL ..): an executable in bin/.
function(program NAME)
    cmake_parse_arguments(P "" "" "SOURCES;DEPENDS;EXTERNAL" ${ARGN})
    add_executable(${NAME} ${P_SOURCES})
    target_compile_options(${NAME} PRIVATE ${HOLDFAST_WARNINGS})
    target_compile_definitions(${NAME} PRIVATE ${HOLDFAST_DEFINES})
    if(HOLDFAST_FAST_SIM)
        target_compile_options(${NAME} PRIVATE ${HOLDFAST_LTO_COMPILE})
        target_link_options(${NAME} PRIVATE ${HOLDFAST_LTO_LINK})
    elseif(NAME MATCHES "^holdfast-(node|router|coordinator)$|_bench$")
        target_link_options(${NAME} PRIVATE ${HOLDFAST_LTO_LINK})
    else()
        target_link_options(${NAME} PRIVATE ${HOLDFAST_PLAIN_LINK})
    endif()
    target_link_libraries(${NAME} PRIVATE ${P_DEPENDS} ${P_EXTERNAL})
    if(NOT NAME MATCHES "_(fuzz|bench)$|^holdfast-sim$")
        add_dependencies(programs ${NAME})
    endif()
endfunction()

# unit_test(NAME COMPONENT [EXTRA targets] [TIMEOUT s]): builds NAME.c against cmocka, runs it.
function(unit_test NAME COMPONENT)
    cmake_parse_arguments(T "" "TIMEOUT" "EXTRA" ${ARGN})
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 300) # A bound for what hangs; generous, as machines may be slow and busy.
    endif()
    add_executable(${NAME} ${NAME}.c)
    target_compile_options(${NAME} PRIVATE ${HOLDFAST_WARNINGS})
    target_compile_definitions(${NAME} PRIVATE ${HOLDFAST_DEFINES})
    target_link_options(${NAME} PRIVATE ${HOLDFAST_PLAIN_LINK})
    target_link_libraries(${NAME} PRIVATE ${COMPONENT} ${T_EXTRA} PkgConfig::CMOCKA)
    set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${COMPONENT}.${NAME} COMMAND ${NAME})
    set_tests_properties(${COMPONENT}.${NAME} PROPERTIES TIMEOUT ${T_TIMEOUT})
    if(HOLDFAST_MUTATED)
        mutate_test(${NAME} ${COMPONENT}.${NAME})
    endif()
endfunction()
