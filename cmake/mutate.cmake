# Preset `mutate` (./dev mutate): the cores' files come from ${HOLDFAST_MUTATED}, where tools/mutate wrote each with
# all its mutants, and mutant_run chooses one when a program starts. ${HOLDFAST_MUTATED}/files lists them.
set(HOLDFAST_MUTATED "" CACHE PATH "where tools/mutate writes the cores with their mutants")
if(HOLDFAST_MUTATED)
    set(HOLDFAST_WARNINGS -w) # Mutants compare what is always true.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${HOLDFAST_MUTATED}/files)
    file(STRINGS ${HOLDFAST_MUTATED}/files HOLDFAST_MUTATED_FILES)
    set(MUTANT_TABLE ${HOLDFAST_MUTATED}/mutant_table.c)
    set_source_files_properties(${MUTANT_TABLE} PROPERTIES GENERATED ON)
    add_library(mutant_run STATIC ${CMAKE_SOURCE_DIR}/tools/mutate/mutant_run.c ${MUTANT_TABLE})
    target_include_directories(mutant_run PUBLIC ${CMAKE_SOURCE_DIR})
    target_compile_definitions(mutant_run PRIVATE _GNU_SOURCE)
    add_custom_target(mutants) # All that judges a mutant.
endif()

# mutate_component(NAME): its files in the list are the mutated ones.
function(mutate_component NAME)
    get_target_property(sources ${NAME} SOURCES)
    set(mutated)
    foreach(source IN LISTS sources)
        cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE file)
        cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE file)
        if(file IN_LIST HOLDFAST_MUTATED_FILES)
            set(source ${HOLDFAST_MUTATED}/${file})
            set_source_files_properties(${source} PROPERTIES GENERATED ON)
            target_link_libraries(${NAME} PUBLIC mutant_run)
        endif()
        list(APPEND mutated ${source})
    endforeach()
    set_property(TARGET ${NAME} PROPERTY SOURCES ${mutated})
endfunction()

# mutate_test(NAME TEST): a unit test of a core judges mutants; ctest knows it by its label. One that starts an etcd does
# not: judges run often, many at a time, and with less memory than etcd reserves.
function(mutate_test NAME TEST)
    get_target_property(linked ${NAME} LINK_LIBRARIES)
    if("etcd_process" IN_LIST linked OR "etcd_fixture" IN_LIST linked)
        return()
    endif()
    if(CMAKE_CURRENT_SOURCE_DIR MATCHES "/(node/core|node/rpc|router/core|router/rpc|coordinator/core)(/|$)")
        add_dependencies(mutants ${NAME})
        set_tests_properties(${TEST} PROPERTIES LABELS mutants)
    endif()
endfunction()
