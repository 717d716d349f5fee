/*
 * limit: every limit of the public API that a caller can meet, in one table. Router and node check
 * against these macros; AdminService.GetServiceInfo tells them to callers under their names. The
 * cluster's policy, which an operator sets, is told beside them and is not in here.
 */
#ifndef IDL_LIMIT_H
#define IDL_LIMIT_H

#include <stdint.h>

#define LIMIT_PLAYER_ID_BYTES       100u
#define LIMIT_ENTITY_BYTES          128u
#define LIMIT_OP_ID_BYTES           160u
#define LIMIT_OP_ID_AHEAD_MS        (5u * 60u * 1000u)
#define LIMIT_REASON_BYTES          64u
#define LIMIT_TOKEN_BYTES           64u
#define LIMIT_AMOUNT                9007199254740991ll /* 2^53 - 1: exact in every JSON reader. */
#define LIMIT_CURRENCIES            16u
#define LIMIT_CURRENCY_NAME_BYTES   32u
#define LIMIT_ITEMS                 64u
#define LIMIT_ITEM_KIND_BYTES       64u
#define LIMIT_ITEM_ATTRIBUTES_BYTES 1024u
#define LIMIT_SECTIONS              64u
#define LIMIT_SECTION_NAME_BYTES    64u
#define LIMIT_SECTION_BYTES         (256u * 1024u)
#define LIMIT_SECTION_EDITS         32u
#define LIMIT_PATCH_STEPS           64u
#define LIMIT_PATCH_PATH_BYTES      512u
#define LIMIT_DOCUMENT_DEPTH        64u
#define LIMIT_PROFILE_BYTES         (3u * 1024u * 1024u)
#define LIMIT_RESERVATIONS          64u
#define LIMIT_RESERVATION_MS        (30ull * 24u * 3600u * 1000u)
#define LIMIT_MAIL_TEXT_BYTES       1024u
#define LIMIT_MAIL_EXPIRY_MS        (365ull * 24u * 3600u * 1000u)
#define LIMIT_MAILS_CLAIMED         16u
#define LIMIT_TRANSACTION_PLAYERS   8u
#define LIMIT_TRANSACTION_CHECKS    32u
#define LIMIT_TRANSACTION_CHANGES   32u
#define LIMIT_SESSION_GRACE_MS      60000u
#define LIMIT_SESSIONS_RENEWED      1000u
#define LIMIT_CONSUMER_NAME_BYTES   64u
#define LIMIT_CONSUMERS             64u
#define LIMIT_METADATA_TITLE_BYTES  256u
#define LIMIT_METADATA_URL_BYTES    1024u
#define LIMIT_METADATA_MORE_BYTES   1024u
#define LIMIT_USER_ROLES            32u
#define LIMIT_USER_FLAGS            32u
#define LIMIT_DEADLINE_MS           60000u
#define LIMIT_REQUEST_BYTES         (1024u * 1024u)

/* X(name of the macro, name that callers see, what it bounds). Longest names: 40 bytes. */
/* clang-format off */
#define PUBLIC_LIMITS(X) \
    X(PLAYER_ID_BYTES,       "player_id_bytes",       "a player's id") \
    X(ENTITY_BYTES,          "entity_bytes",          "an entity with its kind, such as player:42") \
    X(OP_ID_BYTES,           "op_id_bytes",           "an op_id") \
    X(OP_ID_AHEAD_MS,        "op_id_ahead_ms",        "how far a UUIDv7 may be ahead of the service's clock") \
    X(REASON_BYTES,          "reason_bytes",          "a reason, for the ledger") \
    X(TOKEN_BYTES,           "token_bytes",           "the token of a session") \
    X(AMOUNT,                "amount",                "an amount, and a balance") \
    X(CURRENCIES,            "currencies",            "different currencies in a request") \
    X(CURRENCY_NAME_BYTES,   "currency_name_bytes",   "the name of a currency") \
    X(ITEMS,                 "items",                 "items in a request") \
    X(ITEM_KIND_BYTES,       "item_kind_bytes",       "the kind of an item") \
    X(ITEM_ATTRIBUTES_BYTES, "item_attributes_bytes", "the attributes of an item") \
    X(SECTIONS,              "sections",              "sections of a profile") \
    X(SECTION_NAME_BYTES,    "section_name_bytes",    "the name of a section") \
    X(SECTION_BYTES,         "section_bytes",         "the document of a section") \
    X(SECTION_EDITS,         "section_edits",         "sections that one request edits") \
    X(PATCH_STEPS,           "patch_steps",           "steps of one patch, paths of one remove") \
    X(PATCH_PATH_BYTES,      "patch_path_bytes",      "the path of a step, or of a remove") \
    X(DOCUMENT_DEPTH,        "document_depth",        "how deep a document may nest") \
    X(PROFILE_BYTES,         "profile_bytes",         "all sections of a profile together") \
    X(RESERVATIONS,          "reservations",          "open reservations of a player") \
    X(RESERVATION_MS,        "reservation_ms",        "how long a reservation may stand") \
    X(MAIL_TEXT_BYTES,       "mail_text_bytes",       "the text of a piece of mail") \
    X(MAIL_EXPIRY_MS,        "mail_expiry_ms",        "after how long mail may go back") \
    X(MAILS_CLAIMED,         "mails_claimed",         "pieces of mail that one request claims") \
    X(TRANSACTION_PLAYERS,   "transaction_players",   "players in a transaction, or a read of several") \
    X(TRANSACTION_CHECKS,    "transaction_checks",    "checks of a transaction") \
    X(TRANSACTION_CHANGES,   "transaction_changes",   "changes of a transaction") \
    X(SESSION_GRACE_MS,      "session_grace_ms",      "the grace of a holder whose session is stolen") \
    X(SESSIONS_RENEWED,      "sessions_renewed",      "sessions in one RenewSessions") \
    X(CONSUMER_NAME_BYTES,   "consumer_name_bytes",   "the name of a consumer of events") \
    X(CONSUMERS,             "consumers",             "consumers of events in one shard") \
    X(METADATA_TITLE_BYTES,  "metadata_title_bytes",  "the title of a target") \
    X(METADATA_URL_BYTES,    "metadata_url_bytes",    "the thumbnail_url of a target") \
    X(METADATA_MORE_BYTES, "metadata_attributes_bytes", "the further attributes of a target") \
    X(USER_ROLES,            "user_roles",            "roles of a player") \
    X(USER_FLAGS,            "user_flags",            "flags of a player") \
    X(DEADLINE_MS,           "deadline_ms",           "a deadline; a longer one is cut to it") \
    X(REQUEST_BYTES,         "request_bytes",         "a mutation, as protobuf")
/* clang-format on */

#endif
