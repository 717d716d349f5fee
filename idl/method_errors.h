/*
 * method_errors: which errors each public method can give, when, and what the caller does. The one
 * source: the tables in docs/ are made from it (tools/error_tables.py), tests hold every error that
 * they see against it, and tests/integration/errors_test.py brings about each of its pairs. A
 * public method without rows does not compile.
 *
 * A row: X(code, FINAL, OPEN or BOTH, when, what to do). FINAL is stored: the same attempt gets it
 * back. OPEN is not: nothing was recorded. "" for what to do: as idl/error_rule.h has it for the
 * code. Groups that end in OF_.. are shared; ERRORS_<ENUMERATOR of method.h> are the methods'.
 */
#ifndef IDL_METHOD_ERRORS_H
#define IDL_METHOD_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/v1/error.pb-c.h"

/* clang-format off */
/* ---- shared ---- */

/* Any call. */
#define OF_DOOR(X) \
    X(INVALID_ARGUMENT, OPEN, "a field, a header or the message is malformed or past its limit", "") \
    X(TOO_LARGE, OPEN, "the message is larger than the router takes", "") \
    X(CANCELED, OPEN, "the caller went away; no caller reads it", "") \
    X(UNAUTHENTICATED, OPEN, "the API key, or the player's token, is missing, unknown, expired or malformed", "") \
    X(THROTTLED, OPEN, "the key, its address, the router, the shard or the disk is at a limit", "") \
    X(UNAVAILABLE, OPEN, "the router stops or does not know the cluster, or no owner could act in time", "") \
    X(UNIMPLEMENTED, OPEN, "the message is compressed in a way that is not known, or the server is older than the method", "") \
    X(DEADLINE_EXCEEDED, OPEN, "the deadline passed before anything was sent to a node", "")
#define OF_SCOPE(X) \
    X(PERMISSION_DENIED, OPEN, "the API key does not admit the call: its scopes, or another key's incarnation or name; or a player's token does not", "")
/* Reads, streams and whatever else writes nothing. */
#define OF_READER(X) \
    OF_DOOR(X) OF_SCOPE(X) \
    X(INTERNAL, OPEN, "an answer of a node cannot be read", "")
/* Reads of a player, with ReadOptions or without. */
#define OF_PLAYER_READ(X) \
    OF_READER(X) \
    X(QUARANTINED, OPEN, "what is stored of the player cannot be read", "")
#define OF_FRESH(X) \
    X(VERSION_LOST, OPEN, "`at_least` names an entry that was never committed", "")
/* Writes whose answer may get lost. */
#define OF_UNKNOWN(X) \
    X(OUTCOME_UNKNOWN, OPEN, "no answer of the owner in time, or the owner was lost meanwhile", "")
#define OF_WRITER(X) OF_DOOR(X) OF_SCOPE(X) OF_UNKNOWN(X)
/* ... of which no player's shard keeps an outcome. */
#define OF_OPERATOR(X) \
    OF_DOOR(X) OF_SCOPE(X) \
    X(OUTCOME_UNKNOWN, OPEN, "no answer of the owner in time, or the owner was lost meanwhile", "it may have been carried out: send the same again")
/* Mutations of a player under an op_id; also while a transaction holds the player. */
#define OF_OP_ID(X) \
    OF_DOOR(X) OF_UNKNOWN(X) \
    X(OPERATION_ID_MISMATCH, OPEN, "the op_id was used before, at this player, for another request", "") \
    X(OPERATION_EXPIRED, OPEN, "the op_id is a UUIDv7 older than the outcomes that are kept", "") \
    X(OPERATION_EXPIRED, FINAL, "the outcome was lost with a damaged record", "never applied from now on; look in the ledger whether it was") \
    X(OPERATION_ABORTED, FINAL, "the op_id was sealed before it was carried out", "") \
    X(QUARANTINED, OPEN, "the player is held back for review, or what is stored of it cannot be read", "")
#define OF_VERSION(X) \
    X(VERSION_CONFLICT, FINAL, "`if_version` is not the player's version; `about.version` is", "read again, decide again under a new op_id")
/* ... which waits for it. */
#define OF_WAITING(X) \
    OF_OP_ID(X) \
    X(TXN_CONFLICT, OPEN, "a transaction holds the player for a moment", "")
#define OF_OPERATION(X) OF_WAITING(X) OF_VERSION(X)
/* ... which may be a receipt's. */
#define OF_RECEIPT(X) \
    X(OPERATION_ID_MISMATCH, FINAL, "the receipt was used before, for another player or another request", "never repeat it; alert: one receipt was redeemed twice")
