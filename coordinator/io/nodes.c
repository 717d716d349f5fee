#include "coordinator/io/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/definition_state.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/cluster/link_right.h"

/* A live node as dialled. */
struct peer {
    uint64_t replica_id;
    char address[LINK_ADDRESS_SIZE];
    char name[sizeof((struct node_record *)0)->name];
    struct link *link;
};

/* A call on its way, or one that could not be sent and waits to be told so. */
struct pending {
    struct nodes *nodes;
    struct pending *next;
    struct pending **at;
    uint64_t call;
    bool unsent;
};

#define QUESTIONS_MAX (DEFINITION_WAITS_MAX + 1u) /* All but one wait in the core. */

/* A router's question that is not answered. */
struct question {
    uint64_t number; /* 0: free. */
    struct call_reply reply;
};

struct nodes {
    struct nodes_options options;
    struct link_hub *hub;
    struct calls *calls;
    struct link_listener *listener;
    struct peer peers[CLUSTER_NODES_MAX]; /* By rising replica id. */
    uint32_t peer_count;
    struct pending *pendings;
    struct loop_hook unsent;
    struct question questions[QUESTIONS_MAX];
    uint64_t question;
};

static void tell(struct nodes *nodes, struct coord_event event)
{
    nodes->options.event(nodes->options.user, &event);
}

/* ---- links ---- */
static void on_ready(void *user, struct link *link, const struct hello *peer)
{
    struct nodes *nodes = user;

    log_event(nodes->options.log, LOG_DEBUG, "link.ready", LOG_S("peer", peer->name),
              LOG_S("role", identity_role_name(peer->role)), LOG_S("address", link_address(link)));
}

static void on_frame(void *user, struct link *link, const struct frame *frame)
{
    struct nodes *nodes = user;

    (void)calls_frame(nodes->calls, link, frame);
}

static void on_closed(void *user, struct link *link, enum link_close_reason reason,
                      const char *text)
{
    struct nodes *nodes = user;

    (void)reason;
    log_event(nodes->options.log, LOG_DEBUG, "link.closed", LOG_S("address", link_address(link)),
              LOG_S("reason", text));
    calls_closed(nodes->calls, link);
}

static struct link_handlers handlers(struct nodes *nodes)
{
    return (struct link_handlers){
        .ready = on_ready, .frame = on_frame, .closed = on_closed, .user = nodes
    };
}

static void peer_dial(struct nodes *nodes, struct peer *peer, const struct node_record *record)
{
    peer->replica_id = record->replica_id;
    snprintf(peer->address, sizeof peer->address, "%s", record->address);
    snprintf(peer->name, sizeof peer->name, "%s", record->name);
    peer->link = NULL;
    struct link_dial_options dial = {
        .transport = LINK_NNG,
        .address = peer->address,
        .expect = { ROLE_NODE, peer->replica_id, peer->name },
        .handlers = handlers(nodes),
    };

    if (link_dial(nodes->hub, &dial, &peer->link) != ERR_OK)
        log_event(nodes->options.log, LOG_ERROR, "coordinator.bad_node_address",
                  LOG_N("node", peer->replica_id), LOG_S("address", peer->address));
}

static void peer_close(struct peer *peer)
{
    struct link *link = peer->link;

    peer->link = NULL; /* Calls that end now may lead to new ones. */
    if (link != NULL)
        link_close(link);
}

/* Both lists rise by replica id. */
void nodes_follow(struct nodes *nodes)
{
    uint32_t count = coord_node_count(nodes->options.core);
    struct peer peers[CLUSTER_NODES_MAX];
    uint32_t old = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct node_record *record = coord_node(nodes->options.core, i);

        while (old < nodes->peer_count && nodes->peers[old].replica_id < record->replica_id)
            peer_close(&nodes->peers[old++]);
        bool known = old < nodes->peer_count && nodes->peers[old].replica_id == record->replica_id;

        if (known && strcmp(nodes->peers[old].address, record->address) == 0 &&
            strcmp(nodes->peers[old].name, record->name) == 0) {
            peers[i] = nodes->peers[old++];
            continue;
        }
        if (known)
            peer_close(&nodes->peers[old++]);
        peer_dial(nodes, &peers[i], record);
    }
    while (old < nodes->peer_count)
        peer_close(&nodes->peers[old++]);
    memcpy(nodes->peers, peers, count * sizeof peers[0]);
    nodes->peer_count = count;
}

static struct link *find_link(struct nodes *nodes, uint64_t replica_id)
{
    for (uint32_t i = 0; i < nodes->peer_count; i++) {
        struct link *link = nodes->peers[i].link;

        if (nodes->peers[i].replica_id != replica_id)
            continue;
        return link != NULL && link_is_ready(link) ? link : NULL; /* That node: link_expect. */
    }
    return NULL;
}

