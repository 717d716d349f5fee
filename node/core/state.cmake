component(node_state LAYER 4
    SOURCES blob.c state.c state_table.c state_range.c state_checkpoint.c rows.c op.c meta.c
            session.c player.c
    HEADERS state.h state_row.h rows.h op.h meta.h session.h player.h handler.h apply.h
    DEPENDS base cluster idl_proto idl node_rep
    EXTERNAL PkgConfig::JANSSON external::mbedtls)