/* ... by authority. */
#define OF_KIND(X) \
    X(PERMISSION_DENIED, OPEN, "the API key's scopes do not admit the call or its authority, or the method does not admit the authority", "")
#define OF_TOKEN(X) \
    X(SESSION_LOST, FINAL, "the token is not the current one: stolen (`about.holder` has it now), ended or expired", "")
#define OF_UNHELD(X) \
    X(SESSION_LOCKED, FINAL, "the authority is `unheld`, and a server holds the player (`about.holder`)", "wait `retry_after_ms` and raise `attempt`, or leave the write to that server")
#define OF_HOLDER(X) OF_OPERATION(X) OF_KIND(X) OF_TOKEN(X) OF_UNHELD(X)
/* ... by what they move. */
#define OF_TAKING(X) \
    X(INSUFFICIENT_FUNDS, FINAL, "a balance would fall below its minimum", "")
#define OF_ITEMS(X) \
    X(ITEM_NOT_HELD, FINAL, "the player does not hold an item", "")
#define OF_GIVING(X) \
    X(CAPACITY_FULL, FINAL, "a balance, the items or the currencies would pass their maximum", "")
#define OF_CURRENCIES(X) \
    X(INVALID_ARGUMENT, FINAL, "a currency of the request was taken out of the policy meanwhile", "declare it again, then raise `attempt`")
#define OF_MAIL(X) \
    X(CAPACITY_FULL, FINAL, "the recipient's mailbox is full", "")
#define OF_SENDING(X) \
    OF_MAIL(X) \
    X(OPERATION_ABORTED, FINAL, "it was sealed on its way; what it took is back", "")
/* What goes over etcd, or over a shard as a whole. */
#define OF_CONFLICT(X) \
    X(VERSION_CONFLICT, OPEN, "the record changed at the same time, or has another version", "read again, decide again, send it again")
#define OF_SHARD_STATE(X) \
    X(VERSION_CONFLICT, OPEN, "the shard is not in the state that the call needs; the message says which", "start that step again")

/* ---- sessions ---- */
#define ERRORS_REGISTER_SERVER(X) \
    OF_OPERATOR(X) \
    X(CAPACITY_FULL, OPEN, "the cluster has 49,152 game servers, those included that vanished and whose sessions are not free yet", "unregister servers that are not used, and register again later")
#define ERRORS_UNREGISTER_SERVER(X) OF_OPERATOR(X)
#define ERRORS_START_SESSION(X) \
    OF_OPERATION(X) OF_SCOPE(X) \
    X(SESSION_LOCKED, FINAL, "FAIL or STEAL: another server holds the player, or asked for it later", "wait `retry_after_ms`, then send it with `attempt` raised by one; or steal") \
    X(SESSION_LOCKED, OPEN, "WAIT: the player did not come free before the deadline, or too many callers wait for it", "send the same again, or steal") \
    X(SERVER_EXPIRED, FINAL, "the registration of `incarnation` has expired", "") \
    X(SERVER_EXPIRED, OPEN, "no server was ever registered as `incarnation`", "")
#define ERRORS_RENEW_SESSIONS(X) \
    OF_READER(X) \
    X(SERVER_EXPIRED, OPEN, "the registration of `incarnation` has expired", "")
#define ERRORS_END_SESSION(X) \
    OF_OPERATION(X) OF_KIND(X) OF_TOKEN(X) OF_EDITS(X)
#define ERRORS_BATCH_START_SESSION(X) \
    OF_WRITER(X) \
    X(SERVER_EXPIRED, OPEN, "no server was ever registered as an element says", "")
#define ERRORS_BATCH_END_SESSION(X) OF_WRITER(X)
#define ERRORS_GET_SESSION(X) OF_PLAYER_READ(X)
#define ERRORS_LIST_SERVERS(X) OF_READER(X)

/* ---- profiles ---- */
#define OF_EDITS(X) \
    X(INVALID_ARGUMENT, FINAL, "a step of a patch does not fit the document that is stored", "read it again; raise `attempt` with another patch only under a new op_id") \
    X(VERSION_CONFLICT, FINAL, "`if_version` is not the section's version; `about.version` is", "read again; send the new edit under a new op_id") \
    X(SCHEMA_TOO_NEW, FINAL, "the stored section has a newer schema than the edit names", "") \
    X(CAPACITY_FULL, FINAL, "a section, or their number, would pass its maximum", "")
#define ERRORS_GET_PROFILE(X) \
    OF_PLAYER_READ(X) OF_FRESH(X) \
    X(TXN_CONFLICT, OPEN, "with `settled`: a transaction holds the player for a moment", "")
