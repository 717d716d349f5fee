#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "router/core/refusal.h"
#include "router/rpc/handlers.h"
#include "router/rpc/node_survey.h"
#include "runtime/base/check.h"
#include "runtime/cluster/incarnation.h"

#define PAGE_SIZE_MAX     1000u
#define PAGE_SIZE_DEFAULT 200u
#define PLACE_SIZE        64u /* "replica.life.after," */

/* How far one node's events are known: a part "replica.life.after" of the cursor. */
struct place {
    uint64_t replica_id, life, after;
};

struct event_page {
    struct request *request;
    uint32_t page_size;
    struct place *places;
    uint32_t place_count, place_capacity;
    Holdfast__V1__ListEventsResponse response;
};

static struct place *place_find(struct event_page *page, uint64_t replica_id)
{
    for (uint32_t i = 0; i < page->place_count; i++) {
        if (page->places[i].replica_id == replica_id)
            return &page->places[i];
    }
    return NULL;
}

static bool number_take(struct slice *text, char end, uint64_t *ret_number)
{
    size_t size = 0;

    while (size < text->size && text->data[size] != (uint8_t)end)
        size++;
    if (decimal_parse((struct slice){ text->data, size }, ret_number) != ERR_OK)
        return false;
    size += size < text->size;
    *text = (struct slice){ text->data + size, text->size - size };
    return true;
}

/* False: not a cursor of ours. */
static bool cursor_parse(struct event_page *page, struct slice text)
{
    while (text.size > 0) {
        struct place place;
        if (page->place_count == page->place_capacity ||
            !number_take(&text, '.', &place.replica_id) || !number_take(&text, '.', &place.life) ||
            !number_take(&text, ',', &place.after))
            return false;
        page->places[page->place_count++] = place;
    }
    return true;
}

static char *cursor_print(struct event_page *page)
{
    size_t size = PLACE_SIZE * (page->place_count + 1u);
    char *text = arena_alloc(page->request->arena, size);
    size_t used = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < page->place_count; i++) {
        const struct place *place = &page->places[i];
        int more = snprintf(text + used, size - used, "%s%" PRIu64 ".%" PRIu64 ".%" PRIu64,
                            i > 0 ? "," : "", place->replica_id, place->life, place->after);
        CHECK(more > 0 && (size_t)more < size - used);
        used += (size_t)more;
    }
    return text;
}

static struct slice question_body(struct node_survey *survey, uint64_t replica_id)
{
    struct event_page *page = survey->user;
    const struct place *place = place_find(page, replica_id);
    Holdfast__Internal__V1__ListNodeEventsRequest message =
        HOLDFAST__INTERNAL__V1__LIST_NODE_EVENTS_REQUEST__INIT;

    message.page_size = page->page_size;
    if (place != NULL) {
        message.life = place->life;
        message.after = place->after;
    }
    size_t size = protobuf_c_message_get_packed_size(&message.base);
    uint8_t *body = arena_alloc(survey->request->arena, size + 1);
    return (struct slice){ body, protobuf_c_message_pack(&message.base, body) };
}

static void gap_add(struct event_page *page, uint64_t replica_id, uint64_t lost)
{
    Holdfast__V1__EventGap *gap = arena_alloc(page->request->arena, sizeof *gap);

    holdfast__v1__event_gap__init(gap);
    gap->replica_id = replica_id;
    gap->lost = lost;
    page->response.gaps[page->response.n_gaps++] = gap;
}

static void answer_take(struct event_page *page, const struct node_answer *answer)
{
    const Holdfast__Internal__V1__ListNodeEventsResponse *said =
        (const Holdfast__Internal__V1__ListNodeEventsResponse *)(const void *)answer->message;
    Holdfast__V1__ListEventsResponse *response = &page->response;

    /* A node that is still starting has no ring yet. */
    if (said == NULL || said->life == 0) {
        response->unreachable[response->n_unreachable++] = answer->replica_id;
        return;
    }
    struct place *place = place_find(page, answer->replica_id);
    bool forgotten = place != NULL && place->life != said->life;
    if (place == NULL) {
        place = &page->places[page->place_count++];
        place->replica_id = answer->replica_id;
    }
    if (said->lost > 0 || forgotten)
        gap_add(page, answer->replica_id, said->lost);
    place->life = said->life;
    place->after = said->last;
    for (size_t i = 0; i < said->n_events; i++)
        response->events[response->n_events++] = said->events[i];
    response->more = response->more || said->more;
}

/* A node's own stay in order, unless its clock went back. */
static int by_time(const void *a, const void *b)
{
    const Holdfast__V1__Event *left = *(Holdfast__V1__Event *const *)a;
    const Holdfast__V1__Event *right = *(Holdfast__V1__Event *const *)b;

    if (left->at_ms != right->at_ms)
        return left->at_ms < right->at_ms ? -1 : 1;
    if (left->replica_id != right->replica_id)
        return left->replica_id < right->replica_id ? -1 : 1;
    return left->number < right->number ? -1 : 1;
}

static void surveyed(struct node_survey *survey)
{
    struct event_page *page = survey->user;
    Holdfast__V1__ListEventsResponse *response = &page->response;
    struct arena *arena = page->request->arena;

    response->events =
        arena_alloc(arena, sizeof(void *) * ((size_t)survey->count * page->page_size + 1));
    response->gaps = arena_alloc(arena, sizeof(void *) * (survey->count + 1u));
    response->unreachable = arena_alloc(arena, sizeof(uint64_t) * (survey->count + 1u));
    for (uint32_t i = 0; i < survey->count; i++)
        answer_take(page, &survey->answers[i]);
    qsort(response->events, response->n_events, sizeof(void *), by_time);
    response->next_cursor = cursor_print(page);
    request_reply(page->request, &response->base);
}

static void refuse(struct request *request, const struct refusal_field *field, const char *message)
{
    Holdfast__V1__ErrorDetail detail;

    refusal_make_field(request->arena, &detail, field, message);
    request_fail(request, &detail);
}

void admin_list_events_handle(struct request *request)
{
    static const struct node_question question = {
        .method = METHOD_LIST_NODE_EVENTS,
        .response = &holdfast__internal__v1__list_node_events_response__descriptor,
        .body = question_body,
    };
    const Holdfast__V1__ListEventsRequest *message =
        (const Holdfast__V1__ListEventsRequest *)(const void *)request->message;
    struct event_page *page = arena_zalloc(request->arena, sizeof *page);
    struct slice cursor = slice_from_text(message->cursor);

    if (message->page_size > PAGE_SIZE_MAX) {
        refuse(request, &(struct refusal_field){ "page_size", "1 to 1000, or 0", { 0 } },
               "the page is too large");
        return;
    }
    page->request = request;
    page->page_size = message->page_size > 0 ? message->page_size : PAGE_SIZE_DEFAULT;
    page->place_capacity = CLUSTER_NODES_MAX;
    page->places = arena_zalloc(request->arena, sizeof *page->places * 2 * CLUSTER_NODES_MAX);
    if (!cursor_parse(page, cursor)) {
        refuse(request,
               &(struct refusal_field){ "cursor", "next_cursor of the page before", cursor },
               "not a cursor of this list");
        return;
    }
    holdfast__v1__list_events_response__init(&page->response);
    node_survey_ask(request, &question, surveyed, page);
}
