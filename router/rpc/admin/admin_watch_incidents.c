/*
 * AdminService/WatchIncidents: a stream of what happens on all nodes.
 *
 *   every node: ListNodeIncidents, which the node answers when there is something -> one message
 *
 * The nodes' rings are the only buffer: a node is asked for more when its page has been sent, and
 * none is asked while the reader is behind. The ring reports what the reader missed as lost.
 */
#include <stdlib.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "idl/error_code.h"
#include "router/core/incident_cursor.h"
#include "router/core/refusal.h"
#include "router/rpc/request/handlers.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/codec/proto_codec.h"

#define WATCHES_MAX          64u
#define WATCHES_EACH_MAX     (WATCHES_MAX / 4) /* Of a key; of an address where none is asked. */
#define RETRY_AFTER_MS       1000u
#define HEARTBEAT_MS_MIN     1000u
#define HEARTBEAT_MS_MAX     60000u
#define HEARTBEAT_MS_DEFAULT 10000u
#define PAGE_SIZE            250u
/* How long a node holds its answer back, and how much longer one may take that does not come. */
#define WAIT_MS   3000u
#define MARGIN_MS ROUTER_STATUS_MS_MAX
/* Under a storm of incidents a node is asked so often: each answer has many then. */
#define PACE_MS  20u
#define RETRY_MS 250u /* A node that did not answer; also how often new nodes are looked for. */

struct watched_node {
    struct incident_watch *watch;
    uint64_t replica_id;
    uint64_t call;      /* 0: none open. */
    uint64_t ask_at_ms; /* When none is open. */
    bool silent;        /* Its last call was not answered. */
    bool listed;        /* For one look at the map. */
};

/* In the request's arena. */
struct incident_watch {
    struct request *request;
    struct incident_watch *next, *previous;
    struct incident_cursor cursor;
    struct watched_node *nodes[CLUSTER_NODES_MAX];
    uint32_t node_count;
    uint32_t heartbeat_ms;
    uint64_t heartbeat_at_ms;
    struct loop_timer timer;
    struct arena arena; /* For one message or question. */
    bool blocked;       /* The reader is behind. */
};

static uint64_t now_ms(const struct incident_watch *watch)
{
    return loop_now_ms(watch->request->router->options.loop);
}

/* ---- the end ---- */

static void node_forget(struct incident_watch *watch, uint32_t place)
{
    const struct node_port *port = &watch->request->router->options.port;
    struct watched_node *node = watch->nodes[place];

    if (node->call != 0)
        port->cancel(port->context, node->call);
    watch->nodes[place] = watch->nodes[--watch->node_count];
    free(node);
}

static void watch_end(struct incident_watch *watch, Holdfast__V1__ErrorCode code,
                      const char *message)
{
    struct request *request = watch->request;
    struct router *router = request->router;

    while (watch->node_count > 0)
        node_forget(watch, watch->node_count - 1);
    loop_timer_stop(&watch->timer);
    arena_deinit(&watch->arena);
    if (watch->next != NULL)
        watch->next->previous = watch->previous;
    if (watch->previous != NULL)
        watch->previous->next = watch->next;
    else
        router->watches = watch->next;
    router->watch_count--;
    request_fail_text(request, code, message);
}

static void watch_cancel(struct request *request)
{
    watch_end(request->state, CODE(CANCELED), "the caller has gone");
}

void admin_watch_incidents_end_all(struct router *router)
{
    while (router->watches != NULL)
        watch_end(router->watches, CODE(UNAVAILABLE),
                  "the router stops; go on elsewhere with the last cursor");
}

/* ---- messages ---- */

static void schedule(struct incident_watch *watch, uint64_t at_ms)
{
    uint64_t now = now_ms(watch);

    loop_timer_start(&watch->timer, at_ms > now ? at_ms - now : 0);
}

/* Adds who is silent and where the reader is now. */
static void send_message(struct incident_watch *watch,
                         Holdfast__V1__WatchIncidentsResponse *message)
{
    message->unreachable =
        arena_alloc(&watch->arena, sizeof *message->unreachable * (watch->node_count + 1u));
    for (uint32_t i = 0; i < watch->node_count; i++) {
        if (watch->nodes[i]->silent)
            message->unreachable[message->n_unreachable++] = watch->nodes[i]->replica_id;
    }
    message->next_cursor = incident_cursor_print(&watch->cursor, &watch->arena);
    watch->blocked = !request_stream_send(watch->request, &message->base);
    watch->heartbeat_at_ms = now_ms(watch) + watch->heartbeat_ms;
    arena_reset(&watch->arena);
}

