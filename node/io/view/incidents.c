#include "node/io/view/incidents.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"

#define PAGE_DEFAULT 200u

struct incidents {
    void (*added)(void *user);
    void *added_user;
    atomic_bool armed;
    pthread_mutex_t lock;
    uint64_t life, replica_id;
    uint64_t counts[INCIDENT_KINDS];
    struct incident_ring ring;
};

struct incidents *incidents_new(uint64_t life, uint64_t replica_id)
{
    struct incidents *incidents = mem_zalloc(sizeof *incidents);

    CHECK(life != 0);
    CHECK(pthread_mutex_init(&incidents->lock, NULL) == 0);
    incident_ring_init(&incidents->ring);
    incidents->life = life;
    incidents->replica_id = replica_id;
    return incidents;
}

void incidents_free(struct incidents *incidents)
{
    if (incidents == NULL)
        return;
    pthread_mutex_destroy(&incidents->lock);
    free(incidents);
}

void incidents_add(struct incidents *incidents, const struct incident *incident)
{
    CHECK(incident->kind > 0 && incident->kind < INCIDENT_KINDS);
    pthread_mutex_lock(&incidents->lock);
    incidents->counts[incident->kind]++;
    incident_ring_add(&incidents->ring, incident);
    pthread_mutex_unlock(&incidents->lock);
    /* A waiter that armed before it looked either saw this one, or is seen here. */
    if (atomic_load(&incidents->armed) && atomic_exchange(&incidents->armed, false))
        incidents->added(incidents->added_user);
}

void incidents_set_listener(struct incidents *incidents, void (*added)(void *user), void *user)
{
    incidents->added = added;
    incidents->added_user = user;
}

void incidents_arm(struct incidents *incidents)
{
    CHECK(incidents->added != NULL);
    atomic_store(&incidents->armed, true);
}

uint64_t incidents_count(struct incidents *incidents, enum incident_kind kind)
{
    pthread_mutex_lock(&incidents->lock);
    uint64_t count = incidents->counts[kind];
    pthread_mutex_unlock(&incidents->lock);
    return count;
}

static Holdfast__V1__Incident *message_of(struct arena *arena, const struct incident *incident)
{
    Holdfast__V1__Incident *told =
        (Holdfast__V1__Incident *)arena_message(arena, &holdfast__v1__incident__descriptor);
    const struct method_info *method = method_find(incident->method);

    told->kind = (Holdfast__V1__IncidentKind)incident->kind;
    told->at_ms = (int64_t)incident->unix_ms;
    told->shard = incident->shard;
    told->player_id = arena_text(arena, slice_from_text(incident->player));
    told->op_id = arena_text(arena, slice_from_text(incident->op_id));
    told->what = arena_text(arena, slice_from_text(incident->what));
    told->by = arena_text(arena, slice_from_text(incident->by));
    if (method != NULL)
        told->method = arena_text(arena, slice_from_text(method->name));
    told->count = incident->count;
    return told;
}

/* Under the lock. */
static void fill(struct incidents *incidents, uint64_t after, uint32_t page_size,
                 struct arena *arena, Holdfast__Internal__V1__ListNodeIncidentsResponse *response)
{
    const struct incident_slot *slot = incident_ring_after(&incidents->ring, after);

    response->last = after;
    response->incidents = arena_alloc(arena, sizeof(void *) * (page_size + 1u));
    while (slot != NULL && response->n_incidents < page_size) {
        Holdfast__V1__Incident *incident = message_of(arena, &slot->incident);
        incident->replica_id = incidents->replica_id;
        incident->number = slot->number;
        response->incidents[response->n_incidents++] = incident;
        response->last = slot->number;
        slot = incident_ring_next(&incidents->ring, slot);
    }
    response->lost = response->last - after - response->n_incidents;
    response->life = incidents->life;
    response->more = slot != NULL;
}

bool incidents_append(struct incidents *incidents, struct slice request, struct buf *out)
{
    Holdfast__Internal__V1__ListNodeIncidentsResponse response =
        HOLDFAST__INTERNAL__V1__LIST_NODE_INCIDENTS_RESPONSE__INIT;
    struct arena arena = { 0 };
    const Holdfast__Internal__V1__ListNodeIncidentsRequest *asked = (const void *)arena_unpack(
        &arena, &holdfast__internal__v1__list_node_incidents_request__descriptor, request);
    uint32_t page_size = asked != NULL ? asked->page_size : 0;
    uint64_t after = 0;

    if (page_size == 0 || page_size > INCIDENTS_PAGE_MAX)
        page_size = PAGE_DEFAULT;
    pthread_mutex_lock(&incidents->lock);
    /* What was known of another life says nothing of this one. */
    if (asked != NULL && asked->life == incidents->life && asked->after <= incidents->ring.last)
        after = asked->after;
    fill(incidents, after, page_size, &arena, &response);
    pthread_mutex_unlock(&incidents->lock);
    struct slice bytes = arena_pack(&arena, &response.base);
    buf_append(out, bytes.data, bytes.size);
    bool news = response.n_incidents > 0 || response.lost > 0 || asked == NULL ||
                asked->life != incidents->life;
    arena_deinit(&arena);
    return news;
}
