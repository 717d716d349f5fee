component(node_state LAYER 4
    SOURCES blob.c state.c state_table.c state_order.c state_range.c state_checkpoint.c state_run.c row_pool.c rows.c op.c meta.c totals.c audit.c
            session.c player.c player_row.c arena_proto.c proto_scan.c text_rule.c refusal.c outcome_row.c session_apply.c timers.c
            ledger.c sha256.c json_canon.c json_edit.c section_edit.c authority.c apply.c apply_prepare.c
            apply_answer.c apply_read.c profile.c goods.c mailbox.c channel_row.c channel_out.c
            channel_settle.c channel_in.c wallet_change.c txn_row.c txn_part.c txn_home.c
            txn_member.c receipt.c receipt_settle.c txn_delta.c restore.c row_check.c player_rebuild.c row_repair.c
    HEADERS state.h state_row.h state_run.h row_pool.h rows.h op.h meta.h totals.h audit.h session.h player.h player_row.h handler.h apply.h
            arena_proto.h proto_scan.h text_rule.h refusal.h outcome_row.h session_apply.h timers.h ledger.h
            json_canon.h json_edit.h section_edit.h apply_internal.h profile.h goods.h mailbox.h
            channel_row.h channel_out.h channel_in.h sha256.h wallet_change.h txn_row.h
            txn_part.h txn_home.h txn_member.h receipt.h txn_delta.h restore.h row_check.h player_rebuild.h row_repair.h
    DEPENDS base cluster idl_proto idl node_rep
    EXTERNAL PkgConfig::JANSSON external::mbedtls)
unit_test(state_test node_state)
unit_test(row_check_test node_state)
unit_test(state_forget_test node_state)
unit_test(row_pool_test node_state)
unit_test(op_test node_state)
unit_test(meta_test node_state)
unit_test(totals_test node_state)
unit_test(proto_scan_test node_state)
unit_test(player_test node_state)
unit_test(sha256_test node_state)
unit_test(json_canon_test node_state)
