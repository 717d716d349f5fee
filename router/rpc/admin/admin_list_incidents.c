#include <stdlib.h>

#include "holdfast/v1/admin.pb-c.h"
#include "router/core/incident_cursor.h"
#include "router/core/refusal.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/admin/node_survey.h"

#define PAGE_SIZE_MAX     1000u
#define PAGE_SIZE_DEFAULT 200u

struct incident_page {
    struct request *request;
    uint32_t page_size;
    struct incident_cursor cursor;
    Holdfast__V1__ListIncidentsResponse response;
};

static struct slice question_body(struct node_survey *survey, uint64_t replica_id)
{
    struct incident_page *page = survey->user;
    const struct incident_place *place = incident_cursor_find(&page->cursor, replica_id);
    Holdfast__Internal__V1__ListNodeIncidentsRequest message =
        HOLDFAST__INTERNAL__V1__LIST_NODE_INCIDENTS_REQUEST__INIT;

    message.page_size = page->page_size;
    if (place != NULL) {
        message.life = place->life;
        message.after = place->after;
    }
    size_t size = protobuf_c_message_get_packed_size(&message.base);
    uint8_t *body = arena_alloc(survey->request->arena, size + 1);
    return (struct slice){ body, protobuf_c_message_pack(&message.base, body) };
}

static void gap_add(struct incident_page *page, uint64_t replica_id, uint64_t lost)
{
    Holdfast__V1__IncidentGap *gap = arena_alloc(page->request->arena, sizeof *gap);

    holdfast__v1__incident_gap__init(gap);
    gap->replica_id = replica_id;
    gap->lost = lost;
    page->response.gaps[page->response.n_gaps++] = gap;
}

static void answer_take(struct incident_page *page, const struct node_answer *answer)
{
    const Holdfast__Internal__V1__ListNodeIncidentsResponse *said =
        (const Holdfast__Internal__V1__ListNodeIncidentsResponse *)(const void *)answer->message;
    Holdfast__V1__ListIncidentsResponse *response = &page->response;

    /* A node that is still starting has no ring yet. */
    if (said == NULL || said->life == 0) {
        response->unreachable[response->n_unreachable++] = answer->replica_id;
        return;
    }
    bool forgotten = incident_cursor_advance(
        &page->cursor, &(struct incident_place){ answer->replica_id, said->life, said->last });
    if (said->lost > 0 || forgotten)
        gap_add(page, answer->replica_id, said->lost);
    for (size_t i = 0; i < said->n_incidents; i++)
        response->incidents[response->n_incidents++] = said->incidents[i];
    response->more = response->more || said->more;
}

/* A node's own stay in order, unless its clock went back. */
static int by_time(const void *a, const void *b)
{
    const Holdfast__V1__Incident *left = *(Holdfast__V1__Incident *const *)a;
    const Holdfast__V1__Incident *right = *(Holdfast__V1__Incident *const *)b;

    if (left->at_ms != right->at_ms)
        return left->at_ms < right->at_ms ? -1 : 1;
    if (left->replica_id != right->replica_id)
        return left->replica_id < right->replica_id ? -1 : 1;
    return left->number < right->number ? -1 : 1;
}

static void surveyed(struct node_survey *survey)
{
    struct incident_page *page = survey->user;
    Holdfast__V1__ListIncidentsResponse *response = &page->response;
    struct arena *arena = page->request->arena;

    response->incidents =
        arena_alloc(arena, sizeof(void *) * ((size_t)survey->count * page->page_size + 1));
    response->gaps = arena_alloc(arena, sizeof(void *) * (survey->count + 1u));
    response->unreachable = arena_alloc(arena, sizeof(uint64_t) * (survey->count + 1u));
    for (uint32_t i = 0; i < survey->count; i++)
        answer_take(page, &survey->answers[i]);
    qsort(response->incidents, response->n_incidents, sizeof(void *), by_time);
    response->next_cursor = incident_cursor_print(&page->cursor, arena);
    request_reply(page->request, &response->base);
}

void admin_list_incidents_handle(struct request *request)
{
    static const struct node_question question = {
        .method = METHOD_LIST_NODE_INCIDENTS,
        .response = &holdfast__internal__v1__list_node_incidents_response__descriptor,
        .body = question_body,
    };
    const Holdfast__V1__ListIncidentsRequest *message =
        (const Holdfast__V1__ListIncidentsRequest *)(const void *)request->message;
    struct incident_page *page = arena_zalloc(request->arena, sizeof *page);
    Holdfast__V1__ErrorDetail detail;

    if (message->page_size > PAGE_SIZE_MAX) {
        char *value = arena_printf(request->arena, "%u", message->page_size);
        refusal_make_field(
            request->arena, &detail,
            &(struct refusal_field){ "page_size", "1 to 1000, or 0", slice_from_text(value) },
            "the page is too large");
        request_fail(request, &detail);
        return;
    }
    page->request = request;
    page->page_size = message->page_size > 0 ? message->page_size : PAGE_SIZE_DEFAULT;
    if (incident_cursor_parse(slice_from_text(message->cursor), request->arena, &page->cursor,
                              &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    holdfast__v1__list_incidents_response__init(&page->response);
    node_survey_ask(request, &question, surveyed, page);
}
