/*
 * presence: what the methods of PresenceService share. A player's presence is one record of policy
 * `merge` beside the documents, under number 0, which no collection has; each connection is a part
 * of it, its path the connection's name. One that lives by a game server has no end of its own:
 * each read judges it by the servers that live (living.h). Pure.
 */
#ifndef NODE_CORE_DOCUMENT_PRESENCE_H
#define NODE_CORE_DOCUMENT_PRESENCE_H

#include "holdfast/v1/presence.pb-c.h"
#include "node/core/document/call.h"

#define PRESENCE_CONNECTIONS_MAX      16u
#define PRESENCE_CONNECTION_BYTES_MAX 64u
#define PRESENCE_STATUS_BYTES_MAX     1024u
#define PRESENCE_TTL_MS_MIN           1000
#define PRESENCE_TTL_MS_MAX           86400000

/* What a part says; decoded in the arena. */
struct presence_part {
    const struct merge_cell *cell;                /* Of the record. */
    Holdfast__V1__PresenceConnection *connection; /* NULL: it is dead. */
    bool dead;                                    /* Its server has ended. */
};
struct presence_parts {
    uint32_t count, dead;
    struct presence_part *list; /* In the arena. */
};
/* What is not expired, dead ones included. A part that cannot be read counts as dead. The record
 * has to outlive it. */
void presence_parts_of(struct document_context *context, const struct merge_record *record,
                       struct presence_parts *ret_parts);

/* Whether a record under that key is a player's presence. */
bool presence_is(const struct merge_key *key);
/* Whose presence a request is about; merge_key_unref its key. INVALID_ARGUMENT. */
NODISCARD err presence_find(struct document_context *context, const char *player_id,
                            const char *token, struct document_place *ret_place);
/* INVALID_ARGUMENT: 1 to 64 of a-z, A-Z, 0-9 and "._:-". */
NODISCARD err presence_check_connection(struct document_context *context, const char *connection);
/* One connection as a caller sets it. */
struct presence_setting {
    char *connection, *status, *incarnation;
    int64_t ttl_ms; /* 0: it lives by `incarnation`. */
};
/* The edits that set it, in `edits`, which has none that expire yet; parts of dead servers go with
 * it. INVALID_ARGUMENT, SERVER_EXPIRED, CAPACITY_FULL. */
NODISCARD err presence_set_edits(struct document_context *context,
                                 const struct document_place *place,
                                 const struct presence_setting *setting, struct value_edits *edits);
/* The living parts as a message has them, the latest first; in the arena. */
void presence_show(struct document_context *context, struct presence_parts *parts,
                   size_t *ret_count, Holdfast__V1__PresenceConnection ***ret_list);
/* Removes a part by one more edit; false: there are MERGE_EDITS_MAX. */
bool presence_remove(struct value_edits *edits, const struct presence_part *part);

/* Of the records behind `after` (NULL: of all) the first with parts of dead servers: they go by a
 * write. ERR_NOT_FOUND: none has. Other errors: it cannot write now. *ret_key is a reference of the
 * caller. */
NODISCARD err presence_sweep(struct document_context *context, const struct merge_key *after,
                             struct merge_key **ret_key);

#endif
