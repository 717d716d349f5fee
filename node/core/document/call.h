/*
 * call: what the methods of DocumentService and PresenceService share: from a request to a write or
 * a read of one mergeable replica, and from what became of it to an answer. Pure. A method's file
 * is found by its name in idl/method.h: document_put_document.c has document_put_document_method.
 */
#ifndef NODE_CORE_DOCUMENT_CALL_H
#define NODE_CORE_DOCUMENT_CALL_H

#include "node/core/document/living.h"
#include "node/core/document/rules.h"
#include "node/core/document/value.h"
#include "node/core/handler/refusal.h"
#include "node/core/mergeable/write.h"

#define DOCUMENT_KEY_BYTES_MAX     200u
#define DOCUMENT_CONTEXT_BYTES_MAX 700u
#define DOCUMENT_TTL_MS_MIN        1000u
#define DOCUMENT_TTL_MS_MAX        31536000000ll
/* Of one shard; a write of a key that there is not is refused beyond. */
#define DOCUMENTS_MAX 65536u
/* Of their paths and values; a write that makes them more is refused beyond. */
#define DOCUMENTS_BYTES_MAX (64u * 1024u * 1024u)
/* Deleted ones among them, which stay until all members know of it. */
#define DOCUMENT_ROWS_MAX (2u * DOCUMENTS_MAX)

struct document_context {
    struct arena *arena;
    const struct document_rules *rules;
    struct merge_replica *replica;
    const struct living *living; /* NULL: all game servers live. */
    uint64_t now_ms;             /* The wall clock. */
    bool full; /* The shard has all documents, or bytes, that it may have: none may be added. */
    bool bytes_full; /* It has all bytes: none may grow. */
    /* The disk takes nothing: a read of a majority, which repairs, is for another member. */
    bool no_disk;
    /* The entity is erased, and may be brought back: reads show nothing of it, and nothing is
     * written. */
    bool erased;
    struct refusal *refusal;
};

/* What a call waits for, or its answer. */
struct document_begun {
    uint64_t ticket;     /* Of merge_out; 0: `answer` is it. */
    struct slice answer; /* In the arena. */
    /* Of a write that waits: the context that its answer has, in the arena. NULL: a read waits, and
     * goes on by document_told. */
    const char *context;
    /* Of such a write: fields of its answer besides `written`, packed, in the arena. */
    struct slice more;
};

/* One method, defined in its file. ERR_INVALID, ERR_CONFLICT: refused. */
struct document_method {
    err (*begin)(struct document_context *context, struct slice request,
                 struct document_begun *ret_begun);
};

/* A majority's read came in. Answers the GetDocument `request`, in the arena; without the record if
 * its entity was erased meanwhile. */
NODISCARD err document_told(struct document_context *context, struct slice request,
                            const struct merge_record *record, struct slice *ret_answer);
/* Answers a write; all of them alike. Appends. */
void document_written(const char *context, uint32_t replicas, struct buf *out);

/* The owner's job: takes away, by a write, the first document behind `after` (NULL: of all) whose
 * collection was deleted. ERR_NOT_FOUND: none is left. Other errors as merge_drop. *ret_key is a
 * reference of the caller. */
NODISCARD err document_sweep_deleted(struct document_context *context,
                                     const struct merge_key *after, struct merge_key **ret_key);

/* ---- for the methods ---- */

/* Which document a request is about. */
struct document_name {
    const char *entity, *collection, *key;
};
/* A document and what its collection says. */
struct document_place {
    const struct document_rule *rule;
    struct merge_key *key; /* One reference: merge_key_unref. */
    struct slice token;    /* Of the caller's context; empty: it has none. In the arena. */
};
/* The message in the arena; NULL: refused. */
const void *document_unpack(struct document_context *context,
                            const ProtobufCMessageDescriptor *type, struct slice request);
/* INVALID_ARGUMENT, NOT_FOUND; UNAVAILABLE before all definitions are known. */
NODISCARD err document_find_rule(struct document_context *context, const char *entity,
                                 const char *collection, const struct document_rule **ret_rule);
/* What a caller has seen; empty: nothing. In the arena. INVALID_ARGUMENT. */
NODISCARD err document_open_context(struct document_context *context, const char *text,
                                    struct slice *ret_token);
NODISCARD err document_find(struct document_context *context, const struct document_name *name,
                            const char *token, struct document_place *ret_place);

/* A write's own fields. */
struct document_write {
    const char *op_id;
    Holdfast__V1__DocumentDurability durability;
    bool has_ttl;
    int64_t ttl_ms;
    /* What is asked for, as the caller said it. Under one op_id the same is one operation, so that
     * another attempt changes nothing while the first one stands. Empty: each attempt writes. */
    struct slice content;
};
/* When what it writes ends; 0: never. INVALID_ARGUMENT. */
NODISCARD err document_expiry(struct document_context *context, const struct document_place *place,
                              const struct document_write *write, uint64_t *ret_expires_ms);
/* Parses a document of the request. NULL: INVALID_ARGUMENT. The caller's to json_decref. */
json_t *document_parse(struct document_context *context, const char *field, const char *text);
/* The answer to a GetDocument of an entity that is erased, in the arena. */
struct slice document_hidden(struct document_context *context);
/* What a caller has seen who is shown that record, and before that `before`; empty: too many wrote
 * it lately. In the arena. */
const char *document_context_of(struct document_context *context, const struct merge_key *key,
                                const struct merge_record *record, struct slice before);
/* What the record is now, full; free it. */
void document_stored(struct document_context *context, const struct document_place *place,
                     struct merge_record *ret_record);
/* Another attempt of the write stands here. */
bool document_stands(struct document_context *context, const struct document_place *place,
                     const struct document_write *write);
/* Writes the edits. `whole`: everything else goes. Refusals as of merge_write. */
struct document_change {
    const struct value_edits *edits;
    bool whole;
    bool updates; /* What is there: it may stay above the collection's limit if it shrinks. */
};
/* What document_commit refuses by itself, before anything is written: for a call that writes two
 * records. */
NODISCARD err document_check(struct document_context *context, const struct document_place *place,
                             const struct document_write *write,
                             const struct document_change *change);
NODISCARD err document_commit(struct document_context *context, const struct document_place *place,
                              const struct document_write *write,
                              const struct document_change *change,
                              struct document_begun *ret_begun);
/* The edits give something, and the shard has no row of it. */
bool document_adds_row(const struct document_context *context, const struct document_place *place,
                       const struct value_edits *edits);
/* CAPACITY_FULL: the shard has no room for so many more. What only takes away adds none. */
NODISCARD err document_check_rows(struct document_context *context, uint32_t added);
/* What the core refused, in the caller's words. Returns ERR_CONFLICT. */
err document_refuse(struct document_context *context, err why, const struct merge_refusal *refusal);
/* UNAVAILABLE: the caller repeats it soon. */
err document_unavailable(struct document_context *context, const char *message);
/* The key under which documents of a collection stand: its number, then `key`. */
struct slice document_row_name(struct arena *arena, const struct document_rule *rule,
                               struct slice key);

#endif
