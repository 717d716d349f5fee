#include "holdfast/v1/session.pb-c.h"
#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "router/rpc/request/handlers.h"

static void unregistered(void *user, err e)
{
    struct request *request = user;
    Holdfast__V1__UnregisterServerResponse response;

    if (e == ERR_OK) {
        holdfast__v1__unregister_server_response__init(&response);
        request_reply(request, &response.base);
    } else if (err_retry(e) == RETRY_UNKNOWN_OUTCOME) {
        request_fail_text(request, CODE(OUTCOME_UNKNOWN),
                          "etcd did not answer; repeat the call, or let the registration lapse");
    } else {
        request_fail_text(request, CODE(UNAVAILABLE),
                          "etcd could not be reached; the registration will lapse by itself");
    }
}

void session_unregister_server_handle(struct request *request)
{
    const Holdfast__V1__UnregisterServerRequest *message =
        (const Holdfast__V1__UnregisterServerRequest *)(const void *)request->message;
    const struct router_options *options = &request->router->options;
    struct slice text = slice_from_text(message->incarnation);
    uint64_t now_ms = loop_now_ms(options->loop);
    struct incarnation incarnation;
    Holdfast__V1__ErrorDetail detail;

    if (incarnation_parse(text, &incarnation) != ERR_OK) {
        refusal_make_field(request->arena, &detail,
                           &(struct refusal_field){ "incarnation",
                                                    "<generation>-<revision>, from RegisterServer",
                                                    text },
                           "not an incarnation");
        request_fail(request, &detail);
        return;
    }
    request->cancel = server_call_cancel;
    if (request->answer_by_ms <= now_ms ||
        servers_unregister(options->servers, incarnation, request->answer_by_ms - now_ms,
                           unregistered, request) != ERR_OK)
        request_fail_text(request, CODE(UNAVAILABLE), "too many calls to etcd; nothing was done");
}
