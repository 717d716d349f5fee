/*
 * op: an operation as it stands in the log: who may, which id, which method, and the request's
 * own bytes (protobuf, canonical). DESIGN sections 4 and 6.
 */
#ifndef NODE_CORE_CODEC_OP_H
#define NODE_CORE_CODEC_OP_H

#include <stdbool.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "idl/limit.h"
#include "runtime/base/buf.h"
#include "runtime/base/hash.h"
#include "runtime/base/id.h"
#include "runtime/cluster/caller_name.h"
#include "runtime/cluster/incarnation.h"

#define ENTITY_BYTES_MAX    LIMIT_ENTITY_BYTES
#define PLAYER_ID_BYTES_MAX LIMIT_PLAYER_ID_BYTES
#define OP_ID_BYTES_MAX     LIMIT_OP_ID_BYTES
#define OP_ID_AHEAD_MS_MAX  LIMIT_OP_ID_AHEAD_MS
#define OP_ID_KEY_MS        (24u * 60u * 60u * 1000u) /* What came of a `key:` stands so long. */

enum authority_kind {
    AUTHORITY_NONE, /* Methods that carry their own (StartSession, owner-made entries). */
    AUTHORITY_SESSION,
    AUTHORITY_SYSTEM,
    AUTHORITY_UNHELD
};

struct authority {
    enum authority_kind kind;
    struct incarnation incarnation; /* SESSION */
    uint64_t fence;                 /* SESSION */
    struct slice scope;             /* SYSTEM */
    struct slice caller;            /* SYSTEM: whose key acts (caller_name.h); empty: not known. */
};

/* A UUIDv7 (kept for a window, sorted by time) or a typed key (kept with the ledger, unless it is a
 * `key:`: that one stands for its operation OP_ID_KEY_MS long, from when it was decided). */
struct op_id {
    bool typed;
    bool is_key;       /* typed: "key:<anything>". */
    struct uuid uuid;  /* !typed */
    struct slice text; /* As given: canonical lower-case UUID, or the typed key. */
};

struct op {
    uint32_t method; /* idl/method.h */
    uint32_t attempt;
    struct op_id id;     /* Empty text: an owner-made or shard-wide entry. */
    struct slice entity; /* "player:42"; empty for shard-wide entries. */
    struct authority authority;
    /* Who asked, where an authority of the request is a system: its own, or another player's in a
     * transaction. Empty: not known. No part of the payload. */
    struct slice caller;
    struct hash128 payload; /* Of method and request. Computed by op_decode, not in the log. */
    uint64_t cut_id;
    uint32_t
        shard_count; /* Of the cluster, for ever the same; set by the applier, not in the log. */
    struct slice request; /* protobuf, canonical; its attempt and authority are left out,
                           * since they stand above and a retry may change them. */
};

void op_encode(const struct op *op, struct buf *out);
/* Slices point into `bytes`. ERR_CORRUPT: malformed. */
NODISCARD err op_decode(struct slice bytes, struct op *ret_op);
/* The body of an operation that an owner makes itself: it has no id and no authority. */
void owner_op_encode(uint32_t method, struct slice entity, const ProtobufCMessage *request,
                     struct buf *out);

/* Whether there is a colon in it: what is none has no id either. */
bool entity_has_kind(struct slice entity);

/* What a payload is, to deduplication: XXH3-128 over the method's number and the request. */
struct hash128 op_payload(uint32_t method, struct slice request);

/* ERR_INVALID: neither a UUIDv7 nor a typed key of a known kind; `ret_why` is static text. */
NODISCARD err op_id_parse(struct slice text, struct op_id *ret_id, const char **ret_why);
/* Session tokens: "<generation>-<revision>-<fence>". ERR_INVALID when malformed. */
NODISCARD err token_parse(struct slice text, struct incarnation *ret_incarnation,
                          uint64_t *ret_fence);
#define TOKEN_TEXT_SIZE 64 /* Three u64, two dashes, the NUL. */
void token_print(struct incarnation incarnation, uint64_t fence, char ret_text[TOKEN_TEXT_SIZE]);

#endif
