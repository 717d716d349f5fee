/*
 * nodes: the links between this coordinator and the nodes. Dials every live node for ExpireServer
 * and ApplyPolicy; listens for their ReportOwner, and for routers who ask how it is. Turns answers
 * and reports into the core's events and decides nothing.
 */
#ifndef COORDINATOR_IO_NODES_H
#define COORDINATOR_IO_NODES_H

#include "coordinator/core/coord.h"
#include "runtime/link/call.h"

struct nodes;

struct nodes_options {
    struct loop *loop; /* All borrowed. */
    const struct log *log;
    struct coord *core; /* Asked who lives where, and whether reports are accepted. */
    const char *name;
    const char *cluster_id;
    const char *cluster; /* Its name. */
    enum link_names names;
    struct metrics *metrics;
    const char *listen;
    struct tls_config *tls_client; /* Both NULL: plain TCP. */
    struct tls_config *tls_server;
    struct link_hub_options limits; /* Of LINK_HUB_CONFIG alone. */
    /* now_ms is for the receiver to fill. Never called from within a call into nodes. */
    void (*event)(void *user, struct coord_event *event);
    /* A COORD_ASK among them: nodes_answer follows, once. */
    /* Appends a GetCoordinatorStatusResponse, for a router that asks. */
    void (*status)(void *user, struct buf *out);
    void *user;
};

/* ERR_INVALID, ERR_EXISTS, ERR_IO: as link_listen; logged. */
NODISCARD err nodes_new(const struct nodes_options *options, struct nodes **ret_nodes);
/* Runs the loop until all links are closed. NULL is allowed. */
void nodes_free(struct nodes *nodes);

/* New connections use these from now on. */
void nodes_set_tls(struct nodes *nodes, struct tls_config *client, struct tls_config *server);

/* Of its links (metrics_turnstile.h). */
const struct turnstile_stats *nodes_turnstile(const struct nodes *nodes);
uint16_t nodes_port(const struct nodes *nodes);
/* Dials new nodes and lets go of those whose record is gone or names another address. Cheap. */
void nodes_follow(struct nodes *nodes);
/* To a router's question. One whose caller has gone is answered in vain. */
void nodes_answer(struct nodes *nodes, const struct coord_answer *answer);
/* COORD_CALL_DONE follows, always. The body is copied. */
void nodes_call(struct nodes *nodes, const struct coord_call *call);

#endif