/* ---- calls to nodes ---- */
static void pending_free(struct pending *pending)
{
    *pending->at = pending->next;
    if (pending->next != NULL)
        pending->next->at = pending->at;
    free(pending);
}

static struct pending *pending_new(struct nodes *nodes, uint64_t call)
{
    struct pending *pending = mem_zalloc(sizeof *pending);

    pending->nodes = nodes;
    pending->call = call;
    pending->next = nodes->pendings;
    pending->at = &nodes->pendings;
    if (pending->next != NULL)
        pending->next->at = &pending->next;
    nodes->pendings = pending;
    return pending;
}

static void on_done(void *user, err result, const struct frame *response)
{
    struct pending *pending = user;
    struct nodes *nodes = pending->nodes;
    struct coord_event event = { .type = COORD_CALL_DONE,
                                 .call = pending->call,
                                 .status = WIRE_UNKNOWN };

    if (result == ERR_OK)
        event.body = response->body;
    if (result == ERR_OK && response->status < WIRE_STATUS_END)
        event.status = (enum wire_status)response->status;
    else if (result != ERR_OK && err_retry(result) != RETRY_UNKNOWN_OUTCOME)
        event.status = WIRE_UNAVAILABLE;
    pending_free(pending);
    tell(nodes, event);
}

static void on_unsent(void *user)
{
    struct nodes *nodes = user;
    struct pending *next;

    for (struct pending *pending = nodes->pendings; pending != NULL; pending = next) {
        next = pending->next;
        if (pending->unsent)
            on_done(pending, ERR_UNAVAILABLE, NULL);
    }
}

void nodes_call(struct nodes *nodes, const struct coord_call *call)
{
    struct pending *pending = pending_new(nodes, call->call);
    struct link *link = find_link(nodes, call->node);
    struct call_request request = {
        .method = call->method,
        .deadline_ms = call->timeout_ms,
        .body = call->body,
        .done = on_done,
        .user = pending,
    };

    if (link == NULL || call_start(nodes->calls, link, &request, NULL) != ERR_OK) {
        pending->unsent = true;
        loop_hook_arm(&nodes->unsent);
    }
}

/* ---- reports from nodes ---- */
static void answer(struct nodes *nodes, const struct call_reply *reply, uint16_t status,
                   struct slice body)
{
    err e = call_answer(nodes->calls, reply, status, body);

    /* Nothing was sent: a link that is not read, or too much to say. The request must be answered
     * all the same, since it stays open until then. */
    if (e == ERR_FULL || e == ERR_TOO_LARGE)
        e = call_answer(nodes->calls, reply, WIRE_UNKNOWN, (struct slice){ NULL, 0 });
    if (e != ERR_OK)
        log_event(nodes->options.log, LOG_DEBUG, "report.not_answered",
                  LOG_S("error", err_name(e)));
}

/* A node reports for itself alone: its link's replica, under the name that is registered for it. */
static bool is_reporter(const struct nodes *nodes, const struct hello *peer, uint64_t reporter)
{
    for (uint32_t i = 0; i < coord_node_count(nodes->options.core); i++) {
        const struct node_record *record = coord_node(nodes->options.core, i);

        if (record->replica_id == reporter)
            return peer->replica_id == reporter && strcmp(record->name, peer->name) == 0;
    }
    return peer->replica_id == reporter;
}

static void take_report(struct nodes *nodes, const struct hello *peer, const struct frame *frame,
                        const struct call_reply *reply)
{
    Holdfast__Internal__V1__ReportOwnerRequest *report =
        holdfast__internal__v1__report_owner_request__unpack(NULL, frame->body.size,
                                                             frame->body.data);
    Holdfast__Internal__V1__ReportOwnerResponse response =
        HOLDFAST__INTERNAL__V1__REPORT_OWNER_RESPONSE__INIT;
    uint8_t bytes[16];

    if (report == NULL || !is_reporter(nodes, peer, report->reporter)) {
        if (report != NULL)
            holdfast__internal__v1__report_owner_request__free_unpacked(report, NULL);
        answer(nodes, reply, WIRE_REFUSED, (struct slice){ NULL, 0 });
        return;
    }
    response.accepted = coord_is_active(nodes->options.core);
    answer(nodes, reply, WIRE_OK,
           (struct slice){ bytes,
                           holdfast__internal__v1__report_owner_response__pack(&response, bytes) });
    tell(nodes, (struct coord_event){ .type = COORD_REPORT, .report = report });
    holdfast__internal__v1__report_owner_request__free_unpacked(report, NULL);
}

