/* rest_text: texts in paths and queries. Private to runtime/rest. */
#ifndef RUNTIME_REST_REST_TEXT_H
#define RUNTIME_REST_REST_TEXT_H

#include "runtime/base/arena.h"

/* Takes what stands in front of the next `separator`; *list is the rest, without data behind the
 * last one. */
struct slice rest_text_take(struct slice *list, char separator);
/* Percent-decodes; in a query a plus is a space. The copy is in the arena. False: an escape is not
 * two hex digits. */
bool rest_text_decode(struct slice text, bool in_query, struct arena *arena, struct slice *ret);
/* Appends the text as a JSON string. Bytes that are no UTF-8 go through: the codec refuses them. */
void rest_text_put_json(struct slice text, struct buf *out);

#endif
