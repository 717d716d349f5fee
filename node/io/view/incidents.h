/*
 * incidents: the newest incidents of a node's shards (incident_ring.h), with a count of each kind.
 * Any worker's thread adds; the main thread lists. The lock is taken for one copy, and only when
 * something out of the ordinary happened. docs/incidents.md.
 */
#ifndef NODE_IO_VIEW_INCIDENTS_H
#define NODE_IO_VIEW_INCIDENTS_H

#include <stdbool.h>

#include "node/core/shard/incident.h"
#include "node/io/view/incident_ring.h"
#include "runtime/base/buf.h"

#define INCIDENTS_PAGE_MAX 1000u

struct incidents;

/* `life` tells this ring from those of other lives of the node; not 0. */
struct incidents *incidents_new(uint64_t life, uint64_t replica_id);
/* NULL is allowed. */
void incidents_free(struct incidents *incidents);
/* Any thread. */
void incidents_add(struct incidents *incidents, const struct incident *incident);
/* Any thread: since the start. */
uint64_t incidents_count(struct incidents *incidents, enum incident_kind kind);
/* ListNodeIncidents: appends the response's bytes. A malformed request lists from the oldest.
 * False: it tells nothing that the request does not know. */
bool incidents_append(struct incidents *incidents, struct slice request, struct buf *out);

/* `added` is called once for each incidents_arm, on the thread that adds. Set it before any adds.
 */
void incidents_set_listener(struct incidents *incidents, void (*added)(void *user), void *user);
/* Any thread: the next one that incidents_append does not see from now on is told. */
void incidents_arm(struct incidents *incidents);

#endif
