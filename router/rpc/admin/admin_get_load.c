#include "holdfast/internal/v1/node.pb-c.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/admin/node_survey.h"

static void surveyed(struct node_survey *survey)
{
    Holdfast__V1__GetLoadResponse *response = survey->user;
    struct request *request = survey->request;
    const struct router_load *load = &request->router->options.load;

    response->nodes = arena_alloc(request->arena, sizeof(void *) * (survey->count + 1u));
    response->unreachable = arena_alloc(request->arena, sizeof(uint64_t) * (survey->count + 1u));
    for (uint32_t i = 0; i < survey->count; i++) {
        const struct node_answer *answer = &survey->answers[i];
        const Holdfast__Internal__V1__GetNodeLoadResponse *said =
            (const Holdfast__Internal__V1__GetNodeLoadResponse *)(const void *)answer->message;

        if (said != NULL && said->load != NULL)
            response->nodes[response->n_nodes++] = said->load;
        else
            response->unreachable[response->n_unreachable++] = answer->replica_id;
    }
    response->router = arena_alloc(request->arena, sizeof *response->router);
    holdfast__v1__router_load__init(response->router);
    if (load->fill != NULL)
        load->fill(load->context, request->arena, response->router);
    request_reply(request, &response->base);
}

void admin_get_load_handle(struct request *request)
{
    static const struct node_question question = {
        .method = METHOD_GET_NODE_LOAD,
        .response = &holdfast__internal__v1__get_node_load_response__descriptor,
    };
    Holdfast__V1__GetLoadResponse *response = arena_alloc(request->arena, sizeof *response);

    holdfast__v1__get_load_response__init(response);
    node_survey_ask(request, &question, surveyed, response);
}