#define ERRORS_BATCH_GET_PROFILE(X) OF_READER(X)
#define ERRORS_UPDATE_PROFILE(X) OF_HOLDER(X) OF_EDITS(X)
#define ERRORS_BATCH_UPDATE_PROFILE(X) OF_WRITER(X)

/* ---- ledger ---- */
#define ERRORS_GRANT(X) OF_HOLDER(X) OF_RECEIPT(X) OF_GIVING(X) OF_CURRENCIES(X)
#define ERRORS_SPEND(X) OF_HOLDER(X) OF_TAKING(X) OF_ITEMS(X) OF_CURRENCIES(X)
#define ERRORS_BATCH_GRANT(X) OF_WRITER(X)
#define ERRORS_GET_BALANCES(X) OF_PLAYER_READ(X) OF_FRESH(X)
#define ERRORS_LIST_ENTRIES(X) OF_PLAYER_READ(X) OF_FRESH(X)
#define ERRORS_TRANSFER_CURRENCIES(X) OF_HOLDER(X) OF_TAKING(X) OF_SENDING(X) OF_CURRENCIES(X)
#define OF_NAMED(X) \
    X(NOT_FOUND, FINAL, "no ledger entry, or no reservation, of this player is known by that name", "")
#define OF_RESERVATION(X) \
    OF_NAMED(X) \
    X(RESERVATION_CLOSED, FINAL, "the reservation was posted or voided", "") \
    X(RESERVATION_EXPIRED, FINAL, "the reservation has expired", "")
#define ERRORS_RESERVE_CURRENCIES(X) \
    OF_HOLDER(X) OF_TAKING(X) OF_CURRENCIES(X) \
    X(CAPACITY_FULL, FINAL, "64 reservations are open, or too much is reserved", "")
#define ERRORS_POST_RESERVATION(X) \
    OF_HOLDER(X) OF_RESERVATION(X) \
    X(CAPACITY_FULL, FINAL, "the recipient's mailbox is full", "`about.came_back`: reserve again; else make room and raise `attempt`") \
    X(INSUFFICIENT_FUNDS, FINAL, "more than is reserved", "") \
    X(OPERATION_ABORTED, FINAL, "with `to_player_id`: sealed on its way; the reservation is closed, and what was posted is back in the balance", "reserve again")
#define ERRORS_VOID_RESERVATION(X) OF_HOLDER(X) OF_RESERVATION(X)
#define ERRORS_REVERSE_ENTRY(X) \
    OF_HOLDER(X) OF_NAMED(X) OF_TAKING(X) OF_ITEMS(X) OF_GIVING(X) \
    X(PERMISSION_DENIED, FINAL, "`system` may take back only what `system` gave", "") \
    X(ALREADY_REVERSED, FINAL, "the entry was reversed before", "") \
    X(NOT_REVERSIBLE, FINAL, "entries of that kind are not reversed", "") \
    X(INVALID_ARGUMENT, FINAL, "a currency of the entry is declared no more", "declare it again, then raise `attempt`")
#define ERRORS_LIST_RESERVATIONS(X) OF_PLAYER_READ(X)

/* ---- inventory ---- */
#define ERRORS_LIST_ITEMS(X) OF_PLAYER_READ(X) OF_FRESH(X)
#define ERRORS_TRANSFER_ITEMS(X) OF_HOLDER(X) OF_ITEMS(X) OF_SENDING(X)
#define ERRORS_TRACE_ITEM(X) \
    OF_READER(X) \
    X(NOT_FOUND, OPEN, "no such item was ever minted", "")

/* ---- mail ---- */
#define ERRORS_SEND_MAIL(X) \
    OF_HOLDER(X) OF_TAKING(X) OF_ITEMS(X) OF_SENDING(X) OF_CURRENCIES(X)
#define ERRORS_DELIVER_MAIL(X) OF_WAITING(X) OF_KIND(X) OF_RECEIPT(X) OF_MAIL(X)
#define ERRORS_LIST_MAIL(X) OF_PLAYER_READ(X) OF_FRESH(X)
#define ERRORS_CLAIM_MAIL(X) \
    OF_HOLDER(X) OF_GIVING(X) \
    X(NOT_FOUND, FINAL, "there is no such mail: claimed before, or gone back", "") \
    X(INVALID_ARGUMENT, FINAL, "a currency in the mail is declared no more", "declare it again, then raise `attempt`")
#define ERRORS_RETURN_EXPIRED_MAIL(X) OF_HOLDER(X)

