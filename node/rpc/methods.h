/* methods: the handlers of single methods, for the table in handlers.c. One file each. */
#ifndef NODE_RPC_METHODS_H
#define NODE_RPC_METHODS_H

#include "node/core/handler.h"

extern const struct handler session_start_session_handler;
extern const struct handler session_end_session_handler;
extern const struct handler profile_get_profile_handler;
extern const struct handler profile_update_profile_handler;
extern const struct handler ledger_grant_handler;
extern const struct handler ledger_spend_handler;
extern const struct handler ledger_reserve_handler;
extern const struct handler ledger_list_reservations_handler;
extern const struct handler ledger_post_handler;
extern const struct handler ledger_void_handler;
extern const struct handler ledger_reverse_handler;
extern const struct handler ledger_get_balances_handler;
extern const struct handler ledger_list_entries_handler;
extern const struct handler inventory_mint_handler;
extern const struct handler inventory_consume_handler;
extern const struct handler inventory_list_items_handler;
extern const struct handler operation_get_operation_handler;
extern const struct handler operation_resolve_operation_handler;
extern const struct handler admin_get_session_handler;
extern const struct handler node_renew_tokens_handler;
extern const struct handler node_reservation_due_handler;
extern const struct handler node_item_history_handler;
extern const struct handler node_member_state_handler;
extern const struct handler node_expire_server_handler;
extern const struct handler node_apply_policy_handler;
extern const struct handler node_session_due_handler;
extern const struct handler node_session_hold_handler;
extern const struct handler node_prune_operations_handler;
extern const struct handler ledger_transfer_handler;
extern const struct handler inventory_transfer_handler;
extern const struct handler mailbox_send_handler;
extern const struct handler mailbox_list_handler;
extern const struct handler mailbox_claim_handler;
extern const struct handler mailbox_return_expired_handler;
extern const struct handler channel_deliver_handler;
extern const struct handler channel_settle_handler;
extern const struct handler admin_list_players_handler;
extern const struct handler transaction_execute_handler;
extern const struct handler transaction_swap_handler;
extern const struct handler node_contain_player_handler;
extern const struct handler node_read_settled_handler;
extern const struct handler node_take_cut_handler;
extern const struct handler node_audit_search_handler;
extern const struct handler debug_inject_handler; /* With HOLDFAST_DEBUG_INJECT alone. */
extern const struct handler admin_list_quarantined_handler;
extern const struct handler admin_get_quarantine_handler;
extern const struct handler admin_release_quarantine_handler;
extern const struct handler admin_check_player_handler;
extern const struct handler admin_repair_player_handler;
extern const struct handler admin_repair_row_handler;
extern const struct handler backup_get_backup_state_handler;
extern const struct handler backup_cut_backup_handler;
extern const struct handler backup_begin_restore_handler;
extern const struct handler backup_restore_rows_handler;
extern const struct handler backup_finish_restore_handler;

#endif
