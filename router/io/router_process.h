/*
 * router_process: the parts of holdfast-router put together, in the order in which they depend on
 * each other, and taken apart in reverse.
 *
 *   etcd -> map_feed -> (cluster known) -> link hub, node_links, native_door -> caller
 *   public_door -> router (dispatcher) -> caller -> node_links -> nodes
 */
#ifndef ROUTER_IO_ROUTER_PROCESS_H
#define ROUTER_IO_ROUTER_PROCESS_H

#include "router/io/router_config.h"
#include "runtime/base/log.h"
#include "runtime/loop/loop.h"

struct router_process;

struct router_process_options {
    struct loop *loop;
    const struct router_config *config; /* Must outlive the process. */
    const struct log *log;
    const char *version;
    /* Called from the loop, once: drained, or something failed for good. The loop may be stopped.
     */
    void (*stopped)(void *user);
    void *user;
};

/* Listens, and begins to follow the cluster. On error it has been logged. */
NODISCARD err router_process_new(const struct router_process_options *options,
                                 struct router_process **ret_process);
/* Accepts nothing more, lets open requests end, then calls `stopped`. A second call does not wait.
 */
void router_process_drain(struct router_process *process);
/* Not from a callback of the loop. NULL is allowed. */
void router_process_free(struct router_process *process);

bool router_process_failed(const struct router_process *process);
/* Knows the whole map and has a link to some node. */
bool router_process_is_ready(const struct router_process *process);
uint16_t router_process_port(const struct router_process *process);
/* 0 until the cluster is known, or without native_listen. */
uint16_t router_process_native_port(const struct router_process *process);
uint16_t router_process_metrics_port(const struct router_process *process);

#endif
