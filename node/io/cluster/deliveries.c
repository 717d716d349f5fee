#include "node/io/cluster/deliveries.h"

#include <stdlib.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"

/* Shorter than a lane waits before it counts a batch as lost. */
#define DEADLINE_MS 4000u
/* Calls of this module among those of the service. */
#define CALL_BIT   (1ull << 63)
#define PLACE_BITS 16u

struct delivery {
    struct delivery *next;
    struct deliveries *owner;
    uint64_t call;
    uint32_t place;
    uint32_t from, destination;
    uint64_t token;
    enum reply_status status;
    struct buf bytes; /* The request, then the answer. */
};

struct queue {
    struct delivery *first, *last;
};

struct deliveries {
    struct deliveries_options options;
    struct workers *workers;
    struct delivery **places; /* Those on their way; NULL: free. */
    uint32_t place_count, place_next, open;
    uint64_t calls_made;
    struct queue sending, answered;
    struct loop_hook hook;
    struct pulls *pulls;
};

static void queue_add(struct queue *queue, struct delivery *delivery)
{
    delivery->next = NULL;
    if (queue->last != NULL)
        queue->last->next = delivery;
    else
        queue->first = delivery;
    queue->last = delivery;
}

static struct delivery *queue_take(struct queue *queue)
{
    struct delivery *first = queue->first;

    if (first == NULL)
        return NULL;
    queue->first = first->next;
    if (queue->first == NULL)
        queue->last = NULL;
    return first;
}

static bool place_take(struct deliveries *d, struct delivery *delivery)
{
    if (d->open == DELIVERIES_MAX)
        return false;
    if (d->open == d->place_count) {
        uint32_t count = d->place_count > 0 ? d->place_count * 2 : 64;
        d->places = mem_realloc(d->places, sizeof(struct delivery *) * count);
        for (uint32_t i = d->place_count; i < count; i++)
            d->places[i] = NULL;
        d->place_next = d->place_count;
        d->place_count = count;
    }
    while (d->places[d->place_next] != NULL)
        d->place_next = (d->place_next + 1) % d->place_count;
    d->places[d->place_next] = delivery;
    delivery->place = d->place_next;
    d->open++;
    return true;
}

static void delivery_free(struct deliveries *d, struct delivery *delivery)
{
    d->places[delivery->place] = NULL;
    d->open--;
    buf_deinit(&delivery->bytes);
    free(delivery);
}

static void answer(struct delivery *delivery, enum reply_status status, struct slice body)
{
    struct deliveries *d = delivery->owner;

    delivery->status = status;
    buf_clear(&delivery->bytes);
    buf_append(&delivery->bytes, body.data, body.size);
    queue_add(&d->answered, delivery);
    loop_hook_arm(&d->hook);
}

static void on_called(void *user, err result, const struct frame *response)
{
    enum reply_status status = REPLY_UNKNOWN;

    if (result == ERR_OK && response->status == WIRE_OK)
        status = REPLY_OK;
    answer(user, status, status == REPLY_OK ? response->body : (struct slice){ 0 });
}

static err start_remote(struct delivery *delivery, uint64_t replica)
{
    struct deliveries *d = delivery->owner;
    struct link *link = peers_link(d->options.peers, replica);
    struct call_request request = {
        .method = METHOD_CHANNEL_DELIVER,
        .deadline_ms = DEADLINE_MS,
        .body = buf_slice(&delivery->bytes),
        .done = on_called,
        .user = delivery,
    };

    if (link == NULL)
        return ERR_UNAVAILABLE;
    return call_start(d->options.calls, link, &request, NULL);
}

