/*
 * method: the one table of all RPC methods, in .proto order, shared by router, node, coordinator
 * and client. A method's number is its identity on the wire and in the log: numbers are never
 * reused, new methods get new numbers.
 */
#ifndef IDL_METHOD_H
#define IDL_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "idl/scope.h"
#include "runtime/base/buf.h"

/* Who answers a method, and how a request finds the way. */
enum method_route {
    METHOD_ROUTER,      /* The router itself, with etcd's help.                               */
    METHOD_STREAM,      /* The router itself, with a stream of messages.                      */
    METHOD_SCATTER,     /* The router splits it; `element` names the method of each part.     */
    METHOD_MUTATION,    /* To the owner of the home entity's shard; goes through the log.     */
    METHOD_READ,        /* To the owner of the entity's shard; a linearizable read.           */
    METHOD_SHARD,       /* To the owner of the shard the request names; read there.           */
    METHOD_SHARD_WRITE, /* To the owner of the shard the request names; goes through the log. */
    METHOD_SHARD_VIEW,  /* To the owner of the shard the request names; answered beside its log. */
    METHOD_NODE,        /* To a node, about itself.                                           */
    METHOD_OWNER,       /* Appended by a shard's owner itself; refused from outside.          */
    METHOD_COORDINATOR  /* To the elected coordinator.                                        */
};

/* The scopes of keys that a method is open to: the last word of each row's route. */
#define METHOD_SCOPES_NONE  0u /* Internal: no key reaches it. */
#define METHOD_SCOPES_ANY   SCOPES_ALL
#define METHOD_SCOPES_GAME  SCOPE_GAME
#define METHOD_SCOPES_ADMIN SCOPE_ADMIN
#define METHOD_SCOPES_STAFF (SCOPE_ADMIN | SCOPE_MODERATION)
#define METHOD_SCOPES_WRITE SCOPES_WRITE /* And what the authority in the message asks for. */

