#include "router/core/name_form.h"
#include "router/rpc/forward/forward.h"
#include "router/rpc/request/handlers.h"
#include "runtime/codec/proto_codec.h"

static void tell(struct request *request, struct slice body)
{
    Holdfast__V1__FindByNameResponse response = HOLDFAST__V1__FIND_BY_NAME_RESPONSE__INIT;
    struct codec_scope scope = { .arena = request->arena };
    ProtobufCMessage *profile;

    if (proto_decode(&holdfast__v1__get_profile_response__descriptor, body, &scope, &profile) !=
            ERR_OK ||
        name_form_found((const void *)profile, request->arena, &response) != ERR_OK)
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL,
                          "a node's answer cannot be read");
    else
        request_reply(request, &response.base);
}

static void answered(struct caller_call *call, const struct caller_result *result)
{
    struct request *request = call->user;
    Holdfast__V1__ErrorDetail detail;

    forward_count(request, call);
    if (result->detail != NULL)
        request_fail(request, result->detail);
    else if (!request_hold(request, result->body.size, &detail))
        request_fail(request, &detail);
    else
        tell(request, result->body);
}

static void cancel(struct request *request)
{
    struct caller_call *call = request->state;

    forward_count(request, call);
    caller_cancel(call);
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CANCELED,
                      "the caller has gone; nothing was done");
}

/* The profile of the name, in the form that nodes know (name_form.h). */
void user_find_by_name_handle(struct request *request)
{
    const struct forward_message message = { .method = method_find(request->method->element),
                                             .message = request->message };
    struct caller_call *call = arena_alloc(request->arena, sizeof *call);
    Holdfast__V1__ErrorDetail detail;

    if (forward_prepare(request, &message, call, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    call->done = answered;
    call->user = request;
    call->at_once = true;
    request->state = call;
    request->cancel = cancel;
    caller_start(request->router->options.caller, call);
}