static void send_heartbeat(struct incident_watch *watch)
{
    Holdfast__V1__WatchIncidentsResponse message = HOLDFAST__V1__WATCH_INCIDENTS_RESPONSE__INIT;

    send_message(watch, &message);
}

/* `news`: it was silent before. */
static void send_page(struct watched_node *node,
                      const Holdfast__Internal__V1__ListNodeIncidentsResponse *page, bool news)
{
    struct incident_watch *watch = node->watch;
    Holdfast__V1__WatchIncidentsResponse message = HOLDFAST__V1__WATCH_INCIDENTS_RESPONSE__INIT;
    Holdfast__V1__IncidentGap gap = HOLDFAST__V1__INCIDENT_GAP__INIT;
    Holdfast__V1__IncidentGap *gaps[] = { &gap };
    bool forgotten = incident_cursor_advance(
        &watch->cursor, &(struct incident_place){ node->replica_id, page->life, page->last });

    message.incidents = page->incidents;
    message.n_incidents = page->n_incidents;
    gap.replica_id = node->replica_id;
    gap.lost = page->lost;
    message.gaps = gaps;
    message.n_gaps = page->lost > 0 || forgotten;
    if (message.n_incidents > 0 || message.n_gaps > 0 || news)
        send_message(watch, &message);
}

/* ---- questions ---- */

static void node_fell_silent(struct watched_node *node)
{
    bool news = !node->silent;

    node->silent = true;
    node->ask_at_ms = now_ms(node->watch) + RETRY_MS;
    if (news && !node->watch->blocked)
        send_heartbeat(node->watch);
}

static void node_answered(void *user, err result, const struct frame *response)
{
    struct watched_node *node = user;
    struct incident_watch *watch = node->watch;
    struct codec_scope scope = { .arena = &watch->arena };
    ProtobufCMessage *message = NULL;

    node->call = 0;
    if (result == ERR_OK && response->status == WIRE_OK &&
        proto_decode(&holdfast__internal__v1__list_node_incidents_response__descriptor,
                     response->body, &scope, &message) != ERR_OK)
        message = NULL;
    const Holdfast__Internal__V1__ListNodeIncidentsResponse *page = (const void *)message;
    /* A node that is still starting has no ring yet. */
    if (page == NULL || page->life == 0) {
        node_fell_silent(node);
    } else {
        bool was_silent = node->silent;
        node->silent = false;
        node->ask_at_ms = now_ms(watch) + PACE_MS;
        /* Without room the answer is let go: it is asked for again, from the same place. */
        if (!watch->blocked)
            send_page(node, page, was_silent);
    }
    arena_reset(&watch->arena);
    schedule(watch, now_ms(watch) + PACE_MS);
}

static void node_ask(struct watched_node *node)
{
    struct incident_watch *watch = node->watch;
    struct request *request = watch->request;
    const struct node_port *port = &request->router->options.port;
    const struct incident_place *place = incident_cursor_find(&watch->cursor, node->replica_id);
    Holdfast__Internal__V1__ListNodeIncidentsRequest message =
        HOLDFAST__INTERNAL__V1__LIST_NODE_INCIDENTS_REQUEST__INIT;
    uint8_t body[64];

    message.page_size = PAGE_SIZE;
    message.wait_ms = WAIT_MS;
    if (place != NULL) {
        message.life = place->life;
        message.after = place->after;
    }
    CHECK(protobuf_c_message_get_packed_size(&message.base) <= sizeof body);
    const struct call_request call = {
        .method = METHOD_LIST_NODE_INCIDENTS,
        .priority = (uint8_t)request->priority,
        .deadline_ms = WAIT_MS + MARGIN_MS,
        .trace = request->trace.trace_id,
        .body = { body, protobuf_c_message_pack(&message.base, body) },
        .done = node_answered,
        .user = node,
    };
    if (port->start(port->context, node->replica_id, &call, &node->call) != ERR_OK) {
        node->call = 0;
        node_fell_silent(node);
    }
}