/* clang-format off */
/*    number enumerator  package  Service  Method  route  scopes  element  request and response */
#define METHOD_TABLE(X) \
    X( 1, REGISTER_SERVER,   v1, SessionService, RegisterServer, METHOD_ROUTER, GAME, 0, register_server) \
    X( 2, UNREGISTER_SERVER, v1, SessionService, UnregisterServer, METHOD_ROUTER, GAME, 0, unregister_server) \
    X( 3, START_SESSION,     v1, SessionService, StartSession, METHOD_MUTATION, GAME, 0, start_session) \
    X( 4, RENEW_SESSIONS,    v1, SessionService, RenewSessions, METHOD_SCATTER, GAME, 64, renew_sessions) \
    X( 5, END_SESSION,       v1, SessionService, EndSession, METHOD_MUTATION, GAME, 0, end_session) \
    X( 6, BATCH_START_SESSION, v1, SessionService, BatchStartSession, METHOD_SCATTER, GAME, 3, batch_start_session) \
    X( 7, BATCH_END_SESSION, v1, SessionService, BatchEndSession, METHOD_SCATTER, GAME, 5, batch_end_session) \
    X(10, GET_PROFILE,       v1, ProfileService, GetProfile, METHOD_READ, ANY, 0, get_profile) \
    X(11, BATCH_GET_PROFILE, v1, ProfileService, BatchGetProfile, METHOD_SCATTER, ANY, 10, batch_get_profile) \
    X(12, UPDATE_PROFILE,    v1, ProfileService, UpdateProfile, METHOD_MUTATION, WRITE, 0, update_profile) \
    X(13, BATCH_UPDATE_PROFILE, v1, ProfileService, BatchUpdateProfile, METHOD_SCATTER, WRITE, 12, batch_update_profile) \
    X(20, GRANT,             v1, LedgerService, Grant, METHOD_MUTATION, WRITE, 0, grant) \
    X(21, SPEND,             v1, LedgerService, Spend, METHOD_MUTATION, WRITE, 0, spend) \
    X(22, BATCH_GRANT,       v1, LedgerService, BatchGrant, METHOD_SCATTER, WRITE, 20, batch_grant) \
    X(23, GET_BALANCES,      v1, LedgerService, GetBalances, METHOD_READ, ANY, 0, get_balances) \
    X(24, LIST_ENTRIES,      v1, LedgerService, ListEntries, METHOD_READ, ANY, 0, list_entries) \
    X(25, LEDGER_TRANSFER,   v1, LedgerService, Transfer, METHOD_MUTATION, WRITE, 0, ledger_service_transfer) \
    X(26, RESERVE,           v1, LedgerService, Reserve, METHOD_MUTATION, WRITE, 0, reserve) \
    X(27, POST,              v1, LedgerService, Post, METHOD_MUTATION, WRITE, 0, post) \
    X(28, VOID,              v1, LedgerService, Void, METHOD_MUTATION, WRITE, 0, void) \
    X(29, REVERSE,           v1, LedgerService, Reverse, METHOD_MUTATION, WRITE, 0, reverse) \
    X(30, MINT,              v1, InventoryService, Mint, METHOD_MUTATION, WRITE, 0, mint) \
    X(31, LIST_ITEMS,        v1, InventoryService, ListItems, METHOD_READ, ANY, 0, list_items) \
    X(32, INVENTORY_TRANSFER, v1, InventoryService, Transfer, METHOD_MUTATION, WRITE, 0, inventory_service_transfer) \
    X(33, CONSUME,           v1, InventoryService, Consume, METHOD_MUTATION, WRITE, 0, consume) \
    X(34, TRACE,             v1, InventoryService, Trace, METHOD_ROUTER, ANY, 74, trace) \
    X(35, MAILBOX_SEND,      v1, MailboxService, Send, METHOD_MUTATION, WRITE, 0, mailbox_service_send) \
    X(36, MAILBOX_LIST,      v1, MailboxService, List, METHOD_READ, ANY, 0, mailbox_service_list) \
    X(37, MAILBOX_CLAIM,     v1, MailboxService, Claim, METHOD_MUTATION, WRITE, 0, mailbox_service_claim) \
    X(38, RETURN_EXPIRED,    v1, MailboxService, ReturnExpired, METHOD_MUTATION, WRITE, 0, return_expired) \
    X(40, GET_OPERATION,     v1, OperationService, GetOperation, METHOD_READ, ANY, 0, get_operation) \
    X(41, RESOLVE_OPERATION, v1, OperationService, ResolveOperation, METHOD_MUTATION, WRITE, 0, resolve_operation) \
    X(50, GET_CLUSTER,       v1, AdminService, GetCluster, METHOD_ROUTER, ANY, 67, get_cluster) \
    X(51, LIST_SHARDS,       v1, AdminService, ListShards, METHOD_ROUTER, ANY, 67, list_shards) \
    X(52, LIST_SERVERS,      v1, AdminService, ListServers, METHOD_ROUTER, ANY, 0, list_servers) \
    X(53, GET_SESSION,       v1, AdminService, GetSession, METHOD_READ, ANY, 0, get_session) \
    X(54, SET_POLICY,        v1, AdminService, SetPolicy, METHOD_ROUTER, ADMIN, 66, set_policy) \
    X(64, RENEW_TOKENS,      internal__v1, NodeService, RenewTokens, METHOD_SHARD, NONE, 0, renew_tokens) \
    X(65, EXPIRE_SERVER,     internal__v1, NodeService, ExpireServer, METHOD_SHARD_WRITE, NONE, 0, expire_server) \
    X(66, APPLY_POLICY,      internal__v1, NodeService, ApplyPolicy, METHOD_SHARD_WRITE, NONE, 0, apply_policy) \
    X(67, GET_NODE_STATUS,   internal__v1, NodeService, GetNodeStatus, METHOD_NODE, NONE, 0, get_node_status) \
    X(68, SESSION_DUE,       internal__v1, NodeService, SessionDue, METHOD_OWNER, NONE, 0, session_due) \
    X(69, SESSION_HOLD,      internal__v1, NodeService, SessionHold, METHOD_OWNER, NONE, 0, session_hold) \
    X(70, PRUNE_OPERATIONS,  internal__v1, NodeService, PruneOperations, METHOD_OWNER, NONE, 0, prune_operations) \
    X(71, CHANNEL_DELIVER,   internal__v1, ChannelService, Deliver, METHOD_SHARD_WRITE, NONE, 0, deliver) \
    X(72, CHANNEL_SETTLE,    internal__v1, ChannelService, Settle, METHOD_OWNER, NONE, 0, settle) \
    X(73, RESERVATION_DUE,   internal__v1, NodeService, ReservationDue, METHOD_OWNER, NONE, 0, reservation_due) \
    X(74, ITEM_HISTORY,      internal__v1, NodeService, ItemHistory, METHOD_SHARD, NONE, 0, item_history) \
    X(80, REPORT_OWNER,      internal__v1, CoordinatorService, ReportOwner, METHOD_COORDINATOR, NONE, 0, report_owner) \
    X(81, GET_COORDINATOR_STATUS, internal__v1, CoordinatorService, GetCoordinatorStatus, METHOD_COORDINATOR, NONE, 0, get_coordinator_status) \
    X(90, EXECUTE,           v1, TransactionService, Execute, METHOD_MUTATION, WRITE, 0, execute) \
    X(91, SWAP,              v1, TransactionService, Swap, METHOD_MUTATION, WRITE, 0, swap) \
    X(92, TRANSACTION_READ,  v1, TransactionService, Read, METHOD_ROUTER, ANY, 93, transaction_service_read) \
    X(93, READ_SETTLED,      internal__v1, NodeService, ReadSettled, METHOD_READ, NONE, 0, read_settled) \
    X(110, LIST_PLAYERS,     v1, AdminService, ListPlayers, METHOD_SHARD, ANY, 0, list_players) \
    X(111, LIST_EVENTS,      v1, AdminService, ListEvents, METHOD_ROUTER, ANY, 112, list_events) \
    X(112, LIST_NODE_EVENTS, internal__v1, NodeService, ListNodeEvents, METHOD_NODE, NONE, 0, list_node_events) \
    X(113, CONTAIN_PLAYER,   internal__v1, NodeService, ContainPlayer, METHOD_SHARD_WRITE, NONE, 0, contain_player) \
    X(114, LIST_QUARANTINED, v1, AdminService, ListQuarantined, METHOD_SHARD, ANY, 0, list_quarantined) \
    X(115, GET_QUARANTINE,   v1, AdminService, GetQuarantine, METHOD_READ, ANY, 0, get_quarantine) \
    X(116, RELEASE_QUARANTINE, v1, AdminService, ReleaseQuarantine, METHOD_MUTATION, STAFF, 0, release_quarantine) \
    X(117, TAKE_CUT,         internal__v1, NodeService, TakeCut, METHOD_SHARD_WRITE, NONE, 0, take_cut) \
    X(118, AUDIT_SEARCH,     internal__v1, NodeService, AuditSearch, METHOD_SHARD, NONE, 0, audit_search) \
    METHOD_TABLE_DEBUG(X) \
    X(120, WATCH_EVENTS,     v1, AdminService, WatchEvents, METHOD_STREAM, ANY, 112, watch_events) \
    X(121, LIST_RESERVATIONS, v1, LedgerService, ListReservations, METHOD_READ, ANY, 0, list_reservations) \
    X(126, MEMBER_STATE,     internal__v1, NodeService, MemberState, METHOD_SHARD, NONE, 0, member_state) \
    X(127, MOVE_SHARD,       v1, AdminService, MoveShard, METHOD_ROUTER, ADMIN, 0, move_shard) \
    X(128, CHANGE_NODE,      v1, AdminService, ChangeNode, METHOD_ROUTER, ADMIN, 0, change_node) \
    X(129, REBALANCE,        v1, AdminService, Rebalance, METHOD_ROUTER, ADMIN, 0, rebalance) \
    X(130, ACCEPT_ETCD_RESTORE, v1, AdminService, AcceptEtcdRestore, METHOD_ROUTER, ADMIN, 67, accept_etcd_restore) \
    X(140, GET_BACKUP_STATE, v1, BackupService, GetBackupState, METHOD_SHARD, ADMIN, 0, get_backup_state) \
    X(141, ARM_BACKUP,       v1, BackupService, ArmBackup, METHOD_SHARD_VIEW, ADMIN, 0, arm_backup) \
    X(142, CUT_BACKUP,       v1, BackupService, CutBackup, METHOD_SHARD_WRITE, ADMIN, 0, cut_backup) \
    X(143, READ_BACKUP,      v1, BackupService, ReadBackup, METHOD_SHARD_VIEW, ADMIN, 0, read_backup) \
    X(144, PREPARE_RESTORE,  v1, BackupService, PrepareRestore, METHOD_ROUTER, ADMIN, 0, prepare_restore) \
    X(145, BEGIN_RESTORE,    v1, BackupService, BeginRestore, METHOD_SHARD_WRITE, ADMIN, 0, begin_restore) \
    X(146, RESTORE_ROWS,     v1, BackupService, RestoreRows, METHOD_SHARD_WRITE, ADMIN, 0, restore_rows) \
    X(147, FINISH_RESTORE,   v1, BackupService, FinishRestore, METHOD_SHARD_WRITE, ADMIN, 0, finish_restore) \
    X(156, LIST_PROCESSES,   v1, AdminService, ListProcesses, METHOD_ROUTER, ANY, 67, list_processes) \
    X(157, GET_LOAD,         v1, AdminService, GetLoad, METHOD_ROUTER, ANY, 158, get_load) \
    X(158, GET_NODE_LOAD,    internal__v1, NodeService, GetNodeLoad, METHOD_NODE, NONE, 0, get_node_load) \
    X(160, CHECK_PLAYER,     v1, AdminService, CheckPlayer, METHOD_READ, STAFF, 0, check_player) \
    X(161, REPAIR_PLAYER,    v1, AdminService, RepairPlayer, METHOD_MUTATION, ADMIN, 0, repair_player) \
    X(162, REPAIR_ROW,       v1, AdminService, RepairRow, METHOD_SHARD_WRITE, ADMIN, 0, repair_row)