/* ---- operations ---- */
#define ERRORS_GET_OPERATION(X) OF_PLAYER_READ(X)
#define ERRORS_RESOLVE_OPERATION(X) \
    OF_WRITER(X) \
    X(QUARANTINED, OPEN, "what is stored of the player cannot be read", "")

/* ---- transactions ---- */
#define OF_TRANSACTION(X) \
    OF_HOLDER(X) OF_TAKING(X) OF_ITEMS(X) OF_GIVING(X) OF_CURRENCIES(X) \
    X(OPERATION_ABORTED, FINAL, "it was sealed before it was decided; what it took is back", "")
#define ERRORS_EXECUTE_TRANSACTION(X) \
    OF_TRANSACTION(X) \
    X(VERSION_CONFLICT, FINAL, "a check failed: a section or a player has another version; `about.version` is it", "read again; send the new transaction under a new op_id") \
    X(SCHEMA_TOO_NEW, FINAL, "a stored section has a newer schema than the edit names", "") \
    X(INVALID_ARGUMENT, FINAL, "a step of a patch does not fit the document that is stored", "read again; send the new transaction under a new op_id")
#define ERRORS_SWAP(X) OF_TRANSACTION(X)
#define ERRORS_READ_PLAYERS(X) \
    OF_PLAYER_READ(X) \
    X(TXN_CONFLICT, OPEN, "the players kept changing while they were read", "")

/* ---- favourites ---- */
#define OF_COLLECTION(X) \
    X(NOT_FOUND, OPEN, "no collection of that name is defined; the message says which name is near", "define it, or name another")
#define OF_ERASED(X) \
    X(QUARANTINED, OPEN, "the player is erased, and its purge is not over", "nothing was done: after the purge the same applies; before it, an erasure can be undone")
#define OF_EDGE(X) \
    OF_OPERATION(X) OF_SCOPE(X) OF_COLLECTION(X) OF_ERASED(X) \
    X(THROTTLED, OPEN, "the player changed the collection as often as a rate rule allows", "nothing was done: wait `retry_after_ms`, send the same again") \
    X(NOT_FOUND, FINAL, "no collection of that name is defined where the call is applied", "define it, or name another, under a new op_id") \
    X(VERSION_CONFLICT, FINAL, "`if_ver` is not the edge's `ver`; `about.version` is", "read the status again, decide again under a new op_id")
#define ERRORS_FAVORITE(X) \
    OF_EDGE(X) \
    X(THROTTLED, OPEN, "the edge would be flagged, and as many of the player or of the shard wait for a review as may", "nothing was done: wait until some are reviewed, send the same again") \
    X(CAPACITY_FULL, FINAL, "the player's edges would pass the collection's `edges_max`", "")
#define ERRORS_UNFAVORITE(X) OF_EDGE(X)
#define ERRORS_BATCH_FAVORITE(X) OF_WRITER(X)
#define ERRORS_LIST_FAVORITES(X) OF_PLAYER_READ(X) OF_FRESH(X) OF_COLLECTION(X)
#define ERRORS_BATCH_GET_STATUS(X) OF_PLAYER_READ(X) OF_FRESH(X) OF_COLLECTION(X)
#define OF_COUNT(X) \
    OF_READER(X) OF_COLLECTION(X)
#define ERRORS_GET_COUNT(X) OF_COUNT(X)
#define ERRORS_BATCH_GET_COUNTS(X) OF_COUNT(X)
#define ERRORS_GET_TOP(X) OF_COUNT(X)
#define ERRORS_GET_RANK(X) OF_COUNT(X)
#define ERRORS_LIST_BY_TARGET(X) OF_READER(X) OF_COLLECTION(X)
#define OF_METADATA(X) \
    OF_WRITER(X) OF_COLLECTION(X) \
    X(QUARANTINED, OPEN, "the row of the target's metadata cannot be read", "drop the row (RepairRow), write the metadata again") \
    X(VERSION_CONFLICT, OPEN, "`if_version` is not the version of the target's metadata; `about.version` is", "read it again, decide again")
#define ERRORS_PUT_TARGET_METADATA(X) \
    OF_METADATA(X) \
    X(OPERATION_ID_MISMATCH, OPEN, "the metadata was written under this op_id, by another request", "")
#define ERRORS_BATCH_GET_TARGET_METADATA(X) OF_READER(X) OF_COLLECTION(X)
#define ERRORS_DELETE_TARGET_METADATA(X) OF_METADATA(X)

