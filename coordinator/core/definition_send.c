/*
 * definition_send: brings every shard to where etcd is. A coordinator that was just elected asks
 * each shard how far it has followed, and again from time to time; what it is told is all that it
 * believes. A span that a shard has already, or that begins behind a gap, changes nothing there, so
 * calls may be repeated, doubled and late.
 */
#include <stdlib.h>

#include "coordinator/core/definition_send.h"
#include "coordinator/core/definitions.h"
#include "coordinator/core/flight.h"
#include "idl/method.h"
#include "runtime/base/check.h"

typedef Holdfast__Internal__V1__Defined defined;
typedef Holdfast__Internal__V1__DefineRequest define_request;

static bool is_behind(const struct coord *coord, const struct shard *shard, uint64_t revision)
{
    const struct defined_shard *stands = &shard->defined;

    if (!stands->known)
        return true;
    if (stands->generation == 0 && revision == 0)
        return false; /* There never was a definition. */
    return stands->generation != coord->cluster.generation || stands->revision < revision;
}

static bool is_ahead(const struct coord *coord, const struct defined_shard *stands,
                     uint64_t revision)
{
    return stands->generation > coord->cluster.generation ||
           (stands->generation == coord->cluster.generation && stands->revision > revision);
}

uint32_t definition_left(const struct coord *coord, int64_t revision)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < coord->shard_count; i++)
        left += is_behind(coord, &coord->shards[i], (uint64_t)revision);
    return left;
}

/* ---- a span ---- */
static int by_revision(const void *a, const void *b)
{
    const struct definition *const *left = a, *const *right = b;
    int64_t first = definition_newest(*left)->revision;
    int64_t second = definition_newest(*right)->revision;

    return first < second ? -1 : first > second;
}

static void fill_one(struct coord *coord, const struct definition *definition,
                     define_request *request, struct arena *arena)
{
    const struct definition_version *newest = definition_newest(definition);
    definition_record *record = definition_unpack(newest);
    defined *given = arena_alloc(arena, sizeof *given);

    holdfast__internal__v1__defined__init(given);
    given->number = record->number;
    given->version = record->version;
    given->revision = (uint64_t)newest->revision;
    given->generation = coord->cluster.generation;
    given->name = (char *)arena_copy(arena, slice_from_text(definition->name)).data;
    given->deleted = record->deleted;
    given->body = record->body;
    record->body = NULL; /* Kept until the request is packed. */
    holdfast__internal__v1__definition_version__free_unpacked(record, NULL);
    request->definitions[request->n_definitions++] = given;
}

/* Packs what etcd has above `from`, by rising revision, as much as one call takes. */
static struct slice span_pack(struct coord *coord, uint32_t number, uint64_t from,
                              struct arena *arena)
{
    const struct definitions *all = &coord->definitions;
    define_request request = HOLDFAST__INTERNAL__V1__DEFINE_REQUEST__INIT;
    const struct definition **due = arena_alloc(arena, (all->count + 1) * sizeof *due);
    uint32_t count = 0, taken = 0;
    size_t bytes = 0;

    for (uint32_t i = 0; i < all->count; i++) {
        if ((uint64_t)definition_newest(all->list[i])->revision > from)
            due[count++] = all->list[i];
    }
    qsort(due, count, sizeof *due, by_revision);
    request.shard = number;
    request.generation = coord->cluster.generation;
    request.from_revision = from;
    request.definitions = arena_alloc(arena, (DEFINE_COUNT_MAX + 1) * sizeof *request.definitions);
    while (taken < count && taken < DEFINE_COUNT_MAX && bytes < DEFINE_BYTES_MAX) {
        bytes += due[taken]->bytes;
        fill_one(coord, due[taken++], &request, arena);
    }
    request.last = taken == count;
    request.to_revision = taken > 0 ? (uint64_t)definition_newest(due[taken - 1])->revision : from;
    size_t size = holdfast__internal__v1__define_request__get_packed_size(&request);
    uint8_t *data = arena_alloc(arena, size + 1);

