/*
 * user: what the methods of UserService share. A user's record is one of policy `merge` beside the
 * documents, under number 0, which no collection has: as a document {name, attributes, settings,
 * created, seen}, of which each leaf is a part. Its connections are the player's presence, a record
 * of its own (presence.h). A context of a user is those of both records, joined. Pure.
 */
#ifndef NODE_CORE_DOCUMENT_USER_H
#define NODE_CORE_DOCUMENT_USER_H

#include "holdfast/v1/user.pb-c.h"
#include "node/core/document/presence.h"

#define USER_NAME_BYTES_MAX  64u
#define USER_DISCONNECTS_MAX PRESENCE_CONNECTIONS_MAX
#define USER_LEAVES_MAX      (MERGE_EDITS_MAX - 2u) /* That a caller may give: the times are two. */
/* Where the parts stand in the record. */
#define USER_PATH_NAME       "name"
#define USER_PATH_ATTRIBUTES "attributes"
#define USER_PATH_SETTINGS   "settings"
#define USER_PATH_CREATED    "created"
#define USER_PATH_SEEN       "seen"

struct user_place {
    struct document_place record, presence;
};
/* Whose user a request is about, and what its caller has seen; then user_place_deinit.
 * INVALID_ARGUMENT. */
NODISCARD err user_find(struct document_context *context, const char *player_id, const char *text,
                        struct user_place *ret_place);
void user_place_deinit(struct user_place *place);

/* The user that two records make; NULL: there is none. `player_id` is lent to it; all else is in
 * the arena. */
Holdfast__V1__User *user_show(struct document_context *context, char *player_id,
                              const struct merge_record *record,
                              const struct merge_record *presence);
/* What a caller has seen who is shown both; in the arena. */
char *user_context(struct document_context *context, const struct user_place *place,
                   const struct merge_record *record, const struct merge_record *presence);

#endif
