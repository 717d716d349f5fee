/*
 * page_cursor: the cursors of lists as callers see them: opaque, and good for the same list with
 * the same filters alone. A list itself thinks in places, texts of its own ("17", an item's UID); a
 * cursor is a place, with a hash of the request in front of it, in base64.
 */
#ifndef IDL_PAGE_CURSOR_H
#define IDL_PAGE_CURSOR_H

#include "idl/method.h"
#include "runtime/base/arena.h"

/* Public methods with page_size, cursor and next_cursor. Not ListIncidents and Poll: they are
 * feeds, without an end, and their cursors say how far each node, or each shard, is known. */
bool page_cursor_concerns(const struct method_info *method);

/* The cursor for what follows `place` in the list that `request` asks for. What a request says of
 * its page and of freshness (page_size, cursor, read) is no filter. In the arena. */
char *page_cursor_print(const ProtobufCMessage *request, const char *place, struct arena *arena);
/* *ret_place: in the arena; "" for the first page. ERR_INVALID: `cursor` was not printed for this
 * list with these filters. */
NODISCARD err page_cursor_parse(const ProtobufCMessage *request, struct arena *arena,
                                char **ret_place);

/* What an error about a cursor says that it should be. */
#define PAGE_CURSOR_LIMIT "next_cursor of the page before, with the same filters"

/* Where those fields stand in a message that has them (CHECK). */
char **page_cursor_of_request(ProtobufCMessage *request);
char **page_cursor_of_response(ProtobufCMessage *response);

#endif