/* ---- counters ---- */
#define OF_COUNTER(X) \
    X(NOT_FOUND, OPEN, "no counter of that name is defined; the message says which name is near", "define it, or name another")
#define OF_TOTAL(X) OF_READER(X) OF_COUNTER(X)
#define ERRORS_ADD_TO_COUNTER(X) \
    OF_HOLDER(X) OF_COUNTER(X) OF_ERASED(X) \
    X(NOT_FOUND, FINAL, "no counter of that name is defined where the call is applied", "define it, or name another, under a new op_id") \
    X(CAPACITY_FULL, FINAL, "`amount` is above the counter's `add_max`; the player's value would pass its `max_value`, or the player's targets their maximum; or the shard's part of the total would pass 2^63 - 1 over the number of shards", "")
#define ERRORS_BATCH_ADD_TO_COUNTER(X) OF_WRITER(X)
#define ERRORS_LIST_PLAYER_COUNTERS(X) OF_PLAYER_READ(X) OF_FRESH(X) OF_COUNTER(X)
#define ERRORS_BATCH_GET_PLAYER_COUNTERS(X) OF_PLAYER_READ(X) OF_FRESH(X) OF_COUNTER(X)
#define ERRORS_GET_COUNTER(X) OF_TOTAL(X)
#define ERRORS_BATCH_GET_COUNTERS(X) OF_TOTAL(X)
#define ERRORS_GET_COUNTER_TOP(X) OF_TOTAL(X)
#define ERRORS_GET_COUNTER_RANK(X) OF_TOTAL(X)

/* ---- erasure ---- */
#define ERRORS_ERASE_PLAYER(X) \
    OF_OPERATION(X) OF_KIND(X) \
    X(PERMISSION_DENIED, FINAL, "the authority's scope is not admin", "") \
    X(QUARANTINED, OPEN, "an erasure of the player was undone, and is being put back into counts", "wait a moment, send the same again")
#define ERRORS_RESTORE_PLAYER(X) \
    OF_OPERATION(X) OF_KIND(X) \
    X(PERMISSION_DENIED, FINAL, "the authority's scope is not admin", "") \
    X(NOT_FOUND, FINAL, "the player is not erased, or its purge has begun", "read GetErasure")
#define ERRORS_GET_ERASURE(X) OF_PLAYER_READ(X) OF_FRESH(X)
#define ERRORS_EXPORT_PLAYER(X) OF_PLAYER_READ(X) OF_FRESH(X)

/* ---- events ---- */
#define OF_CONSUMER_ROW(X) \
    X(QUARANTINED, OPEN, "the consumer's row cannot be read", "drop the row (RepairRow), create the consumer again")
#define OF_CONSUMER(X) \
    OF_CONSUMER_ROW(X) \
    X(NOT_FOUND, OPEN, "no consumer has that name", "create it, or name another")
#define ERRORS_POLL(X) OF_READER(X) OF_CONSUMER(X)
#define ERRORS_SUBSCRIBE(X) OF_READER(X) OF_CONSUMER(X)
#define ERRORS_CREATE_CONSUMER(X) \
    OF_WRITER(X) OF_CONSUMER_ROW(X) \
    X(OPERATION_ID_MISMATCH, OPEN, "the consumer was last changed under this op_id, by another request", "") \
    X(VERSION_CONFLICT, OPEN, "there is a consumer of that name, made under another op_id, or committed before apply version 10", "use it, or delete it first") \
    X(CAPACITY_FULL, OPEN, "the shard of that name has 64 consumers", "delete those that are not used, or take another name")
#define ERRORS_GET_CONSUMER(X) OF_READER(X) OF_CONSUMER(X)
#define ERRORS_LIST_CONSUMERS(X) OF_READER(X)
#define ERRORS_COMMIT_CONSUMER(X) \
    OF_WRITER(X) OF_CONSUMER(X) \
    X(OPERATION_ID_MISMATCH, OPEN, "the consumer was last changed under this op_id, by another request", "") \
    X(VERSION_CONFLICT, OPEN, "another worker has committed since `version`", "read the consumer, go on from what is committed") \
    X(OUT_OF_RANGE, OPEN, "the cursor goes back in some shard, and `rewind` is not set", "commit a later cursor, or set `rewind`")
#define ERRORS_DELETE_CONSUMER(X) OF_WRITER(X) OF_CONSUMER_ROW(X) OF_CONFLICT(X)

