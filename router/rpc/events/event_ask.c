#include "router/rpc/events/event_ask.h"

#include <inttypes.h>
#include <string.h>

#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "runtime/cluster/placement.h"
#include "runtime/codec/proto_codec.h"

#define KINDS_MAX  16u
#define ENTITY_MAX 128u
#define TOLD_MAX   64u /* Of a text that is refused. */

typedef Holdfast__Internal__V1__ListShardEventsResponse shard_page;

/* ---- what may be asked ---- */
static err refuse(struct arena *arena, const char *field, const char *limit, struct slice value,
                  Holdfast__V1__ErrorDetail *ret_detail)
{
    if (value.size > TOLD_MAX)
        value.size = TOLD_MAX;
    refusal_make_field(arena, ret_detail, &(struct refusal_field){ field, limit, value },
                       "a request for events past a limit");
    return ERR_INVALID;
}

static err refuse_number(struct arena *arena, const char *field, const char *limit, uint64_t value,
                         Holdfast__V1__ErrorDetail *ret_detail)
{
    return refuse(arena, field, limit, slice_from_text(arena_printf(arena, "%" PRIu64, value)),
                  ret_detail);
}

static bool is_kind(Holdfast__V1__EventKind kind)
{
    return kind != HOLDFAST__V1__EVENT_KIND__EVENT_KIND_UNSPECIFIED &&
           protobuf_c_enum_descriptor_get_value(&holdfast__v1__event_kind__descriptor, (int)kind) !=
               NULL;
}

static bool is_of(struct slice entity, struct slice kind)
{
    return slice_begins_with(entity, kind) && entity.size > kind.size;
}

static bool is_player(struct slice entity)
{
    return is_of(entity, SLICE_LITERAL("player:"));
}

static err check_entity(const struct event_ask *ask, struct arena *arena,
                        Holdfast__V1__ErrorDetail *ret_detail)
{
    struct slice entity = slice_from_text(ask->entity);

    if (entity.size == 0)
        return ERR_OK;
    if (entity.size > ENTITY_MAX)
        return refuse_number(arena, "entity", "at most 128 bytes", entity.size, ret_detail);
    if (ask->entity_prefix[0] != '\0')
        return refuse(arena, "entity", "no entity beside entity_prefix", entity, ret_detail);
    if (!is_player(entity) && !is_of(entity, SLICE_LITERAL("definition:")))
        return refuse(arena, "entity", "player:<id> or definition:<kind>/<name>", entity,
                      ret_detail);
    return ERR_OK;
}

/* A consumer's filters were given when it was made. */
static err check_alone(const struct event_ask *ask, struct arena *arena,
                       Holdfast__V1__ErrorDetail *ret_detail)
{
    const char *field = ask->kind_count > 0             ? "kinds"
                        : ask->entity_prefix[0] != '\0' ? "entity_prefix"
                        : ask->entity[0] != '\0'        ? "entity"
                                                        : NULL;

    if (field == NULL)
        return ERR_OK;
    return refuse(arena, field, "empty where a consumer is named", slice_from_text(ask->consumer),
                  ret_detail);
}

err event_ask_check(const struct event_ask *ask, struct arena *arena,
                    Holdfast__V1__ErrorDetail *ret_detail)
{
    size_t prefix = strlen(ask->entity_prefix);

    if (ask->consumer[0] != '\0')
        return check_alone(ask, arena, ret_detail);
    if (ask->kind_count > KINDS_MAX)
        return refuse_number(arena, "kinds", "at most 16", ask->kind_count, ret_detail);
    for (size_t i = 0; i < ask->kind_count; i++) {
        if (!is_kind(ask->kinds[i]))
            return refuse_number(arena, arena_printf(arena, "kinds[%zu]", i),
                                 "a kind of events that there is", (uint64_t)ask->kinds[i],
                                 ret_detail);
    }
    if (prefix > ENTITY_MAX)
        return refuse_number(arena, "entity_prefix", "at most 128 bytes", prefix, ret_detail);
    return check_entity(ask, arena, ret_detail);
}

