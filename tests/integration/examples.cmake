# What a caller sees: the examples, the demo and the documentation, each against a cluster of its own.
if(TARGET holdfast-example AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
    add_test(NAME integration.examples COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/examples.sh
        $<TARGET_FILE:holdfast> $<TARGET_FILE:holdfast-example>)
    add_test(NAME integration.demo COMMAND ${CMAKE_SOURCE_DIR}/demo/run --exit)
    add_test(NAME integration.docs COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/docs.py
        $<TARGET_FILE:holdfast> tasks.md sessions.md grants.md operations.md profiles.md
        transfers.md transactions.md receipts.md ledger.md protocols.md json.md rest.md player-tokens.md definitions.md favorites.md
        counters.md settings.md documents.md presence.md users.md erasure.md rebuild.md events.md abuse.md migrating-favorites.md
        WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/docs)
    set_tests_properties(integration.examples integration.demo integration.docs PROPERTIES
        LABELS release COST 60 TIMEOUT 600
        ENVIRONMENT "HOLDFAST_BIN=$<TARGET_FILE_DIR:holdfast>")
endif()