static err start_local(struct delivery *delivery)
{
    struct deliveries *d = delivery->owner;

    if (d->workers == NULL)
        return ERR_UNAVAILABLE;
    delivery->call = CALL_BIT | (++d->calls_made << PLACE_BITS & ~CALL_BIT) | delivery->place;
    const struct worker_request request = {
        .shard = delivery->destination,
        .method = METHOD_CHANNEL_DELIVER,
        .call = delivery->call,
        .deadline_ms = loop_now_ms(d->options.loop) + DEADLINE_MS,
        .bytes = buf_slice(&delivery->bytes),
    };
    return workers_call(d->workers, &request);
}

static void start(struct delivery *delivery)
{
    struct deliveries *d = delivery->owner;
    const struct shard_entry *entry =
        shard_map_find(registry_map(d->options.registry), delivery->destination);
    err e = ERR_UNAVAILABLE;

    if (entry != NULL && entry->record.owner == d->options.self)
        e = start_local(delivery);
    else if (entry != NULL)
        e = start_remote(delivery, entry->record.owner);
    if (e != ERR_OK)
        answer(delivery, REPLY_NOT_OWNER, (struct slice){ 0 });
}

/* What is added meanwhile arms the hook again. */
static void on_hook(void *user)
{
    struct deliveries *d = user;
    struct queue sending = d->sending;
    struct queue answered = d->answered;
    struct delivery *delivery;

    d->sending = (struct queue){ 0 };
    d->answered = (struct queue){ 0 };
    while ((delivery = queue_take(&sending)) != NULL)
        start(delivery);
    while ((delivery = queue_take(&answered)) != NULL) {
        if (d->workers != NULL)
            workers_delivered(d->workers, &(struct worker_delivered){
                                              .shard = delivery->from,
                                              .token = delivery->token,
                                              .status = delivery->status,
                                              .body = buf_slice(&delivery->bytes),
                                          });
        delivery_free(d, delivery);
    }
}

struct deliveries *deliveries_new(const struct deliveries_options *options)
{
    struct deliveries *d = mem_zalloc(sizeof *d);

    d->options = *options;
    loop_hook_init(&d->hook, options->loop, on_hook, d);
    d->pulls = pulls_new(&(struct pulls_options){ .loop = options->loop,
                                                  .registry = options->registry,
                                                  .peers = options->peers,
                                                  .calls = options->calls,
                                                  .self = options->self });
    return d;
}

void deliveries_free(struct deliveries *d)
{
    if (d == NULL)
        return;
    loop_hook_disarm(&d->hook);
    for (uint32_t i = 0; i < d->place_count; i++) {
        if (d->places[i] != NULL)
            delivery_free(d, d->places[i]);
    }
    pulls_free(d->pulls);
    free(d->places);
    free(d);
}

void deliveries_set_workers(struct deliveries *d, struct workers *workers,
                            struct shard_views *views)
{
    d->workers = workers;
    pulls_set_workers(d->pulls, workers, views);
}

void deliveries_send(struct deliveries *d, uint32_t from, const struct shard_delivery *sent,
                     struct slice request)
{
    struct delivery *delivery = mem_zalloc(sizeof *delivery);

    if (!place_take(d, delivery)) {
        free(delivery);
        return;
    }
    delivery->owner = d;
    delivery->from = from;
    delivery->destination = sent->destination;
    delivery->token = sent->token;
    buf_append(&delivery->bytes, request.data, request.size);
    queue_add(&d->sending, delivery);
    loop_hook_arm(&d->hook);
}

bool deliveries_answer(struct deliveries *d, uint64_t call, const struct shard_reply *reply,
                       struct slice body)
{
    uint32_t place = (uint32_t)(call & ((1u << PLACE_BITS) - 1));

    if ((call & CALL_BIT) == 0)
        return pulls_answer(d->pulls, call, reply, body);
    CHECK(place < d->place_count);
    struct delivery *delivery = d->places[place];
    if (delivery != NULL && delivery->call == call)
        answer(delivery, reply->status, body);
    return true;
}

const struct pulls *deliveries_pulls(const struct deliveries *d)
{
    return d != NULL ? d->pulls : NULL;
}