/* ---- administration ---- */
#define ERRORS_GET_CLUSTER(X) OF_READER(X)
#define ERRORS_GET_SERVICE_INFO(X) OF_READER(X)
#define ERRORS_LIST_SHARDS(X) OF_READER(X)
#define ERRORS_GET_SHARD_CLOCK(X) OF_READER(X)
#define ERRORS_LIST_PROCESSES(X) OF_READER(X)
#define ERRORS_GET_LOAD(X) OF_READER(X)
#define ERRORS_LIST_PLAYERS(X) OF_READER(X)
#define ERRORS_LIST_INCIDENTS(X) OF_READER(X)
#define ERRORS_WATCH_INCIDENTS(X) OF_READER(X)
#define ERRORS_LIST_QUARANTINED(X) OF_READER(X)
#define ERRORS_GET_QUARANTINE(X) OF_PLAYER_READ(X)
#define ERRORS_RELEASE_QUARANTINE(X) \
    OF_OPERATION(X) OF_KIND(X) \
    X(PERMISSION_DENIED, FINAL, "the authority's scope is neither admin nor moderation", "") \
    X(NOT_FOUND, FINAL, "the player is not quarantined", "")
#define OF_REVIEW(X) \
    OF_OPERATION(X) OF_KIND(X) OF_COLLECTION(X) OF_ERASED(X) \
    X(PERMISSION_DENIED, FINAL, "the authority's scope is neither admin nor moderation", "") \
    X(NOT_FOUND, FINAL, "no collection of that name is defined where the call is applied", "define it, or name another, under a new op_id")
#define ERRORS_LIST_FLAGGED_EDGES(X) OF_READER(X) OF_COLLECTION(X)
#define ERRORS_ACCEPT_EDGES(X) \
    OF_REVIEW(X) \
    X(NOT_FOUND, FINAL, "an edge is not there, or is not flagged; the message says which", "list what is flagged, decide again under a new op_id")
#define ERRORS_REJECT_EDGES(X) \
    OF_REVIEW(X) \
    X(NOT_FOUND, FINAL, "an edge is not there, or is not flagged; the message says which", "list what is flagged, decide again under a new op_id")
#define ERRORS_FLAG_EDGES(X) \
    OF_REVIEW(X) \
    X(THROTTLED, OPEN, "as many edges of the shard wait for a review as may", "nothing was done: review some, send the same again") \
    X(NOT_FOUND, FINAL, "an edge is not there; the message says which", "read the status again, decide again under a new op_id")
#define ERRORS_CHECK_PLAYER(X) OF_PLAYER_READ(X)
#define ERRORS_REPAIR_PLAYER(X) \
    OF_OP_ID(X) OF_VERSION(X) OF_KIND(X) \
    X(PERMISSION_DENIED, FINAL, "the authority's scope is not admin", "") \
    X(NOT_FOUND, FINAL, "the player is not quarantined", "") \
    X(INVALID_ARGUMENT, FINAL, "a named row can be read, is not there, or is not repaired in this way", "")
#define ERRORS_GET_CHANNEL(X) OF_READER(X)
#define ERRORS_REPAIR_ROW(X) OF_OPERATOR(X)
#define ERRORS_REBUILD_COUNTS(X) \
    OF_OPERATOR(X) OF_SHARD_STATE(X) \
    X(NOT_FOUND, OPEN, "no collection, or no counter, of that name is defined in the shard", "") \
    X(QUARANTINED, OPEN, "keys of rows of targets, or the row of the rebuild, cannot be read", "")
#define ERRORS_SET_POLICY(X) \
    OF_OPERATOR(X) OF_CONFLICT(X) \
    X(CAPACITY_FULL, OPEN, "the policy and the definitions together would declare more than 64 currencies", "add fewer, or drop some of the policy")
#define OF_DEFINITION(X) \
    X(NOT_FOUND, OPEN, "there is no such definition, or that version of it is not kept", "")
#define OF_DEFINER(X) \
    OF_OPERATOR(X) OF_CONFLICT(X) \
    X(OPERATION_ID_MISMATCH, OPEN, "the op_id was used before, for another change of that definition", "")
#define ERRORS_PUT_DEFINITION(X) \
    OF_DEFINER(X) \
    X(CAPACITY_FULL, OPEN, "there are too many definitions, currencies, or rate rules about one subject, or they are too large", "")
#define ERRORS_GET_DEFINITION(X) OF_READER(X) OF_DEFINITION(X)
#define ERRORS_LIST_DEFINITIONS(X) OF_READER(X)
#define ERRORS_LIST_DEFINITION_VERSIONS(X) OF_READER(X) OF_DEFINITION(X)
#define ERRORS_DIFF_DEFINITIONS(X) OF_READER(X) OF_DEFINITION(X)
#define ERRORS_ROLLBACK_DEFINITION(X) OF_DEFINER(X) OF_DEFINITION(X)
#define ERRORS_DELETE_DEFINITION(X) OF_DEFINER(X) OF_DEFINITION(X)
#define ERRORS_GET_SETTINGS(X) \
    OF_READER(X) \
    X(NOT_FOUND, OPEN, "there are no settings of that name, or no more", "")
