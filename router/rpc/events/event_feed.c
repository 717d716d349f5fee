#include "router/rpc/events/event_feed.h"

#include <stdlib.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/codec/proto_codec.h"

/* How long a node holds its answer back, and how much longer one may take that does not come. */
#define WAIT_MS   10000u
#define MARGIN_MS ROUTER_STATUS_MS_MAX
#define PACE_MS   5u    /* Under load a node is asked so often: each answer has many shards then. */
#define RETRY_MS  250u  /* A node that did not answer. */
#define LOOK_MS   1000u /* How often new nodes are looked for. */

struct feed_node {
    struct event_feed *feed;
    uint64_t replica_id;
    uint64_t call;      /* 0: none open. */
    uint64_t ask_at_ms; /* When none is open. */
    uint64_t life, after;
    bool listed; /* For one look at the map. */
};

struct event_feed {
    const struct router *router;
    void (*news)(void *user, uint32_t shard); /* NULL: stopped. */
    void *user;
    struct feed_node *nodes[CLUSTER_NODES_MAX];
    uint32_t node_count;
    struct loop_timer timer;
    struct arena arena; /* For one answer. */
};

static uint64_t now_ms(const struct event_feed *feed)
{
    return loop_now_ms(feed->router->options.loop);
}

static void node_forget(struct event_feed *feed, uint32_t place)
{
    const struct node_port *port = &feed->router->options.port;
    struct feed_node *node = feed->nodes[place];

    if (node->call != 0)
        port->cancel(port->context, node->call);
    feed->nodes[place] = feed->nodes[--feed->node_count];
    free(node);
}

/* ---- questions ---- */
static void node_fell_silent(struct feed_node *node)
{
    node->life = 0; /* What it tells meanwhile is told again. */
    node->after = 0;
    node->ask_at_ms = now_ms(node->feed) + RETRY_MS;
}

static void tell(struct event_feed *feed, const Holdfast__Internal__V1__ListEventNewsResponse *news)
{
    uint32_t shards = shard_map_shard_count(feed->router->options.map);

    for (size_t i = 0; i < news->n_shards && feed->news != NULL; i++) {
        if (news->shards[i] < shards)
            feed->news(feed->user, news->shards[i]);
    }
}

static void node_answered(void *user, err result, const struct frame *response)
{
    struct feed_node *node = user;
    struct event_feed *feed = node->feed;
    struct codec_scope scope = { .arena = &feed->arena };
    ProtobufCMessage *message = NULL;

    node->call = 0;
    loop_timer_start(&feed->timer, PACE_MS);
    if (result == ERR_OK && response->status == WIRE_OK &&
        proto_decode(&holdfast__internal__v1__list_event_news_response__descriptor, response->body,
                     &scope, &message) != ERR_OK)
        message = NULL;
    const Holdfast__Internal__V1__ListEventNewsResponse *news = (const void *)message;
    if (news == NULL) {
        node_fell_silent(node);
    } else {
        node->life = news->life;
        node->after = news->now;
        node->ask_at_ms = now_ms(feed) + PACE_MS;
        tell(feed, news);
    }
    arena_reset(&feed->arena);
}

static void node_ask(struct feed_node *node)
{
    const struct node_port *port = &node->feed->router->options.port;
    Holdfast__Internal__V1__ListEventNewsRequest message =
        HOLDFAST__INTERNAL__V1__LIST_EVENT_NEWS_REQUEST__INIT;
    uint8_t body[64];

    message.life = node->life;
    message.after = node->after;
    message.wait_ms = WAIT_MS;
    CHECK(protobuf_c_message_get_packed_size(&message.base) <= sizeof body);
    const struct call_request call = {
        .method = METHOD_LIST_EVENT_NEWS,
        .priority = METHOD_PRIORITY_ORDINARY,
        .deadline_ms = WAIT_MS + MARGIN_MS,
        .body = { body, protobuf_c_message_pack(&message.base, body) },
        .done = node_answered,
        .user = node,
    };
    if (port->start(port->context, node->replica_id, &call, &node->call) != ERR_OK) {
        node->call = 0;
        node_fell_silent(node);
    }
}

/* ---- nodes ---- */
static struct feed_node *node_get(struct event_feed *feed, uint64_t replica_id)
{
    for (uint32_t i = 0; i < feed->node_count; i++) {
        if (feed->nodes[i]->replica_id == replica_id)
            return feed->nodes[i];
    }
    if (feed->node_count == CLUSTER_NODES_MAX)
        return NULL;
    struct feed_node *node = mem_zalloc(sizeof *node);
    node->feed = feed;
    node->replica_id = replica_id;
    feed->nodes[feed->node_count++] = node;
    return node;
}

/* Follows the map: who is there now. */
static void nodes_update(struct event_feed *feed)
{
    uint32_t count;
    const struct node_record *records = shard_map_nodes(feed->router->options.map, &count);

    for (uint32_t i = 0; i < feed->node_count; i++)
        feed->nodes[i]->listed = false;
    for (uint32_t i = 0; i < count; i++) {
        struct feed_node *node = node_get(feed, records[i].replica_id);
        if (node != NULL)
            node->listed = true;
    }
    for (uint32_t i = feed->node_count; i > 0; i--) {
        if (!feed->nodes[i - 1]->listed)
            node_forget(feed, i - 1);
    }
}

static void on_timer(void *user)
{
    struct event_feed *feed = user;
    uint64_t now = now_ms(feed);
    uint64_t next_ms = now + LOOK_MS;

    nodes_update(feed);
    for (uint32_t i = 0; i < feed->node_count; i++) {
        struct feed_node *node = feed->nodes[i];
        if (node->call == 0 && now >= node->ask_at_ms)
            node_ask(node);
        if (node->call == 0 && node->ask_at_ms < next_ms)
            next_ms = node->ask_at_ms;
    }
    loop_timer_start(&feed->timer, next_ms > now ? next_ms - now : 0);
}

/* ---- its life ---- */
struct event_feed *event_feed_new(const struct router *router)
{
    struct event_feed *feed = mem_zalloc(sizeof *feed);

    feed->router = router;
    loop_timer_init(&feed->timer, router->options.loop, on_timer, feed);
    return feed;
}

void event_feed_free(struct event_feed *feed)
{
    if (feed == NULL)
        return;
    event_feed_stop(feed);
    arena_deinit(&feed->arena);
    free(feed);
}

void event_feed_start(struct event_feed *feed, void (*news)(void *user, uint32_t shard), void *user)
{
    if (feed->news != NULL)
        return;
    feed->news = news;
    feed->user = user;
    loop_timer_start(&feed->timer, 0);
}

void event_feed_stop(struct event_feed *feed)
{
    feed->news = NULL;
    while (feed->node_count > 0)
        node_forget(feed, feed->node_count - 1);
    loop_timer_stop(&feed->timer);
}
