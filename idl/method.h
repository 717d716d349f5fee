/*
 * method: the one table of all RPC methods, in .proto order, shared by router, node, coordinator
 * and client. One row says everything about a method that more than one file has to know; what
 * answers it is found by its name: node/rpc/<service>_<name>.c or
 * router/rpc/<room>/<service>_<name>.c. A method's number is its identity on the wire and in the
 * log: numbers are never reused, new methods get new numbers. Its errors are in method_errors.h.
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
    METHOD_ROUTER,       /* The router itself, with etcd's help.                               */
    METHOD_STREAM,       /* The router itself, with a stream of messages.                      */
    METHOD_SCATTER,      /* The router splits it into calls of the method `element`.           */
    METHOD_MUTATION,     /* To the owner of the home entity's shard; goes through the log.     */
    METHOD_READ,         /* To the owner of the entity's shard; a linearizable read.           */
    METHOD_SHARD,        /* To the owner of the shard that the request names, by its number or by
                          * a consumer of events or a target that lives there; read there.     */
    METHOD_GATHER,       /* The router itself, which asks shards in the same form: each for those of
                          * the targets in field 1 that live there; read there.               */
    METHOD_SHARD_WRITE,  /* The same; goes through the log.                                    */
    METHOD_MEMBER_READ,  /* To the owner of the entity's shard, or any other member that the router
                          * reaches; answered beside the log, from the mergeable class. */
    METHOD_MEMBER_WRITE, /* The same; it writes there. */
    METHOD_SHARD_VIEW,   /* To the owner of the shard the request names; answered beside its log. */
    METHOD_NODE,         /* To a node, about itself.                                           */
    METHOD_OWNER,        /* Appended by a shard's owner itself; refused from outside.          */
    METHOD_COORDINATOR   /* To the elected coordinator.                                        */
};

/* The scopes of keys that a method is open to. */
#define METHOD_SCOPES_NONE  0u /* Internal: no key reaches it. */
#define METHOD_SCOPES_ANY   SCOPES_ALL
#define METHOD_SCOPES_PLAY  (SCOPES_ALL & ~(unsigned)SCOPE_READ_OPS)    /* Reads of players. */
#define METHOD_SCOPES_OPS   (SCOPES_ALL & ~(unsigned)SCOPE_READ_PLAYER) /* Of the cluster. */
#define METHOD_SCOPES_GAME  SCOPE_GAME
#define METHOD_SCOPES_ADMIN SCOPE_ADMIN
/* What the game says of targets and players without an authority. */
#define METHOD_SCOPES_CATALOG (SCOPE_GAME | SCOPE_ADMIN)
#define METHOD_SCOPES_STAFF   (SCOPE_ADMIN | SCOPE_MODERATION)
#define METHOD_SCOPES_WRITE   SCOPES_WRITE /* And what the authority in the message asks for. */

/* How early the router refuses a call when it has too many (router/core/admission.h). */
enum method_priority {
    METHOD_PRIORITY_BULK,
    METHOD_PRIORITY_ORDINARY,
    METHOD_PRIORITY_URGENT,
    METHOD_PRIORITY_AUTHORITY /* URGENT when the call names the authority `system`, else ORDINARY.
                               */
};

/* What is done otherwise for a method than for the rest of its route. */
enum method_trait {
    METHOD_MOVES_SESSIONS = 1 << 0,  /* Callers who wait for the player's session are looked at. */
    METHOD_PASSES_REVIEW = 1 << 1,   /* Not held back by the player's quarantine. */
    METHOD_PASSES_READS = 1 << 2,    /* Does not wait while a settled read holds the player. */
    METHOD_PASSES_INTENTS = 1 << 3,  /* Not held back by a transaction across shards. */
    METHOD_PASSES_RESTORE = 1 << 4,  /* Not held back while the shard's backup is put back. */
    METHOD_SHARES_OUTCOMES = 1 << 6, /* A player may call it itself, and has a share of the shard's
                                      * room for outcomes. */
    METHOD_SENT_ONCE = 1 << 7,       /* It has no op_id, and carried out again it could do more than
                                      * it did: the router repeats no attempt that may be done. */
    METHOD_WRITES_BESIDE = 1 << 8,   /* SHARD_VIEW: it writes beside the shard's log. */
    METHOD_ONLY_IN_LOGS = 1 << 5     /* Of an earlier version: applied, and refused as a request. */
};