/* Follows the map: who is there now. */
static void nodes_update(struct incident_watch *watch)
{
    uint32_t count;
    const struct node_record *records =
        shard_map_nodes(watch->request->router->options.map, &count);

    for (uint32_t i = 0; i < watch->node_count; i++)
        watch->nodes[i]->listed = false;
    for (uint32_t r = 0; r < count; r++) {
        uint32_t i = 0;
        while (i < watch->node_count && watch->nodes[i]->replica_id != records[r].replica_id)
            i++;
        if (i == watch->node_count) {
            if (i == CLUSTER_NODES_MAX)
                continue;
            watch->nodes[i] = mem_zalloc(sizeof **watch->nodes);
            watch->nodes[i]->watch = watch;
            watch->nodes[i]->replica_id = records[r].replica_id;
            watch->node_count++;
        }
        watch->nodes[i]->listed = true;
    }
    for (uint32_t i = watch->node_count; i > 0; i--) {
        if (!watch->nodes[i - 1]->listed)
            node_forget(watch, i - 1);
    }
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void on_timer(void *user)
{
    struct incident_watch *watch = user;
    uint64_t now = now_ms(watch);
    uint64_t next_ms = now + RETRY_MS;

    if (now >= watch->request->deadline_ms) {
        watch_end(watch, CODE(DEADLINE_EXCEEDED), "the stream's deadline has passed");
        return;
    }
    if (!request_is_welcome(watch->request)) {
        watch_end(watch, CODE(UNAUTHENTICATED), "the API key is not valid any more");
        return;
    }
    nodes_update(watch);
    for (uint32_t i = 0; i < watch->node_count && !watch->blocked; i++) {
        struct watched_node *node = watch->nodes[i];
        if (node->call == 0 && now >= node->ask_at_ms)
            node_ask(node);
        if (node->call == 0)
            next_ms = min_u64(next_ms, node->ask_at_ms);
    }
    if (!watch->blocked && now >= watch->heartbeat_at_ms)
        send_heartbeat(watch);
    next_ms = min_u64(next_ms, watch->request->deadline_ms);
    schedule(watch, next_ms);
}

/* ---- the beginning ---- */

static void watch_writable(struct request *request)
{
    struct incident_watch *watch = request->state;

    watch->blocked = false;
    schedule(watch, 0);
}

static uint32_t watches_of(const struct router *router, uint64_t caller)
{
    uint32_t count = 0;

    for (const struct incident_watch *watch = router->watches; watch != NULL; watch = watch->next)
        count += watch->request->caller == caller;
    return count;
}

static bool refused(struct request *request, const Holdfast__V1__WatchIncidentsRequest *message)
{
    Holdfast__V1__ErrorDetail detail;

    if (message->heartbeat_ms != 0 &&
        (message->heartbeat_ms < HEARTBEAT_MS_MIN || message->heartbeat_ms > HEARTBEAT_MS_MAX)) {
        char *value = arena_printf(request->arena, "%u", message->heartbeat_ms);
        refusal_make_field(request->arena, &detail,
                           &(struct refusal_field){ "heartbeat_ms", "1000 to 60000, or 0",
                                                    slice_from_text(value) },
                           "heartbeats come too often or too seldom");
    } else if (request->router->watch_count >= WATCHES_MAX) {
        refusal_make(request->arena, &detail, CODE(THROTTLED),
                     "%u streams of incidents are open already", WATCHES_MAX);
        detail.retry_after_ms = RETRY_AFTER_MS;
    } else if (request->caller != 0 &&
               watches_of(request->router, request->caller) >= WATCHES_EACH_MAX) {
        refusal_make(request->arena, &detail, CODE(THROTTLED),
                     "this API key, or this address where no key is asked for, has %u streams of "
                     "incidents open already",
                     WATCHES_EACH_MAX);
        detail.retry_after_ms = RETRY_AFTER_MS;
    } else if (request->router->streams_ended) {
        refusal_make(request->arena, &detail, CODE(UNAVAILABLE), "the router is stopping");
    } else {
        return false;
    }
    request_fail(request, &detail);
    return true;
}

void admin_watch_incidents_handle(struct request *request)
{
    const Holdfast__V1__WatchIncidentsRequest *message = (const void *)request->message;
    struct router *router = request->router;
    Holdfast__V1__ErrorDetail detail;

    if (refused(request, message))
        return;
    struct incident_watch *watch = arena_zalloc(request->arena, sizeof *watch);
    if (incident_cursor_parse(slice_from_text(message->cursor), request->arena, &watch->cursor,
                              &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    watch->request = request;
    watch->heartbeat_ms = message->heartbeat_ms > 0 ? message->heartbeat_ms : HEARTBEAT_MS_DEFAULT;
    watch->next = router->watches;
    if (watch->next != NULL)
        watch->next->previous = watch;
    router->watches = watch;
    router->watch_count++;
    request->state = watch;
    request->cancel = watch_cancel;
    request->writable = watch_writable;
    loop_timer_init(&watch->timer, router->options.loop, on_timer, watch);
    send_heartbeat(watch); /* At once: the caller sees that it is listened to. */
    schedule(watch, 0);
}
