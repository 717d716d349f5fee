/*
 * peers: the links to the other nodes, one a pair (runtime/link: the higher id dials), and how
 * long each has been closed or silent. DESIGN sections 4 (early claim) and 9.
 */
#ifndef NODE_IO_CLUSTER_PEERS_H
#define NODE_IO_CLUSTER_PEERS_H

#include "node/core/replication/rep_message.h"
#include "runtime/link/call.h"

#define PEERS_MAX 256u /* Known at a time. */

struct peers;

struct peers_options {
    struct loop *loop;
    struct link_hub *hub;
    const struct log *log;
    uint64_t self;
    const char *listen;
    /* Gets every other frame, and the end of each link; of the same hub. */
    struct calls *calls;
    /* A MESSAGE frame from a replica; bytes are borrowed, and the trace that came along (zeros:
     * none). */
    void (*message)(void *user, uint64_t from, struct slice bytes, const uint8_t *trace);
    /* The same of the mergeable class; NULL: they are dropped. */
    void (*document)(void *user, uint64_t from, struct slice bytes);
    void *user;
};

NODISCARD err peers_new(const struct peers_options *options, struct peers **ret_peers);
void peers_free(struct peers *peers);
uint16_t peers_port(const struct peers *peers);

/* Learns or changes the name of a replica's node and where it is, as its record in etcd says; dials
 * it if that is this side's part. Only replicas told of here are linked with, only by processes
 * that prove the name, and while a link is alive no other takes its place (peer_choice.h). They
 * stay known when their record goes, since replication does not depend on etcd's leases; one more
 * than PEERS_MAX takes the place of the one that has been without a link for longest. */
void peers_set_address(struct peers *peers, uint64_t replica, const char *name,
                       const char *address);
/* Encodes and sends; dropped when the replica is not reachable or its queue is full. `trace`:
 * FRAME_TRACE_SIZE bytes, for the other's log; NULL: none. */
void peers_send(struct peers *peers, uint64_t replica, const struct rep_message *message,
                const uint8_t *trace);
/* The same, encoded already. */
void peers_send_encoded(struct peers *peers, uint64_t replica, struct slice bytes,
                        const uint8_t *trace);
/* A message of the mergeable class; dropped likewise, and where the replica's program knows none.
 */
void peers_send_document(struct peers *peers, uint64_t replica, struct slice bytes);
/* False: it is reachable, and its program knows no documents. */
bool peers_may_take_documents(struct peers *peers, uint64_t replica);
/* For calls to a replica, by the calls object given. NULL: not reachable now. */
struct link *peers_link(struct peers *peers, uint64_t replica);
/* How a replica seems from here, in milliseconds; zeros when it is well. One that was never met is
 * silent, not closed: a node that has just started must not take others for dead who have not come
 * to dial it yet. False: never heard of. */
bool peers_health(const struct peers *peers, uint64_t replica, uint64_t *ret_closed_ms,
                  uint64_t *ret_silent_ms);

#endif
