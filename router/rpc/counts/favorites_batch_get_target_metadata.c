#include "holdfast/v1/favorites.pb-c.h"
#include "idl/error_code.h"
#include "router/core/count_ask.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/metadata/metadata_include.h"

typedef Holdfast__V1__BatchGetTargetMetadataRequest get_request;
typedef Holdfast__V1__BatchGetTargetMetadataResponse get_response;

static void told(struct metadata_ask *ask)
{
    struct request *request = ask->request;
    get_response response = HOLDFAST__V1__BATCH_GET_TARGET_METADATA_RESPONSE__INIT;

    if (ask->code == CODE(NOT_FOUND)) { /* There is no such collection. */
        request_fail_text(request, CODE(NOT_FOUND), ask->reason != NULL ? ask->reason : "");
        return;
    }
    response.metadata = arena_alloc(request->arena, (ask->count + 1) * sizeof *response.metadata);
    for (size_t i = 0; i < ask->count; i++) {
        if (ask->told[i] == NULL)
            continue;
        response.metadata[response.n_metadata++] =
            request->player != NULL ? metadata_listed(ask->told[i]) : ask->told[i];
    }
    if (ask->reason != NULL) {
        response.metadata_incomplete = true;
        response.metadata_reason = arena_printf(request->arena, "%s", ask->reason);
    }
    request_reply(request, &response.base);
}

void favorites_batch_get_target_metadata_handle(struct request *request)
{
    const get_request *message = (const void *)request->message;
    const struct count_ask names = { .collection = message->collection,
                                     .targets = (const char *const *)message->target_ids,
                                     .count = message->n_target_ids };
    Holdfast__V1__ErrorDetail detail;
    char **targets;

    if (count_ask_check(&names, request->arena, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    struct metadata_ask *ask =
        metadata_ask_new(request, message->collection, message->n_target_ids, &targets);
    for (size_t i = 0; i < message->n_target_ids; i++)
        targets[i] = message->target_ids[i];
    ask->done = told;
    metas_ask(ask);
}