    holdfast__internal__v1__define_request__pack(&request, data);
    for (size_t i = 0; i < request.n_definitions; i++)
        holdfast__v1__definition_body__free_unpacked(request.definitions[i]->body, NULL);
    return (struct slice){ data, size };
}

/* ---- calls ---- */
static struct slice question_pack(uint32_t number, struct arena *arena)
{
    Holdfast__Internal__V1__GetDefinedRequest request =
        HOLDFAST__INTERNAL__V1__GET_DEFINED_REQUEST__INIT;

    request.shard = number;
    size_t size = holdfast__internal__v1__get_defined_request__get_packed_size(&request);
    uint8_t *data = arena_alloc(arena, size + 1);

    holdfast__internal__v1__get_defined_request__pack(&request, data);
    return (struct slice){ data, size };
}

/* False: calls_max are open. */
static bool call_shard(struct coord *coord, uint32_t number, bool ask, struct coord_out *out)
{
    struct shard *shard = &coord->shards[number];
    const struct defined_shard *stands = &shard->defined;
    struct open_call *open = NULL;
    struct coord_call *call = delivery_call(coord, number, out, &open);

    if (call == NULL)
        return false;
    uint64_t from = stands->generation == coord->cluster.generation ? stands->revision : 0;

    call->method = ask ? METHOD_GET_DEFINED : METHOD_DEFINE;
    call->body =
        ask ? question_pack(number, &out->arena) : span_pack(coord, number, from, &out->arena);
    open->method = call->method;
    shard->defined.calls++;
    return true;
}

/* A shard that knows of more than etcd has is not brought back: etcd was restored, and that is to
 * be accepted, or this copy is late. */
static bool may_send(const struct coord *coord, const struct shard *shard, uint64_t revision)
{
    const struct defined_shard *stands = &shard->defined;

    return stands->generation < coord->cluster.generation ||
           (stands->generation == coord->cluster.generation && stands->revision < revision);
}

/* A shard knows of a version that etcd does not have. The copy here may be late; if that lasts,
 * etcd was restored from a backup, and no process has noticed: an operator has to accept it. */
static void look_for_doubt(struct coord *coord, uint32_t number, uint64_t revision)
{
    struct defined_shard *stands = &coord->shards[number].defined;
    bool ahead = stands->known && is_ahead(coord, stands, revision);

    if (!ahead || stands->ahead_since_ms == 0)
        stands->ahead_since_ms = ahead ? coord->now_ms : 0;
    bool doubted = ahead && coord->now_ms - stands->ahead_since_ms >= coord->limits.stale_doubt_ms;

    if (doubted && !stands->doubted)
        log_event(coord->log, LOG_ERROR, "coordinator.definitions_doubted", LOG_N("shard", number),
                  LOG_N("revision_known", stands->revision), LOG_N("revision", revision),
                  LOG_S("reason", "a later definition is known than etcd has: was etcd restored "
                                  "from a backup? holdfast admin accept-etcd-restore --force"));
    stands->doubted = doubted;
}

/* ---- what is forgotten ---- */

/* A caller may send its change again, and finds what it made. */
static bool is_long_gone(const struct coord *coord, const struct definition *definition)
{
    return definition->deleted_at_ms > 0 &&
           coord->now_ms + coord->wall_ahead_ms > definition->deleted_at_ms + DEFINITION_GRACE_MS;
}

static const struct definition *find_with_old_version(const struct coord *coord)
{
    for (uint32_t i = 0; i < coord->definitions.count; i++) {
        const struct definition *definition = coord->definitions.list[i];

        if (definition->count > DEFINITION_VERSIONS_MAX ||
            (definition->count > 1 && is_long_gone(coord, definition)))
            return definition;
    }
    return NULL;
}

/* The one that was deleted first, if too many were. Nodes ask for collections of documents as long
 * as they have some: those stay. NULL: none. */
static const struct definition *find_gone(const struct coord *coord)
{
    const struct definition *oldest = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < coord->definitions.count; i++) {
        const struct definition *definition = coord->definitions.list[i];

        if (definition->kind == HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS ||
            definition->count > 1 || !is_long_gone(coord, definition))
            continue;
        count++;
        if (oldest == NULL ||
            definition_newest(definition)->revision < definition_newest(oldest)->revision)
            oldest = definition;
    }
    return count > coord->limits.definitions_gone_kept ? oldest : NULL;
}