/* The kinds of methods by these traits. Most are PLAIN. */
#define METHOD_TRAITS_PLAIN   0u
#define METHOD_TRAITS_SESSION METHOD_MOVES_SESSIONS
#define METHOD_TRAITS_SEAL    (METHOD_MOVES_SESSIONS | METHOD_PASSES_REVIEW | METHOD_PASSES_READS)
#define METHOD_TRAITS_RELEASE (METHOD_PASSES_REVIEW | METHOD_PASSES_READS)
#define METHOD_TRAITS_REPAIR  (METHOD_PASSES_REVIEW | METHOD_PASSES_INTENTS)
#define METHOD_TRAITS_UPKEEP  METHOD_PASSES_RESTORE /* Of the shard itself. */
#define METHOD_TRAITS_BESIDE  METHOD_WRITES_BESIDE
#define METHOD_TRAITS_PLAYERS METHOD_SHARES_OUTCOMES
#define METHOD_TRAITS_ONCE    METHOD_SENT_ONCE
#define METHOD_TRAITS_EARLIER METHOD_ONLY_IN_LOGS

/*
 * The columns of a row:
 *   number      its identity, for ever
 *   enumerator  METHOD_<enumerator> in C
 *   package, service, Method  its name: holdfast.<package>.<Service>Service/<Method>
 *   name        of its messages, <name>_request and _response, and with the service of its file
 *   route       enum method_route: who answers it, and whether it writes
 *   scopes      METHOD_SCOPES_..: whose keys may call it
 *   priority    enum method_priority
 *   kind        METHOD_TRAITS_..: what may hold it back on the node, and whether it is repeated
 *   element     the number of the method that the router calls to answer it, or 0
 *   most        SCATTER: elements of one call at most. READ: rows of a page at most, of a list that
 *               filters: the router asks on until the page is full. Else 0.
 */