#define ERRORS_MOVE_SHARD(X) OF_OPERATOR(X) OF_CONFLICT(X)
#define ERRORS_REBUILD_REPLICA(X) OF_OPERATOR(X) OF_CONFLICT(X)
#define ERRORS_CHANGE_NODE(X) OF_OPERATOR(X) OF_CONFLICT(X)
#define ERRORS_REBALANCE_SHARDS(X) OF_OPERATOR(X) OF_CONFLICT(X)
#define ERRORS_ACCEPT_ETCD_RESTORE(X) \
    OF_OPERATOR(X) OF_CONFLICT(X) \
    X(INTERNAL, OPEN, "a record in etcd cannot be read", "")
#define ERRORS_DEBUG_INJECT(X) \
    OF_HOLDER(X) OF_GIVING(X) OF_ITEMS(X) OF_TAKING(X) \
    X(PERMISSION_DENIED, FINAL, "the authority's scope is not admin", "")

/* ---- documents ---- */
#define OF_DOCUMENTS(X) \
    X(NOT_FOUND, OPEN, "no collection of documents of that name is defined", "define it, or name another")
#define OF_DOCUMENT_ERASED(X) \
    X(QUARANTINED, OPEN, "the entity is a player that is erased, and its purge is not over", "nothing was done: after the purge the same applies; before it, an erasure can be undone")
/* Writes that any member takes: the log has nothing of them. */
#define OF_MEMBER_UNKNOWN(X) \
    X(OUTCOME_UNKNOWN, OPEN, "no member said so in time", "it may have been carried out: send the same again, or read; a seal knows nothing of it")
#define OF_MEMBER_WRITER(X) OF_DOOR(X) OF_SCOPE(X) OF_MEMBER_UNKNOWN(X)
#define OF_DOCUMENT_WRITE(X) \
    OF_MEMBER_WRITER(X) OF_DOCUMENTS(X) OF_DOCUMENT_ERASED(X) \
    X(CAPACITY_FULL, OPEN, "the document would have too many siblings, parts or bytes, or the shard too many documents", "replace siblings, or make room; then send the same again")
#define ERRORS_PUT_DOCUMENT(X) OF_DOCUMENT_WRITE(X)
#define ERRORS_GET_DOCUMENT(X) OF_READER(X) OF_DOCUMENTS(X)
#define ERRORS_DELETE_DOCUMENT(X) OF_MEMBER_WRITER(X) OF_DOCUMENTS(X) OF_DOCUMENT_ERASED(X)
#define ERRORS_UPDATE_DOCUMENT(X) \
    OF_DOCUMENT_WRITE(X) \
    X(OPERATION_ID_MISMATCH, OPEN, "the op_id was used before, at this document, for other increments", "never repeat it; alert: two requests share one id") \
    X(OPERATION_EXPIRED, OPEN, "the op_id of an increment is older than increments are told apart", "never applied from now on; if an earlier try may have been, read the counter")
#define ERRORS_BATCH_GET_DOCUMENTS(X) OF_READER(X)
#define ERRORS_LIST_DOCUMENTS(X) OF_READER(X) OF_DOCUMENTS(X)

/* ---- presence ---- */
#define OF_PLAYER_ERASED(X) \
    X(QUARANTINED, OPEN, "the player is erased, and the purge is not over", "nothing was done: after the purge the same applies; before it, an erasure can be undone")
#define ERRORS_SET_PRESENCE(X) \
    OF_MEMBER_WRITER(X) OF_PLAYER_ERASED(X) \
    X(SERVER_EXPIRED, OPEN, "the registration of `incarnation` has expired", "") \
    X(CAPACITY_FULL, OPEN, "the player would have too many connections, or the shard too many documents", "clear a connection, or make room; then send the same again")
#define ERRORS_CLEAR_PRESENCE(X) OF_MEMBER_WRITER(X) OF_PLAYER_ERASED(X)
#define ERRORS_GET_PRESENCE(X) OF_READER(X)
#define ERRORS_BATCH_GET_PRESENCE(X) OF_READER(X)
#define ERRORS_BATCH_SET_PRESENCE(X) \
    OF_MEMBER_WRITER(X) \
    X(SERVER_EXPIRED, OPEN, "no server has a registration that an element names", "")
