#include "node/rpc/handlers.h"

#include "idl/method.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

/* clang-format off */
static const struct handler *const handlers[] = {
    [METHOD_START_SESSION]     = &session_start_session_handler,
    [METHOD_END_SESSION]       = &session_end_session_handler,
    [METHOD_GET_PROFILE]       = &profile_get_profile_handler,
    [METHOD_UPDATE_PROFILE]    = &profile_update_profile_handler,
    [METHOD_GRANT]             = &ledger_grant_handler,
    [METHOD_SPEND]             = &ledger_spend_handler,
    [METHOD_RESERVE]           = &ledger_reserve_handler,
    [METHOD_POST]              = &ledger_post_handler,
    [METHOD_VOID]              = &ledger_void_handler,
    [METHOD_REVERSE]           = &ledger_reverse_handler,
    [METHOD_GET_BALANCES]      = &ledger_get_balances_handler,
    [METHOD_LIST_RESERVATIONS] = &ledger_list_reservations_handler,
    [METHOD_LIST_ENTRIES]      = &ledger_list_entries_handler,
    [METHOD_LEDGER_TRANSFER]   = &ledger_transfer_handler,
    [METHOD_MINT]              = &inventory_mint_handler,
    [METHOD_CONSUME]           = &inventory_consume_handler,
    [METHOD_LIST_ITEMS]        = &inventory_list_items_handler,
    [METHOD_INVENTORY_TRANSFER] = &inventory_transfer_handler,
    [METHOD_MAILBOX_SEND]      = &mailbox_send_handler,
    [METHOD_MAILBOX_LIST]      = &mailbox_list_handler,
    [METHOD_MAILBOX_CLAIM]     = &mailbox_claim_handler,
    [METHOD_RETURN_EXPIRED]    = &mailbox_return_expired_handler,
    [METHOD_GET_OPERATION]     = &operation_get_operation_handler,
    [METHOD_RESOLVE_OPERATION] = &operation_resolve_operation_handler,
    [METHOD_GET_SESSION]       = &admin_get_session_handler,
    [METHOD_RENEW_TOKENS]      = &node_renew_tokens_handler,
    [METHOD_RESERVATION_DUE]   = &node_reservation_due_handler,
    [METHOD_ITEM_HISTORY]      = &node_item_history_handler,
    [METHOD_EXPIRE_SERVER]     = &node_expire_server_handler,
    [METHOD_APPLY_POLICY]      = &node_apply_policy_handler,
    [METHOD_SESSION_DUE]       = &node_session_due_handler,
    [METHOD_SESSION_HOLD]      = &node_session_hold_handler,
    [METHOD_PRUNE_OPERATIONS]  = &node_prune_operations_handler,
    [METHOD_CHANNEL_DELIVER]   = &channel_deliver_handler,
    [METHOD_CHANNEL_SETTLE]    = &channel_settle_handler,
    [METHOD_LIST_PLAYERS]      = &admin_list_players_handler,
    [METHOD_EXECUTE]           = &transaction_execute_handler,
    [METHOD_SWAP]              = &transaction_swap_handler,
    [METHOD_TAKE_CUT]          = &node_take_cut_handler,
    [METHOD_AUDIT_SEARCH]      = &node_audit_search_handler,
    [METHOD_READ_SETTLED]      = &node_read_settled_handler,
    [METHOD_MEMBER_STATE]      = &node_member_state_handler,
#ifdef HOLDFAST_DEBUG_INJECT
    [METHOD_DEBUG_INJECT]      = &debug_inject_handler,
#endif
    [METHOD_GET_BACKUP_STATE]  = &backup_get_backup_state_handler,
    [METHOD_CUT_BACKUP]        = &backup_cut_backup_handler,
    [METHOD_BEGIN_RESTORE]     = &backup_begin_restore_handler,
    [METHOD_RESTORE_ROWS]      = &backup_restore_rows_handler,
    [METHOD_FINISH_RESTORE]    = &backup_finish_restore_handler,
    [METHOD_CONTAIN_PLAYER]    = &node_contain_player_handler,
    [METHOD_LIST_QUARANTINED]  = &admin_list_quarantined_handler,
    [METHOD_GET_QUARANTINE]    = &admin_get_quarantine_handler,
    [METHOD_CHECK_PLAYER]      = &admin_check_player_handler,
    [METHOD_REPAIR_PLAYER]     = &admin_repair_player_handler,
    [METHOD_REPAIR_ROW]        = &admin_repair_row_handler,
    [METHOD_RELEASE_QUARANTINE] = &admin_release_quarantine_handler,
};
/* clang-format on */

const struct handler_table *node_handlers(void)
{
    static const struct handler_table table = { handlers, ARRAY_SIZE(handlers) };
    return &table;
}