static void tell_status(struct nodes *nodes, const struct call_reply *reply)
{
    struct buf body = { 0 };

    nodes->options.status(nodes->options.user, &body);
    answer(nodes, reply, WIRE_OK, buf_slice(&body));
    buf_deinit(&body);
}

/* ---- questions of routers ---- */
static void take_question(struct nodes *nodes, const struct frame *frame,
                          const struct call_reply *reply)
{
    for (uint32_t i = 0; i < QUESTIONS_MAX; i++) {
        struct question *question = &nodes->questions[i];

        if (question->number != 0)
            continue;
        *question = (struct question){ ++nodes->question, *reply };
        question->reply.is_outcome = frame->method == METHOD_CHANGE_DEFINITION;
        tell(nodes, (struct coord_event){ .type = COORD_ASK,
                                          .call = question->number,
                                          .method = frame->method,
                                          .body = frame->body });
        return;
    }
    answer(nodes, reply, WIRE_UNAVAILABLE, (struct slice){ NULL, 0 });
}

void nodes_answer(struct nodes *nodes, const struct coord_answer *given)
{
    for (uint32_t i = 0; i < QUESTIONS_MAX; i++) {
        struct question *question = &nodes->questions[i];

        if (question->number != given->call)
            continue;
        answer(nodes, &question->reply, (uint16_t)given->status, given->body);
        question->number = 0;
        return;
    }
    CHECK(false); /* The core answers each question once. */
}

static void on_request(void *user, struct link *link, const struct frame *frame,
                       const struct call_reply *reply)
{
    struct nodes *nodes = user;
    const struct hello *peer = link_peer_hello(link);

    if (frame->method == METHOD_REPORT_OWNER && peer != NULL)
        take_report(nodes, peer, frame, reply);
    else if (frame->method == METHOD_GET_COORDINATOR_STATUS)
        tell_status(nodes, reply);
    else if (frame->method == METHOD_CHANGE_DEFINITION || frame->method == METHOD_FIND_DEFINITIONS)
        take_question(nodes, frame, reply);
    else
        answer(nodes, reply, FRAME_STATUS_NO_METHOD, (struct slice){ NULL, 0 });
}

/* ---- life ---- */
static err open_links(struct nodes *nodes)
{
    struct link_hub_options hub = nodes->options.limits;

    hub.loop = nodes->options.loop;
    hub.log = nodes->options.log;
    hub.self.role = ROLE_COORDINATOR;
    hub.tls_client = nodes->options.tls_client;
    hub.tls_server = nodes->options.tls_server;
    hub.cluster = nodes->options.cluster;
    hub.names = nodes->options.names;
    hub.admits = link_right;
    hub.metrics = nodes->options.metrics;

    snprintf(hub.self.cluster_id, sizeof hub.self.cluster_id, "%s", nodes->options.cluster_id);
    snprintf(hub.self.name, sizeof hub.self.name, "%s", nodes->options.name);
    err e = link_hub_new(&hub, &nodes->hub);

    if (e == ERR_OK)
        e = calls_new(&(struct calls_options){ .hub = nodes->hub,
                                               .loop = nodes->options.loop,
                                               .request = on_request,
                                               .user = nodes },
                      &nodes->calls);
    if (e == ERR_OK)
        e = link_listen(nodes->hub,
                        &(struct link_listen_options){ .transport = LINK_NNG,
                                                       .address = nodes->options.listen,
                                                       .roles = 1u << ROLE_NODE | 1u << ROLE_ROUTER,
                                                       .handlers = handlers(nodes) },
                        &nodes->listener);
    return e;
}

err nodes_new(const struct nodes_options *options, struct nodes **ret_nodes)
{
    struct nodes *nodes = mem_zalloc(sizeof *nodes);

    nodes->options = *options;
    loop_hook_init(&nodes->unsent, options->loop, on_unsent, nodes);
    err e = open_links(nodes);

    if (e != ERR_OK) {
        nodes_free(nodes);
        return e;
    }
    *ret_nodes = nodes;
    return ERR_OK;
}

const struct turnstile_stats *nodes_turnstile(const struct nodes *nodes)
{
    return link_hub_turnstile(nodes->hub);
}

void nodes_free(struct nodes *nodes)
{
    if (nodes == NULL)
        return;
    loop_hook_disarm(&nodes->unsent);
    link_hub_free(nodes->hub);
    calls_free(nodes->calls);
    while (nodes->pendings != NULL)
        pending_free(nodes->pendings);
    free(nodes);
}

void nodes_set_tls(struct nodes *nodes, struct tls_config *client, struct tls_config *server)
{
    link_hub_set_tls(nodes->hub, client, server);
}

uint16_t nodes_port(const struct nodes *nodes)
{
    return link_listener_port(nodes->listener);
}