#define ERRORS_LIST_ONLINE(X) OF_READER(X)

/* ---- users ---- */
#define ERRORS_UPSERT_USER(X) \
    OF_MEMBER_WRITER(X) OF_PLAYER_ERASED(X) \
    X(SERVER_EXPIRED, OPEN, "the registration of `incarnation` has expired", "") \
    X(CAPACITY_FULL, OPEN, "the user would be too large or have too many connections, or the shard too many documents", "remove or disconnect something, or make room; then send the same again")
#define ERRORS_GET_USER(X) OF_READER(X)
#define ERRORS_BATCH_UPSERT_USERS(X) \
    OF_MEMBER_WRITER(X) \
    X(SERVER_EXPIRED, OPEN, "no server has a registration that an element names", "")
#define ERRORS_BATCH_GET_USERS(X) OF_READER(X)
#define OF_NAME(X) \
    OF_HOLDER(X) \
    X(OPERATION_ABORTED, FINAL, "it was sealed before it was decided", "")
#define ERRORS_CLAIM_NAME(X) \
    OF_NAME(X) \
    X(CAPACITY_FULL, FINAL, "the player would have too many sections", "make room; raise `attempt` to ask again") \
    X(VERSION_CONFLICT, FINAL, "another player has the name, or this one has one already, or has not the one that `replaces` names: `field` says which", "choose another name, or look which one the player has; then claim under a new op_id")
#define ERRORS_RELEASE_NAME(X) \
    OF_NAME(X) \
    X(VERSION_CONFLICT, FINAL, "the name is not this player's under `number`", "FindByName; release it under the number of then, if it is still the player's")
#define ERRORS_FIND_BY_NAME(X) \
    OF_PLAYER_READ(X) OF_FRESH(X) \
    X(TXN_CONFLICT, OPEN, "a claim or a release of the name is not decided yet", "")

#define ERRORS_SET_USER_FLAGS(X) \
    OF_OPERATION(X) OF_KIND(X) \
    X(PERMISSION_DENIED, FINAL, "the authority's scope is neither admin nor, without roles, payments", "") \
    X(CAPACITY_FULL, FINAL, "the player would have more than 32 roles, 32 flags or 64 sections", "remove or clear some; raise `attempt` to ask again")
#define ERRORS_GET_USER_FLAGS(X) OF_PLAYER_READ(X) OF_FRESH(X)

/* ---- backups ---- */
#define ERRORS_GET_BACKUP_STATE(X) OF_READER(X)
#define ERRORS_ARM_BACKUP(X) OF_READER(X) OF_SHARD_STATE(X)
#define ERRORS_CUT_BACKUP(X) OF_OPERATOR(X)
#define ERRORS_READ_BACKUP(X) \
    OF_READER(X) \
    X(NOT_FOUND, OPEN, "the shard holds no view for that backup any more", "start the backup again")
#define ERRORS_READ_DOCUMENTS(X) \
    OF_READER(X) \
    X(VERSION_CONFLICT, OPEN, "another process of the shard's members answers than the one that gave the first page", "start the backup again")
#define ERRORS_PREPARE_RESTORE(X) OF_OPERATOR(X) OF_CONFLICT(X)
#define ERRORS_RESTORE_DEFINITION(X) \
    OF_OPERATOR(X) \
    X(VERSION_CONFLICT, OPEN, "the cluster has another definition under that name or number", "restore into a new cluster") \
    X(CAPACITY_FULL, OPEN, "there are too many definitions, currencies, or rate rules about one subject, or they are too large", "")
#define OF_RESTORE(X) \
    OF_OPERATOR(X) OF_SHARD_STATE(X)
#define ERRORS_BEGIN_RESTORE(X) \
    OF_RESTORE(X) \
    X(SCHEMA_TOO_NEW, OPEN, "the backup was made by a newer version", "update the cluster")
#define ERRORS_RESTORE_ROWS(X) OF_RESTORE(X)
#define ERRORS_RESTORE_DOCUMENTS(X) \
    OF_RESTORE(X) \
    X(NOT_FOUND, OPEN, "the backup has documents of a collection that is not defined here", "define it as it was, and restore again")
#define ERRORS_FINISH_RESTORE(X) OF_RESTORE(X)
/* clang-format on */

/* Whether the table has such an error for that method, or for the public one that it carries out
 * (method_told); other methods that are not public promise nothing, so: yes. */
bool error_is_given(uint32_t method, Holdfast__V1__ErrorCode code, bool final);

#endif