/* For tests alone: not in a release (HOLDFAST_DEBUG_INJECT). */
#ifdef HOLDFAST_DEBUG_INJECT
#define METHOD_TABLE_DEBUG(X) X(119, DEBUG_INJECT, debug__v1, DebugService, Inject, METHOD_MUTATION, ADMIN, 0, inject)
#else
#define METHOD_TABLE_DEBUG(X)
#endif
/* clang-format on */

#define METHOD_ENUM(number, enumerator, package, service, method, route, scopes, element, snake)   \
    METHOD_##enumerator = (number),
enum method_id { METHOD_TABLE(METHOD_ENUM) METHOD_ID_MAX = 175 };
#undef METHOD_ENUM

struct method_info {
    enum method_id id;
    enum method_route route;
    uint16_t element; /* METHOD_SCATTER and some of the router's: the parts' method, or 0. */
    uint32_t scopes;  /* Of enum scope: a caller needs one of them. */
    bool internal;    /* Refused on the public port. */
    const char *name; /* "holdfast.v1.LedgerService/Grant" */
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
};

/* NULL when there is no such method. */
const struct method_info *method_find(uint32_t id);
/* `name` as in an URL path without the leading slash. NULL when there is none. */
const struct method_info *method_find_name(struct slice name);
/* The public method that was probably meant by a name that there is not: "LedgerService/Grant", or
 * with its package where `name` has none or another. Static text; NULL: none is near (nearest.h).
 */
const char *method_suggest(struct slice name);
/* All methods in table order, for listings; *ret_count of them. */
const struct method_info *method_all(size_t *ret_count);

#endif
