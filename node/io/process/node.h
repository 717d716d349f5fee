/*
 * node: one holdfast-node process, assembled: what exists, in which order it starts and stops.
 * main.c runs it. Every part is made here and nowhere else.
 */
#ifndef NODE_IO_PROCESS_NODE_H
#define NODE_IO_PROCESS_NODE_H

#include "node/io/process/node_config.h"
#include "runtime/base/log.h"
#include "runtime/loop/loop.h"

struct node;

struct node_options {
    const struct node_config *config;
    const char *version;
    const struct log *log;
    struct loop *loop;
    const struct handler_table *handlers;
};

/* Starts what needs no cluster: metrics, TLS, etcd. The rest starts on the loop, once the
 * cluster's record is known. Errors are logged. */
NODISCARD err node_new(const struct node_options *options, struct node **ret_node);
/* In good order: gives the lease back, checkpoints, closes. Runs the loop meanwhile. */
void node_free(struct node *node);
/* True when it stopped its loop because it cannot go on (the reason is logged). */
bool node_failed(const struct node *node);

#endif