/* clang-format off */
/*    no. enumerator, package, service, Method, name, route, scopes, priority, kind, element, most */
#define METHOD_TABLE(X) \
    X(  1, REGISTER_SERVER,        v1,           session,      RegisterServer,        register_server,        ROUTER,       GAME,  URGENT,    PLAIN,   0,   0) \
    X(  2, UNREGISTER_SERVER,      v1,           session,      UnregisterServer,      unregister_server,      ROUTER,       GAME,  URGENT,    PLAIN,   0,   0) \
    X(  3, START_SESSION,          v1,           session,      StartSession,          start_session,          MUTATION,     GAME,  AUTHORITY, SESSION, 0,   0) \
    X(  4, RENEW_SESSIONS,         v1,           session,      RenewSessions,         renew_sessions,         ROUTER,       GAME,  URGENT,    PLAIN,   64,  0) \
    X(  5, END_SESSION,            v1,           session,      EndSession,            end_session,            MUTATION,     GAME,  AUTHORITY, SESSION, 0,   0) \
    X(  6, BATCH_START_SESSION,    v1,           session,      BatchStartSession,     batch_start_session,    SCATTER,      GAME,  BULK,      PLAIN,   3,   100) \
    X(  7, BATCH_END_SESSION,      v1,           session,      BatchEndSession,       batch_end_session,      SCATTER,      GAME,  BULK,      PLAIN,   5,   100) \
    X( 10, GET_PROFILE,            v1,           profile,      GetProfile,            get_profile,            READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X( 11, BATCH_GET_PROFILE,      v1,           profile,      BatchGetProfile,       batch_get_profile,      SCATTER,      PLAY,  BULK,      PLAIN,   10,  100) \
    X( 12, UPDATE_PROFILE,         v1,           profile,      UpdateProfile,         update_profile,         MUTATION,     WRITE, BULK,      PLAIN,   0,   0) \
    X( 13, BATCH_UPDATE_PROFILE,   v1,           profile,      BatchUpdateProfile,    batch_update_profile,   SCATTER,      WRITE, BULK,      PLAIN,   12,  100) \
    X( 20, GRANT,                  v1,           ledger,       Grant,                 grant,                  MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 21, SPEND,                  v1,           ledger,       Spend,                 spend,                  MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 22, BATCH_GRANT,            v1,           ledger,       BatchGrant,            batch_grant,            SCATTER,      WRITE, BULK,      PLAIN,   20,  1000) \
    X( 23, GET_BALANCES,           v1,           ledger,       GetBalances,           get_balances,           READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X( 24, LIST_ENTRIES,           v1,           ledger,       ListEntries,           list_entries,           READ,         PLAY,  ORDINARY,  PLAIN,   0,   200) \
    X( 25, TRANSFER_CURRENCIES,    v1,           ledger,       TransferCurrencies,    transfer_currencies,    MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 26, RESERVE_CURRENCIES,     v1,           ledger,       ReserveCurrencies,     reserve_currencies,     MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 27, POST_RESERVATION,       v1,           ledger,       PostReservation,       post_reservation,       MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 28, VOID_RESERVATION,       v1,           ledger,       VoidReservation,       void_reservation,       MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 29, REVERSE_ENTRY,          v1,           ledger,       ReverseEntry,          reverse_entry,          MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 30, MINT,                   internal__v1, earlier,      Mint,                  mint,                   MUTATION,     NONE,  AUTHORITY, EARLIER, 0,   0) \
    X( 31, LIST_ITEMS,             v1,           inventory,    ListItems,             list_items,             READ,         PLAY,  ORDINARY,  PLAIN,   0,   500) \
    X( 32, TRANSFER_ITEMS,         v1,           inventory,    TransferItems,         transfer_items,         MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 33, CONSUME,                internal__v1, earlier,      Consume,               consume,                MUTATION,     NONE,  AUTHORITY, EARLIER, 0,   0) \
    X( 34, TRACE_ITEM,             v1,           inventory,    TraceItem,             trace_item,             ROUTER,       PLAY,  URGENT,    PLAIN,   74,  0) \
    X( 35, SEND_MAIL,              v1,           mailbox,      SendMail,              send_mail,              MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 36, LIST_MAIL,              v1,           mailbox,      ListMail,              list_mail,              READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X( 37, CLAIM_MAIL,             v1,           mailbox,      ClaimMail,             claim_mail,             MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 38, RETURN_EXPIRED_MAIL,    v1,           mailbox,      ReturnExpiredMail,     return_expired_mail,    MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 40, GET_OPERATION,          v1,           operation,    GetOperation,          get_operation,          READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X( 41, RESOLVE_OPERATION,      v1,           operation,    ResolveOperation,      resolve_operation,      MUTATION,     WRITE, URGENT,    SEAL,    0,   0) \
    X( 50, GET_CLUSTER,            v1,           admin,        GetCluster,            get_cluster,            ROUTER,       OPS,   URGENT,    PLAIN,   67,  0) \
    X( 51, LIST_SHARDS,            v1,           admin,        ListShards,            list_shards,            ROUTER,       OPS,   URGENT,    PLAIN,   67,  0) \
    X( 52, LIST_SERVERS,           v1,           admin,        ListServers,           list_servers,           ROUTER,       OPS,   URGENT,    PLAIN,   0,   0) \
    X( 53, GET_SESSION,            v1,           admin,        GetSession,            get_session,            READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X( 54, SET_POLICY,             v1,           admin,        SetPolicy,             set_policy,             ROUTER,       ADMIN, URGENT,    PLAIN,   66,  0) \
    X( 64, RENEW_TOKENS,           internal__v1, node,         RenewTokens,           renew_tokens,           SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X( 65, EXPIRE_SERVER,          internal__v1, node,         ExpireServer,          expire_server,          SHARD_WRITE,  NONE,  ORDINARY,  UPKEEP,  0,   0) \
    X( 66, APPLY_POLICY,           internal__v1, node,         ApplyPolicy,           apply_policy,           SHARD_WRITE,  NONE,  ORDINARY,  UPKEEP,  0,   0) \
    X( 67, GET_NODE_STATUS,        internal__v1, node,         GetNodeStatus,         get_node_status,        NODE,         NONE,  ORDINARY,  PLAIN,   0,   0) \
    X( 68, SESSION_DUE,            internal__v1, node,         SessionDue,            session_due,            OWNER,        NONE,  ORDINARY,  SESSION, 0,   0) \
    X( 69, SESSION_HOLD,           internal__v1, node,         SessionHold,           session_hold,           OWNER,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X( 70, PRUNE_OPERATIONS,       internal__v1, node,         PruneOperations,       prune_operations,       OWNER,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X( 71, CHANNEL_DELIVER,        internal__v1, channel,      Deliver,               deliver,                SHARD_WRITE,  NONE,  ORDINARY,  PLAIN,   0,   0) \
    X( 72, CHANNEL_SETTLE,         internal__v1, channel,      Settle,                settle,                 OWNER,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X( 73, RESERVATION_DUE,        internal__v1, node,         ReservationDue,        reservation_due,        OWNER,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X( 74, ITEM_HISTORY,           internal__v1, node,         ItemHistory,           item_history,           SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X( 80, REPORT_OWNER,           internal__v1, coordinator,  ReportOwner,           report_owner,           COORDINATOR,  NONE,  ORDINARY,  PLAIN,   0,   0) \
    X( 81, GET_COORDINATOR_STATUS, internal__v1, coordinator,  GetCoordinatorStatus,  get_coordinator_status, COORDINATOR,  NONE,  ORDINARY,  PLAIN,   0,   0) \
    X( 90, EXECUTE_TRANSACTION,    v1,           transaction,  ExecuteTransaction,    execute_transaction,    MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X( 91, SWAP_GOODS,             internal__v1, transaction,  SwapGoods,             swap_goods,             MUTATION,     NONE,  AUTHORITY, PLAIN,   0,   0) \
    X( 92, READ_PLAYERS,           v1,           transaction,  ReadPlayers,           read_players,           ROUTER,       PLAY,  URGENT,    PLAIN,   93,  0) \
    X( 93, READ_SETTLED,           internal__v1, node,         ReadSettled,           read_settled,           READ,         NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(110, LIST_PLAYERS,           v1,           admin,        ListPlayers,           list_players,           SHARD,        PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(111, LIST_INCIDENTS,            v1,           admin,        ListIncidents,            list_incidents,            ROUTER,       OPS,   URGENT,    PLAIN,   112, 0) \
    X(112, LIST_NODE_INCIDENTS,       internal__v1, node,         ListNodeIncidents,        list_node_incidents,       NODE,         NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(113, CONTAIN_PLAYER,         internal__v1, node,         ContainPlayer,         contain_player,         SHARD_WRITE,  NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(114, LIST_QUARANTINED,       v1,           admin,        ListQuarantined,       list_quarantined,       SHARD,        OPS,   ORDINARY,  PLAIN,   0,   0) \
    X(115, GET_QUARANTINE,         v1,           admin,        GetQuarantine,         get_quarantine,         READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(116, RELEASE_QUARANTINE,     v1,           admin,        ReleaseQuarantine,     release_quarantine,     MUTATION,     STAFF, AUTHORITY, RELEASE, 0,   0) \
    X(117, TAKE_CUT,               internal__v1, node,         TakeCut,               take_cut,               SHARD_WRITE,  NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(118, AUDIT_SEARCH,           internal__v1, node,         AuditSearch,           audit_search,           SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    METHOD_TABLE_DEBUG(X) \
    X(120, WATCH_INCIDENTS,           v1,           admin,        WatchIncidents,           watch_incidents,           STREAM,       OPS,   ORDINARY,  PLAIN,   112, 0) \
    X(121, LIST_RESERVATIONS,      v1,           ledger,       ListReservations,      list_reservations,      READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(126, MEMBER_STATE,           internal__v1, node,         MemberState,           member_state,           SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(127, MOVE_SHARD,             v1,           admin,        MoveShard,             move_shard,             ROUTER,       ADMIN, URGENT,    PLAIN,   0,   0) \
    X(128, CHANGE_NODE,            v1,           admin,        ChangeNode,            change_node,            ROUTER,       ADMIN, URGENT,    PLAIN,   0,   0) \
    X(129, REBALANCE_SHARDS,       v1,           admin,        RebalanceShards,       rebalance_shards,       ROUTER,       ADMIN, URGENT,    PLAIN,   0,   0) \
    X(130, ACCEPT_ETCD_RESTORE,    v1,           admin,        AcceptEtcdRestore,     accept_etcd_restore,    ROUTER,       ADMIN, URGENT,    PLAIN,   67,  0) \
    X(140, GET_BACKUP_STATE,       v1,           backup,       GetBackupState,        get_backup_state,       SHARD,        ADMIN, ORDINARY,  PLAIN,   0,   0) \
    X(141, ARM_BACKUP,             v1,           backup,       ArmBackup,             arm_backup,             SHARD_VIEW,   ADMIN, ORDINARY,  PLAIN,   0,   0) \
    X(142, CUT_BACKUP,             v1,           backup,       CutBackup,             cut_backup,             SHARD_WRITE,  ADMIN, ORDINARY,  PLAIN,   0,   0) \
    X(143, READ_BACKUP,            v1,           backup,       ReadBackup,            read_backup,            SHARD_VIEW,   ADMIN, ORDINARY,  PLAIN,   0,   0) \
    X(144, PREPARE_RESTORE,        v1,           backup,       PrepareRestore,        prepare_restore,        ROUTER,       ADMIN, URGENT,    PLAIN,   0,   0) \
    X(145, BEGIN_RESTORE,          v1,           backup,       BeginRestore,          begin_restore,          SHARD_WRITE,  ADMIN, ORDINARY,  UPKEEP,  0,   0) \
    X(146, RESTORE_ROWS,           v1,           backup,       RestoreRows,           restore_rows,           SHARD_WRITE,  ADMIN, ORDINARY,  UPKEEP,  0,   0) \
    X(147, FINISH_RESTORE,         v1,           backup,       FinishRestore,         finish_restore,         SHARD_WRITE,  ADMIN, ORDINARY,  UPKEEP,  0,   0) \
    X(156, LIST_PROCESSES,         v1,           admin,        ListProcesses,         list_processes,         ROUTER,       OPS,   URGENT,    PLAIN,   67,  0) \
    X(157, GET_LOAD,               v1,           admin,        GetLoad,               get_load,               ROUTER,       OPS,   URGENT,    PLAIN,   158, 0) \
    X(158, GET_NODE_LOAD,          internal__v1, node,         GetNodeLoad,           get_node_load,          NODE,         NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(160, CHECK_PLAYER,           v1,           admin,        CheckPlayer,           check_player,           READ,         STAFF, ORDINARY,  PLAIN,   0,   0) \
    X(161, REPAIR_PLAYER,          v1,           admin,        RepairPlayer,          repair_player,          MUTATION,     ADMIN, AUTHORITY, REPAIR,  0,   0) \
    X(162, REPAIR_ROW,             v1,           admin,        RepairRow,             repair_row,             SHARD_WRITE,  ADMIN, ORDINARY,  UPKEEP,  0,   0) \
    X(163, GET_SERVICE_INFO,       v1,           admin,        GetServiceInfo,        get_service_info,       ROUTER,       ANY,   URGENT,    PLAIN,   0,   0) \
    X(164, SWAP,                   v1,           transaction,  Swap,                  swap,                   ROUTER,       WRITE, AUTHORITY, PLAIN,   91,  0) \
    X(165, DELIVER_TO_PLAYER,      internal__v1, mailbox,      DeliverToPlayer,       deliver_to_player,      MUTATION,     NONE,  AUTHORITY, PLAIN,   0,   0) \
    X(166, DELIVER_MAIL,           v1,           mailbox,      DeliverMail,           deliver_mail,           SCATTER,      WRITE, BULK,      PLAIN,   165, 1000) \
    X(170, GET_CHANNEL,            v1,           admin,        GetChannel,            get_channel,            SHARD,        STAFF, ORDINARY,  PLAIN,   0,   0) \
    X(180, DEFINE,                 internal__v1, node,         Define,                define,                 SHARD_WRITE,  NONE,  ORDINARY,  UPKEEP,  0,   0) \
    X(181, GET_DEFINED,            internal__v1, node,         GetDefined,            get_defined,            SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(182, CHANGE_DEFINITION,      internal__v1, coordinator,  ChangeDefinition,      change_definition,      COORDINATOR,  NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(183, FIND_DEFINITIONS,       internal__v1, coordinator,  FindDefinitions,       find_definitions,       COORDINATOR,  NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(184, PUT_DEFINITION,         v1,           definition,   PutDefinition,         put_definition,         ROUTER,       ADMIN, URGENT,    PLAIN,   182, 0) \
    X(185, GET_DEFINITION,         v1,           definition,   GetDefinition,         get_definition,         ROUTER,       OPS,   URGENT,    PLAIN,   183, 0) \
    X(186, LIST_DEFINITIONS,       v1,           definition,   ListDefinitions,       list_definitions,       ROUTER,       OPS,   URGENT,    PLAIN,   183, 0) \
    X(187, LIST_DEFINITION_VERSIONS, v1,         definition,   ListDefinitionVersions, list_definition_versions, ROUTER,    OPS,   URGENT,    PLAIN,   183, 0) \
    X(188, DIFF_DEFINITIONS,       v1,           definition,   DiffDefinitions,       diff_definitions,       ROUTER,       OPS,   URGENT,    PLAIN,   183, 0) \
    X(189, ROLLBACK_DEFINITION,    v1,           definition,   RollbackDefinition,    rollback_definition,    ROUTER,       ADMIN, URGENT,    PLAIN,   182, 0) \
    X(190, DELETE_DEFINITION,      v1,           definition,   DeleteDefinition,      delete_definition,      ROUTER,       ADMIN, URGENT,    PLAIN,   182, 0) \
    X(200, FAVORITE,               v1,           favorites,    Favorite,              favorite,               MUTATION,     CATALOG, ORDINARY,  PLAYERS, 0,   0) \
    X(201, UNFAVORITE,             v1,           favorites,    Unfavorite,            unfavorite,             MUTATION,     CATALOG, ORDINARY,  PLAYERS, 0,   0) \
    X(202, BATCH_FAVORITE,         v1,           favorites,    BatchFavorite,         batch_favorite,         SCATTER,      CATALOG, BULK,      PLAIN,   200, 1000) \
    X(203, LIST_FAVORITES,         v1,           favorites,    ListFavorites,         list_favorites,         READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(204, BATCH_GET_STATUS,       v1,           favorites,    BatchGetStatus,        batch_get_status,       READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(205, GET_COUNT,              v1,           favorites,    GetCount,              get_count,              ROUTER,       PLAY,  ORDINARY,  PLAIN,   209, 0) \
    X(206, BATCH_GET_COUNTS,       v1,           favorites,    BatchGetCounts,        batch_get_counts,       ROUTER,       PLAY,  ORDINARY,  PLAIN,   209, 0) \
    X(207, GET_TOP,                v1,           favorites,    GetTop,                get_top,                ROUTER,       PLAY,  ORDINARY,  PLAIN,   213, 0) \
    X(208, LIST_BY_TARGET,         v1,           favorites,    ListByTarget,          list_by_target,         SHARD,        PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(209, GET_PARTIALS,           internal__v1, node,         GetPartials,           get_partials,           SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(210, PULL_PARTIALS,          internal__v1, node,         PullPartials,          pull_partials,          SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(211, TAKE_PARTIALS,          internal__v1, node,         TakePartials,          take_partials,          SHARD_WRITE,  NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(212, GET_PULLED,             internal__v1, node,         GetPulled,             get_pulled,             SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(213, GET_SHARD_TOP,          internal__v1, node,         GetShardTop,           get_shard_top,          SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(214, FORGET_PARTIALS,        internal__v1, node,         ForgetPartials,        forget_partials,        SHARD_WRITE,  NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(215, LIST_FLAGGED_EDGES,     v1,           admin,        ListFlaggedEdges,      list_flagged_edges,     SHARD,        STAFF, ORDINARY,  PLAIN,   0,   0) \
    X(216, ACCEPT_EDGES,           v1,           admin,        AcceptEdges,           accept_edges,           MUTATION,     STAFF, AUTHORITY, PLAIN,   0,   0) \
    X(217, REJECT_EDGES,           v1,           admin,        RejectEdges,           reject_edges,           MUTATION,     STAFF, AUTHORITY, PLAIN,   0,   0) \
    X(218, FLAG_EDGES,             v1,           admin,        FlagEdges,             flag_edges,             MUTATION,     STAFF, AUTHORITY, PLAIN,   0,   0) \
    X(220, ERASE_PLAYER,           v1,           erasure,      ErasePlayer,           erase_player,           MUTATION,     ADMIN, AUTHORITY, PLAIN,   0,   0) \
    X(221, RESTORE_PLAYER,         v1,           erasure,      RestorePlayer,         restore_player,         MUTATION,     ADMIN, AUTHORITY, PLAIN,   0,   0) \
    X(222, GET_ERASURE,            v1,           erasure,      GetErasure,            get_erasure,            READ,         STAFF, ORDINARY,  PLAIN,   0,   0) \
    X(223, EXPORT_PLAYER,          v1,           erasure,      ExportPlayer,          export_player,          READ,         ADMIN, ORDINARY,  PLAIN,   0,   0) \
    X(224, ERASURE_DUE,            internal__v1, node,         ErasureDue,            erasure_due,            OWNER,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(225, REBUILD_COUNTS,         v1,           admin,        RebuildCounts,         rebuild_counts,         SHARD_WRITE,  ADMIN, ORDINARY,  PLAIN,   0,   0) \
    X(226, CHECK_COUNTS,           internal__v1, node,         CheckCounts,           check_counts,           SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(230, LIST_SHARD_EVENTS,      internal__v1, node,         ListShardEvents,       list_shard_events,      SHARD,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(231, TRIM_EVENTS,            internal__v1, node,         TrimEvents,            trim_events,            OWNER,        NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(232, POLL,                   v1,           event,        Poll,                  poll,                   ROUTER,       PLAY,  ORDINARY,  PLAIN,   230, 0) \
    X(233, LIST_EVENT_NEWS,        internal__v1, node,         ListEventNews,         list_event_news,        NODE,         NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(234, SUBSCRIBE,              v1,           event,        Subscribe,             subscribe,              STREAM,       PLAY,  ORDINARY,  PLAIN,   230, 0) \
    X(235, CREATE_CONSUMER,        v1,           event,        CreateConsumer,        create_consumer,        SHARD_WRITE,  CATALOG, ORDINARY, PLAIN,   0,   0) \
    X(236, GET_CONSUMER,           v1,           event,        GetConsumer,           get_consumer,           SHARD,        PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(237, LIST_CONSUMERS,         v1,           event,        ListConsumers,         list_consumers,         SHARD,        PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(238, COMMIT_CONSUMER,        v1,           event,        CommitConsumer,        commit_consumer,        SHARD_WRITE,  CATALOG, ORDINARY, PLAIN,   0,   0) \
    X(239, DELETE_CONSUMER,        v1,           event,        DeleteConsumer,        delete_consumer,        SHARD_WRITE,  CATALOG, ORDINARY, ONCE,    0,   0) \
    X(240, ADD_TO_COUNTER,         v1,           counter,      AddToCounter,          add_to_counter,         MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X(241, BATCH_ADD_TO_COUNTER,   v1,           counter,      BatchAddToCounter,     batch_add_to_counter,   SCATTER,      WRITE, BULK,      PLAIN,   240, 1000) \
    X(242, LIST_PLAYER_COUNTERS,   v1,           counter,      ListPlayerCounters,    list_player_counters,   READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(243, BATCH_GET_PLAYER_COUNTERS, v1,           counter,      BatchGetPlayerCounters, batch_get_player_counters, READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(244, GET_COUNTER,            v1,           counter,      GetCounter,            get_counter,            ROUTER,       PLAY,  ORDINARY,  PLAIN,   209, 0) \
    X(245, BATCH_GET_COUNTERS,     v1,           counter,      BatchGetCounters,      batch_get_counters,     ROUTER,       PLAY,  ORDINARY,  PLAIN,   209, 0) \
    X(246, GET_COUNTER_TOP,        v1,           counter,      GetCounterTop,         get_counter_top,        ROUTER,       PLAY,  ORDINARY,  PLAIN,   213, 0) \
    X(247, PUT_TARGET_METADATA,    v1,           favorites,    PutTargetMetadata,     put_target_metadata,    SHARD_WRITE,  CATALOG, ORDINARY, PLAIN,  0,   0) \
    X(248, BATCH_GET_TARGET_METADATA, v1,        favorites,    BatchGetTargetMetadata, batch_get_target_metadata, GATHER,   PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(249, DELETE_TARGET_METADATA, v1,           favorites,    DeleteTargetMetadata,  delete_target_metadata, SHARD_WRITE,  CATALOG, ORDINARY, ONCE,   0,   0) \
    X(260, PUT_DOCUMENT,           v1,           document,     PutDocument,           put_document,           MEMBER_WRITE, CATALOG, ORDINARY,  PLAIN,   0,   0) \
    X(261, GET_DOCUMENT,           v1,           document,     GetDocument,           get_document,           MEMBER_READ,  PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(262, DELETE_DOCUMENT,        v1,           document,     DeleteDocument,        delete_document,        MEMBER_WRITE, CATALOG, ORDINARY,  PLAIN,   0,   0) \
    X(263, UPDATE_DOCUMENT,        v1,           document,     UpdateDocument,        update_document,        MEMBER_WRITE, CATALOG, ORDINARY,  PLAIN,   0,   0) \
    X(264, BATCH_GET_DOCUMENTS,    v1,           document,     BatchGetDocuments,     batch_get_documents,    SCATTER,      PLAY,  BULK,      PLAIN,   261, 100) \
    X(265, LIST_DOCUMENTS,         v1,           document,     ListDocuments,         list_documents,         MEMBER_READ,  PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(266, READ_DOCUMENTS,         v1,           backup,       ReadDocuments,         read_documents,         SHARD_VIEW,   ADMIN, ORDINARY,  PLAIN,   0,   0) \
    X(267, RESTORE_DOCUMENTS,      v1,           backup,       RestoreDocuments,      restore_documents,      SHARD_VIEW,   ADMIN, ORDINARY,  BESIDE,  0,   0) \
    X(268, RESTORE_DEFINITION,     v1,           backup,       RestoreDefinition,     restore_definition,     ROUTER,       ADMIN, URGENT,    PLAIN,   182, 0) \
    X(269, REBUILD_REPLICA,        v1,           admin,        RebuildReplica,        rebuild_replica,        ROUTER,       ADMIN, URGENT,    PLAIN,   0,   0) \
    X(270, SET_PRESENCE,          v1,           presence,     SetPresence,           set_presence,           MEMBER_WRITE, CATALOG, ORDINARY,  PLAIN,   0,   0) \
    X(271, CLEAR_PRESENCE,        v1,           presence,     ClearPresence,         clear_presence,         MEMBER_WRITE, CATALOG, ORDINARY,  PLAIN,   0,   0) \
    X(272, GET_PRESENCE,          v1,           presence,     GetPresence,           get_presence,           MEMBER_READ,  PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(273, BATCH_GET_PRESENCE,    v1,           presence,     BatchGetPresence,      batch_get_presence,     SCATTER,      PLAY,  BULK,      PLAIN,   272, 200) \
    X(274, BATCH_SET_PRESENCE,    v1,           presence,     BatchSetPresence,      batch_set_presence,     SCATTER,      CATALOG, BULK,      PLAIN,   270, 100) \
    X(275, LIST_ONLINE,           v1,           presence,     ListOnline,            list_online,            ROUTER,       PLAY,  ORDINARY,  PLAIN,   276, 0) \
    X(276, LIST_NODE_ONLINE,      internal__v1, node,         ListNodeOnline,        list_node_online,       NODE,         NONE,  ORDINARY,  PLAIN,   0,   0) \
    X(277, GET_SETTINGS,          v1,           definition,   GetSettings,           get_settings,           ROUTER,       PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(278, GET_RANK,               v1,           favorites,    GetRank,               get_rank,               ROUTER,       PLAY,  ORDINARY,  PLAIN,   213, 0) \
    X(279, GET_COUNTER_RANK,       v1,           counter,      GetCounterRank,        get_counter_rank,       ROUTER,       PLAY,  ORDINARY,  PLAIN,   213, 0) \
    X(280, UPSERT_USER,           v1,           user,         UpsertUser,            upsert_user,            MEMBER_WRITE, CATALOG, ORDINARY,  PLAIN,   0,   0) \
    X(281, GET_USER,              v1,           user,         GetUser,               get_user,               MEMBER_READ,  PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(282, BATCH_UPSERT_USERS,    v1,           user,         BatchUpsertUsers,      batch_upsert_users,     SCATTER,      CATALOG, BULK,      PLAIN,   280, 100) \
    X(283, BATCH_GET_USERS,       v1,           user,         BatchGetUsers,         batch_get_users,        SCATTER,      PLAY,  BULK,      PLAIN,   281, 200) \
    X(284, CLAIM_NAME,            v1,           user,         ClaimName,             claim_name,             ROUTER,       WRITE, AUTHORITY, PLAIN,   90,  0) \
    X(285, RELEASE_NAME,          v1,           user,         ReleaseName,           release_name,           ROUTER,       WRITE, AUTHORITY, PLAIN,   90,  0) \
    X(286, FIND_BY_NAME,          v1,           user,         FindByName,            find_by_name,           ROUTER,       PLAY,  ORDINARY,  PLAIN,   10,  0) \
    X(287, SET_USER_FLAGS,        v1,           user,         SetUserFlags,          set_user_flags,         MUTATION,     WRITE, AUTHORITY, PLAIN,   0,   0) \
    X(288, GET_USER_FLAGS,        v1,           user,         GetUserFlags,          get_user_flags,         READ,         PLAY,  ORDINARY,  PLAIN,   0,   0) \
    X(290, GET_SHARD_CLOCK,       v1,           admin,        GetShardClock,         get_shard_clock,        ROUTER,       OPS,   ORDINARY,  PLAIN,   291, 0) \
    X(291, GET_NODE_CLOCK,        internal__v1, node,         GetNodeClock,          get_node_clock,         NODE,         NONE,  ORDINARY,  PLAIN,   0,   0)
/* For tests alone: not in a release (HOLDFAST_DEBUG_INJECT). */
#ifdef HOLDFAST_DEBUG_INJECT
#define METHOD_TABLE_DEBUG(X) X(119, DEBUG_INJECT, debug__v1, debug, Inject, inject, MUTATION, ADMIN, AUTHORITY, PLAIN, 0, 0)
#else
#define METHOD_TABLE_DEBUG(X)
#endif
/* clang-format on */

#define METHOD_ENUM(number, enumerator, ...) METHOD_##enumerator = (number),
enum method_id { METHOD_TABLE(METHOD_ENUM) METHOD_ID_MAX = 299 };
#undef METHOD_ENUM

/* How many bytes a request of a method may have, as sent and unpacked, without an envelope
 * (method_request_bytes_max): what names things and asks for them, what names up to 200 targets,
 * what moves goods, and what carries documents or many elements, which has as much as the public
 * port takes at all. */
#define METHOD_BYTES_SMALL 4096u
#define METHOD_BYTES_LISTS 16384u
#define METHOD_BYTES_IDS   32768u
#define METHOD_BYTES_GOODS 131072u
#define METHOD_BYTES_LARGE 4194304u

struct method_info {
    enum method_id id;
    enum method_route route;
    enum method_priority priority;
    uint16_t element; /* As the columns of these names. */
    uint16_t most;
    uint32_t scopes;  /* Of enum scope: a caller needs one of them. */
    uint32_t traits;  /* Of enum method_trait. */
    bool internal;    /* Refused on the public port. */
    bool writes;      /* By its route. An attempt without an answer may have been carried out: only
                       * the same bytes may be sent again, and no failure is told (retry.h). */
    const char *name; /* "holdfast.v1.LedgerService/Grant" */
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
};

/* NULL when there is no such method. */
const struct method_info *method_find(uint32_t id);
/* Under which method callers know what it does: an internal one that carries a public one out is
 * told as that, each other one as itself. */
const struct method_info *method_told(const struct method_info *method);
/* What a node answers it with: `response`, but for what the router tells in other words. */
const ProtobufCMessageDescriptor *method_answer(const struct method_info *method);
/* `name` as in an URL path without the leading slash. NULL when there is none. */
const struct method_info *method_find_name(struct slice name);
/* As the API tells it: a method of an earlier version by its public name of then,
 * "holdfast.v1.InventoryService/Mint". Static text. */
const char *method_told_name(const struct method_info *method);
/* The method that is told by that name; it may be METHOD_ONLY_IN_LOGS. NULL when there is none. */
const struct method_info *method_find_told(struct slice name);
/* The public method that was probably meant by a name that there is not: "LedgerService/Grant", or
 * with its package where `name` has none or another; what does the deed of a method of an earlier
 * version. Static text; NULL: none is near (nearest.h).
 */
const char *method_suggest(struct slice name);
/* The bytes that a request of it may have: one of METHOD_BYTES_*, by its route, but for those that
 * need more than others of their route. */
uint32_t method_request_bytes_max(const struct method_info *method);
/* The field of its request that names the player whose data it is about, if it takes players'
 * tokens (the option player_field in idl): "player_id". NULL: it takes none. Static text. */
const char *method_player_field(const struct method_info *method);
/* Of a change without an authority, whose row says which key made it: nodes are told. */
bool method_keeps_caller(const struct method_info *method);
/* A batch that nodes take as it is, with the elements of all shards for which a node is asked. They
 * answer in the form of its response, with internal.v1.Refusal for its errors; what one did not
 * answer, or an earlier program's does not know, is asked for alone. */
bool method_goes_whole(const struct method_info *method);
/* Whether it takes any player's token, since what it tells belongs to no player (player_public). */
bool method_is_public(const struct method_info *method);
/* All methods in table order, for listings; *ret_count of them. */
const struct method_info *method_all(size_t *ret_count);

#endif
