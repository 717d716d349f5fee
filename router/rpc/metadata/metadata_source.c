#include "router/rpc/metadata/metadata_source.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/codec/proto_codec.h"

#define KIND  "collection"
#define FOUND 2u /* One that stands is all there can be. */

struct metadata_sources {
    struct router *router;
    void (*told)(void *user, struct metadata_source *source);
    void *user;
    struct metadata_source all[METADATA_SOURCES_MAX];
};

static uint64_t now_ms(const struct metadata_sources *sources)
{
    return loop_now_ms(sources->router->options.loop);
}

struct metadata_sources *
metadata_sources_new(struct router *router,
                     void (*told)(void *user, struct metadata_source *source), void *user)
{
    struct metadata_sources *sources = mem_zalloc(sizeof *sources);

    sources->router = router;
    sources->told = told;
    sources->user = user;
    return sources;
}

void metadata_sources_free(struct metadata_sources *sources)
{
    if (sources == NULL)
        return;
    const struct node_port *port = &sources->router->options.port;
    for (uint32_t i = 0; i < METADATA_SOURCES_MAX; i++) {
        if (sources->all[i].call != 0)
            port->cancel(port->context, sources->all[i].call);
    }
    free(sources);
}

uint64_t metadata_sources_resting(const struct metadata_sources *sources)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < METADATA_SOURCES_MAX; i++)
        count += metadata_breaker_is_open(&sources->all[i].breaker);
    return count;
}

/* ---- the coordinator's answer ---- */
static void take_url(struct metadata_source *source, const char *url)
{
    size_t size = strlen(url);

    if (size > ENDPOINT_URL_MAX) /* The coordinator takes none so long. */
        size = 0;
    if (strcmp(source->url, url) != 0)
        source->breaker = (struct metadata_breaker){ 0 };
    memcpy(source->url, url, size);
    source->url[size] = '\0';
    source->known = true;
}

static void take(struct metadata_source *source, struct slice body)
{
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    ProtobufCMessage *message;

    if (proto_decode(&holdfast__internal__v1__find_definitions_response__descriptor, body, &scope,
                     &message) == ERR_OK) {
        const Holdfast__Internal__V1__FindDefinitionsResponse *answer = (const void *)message;
        const Holdfast__V1__DefinitionBody *found = NULL;
        for (size_t i = 0; i < answer->n_definitions && found == NULL; i++) {
            if (strcmp(answer->definitions[i]->version->name, source->collection) == 0)
                found = answer->definitions[i]->version->body;
        }
        bool names =
            found != NULL && found->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION;
        take_url(source, names ? found->collection->metadata_url : "");
    }
    arena_deinit(&arena);
}

static void on_done(void *user, err result, const struct frame *response)
{
    struct metadata_source *source = user;
    struct metadata_sources *sources = source->sources;

    source->call = 0;
    if (result == ERR_OK && response->status == WIRE_OK)
        take(source, response->body);
    sources->told(sources->user, source);
}

static void ask(struct metadata_source *source)
{
    struct metadata_sources *sources = source->sources;
    const struct router *router = sources->router;
    Holdfast__Internal__V1__FindDefinitionsRequest find =
        HOLDFAST__INTERNAL__V1__FIND_DEFINITIONS_REQUEST__INIT;
    char kind[] = KIND;

    find.kind = kind;
    find.name = source->collection;
    find.limit = FOUND;
    size_t size = holdfast__internal__v1__find_definitions_request__get_packed_size(&find);
    CHECK(size <= sizeof source->question);
    holdfast__internal__v1__find_definitions_request__pack(&find, source->question);
    const struct call_request call = {
        .method = METHOD_FIND_DEFINITIONS,
        .priority = METHOD_PRIORITY_ORDINARY,
        .deadline_ms = METADATA_FIND_MS,
        .body = { source->question, size },
        .done = on_done,
        .user = source,
    };
    const struct node_port *port = &router->options.port;
    source->asked_ms = now_ms(sources);
    if (shard_map_find_coordinator(router->options.map) == NULL ||
        port->start(port->context, NODE_PORT_COORDINATOR, &call, &source->call) != ERR_OK)
        source->call = 0;
}

/* ---- finding one ---- */
/* Its place, or that of the one that was used longest ago; NULL: all are in use. */
static struct metadata_source *place_of(struct metadata_sources *sources, struct slice collection)
{
    struct metadata_source *oldest = NULL;

    for (uint32_t i = 0; i < METADATA_SOURCES_MAX; i++) {
        struct metadata_source *source = &sources->all[i];
        if (slice_equal(slice_from_text(source->collection), collection))
            return source;
        if (source->users == 0 && source->call == 0 &&
            (oldest == NULL || source->used_ms < oldest->used_ms))
            oldest = source;
    }
    if (oldest == NULL)
        return NULL;
    CHECK(collection.size <= COUNT_COLLECTION_BYTES);
    *oldest = (struct metadata_source){ .sources = sources };
    memcpy(oldest->collection, collection.data, collection.size);
    return oldest;
}

struct metadata_source *metadata_source_get(struct metadata_sources *sources,
                                            struct slice collection)
{
    struct metadata_source *source = place_of(sources, collection);

    if (source == NULL)
        return NULL;
    source->used_ms = now_ms(sources);
    if (source->call == 0 &&
        (!source->known || source->used_ms - source->asked_ms > METADATA_SOURCE_AGE_MS))
        ask(source);
    return source;
}
