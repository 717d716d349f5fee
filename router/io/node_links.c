#include "router/io/node_links.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define PLACES_MAX (CLUSTER_NODES_MAX * 4u) /* A power of two, never more than half full. */
#define LINKS_MAX  (CLUSTER_NODES_MAX * 2u)

struct node_link {
    struct node_links *links;
    uint64_t replica_id;
    struct link *link; /* NULL: not dialled. */
    bool ready;
    bool takes_callers; /* While ready. */
    bool gone;          /* Its record is gone: forget it when the link is lost. */
    char address[LINK_ADDRESS_SIZE];
    char name[sizeof((struct node_record *)0)->name];
};

struct node_links {
    struct node_links_options options;
    struct node_link *places[PLACES_MAX]; /* Open addressing by replica id. */
    uint32_t count;
    uint32_t ready_count;
};

static uint32_t place_of(uint64_t replica_id)
{
    return (uint32_t)(replica_id * 0x9e3779b97f4a7c15u >> 40) % PLACES_MAX;
}

static struct node_link **find_place(struct node_links *links, uint64_t replica_id)
{
    uint32_t at = place_of(replica_id);

    while (links->places[at] != NULL && links->places[at]->replica_id != replica_id)
        at = (at + 1) % PLACES_MAX;
    return &links->places[at];
}

/* Later entries of the same run may have to move up into the gap. */
static void remove_place(struct node_links *links, uint64_t replica_id)
{
    struct node_link **at = find_place(links, replica_id);
    uint32_t next = (uint32_t)(at - links->places);

    CHECK(*at != NULL);
    *at = NULL;
    for (next = (next + 1) % PLACES_MAX; links->places[next] != NULL;
         next = (next + 1) % PLACES_MAX) {
        struct node_link *moved = links->places[next];
        links->places[next] = NULL;
        *find_place(links, moved->replica_id) = moved;
    }
}

static void set_ready(struct node_link *node, bool ready)
{
    if (node->ready == ready)
        return;
    node->ready = ready;
    if (ready)
        node->links->ready_count++;
    else
        node->links->ready_count--;
}

static void forget(struct node_link *node)
{
    struct node_links *links = node->links;

    CHECK(!node->ready && node->link == NULL);
    remove_place(links, node->replica_id);
    links->count--;
    free(node);
}

static void on_ready(void *user, struct link *link, const struct hello *peer)
{
    struct node_link *node = user;
    struct node_links *links = node->links;

    node->takes_callers = (peer->abilities & HELLO_TAKES_CALLERS) != 0;
    log_event(links->options.log, LOG_INFO, "node.link_ready", LOG_N("replica", node->replica_id),
              LOG_S("address", link_address(link)));
    set_ready(node, true);
    links->options.ready(links->options.user, node->replica_id);
}

static void on_frame(void *user, struct link *link, const struct frame *frame)
{
    struct node_link *node = user;

    (void)calls_frame(node->links->options.calls, link, frame);
}

static void on_closed(void *user, struct link *link, enum link_close_reason reason,
                      const char *text)
{
    struct node_link *node = user;
    struct node_links *links = node->links;

    if (node->ready && reason != LINK_CLOSED_LOCAL)
        log_event(links->options.log, LOG_WARN, "node.link_lost",
                  LOG_N("replica", node->replica_id), LOG_S("why", text));
    set_ready(node, false);
    calls_closed(links->options.calls, link);
    if (node->gone && reason != LINK_CLOSED_LOCAL) {
        node->link = NULL;
        link_close(link);
        forget(node);
    }
}

static void drop(struct node_link *node)
{
    struct link *link = node->link;

    if (link != NULL)
        link_close(link); /* Calls on_closed if it was ready. */
    node->link = NULL;
    set_ready(node, false);
}

static void dial(struct node_link *node, const struct node_record *record)
{
    struct node_links *links = node->links;
    struct link_dial_options options = {
        .transport = links->options.transport,
        .address = node->address,
        .expect = { ROLE_NODE, node->replica_id, node->name },
        .paced = true,
        .busy = true,
        .handlers = { .ready = on_ready, .frame = on_frame, .closed = on_closed, .user = node },
    };
    err e;

    drop(node);
    CHECK(strlen(record->address) < sizeof node->address);
    memcpy(node->address, record->address, strlen(record->address) + 1);
    memcpy(node->name, record->name, sizeof node->name);
    e = link_dial(links->options.hub, &options, &node->link);
    if (e != ERR_OK) {
        node->link = NULL;
        log_event(links->options.log, LOG_ERROR, "node.cannot_dial",
                  LOG_S("address", node->address), LOG_S("error", err_name(e)));
    }
}

struct node_links *node_links_new(const struct node_links_options *options)
{
    struct node_links *links = mem_zalloc(sizeof *links);

    links->options = *options;
    return links;
}

void node_links_free(struct node_links *links)
{
    if (links == NULL)
        return;
    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        if (links->places[i] == NULL)
            continue;
        drop(links->places[i]);
        free(links->places[i]);
    }
    free(links);
}

void node_links_set(struct node_links *links, uint64_t replica_id, const struct node_record *record)
{
    struct node_link **place = find_place(links, replica_id);
    struct node_link *node = *place;

    if (record == NULL) {
        if (node == NULL)
            return;
        node->gone = true;
        if (!node->ready) {
            drop(node);
            forget(node);
        }
        return;
    }
    if (node == NULL) {
        if (links->count >= LINKS_MAX)
            return;
        node = mem_zalloc(sizeof *node);
        node->links = links;
        node->replica_id = replica_id;
        *place = node;
        links->count++;
    }
    node->gone = false;
    if (node->link == NULL || strcmp(node->address, record->address) != 0 ||
        strcmp(node->name, record->name) != 0)
        dial(node, record);
}

static err start_call(void *context, uint64_t replica_id, const struct call_request *request,
                      uint64_t *ret_call)
{
    struct node_links *links = context;
    const struct node_link *node = *find_place(links, replica_id);

    if (node == NULL || !node->ready)
        return ERR_UNAVAILABLE;
    return call_start(links->options.calls, node->link, request, ret_call);
}

static void cancel_call(void *context, uint64_t call)
{
    struct node_links *links = context;

    (void)call_cancel(links->options.calls, call);
}

static bool takes_callers(void *context, uint64_t replica_id)
{
    const struct node_link *node = *find_place(context, replica_id);

    return node != NULL && node->ready && node->takes_callers;
}

static bool reaches(void *context, uint64_t replica_id)
{
    const struct node_link *node = *find_place(context, replica_id);

    return node != NULL && node->ready;
}

struct node_port node_links_port(struct node_links *links)
{
    return (struct node_port){ .start = start_call,
                               .cancel = cancel_call,
                               .takes_callers = takes_callers,
                               .reaches = reaches,
                               .context = links };
}

uint32_t node_links_count(const struct node_links *links)
{
    return links->count;
}

uint32_t node_links_ready(const struct node_links *links)
{
    return links->ready_count;
}
