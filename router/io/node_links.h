/*
 * node_links: one paced link to every node of the cluster, kept up as long as the node has a
 * record in etcd or the link still works: a lost lease alone (etcd may be the one in trouble) cuts
 * nothing. DESIGN section 9.
 */
#ifndef ROUTER_IO_NODE_LINKS_H
#define ROUTER_IO_NODE_LINKS_H

#include "router/rpc/call/node_port.h"
#include "runtime/cluster/cluster_record.h"

struct node_links;

struct node_links_options {
    struct link_hub *hub;
    struct calls *calls;
    const struct log *log;
    enum link_transport transport;
    /* The link to that node is ready: calls that wait for it may go. */
    void (*ready)(void *user, uint64_t replica_id);
    void *user;
};

struct node_links *node_links_new(const struct node_links_options *options);
/* Closes every link. NULL is allowed. */
void node_links_free(struct node_links *links);

/* The node's record, new or changed; NULL: its lease is gone. */
void node_links_set(struct node_links *links, uint64_t replica_id,
                    const struct node_record *record);

/* For the dispatcher. Valid as long as the links. */
struct node_port node_links_port(struct node_links *links);

uint32_t node_links_count(const struct node_links *links);
uint32_t node_links_ready(const struct node_links *links);

#endif