uint32_t event_ask_shard(const struct event_ask *ask, uint32_t shard_count)
{
    struct slice entity = slice_from_text(ask->entity);

    return is_player(entity) ? shard_of_entity(entity, shard_count) : EVENT_ASK_ALL_SHARDS;
}

/* ---- a shard ---- */
struct slice event_ask_encode(const struct event_ask *ask, uint32_t shard, uint32_t limit,
                              const struct event_known *known, struct arena *arena)
{
    Holdfast__Internal__V1__ListShardEventsRequest request =
        HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_REQUEST__INIT;

    request.shard = shard;
    request.kinds = (Holdfast__V1__EventKind *)(uintptr_t)ask->kinds;
    request.n_kinds = ask->kind_count;
    request.entity_prefix = text_lend(ask->entity_prefix);
    request.entity = text_lend(ask->entity);
    request.limit = limit;
    if (known->any) {
        request.passed = known->passed;
        request.life = known->life;
        request.after =
            (ProtobufCBinaryData){ EVENT_CURSOR_PLACE_BYTES, (uint8_t *)(uintptr_t)known->place };
    }
    size_t size = holdfast__internal__v1__list_shard_events_request__get_packed_size(&request);
    uint8_t *body = arena_alloc(arena, size + 1);
    return (struct slice){ body, holdfast__internal__v1__list_shard_events_request__pack(&request,
                                                                                         body) };
}

/* What can be carried on with: places as they must be. */
static bool is_sound(const shard_page *said)
{
    uint8_t place[EVENT_CURSOR_PLACE_BYTES];
    bool sound = said->next.len == EVENT_CURSOR_PLACE_BYTES;

    sound &= said->n_event_passed == 0 || said->n_event_passed == said->n_events;
    for (size_t i = 0; i < said->n_events && sound; i++)
        sound = hex_parse(slice_from_text(said->events[i]->seq), EVENT_CURSOR_PLACE_BYTES, place) ==
                ERR_OK;
    return sound;
}

const shard_page *event_ask_decode(struct slice body, struct arena *arena)
{
    struct codec_scope scope = { .arena = arena };
    ProtobufCMessage *message;

    if (proto_decode(&holdfast__internal__v1__list_shard_events_response__descriptor, body, &scope,
                     &message) != ERR_OK)
        return NULL;
    const shard_page *said = (const shard_page *)(const void *)message;
    return is_sound(said) ? said : NULL;
}

void event_ask_advance(const shard_page *said, size_t count, struct event_known *known)
{
    uint64_t passed_ms = said->passed_ms;

    CHECK(count <= said->n_events);
    if (!known->any || known->life != said->life)
        known->passed_ms = 0;
    known->any = true;
    known->life = said->life;
    if (count == said->n_events) {
        memcpy(known->place, said->next.data, EVENT_CURSOR_PLACE_BYTES);
        known->passed = said->passed;
    } else if (count > 0) {
        const Holdfast__V1__Event *last = said->events[count - 1];
        CHECK(hex_parse(slice_from_text(last->seq), EVENT_CURSOR_PLACE_BYTES, known->place) ==
              ERR_OK);
        known->passed = said->n_event_passed > 0 ? said->event_passed[count - 1] : 0;
        passed_ms = (uint64_t)last->at_ms;
    } else {
        return;
    }
    if (passed_ms > known->passed_ms)
        known->passed_ms = passed_ms;
}

Holdfast__V1__EventGap *event_ask_gap(const shard_page *said, uint32_t shard, struct arena *arena)
{
    Holdfast__V1__EventGap *gap = arena_alloc(arena, sizeof *gap);

    holdfast__v1__event_gap__init(gap);
    gap->shard = shard;
    if (said->_lost_case == HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_RESPONSE___LOST_LOST) {
        gap->_lost_case = HOLDFAST__V1__EVENT_GAP___LOST_LOST;
        gap->lost = said->lost;
    }
    return gap;
}
