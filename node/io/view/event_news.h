/*
 * event_news: which shards of this node have committed events, or are served, since a router asked
 * last: for ListEventNews (docs/events.md). A hint alone: the events themselves are read from their
 * shards, in full, whatever is told here.
 */
#ifndef NODE_IO_VIEW_EVENT_NEWS_H
#define NODE_IO_VIEW_EVENT_NEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

struct event_news;

/* `life` tells this process from those before, which counted likewise. */
struct event_news *event_news_new(uint32_t shard_count, uint64_t life);
/* NULL is allowed. */
void event_news_free(struct event_news *news);
/* Before the first note. Called from any thread, when there is something to tell after
 * event_news_append has told that there is nothing. */
void event_news_set_listener(struct event_news *news, void (*added)(void *user), void *user);

/* Any thread: the shard, which is served here, has more events, or is served only now. */
void event_news_note(struct event_news *news, uint32_t shard);
/* Any thread: appends the answer to a ListEventNews. False: there is nothing to tell yet. */
bool event_news_append(struct event_news *news, struct slice request, struct buf *out);

#endif
