# What a caller sees: the examples and the demo, each against a cluster of its own.
if(TARGET holdfast AND TARGET holdfast-node AND TARGET holdfast-example)
    add_test(NAME integration.examples COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/examples.sh
        $<TARGET_FILE:holdfast> $<TARGET_FILE:holdfast-example>)
    add_test(NAME integration.demo COMMAND ${CMAKE_SOURCE_DIR}/demo/run --exit)
    set_tests_properties(integration.examples integration.demo PROPERTIES
        LABELS release COST 100 TIMEOUT 180
        ENVIRONMENT "HOLDFAST_BIN=$<TARGET_FILE_DIR:holdfast>")
endif()