/* One version at a time. A shard that is behind has to hear of each deletion first; and the newest
 * revision of all stays, since it is how far shards have come. */
static void trim(struct coord *coord)
{
    const struct definition *definition;

    if (coord->definitions.trimming)
        return;
    definition = find_with_old_version(coord);
    if (definition == NULL && coord->definitions.left == 0)
        definition = find_gone(coord);
    if (definition != NULL)
        coord->definitions.trimming =
            flight_remove_definition(coord, definition->number, definition->versions[0].version,
                                     definition->versions[0].revision);
}

void definitions_run(struct coord *coord, struct coord_out *out)
{
    uint64_t revision = definitions_revision(coord);
    uint32_t left = 0;

    for (uint32_t i = 0; i < coord->shard_count; i++) {
        struct shard *shard = &coord->shards[i];
        bool behind = is_behind(coord, shard, revision);

        left += behind;
        look_for_doubt(coord, i, revision);
        if (shard->defined.calls > 0 || !shard_takes_calls(coord, shard, CALL_DEFINITION))
            continue;
        bool ask = coord->now_ms >= shard->defined.ask_at_ms;

        if (!ask && (!shard->defined.known || !behind || !may_send(coord, shard, revision)))
            continue;
        if (!call_shard(coord, i, ask, out))
            break;
    }
    coord->definitions.left = left;
    if (left == 0 || coord->definitions.behind_since_ms == 0)
        coord->definitions.behind_since_ms = left == 0 ? 0 : coord->now_ms;
    trim(coord);
}

static bool told_by(const struct open_call *call, const struct coord_event *event,
                    uint64_t *ret_generation, uint64_t *ret_revision)
{
    if (event->status != WIRE_OK)
        return false;
    if (call->method == METHOD_DEFINE) {
        Holdfast__Internal__V1__DefineResponse *response =
            holdfast__internal__v1__define_response__unpack(NULL, event->body.size,
                                                            event->body.data);
        if (response == NULL)
            return false;
        *ret_generation = response->generation;
        *ret_revision = response->revision;
        holdfast__internal__v1__define_response__free_unpacked(response, NULL);
        return true;
    }
    Holdfast__Internal__V1__GetDefinedResponse *response =
        holdfast__internal__v1__get_defined_response__unpack(NULL, event->body.size,
                                                             event->body.data);
    if (response == NULL)
        return false;
    *ret_generation = response->generation;
    *ret_revision = response->revision;
    holdfast__internal__v1__get_defined_response__free_unpacked(response, NULL);
    return true;
}

/* A failure puts off nothing but this: an owner of an earlier version knows neither call. */
void definitions_told(struct coord *coord, const struct open_call *call,
                      const struct coord_event *event)
{
    struct defined_shard *stands = &coord->shards[call->shard].defined;

    CHECK(stands->calls > 0);
    stands->calls--;
    if (told_by(call, event, &stands->generation, &stands->revision)) {
        stands->known = true;
        if (call->method == METHOD_GET_DEFINED)
            stands->ask_at_ms = coord->now_ms + coord->limits.define_ask_ms;
        return;
    }
    coord->stats.calls_failed++;
    stands->known = false; /* Nor is it called before it was asked again. */
    stands->ask_at_ms =
        coord->now_ms + (event->status == WIRE_REFUSED ? coord->limits.call_refused_ms
                                                       : coord->limits.call_retry_ms);
}

void definitions_drop(struct coord *coord)
{
    for (uint32_t i = 0; i < coord->shard_count; i++)
        coord->shards[i].defined = (struct defined_shard){ 0 };
    for (uint32_t i = 0; i < DEFINITION_WAITS_MAX; i++) {
        struct definition_wait *wait = &coord->definitions.waits[i];

        if (wait->state != WAIT_FREE)
            wait->state = WAIT_LOST;
    }
    coord->definitions.left = 0;
    coord->definitions.behind_since_ms = 0;
    coord->definitions.trimming = false;
}
